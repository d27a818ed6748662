"""Queues: tensors that one step puts in and another takes out."""

import hashlib
import threading

from ferroflow.python.framework import dtypes as _dtypes
from ferroflow.python.framework import ops, random_seed, tensor_shape, tensor_util
from ferroflow.python.ops import array_ops, control_flow_ops, math_ops
from ferroflow.python.ops.accumulators import (  # noqa: F401
    ConditionalAccumulator,
    ConditionalAccumulatorBase,
    SparseConditionalAccumulator,
)
from ferroflow.python.ops.barriers import Barrier  # noqa: F401


def _as_type_list(dtypes):
    if isinstance(dtypes, (list, tuple)):
        return list(dtypes)
    return [dtypes]


def _as_shape_list(shapes, dtypes, unknown_dim_allowed=False, unknown_rank_allowed=False):
    if shapes is None:
        return None
    if isinstance(shapes, tensor_shape.TensorShape):
        shapes = [shapes]
    elif not isinstance(shapes, (tuple, list)):
        shapes = [shapes]
    elif all(shape is None or isinstance(shape, int) for shape in shapes):
        # One shape, for one component.
        shapes = [shapes]
    shapes = [tensor_shape.as_shape(shape) for shape in shapes]
    if not unknown_dim_allowed and any(not shape.is_fully_defined() for shape in shapes):
        raise ValueError(f"All shapes must be fully defined: {shapes}")
    if not unknown_rank_allowed and any(shape.dims is None for shape in shapes):
        raise ValueError(f"All shapes must have a defined rank: {shapes}")
    return shapes


def _as_name_list(names, dtypes):
    if names is None:
        return None
    if not isinstance(names, (list, tuple)):
        names = [names]
    if len(names) != len(dtypes):
        raise ValueError(f"List of names must have the same length as the list of dtypes, received len(names)={len(names)},len(dtypes)={len(dtypes)}")
    return list(names)


def _shape_common(s1, s2):
    """The greatest shape that is compatible with both."""
    s1, s2 = tensor_shape.as_shape(s1), tensor_shape.as_shape(s2)
    if s1.ndims is None or s2.ndims is None or s1.ndims != s2.ndims:
        return tensor_shape.unknown_shape()
    pairs = zip(s1.as_list(), s2.as_list())
    return tensor_shape.TensorShape([a if a == b else None for a, b in pairs])


def _shapes(tensor_list_list, shapes, enqueue_many):
    """The common shapes of the components of several lists of tensors."""
    if shapes is not None:
        return shapes
    if len({len(tensors) for tensors in tensor_list_list}) != 1:
        raise ValueError("Tensors in list passed to 'tensor_list_list' must all have the same length")
    found = []
    for component in zip(*tensor_list_list):
        shape = component[0].get_shape()
        if enqueue_many:
            shape = shape.with_rank_at_least(1)[1:]
        for other in component[1:]:
            other_shape = other.get_shape()
            if enqueue_many:
                other_shape = other_shape.with_rank_at_least(1)[1:]
            shape = _shape_common(shape, other_shape)
        found.append(shape.as_list() if shape.ndims is not None else shape)
    return found


