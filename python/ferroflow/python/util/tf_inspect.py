"""`inspect`, under TensorFlow's name. Decorated functions are looked through."""

import inspect
from inspect import *  # noqa: F401,F403

from ferroflow.python.util import tf_decorator

ArgSpec = FullArgSpec = inspect.FullArgSpec


def getfullargspec(target):
    return inspect.getfullargspec(tf_decorator.unwrap(target)[1])


getargspec = getfullargspec
