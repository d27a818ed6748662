"""Collectives on numpy arrays. Results are new arrays, except for the functions that end in `_`."""

import pickle

import numpy as np

from . import core
from .core import DTYPE_NUMBERS, global_process_set

_COMPLEX = {"complex64": "float32", "complex128": "float64"}

# The number of each dtype that was used. Names of dtypes are slow to ask for.
_NUMBERS = {}


class Handle:
    """The pending result of an asynchronous collective on an array."""

    __slots__ = ("_handle", "_finish", "_result")

    def __init__(self, handle, finish):
        self._handle, self._finish, self._result = handle, finish, None

    def poll(self):
        return self._finish is None or self._handle.poll()

    def wait(self, timeout=None):
        if self._finish is not None:
            self._handle.wait(timeout)
            self._result, self._finish = self._finish(self._handle), None
        return self._result


class GroupHandle:
    """The pending results of a grouped collective."""

    __slots__ = ("_handles",)

    def __init__(self, handles):
        self._handles = handles

    def poll(self):
        return all(h.poll() for h in self._handles)

    def wait(self, timeout=None):
        return [h.wait(timeout) for h in self._handles]


def poll(handle):
    """Whether the result of an asynchronous collective is there."""
    return handle.poll()


def synchronize(handle):
    """Waits for an asynchronous collective and returns its result."""
    return handle.wait()


def _number(dtype):
    """The number of a dtype. An error if collectives do not support it."""
    number = _NUMBERS.get(dtype)
    if number is None:
        number = DTYPE_NUMBERS.get(dtype.name)
        if number is None:
            raise TypeError(f"collectives do not support arrays of type {dtype}")
        _NUMBERS[dtype] = number
    return number


def _array(value):
    if type(value) is not np.ndarray:
        if type(value).__module__.startswith("ferroflow.") or hasattr(value, "graph"):
            raise NotImplementedError(
                "collectives of ferroflow.hvd take numpy arrays, not tensors of a graph")
        value = np.asarray(value)
    _number(value.dtype)
    return value


def _payload(name, array):
    data = array.__array_interface__["data"][0] if array.size else 0
    return (name, data, _number(array.dtype), array.shape, array)


def _fresh(value):
    """A contiguous copy of an array, in the machine's byte order."""
    array = _array(value)
    return np.array(array, dtype=array.dtype.newbyteorder("="), order="C", copy=True)


def _contiguous(value):
    """A contiguous array with the same values, which are only read."""
    array = _array(value)
    return np.require(array, array.dtype.newbyteorder("="), "C").reshape(array.shape)


def _reducible(array):
    """The array as one of real numbers, to be summed."""
    if array.dtype.kind != "c":
        return array
    return array.reshape(-1).view(_COMPLEX[array.dtype.name])


def _complex_fault(array, op):
    if array.dtype.kind == "c" and op not in (core.Average, core.Sum):
        return f"{core.OP_NAMES[op]} of {array.dtype.name} is not supported"
    return None


def _allreduce_into(arrays, names, op, prescale, postscale, process_set):
    payloads, fault = [], None
    for name, array in zip(names, arrays):
        payloads.append(_payload(name, _reducible(array)))
        fault = fault or _complex_fault(array, op)
    handles = core.submit(
        payloads, core.ALLREDUCE, op=op, process_set=core.set_number(process_set),
        prescale=prescale, postscale=postscale, fault=fault)
    return [Handle(h, lambda _, a=a: a) for h, a in zip(handles, arrays)]


def allreduce_async_(array, average=None, name=None, op=None, prescale_factor=1.0,
                     postscale_factor=1.0, process_set=global_process_set):
    """Reduces an array in place. It must be writable and contiguous."""
    op = core.reduce_op(op, average)
    if not (isinstance(array, np.ndarray) and array.flags.c_contiguous and array.flags.writeable):
        raise ValueError("an array that is reduced in place must be writable and contiguous")
    _array(array)
    name = core.name_of("allreduce", name, process_set)
    return _allreduce_into([array], [name], op, prescale_factor, postscale_factor, process_set)[0]


def allreduce_(array, *args, **options):
    """Reduces an array in place, and returns it."""
    return allreduce_async_(array, *args, **options).wait()