class QueueBase:
    """What all queues can do."""

    def __init__(self, dtypes, shapes, names, queue_ref):
        self._dtypes = dtypes
        if shapes is not None:
            if len(shapes) != len(dtypes):
                raise ValueError(f"Queue shapes must have the same length as dtypes, received len(shapes)={len(shapes)}, len(dtypes)={len(dtypes)}")
            self._shapes = [tensor_shape.TensorShape(s) for s in shapes]
        else:
            self._shapes = [tensor_shape.unknown_shape() for _ in dtypes]
        if names is not None:
            if len(names) != len(dtypes):
                raise ValueError(f"Queue names must have the same length as dtypes,received len(names)={len(names)},len {len(dtypes)}")
            self._names = names
        else:
            self._names = None
        self._queue_ref = queue_ref
        self._name = queue_ref.op.name.split("/")[-1]

    @staticmethod
    def from_list(index, queues):
        """The queue of a list that `index` selects in a step."""
        if not queues or not isinstance(queues, list) or not all(isinstance(q, QueueBase) for q in queues):
            raise TypeError("A list of queues expected")
        dtypes = queues[0].dtypes
        if not all(dtypes == q.dtypes for q in queues[1:]):
            raise TypeError("Queues do not have matching component dtypes.")
        names = queues[0].names
        if not all(names == q.names for q in queues[1:]):
            raise TypeError("Queues do not have matching component names.")
        reduced = None
        if all(q.shapes is not None for q in queues):
            reduced = [s for s in queues[0].shapes]
            for q in queues[1:]:
                reduced = [_shape_common(a, b) for a, b in zip(reduced, q.shapes)]
        ref = array_ops.gather(array_ops.stack([q.queue_ref for q in queues]), index)
        return QueueBase(dtypes=dtypes, shapes=reduced, names=names, queue_ref=ref)

    @property
    def queue_ref(self):
        return self._queue_ref

    @property
    def name(self):
        return self._queue_ref.op.name

    @property
    def dtypes(self):
        return self._dtypes

    @property
    def shapes(self):
        return self._shapes

    @property
    def names(self):
        return self._names

    def _check_enqueue_dtypes(self, vals):
        """The components as tensors, from a tensor, a list, or a dict for a queue with names."""
        if isinstance(vals, dict):
            if not self._names:
                raise ValueError("Queue must have names to enqueue a dictionary")
            if sorted(self._names, key=str) != sorted(vals.keys(), key=str):
                raise ValueError(f"Keys in dictionary to enqueue do not match names of Queue.  Dictionary: {sorted(vals.keys())},Queue: {sorted(self._names)}")
            vals = [vals[k] for k in self._names]
        else:
            if self._names:
                raise ValueError("You must enqueue a dictionary in a Queue with names")
            if not isinstance(vals, (list, tuple)):
                vals = [vals]
        return [
            ops.convert_to_tensor(val, dtype=dtype, name="component_%d" % i)
            for i, (val, dtype) in enumerate(zip(vals, self._dtypes))
        ]

    def _scope_vals(self, vals):
        if isinstance(vals, (list, tuple)):
            return vals
        return list(vals.values()) if isinstance(vals, dict) else [vals]

    def _is_resource(self):
        return self._queue_ref.dtype == _dtypes.resource

    def _op(self, kind, name, inputs, attrs=None):
        if self._is_resource():
            kind += "V2"
        return ops.apply_op(kind, name, [self._queue_ref] + inputs, attrs)

    def enqueue(self, vals, name=None):
        """An operation that puts one element in; it waits while the queue is full."""
        with ops.name_scope(name, "%s_enqueue" % self._name, self._scope_vals(vals)) as scope:
            vals = self._check_enqueue_dtypes(vals)
            for val, shape in zip(vals, self._shapes):
                val.get_shape().assert_is_compatible_with(shape)
            return self._op("QueueEnqueue", scope, [vals])

    def enqueue_many(self, vals, name=None):
        """An operation that puts in the slices of tensors along their first dimension."""
        with ops.name_scope(name, "%s_EnqueueMany" % self._name, self._scope_vals(vals)) as scope:
            vals = self._check_enqueue_dtypes(vals)
            batch = tensor_shape.TensorShape(vals[0].get_shape().with_rank_at_least(1)[:1])
            for val, shape in zip(vals, self._shapes):
                batch = batch.merge_with(val.get_shape().with_rank_at_least(1)[:1])
                val.get_shape()[1:].assert_is_compatible_with(shape)
            return self._op("QueueEnqueueMany", scope, [vals])

    def _dequeue_return_value(self, tensors):
        if self._names:
            return dict(zip(self._names, tensors))
        return tensors[0] if len(tensors) == 1 else list(tensors)

    def dequeue(self, name=None):
        """The next element; the step waits while the queue is empty."""
        if name is None:
            name = "%s_Dequeue" % self._name
        op = self._op("QueueDequeue", name, [], {"component_types": self._dtypes})
        for output, shape in zip(op.outputs, self._shapes):
            output.set_shape(shape)
        return self._dequeue_return_value(op.outputs)

    def dequeue_many(self, n, name=None):
        """The next `n` elements, stacked."""
        if name is None:
            name = "%s_DequeueMany" % self._name
        op = self._op("QueueDequeueMany", name, [n], {"component_types": self._dtypes})
        batch = tensor_util.constant_value(op.inputs[1])
        batch = tensor_shape.TensorShape([None if batch is None else int(batch)])
        for output, shape in zip(op.outputs, self._shapes):
            output.set_shape(batch.concatenate(shape))
        return self._dequeue_return_value(op.outputs)

    def dequeue_up_to(self, n, name=None):
        """The next `n` elements, or fewer if the queue is closed."""
        if name is None:
            name = "%s_DequeueUpTo" % self._name
        op = self._op("QueueDequeueUpTo", name, [n], {"component_types": self._dtypes})
        for output, shape in zip(op.outputs, self._shapes):
            output.set_shape(tensor_shape.TensorShape([None]).concatenate(shape))
        return self._dequeue_return_value(op.outputs)

    def close(self, cancel_pending_enqueues=False, name=None):
        """An operation after which nothing more can be put in."""
        if name is None:
            name = "%s_Close" % self._name
        return self._op("QueueClose", name, [], {"cancel_pending_enqueues": cancel_pending_enqueues})

    def is_closed(self, name=None):
        if name is None:
            name = "%s_Is_Closed" % self._name
        return self._op("QueueIsClosed", name, []).outputs[0]

    def size(self, name=None):
        if name is None:
            name = "%s_Size" % self._name
        return self._op("QueueSize", name, []).outputs[0]


