"""What `Session.run` fetches and feeds: nested structures, names, and types that programs add."""

import collections.abc

import numpy as np

from ferroflow import _ferroflow
from ferroflow.python.framework import dtypes, indexed_slices, sparse_tensor
from ferroflow.python.ops import session_handles

_Tensor, _Operation = _ferroflow.Tensor, _ferroflow.Operation

# `(type, fetch, feed, feed_partial)`, the newest first. `fetch(x)` returns the elements to fetch
# and a function of their values; `feed(x, value)` returns pairs of a tensor and its value.
_EXPANSIONS = []


def register(tensor_type, fetch_function, feed_function=None, feed_function_for_partial_run=None):
    for kind, *_ in _EXPANSIONS:
        if issubclass(tensor_type, kind) and kind is not object:
            raise ValueError(f"{tensor_type} has already been registered so ignore it.")
    _EXPANSIONS.insert(0, (tensor_type, fetch_function, feed_function, feed_function_for_partial_run))


def _sparse_fetch(x):
    return [x.indices, x.values, x.dense_shape], lambda values: sparse_tensor.SparseTensorValue(*values)


def _sparse_feed(x, value):
    return list(zip([x.indices, x.values, x.dense_shape], value))


def _slices_fetch(x):
    parts = [x.values, x.indices] + ([] if x.dense_shape is None else [x.dense_shape])
    if x.dense_shape is None:
        return parts, lambda values: indexed_slices.IndexedSlicesValue(values[0], values[1], None)
    return parts, lambda values: indexed_slices.IndexedSlicesValue(*values)


def _slices_feed(x, value):
    parts = [x.values, x.indices] + ([] if x.dense_shape is None else [x.dense_shape])
    return list(zip(parts, value))


register(sparse_tensor.SparseTensor, _sparse_fetch, _sparse_feed, lambda x: [x.indices, x.values, x.dense_shape])
register(indexed_slices.IndexedSlices, _slices_fetch, _slices_feed, lambda x: [x.values, x.indices])


def _expansion(value):
    for entry in _EXPANSIONS:
        if isinstance(value, entry[0]):
            return entry
    return None


class FetchHandler:
    """The tensors and operations of a structure of fetches, each once, and how to fill it."""

    def __init__(self, graph, fetches, fed, session=None):
        self._graph, self._session = graph, session
        self.tensors, self.operations = [], []
        self._positions = {}
        self._seen = set()
        # A tensor that is fed has the fed value.
        self._fed = fed
        self._fill = self._mapper(fetches)

    def results(self, values):
        return self._fill(values)

    def _mapper(self, fetch):
        """A function from the values of all tensors to the value of this fetch."""
        if fetch is None:
            raise TypeError("Argument `fetch` = None has invalid type \"NoneType\". Cannot be None")
        if type(fetch) is _Tensor or type(fetch) is _Operation:
            return self._element(fetch)
        if isinstance(fetch, (list, tuple)):
            return self._sequence(fetch)
        if isinstance(fetch, collections.abc.Mapping):
            items = [(key, self._mapper(value)) for key, value in fetch.items()]
            kind = type(fetch)
            if kind is dict:
                return lambda values: {key: fill(values) for key, fill in items}
            return lambda values: _rebuild_mapping(kind, fetch, [(k, fill(values)) for k, fill in items])
        if hasattr(type(fetch), "__attrs_attrs__"):
            names = [a.name for a in type(fetch).__attrs_attrs__]
            fills = [self._mapper(getattr(fetch, name)) for name in names]
            return lambda values: type(fetch)(*[fill(values) for fill in fills])
        expansion = _expansion(fetch)
        if expansion is not None:
            parts, contract = expansion[1](fetch)
            fills = [self._mapper(part) for part in parts]
            return lambda values: contract([fill(values) for fill in fills])
        return self._element(fetch)

    def _sequence(self, fetch):
        fills = [self._mapper(item) for item in fetch]
        kind = type(fetch)
        if kind is list:
            return lambda values: [fill(values) for fill in fills]
        if kind is tuple:
            return lambda values: tuple([fill(values) for fill in fills])
        if hasattr(kind, "_fields"):
            return lambda values: kind(*[fill(values) for fill in fills])
        return lambda values: kind([fill(values) for fill in fills])

    def _element(self, fetch):
        try:
            element = self._graph.as_graph_element(fetch, allow_tensor=True, allow_operation=True)
        except TypeError as e:
            raise TypeError(
                f"Argument `fetch` = {fetch} has invalid type \"{type(fetch).__name__}\" must be a string or Tensor. ({e})"
            ) from None
        except ValueError as e:
            raise ValueError(f"Argument `fetch` = {fetch} cannot be interpreted as a Tensor. ({e})") from None
        except KeyError as e:
            raise ValueError(f"Argument `fetch` = {fetch} cannot be interpreted as a Tensor. ({e})") from None
        if not self._graph.is_fetchable(element):
            raise ValueError(f"Operation {element.name!r} has been marked as not fetchable.")
        if type(element) is _Operation:
            if element not in self._seen:
                self._seen.add(element)
                self.operations.append(element)
            return lambda values: None
        if element in self._fed:
            fed = self._fed[element]
            return lambda values: fed
        at = self._positions.get(element)
        if at is None:
            at = self._positions[element] = len(self.tensors)
            self.tensors.append(element)
        if element.op.type in ("GetSessionHandle", "GetSessionHandleV2"):
            dtype = element.op.inputs[0].dtype
            return lambda values: session_handles.TensorHandle(values[at], dtype, self._session)
        return lambda values: values[at]


