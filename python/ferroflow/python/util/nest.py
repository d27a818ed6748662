"""Nested structures: lists, tuples, named tuples and dicts with values at the leaves.

With `expand_composites` the parts of SparseTensor and IndexedSlices count as leaves.
"""

import collections.abc


def _is_namedtuple(value):
    return isinstance(value, tuple) and hasattr(value, "_fields")


def is_nested(value):
    """Whether `value` is a structure and not a leaf."""
    return isinstance(value, (list, tuple, dict)) or (
        isinstance(value, (collections.abc.Mapping, collections.abc.MappingView)))


is_sequence = is_nested
is_nested_or_composite = is_nested


def _composite_parts(value):
    """The tensors that a composite value consists of, or None."""
    from ferroflow.python.framework import indexed_slices
    from ferroflow.python.framework import sparse_tensor
    if isinstance(value, sparse_tensor.SparseTensor):
        return [value.indices, value.values, value.dense_shape]
    if isinstance(value, indexed_slices.IndexedSlices):
        parts = [value.values, value.indices]
        return parts if value.dense_shape is None else parts + [value.dense_shape]
    return None


def _composite_like(value, parts):
    from ferroflow.python.framework import indexed_slices
    from ferroflow.python.framework import sparse_tensor
    if isinstance(value, sparse_tensor.SparseTensor):
        return sparse_tensor.SparseTensor(*parts)
    return indexed_slices.IndexedSlices(*parts)


def _children(value, expand):
    """The parts of a structure, in order; None of a leaf."""
    if isinstance(value, collections.abc.Mapping):
        return [value[k] for k in _sorted_keys(value)]
    if isinstance(value, (list, tuple, collections.abc.MappingView)):
        return list(value)
    return _composite_parts(value) if expand else None


def _sorted_keys(mapping):
    try:
        return sorted(mapping)
    except TypeError:
        raise TypeError("nest only supports dicts with sortable keys.") from None


def _rebuild(value, parts):
    """A structure like `value` with other parts."""
    if isinstance(value, collections.abc.Mapping):
        by_key = dict(zip(_sorted_keys(value), parts))
        result = type(value)() if not isinstance(value, collections.defaultdict) else (
            collections.defaultdict(value.default_factory))
        for key in value:
            result[key] = by_key[key]
        return result
    if _is_namedtuple(value):
        return type(value)(*parts)
    if isinstance(value, tuple):
        return tuple(parts) if type(value) is tuple else type(value)(parts)
    if isinstance(value, (list, collections.abc.MappingView)):
        return list(parts)
    return _composite_like(value, parts)


def flatten(structure, expand_composites=False):
    """The leaves, in order; dicts by their sorted keys."""
    children = _children(structure, expand_composites)
    if children is None:
        return [structure]
    flat = []
    for child in children:
        flat.extend(flatten(child, expand_composites))
    return flat


def pack_sequence_as(structure, flat_sequence, expand_composites=False):
    """A structure like `structure` with the leaves `flat_sequence`."""
    flat_sequence = list(flat_sequence)
    count = len(flatten(structure, expand_composites))
    if not is_nested(structure) and not (expand_composites and _composite_parts(structure)):
        if len(flat_sequence) != 1:
            raise ValueError("The target structure is of type `%s`, which is a scalar; but the "
                             "input has %d elements." % (type(structure), len(flat_sequence)))
        return flat_sequence[0]
    if count != len(flat_sequence):
        raise ValueError("Could not pack sequence. Structure had %d atoms, but flat_sequence had "
                         "%d items." % (count, len(flat_sequence)))
    leaves = iter(flat_sequence)

    def build(part):
        children = _children(part, expand_composites)
        if children is None:
            return next(leaves)
        return _rebuild(part, [build(c) for c in children])
    return build(structure)


def map_structure(func, *structures, **kwargs):
    """Applies `func` to the leaves of structures of the same shape."""
    check_types = kwargs.pop("check_types", True)
    expand = kwargs.pop("expand_composites", False)
    if kwargs:
        raise ValueError("Only valid keyword arguments are `check_types` and "
                         "`expand_composites`, not: `%s`" % "`, `".join(kwargs))
    if not callable(func):
        raise TypeError("func must be callable, got: %s" % func)
    if not structures:
        raise ValueError("Must provide at least one structure")
    for other in structures[1:]:
        assert_same_structure(structures[0], other, check_types, expand)
    flat = [flatten(s, expand) for s in structures]
    return pack_sequence_as(structures[0], [func(*x) for x in zip(*flat)], expand)


def _described(structure):
    return "type=%s str=%s" % (type(structure).__name__, structure)


def assert_same_structure(nest1, nest2, check_types=True, expand_composites=False):
    """Raises if the two structures differ."""
    try:
        _assert_same_structure(nest1, nest2, check_types, expand_composites)
    except (TypeError, ValueError) as e:
        raise type(e)("The two structures don't have the same nested structure.\n\nFirst structure: %s\n\nSecond "
                      "structure: %s\n\nMore specifically: %s" % (_described(nest1), _described(nest2), e)) from None


def _assert_same_structure(nest1, nest2, check_types, expand_composites):
    first = _children(nest1, expand_composites)
    second = _children(nest2, expand_composites)
    if (first is None) != (second is None):
        one, other = (nest1, nest2) if second is None else (nest2, nest1)
        raise ValueError('Substructure "%s" is a sequence, while substructure "%s" is not' % (
            _described(one), _described(other)))
    if first is None:
        return
    if len(first) != len(second):
        raise ValueError("The two structures don't have the same number of elements. First structure: %s. Second "
                         "structure: %s" % (_described(nest1), _described(nest2)))
    if check_types and type(nest1) is not type(nest2) and not (
            _is_namedtuple(nest1) and _is_namedtuple(nest2)
            and type(nest1).__name__ == type(nest2).__name__) and not (
                isinstance(nest1, collections.abc.Mapping)
                and isinstance(nest2, collections.abc.Mapping)):
        raise TypeError("The two structures don't have the same sequence type. First structure "
                        "has type %s, while second structure has type %s." % (
                            type(nest1), type(nest2)))
    for one, two in zip(first, second):
        _assert_same_structure(one, two, check_types, expand_composites)


def flatten_up_to(shallow_tree, input_tree, check_types=True, expand_composites=False):
    """The parts of `input_tree` at the leaves of `shallow_tree`."""
    children = _children(shallow_tree, expand_composites)
    if children is None:
        return [input_tree]
    others = _children(input_tree, expand_composites)
    if others is None or len(others) != len(children):
        raise ValueError("The two structures don't have the same sequence length.")
    flat = []
    for one, other in zip(children, others):
        flat.extend(flatten_up_to(one, other, check_types, expand_composites))
    return flat


def map_structure_up_to(shallow_tree, func, *inputs, **kwargs):
    """Applies `func` to the parts of `inputs` at the leaves of `shallow_tree`."""
    expand = kwargs.get("expand_composites", False)
    flat = [flatten_up_to(shallow_tree, x, expand_composites=expand) for x in inputs]
    return pack_sequence_as(shallow_tree, [func(*x) for x in zip(*flat)], expand)


def assert_shallow_structure(shallow_tree, input_tree, check_types=True, expand_composites=False):
    flatten_up_to(shallow_tree, input_tree, check_types, expand_composites)


def yield_flattened_up_to(shallow_tree, input_tree):
    yield from flatten_up_to(shallow_tree, input_tree)
