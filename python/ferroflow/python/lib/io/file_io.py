"""Files, under the names of TensorFlow's module."""

from ferroflow.python.platform.gfile import *  # noqa: F401,F403  pylint: disable=wildcard-import
from ferroflow.python.platform.gfile import GFile as FileIO  # noqa: F401
