"""Input pipelines from queues: producers of files, slices and numbers, and batches."""

from ferroflow.python.framework import dtypes, ops, tensor_shape
from ferroflow.python.ops import array_ops, control_flow_ops, data_flow_ops, gen_ops, io_ops, math_ops, random_ops, variables
from ferroflow.python.summary import summary
from ferroflow.python.training import queue_runner_impl, sparse_batches


def match_filenames_once(pattern, name=None):
    """The files that match a pattern, as a local variable that is filled once."""
    with ops.name_scope(name, "matching_filenames", [pattern]) as name:
        return variables.VariableV1(
            name=name,
            initial_value=io_ops.matching_files(pattern),
            trainable=False,
            validate_shape=False,
            collections=[ops.GraphKeys.LOCAL_VARIABLES],
        )


def limit_epochs(tensor, num_epochs=None, name=None):
    """The tensor `num_epochs` times; then OutOfRange."""
    if num_epochs is None:
        return tensor
    if num_epochs <= 0:
        raise ValueError("num_epochs must be > 0 not %d." % num_epochs)
    with ops.name_scope(name, "limit_epochs", [tensor]) as name:
        zero64 = ops.convert_to_tensor(0, dtype=dtypes.int64)
        epochs = variables.VariableV1(zero64, name="epochs", trainable=False, collections=[ops.GraphKeys.LOCAL_VARIABLES])
        counter = epochs.count_up_to(num_epochs)
        with ops.control_dependencies([counter]):
            return array_ops.identity(tensor, name=name)


def input_producer(input_tensor, element_shape=None, num_epochs=None, shuffle=True, seed=None, capacity=32, shared_name=None, summary_name=None, name=None, cancel_op=None):
    """A queue that is filled with the rows of a tensor."""
    with ops.name_scope(name, "input_producer", [input_tensor]):
        input_tensor = ops.convert_to_tensor(input_tensor, name="input_tensor")
        element_shape = input_tensor.shape[1:].merge_with(tensor_shape.as_shape(element_shape))
        if not element_shape.is_fully_defined():
            raise ValueError("Either `input_tensor` must have a fully defined shape or `element_shape` must be specified")
        if shuffle:
            input_tensor = random_ops.random_shuffle(input_tensor, seed=seed)
        input_tensor = limit_epochs(input_tensor, num_epochs)
        q = data_flow_ops.FIFOQueue(
            capacity=capacity, dtypes=[input_tensor.dtype.base_dtype], shapes=[element_shape], shared_name=shared_name, name=name
        )
        enq = q.enqueue_many([input_tensor])
        queue_runner_impl.add_queue_runner(queue_runner_impl.QueueRunner(q, [enq], cancel_op=cancel_op))
        if summary_name is not None:
            summary.scalar(summary_name, math_ops.cast(q.size(), dtypes.float32) * (1.0 / capacity))
        return q


def string_input_producer(string_tensor, num_epochs=None, shuffle=True, seed=None, capacity=32, shared_name=None, name=None, cancel_op=None):
    """A queue of strings, mostly of file names."""
    if not isinstance(string_tensor, ops.Tensor) and not hasattr(string_tensor, "initializer") and not len(string_tensor):
        raise ValueError("string_input_producer requires a non-null input tensor")
    with ops.name_scope(name, "input_producer", [string_tensor]) as name:
        string_tensor = ops.convert_to_tensor(string_tensor, dtype=dtypes.string)
        with ops.control_dependencies([_assert_not_empty(string_tensor)]):
            string_tensor = array_ops.identity(string_tensor)
        return input_producer(
            input_tensor=string_tensor,
            element_shape=[],
            num_epochs=num_epochs,
            shuffle=shuffle,
            seed=seed,
            capacity=capacity,
            shared_name=shared_name,
            name=name,
            summary_name="fraction_of_%d_full" % capacity,
            cancel_op=cancel_op,
        )


def _assert_not_empty(tensor):
    return control_flow_ops.Assert(
        gen_ops.greater(array_ops.size(tensor), 0), ["string_input_producer requires a non-null input tensor"]
    )