def allreduce_async(array, average=None, name=None, op=None, prescale_factor=1.0,
                    postscale_factor=1.0, process_set=global_process_set):
    """Starts the reduction of an array over all ranks."""
    op = core.reduce_op(op, average)
    name = core.name_of("allreduce", name, process_set)
    arrays = [_fresh(array)]
    return _allreduce_into(arrays, [name], op, prescale_factor, postscale_factor, process_set)[0]


def allreduce(array, *args, **options):
    """Reduces an array over all ranks."""
    return allreduce_async(array, *args, **options).wait()


def grouped_allreduce_async(arrays, average=None, name=None, op=None, prescale_factor=1.0,
                            postscale_factor=1.0, process_set=global_process_set):
    """Starts the reduction of several arrays, which run together."""
    op = core.reduce_op(op, average)
    base = core.name_of("grouped_allreduce", name, process_set)
    arrays = [_fresh(a) for a in arrays]
    names = [f"{base}.{i}" for i in range(len(arrays))]
    return GroupHandle(
        _allreduce_into(arrays, names, op, prescale_factor, postscale_factor, process_set))


def grouped_allreduce(arrays, *args, **options):
    """Reduces several arrays, which run together."""
    return grouped_allreduce_async(arrays, *args, **options).wait()


def rows(handle, like):
    """The rows that a gather, an all-to-all or a reduce-scatter returned, as an array."""
    values = handle.take()
    flat = np.asarray(values).view(like.dtype) if values is not None else like.reshape(-1)
    rest = like.shape[1:]
    if 0 in rest:
        return flat.reshape((0,) + rest)
    return flat.reshape((-1,) + rest)


def _row_array(array):
    """An array with a first dimension: a scalar is a row of its own."""
    array = _contiguous(array)
    return array.reshape(1) if array.ndim == 0 else array


def _row_values(array):
    values = 1
    for d in array.shape[1:]:
        values *= d
    return values


def _gather_async(arrays, names, process_set):
    arrays = [_row_array(a) for a in arrays]
    payloads = [_payload(n, a) for n, a in zip(names, arrays)]
    handles = core.submit(payloads, core.ALLGATHER, process_set=core.set_number(process_set))
    return [Handle(h, lambda h, a=a: rows(h, a)) for h, a in zip(handles, arrays)]


def allgather_async(array, name=None, process_set=global_process_set):
    """Starts the concatenation of all ranks' arrays along the first dimension."""
    return _gather_async([array], [core.name_of("allgather", name, process_set)], process_set)[0]


def allgather(array, name=None, process_set=global_process_set):
    """Concatenates all ranks' arrays along the first dimension. Ranks may have different numbers of
    rows."""
    return allgather_async(array, name, process_set).wait()


def grouped_allgather_async(arrays, name=None, process_set=global_process_set):
    base = core.name_of("grouped_allgather", name, process_set)
    names = [f"{base}.{i}" for i in range(len(arrays))]
    return GroupHandle(_gather_async(arrays, names, process_set))


def grouped_allgather(arrays, name=None, process_set=global_process_set):
    """Gathers several arrays, which run together."""
    return grouped_allgather_async(arrays, name, process_set).wait()


def broadcast_async(array, root_rank, name=None, process_set=global_process_set):
    """Starts the copy of one rank's array to all ranks."""
    array = _fresh(array)
    payload = _payload(core.name_of("broadcast", name, process_set), array)
    [handle] = core.submit([payload], core.BROADCAST, root=root_rank,
                           process_set=core.set_number(process_set))
    return Handle(handle, lambda _: array)


def broadcast(array, root_rank, name=None, process_set=global_process_set):
    """Returns the array of rank `root_rank` on all ranks."""
    return broadcast_async(array, root_rank, name, process_set).wait()


