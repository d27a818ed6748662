"""What programs take from TensorFlow's `layers/utils.py`."""

from ferroflow.python.framework import ops
from ferroflow.python.ops import cond


def smart_cond(pred, true_fn=None, false_fn=None, name=None):
    """A conditional; if the predicate is known, only one branch is built."""
    return cond.smart_cond(pred, true_fn, false_fn, name)


def constant_value(pred):
    """The value of a predicate, or None if only a step knows it."""
    return cond.smart_constant_value(pred if isinstance(pred, ops.Tensor) else bool(pred))


def normalize_tuple(value, n, name):
    """An integer or `n` integers as a tuple of `n`."""
    if isinstance(value, int):
        return (value,) * n
    try:
        values = tuple(value)
    except TypeError:
        values = ()
    if len(values) != n or not all(isinstance(v, int) for v in values):
        raise ValueError(f"The `{name}` argument must be a tuple of {n} integers. Received: {value}")
    return values


def normalize_data_format(value):
    data_format = value.lower()
    if data_format not in ("channels_first", "channels_last"):
        raise ValueError(f'The `data_format` argument must be one of "channels_first", "channels_last". Received: {value}')
    return data_format


def normalize_padding(value):
    padding = value.lower()
    if padding not in ("valid", "same"):
        raise ValueError(f'The `padding` argument must be one of "valid", "same". Received: {padding}')
    return padding


def convert_data_format(data_format, ndim):
    """The op's name of a layout: `channels_last` of 4 dimensions is NHWC."""
    spatial = {3: "W", 4: "HW", 5: "DHW"}.get(ndim)
    if spatial is None:
        raise ValueError(f"Input rank not supported: {ndim}")
    if data_format == "channels_last":
        return "N" + spatial + "C"
    if data_format == "channels_first":
        return "NC" + spatial
    raise ValueError(f"Invalid data_format: {data_format}")


def conv_output_length(input_length, filter_size, padding, stride, dilation=1):
    """The size of a dimension after a convolution."""
    if input_length is None:
        return None
    if padding not in ("same", "valid", "full"):
        raise ValueError(f"Invalid padding: {padding}")
    dilated = filter_size + (filter_size - 1) * (dilation - 1)
    length = input_length + {"same": 0, "valid": 1 - dilated, "full": dilated - 1}[padding]
    return (length + stride - 1) // stride


def deconv_output_length(input_length, filter_size, padding, stride):
    """The size of a dimension after a transposed convolution."""
    if input_length is None:
        return None
    length = input_length * stride
    if padding == "valid":
        return length + max(filter_size - stride, 0)
    return length - (stride + filter_size - 2) if padding == "full" else length