def _rebuild_mapping(kind, original, items):
    if hasattr(original, "default_factory"):
        return kind(original.default_factory, items)
    return kind(items)


def feed_tensor(graph, feed):
    try:
        return graph.as_graph_element(feed, allow_tensor=True, allow_operation=False)
    except Exception as e:
        raise TypeError(f"Cannot interpret feed_dict key as Tensor: {e.args[0] if e.args else e}") from None


def feeds(graph, feed_dict):
    """Pairs of a tensor and the array it is fed."""
    if not feed_dict:
        return []
    if not isinstance(feed_dict, collections.abc.Mapping):
        raise TypeError(f"Argument `feed_dict` must be a dictionary, not {type(feed_dict).__name__}")
    found = {}
    for feed, value in _flattened(feed_dict):
        expansion = None if isinstance(feed, (_Tensor, str, bytes)) else _expansion(feed)
        if expansion is not None:
            if expansion[2] is None:
                raise TypeError(f"Feeding is not supported for type {type(feed)}.")
            pairs = expansion[2](feed, value)
        else:
            pairs = [(feed, value)]
        for key, item in pairs:
            tensor = feed_tensor(graph, key)
            if not graph.is_feedable(tensor):
                raise ValueError(f"Tensor {tensor.name} may not be fed.")
            found[tensor] = feed_value(tensor, item)
    return list(found.items())


def _flattened(feed_dict):
    for key, value in feed_dict.items():
        if isinstance(key, (list, tuple)) and not isinstance(key, (sparse_tensor.SparseTensorValue,)):
            yield from _pairs(key, value)
        else:
            yield key, value


def _pairs(keys, values):
    values = list(values) if isinstance(values, (list, tuple, np.ndarray)) else [values]
    if len(keys) != len(values):
        raise ValueError(f"The two structures don't have the same number of elements: {len(keys)} and {len(values)}")
    for key, value in zip(keys, values):
        if isinstance(key, (list, tuple)):
            yield from _pairs(key, value)
        else:
            yield key, value


def feed_value(tensor, value):
    """The array for a fed tensor; TypeError or ValueError if the value does not fit."""
    dtype = tensor.dtype.base_dtype
    if isinstance(value, _Tensor):
        raise TypeError(
            "The value of a feed cannot be a tf.Tensor object. Acceptable feed values include Python scalars, strings, "
            "lists, numpy ndarrays, or TensorHandles. For reference, the tensor object was "
            f"{value} which was passed to the argument `feed_dict` with key {tensor}."
        )
    if isinstance(value, session_handles.TensorHandle):
        value = value.handle if dtype == dtypes.string else value.eval()
    wanted = dtype.as_numpy_dtype
    if isinstance(value, int) and not isinstance(value, bool) and dtype.is_integer:
        # numpy would wrap around or raise, depending on its version.
        if not dtype.min <= value <= dtype.max:
            raise TypeError(
                f"Type of feed value {value} with type {type(value)} is not compatible with Tensor type {wanted}. Try "
                "explicitly setting the type of the feed tensor to a larger type (e.g. int64)."
            )
    if dtype == dtypes.string:
        if isinstance(value, int):
            raise TypeError(
                f"Type of feed value {value} with type {type(value)} is not compatible with Tensor type {wanted}. Try "
                "explicitly setting the type of the feed tensor to a larger type (e.g. int64)."
            )
        array = value if isinstance(value, np.ndarray) else np.array(value, dtype=object)
        if array.dtype.kind not in "OSU":
            raise TypeError(f"Cannot feed value of dtype {array.dtype} for Tensor {tensor.name!r}, which has dtype string")
    elif type(value) is np.ndarray and value.dtype == wanted:
        array = value
    else:
        try:
            array = np.asarray(value, dtype=wanted)
        except (TypeError, ValueError):
            raise
    dims = tensor._dims
    if dims is not None:
        shape = array.shape
        if len(dims) != len(shape) or any(d is not None and d != s for d, s in zip(dims, shape)):
            raise ValueError(
                f"Cannot feed value of shape {shape!r} for Tensor {tensor.name}, which has shape {str(tensor.shape)}"
            )
    return array


def _is_ragged(value):
    return isinstance(value, (list, tuple)) and any(isinstance(v, (list, tuple)) for v in value)
