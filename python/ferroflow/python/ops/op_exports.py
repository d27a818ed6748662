"""Op functions under the public names and argument names that TensorFlow gives them."""

from ferroflow.python.ops import gen_ops
from ferroflow.python.ops import op_defs

_exported = {}


def __getattr__(name):
    """`name` is a public name with its dots as `__`."""
    if name.startswith("__"):
        raise AttributeError(name)
    if not _exported:
        _exported.update(gen_ops.exported())
    public = name.replace("__", ".")
    if public not in _exported:
        raise AttributeError(name)
    op, parameters = _exported[public]
    function = globals()[name] = gen_ops.make_function(
        op_defs.get(op), public.rsplit(".", 1)[-1], parameters=parameters)
    return function
