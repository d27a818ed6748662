"""Structures of dataset elements: tuples and dicts. A list is a tensor, not a structure."""


from ferroflow.python.framework import sparse_tensor


def _is_namedtuple(value):
    return isinstance(value, tuple) and hasattr(value, "_fields")


def is_nested(value):
    return isinstance(value, (tuple, dict)) and not isinstance(value, sparse_tensor.SparseTensorValue)


def flatten(structure):
    if isinstance(structure, dict):
        return [x for key in sorted(structure) for x in flatten(structure[key])]
    if isinstance(structure, tuple) and is_nested(structure):
        return [x for item in structure for x in flatten(item)]
    return [structure]


def _pack(structure, items):
    if isinstance(structure, dict):
        values = {key: _pack(structure[key], items) for key in sorted(structure)}
        return type(structure)((key, values[key]) for key in structure)
    if isinstance(structure, tuple) and is_nested(structure):
        parts = [_pack(item, items) for item in structure]
        return type(structure)(*parts) if _is_namedtuple(structure) else tuple(parts)
    return next(items)


def pack_sequence_as(structure, flat):
    flat = list(flat)
    if len(flat) != len(flatten(structure)):
        raise ValueError(f"the structure has {len(flatten(structure))} elements, not {len(flat)}")
    return _pack(structure, iter(flat))


def map_structure(func, *structures):
    flat = [flatten_up_to(structures[0], s) for s in structures]
    return pack_sequence_as(structures[0], [func(*items) for items in zip(*flat)])


def flatten_up_to(shallow, structure):
    """The parts of a structure at the leaves of another one."""
    if isinstance(shallow, dict):
        if not isinstance(structure, dict) or set(shallow) != set(structure):
            raise ValueError(f"structures differ: {shallow} and {structure}")
        return [x for key in sorted(shallow) for x in flatten_up_to(shallow[key], structure[key])]
    if isinstance(shallow, tuple):
        if not isinstance(structure, (tuple, list)) or len(shallow) != len(structure):
            raise ValueError(f"structures differ: {shallow} and {structure}")
        return [x for a, b in zip(shallow, structure) for x in flatten_up_to(a, b)]
    return [structure]


def assert_same_structure(a, b):
    flatten_up_to(a, b)
    flatten_up_to(b, a)
