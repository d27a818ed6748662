"""Writes the table of op definitions that `ferroflow.python.ops.gen_ops` builds functions from.

    python tools/op_table.py OPDEFS.pb ferroflow/python/ops

needs TensorFlow 2.15.1.  It records facts only: names, argument order, types and defaults of the
ops (`op_defs.txt`), and under which public names TensorFlow exports an op function as it is
(`op_exports.txt`).

One line of `op_defs.txt` is one op, its fields separated by tabs:

    name  inputs  outputs  attrs

inputs are their names in Python.  outputs are names; a list is `name:N` or `name:@Ts`, after the
attribute that tells its length.  attrs are those that do not follow from the inputs, as
`attr:type=default` or `attr|python_name:type=default`.
"""

import inspect
import json
import os
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import tensorflow as tf  # noqa: E402
from tensorflow.core.framework import op_def_pb2  # noqa: E402
from tensorflow.python.util import tf_decorator  # noqa: E402


def dtype_name(number):
    return tf.dtypes.as_dtype(number).name if number < 100 else tf.dtypes.as_dtype(
        number - 100).name + "_ref"


def value_text(value):
    """An AttrValue as JSON, None where the kind cannot be a default."""
    kind = value.WhichOneof("value")
    if kind == "s":
        return json.dumps(value.s.decode("latin-1"))
    if kind == "i":
        return json.dumps(value.i)
    if kind == "f":
        return json.dumps(value.f)
    if kind == "b":
        return json.dumps(value.b)
    if kind == "type":
        return dtype_name(value.type)
    if kind == "shape":
        if value.shape.unknown_rank:
            return "null"
        return json.dumps([d.size for d in value.shape.dim])
    if kind == "list":
        one = value.list
        parts = ([json.dumps(x.decode("latin-1")) for x in one.s] + [json.dumps(x) for x in one.i]
                 + [json.dumps(x) for x in one.f] + [json.dumps(x) for x in one.b]
                 + [dtype_name(x) for x in one.type])
        assert not one.shape
        return "[" + ",".join(parts) + "]"
    if kind == "func":
        return '"%s"' % value.func.name
    if kind == "tensor":
        return "tensor"
    raise ValueError(str(value))


def output_text(arg):
    if arg.type_list_attr:
        return arg.name + ":@" + arg.type_list_attr
    return arg.name + ":" + arg.number_attr if arg.number_attr else arg.name


def attr_text(attr, renamed):
    text = attr.name if renamed == attr.name else "%s|%s" % (attr.name, renamed)
    text += ":" + attr.type
    if attr.HasField("default_value"):
        text += "=" + value_text(attr.default_value)
    return text


def line_of(op, parameters):
    inferred = set()
    for arg in op.input_arg:
        inferred.update(x for x in (arg.type_attr, arg.number_attr, arg.type_list_attr) if x)
    asked = [a for a in op.attr if a.name not in inferred]
    order = ([a.name for a in op.input_arg]
             + [a.name for a in asked if not a.HasField("default_value")]
             + [a.name for a in asked if a.HasField("default_value")])
    renamed = dict(zip(order, parameters)) if parameters else {}
    assert not parameters or len(order) == len(parameters), op.name
    return "\t".join([
        op.name, " ".join(renamed.get(a.name, a.name) for a in op.input_arg),
        " ".join(output_text(a) for a in op.output_arg),
        "\t".join(attr_text(a, renamed.get(a.name, a.name)) for a in asked)])


def exports(ops):
    """Public names of tf.compat.v1 that are op functions as they are."""
    by_function = {}
    for name in ops:
        function = getattr(tf.raw_ops, name, None)
        if function is not None:
            by_function[(function.__name__.lower())] = name
    found = {}
    seen = set()

    def walk(module, prefix, depth):
        if id(module) in seen or depth > 3:
            return
        seen.add(id(module))
        for name in sorted(dir(module)):
            if name.startswith("_") or name in ("raw_ops", "keras", "compat", "estimator"):
                continue
            try:
                value = getattr(module, name)
            except Exception:
                continue
            if inspect.ismodule(value):
                walk(value, prefix + name + ".", depth + 1)
            elif callable(value) and not inspect.isclass(value):
                _, plain = tf_decorator.unwrap(value)
                where = getattr(plain, "__module__", "") or ""
                if where.rsplit(".", 1)[-1].startswith("gen_"):
                    key = plain.__name__.replace("_", "")
                    op = [o for o in ops if o.lower() == key]
                    if op:
                        names = [p for p in inspect.signature(plain).parameters if p != "name"]
                        found[prefix + name] = (op[0], names)

    walk(tf.compat.v1, "", 0)
    return found


def main():
    source, folder = sys.argv[1:]
    ops = op_def_pb2.OpList()
    with open(source, "rb") as f:
        ops.ParseFromString(f.read())
    known = {}
    for op in ops.op:
        function = getattr(tf.raw_ops, op.name, None)
        if function is None:
            continue
        known[op.name] = line_of(
            op, [p for p in inspect.signature(function).parameters if p != "name"])
    with open(os.path.join(folder, "op_defs.txt"), "w", encoding="ascii") as f:
        f.write("\n" + "\n".join(known[name] for name in sorted(known)) + "\n")
    public = exports(sorted(known))
    with open(os.path.join(folder, "op_exports.txt"), "w", encoding="ascii") as f:
        for name in sorted(public):
            f.write("%s %s %s\n" % (name, public[name][0], ",".join(public[name][1])))


if __name__ == "__main__":
    main()
