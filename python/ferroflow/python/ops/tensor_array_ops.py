"""`tf.TensorArray`."""

import contextlib

from ferroflow.python.framework import dtypes
from ferroflow.python.framework import ops
from ferroflow.python.framework import tensor_shape
from ferroflow.python.framework import tensor_util
from ferroflow.python.ops import array_ops
from ferroflow.python.ops import gen_ops
from ferroflow.python.ops import math_ops
from ferroflow.python.util.api import export


def flow_of(value):
    """The flow tensor of a TensorArray, which loops carry; other values unchanged."""
    return value.flow if isinstance(value, TensorArray) else value


def with_flow(value, flow):
    """A TensorArray like `value` with another flow; `flow` itself for other values."""
    return value._with_flow(flow) if isinstance(value, TensorArray) else flow


def _check_dtype(value, dtype):
    if value.dtype != dtype:
        raise ValueError("Input value %s has dtype %s, but expected dtype %s. This leads to "
                         "undefined behavior and will be an error in future versions of "
                         "TensorFlow." % (value, value.dtype, dtype))


@export("TensorArray")
class TensorArray:
    """An array of tensors that loops write once and read."""

    def __init__(self, dtype, size=None, dynamic_size=None, clear_after_read=None,
                 tensor_array_name=None, handle=None, flow=None, infer_shape=True,
                 element_shape=None, colocate_with_first_write_call=True, name=None):
        if handle is not None:
            for value, what in ((tensor_array_name, "tensor_array_name"), (size, "size"),
                                (element_shape, "element_shape"),
                                (dynamic_size, "dynamic_size"),
                                (clear_after_read, "clear_after_read")):
                if value:
                    raise ValueError("Cannot provide both `handle` and `%s` arguments at the same "
                                     "time." % what)
            if flow is None:
                raise ValueError("flow must not be None if handle is not None.")
        elif size is None:
            raise ValueError("Argument `size` must be provided if handle is not provided.")
        self._dynamic_size = dynamic_size or False
        self._dtype = dtypes.as_dtype(dtype).base_dtype
        self._colocate_with = [] if colocate_with_first_write_call else None
        # Shared with the arrays of later flows, because a write sets the shape of all elements.
        self._element_shape = [tensor_shape.as_shape(element_shape)]
        self._infer_shape = infer_shape
        self._size = size
        if handle is not None:
            with ops.name_scope(name, "TensorArray", [handle, size, flow]):
                self._handle, self._flow = handle, flow
            return
        with ops.name_scope(name, "TensorArray", [handle, size, flow]) as scope, \
                contextlib.ExitStack() as stack:
            if colocate_with_first_write_call:
                stack.enter_context(ops.device(None))
                stack.enter_context(ops.colocate_with(None, ignore_existing=True))
            self._handle, self._flow = gen_ops.TensorArrayV3(
                dtype=dtype, size=size, element_shape=element_shape,
                identical_element_shapes=infer_shape, dynamic_size=self._dynamic_size,
                clear_after_read=True if clear_after_read is None else clear_after_read,
                tensor_array_name=tensor_array_name, name=scope)

    flow = property(lambda self: self._flow)
    dtype = property(lambda self: self._dtype)
    handle = property(lambda self: self._handle)
    element_shape = property(lambda self: self._element_shape[0])
    dynamic_size = property(lambda self: self._dynamic_size)

    def _with_flow(self, flow):
        other = TensorArray(dtype=self._dtype, handle=self._handle, flow=flow,
                            infer_shape=self._infer_shape,
                            colocate_with_first_write_call=self._colocate_with is not None)
        other._dynamic_size = self._dynamic_size
        other._size = self._size
        other._colocate_with = self._colocate_with
        other._element_shape = self._element_shape
        return other

    def _check_element_shape(self, shape):
        if not shape.is_compatible_with(self.element_shape):
            raise ValueError("Inconsistent shapes: saw %s but expected %s " % (
                shape, self.element_shape))
        if self._infer_shape:
            self._element_shape[0] = self.element_shape.merge_with(shape)

    @contextlib.contextmanager
    def _colocated(self, value):
        """Puts writes where the first value was written."""
        if self._colocate_with is None:
            yield
            return
        if not self._colocate_with:
            self._colocate_with.append(value)
        with ops.colocate_with(self._colocate_with[0]):
            yield

    def identity(self):
        return self._with_flow(array_ops.identity(self._flow))

    def grad(self, source, flow=None, name=None):
        if flow is None:
            flow = self.flow
        with ops.name_scope(name, "TensorArrayGrad", [self._handle]):
            with ops.colocate_with(self._handle):
                handle, _ = gen_ops.TensorArrayGradV3(
                    handle=self._handle, source=source, flow_in=flow, name=name)
                with ops.control_dependencies([handle]):
                    flow = array_ops.identity(flow, name="gradient_flow")
                made = TensorArray(dtype=self._dtype, handle=handle, flow=flow,
                                   infer_shape=self._infer_shape,
                                   colocate_with_first_write_call=False)
                made._element_shape = self._element_shape
                return made

    def read(self, index, name=None):
        value = gen_ops.TensorArrayReadV3(handle=self._handle, index=index, flow_in=self._flow,
                                          dtype=self._dtype, name=name)
        value.set_shape(self._element_shape[0])
        return value

    def write(self, index, value, name=None):
        with ops.name_scope(name, "TensorArrayWrite", [self._handle, index, value]):
            value = ops.convert_to_tensor(value, preferred_dtype=self._dtype, name="value")
            _check_dtype(value, self._dtype)
            self._check_element_shape(value.get_shape())
            with self._colocated(value):
                flow = gen_ops.TensorArrayWriteV3(
                    handle=self._handle, index=index, value=value, flow_in=self._flow, name=name)
            return self._with_flow(flow)

    def stack(self, name=None):
        with ops.colocate_with(self._handle):
            with ops.name_scope(name, "TensorArrayStack", [self._handle]):
                value = self.gather(math_ops.range(0, self.size()), name=name)
                if self.element_shape.ndims is not None and not self._dynamic_size and (
                        self._size is not None):
                    size = tensor_util.constant_value(self._size) if isinstance(
                        self._size, ops.Tensor) else self._size
                    value.set_shape([None if size is None else int(size)]
                                    + self.element_shape.as_list())
                return value

    def gather(self, indices, name=None):
        value = gen_ops.TensorArrayGatherV3(
            handle=self._handle, indices=indices, flow_in=self._flow, dtype=self._dtype,
            name=name, element_shape=self._element_shape[0])
        if self.element_shape.ndims is not None:
            value.set_shape([None] + self.element_shape.as_list())
        return value

    def concat(self, name=None):
        value, _ = gen_ops.TensorArrayConcatV3(
            handle=self._handle, flow_in=self._flow, dtype=self._dtype, name=name,
            element_shape_except0=self.element_shape[1:])
        if self.element_shape.ndims is not None:
            first = None
            if self._infer_shape:
                size = tensor_util.constant_value(self.size())
                length = self.element_shape.as_list()[0]
                if size is not None and length is not None:
                    first = int(size) * length
            value.set_shape([first] + self.element_shape.as_list()[1:])
        return value

    def unstack(self, value, name=None):
        with ops.name_scope(name, "TensorArrayUnstack", [self._handle, value]):
            count = array_ops.shape(value)[0]
            return self.scatter(indices=math_ops.range(0, count), value=value, name=name)

    def scatter(self, indices, value, name=None):
        with ops.name_scope(name, "TensorArrayScatter", [self._handle, value, indices]):
            value = ops.convert_to_tensor(value, preferred_dtype=self._dtype, name="value")
            _check_dtype(value, self._dtype)
            self._check_element_shape(value.get_shape()[1:])
            with self._colocated(value):
                flow = gen_ops.TensorArrayScatterV3(
                    handle=self._handle, indices=indices, value=value, flow_in=self._flow,
                    name=name)
            return self._with_flow(flow)

    def split(self, value, lengths, name=None):
        with ops.name_scope(name, "TensorArraySplit", [self._handle, value, lengths]):
            value = ops.convert_to_tensor(value, dtype=self._dtype, name="value")
            with self._colocated(value):
                lengths = math_ops.cast(lengths, dtypes.int64)
                known = tensor_util.constant_value(lengths)
                if value.get_shape().ndims is not None and known is not None and (
                        known.shape and known.max() == known.min()):
                    self._check_element_shape(tensor_shape.TensorShape(
                        [int(known[0])]).concatenate(value.get_shape()[1:]))
                flow = gen_ops.TensorArraySplitV3(
                    handle=self._handle, value=value, lengths=lengths, flow_in=self._flow,
                    name=name)
            return self._with_flow(flow)

    def size(self, name=None):
        if not self._dynamic_size and self._size is not None:
            return ops.convert_to_tensor(self._size, dtype=dtypes.int32)
        return gen_ops.TensorArraySizeV3(handle=self._handle, flow_in=self.flow, name=name)

    def close(self, name=None):
        return gen_ops.TensorArrayCloseV3(handle=self._handle, name=name)
