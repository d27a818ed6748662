"""Ops that print while a step runs."""

import sys

from ferroflow.python.framework import ops
from ferroflow.python.framework import tensor_util
from ferroflow.python.ops import gen_ops
from ferroflow.python.util import nest
from ferroflow.python.util.api import export


@export("Print")
def Print(input_, data, message=None, first_n=None, summarize=None, name=None):  # pylint: disable=invalid-name
    """Returns `input_`; prints `data` to standard error when it is computed."""
    return gen_ops.Print(input_, data, message=message or "", first_n=-1 if first_n is None else first_n,
                         summarize=3 if summarize is None else summarize, name=name)


_STREAMS = {"log_info": "log(info)", "log_warning": "log(warning)", "log_error": "log(error)"}


def _stream_name(stream):
    if stream is None or stream is sys.stderr:
        return "stderr"
    if stream is sys.stdout:
        return "stdout"
    if isinstance(stream, str) and stream.startswith("file://"):
        return stream
    for name, text in _STREAMS.items():
        if stream is text or getattr(stream, "__name__", None) in (name, name[4:]):
            return text
    raise ValueError("Unsupported output stream, logging level, or file: %s" % stream)


def _template(value):
    """The text of a structure with a `{}` for each tensor, and those tensors."""
    if isinstance(value, dict):
        parts = [(repr(k), _template(value[k])) for k in sorted(value)]
        text = "{" + ", ".join("%s: %s" % (k, t) for k, (t, _) in parts) + "}"
        return text, [x for _, (_, found) in parts for x in found]
    if isinstance(value, (list, tuple)):
        parts = [_template(v) for v in value]
        inside = ", ".join(text for text, _ in parts)
        text = "[%s]" % inside if isinstance(value, list) else "(%s)" % inside
        return text, [x for _, found in parts for x in found]
    if tensor_util.is_tensor(value) or hasattr(value, "_as_graph_element"):
        return "{}", [ops.convert_to_tensor(value)]
    return str(value), []


@export("print")
def print_v2(*inputs, **kwargs):
    """An operation that prints values to a stream when it runs."""
    stream = _stream_name(kwargs.pop("output_stream", None))
    name, summarize = kwargs.pop("name", None), kwargs.pop("summarize", 3)
    sep, end = kwargs.pop("sep", " "), kwargs.pop("end", "\n")
    if kwargs:
        raise ValueError("Unrecognized keyword arguments for tf.print: %s" % kwargs)
    summarize = -1 if summarize is None else summarize
    with ops.name_scope(name, "print", nest.flatten(inputs)):
        if len(inputs) == 1 and tensor_util.is_tensor(inputs[0]) and inputs[0].dtype.name == "string" and (
                inputs[0].get_shape().ndims == 0):
            text = inputs[0]
        else:
            parts = [_template(x) for x in inputs]
            tensors = [x for _, found in parts for x in found]
            text = gen_ops.StringFormat(tensors, template=sep.join(t for t, _ in parts),
                                        placeholder="{}", summarize=summarize)
        return gen_ops.PrintV2(text, output_stream=stream, end=end)


@export("strings.format")
def string_format(template, inputs, placeholder="{}", summarize=3, name=None):
    """A template with tensors in place of its placeholders."""
    inputs = list(inputs) if isinstance(inputs, (list, tuple)) else [inputs]
    if template.count(placeholder) != len(inputs):
        raise ValueError("The template expects %d tensors, but the inputs only has %d. Please ensure the "
                         "number of placeholders in template matches inputs length." % (
                             template.count(placeholder), len(inputs)))
    return gen_ops.StringFormat(inputs, template=template, placeholder=placeholder, summarize=summarize, name=name)
