"""`tf.compat`: version 1 of the API, and helpers for text."""

from ferroflow.python.util.compat import (  # noqa: F401
    as_bytes,
    as_str,
    as_str_any,
    as_text,
    bytes_or_text_types,
    complex_types,
    integral_types,
    path_to_str,
    real_types,
)
