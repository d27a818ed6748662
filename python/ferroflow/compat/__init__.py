"""`tf.compat`: version 1 of the API, and helpers for text, which are loaded when they are used."""

_HELPERS = (
    "as_bytes", "as_str", "as_str_any", "as_text", "bytes_or_text_types", "complex_types", "integral_types", "path_to_str",
    "real_types",
)


def __getattr__(name):
    if name not in _HELPERS:
        raise AttributeError(f"module 'ferroflow.compat' has no attribute {name!r}")
    from ferroflow.python.util import compat

    return getattr(compat, name)


def __dir__():
    return sorted({*globals(), *_HELPERS})
