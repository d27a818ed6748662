"""Functions for ops, made from their definitions when they are first used.

`gen_ops.mat_mul` and `gen_ops.MatMul` are the same function.  Its arguments are the inputs of the
op, then the attributes without a default, then those with one, then `name`.
"""

import collections
import os

from ferroflow.python.framework import ops
from ferroflow.python.ops import op_defs

_by_plain_name = {}


def _op_name(name):
    """The op of the function called `name`, or None."""
    if op_defs.get(name) is not None:
        return name
    if not _by_plain_name:
        for op in op_defs.names():
            _by_plain_name[op.replace("_", "").lower()] = op
    return _by_plain_name.get(name.replace("_", "").lower())


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    op = _op_name(name)
    if op is None:
        raise AttributeError("there is no op for the function %r" % name)
    function = globals().get(op)
    if function is None:
        function = globals()[op] = make_function(op_defs.get(op))
    globals()[name] = function
    return function


def make_function(op_def, name=None, keyword_only=False, parameters=None):
    """The Python function of an op; `parameters` renames its arguments."""
    defaults = []
    args = [_safe(a) for a in (parameters or op_def.inputs)[:len(op_def.inputs)]]
    asked = [_safe(a) for a in (parameters[len(args):] if parameters else
                                [a.python_name for a in op_def.asked])]
    declared = list(args)
    entries = []
    for attr, python_name in zip(op_def.asked, asked):
        if attr.has_default:
            defaults.append(attr.default)
            declared.append("%s=_d[%d]" % (python_name, len(defaults) - 1))
            entries.append("%r: _d[%d] if %s is None else %s" % (
                attr.name, len(defaults) - 1, python_name, python_name))
        else:
            declared.append(python_name)
            entries.append("%r: %s" % (attr.name, python_name))
    declared.append("name=None")
    if keyword_only and len(declared) > 1:
        declared.insert(0, "*")
    function_name = name or op_def.name
    source = "def %s(%s):\n    return %s\n" % (
        function_name, ", ".join(declared), _RESULTS[_kind(op_def)] % (
            "_apply(%r, name, (%s), %s)" % (
                op_def.name, "".join(a + ", " for a in args),
                "{%s}" % ", ".join(entries) if entries else "None")))
    scope = {"_apply": ops.apply_op, "_d": defaults, "_pack": _packer(op_def)}
    # The file is one of the package, so that errors name the caller's line, not this one.
    exec(compile(source, os.path.join(os.path.dirname(__file__), "generated"), "exec"), scope)
    function = scope[function_name]
    function.__module__ = __name__
    function.__doc__ = "Adds the op `%s` to the graph." % op_def.name
    return function


_RESULTS = {"op": "%s", "tensor": "%s._output(0)", "packed": "_pack(%s)"}


def _kind(op_def):
    if not op_def.outputs:
        return "op"
    if len(op_def.outputs) == 1 and op_def.outputs[0][1] is None:
        return "tensor"
    return "packed"


def _safe(name):
    return name + "_" if name in ("lambda", "is", "in", "from", "global", "with", "as") else name


def _packer(op_def):
    """Turns the outputs of an op into a list or a named tuple; None if it has at most one."""
    outputs = op_def.outputs
    if _kind(op_def) != "packed":
        return None
    if len(outputs) == 1:
        return lambda op: list(op.outputs) or op
    structure = collections.namedtuple(op_def.name, [_safe(name) for name, _, _ in outputs])
    if not any(length for _, length, _ in outputs):
        return lambda op: structure(*op.outputs)

    def mixed(op):
        flat = list(op.outputs)
        parts = []
        for _, length, is_types in outputs:
            if length is None:
                parts.append(flat.pop(0))
                continue
            value = op.get_attr(length)
            count = len(value) if is_types else value
            parts.append(flat[:count])
            flat = flat[count:]
        return structure(*parts)
    return mixed


def raw_op(name):
    """The function `tf.raw_ops.<name>`, which takes keywords only."""
    op_def = op_defs.get(name)
    if op_def is None:
        raise AttributeError("there is no op %r" % name)
    return make_function(op_def, name, keyword_only=True)


def exported():
    """Public name -> (op, argument names) of the op functions that TensorFlow exports."""
    found = {}
    path = os.path.join(os.path.dirname(__file__), "op_exports.txt")
    with open(path, encoding="ascii") as f:
        for line in f:
            public, op, names = line.rstrip("\n").split(" ")
            found[public] = (op, names.split(",") if names else [])
    return found
