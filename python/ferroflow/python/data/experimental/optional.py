"""`tf.data.experimental.Optional`: the next element, or none at the end."""

from ferroflow.python.data.util import structure
from ferroflow.python.framework import ops


class Optional:
    """A value that may be missing."""

    def __init__(self, variant, element):
        self._variant_tensor, self._element = variant, element

    @staticmethod
    def from_value(value):
        value = structure.convert(value)
        element = structure.of_value(value)
        made = ops.apply_op("OptionalFromValue", None, [structure.to_tensors(element, value)])
        return Optional(made.outputs[0], element)

    @staticmethod
    def empty(element_spec):
        return Optional(ops.apply_op("OptionalNone", None, []).outputs[0], structure.of_specs(element_spec))

    none_from_structure = empty

    @property
    def element_spec(self):
        from ferroflow.python.data.util import nest

        return nest.map_structure(lambda leaf: leaf.spec, self._element)

    value_structure = element_spec

    def has_value(self, name=None):
        return ops.apply_op("OptionalHasValue", name, [self._variant_tensor]).outputs[0]

    def get_value(self, name=None):
        attrs = {"output_types": structure.flat_types(self._element), "output_shapes": structure.flat_shapes(self._element)}
        with ops.name_scope(name, "OptionalGetValue", [self._variant_tensor]) as scope:
            outputs = ops.apply_op("OptionalGetValue", scope, [self._variant_tensor], attrs).outputs
        return structure.from_tensors(self._element, outputs)


def get_next_as_optional(iterator):
    """The next element of an iterator, or none when there is no more."""
    element = iterator._element
    attrs = {"output_types": structure.flat_types(element), "output_shapes": structure.flat_shapes(element)}
    with ops.colocate_with(iterator._iterator_resource):
        made = ops.apply_op("IteratorGetNextAsOptional", None, [iterator._iterator_resource], attrs)
    return Optional(made.outputs[0], element)
