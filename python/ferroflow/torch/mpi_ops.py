"""Collectives on torch tensors, name for name as in `horovod.torch.mpi_ops`.

Tensors on the CPU are reduced in their own memory. Functions that end in `_` work in place, the
others return new tensors and are differentiable.
"""

import torch

from ferroflow._hvd import core
from ferroflow._hvd.core import (  # noqa: F401 (Horovod's names)
    Adasum, Average, Max, Min, ProcessSet, Product, Sum, add_process_set, ccl_built, cross_rank,
    cross_size, cuda_built, ddl_built, global_process_set, gloo_built, gloo_enabled, init,
    is_homogeneous, is_initialized, local_rank, local_size, mpi_built, mpi_enabled,
    mpi_threads_supported, nccl_built, rank, remove_process_set, rocm_built, shutdown, size,
    start_timeline, stop_timeline)
from ferroflow._hvd.errors import HorovodInternalError  # noqa: F401

from .compression import Compression

_DTYPES = {
    getattr(torch, name): number
    for name, number in core.DTYPE_NUMBERS.items() if hasattr(torch, name)
}


class Handle:
    """The pending result of an asynchronous collective. Pass it to `poll` and `synchronize`."""

    __slots__ = ("_handles", "_finish", "_result")

    def __init__(self, handles, finish):
        self._handles, self._finish, self._result = handles, finish, None

    def poll(self):
        return self._finish is None or all(h.poll() for h in self._handles)

    def wait(self, timeout=None):
        if self._finish is not None:
            for handle in self._handles:
                handle.wait(timeout)
            self._result, self._finish = self._finish(), None
        return self._result

    def __call__(self):
        """The same as `wait()`, for sparse tensors, whose handles Horovod's users call."""
        return self.wait()


def poll(handle):
    """Whether `synchronize` would return at once."""
    return handle.poll()


def synchronize(handle):
    """Waits for an asynchronous collective and returns its result."""
    return handle.wait()


def _check(tensor):
    if not isinstance(tensor, torch.Tensor):
        raise TypeError(f"expected a torch tensor, not {type(tensor).__name__}")
    if tensor.device.type != "cpu":
        raise NotImplementedError(
            f"collectives work on tensors on the CPU, not on {tensor.device}; move it with .cpu()")
    if tensor.dtype not in _DTYPES:
        raise TypeError(f"collectives do not support tensors of type {tensor.dtype}")
    if tensor.layout is not torch.strided:
        raise TypeError("use sparse_allreduce_async for sparse tensors")


def _payload(name, tensor):
    if tensor.is_complex():
        tensor = torch.view_as_real(tensor)
    return (name, tensor.data_ptr(), _DTYPES[tensor.dtype], tuple(tensor.shape), tensor)


def _complex_fault(tensors, op):
    if op not in (Average, Sum) and any(t.is_complex() for t in tensors):
        return f"{core.OP_NAMES[op]} of complex tensors is not supported"
    return None


def _fresh(tensor):
    _check(tensor)
    return tensor.detach().clone(memory_format=torch.contiguous_format)


def _contiguous(tensor):
    _check(tensor)
    tensor = tensor.detach().contiguous()
    return tensor.reshape(1) if tensor.dim() == 0 else tensor


def _reduce_into(work, names, op, prescale, postscale, process_set):
    """Submits contiguous tensors, which are reduced in place."""
    return core.submit(
        [_payload(n, t) for n, t in zip(names, work)], core.ALLREDUCE, op=op,
        process_set=core.set_number(process_set), prescale=prescale, postscale=postscale,
        fault=_complex_fault(work, op))


def _allreduce_in_place(tensors, names, op, prescale, postscale, process_set):
    """Handles of tensors that are reduced in place, contiguous or not."""
    work = []
    for tensor in tensors:
        _check(tensor)
        values = tensor.detach()
        work.append(values if values.is_contiguous() else values.contiguous())
    handles = _reduce_into(work, names, op, prescale, postscale, process_set)

    def finish():
        for tensor, values in zip(tensors, work):
            if values.data_ptr() != tensor.data_ptr():
                tensor.detach().copy_(values)
        return tensors

    return Handle(handles, finish)


