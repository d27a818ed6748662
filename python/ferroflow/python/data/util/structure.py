"""The types of dataset elements."""

from ferroflow.python.framework import dtypes, ops, sparse_tensor, tensor_shape
from ferroflow.python.data.util import nest


class Typed:
    """Something with elements of the structure `self._element`: a dataset or an iterator."""

    output_types = property(lambda self: nest.map_structure(lambda leaf: leaf.types, self._element))
    output_shapes = property(lambda self: nest.map_structure(lambda leaf: leaf.shapes, self._element))
    output_classes = property(lambda self: nest.map_structure(lambda leaf: leaf.classes, self._element))


class TensorLeaf:
    """A tensor in an element."""

    def __init__(self, dtype, shape):
        self.dtype, self.shape = dtypes.as_dtype(dtype), tensor_shape.as_shape(shape)

    def to_tensor(self, value):
        return ops.convert_to_tensor(value, self.dtype if not isinstance(value, ops.Tensor) else None)

    def from_tensor(self, tensor):
        tensor.set_shape(self.shape)
        return tensor

    types = property(lambda self: self.dtype)
    shapes = property(lambda self: self.shape)
    classes = property(lambda self: ops.Tensor)
    # What the op's attributes say.
    flat_type = property(lambda self: self.dtype)
    flat_shape = property(lambda self: self.shape)

    def batched(self, size):
        return TensorLeaf(self.dtype, tensor_shape.TensorShape([size]).concatenate(self.shape))

    def unbatched(self):
        return TensorLeaf(self.dtype, self.shape[1:] if self.shape.ndims is not None else None)

    def merged(self, other):
        """The type that both are."""
        if self.dtype != other.dtype:
            raise TypeError(f"Incompatible types of elements: {self.dtype} and {other.dtype}")
        if self.shape.ndims is None or self.shape.ndims != other.shape.ndims:
            return TensorLeaf(self.dtype, None)
        pairs = zip(self.shape.as_list(), other.shape.as_list())
        return TensorLeaf(self.dtype, [a if a == b else None for a, b in pairs])


class DatasetLeaf:
    """A dataset in an element."""

    def __init__(self, element):
        self.element = element

    def to_tensor(self, value):
        return value._variant_tensor

    def from_tensor(self, tensor):
        from ferroflow.python.data.ops import dataset_ops

        return dataset_ops._VariantDataset(tensor, self.element)

    types = property(lambda self: self)
    shapes = property(lambda self: tensor_shape.TensorShape([]))
    classes = property(lambda self: type(self))
    flat_type = property(lambda self: dtypes.variant)
    flat_shape = property(lambda self: tensor_shape.TensorShape([]))

    def batched(self, size):
        raise TypeError("Nested datasets cannot be batched; use flat_map to unpack them first")

    unbatched = batched

    def merged(self, other):
        return self


def leaf_of(value):
    """The type of a value."""
    from ferroflow.python.data.ops import dataset_ops

    if isinstance(value, dataset_ops.DatasetV2):
        return DatasetLeaf(value._element)
    if isinstance(value, sparse_tensor.SparseTensor):
        raise NotImplementedError("SparseTensors in datasets are not supported; put their components in the element")
    return TensorLeaf(value.dtype.base_dtype, value.get_shape())


def convert(element, name="component"):
    """An element with tensors at its leaves."""
    from ferroflow.python.data.ops import dataset_ops

    flat = []
    for i, value in enumerate(nest.flatten(element)):
        if isinstance(value, (dataset_ops.DatasetV2, sparse_tensor.SparseTensor)):
            flat.append(value)
        else:
            flat.append(ops.convert_to_tensor(value, name="%s_%d" % (name, i)))
    return nest.pack_sequence_as(element, flat)


def of_value(element):
    return nest.map_structure(leaf_of, element)


def of_types_and_shapes(types, shapes=None):
    flat_types = nest.flatten(types)
    if shapes is None:
        flat_shapes = [None] * len(flat_types)
    else:
        flat_shapes = nest.flatten_up_to(types, shapes) if nest.is_nested(types) else [shapes]
    leaves = [t if isinstance(t, DatasetLeaf) else TensorLeaf(t, tensor_shape.as_shape(s)) for t, s in zip(flat_types, flat_shapes)]
    return nest.pack_sequence_as(types, leaves)


def flat_types(element):
    return [leaf.flat_type for leaf in nest.flatten(element)]


def flat_shapes(element):
    return [leaf.flat_shape for leaf in nest.flatten(element)]


def to_tensors(element, value):
    return [leaf.to_tensor(v) for leaf, v in zip(nest.flatten(element), nest.flatten_up_to(element, value))]


def from_tensors(element, tensors):
    return nest.pack_sequence_as(element, [leaf.from_tensor(t) for leaf, t in zip(nest.flatten(element), tensors)])
