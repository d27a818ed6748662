"""Ordering and grouping of ops, assertions; `cond`, `case` and `while_loop` are re-exported."""

from ferroflow.python.framework import dtypes
from ferroflow.python.framework import indexed_slices
from ferroflow.python.framework import ops
from ferroflow.python.ops import array_ops
from ferroflow.python.ops import gen_ops
from ferroflow.python.ops import module_names
from ferroflow.python.util.api import export

IndexedSlices = indexed_slices.IndexedSlices
_tuple_type = tuple


@export("no_op")
def no_op(name=None):
    return gen_ops.NoOp(name=name)


def with_dependencies(dependencies, output_tensor, name=None):
    """`output_tensor`, once the dependencies have run."""
    with ops.name_scope(name, "control_dependency", list(dependencies) + [output_tensor]) as scope:
        with ops.colocate_with(output_tensor):
            with ops.control_dependencies(dependencies):
                output_tensor = indexed_slices.convert_to_tensor_or_indexed_slices(output_tensor) \
                    if not isinstance(output_tensor, IndexedSlices) else output_tensor
                if isinstance(output_tensor, IndexedSlices):
                    return IndexedSlices(
                        array_ops.identity(output_tensor.values, name=scope),
                        output_tensor.indices, output_tensor.dense_shape)
                return array_ops.identity(output_tensor, name=scope)


def _flat(values):
    flat = []
    for value in values:
        if isinstance(value, dict):
            flat.extend(_flat(value[k] for k in sorted(value)))
        elif isinstance(value, (list, _tuple_type)):
            flat.extend(_flat(value))
        else:
            flat.append(value)
    return flat


def _group_on_device(inputs, device, name=None):
    with ops.control_dependencies(inputs):
        if not device:
            return no_op(name=name)
        with ops.device(device):
            return no_op(name=name)


@export("group")
def group(*inputs, **kwargs):
    name = kwargs.pop("name", None)
    if kwargs:
        raise ValueError("Unknown keyword arguments: " + ", ".join(kwargs.keys()))
    with ops.name_scope(name, "group_deps", inputs) as scope:
        name = scope
        if not inputs:
            return no_op(name=name)
        by_device = {}
        for one in _flat(inputs):
            if not hasattr(one, "device"):
                raise TypeError("'inputs' should be zero or more (nested) Tensors. Received '%s' "
                                "with type '%s'." % (one, type(one)))
            by_device.setdefault(one.device, []).append(one)
        if len(by_device) == 1:
            (device, members), = by_device.items()
            return _group_on_device(members, device, name=name)
        parts = []
        for device in sorted(by_device, key=lambda d: d or ""):
            parts.append(_group_on_device(by_device[device], device))
        with ops.control_dependencies(parts):
            return no_op(name=name)


@export("tuple")
def tuple_of(tensors, name=None, control_inputs=None):
    with ops.name_scope(name, "tuple", tensors):
        tensors = [t if t is None or hasattr(t, "op") or isinstance(t, ops.Operation) else ops.convert_to_tensor(t) for t in tensors]
        gating = []
        for t in tensors:
            if t is not None:
                gating.append(t.op if not isinstance(t, ops.Operation) else t)
        if control_inputs:
            for c in control_inputs:
                if isinstance(c, ops.Tensor):
                    c = c.op
                elif not isinstance(c, ops.Operation):
                    raise TypeError("'control_inputs' must only contain Operation or Tensor. "
                                    "Received: %s" % type(c))
                gating.append(c)
        gating = sorted(set(gating), key=lambda op: op._id)
        if not gating:
            raise ValueError("'tensors' must have at least one Tensor. Received: %s." % (tensors,))
        gate = group(*gating)
        result = []
        for t in tensors:
            if isinstance(t, ops.Operation):
                with ops.control_dependencies([gate]):
                    result.append(t)
            elif t is not None:
                result.append(with_dependencies([gate], t))
            else:
                result.append(None)
        return result


@export("Assert", "debugging.Assert")
def Assert(condition, data, summarize=None, name=None):
    from ferroflow.python.ops import cond as cond_module
    with ops.name_scope(name, "Assert", [condition, data]):
        converted = ops.convert_n_to_tensor(data)
        if all(x.dtype in (dtypes.string, dtypes.int32) for x in converted):
            # These are on the host already: a conditional would save no copy.
            return gen_ops.Assert(condition, data, summarize, name="Assert")
        condition = ops.convert_to_tensor(condition, name="Condition")

        def failed():
            return gen_ops.Assert(condition, data, summarize, name="Assert")

        guard = cond_module.cond(condition, no_op, failed, name="AssertGuard")
    # In a function the condition is one operation without results.
    return guard if isinstance(guard, ops.Operation) else guard.op


from ferroflow.python.ops.cond import case, cond, switch_case  # noqa: E402,F401
from ferroflow.python.ops.while_loop import while_loop  # noqa: E402,F401

__getattr__ = module_names.fallback(__name__)

tuple = tuple_of  # noqa: A001