def allreduce_async_(tensor, average=None, name=None, op=None, prescale_factor=1.0,
                     postscale_factor=1.0, process_set=global_process_set):
    """Starts a reduction in place."""
    op = core.reduce_op(op, average)
    names = [core.name_of("allreduce", name, process_set)]
    handle = _allreduce_in_place([tensor], names, op, prescale_factor, postscale_factor,
                                 process_set)
    return _First(handle)


class _First(Handle):
    """The first result of a handle with several."""

    __slots__ = ("_handle",)

    def __init__(self, handle):
        self._handle = handle

    def poll(self):
        return self._handle.poll()

    def wait(self, timeout=None):
        return self._handle.wait(timeout)[0]


def allreduce_(tensor, average=None, name=None, op=None, prescale_factor=1.0,
               postscale_factor=1.0, process_set=global_process_set):
    """Reduces a tensor in place, and returns it."""
    return allreduce_async_(tensor, average, name, op, prescale_factor, postscale_factor,
                            process_set).wait()


def allreduce_async(tensor, average=None, name=None, op=None, prescale_factor=1.0,
                    postscale_factor=1.0, process_set=global_process_set):
    """Starts a reduction into a new tensor."""
    op = core.reduce_op(op, average)
    out = _fresh(tensor)
    names = [core.name_of("allreduce", name, process_set)]
    handles = _reduce_into([out], names, op, prescale_factor, postscale_factor, process_set)
    return Handle(handles, lambda: out)


class _Allreduce(torch.autograd.Function):
    @staticmethod
    def forward(ctx, tensor, average, name, op, prescale, postscale, process_set):
        ctx.args = (average, op, prescale, postscale, process_set)
        return allreduce_async(tensor, average, name, op, prescale, postscale, process_set).wait()

    @staticmethod
    def backward(ctx, grad):
        average, op, prescale, postscale, process_set = ctx.args
        reduced = allreduce(grad, average=average, op=op, prescale_factor=prescale,
                            postscale_factor=postscale, process_set=process_set)
        return (reduced,) + (None,) * 6


def allreduce(tensor, average=None, name=None, compression=Compression.none, op=None,
              prescale_factor=1.0, postscale_factor=1.0, process_set=global_process_set):
    """Reduces a tensor over all ranks. The default is the average."""
    core.reduce_op(op, average)
    small, ctx = compression.compress(tensor)
    if small.requires_grad and torch.is_grad_enabled():
        reduced = _Allreduce.apply(small, average, name, op, prescale_factor, postscale_factor,
                                   process_set)
    else:
        reduced = allreduce_async(small, average, name, op, prescale_factor, postscale_factor,
                                  process_set).wait()
    return compression.decompress(reduced, ctx)


def _group_names(kind, name, count, process_set):
    base = core.name_of(kind, name, process_set)
    return [f"{base}.{i}" for i in range(count)]


def grouped_allreduce_async_(tensors, average=None, name=None, op=None, prescale_factor=1.0,
                             postscale_factor=1.0, process_set=global_process_set):
    """Starts reductions in place that run together."""
    op = core.reduce_op(op, average)
    names = _group_names("grouped_allreduce", name, len(tensors), process_set)
    return _allreduce_in_place(list(tensors), names, op, prescale_factor, postscale_factor,
                               process_set)


def grouped_allreduce_(tensors, average=None, name=None, op=None, prescale_factor=1.0,
                       postscale_factor=1.0, process_set=global_process_set):
    """Reduces tensors in place, together, and returns them."""
    return grouped_allreduce_async_(tensors, average, name, op, prescale_factor, postscale_factor,
                                    process_set).wait()


