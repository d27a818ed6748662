"""`Barrier`: tuples that steps put together part by part, under keys."""

import collections

from ferroflow.python.framework import dtypes, ops, tensor_shape, tensor_util

BarrierTakeMany = collections.namedtuple("BarrierTakeMany", ["indices", "keys", "values"])


class Barrier:
    """Holds tuples of tensors. A tuple can be taken when all its parts were inserted under its key."""

    def __init__(self, types, shapes=None, shared_name=None, name="barrier"):
        self._types = [dtypes.as_dtype(t) for t in (types if isinstance(types, (list, tuple)) else [types])]
        if shapes is None:
            self._shapes = [tensor_shape.unknown_shape() for _ in self._types]
        else:
            if isinstance(shapes, tensor_shape.TensorShape) or not isinstance(shapes, (list, tuple)) or all(
                    isinstance(dim, int) for dim in shapes) and len(self._types) == 1:
                shapes = [shapes]
            self._shapes = [tensor_shape.as_shape(s) for s in shapes]
            for i, shape in enumerate(self._shapes):
                if not shape.is_fully_defined():
                    raise ValueError(f"All shapes must be fully defined: {self._shapes}")
                if shape.num_elements() == 0:
                    raise ValueError(f"Empty tensors are not supported, but received shape '{shape}' at index {i}")
            if len(self._shapes) != len(self._types):
                raise ValueError(f"A barrier of {len(self._types)} types needs as many shapes, not {len(self._shapes)}")
        attrs = {"component_types": self._types, "shapes": [] if shapes is None else self._shapes,
                 "capacity": -1, "container": "", "shared_name": shared_name or ""}
        self._barrier_ref = ops.apply_op("Barrier", name, [], attrs).outputs[0]
        self._name = self._barrier_ref.op.name.split("/")[-1]

    barrier_ref = property(lambda self: self._barrier_ref)
    name = property(lambda self: self._barrier_ref.op.name)

    def _op(self, kind, inputs, attrs, name):
        return ops.apply_op(kind, f"{self._name}_{kind}" if name is None else name, [self._barrier_ref] + inputs, attrs)

    def insert_many(self, component_index, keys, values, name=None):
        """An operation that sets one part of the tuples of some keys."""
        return self._op("BarrierInsertMany", [keys, values], {"component_index": component_index}, name)

    def take_many(self, num_elements, allow_small_batch=False, timeout=None, name=None):
        """(the order of their first insertion, the keys, a list with the parts) of complete tuples."""
        attrs = {"component_types": self._types, "allow_small_batch": allow_small_batch, "wait_for_incomplete": False,
                 "timeout_ms": -1 if timeout is None else timeout}
        op = self._op("BarrierTakeMany", [num_elements], attrs, name)
        count = None if allow_small_batch else tensor_util.constant_value(op.inputs[1])
        count = None if count is None else int(count)
        indices, keys, *values = op.outputs
        indices.set_shape([count])
        keys.set_shape([count])
        for value, shape in zip(values, self._shapes):
            value.set_shape(tensor_shape.TensorShape([count]).concatenate(shape))
        return BarrierTakeMany(indices, keys, values)

    def close(self, cancel_pending_enqueues=False, name=None):
        """An operation after which no new key can be inserted."""
        return self._op("BarrierClose", [], {"cancel_pending_enqueues": cancel_pending_enqueues}, name)

    def ready_size(self, name=None):
        """The number of complete tuples."""
        return self._op("BarrierReadySize", [], None, name).outputs[0]

    def incomplete_size(self, name=None):
        """The number of tuples with missing parts."""
        return self._op("BarrierIncompleteSize", [], None, name).outputs[0]
