"""The backend `ferroflow` of `torch.distributed`, for tensors on the CPU.

`import ferroflow.torch.distributed` registers it. torch 2.14 and newer find it by its entry point:
`dist.init_process_group("ferroflow")` is then enough.
"""

import os
import socket
import sys
import time
from datetime import timedelta

import torch
import torch.distributed as dist
from torch._C import _distributed_c10d as c10d

from ferroflow._ferroflow import reduce as _reduce
from ferroflow._hvd.core import DTYPE_NUMBERS

from .works import PendingWork, SeveralWorks, uncover_works

_NUMBERS = {
    getattr(torch, name): number
    for name, number in DTYPE_NUMBERS.items() if hasattr(torch, name)
}
# Eight-bit floats and others that are moved but not reduced, by the bytes of a value.
_MOVED = {1: 4, 2: 17, 4: 22, 8: 23, 16: 18}

_SUM, _MEAN, _MIN, _MAX, _PRODUCT = range(5)
_OPS = {"SUM": _SUM, "AVG": _MEAN, "MIN": _MIN, "MAX": _MAX, "PRODUCT": _PRODUCT}
# Types that are reduced as they are.
_PLAIN = {dtype: number for dtype, number in _NUMBERS.items()
          if not dtype.is_complex and dtype != torch.bool}
_BITS = {"BAND": torch.bitwise_and, "BOR": torch.bitwise_or, "BXOR": torch.bitwise_xor}


def _number_of(tensor):
    number = _NUMBERS.get(tensor.dtype)
    return number if number is not None else _MOVED[tensor.element_size()]


def _values(tensor):
    return (tensor.data_ptr(), _number_of(tensor), tensor.numel())


def _check(tensor, what):
    if tensor.device.type != "cpu":
        raise RuntimeError(f"the backend ferroflow moves tensors on the CPU; {what} got one on "
                           f"{tensor.device}. Use backend='cpu:ferroflow,cuda:nccl' for both")
    if tensor.layout is not torch.strided:
        raise RuntimeError(f"{what} of sparse tensors is not supported by the backend ferroflow")


_op_names = {}
# What calls of all_reduce are, for errors, by operation, dtype and shape.
_descriptions = {}
_MOST_DESCRIPTIONS = 1000


def _reduce_name(op):
    """The name of a torch reduce operation, such as SUM."""
    kind = getattr(op, "op", op)
    name = _op_names.get(kind)
    if name is None:
        name = _op_names[kind] = str(kind).rsplit(".", 1)[-1].upper()
    return name


def _own_host():
    """The address at which other ranks reach this host."""
    given = os.environ.get("FERROFLOW_HOST_ADDRESS")
    if given:
        return given
    master = os.environ.get("MASTER_ADDR")
    if not master:
        return "127.0.0.1"
    try:
        family, kind, _, _, address = socket.getaddrinfo(master, 9, type=socket.SOCK_DGRAM)[0]
        with socket.socket(family, kind) as probe:
            # Connecting a datagram socket sends nothing. It chooses the interface.
            probe.connect(address)
            own = probe.getsockname()[0]
    except OSError:
        return "127.0.0.1"
    # A loopback address means that this host is the master's.
    return master if own.startswith("127.") or own == "::1" or own == address[0] else own


_groups = []


def _wait_for(store, key, timeout):
    """The text of a key. An error if a rank of another group is lost during the wait."""
    end, pause = time.monotonic() + timeout, 0.001
    # store.wait() would print a warning whenever its time is up.
    while not store.check([key]):
        for group in _groups:
            cause = group._group.failure()
            if cause:
                raise RuntimeError(cause)
        if time.monotonic() >= end:
            raise RuntimeError(f"rank 0 of the group did not call init_process_group or new_group "
                               f"within {timeout:.0f} s")
        time.sleep(pause)
        pause = min(2 * pause, 0.05)
    return store.get(key).decode()