def grouped_allreduce_async(tensors, average=None, name=None, op=None, prescale_factor=1.0,
                            postscale_factor=1.0, process_set=global_process_set):
    """Starts reductions into new tensors that run together."""
    op = core.reduce_op(op, average)
    names = _group_names("grouped_allreduce", name, len(tensors), process_set)
    out = [_fresh(t) for t in tensors]
    handles = _reduce_into(out, names, op, prescale_factor, postscale_factor, process_set)
    return Handle(handles, lambda: out)


class _GroupedAllreduce(torch.autograd.Function):
    @staticmethod
    def forward(ctx, average, name, op, prescale, postscale, process_set, *tensors):
        ctx.args = (average, op, prescale, postscale, process_set)
        return tuple(grouped_allreduce_async(
            tensors, average, name, op, prescale, postscale, process_set).wait())

    @staticmethod
    def backward(ctx, *grads):
        average, op, prescale, postscale, process_set = ctx.args
        reduced = grouped_allreduce(list(grads), average=average, op=op, prescale_factor=prescale,
                                    postscale_factor=postscale, process_set=process_set)
        return (None,) * 6 + tuple(reduced)


def grouped_allreduce(tensors, average=None, name=None, compression=Compression.none, op=None,
                      prescale_factor=1.0, postscale_factor=1.0, process_set=global_process_set):
    """Reduces several tensors, which run together."""
    core.reduce_op(op, average)
    small, contexts = zip(*(compression.compress(t) for t in tensors)) if tensors else ((), ())
    if torch.is_grad_enabled() and any(t.requires_grad for t in small):
        reduced = _GroupedAllreduce.apply(average, name, op, prescale_factor, postscale_factor,
                                          process_set, *small)
    else:
        reduced = grouped_allreduce_async(small, average, name, op, prescale_factor,
                                          postscale_factor, process_set).wait()
    return [compression.decompress(t, ctx) for t, ctx in zip(reduced, contexts)]


def sparse_allreduce_async(tensor, name, op, process_set=global_process_set):
    """Starts the reduction of a sparse tensor: all ranks gather indices and values."""
    if op not in (Average, Sum):
        raise ValueError("sparse tensors support Average and Sum")
    tensor = tensor.coalesce() if not tensor.is_coalesced() else tensor
    indices = allgather_async(tensor._indices().t().contiguous(), f"{name}.indices", process_set)
    values = allgather_async(tensor._values(), f"{name}.values", process_set)

    def finish():
        at, all_values = indices.wait(), values.wait()
        if op == Average:
            all_values = all_values / process_set.size()
        return torch.sparse_coo_tensor(at.t(), all_values, tensor.size())

    return _Both([indices, values], finish)


class _Both(Handle):
    """A result that is made of two others."""

    __slots__ = ()

    def wait(self, timeout=None):
        if self._finish is not None:
            self._result, self._finish = self._finish(), None
        return self._result