def _with_shared_seed(seed, shared_name):
    """The two seeds of an op; equal for all ops that share it."""
    seed1, seed2 = random_seed.get_seed(seed)
    if seed1 is None and seed2 is None:
        return 0, 0
    if seed is None and shared_name is not None:
        digest = hashlib.md5((str(seed1) + shared_name).encode("utf-8")).hexdigest()
        seed2 = int(digest[:8], 16) & 0x7FFFFFFF
    return seed1, seed2


class RandomShuffleQueue(QueueBase):
    """A queue whose elements come out in random order."""

    def __init__(self, capacity, min_after_dequeue, dtypes, shapes=None, names=None, seed=None, shared_name=None, name="random_shuffle_queue"):
        dtypes = _as_type_list(dtypes)
        shapes = _as_shape_list(shapes, dtypes)
        names = _as_name_list(names, dtypes)
        seed1, seed2 = _with_shared_seed(seed, shared_name)
        attrs = {
            "component_types": dtypes,
            "shapes": shapes or [],
            "capacity": capacity,
            "min_after_dequeue": min_after_dequeue,
            "seed": seed1,
            "seed2": seed2,
            "shared_name": shared_name or "",
        }
        ref = ops.apply_op("RandomShuffleQueueV2", name, [], attrs).outputs[0]
        super().__init__(dtypes, shapes, names, ref)


class FIFOQueue(QueueBase):
    """A queue whose elements come out in the order in which they were put in."""

    def __init__(self, capacity, dtypes, shapes=None, names=None, shared_name=None, name="fifo_queue"):
        dtypes = _as_type_list(dtypes)
        shapes = _as_shape_list(shapes, dtypes)
        names = _as_name_list(names, dtypes)
        attrs = {"component_types": dtypes, "shapes": shapes or [], "capacity": capacity, "shared_name": shared_name or ""}
        with ops.init_scope(), ops.device("CPU"):
            ref = ops.apply_op("FIFOQueueV2", name, [], attrs).outputs[0]
        super().__init__(dtypes, shapes, names, ref)


class PaddingFIFOQueue(QueueBase):
    """A queue that pads elements of different sizes when it stacks them."""

    def __init__(self, capacity, dtypes, shapes, names=None, shared_name=None, name="padding_fifo_queue"):
        dtypes = _as_type_list(dtypes)
        if isinstance(shapes, (tuple, list)) and shapes and all(shape is None or isinstance(shape, int) for shape in shapes):
            raise ValueError("When providing partial shapes, a list of shapes must be provided.")
        shapes = _as_shape_list(shapes, dtypes, unknown_dim_allowed=True)
        names = _as_name_list(names, dtypes)
        if len(dtypes) != len(shapes):
            raise ValueError(f"Shapes must be provided for all components, but received {len(dtypes)} dtypes and {len(shapes)} shapes.")
        attrs = {"component_types": dtypes, "shapes": shapes, "capacity": capacity, "shared_name": shared_name or ""}
        ref = ops.apply_op("PaddingFIFOQueueV2", name, [], attrs).outputs[0]
        super().__init__(dtypes, shapes, names, ref)


