"""`Dataset.from_generator`: elements that a Python generator yields, in the process that made it."""

import itertools
import threading

import numpy as np

from ferroflow.python.data.ops.structured_function import StructuredFunction
from ferroflow.python.data.util import nest, structure
from ferroflow.python.framework import dtypes, ops, sparse_tensor
from ferroflow.python.ops import script_ops


class _Generators:
    """The iterations that are under way, by number."""

    def __init__(self, make, element):
        self._make, self._element = make, element
        self._lock, self._numbers, self._running = threading.Lock(), itertools.count(), {}

    def start(self, *args):
        with self._lock:
            number = next(self._numbers)
        self._running[number] = iter(self._make(*args))
        return np.int64(number)

    def next(self, number):
        """The parts of the next element; StopIteration ends the dataset."""
        value = next(self._running[int(number)])
        try:
            parts = nest.flatten_up_to(self._element, value)
        except (TypeError, ValueError) as e:
            raise TypeError("`generator` yielded an element that did not match the expected structure. The expected structure was "
                            "%s, but the yielded element was %s." % (nest.map_structure(lambda leaf: leaf.dtype, self._element), value)) from e
        return [array for part, leaf in zip(parts, nest.flatten(self._element)) for array in _arrays(part, leaf)]

    def finish(self, number):
        self._running.pop(int(number), None)
        return np.int64(0)


def _arrays(value, leaf):
    """A part of an element: one array, or the three of a sparse tensor."""
    if not isinstance(leaf, structure.SparseLeaf):
        return [_array(value, leaf)]
    if not isinstance(value, sparse_tensor.SparseTensorValue):
        raise TypeError("`generator` yielded an element where a SparseTensorValue was expected: %s." % (value,))
    return [_array(part, of) for part, of in zip(value, _sparse_parts(leaf))]


def _sparse_parts(leaf):
    """The types of indices, values and dense shape."""
    rank = leaf.shape.ndims
    return [structure.TensorLeaf(dtypes.int64, [None, rank]), structure.TensorLeaf(leaf.dtype, [None]),
            structure.TensorLeaf(dtypes.int64, [rank])]


def _array(value, leaf):
    """A part of an element as an array of the promised type and shape."""
    try:
        if leaf.dtype == dtypes.string:
            array = np.array(value, dtype=object)
        else:
            array = np.asarray(value)
            if array.dtype != leaf.dtype.as_numpy_dtype:
                if not np.can_cast(array.dtype, leaf.dtype.as_numpy_dtype, "same_kind"):
                    raise TypeError(str(array.dtype))
                array = array.astype(leaf.dtype.as_numpy_dtype)
    except (TypeError, ValueError) as e:
        raise TypeError("`generator` yielded an element that could not be converted to the expected type. The expected type was "
                        "%s, but the yielded element was %s." % (leaf.dtype.name, value)) from e
    if not leaf.shape.is_compatible_with(array.shape):
        raise ValueError("`generator` yielded an element of shape %s where an element of shape %s was expected." % (
            array.shape, leaf.shape))
    return array


def _values(leaves, tensors):
    """The values of an element from the tensors of its arrays."""
    found = []
    for leaf in leaves:
        if isinstance(leaf, structure.SparseLeaf):
            value = sparse_tensor.SparseTensor(next(tensors), next(tensors), next(tensors))
            value._static_shape = leaf.shape
            found.append(value)
        else:
            found.append(next(tensors))
    return found


def make(generator, element, args, name):
    """(the variant of the dataset, the type of its elements)"""
    if not callable(generator):
        raise TypeError("`generator` must be a Python callable.")
    running = _Generators(generator, element)
    given = [ops.convert_to_tensor(a) for a in args or ()]
    number = structure.TensorLeaf(dtypes.int64, [])
    leaves = nest.flatten(element)

    def start(_):
        found = script_ops.numpy_function(running.start, given, dtypes.int64)
        found.set_shape([])
        return found

    def following(state):
        arrays = [part for leaf in leaves for part in (_sparse_parts(leaf) if isinstance(leaf, structure.SparseLeaf) else [leaf])]
        made = script_ops.numpy_function(running.next, [state], [part.dtype for part in arrays])
        for tensor, part in zip(made, arrays):
            tensor.set_shape(part.shape)
        return nest.pack_sequence_as(element, _values(leaves, iter(made)))

    def finish(state):
        found = script_ops.numpy_function(running.finish, [state], dtypes.int64)
        found.set_shape([])
        return found

    functions = [StructuredFunction(f, "from_generator", number) for f in (start, following, finish)]
    first = ops.convert_to_tensor(0, dtype=dtypes.int64)
    op = ops.apply_op(
        "GeneratorDataset", name,
        [[first] + functions[0].captured, functions[1].captured, functions[2].captured],
        {"init_func": functions[0].attr, "next_func": functions[1].attr, "finalize_func": functions[2].attr,
         "output_types": structure.flat_types(element), "output_shapes": structure.flat_shapes(element)})
    return op.outputs[0], element
