"""Context managers, under TensorFlow's name."""

from contextlib import contextmanager  # noqa: F401
