"""Modules that Horovod has under `horovod.common`, for programs that import them by name."""
