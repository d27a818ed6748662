"""`tf.py_func`: operations that call a Python function in the process that made them."""

import threading

import numpy as np

from ferroflow.python.framework import dtypes, ops

_lock = threading.Lock()
_functions = {}


def _register(graph, func):
    """A token by which a node finds its function. The graph keeps the function alive."""
    with _lock:
        token = f"pyfunc_{_register.count}"
        _register.count += 1
        _functions[token] = func
    held = graph.__dict__.setdefault("_py_funcs_used_in_graph", [])
    held.append(func)
    return token


_register.count = 0


def call(token, arrays, types):
    """Calls the function of a node; returns arrays of its output types."""
    func = _functions.get(token)
    if func is None:
        raise ValueError(f"callback {token} is not found: py_func runs only in the process that made it")
    found = func(*arrays)
    if found is None:
        found = []
    elif not isinstance(found, (list, tuple)):
        found = [found]
    if len(found) != len(types):
        raise ValueError(f"{token} returns {len(found)} values, but expects to see {len(types)} values.")
    return [_converted(value, dtype) for value, dtype in zip(found, types)]


def _converted(value, dtype):
    if dtype is not None and dtype == dtypes.string:
        return np.array(value, dtype=object)
    array = np.asarray(value, order="C")
    if dtype is not None and array.dtype != dtype.as_numpy_dtype:
        if array.dtype.kind in "biuf" and not isinstance(value, (np.ndarray, np.generic)):
            return array.astype(dtype.as_numpy_dtype)
        raise TypeError(f"{dtypes.as_dtype(array.dtype).name} cannot be used as {dtype.name}: the py_func returned another type than Tout")
    return array


def py_func_common(func, inp, Tout, stateful=True, name=None):  # pylint: disable=invalid-name
    if not callable(func):
        raise ValueError(f"Expected func to be callable. Received func={func} of type {type(func)}.")
    is_list = isinstance(Tout, (list, tuple))
    types = [dtypes.as_dtype(t) for t in (Tout if is_list else [Tout])]
    graph = ops.get_default_graph()
    token = _register(graph, func)
    op = ops.apply_op("PyFunc" if stateful else "PyFuncStateless", name, [list(inp)], {"token": token, "Tout": types})
    outputs = op.outputs
    if not is_list:
        return outputs[0]
    return outputs or op


def py_func(func, inp, Tout, stateful=True, name=None):  # pylint: disable=invalid-name
    return py_func_common(func, inp, Tout, stateful, name)


def numpy_function(func=None, inp=None, Tout=None, stateful=True, name=None):  # pylint: disable=invalid-name
    return py_func_common(func, inp, Tout, stateful, name)


class _Value(np.ndarray):
    """An array with the methods of an eager tensor that functions use."""

    def numpy(self):
        return np.asarray(self)

    def get_shape(self):
        from ferroflow.python.framework import tensor_shape

        return tensor_shape.TensorShape(self.shape)


def _as_value(array):
    array = np.asarray(array)
    return array.view(_Value) if array.dtype != object or array.ndim else _Text(array.item())


class _Text(bytes):
    """A text with the methods of an eager tensor."""

    dtype = dtypes.string
    shape = ()

    def numpy(self):
        return bytes(self)


def py_function(func=None, inp=None, Tout=None, name=None):  # pylint: disable=invalid-name
    """Like `py_func`, for a function that takes eager tensors: their arrays have `numpy()`."""

    count = len(Tout) if isinstance(Tout, (list, tuple)) else 1

    def call_with_values(*arrays):
        found = func(*[_as_value(a) for a in arrays])
        if isinstance(found, (list, tuple)):
            # TensorFlow ignores values beyond the types of the outputs here, unlike `py_func`.
            return [np.asarray(x) if isinstance(x, _Value) else x for x in found[:count]]
        return np.asarray(found) if isinstance(found, _Value) else found

    if not callable(func):
        raise ValueError(f"Expected func to be callable. Received func={func} of type {type(func)}.")
    return py_func_common(call_with_values, inp, Tout, True, name or "EagerPyFunc")
