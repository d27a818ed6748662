"""Tensors that stay in a session between steps, by handles."""

from ferroflow.python.framework import dtypes
from ferroflow.python.framework import ops
from ferroflow.python.ops import array_ops
from ferroflow.python.ops import gen_ops
from ferroflow.python.util import compat
from ferroflow.python.util.api import export


class TensorHandle:
    """A tensor that a session keeps."""

    def __init__(self, handle, dtype, session):
        self._handle = compat.as_str(handle)
        self._dtype, self._session = dtype, session
        self._is_deleted = False

    handle = property(lambda self: self._handle)

    def __str__(self):
        return self._handle

    def eval(self):
        """The value."""
        if self._is_deleted:
            raise TypeError("the handle '%s' was deleted" % self._handle)
        with self._session.graph.as_default():
            holder, tensor = get_session_tensor(self._handle, self._dtype)
        return self._session.run(tensor, feed_dict={holder: self._handle})

    def delete(self):
        with self._session.graph.as_default():
            holder, deleter = delete_session_tensor(self._handle)
        self._session.run(deleter, feed_dict={holder: self._handle})
        self._is_deleted = True

    def get_raw_handle(self):
        self._is_deleted = True
        return self._handle


@export("get_session_handle")
def get_session_handle(data, name=None):
    """The handle of a value that the session keeps when it is fetched."""
    data = ops.convert_to_tensor(data)
    # A fetch of it is a TensorHandle.
    data.graph._checks_fetches = True
    with ops.colocate_with(data):
        return gen_ops.GetSessionHandle(data, name=name)


def _of_handle(handle):
    """A placeholder for a handle, with the device that the handle names."""
    device = compat.as_str(handle).split(";")[-1] if ";" in compat.as_str(handle) else None
    with ops.device(device):
        return array_ops.placeholder(dtypes.string)


@export("get_session_tensor")
def get_session_tensor(handle, dtype, name=None):
    """A placeholder for a handle, and the tensor of that handle."""
    holder = _of_handle(handle)
    return holder, gen_ops.GetSessionTensor(holder, dtype=dtype, name=name)


@export("delete_session_tensor")
def delete_session_tensor(handle, name=None):
    """A placeholder for a handle, and the operation that frees its tensor."""
    holder = _of_handle(handle)
    return holder, gen_ops.DeleteSessionTensor(holder, name=name)
