"""Marks what the public `tf` names stand for.

    @export("reduce_sum", "math.reduce_sum")
    def reduce_sum(...): ...

`python/tools/api_names.py` finds these marks without importing anything, and writes the table from
which `ferroflow.compat.v1` loads a name when it is first used.
"""


def export(*names):
    """Declares the public names of a function, a class or a value."""
    assert all(isinstance(n, str) for n in names)

    def mark(symbol):
        return symbol
    return mark


def deprecated_alias(new_name, new_value, old_name, old_value):
    """The value of an argument that has an old and a new name."""
    if old_value is not None:
        if new_value is not None:
            raise ValueError("Cannot specify both '%s' and '%s'." % (old_name, new_name))
        return old_value
    return new_value