def alltoall_async(array, splits=None, name=None, process_set=global_process_set):
    """Starts an exchange: `splits[r]` rows go to each rank `r`."""
    array = _row_array(array)
    fault, counts = None, []
    if splits is None:
        try:
            counts = core.even_splits(array.shape[0], process_set.size())
        except ValueError as e:
            fault = str(e)
    else:
        splits = np.asarray(splits)
        counts = splits.reshape(-1).tolist()
        if splits.dtype.kind not in "iu":
            fault = f"the splits have to be integers, not {splits.dtype}"
        elif any(c < 0 for c in counts):
            fault = f"negative splits {counts}"
    each = _row_values(array)
    if fault is None and sum(counts) != array.shape[0]:
        fault = f"the splits {counts} do not add up to {array.shape[0]} rows"
    payload = _payload(core.name_of("alltoall", name, process_set), array)
    [handle] = core.submit([payload], core.ALLTOALL,
                           splits=[c * each for c in counts] if fault is None else [],
                           process_set=core.set_number(process_set), fault=fault)

    def finish(handle):
        received = np.array([c // max(each, 1) for c in handle.counts], dtype=np.int32)
        out = rows(handle, array)
        return out if splits is None else (out, received)

    return Handle(handle, finish)


def alltoall(array, splits=None, name=None, process_set=global_process_set):
    """Sends `splits[r]` rows to each rank `r`. Returns the received rows, and their numbers if
    splits were given."""
    return alltoall_async(array, splits, name, process_set).wait()


def _scatter_async(arrays, names, op, prescale, postscale, process_set):
    fresh = [_fresh(a) for a in arrays]
    fault = next((f"reducescatter needs a first dimension, {n} is a scalar"
                  for n, a in zip(names, fresh) if a.ndim == 0), None)
    fault = fault or next((f for f in (_complex_fault(a, op) for a in fresh) if f), None)
    payloads = []
    for name, array in zip(names, fresh):
        real = _COMPLEX.get(array.dtype.name)
        values = array if real is None else array.view(real).reshape(array.shape + (2,))
        payloads.append(_payload(name, values))
    handles = core.submit(
        payloads, core.REDUCESCATTER, op=op, process_set=core.set_number(process_set),
        prescale=prescale, postscale=postscale, fault=fault)
    return [Handle(h, lambda h, a=a: rows(h, a)) for h, a in zip(handles, fresh)]


def reducescatter_async(array, name=None, op=core.Average, prescale_factor=1.0,
                        postscale_factor=1.0, process_set=global_process_set):
    """Starts a reduction whose rows are shared nearly equally among the ranks."""
    name = core.name_of("reducescatter", name, process_set)
    return _scatter_async([array], [name], core.reduce_op(op), prescale_factor, postscale_factor,
                          process_set)[0]


def reducescatter(array, *args, **options):
    """Reduces an array and returns this rank's share of the rows."""
    return reducescatter_async(array, *args, **options).wait()


def grouped_reducescatter_async(arrays, name=None, op=core.Average, prescale_factor=1.0,
                                postscale_factor=1.0, process_set=global_process_set):
    base = core.name_of("grouped_reducescatter", name, process_set)
    names = [f"{base}.{i}" for i in range(len(arrays))]
    return GroupHandle(_scatter_async(arrays, names, core.reduce_op(op), prescale_factor,
                                      postscale_factor, process_set))


def grouped_reducescatter(arrays, *args, **options):
    """Reduces several arrays, which run together, and returns this rank's shares."""
    return grouped_reducescatter_async(arrays, *args, **options).wait()


def broadcast_object(obj, root_rank=0, name=None, process_set=global_process_set):
    """Returns the object of rank `root_rank`, which is pickled, on all ranks."""
    base = core.name_of("broadcast_object", name, process_set)
    is_root = core.rank() == root_rank
    data = np.frombuffer(pickle.dumps(obj), np.uint8) if is_root else np.zeros(0, np.uint8)
    length = broadcast(np.array(data.size, np.int64), root_rank, f"{base}.size", process_set)
    if not is_root:
        data = np.zeros(int(length), np.uint8)
    data = broadcast(data, root_rank, f"{base}.data", process_set)
    return obj if is_root else pickle.loads(data.tobytes())


def allgather_object(obj, name=None, process_set=global_process_set):
    """Returns a list of the objects of all ranks, which are pickled."""
    base = core.name_of("allgather_object", name, process_set)
    data = np.frombuffer(pickle.dumps(obj), np.uint8)
    sizes = allgather(np.array([data.size], np.int64), f"{base}.sizes", process_set)
    everything = allgather(data, f"{base}.data", process_set)
    ends = np.cumsum(sizes)
    return [pickle.loads(everything[e - s:e].tobytes()) for s, e in zip(sizes, ends)]