def _rows(handle, like):
    """The rows that a gather returned, as a tensor."""
    import numpy as np
    values = handle.take()
    dtype = like.dtype
    if values is None or len(values) == 0:
        flat = torch.empty(0, dtype=dtype)
    else:
        flat = torch.from_numpy(np.asarray(values)).view(dtype)
    rest = tuple(like.shape[1:])
    count = 1
    for d in rest:
        count *= d
    return flat.reshape((flat.numel() // count if count else 0,) + rest)


def _allgather_handles(tensors, names, process_set):
    tensors = [_contiguous(t) for t in tensors]
    handles = core.submit([_payload(n, t) for n, t in zip(names, tensors)], core.ALLGATHER,
                          process_set=core.set_number(process_set))
    return Handle(handles, lambda: [_rows(h, t) for h, t in zip(handles, tensors)])


def allgather_async(tensor, name=None, process_set=global_process_set):
    """Starts the concatenation of all ranks' tensors along the first dimension."""
    names = [core.name_of("allgather", name, process_set)]
    return _First(_allgather_handles([tensor], names, process_set))


class _Allgather(torch.autograd.Function):
    @staticmethod
    def forward(ctx, tensor, name, process_set):
        ctx.rows, ctx.shape = tensor.shape[0] if tensor.dim() else 1, tensor.shape
        ctx.process_set = process_set
        return allgather_async(tensor, name, process_set).wait()

    @staticmethod
    def backward(ctx, grad):
        reduced = allreduce(grad, op=Average, process_set=ctx.process_set)
        counts = allgather(torch.tensor([ctx.rows]), process_set=ctx.process_set)
        start = int(counts[:ctx.process_set.rank()].sum())
        return reduced[start:start + ctx.rows].reshape(ctx.shape), None, None


def allgather(tensor, name=None, process_set=global_process_set):
    """Concatenates all ranks' tensors along the first dimension. Ranks may have different numbers of
    rows."""
    if tensor.requires_grad and torch.is_grad_enabled():
        return _Allgather.apply(tensor, name, process_set)
    return allgather_async(tensor, name, process_set).wait()


def grouped_allgather_async(tensors, name=None, process_set=global_process_set):
    """Starts gathers that run together."""
    names = _group_names("grouped_allgather", name, len(tensors), process_set)
    return _allgather_handles(tensors, names, process_set)


class _GroupedAllgather(torch.autograd.Function):
    @staticmethod
    def forward(ctx, name, process_set, *tensors):
        ctx.shapes, ctx.process_set = [t.shape for t in tensors], process_set
        return tuple(grouped_allgather_async(tensors, name, process_set).wait())

    @staticmethod
    def backward(ctx, *grads):
        process_set = ctx.process_set
        reduced = grouped_allreduce(list(grads), op=Average, process_set=process_set)
        rows = torch.tensor([[s[0] if s else 1 for s in ctx.shapes]])
        starts = allgather(rows, process_set=process_set)[:process_set.rank()].sum(0)
        own = [g[at:at + n].reshape(shape) for g, at, n, shape in
               zip(reduced, starts.tolist(), rows[0].tolist(), ctx.shapes)]
        return (None,) * 2 + tuple(own)


def grouped_allgather(tensors, name=None, process_set=global_process_set):
    """Gathers several tensors, which run together."""
    if torch.is_grad_enabled() and any(t.requires_grad for t in tensors):
        return list(_GroupedAllgather.apply(name, process_set, *tensors))
    return grouped_allgather_async(tensors, name, process_set).wait()


def _broadcast(work, names, root_rank, process_set):
    return core.submit([_payload(n, t) for n, t in zip(names, work)], core.BROADCAST,
                       root=root_rank, process_set=core.set_number(process_set))


def broadcast_async_(tensor, root_rank, name=None, process_set=global_process_set):
    """Starts the copy of one rank's tensor to all ranks, in place."""
    _check(tensor)
    values = tensor.detach()
    values = values if values.is_contiguous() else values.contiguous()
    names = [core.name_of("broadcast", name, process_set)]
    handles = _broadcast([values], names, root_rank, process_set)

    def finish():
        if values.data_ptr() != tensor.data_ptr():
            tensor.detach().copy_(values)
        return tensor

    return Handle(handles, finish)


def broadcast_(tensor, root_rank, name=None, process_set=global_process_set):
    """Copies the tensor of rank `root_rank` to all ranks, in place."""
    return broadcast_async_(tensor, root_rank, name, process_set).wait()


def broadcast_async(tensor, root_rank, name=None, process_set=global_process_set):
    """Starts the copy of one rank's tensor to a new tensor on all ranks."""
    out = _fresh(tensor)
    names = [core.name_of("broadcast", name, process_set)]
    handles = _broadcast([out], names, root_rank, process_set)
    return Handle(handles, lambda: out)


class _Broadcast(torch.autograd.Function):
    @staticmethod
    def forward(ctx, tensor, root_rank, name, process_set):
        ctx.root_rank, ctx.process_set = root_rank, process_set
        return broadcast_async(tensor, root_rank, name, process_set).wait()

    @staticmethod
    def backward(ctx, grad):
        reduced = allreduce(grad, op=Average, process_set=ctx.process_set)
        return reduced if rank() == ctx.root_rank else reduced * 0, None, None, None


def broadcast(tensor, root_rank, name=None, process_set=global_process_set):
    """Returns the tensor of rank `root_rank` on all ranks."""
    if tensor.requires_grad and torch.is_grad_enabled():
        return _Broadcast.apply(tensor, root_rank, name, process_set)
    return broadcast_async(tensor, root_rank, name, process_set).wait()


def alltoall_async(tensor, splits=None, name=None, process_set=global_process_set):
    """Starts an exchange: `splits[r]` rows go to each rank `r`."""
    values = _contiguous(tensor)
    count = values.shape[0]
    fault, counts = None, []
    if splits is None:
        try:
            counts = core.even_splits(count, process_set.size())
        except ValueError as e:
            fault = str(e)
    else:
        splits = torch.as_tensor(splits)
        counts = splits.reshape(-1).tolist()
        if splits.is_floating_point() or splits.is_complex() or splits.dtype == torch.bool:
            fault = f"the splits have to be integers, not {splits.dtype}"
        elif any(c < 0 for c in counts) or sum(counts) != count:
            fault = f"the splits {counts} do not add up to {count} rows"
    each = values[0].numel() if count else 0
    if values.is_complex():
        each *= 2
    handles = core.submit(
        [_payload(core.name_of("alltoall", name, process_set), values)], core.ALLTOALL,
        splits=[c * each for c in counts] if fault is None else [],
        process_set=core.set_number(process_set), fault=fault)
    row = each
    if not row:
        row = 1
        for d in values.shape[1:]:
            row *= d
        row *= 2 if values.is_complex() else 1

    def finish():
        out = _rows(handles[0], values)
        received = torch.tensor([c // max(row, 1) for c in handles[0].counts], dtype=torch.int32)
        return out if splits is None else (out, received)

    return Handle(handles, finish)


class _Alltoall(torch.autograd.Function):
    @staticmethod
    def forward(ctx, tensor, splits, name, process_set):
        ctx.process_set = process_set
        count = tensor.shape[0] if tensor.dim() else 1
        given = splits if splits is not None else core.even_splits(count, process_set.size())
        out, ctx.received = alltoall_async(tensor, given, name, process_set).wait()
        ctx.mark_non_differentiable(ctx.received)
        return out, ctx.received

    @staticmethod
    def backward(ctx, grad, _):
        back, _ = alltoall(grad, splits=ctx.received, process_set=ctx.process_set)
        return back, None, None, None


def alltoall(tensor, splits=None, name=None, process_set=global_process_set):
    """Sends `splits[r]` rows to each rank `r`. Returns the received rows, and their numbers if splits
    were given."""
    if tensor.requires_grad and torch.is_grad_enabled():
        out, received = _Alltoall.apply(tensor, splits, name, process_set)
        return out if splits is None else (out, received)
    return alltoall_async(tensor, splits, name, process_set).wait()


def _reducescatter_handles(tensors, names, op, prescale, postscale, process_set):
    work = [_fresh(t) for t in tensors]
    fault = _complex_fault(work, op)
    if any(t.dim() == 0 for t in work):
        fault = "reducescatter needs a first dimension, but a tensor is a scalar"
    handles = core.submit(
        [_payload(n, t) for n, t in zip(names, work)], core.REDUCESCATTER, op=op,
        process_set=core.set_number(process_set), prescale=prescale, postscale=postscale,
        fault=fault)
    return Handle(handles, lambda: [_rows(h, t) for h, t in zip(handles, work)])


def reducescatter_async(tensor, name=None, op=Average, process_set=global_process_set,
                        prescale_factor=1.0, postscale_factor=1.0):
    """Starts a reduction whose rows are shared nearly equally among the ranks."""
    names = [core.name_of("reducescatter", name, process_set)]
    return _First(_reducescatter_handles([tensor], names,
                                         core.reduce_op(op), prescale_factor, postscale_factor,
                                         process_set))


def _scatter_factor(op, process_set):
    """The factor of the gradient of a reduce-scatter. As in Horovod, gradients are averages
    over the ranks, whatever the operation of the forward pass."""
    if op not in (Average, Sum):
        raise NotImplementedError("only Sum and Average of reducescatter are differentiable")
    return process_set.size() if op == Sum else 1


class _Reducescatter(torch.autograd.Function):
    @staticmethod
    def forward(ctx, tensor, name, op, process_set, prescale, postscale):
        ctx.args = (op, process_set, prescale, postscale)
        return reducescatter_async(tensor, name, op, process_set, prescale, postscale).wait()

    @staticmethod
    def backward(ctx, grad):
        op, process_set, prescale, postscale = ctx.args
        factor = _scatter_factor(op, process_set) * prescale * postscale
        return (allgather(grad * factor, process_set=process_set),) + (None,) * 5


def reducescatter(tensor, name=None, compression=Compression.none, op=Average,
                  process_set=global_process_set, prescale_factor=1.0, postscale_factor=1.0):
    """Reduces a tensor and returns this rank's share of the rows."""
    small, ctx = compression.compress(tensor)
    if small.requires_grad and torch.is_grad_enabled():
        part = _Reducescatter.apply(small, name, op, process_set, prescale_factor,
                                    postscale_factor)
    else:
        part = reducescatter_async(small, name, op, process_set, prescale_factor,
                                   postscale_factor).wait()
    return compression.decompress(part, ctx)


def grouped_reducescatter_async(tensors, name=None, op=Average, process_set=global_process_set,
                                prescale_factor=1.0, postscale_factor=1.0):
    """Starts reduce-scatters that run together."""
    names = _group_names("grouped_reducescatter", name, len(tensors), process_set)
    return _reducescatter_handles(tensors, names, core.reduce_op(op), prescale_factor,
                                  postscale_factor, process_set)


class _GroupedReducescatter(torch.autograd.Function):
    @staticmethod
    def forward(ctx, name, op, process_set, prescale, postscale, *tensors):
        ctx.args = (op, process_set, prescale, postscale)
        return tuple(grouped_reducescatter_async(tensors, name, op, process_set, prescale,
                                                 postscale).wait())

    @staticmethod
    def backward(ctx, *grads):
        op, process_set, prescale, postscale = ctx.args
        factor = _scatter_factor(op, process_set) * prescale * postscale
        parts = grouped_allgather([g * factor for g in grads], process_set=process_set)
        return (None,) * 5 + tuple(parts)


def grouped_reducescatter(tensors, name=None, compression=Compression.none, op=Average,
                          process_set=global_process_set, prescale_factor=1.0,
                          postscale_factor=1.0):
    """Reduces several tensors, which run together, and returns this rank's shares."""
    small, contexts = zip(*(compression.compress(t) for t in tensors)) if tensors else ((), ())
    if torch.is_grad_enabled() and any(t.requires_grad for t in small):
        parts = _GroupedReducescatter.apply(name, op, process_set, prescale_factor,
                                            postscale_factor, *small)
    else:
        parts = grouped_reducescatter_async(small, name, op, process_set, prescale_factor,
                                            postscale_factor).wait()
    return [compression.decompress(t, ctx) for t, ctx in zip(parts, contexts)]


def join(device=-1):
    """Reports that this rank has no more data. Returns the last rank that joined."""
    return core.join()


def barrier(process_set=global_process_set):
    """Waits until all ranks of the set have called it."""
    core.barrier(process_set)
