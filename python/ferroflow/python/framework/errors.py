"""`tf.errors`."""

from ferroflow.python.framework.errors_impl import *  # noqa: F401,F403  pylint: disable=wildcard-import