class PriorityQueue(QueueBase):
    """A queue whose elements come out by their first component, the least one first."""

    def __init__(self, capacity, types, shapes=None, names=None, shared_name=None, name="priority_queue"):
        types = _as_type_list(types)
        shapes = _as_shape_list(shapes, types)
        attrs = {"component_types": types, "shapes": shapes or [], "capacity": capacity, "shared_name": shared_name or ""}
        ref = ops.apply_op("PriorityQueueV2", name, [], attrs).outputs[0]
        shapes = [tensor_shape.TensorShape([])] + shapes if shapes else shapes
        super().__init__([_dtypes.int64] + types, shapes, names, ref)


class StagingArea:
    """A small buffer between steps, on the device that uses it."""

    _lock = threading.Lock()
    _count = 0

    def __init__(self, dtypes, shapes=None, names=None, shared_name=None, capacity=0, memory_limit=0):
        if shared_name is None:
            with StagingArea._lock:
                shared_name = "StagingArea_%d" % StagingArea._count
                StagingArea._count += 1
            shared_name = ops.get_default_graph().unique_name(shared_name)
        self._name = shared_name
        self._dtypes = _as_type_list(dtypes)
        if shapes is not None and len(shapes) != len(self._dtypes):
            raise ValueError("StagingArea shapes must be the same length as dtypes")
        self._shapes = [tensor_shape.TensorShape(s) for s in shapes or [None] * len(self._dtypes)]
        self._names = _as_name_list(names, self._dtypes)
        self._capacity, self._memory_limit = capacity, memory_limit
        with ops.name_scope("%s_root" % self._name):
            self._coloc_op = control_flow_ops.no_op()

    name = property(lambda self: self._name)
    dtypes = property(lambda self: self._dtypes)
    shapes = property(lambda self: self._shapes)
    names = property(lambda self: self._names)
    capacity = property(lambda self: self._capacity)
    memory_limit = property(lambda self: self._memory_limit)

    def _attrs(self, **more):
        attrs = {"shared_name": self._name, "capacity": self._capacity, "memory_limit": self._memory_limit}
        return dict(attrs, **more)

    def put(self, values, name=None):
        values = values if isinstance(values, (list, tuple, dict)) else [values]
        listed = list(values.values()) if isinstance(values, dict) else list(values)
        with ops.name_scope(name, "%s_put" % self._name, listed) as scope:
            if isinstance(values, dict):
                values = [values[key] for key in self._names]
            tensors = [ops.convert_to_tensor(v, dtype=t, name="component_%d" % i) for i, (v, t) in enumerate(zip(values, self._dtypes))]
            with ops.colocate_with(self._coloc_op):
                return ops.apply_op("Stage", scope, [tensors], self._attrs())

    def _result(self, op):
        for output, shape in zip(op.outputs, self._shapes):
            output.set_shape(shape)
        return dict(zip(self._names, op.outputs)) if self._names else list(op.outputs)

    def get(self, name=None):
        name = name or "%s_get" % self._name
        with ops.colocate_with(self._coloc_op):
            return self._result(ops.apply_op("Unstage", name, [], self._attrs(dtypes=self._dtypes)))

    def peek(self, index, name=None):
        name = name or "%s_peek" % self._name
        with ops.colocate_with(self._coloc_op):
            return self._result(ops.apply_op("StagePeek", name, [index], self._attrs(dtypes=self._dtypes)))

    def size(self, name=None):
        return ops.apply_op("StageSize", name or "%s_size" % self._name, [], self._attrs(dtypes=self._dtypes)).outputs[0]

    def clear(self, name=None):
        return ops.apply_op("StageClear", name or "%s_clear" % self._name, [], self._attrs(dtypes=self._dtypes))


def dynamic_partition(data, partitions, num_partitions, name=None):
    """Splits `data` into tensors by the number that `partitions` gives each row."""
    return list(ops.apply_op("DynamicPartition", name, [data, partitions], {"num_partitions": num_partitions}).outputs)


def dynamic_stitch(indices, data, name=None):
    """Puts the rows of several tensors at the places that `indices` gives."""
    return ops.apply_op("DynamicStitch", name, [indices, data]).outputs[0]


def parallel_dynamic_stitch(indices, data, name=None):
    return ops.apply_op("ParallelDynamicStitch", name, [indices, data]).outputs[0]


