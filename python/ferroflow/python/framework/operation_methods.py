"""The methods of `Operation` that are written in Python."""

from ferroflow import _ferroflow
from ferroflow.core._messages import message_class
from ferroflow.python.framework import device as pydev
from ferroflow.python.framework import dtypes, ops

Operation = _ferroflow.Operation


def _message(name, data):
    return message_class(name)._trusted(bytes(data))


def _value(value):
    """Tensors, shapes and functions come from Rust as the name of a message and its bytes."""
    if isinstance(value, tuple):
        name, data = value
        return message_class("tensorflow." + name)._trusted(data)
    if isinstance(value, list):
        return [_value(item) for item in value]
    return value


class _InputList(tuple):
    """The inputs of an operation. They can be added to lists, as in TensorFlow."""

    __slots__ = ()

    def __add__(self, other):
        return list(self) + list(other)

    def __radd__(self, other):
        return list(other) + list(self)

    def __repr__(self):
        return repr(list(self))


def inputs(self):
    return _InputList(self._inputs)


def _input_types(self):
    return [dtypes.as_dtype(number) for number in self._input_numbers]


def node_def(self):
    return _message("tensorflow.NodeDef", self._node_def())


def op_def(self):
    return _message("tensorflow.OpDef", self._op_def())


def get_attr(self, name):
    return _value(self._attr(name))


def _set_attr(self, name, value):
    self._set_attr_value(name, value)


def _get_attr_type(self, name):
    return self._attr(name)


def colocation_groups(self):
    own = [b"loc:@" + self.name.encode("utf-8")]
    if not self._has_attr("_class"):
        return own
    groups = [g for g in self._attr("_class") if g.startswith(b"loc:@")]
    return groups or own


def _set_device(self, device):
    if device is None:
        device = ""
    self._set_device_from_string(device if isinstance(device, str) else pydev.as_spec(device).to_string())


def _add_control_input(self, op):
    self._add_control_inputs([op])


def _get_control_flow_context(self):
    return self.__dict__.get("_control_flow_context_value")


def _set_control_flow_context(self, context):
    self._control_flow_context_value = context


def run(self, feed_dict=None, session=None):
    ops._run_using_default_session(self, feed_dict, self.graph, session)


def traceback(self):
    at = self._made_at
    return [] if at is None else [(at[0], at[1], at[2], _source_line(at[0], at[1]))]


def _source_line(file, line):
    import linecache

    return linecache.getline(file, line).strip()


def values(self):
    return tuple(self.outputs)


def node_def_text(self):
    return str(self.node_def)


def _original_op(self):
    return self.__dict__.get("_original_op_value")


def _set_original_op(self, op):
    self._original_op_value = op


Operation.inputs = property(inputs)
Operation._input_types = property(_input_types)
Operation._output_types = property(lambda self: [t.dtype for t in self.outputs])
Operation.node_def = property(node_def)
Operation.op_def = property(op_def)
Operation.traceback = property(traceback)
Operation._control_outputs_list = property(lambda self: self._control_outputs)
Operation._id_value = property(lambda self: self._id)
Operation._original_op = property(_original_op, _set_original_op)
Operation._control_flow_context = property(_get_control_flow_context, _set_control_flow_context)
Operation.get_attr = get_attr
Operation._get_attr_type = _get_attr_type
Operation._set_attr = _set_attr
Operation.colocation_groups = colocation_groups
Operation._set_device = _set_device
Operation._add_control_input = _add_control_input
Operation._get_control_flow_context = _get_control_flow_context
Operation._set_control_flow_context = _set_control_flow_context
Operation.run = run
Operation.values = values
Operation.__str__ = node_def_text
