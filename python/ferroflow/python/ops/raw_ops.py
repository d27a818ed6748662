"""`tf.raw_ops`: every op as a function of keywords."""

from ferroflow.python.ops import gen_ops
from ferroflow.python.ops import op_defs


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    function = globals()[name] = gen_ops.raw_op(name)
    return function


def __dir__():
    return op_defs.names()