def range_input_producer(limit, num_epochs=None, shuffle=True, seed=None, capacity=32, shared_name=None, name=None):
    """A queue of the numbers below `limit`."""
    with ops.name_scope(name, "input_producer", [limit]) as name:
        range_tensor = math_ops.range(limit)
        return input_producer(range_tensor, [], num_epochs, shuffle, seed, capacity, shared_name, "fraction_of_%d_full" % capacity, name)


def slice_input_producer(tensor_list, num_epochs=None, shuffle=True, seed=None, capacity=32, shared_name=None, name=None):
    """One row of each tensor at a time."""
    with ops.name_scope(name, "input_producer", tensor_list):
        tensor_list = [ops.convert_to_tensor(t) for t in tensor_list]
        if not tensor_list:
            raise ValueError("Expected at least one tensor in slice_input_producer().")
        range_size = array_ops.shape(tensor_list[0])[0]
        queue = range_input_producer(range_size, num_epochs=num_epochs, shuffle=shuffle, seed=seed, capacity=capacity, shared_name=shared_name)
        index = queue.dequeue()
        return [array_ops.gather(t, index) for t in tensor_list]


class _Layout:
    """How a dict, list or tensor of tensors becomes a list, and back."""

    def __init__(self, tensors):
        self.keys = sorted(tensors) if isinstance(tensors, dict) else None
        self.single = not isinstance(tensors, (dict, list, tuple))

    def flat(self, tensors):
        if self.single:
            tensors = [tensors]
        elif self.keys is not None:
            tensors = [tensors[key] for key in self.keys]
        return [t if sparse_batches.is_sparse(t) else ops.convert_to_tensor(t) for t in tensors]

    def packed(self, tensors):
        if not isinstance(tensors, (list, tuple)):
            tensors = [tensors]
        if self.keys is not None:
            return dict(zip(self.keys, tensors))
        # A single tensor is returned as such, even if it was given in a list.
        return tensors[0] if len(tensors) == 1 else list(tensors)


def _enqueue(queue, tensor_list, threads, enqueue_many, keep_input):
    def one(tensors):
        put = queue.enqueue_many if enqueue_many else queue.enqueue
        if keep_input is True:
            return put(tensors)
        if enqueue_many and keep_input.get_shape().ndims == 1:
            kept = math_ops.cast(keep_input, dtypes.int32)
            return put([data_flow_ops.dynamic_partition(t, kept, num_partitions=2)[1] for t in tensors])
        return control_flow_ops.cond(keep_input, lambda: put(tensors), control_flow_ops.no_op)

    if isinstance(threads, int):
        enqueue_ops = [one(tensor_list)] * threads
    else:
        enqueue_ops = [one(tensors) for tensors in threads]
    queue_runner_impl.add_queue_runner(queue_runner_impl.QueueRunner(queue, enqueue_ops))


def _make_queue(shapes, types, capacity, dynamic_pad, shared_name, name="fifo_queue"):
    if dynamic_pad:
        return data_flow_ops.PaddingFIFOQueue(capacity=capacity, dtypes=types, shapes=shapes, shared_name=shared_name, name="padding_fifo_queue")
    return data_flow_ops.FIFOQueue(capacity=capacity, dtypes=types, shapes=shapes, shared_name=shared_name, name=name)


def _batch_internal(lists, keep_input, batch_size, capacity, enqueue_many, shapes, dynamic_pad, allow_smaller, shared_name, name, threads, scope, shuffle=None):
    layout = _Layout(lists[0])
    with ops.name_scope(name, scope, [t for ts in lists for t in layout.flat(ts)]) as name:
        flat = [layout.flat(tensors) for tensors in lists]
        if keep_input is True:
            ops.convert_to_tensor(True)
        else:
            keep_input = ops.convert_to_tensor(keep_input)
        flat, sparse = sparse_batches.store(flat, enqueue_many, keep_input)
        types = [t.dtype.base_dtype for t in flat[0]]
        shapes = data_flow_ops._shapes(flat, shapes, enqueue_many)
        if shuffle:
            seed, min_after_dequeue = shuffle
            if capacity <= min_after_dequeue:
                raise ValueError(f"capacity {capacity} must be bigger than min_after_dequeue {min_after_dequeue}.")
            queue = data_flow_ops.RandomShuffleQueue(capacity, min_after_dequeue, types, shapes, seed=seed, shared_name=shared_name)
        else:
            queue = _make_queue(shapes, types, capacity, dynamic_pad, shared_name)
        _enqueue(queue, flat[0], threads if len(lists) == 1 else flat, enqueue_many, keep_input)
        if shuffle:
            full = math_ops.cast(gen_ops.maximum(0, queue.size() - min_after_dequeue), dtypes.float32) * (1.0 / (capacity - min_after_dequeue))
            summary.scalar("fraction_over_%d_of_%d_full" % (min_after_dequeue, capacity - min_after_dequeue), full)
        else:
            summary.scalar("fraction_of_%d_full" % capacity, math_ops.cast(queue.size(), dtypes.float32) * (1.0 / capacity))
        dequeue = queue.dequeue_up_to if allow_smaller else queue.dequeue_many
        return layout.packed(sparse_batches.restore(dequeue(batch_size, name=name), sparse))


