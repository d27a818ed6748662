"""The types of dataset elements."""

from ferroflow.python.framework import dtypes, ops, sparse_tensor, tensor_shape, tensor_spec
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

    to_rows = to_tensor

    def from_tensor(self, tensor):
        tensor.set_shape(self.shape)
        return tensor

    spec = property(lambda self: tensor_spec.TensorSpec(self.shape, self.dtype))

    types = property(lambda self: self.dtype)
    shapes = property(lambda self: self.shape)
    classes = property(lambda self: ops.Tensor)
    # What the op's attributes say.
    flat_type = property(lambda self: self.dtype)
    flat_shape = property(lambda self: self.shape)

    def batched(self, size):
        return type(self)(self.dtype, tensor_shape.TensorShape([size]).concatenate(self.shape))

    def unbatched(self):
        return type(self)(self.dtype, self.shape[1:] if self.shape.ndims is not None else None)

    def merged(self, other):
        """The type that both are."""
        if self.dtype != other.dtype or type(self) is not type(other):
            raise TypeError(f"Incompatible types of elements: {self.dtype} and {other.dtype}")
        if self.shape.ndims is None or self.shape.ndims != other.shape.ndims:
            return type(self)(self.dtype, None)
        pairs = zip(self.shape.as_list(), other.shape.as_list())
        return type(self)(self.dtype, [a if a == b else None for a, b in pairs])


class SparseLeaf(TensorLeaf):
    """A sparse tensor in an element. Datasets hold it as a variant."""

    def to_tensor(self, value):
        return self._serialized("SerializeSparse", value)

    def to_rows(self, value):
        """A variant for each row."""
        return self._serialized("SerializeManySparse", value)

    @staticmethod
    def _serialized(op, value):
        parts = [value.indices, value.values, value.dense_shape]
        return ops.apply_op(op, None, parts, {"out_type": dtypes.variant}).outputs[0]

    def from_tensor(self, tensor):
        found = ops.apply_op("DeserializeSparse", None, [tensor], {"dtype": self.dtype}).outputs
        rank = self.shape.ndims
        found[0].set_shape([None, rank])
        found[1].set_shape([None])
        found[2].set_shape([rank])
        value = sparse_tensor.SparseTensor(*found)
        value._static_shape = self.shape
        return value

    spec = property(lambda self: tensor_spec.SparseTensorSpec(self.shape, self.dtype))
    classes = property(lambda self: sparse_tensor.SparseTensor)
    flat_type = property(lambda self: dtypes.variant)
    flat_shape = property(lambda self: tensor_shape.unknown_shape())


class DatasetLeaf:
    """A dataset in an element."""

    def __init__(self, element):
        self.element = element

    def to_tensor(self, value):
        return value._variant_tensor

    def from_tensor(self, tensor):
        from ferroflow.python.data.ops import dataset_ops

        return dataset_ops._VariantDataset(tensor, self.element)

    spec = property(lambda self: self)
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
        return SparseLeaf(value.dtype.base_dtype, value.get_shape())
    return TensorLeaf(value.dtype.base_dtype, value.get_shape())


def convert(element, name="component"):
    """An element with tensors at its leaves."""
    from ferroflow.python.data.ops import dataset_ops

    flat = []
    for i, value in enumerate(nest.flatten(element)):
        if isinstance(value, (dataset_ops.DatasetV2, sparse_tensor.SparseTensor)):
            flat.append(value)
        elif isinstance(value, sparse_tensor.SparseTensorValue):
            flat.append(sparse_tensor.SparseTensor.from_value(value))
        else:
            flat.append(ops.convert_to_tensor(value, name="%s_%d" % (name, i)))
    return nest.pack_sequence_as(element, flat)


def of_value(element):
    return nest.map_structure(leaf_of, element)


def of_types_and_shapes(types, shapes=None, classes=None):
    """The type of elements as the functions of TensorFlow 1 give it: parts of one structure."""
    flat_types = nest.flatten(types)

    def parts(given):
        if given is None:
            return [None] * len(flat_types)
        return nest.flatten_up_to(types, given) if nest.is_nested(types) else [given]

    leaves = []
    for t, s, c in zip(flat_types, parts(shapes), parts(classes)):
        kind = SparseLeaf if c is sparse_tensor.SparseTensor else TensorLeaf
        leaves.append(t if isinstance(t, DatasetLeaf) else kind(t, tensor_shape.as_shape(s)))
    return nest.pack_sequence_as(types, leaves)


def of_specs(signature):
    """The type of elements from a structure of `TensorSpec` and `SparseTensorSpec`."""
    leaves = []
    for spec in nest.flatten(signature):
        if not isinstance(spec, tensor_spec.TypeSpec):
            raise TypeError(f"`output_signature` must contain objects that are subclass of `tf.TypeSpec` but found {type(spec)} "
                            "which is not.")
        kind = SparseLeaf if isinstance(spec, tensor_spec.SparseTensorSpec) else TensorLeaf
        leaves.append(kind(spec.dtype, spec.shape))
    return nest.pack_sequence_as(signature, leaves)


def flat_types(element):
    return [leaf.flat_type for leaf in nest.flatten(element)]


def flat_shapes(element):
    return [leaf.flat_shape for leaf in nest.flatten(element)]


def to_tensors(element, value):
    return [leaf.to_tensor(v) for leaf, v in zip(nest.flatten(element), nest.flatten_up_to(element, value))]


def to_rows(element, value):
    """The tensors of a value whose rows are elements."""
    return [leaf.to_rows(v) for leaf, v in zip(nest.flatten(element), nest.flatten_up_to(element, value))]


def has_sparse(element):
    return any(isinstance(leaf, SparseLeaf) for leaf in nest.flatten(element))


def from_tensors(element, tensors):
    return nest.pack_sequence_as(element, [leaf.from_tensor(t) for leaf, t in zip(nest.flatten(element), tensors)])
