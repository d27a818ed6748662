"""`run`, where Horovod has it."""

from ferroflow._hvd.launch import run  # noqa: F401
