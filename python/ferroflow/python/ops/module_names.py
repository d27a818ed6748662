"""Names that a module has in TensorFlow and that this package defines elsewhere.

Programs import modules such as `math_ops` and expect in them what `tf` has under the same name.
"""

_PLACES = ("", "nn", "math", "linalg", "image", "strings", "random", "io")


def fallback(module):
    """The `__getattr__` of a module: what `tf`, or a part of it such as `tf.nn`, has."""
    def find(name):
        if not name.startswith("_"):
            from ferroflow.compat import v1
            for place in _PLACES:
                try:
                    return getattr(getattr(v1, place) if place else v1, name)
                except AttributeError:
                    continue
        raise AttributeError("module '%s' has no attribute '%s'" % (module, name))
    return find