def batch(tensors, batch_size, num_threads=1, capacity=32, enqueue_many=False, shapes=None, dynamic_pad=False, allow_smaller_final_batch=False, shared_name=None, name=None):
    """Batches of what one pipeline makes."""
    return _batch_internal([tensors], True, batch_size, capacity, enqueue_many, shapes, dynamic_pad, allow_smaller_final_batch, shared_name, name, num_threads, "batch")


def maybe_batch(tensors, keep_input, batch_size, num_threads=1, capacity=32, enqueue_many=False, shapes=None, dynamic_pad=False, allow_smaller_final_batch=False, shared_name=None, name=None):
    return _batch_internal([tensors], keep_input, batch_size, capacity, enqueue_many, shapes, dynamic_pad, allow_smaller_final_batch, shared_name, name, num_threads, "batch")


def batch_join(tensors_list, batch_size, capacity=32, enqueue_many=False, shapes=None, dynamic_pad=False, allow_smaller_final_batch=False, shared_name=None, name=None):
    """Batches of what several pipelines make, a thread for each."""
    return _batch_internal(list(tensors_list), True, batch_size, capacity, enqueue_many, shapes, dynamic_pad, allow_smaller_final_batch, shared_name, name, 1, "batch_join")


def maybe_batch_join(tensors_list, keep_input, batch_size, capacity=32, enqueue_many=False, shapes=None, dynamic_pad=False, allow_smaller_final_batch=False, shared_name=None, name=None):
    return _batch_internal(list(tensors_list), keep_input, batch_size, capacity, enqueue_many, shapes, dynamic_pad, allow_smaller_final_batch, shared_name, name, 1, "batch_join")


def shuffle_batch(tensors, batch_size, capacity, min_after_dequeue, num_threads=1, seed=None, enqueue_many=False, shapes=None, allow_smaller_final_batch=False, shared_name=None, name=None):
    """Batches in random order."""
    return _batch_internal([tensors], True, batch_size, capacity, enqueue_many, shapes, False, allow_smaller_final_batch, shared_name, name, num_threads, "shuffle_batch", (seed, min_after_dequeue))


def maybe_shuffle_batch(tensors, batch_size, capacity, min_after_dequeue, keep_input, num_threads=1, seed=None, enqueue_many=False, shapes=None, allow_smaller_final_batch=False, shared_name=None, name=None):
    return _batch_internal([tensors], keep_input, batch_size, capacity, enqueue_many, shapes, False, allow_smaller_final_batch, shared_name, name, num_threads, "shuffle_batch", (seed, min_after_dequeue))


def shuffle_batch_join(tensors_list, batch_size, capacity, min_after_dequeue, seed=None, enqueue_many=False, shapes=None, allow_smaller_final_batch=False, shared_name=None, name=None):
    return _batch_internal(list(tensors_list), True, batch_size, capacity, enqueue_many, shapes, False, allow_smaller_final_batch, shared_name, name, 1, "shuffle_batch_join", (seed, min_after_dequeue))


def maybe_shuffle_batch_join(tensors_list, batch_size, capacity, min_after_dequeue, keep_input, seed=None, enqueue_many=False, shapes=None, allow_smaller_final_batch=False, shared_name=None, name=None):
    return _batch_internal(list(tensors_list), keep_input, batch_size, capacity, enqueue_many, shapes, False, allow_smaller_final_batch, shared_name, name, 1, "shuffle_batch_join", (seed, min_after_dequeue))
