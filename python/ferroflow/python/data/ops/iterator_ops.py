"""Iterators of datasets."""

import hashlib

from ferroflow.python.data.util import structure
from ferroflow.python.framework import dtypes, func_graph, ops, tensor_shape

# The collection of all iterators of a graph.
GLOBAL_ITERATORS = "iterators"


def _attrs(element, **more):
    return dict(more, output_types=structure.flat_types(element), output_shapes=structure.flat_shapes(element))


def one_shot(dataset):
    """An iterator whose dataset is a function, so that it needs no initializer."""
    graph = ops.get_default_graph()
    variant = dataset._variant_tensor
    digest = hashlib.sha1(("%s/%d" % (variant.name, ops.uid())).encode()).hexdigest()[:11]
    name = "_make_dataset_%s" % digest
    try:
        definition = func_graph.copy_subgraph(variant, name)
    except ValueError as e:
        raise ValueError(
            f"Failed to create a one-shot iterator for a dataset. `Dataset.make_initializable_iterator()` may be more appropriate: {e}"
        ) from None
    graph._add_function_def(definition, None)
    with ops.colocate_with(variant):
        resource = ops.apply_op(
            "OneShotIterator", None, [], _attrs(dataset._element, dataset_factory=(name, {}), container="", shared_name="")
        ).outputs[0]
        return Iterator(resource, None, dataset._element)


def initializable(dataset, shared_name=None):
    variant = dataset._variant_tensor
    with ops.colocate_with(variant):
        attrs = _attrs(dataset._element, container="", shared_name=shared_name or "")
        resource = ops.apply_op("IteratorV2", None, [], attrs).outputs[0]
        initializer = ops.apply_op("MakeIterator", None, [variant, resource])
        return Iterator(resource, initializer, dataset._element)


class Iterator(structure.Typed):
    """Gives the next element of a dataset in each step."""

    def __init__(self, iterator_resource, initializer, element):
        self._iterator_resource, self._initializer, self._element = iterator_resource, initializer, element
        self._string_handle = ops.apply_op("IteratorToStringHandle", None, [iterator_resource]).outputs[0]
        self._get_next_call_count = 0
        ops.add_to_collection(GLOBAL_ITERATORS, iterator_resource)

    @staticmethod
    def from_structure(output_types, output_shapes=None, shared_name=None, output_classes=None):
        """An iterator without a dataset; `make_initializer` gives it one."""
        element = structure.of_types_and_shapes(output_types, output_shapes, output_classes)
        resource = ops.apply_op("IteratorV2", None, [], _attrs(element, container="", shared_name=shared_name or "")).outputs[0]
        return Iterator(resource, None, element)

    @staticmethod
    def from_string_handle(string_handle, output_types, output_shapes=None, output_classes=None):
        """The iterator that a handle names when a step runs."""
        element = structure.of_types_and_shapes(output_types, output_shapes, output_classes)
        string_handle = ops.convert_to_tensor(string_handle, dtype=dtypes.string)
        resource = ops.apply_op("IteratorFromStringHandleV2", None, [string_handle], _attrs(element)).outputs[0]
        return Iterator(resource, None, element)

    @property
    def initializer(self):
        if self._initializer is None:
            raise ValueError("The iterator does not have an initializer. This means it was likely created using `tf.data.Dataset.make_one_shot_iterator()`. For an initializable iterator, use `tf.data.Dataset.make_initializable_iterator()` instead.")
        return self._initializer

    def make_initializer(self, dataset, name=None):
        """An operation that makes the iterator pass a dataset from its beginning."""
        mine, other = structure.flat_types(self._element), structure.flat_types(dataset._element)
        if mine != other:
            raise TypeError(f"Expected output types {mine} but got dataset with output types {other}.")
        for a, b in zip(structure.flat_shapes(self._element), structure.flat_shapes(dataset._element)):
            if not _covers(a, b):
                raise TypeError(f"Expected output shapes compatible with {a} but got dataset with output shapes {b}.")
        with ops.name_scope(name, "make_initializer") as scope:
            with ops.colocate_with(self._iterator_resource):
                return ops.apply_op("MakeIterator", scope, [dataset._variant_tensor, self._iterator_resource])

    def get_next(self, name=None):
        """The tensors of the next element. Each run of them takes an element."""
        self._get_next_call_count += 1
        with ops.colocate_with(self._iterator_resource):
            tensors = ops.apply_op("IteratorGetNext", name, [self._iterator_resource], _attrs(self._element)).outputs
            return structure.from_tensors(self._element, tensors)

    def get_next_as_optional(self):
        from ferroflow.python.data.experimental import optional

        return optional.get_next_as_optional(self)

    def string_handle(self, name=None):
        """A tensor with the handle for `from_string_handle`."""
        if name is None:
            return self._string_handle
        return ops.apply_op("IteratorToStringHandle", name, [self._iterator_resource]).outputs[0]


def _covers(general, special):
    """Whether each shape of `special` is one of `general`."""
    general, special = tensor_shape.as_shape(general), tensor_shape.as_shape(special)
    if general.ndims is None:
        return True
    if special.ndims is None or general.ndims != special.ndims:
        return False
    return all(a is None or a == b for a, b in zip(general.as_list(), special.as_list()))
