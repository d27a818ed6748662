"""A hashable reference to an object, compared by identity."""


class Reference:
    """What `tensor.ref()` and `variable.ref()` return."""

    __slots__ = ("_wrapped",)

    def __init__(self, wrapped):
        self._wrapped = wrapped

    def deref(self):
        return self._wrapped

    def __hash__(self):
        return id(self._wrapped)

    def __eq__(self, other):
        return isinstance(other, Reference) and self._wrapped is other._wrapped

    def __repr__(self):
        return "<Reference wrapping %r>" % (self._wrapped,)