def _without(*names):
    """A class decorator: what the backend does not support. torch's own answers of a Python backend
    ask it again, without end."""
    def decorate(cls):
        for name in names:
            if isinstance(getattr(c10d.Backend, name, None), property):
                setattr(cls, name, property(lambda self: False))
        return cls
    return decorate


@_without("supports_shrinking", "supports_reconfigure", "supports_window", "supports_abort_hooks",
          "supports_completion_hooks", "_supports_time_estimate")
class ProcessGroupFerroflow(c10d.Backend):
    """The ranks of a torch process group, connected by Ferroflow's collectives."""

    def __init__(self, store, rank, size, timeout=timedelta(minutes=30)):
        super().__init__(rank, size)
        self._store, self._own_rank, self._own_size = store, rank, size
        self._timeout = timeout.total_seconds() if isinstance(timeout, timedelta) else timeout
        self._addresses = {}
        self._sequence = 0
        self._coalescing = None
        bind = "::" if ":" in _own_host() else "0.0.0.0"
        if _own_host() in ("127.0.0.1", "localhost"):
            bind = "127.0.0.1"
        messages = _reduce.GroupListener(bind)
        host = _own_host()
        # A group that is made again after its destruction may find the keys of the first one.
        times = (store.add("ferroflow/times", 1) - 1) // size
        self._keys = f"ferroflow/{times}"
        store.set(f"{self._keys}/messages/{rank}", _joined(host, messages.port))
        listener = None
        if rank == 0:
            listener = _reduce.GroupListener(bind)
            token = os.urandom(16).hex()
            store.set(f"{self._keys}/rank0", f"{_joined(host, listener.port)} {token}")
        address, token = _wait_for(store, f"{self._keys}/rank0", self._timeout).split(" ")
        self._group = _reduce.OrderedGroup.connect(
            rank, size, address, token, self._timeout, self._timeout, listener, messages,
            [g._group for g in _groups])
        _groups.append(self)
        _install_hook()

    # The methods that torch calls on a backend.

    def getBackendName(self):
        return "ferroflow"

    def name(self):
        return "ferroflow"

    @property
    def supports_coalescing(self):
        return True

    @property
    def supports_splitting(self):
        return True

    @property
    def options(self):
        return c10d.Backend.Options("ferroflow", timedelta(seconds=self._timeout))

    def split(self, store, ranks, opts=None):
        """The group of some ranks of this one. None on the other ranks."""
        if self._own_rank not in ranks:
            return None
        timeout = getattr(opts, "_timeout", None) or timedelta(seconds=self._timeout)
        return ProcessGroupFerroflow(store, list(ranks).index(self._own_rank), len(ranks), timeout)

    def _get_sequence_number_for_group(self):
        return self._sequence

    def _set_sequence_number_for_group(self):
        pass

    def set_timeout(self, timeout):
        self._timeout = timeout.total_seconds() if isinstance(timeout, timedelta) else timeout

    _set_default_timeout = set_timeout

    def shutdown(self):
        if self in _groups:
            _groups.remove(self)
        self._group.close()

    def abort(self):
        self._group.abort(f"rank {self._own_rank} aborted the process group")
        self.shutdown()

    def _wait_for_pending_works(self):
        self.barrier().wait()

    # Collectives.

    def _submit(self, kind, what, tensors, result, op=_SUM, root=0, counts=None, finish=None,
                keep=None):
        self._sequence += 1
        work = self._group.submit(kind, what, [_values(t) for t in tensors], (tensors, keep),
                                  op, root, counts)
        if self._coalescing is not None:
            self._coalescing.append((work, finish))
        return PendingWork(work, result, finish, self._timeout)

    def start_coalescing(self):
        self._coalescing = []

    _start_coalescing = start_coalescing

    def end_coalescing(self, *_):
        works, self._coalescing = self._coalescing or [], None

        def finish():
            for _, one in works:
                if one is not None:
                    one()
        return PendingWork(SeveralWorks([w for w, _ in works]), [], finish, self._timeout)

    _end_coalescing = end_coalescing

    def _reduced(self, tensors, name, what):
        """Contiguous real tensors that can be reduced in place, the operation, and what copies the
        results back."""
        for tensor in tensors:
            _check(tensor, what)
        op = _OPS.get(name)
        if op is None:
            raise ValueError(f"the backend ferroflow does not support ReduceOp.{name} in {what}")
        work = []
        for tensor in tensors:
            values = tensor.detach()
            if values.is_complex():
                if op not in (_SUM, _MEAN):
                    raise ValueError(f"ReduceOp.{name} of complex tensors is not supported")
                values = torch.view_as_real(values)
            if values.dtype == torch.bool:
                # A sum of booleans says whether any is true, a product whether all are.
                op = {_SUM: _MAX, _PRODUCT: _MIN}.get(op, op)
                values = values.view(torch.uint8)
            elif values.dtype not in _NUMBERS:
                raise ValueError(f"the backend ferroflow does not reduce {values.dtype}")
            work.append(values if values.is_contiguous() else values.contiguous())

        def copy_back():
            for tensor, values in zip(tensors, work):
                if values.data_ptr() == tensor.data_ptr():
                    continue
                if tensor.is_complex():
                    values = torch.view_as_complex(values)
                elif tensor.dtype == torch.bool:
                    values = values.view(torch.bool)
                tensor.detach().copy_(values)

        is_copied = any(w.data_ptr() != t.data_ptr() for w, t in zip(work, tensors))
        return work, op, copy_back if is_copied else None

    def allreduce(self, tensors, opts=None):
        tensors = tensors if isinstance(tensors, (list, tuple)) else [tensors]
        name = _reduce_name(opts.reduceOp) if opts is not None else "SUM"
        if name in _BITS:
            return self._allreduce_bits(tensors, _BITS[name], name)
        if tensors[0].is_sparse:
            return self._allreduce_sparse(tensors, name)
        tensor, op = tensors[0], _OPS.get(name)
        if len(tensors) == 1 and op is not None and tensor.dtype in _PLAIN and tensor.is_cpu and \
                tensor.layout is torch.strided and tensor.is_contiguous():
            # The usual call, without the copies that the others may need.
            key = name, tensor.dtype, tensor.shape
            what = _descriptions.get(key)
            if what is None:
                if len(_descriptions) >= _MOST_DESCRIPTIONS:
                    _descriptions.clear()
                what = _descriptions[key] = _described("all_reduce", tensors, name)
            return self._submit("allreduce", what, tensors, tensors, op)
        work, op, copy_back = self._reduced(tensors, name, "all_reduce")
        return self._submit("allreduce", _described("all_reduce", tensors, name), work, tensors,
                            op, finish=copy_back, keep=tensors)

    def _allreduce_bits(self, tensors, combine, name):
        gathered = []
        for tensor in tensors:
            _check(tensor, "all_reduce")
            if tensor.is_floating_point() or tensor.is_complex():
                raise ValueError(f"ReduceOp.{name} needs integers, not {tensor.dtype}")
            gathered.append(torch.empty((self._own_size,) + tuple(tensor.shape),
                                        dtype=tensor.dtype))
        works = [self.all_gather_single(out, t) for out, t in zip(gathered, tensors)]

        def finish():
            for tensor, out in zip(tensors, gathered):
                value = out[0]
                for other in out[1:]:
                    value = combine(value, other)
                tensor.detach().copy_(value)
        return PendingWork(SeveralWorks([w._work for w in works]), tensors, finish, self._timeout)

    def _allreduce_sparse(self, tensors, name):
        """All ranks gather indices and values, and add them up."""
        if len(tensors) != 1 or name not in ("SUM", "AVG"):
            raise ValueError("the backend ferroflow reduces one sparse tensor at a time, by SUM or "
                             "AVG")
        mine = tensors[0].detach().coalesce()
        # The ranks have different numbers of values, which all must know first.
        counts = torch.empty(self._own_size, dtype=torch.int64)
        self.all_gather_single(counts, torch.tensor([mine._nnz()])).wait()
        parts, works = [], []
        for rows in (mine.indices().t().contiguous(), mine.values().contiguous()):
            parts.append([torch.empty((c,) + tuple(rows.shape[1:]), dtype=rows.dtype)
                          for c in counts.tolist()])
            works.append(self._gather_uneven(parts[-1], rows))

        def finish():
            for work in works:
                work._completed()
            total = torch.sparse_coo_tensor(torch.cat(parts[0]).t(), torch.cat(parts[1]),
                                            mine.shape, check_invariants=False).coalesce()
            # Not detach(): the number of a sparse tensor's values is not shared.
            with torch.no_grad():
                tensors[0].copy_(total / self._own_size if name == "AVG" else total)
        return PendingWork(SeveralWorks([w._work for w in works]), tensors, finish, self._timeout)

    def allreduce_sparse(self, tensors, opts=None):
        return self.allreduce(tensors, opts)

    def allreduce_coalesced(self, tensors, opts=None):
        return self.allreduce(tensors, opts)

    def broadcast(self, tensors, opts=None):
        tensors = tensors if isinstance(tensors, (list, tuple)) else [tensors]
        root = opts.rootRank if opts is not None else 0
        work, copy_back = _moved(tensors, "broadcast")
        return self._submit("broadcast", _described("broadcast", tensors, f"from rank {root}"),
                            work, tensors, root=root, finish=copy_back, keep=tensors)

    def reduce(self, tensors, opts=None):
        name = _reduce_name(opts.reduceOp) if opts is not None else "SUM"
        root = opts.rootRank if opts is not None else 0
        work, op, copy_back = self._reduced(tensors, name, "reduce")
        if self._own_rank != root:
            copy_back = None
        return self._submit("reduce", _described("reduce", tensors, name), work, tensors, op,
                            root=root, finish=copy_back, keep=tensors)

    def all_gather_single(self, output, input, opts=None):
        _check(output, "all_gather"), _check(input, "all_gather")
        if output.numel() != input.numel() * self._own_size:
            raise ValueError(f"all_gather of {input.numel()} values on {self._own_size} ranks needs "
                             f"an output of {input.numel() * self._own_size} values, not "
                             f"{output.numel()}")
        work, copy_back = _moved([output], "all_gather", reads=False)
        return self._submit("allgather", _described("all_gather", [input]),
                            [work[0], input.detach().contiguous()], [output], finish=copy_back,
                            keep=output)

    _allgather_base = all_gather_single

    def allgather(self, outputs, inputs, opts=None):
        if len(inputs) != 1 or len(outputs) != 1:
            raise ValueError("all_gather takes one input tensor and one list of output tensors")
        outputs, tensor = outputs[0], inputs[0]
        for out in outputs:
            _check(out, "all_gather")
        _check(tensor, "all_gather")
        if len(outputs) != self._own_size:
            raise ValueError(f"all_gather needs {self._own_size} output tensors, not "
                             f"{len(outputs)}")
        if any(out.shape != outputs[0].shape for out in outputs):
            return self._gather_uneven(outputs, tensor)
        return self._gather_list(outputs, tensor)

    def _gather_list(self, outputs, tensor):
        flat = torch.empty(tensor.numel() * self._own_size, dtype=tensor.dtype)

        def finish():
            for out, part in zip(outputs, flat.chunk(self._own_size) if flat.numel() else ()):
                out.detach().copy_(part.view(tensor.shape).view_as(out))
        return self._submit("allgather", _described("all_gather", [tensor]),
                            [flat, tensor.detach().contiguous()], outputs, finish=finish)

    def _gather_uneven(self, outputs, tensor):
        """Every rank sends its tensor to all others."""
        counts = [o.numel() for o in outputs]
        mine = tensor.detach().contiguous().view(-1)
        flat = torch.empty(sum(counts), dtype=tensor.dtype)
        sent = mine.repeat(self._own_size)

        def finish():
            for out, part in zip(outputs, flat.split(counts)):
                out.detach().copy_(part.view_as(out))
        return self._submit("alltoall", _described("all_gather", [tensor]), [flat, sent], outputs,
                            counts=([mine.numel()] * self._own_size, counts), finish=finish)

    def allgather_coalesced(self, output_lists, inputs, opts=None):
        works = []
        for i, tensor in enumerate(inputs):
            works.append(self._gather_list([row[i] for row in output_lists], tensor))
        return self._all(works, output_lists)

    def _all(self, works, result):
        def finish():
            for work in works:
                work._completed()
        return PendingWork(SeveralWorks([w._work for w in works]), result, finish, self._timeout)

    def all_gather_single_coalesced(self, outputs, inputs, opts=None):
        return self._all([self.all_gather_single(o, i) for o, i in zip(outputs, inputs)], outputs)

    allgather_into_tensor_coalesced = all_gather_single_coalesced

    def reduce_scatter_single(self, output, input, opts=None):
        name = _reduce_name(opts.reduceOp) if opts is not None else "SUM"
        _check(output, "reduce_scatter")
        if input.numel() != output.numel() * self._own_size:
            raise ValueError(f"reduce_scatter of {input.numel()} values on {self._own_size} ranks "
                             f"needs an output of {input.numel() // self._own_size} values, not "
                             f"{output.numel()}")
        [values], op, _ = self._reduced([input], name, "reduce_scatter")
        [work], copy_back = _moved([output], "reduce_scatter", reads=False)
        target = torch.view_as_real(work) if work.is_complex() else work
        target = target.view(torch.uint8) if target.dtype == torch.bool else target
        return self._submit("reduce_scatter", _described("reduce_scatter", [input], name),
                            [target, values], [output], op, finish=copy_back, keep=(output, input))

    _reduce_scatter_base = reduce_scatter_single

    def reduce_scatter(self, outputs, input_lists, opts=None):
        if len(outputs) != 1 or len(input_lists) != 1:
            raise ValueError("reduce_scatter takes one output tensor and one list of inputs")
        output, inputs = outputs[0], input_lists[0]
        if len(inputs) != self._own_size:
            raise ValueError(f"reduce_scatter needs {self._own_size} input tensors, not "
                             f"{len(inputs)}")
        if any(t.numel() != output.numel() for t in inputs):
            return self._reduce_scatter_uneven(output, inputs, opts)
        flat = torch.cat([t.detach().reshape(-1) for t in inputs])
        return self.reduce_scatter_single(output, flat, opts)

    def _reduce_scatter_uneven(self, output, inputs, opts):
        flat = torch.cat([t.detach().reshape(-1) for t in inputs])
        work = self.allreduce([flat], opts)
        start = sum(t.numel() for t in inputs[:self._own_rank])

        def finish():
            work._completed()
            output.detach().copy_(flat[start:start + output.numel()].view_as(output))
        return PendingWork(work._work, [output], finish, self._timeout)

    def reduce_scatter_single_coalesced(self, outputs, inputs, opts=None):
        works = [self.reduce_scatter_single(o, i, opts) for o, i in zip(outputs, inputs)]
        return self._all(works, outputs)

    reduce_scatter_tensor_coalesced = reduce_scatter_single_coalesced

    def all_to_all_single(self, output, input, output_splits=None, input_splits=None, opts=None):
        _check(output, "all_to_all"), _check(input, "all_to_all")
        to = self._splits(input, input_splits, "input")
        from_ = self._splits(output, output_splits, "output")
        [work], copy_back = _moved([output], "all_to_all", reads=False)
        return self._submit("alltoall", _described("all_to_all", [input]),
                            [work, input.detach().contiguous()], [output], counts=(to, from_),
                            finish=copy_back, keep=output)

    alltoall_base = all_to_all_single

    def _splits(self, tensor, splits, which):
        rows = tensor.shape[0] if tensor.dim() else 0
        each = tensor.numel() // rows if rows else 0
        if not splits:
            if rows % self._own_size:
                raise ValueError(f"{rows} rows of the {which} cannot be split evenly over "
                                 f"{self._own_size} ranks")
            return [rows // self._own_size * each] * self._own_size
        if len(splits) != self._own_size or sum(splits) != rows:
            raise ValueError(f"the {which} splits {list(splits)} do not divide {rows} rows over "
                             f"{self._own_size} ranks")
        return [s * each for s in splits]

    def alltoall(self, outputs, inputs, opts=None):
        for tensor in list(outputs) + list(inputs):
            _check(tensor, "all_to_all")
        counts = ([t.numel() for t in inputs], [t.numel() for t in outputs])
        sent = torch.cat([t.detach().reshape(-1) for t in inputs])
        flat = torch.empty(sum(counts[1]), dtype=sent.dtype)

        def finish():
            for out, part in zip(outputs, flat.split(counts[1])):
                out.detach().copy_(part.view_as(out))
        return self._submit("alltoall", _described("all_to_all", inputs), [flat, sent], outputs,
                            counts=counts, finish=finish)

    def gather(self, outputs, inputs, opts=None):
        tensor, root = inputs[0], opts.rootRank if opts is not None else 0
        _check(tensor, "gather")
        size, mine = self._own_size, tensor.detach().contiguous().view(-1)
        is_root = self._own_rank == root
        to = [mine.numel() if r == root else 0 for r in range(size)]
        outs = outputs[0] if is_root and outputs else []
        if is_root and len(outs) != size:
            raise ValueError(f"gather needs {size} output tensors on rank {root}, not {len(outs)}")
        from_ = [o.numel() for o in outs] if is_root else [0] * size
        flat = torch.empty(sum(from_), dtype=tensor.dtype)

        def finish():
            for out, part in zip(outs, flat.split(from_) if is_root else ()):
                out.detach().copy_(part.view_as(out))
        return self._submit("alltoall", _described("gather", [tensor], f"to rank {root}"),
                            [flat, mine], outs, counts=(to, from_), finish=finish)

    def scatter(self, outputs, inputs, opts=None):
        output, root = outputs[0], opts.rootRank if opts is not None else 0
        _check(output, "scatter")
        size, is_root = self._own_size, self._own_rank == root
        ins = inputs[0] if is_root and inputs else []
        if is_root and len(ins) != size:
            raise ValueError(f"scatter needs {size} input tensors on rank {root}, not {len(ins)}")
        sent = torch.cat([t.detach().reshape(-1) for t in ins]) if ins else \
            torch.empty(0, dtype=output.dtype)
        to = [t.numel() for t in ins] if is_root else [0] * size
        from_ = [output.numel() if r == root else 0 for r in range(size)]
        [work], copy_back = _moved([output], "scatter", reads=False)
        return self._submit("alltoall", _described("scatter", [output], f"from rank {root}"),
                            [work, sent], [output], counts=(to, from_), finish=copy_back,
                            keep=output)

    def barrier(self, opts=None):
        return self._submit("barrier", "barrier", [], [])

    def monitored_barrier(self, opts=None, wait_all_ranks=False, *_, **options):
        """A barrier that names the ranks that are missing when the time is up."""
        timeout = getattr(opts, "timeout", None)
        timeout = timeout if timeout is not None else options.get("timeout")
        # A negative time means that the program gave none.
        is_given = isinstance(timeout, timedelta) and timeout.total_seconds() >= 0
        limit = timeout.total_seconds() if is_given else self._timeout
        self._monitored = getattr(self, "_monitored", 0) + 1
        key = f"{self._keys}/barrier/{self._monitored}"
        self._store.set(f"{key}/{self._own_rank}", "here")
        # The texts are gloo's.
        if self._own_rank == 0:
            error = self._missing(key, limit, wait_all_ranks)
            self._store.set(f"{key}/result", error)
        else:
            try:
                self._store.wait([f"{key}/result"], timedelta(seconds=limit + 5))
                error = self._store.get(f"{key}/result").decode()
            except RuntimeError:
                error = self._group.failure() or f"rank 0 did not answer within {limit:g} s"
            if error:
                error = f"Rank {self._own_rank} successfully reached monitoredBarrier, but " \
                        f"received errors while waiting for send/recv from rank 0: {error}"
        if error:
            raise RuntimeError(f"monitored_barrier: {error}")

    monitoredBarrier = monitored_barrier

    def _missing(self, key, limit, wait_all_ranks):
        """The error that names the ranks that are missing, or nothing."""
        if limit <= 0 and self._own_size > 1:
            return f"Rank 0 timed out in monitoredBarrier after {limit * 1000:.0f} ms"
        end, missing = time.monotonic() + limit, []
        for rank in range(1, self._own_size):
            left = max(end - time.monotonic(), 0.001)
            while True:
                try:
                    self._store.wait([f"{key}/{rank}"], timedelta(seconds=min(left, 0.5)))
                    break
                except RuntimeError:
                    left = end - time.monotonic()
                    if left <= 0 or self._group.failure():
                        missing.append(str(rank))
                        break
            if missing and not wait_all_ranks:
                break
        if not missing:
            return ""
        ranks = f"Ranks {', '.join(missing)}" if wait_all_ranks else f"Rank {missing[0]}"
        return f"{ranks} failed to pass monitoredBarrier in {limit * 1000:.0f} ms"

    # Messages.

    def _address(self, rank):
        if rank not in self._addresses:
            self._addresses[rank] = self._store.get(f"{self._keys}/messages/{rank}").decode()
        return self._addresses[rank]

    def send(self, tensors, dst, tag=0):
        tensor = tensors[0]
        _check(tensor, "send")
        values = tensor.detach().contiguous()
        work = self._group.send(_values(values), values, dst, self._address(dst), tag)
        if self._coalescing is not None:
            self._coalescing.append((work, None))
        return PendingWork(work, tensors, None, self._timeout)

    def recv(self, tensors, src, tag=0):
        return self._receive(tensors, (src, self._address(src)), tag)

    def recv_anysource(self, tensors, tag=0):
        return self._receive(tensors, None, tag)

    recvAnysource = recv_anysource

    def _receive(self, tensors, source, tag):
        [values], copy_back = _moved([tensors[0]], "recv", reads=False)
        work = self._group.receive(_values(values), (values, tensors), tag, source)
        if self._coalescing is not None:
            self._coalescing.append((work, copy_back))
        return PendingWork(work, tensors, copy_back, self._timeout)


def _joined(host, port):
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _described(what, tensors, more=None):
    shapes = ", ".join(f"{str(t.dtype)[6:]}{list(t.shape)}" for t in tensors[:3])
    return f"{what}{f' ({more})' if more else ''} of {shapes}"


def _moved(tensors, what, reads=True):
    """Contiguous tensors for values that are moved, and what copies the results back."""
    work = []
    for tensor in tensors:
        _check(tensor, what)
        values = tensor.detach()
        if not values.is_contiguous():
            values = values.contiguous() if reads else torch.empty(values.shape, dtype=values.dtype)
        work.append(values)
    if all(w.data_ptr() == t.data_ptr() for w, t in zip(work, tensors)):
        return work, None

    def copy_back():
        for tensor, values in zip(tensors, work):
            if values.data_ptr() != tensor.data_ptr():
                tensor.detach().copy_(values)
    return work, copy_back


_hooked = False


def _install_hook():
    """An uncaught exception fails the groups of this rank at once, with its text."""
    global _hooked
    if _hooked:
        return
    _hooked = True
    before = sys.excepthook

    def hook(kind, value, trace):
        if not issubclass(kind, KeyboardInterrupt):
            for group in list(_groups):
                text = f"rank {group._own_rank} raised {kind.__name__}: {value}"
                group._group.abort(text[:2000])
        before(kind, value, trace)

    sys.excepthook = hook


def _create(store, rank, size, timeout):
    return ProcessGroupFerroflow(store, rank, size, timeout)


def register():
    """Makes the backend known to torch. Calling it again does nothing."""
    if "FERROFLOW" not in getattr(dist.Backend, "_plugins", {}):
        dist.Backend.register_backend("ferroflow", _create, devices=["cpu"])
        uncover_works()


register()
