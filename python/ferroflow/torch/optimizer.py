"""An optimizer that averages gradients over all ranks while the backward pass runs."""

import contextlib
import warnings

import torch

from ferroflow._hvd import core
from ferroflow._hvd.core import global_process_set

from . import mpi_ops
from .compression import Compression


class _DistributedOptimizer:
    """Mixed into the class of the optimizer that is wrapped."""

    def _hvd_start(self, named_parameters, compression, backward_passes_per_step, op,
                   gradient_predivide_factor, groups, sparse_as_dense, process_set):
        self._compression = compression
        self._op = op
        self._predivide = gradient_predivide_factor
        self._sparse_as_dense = sparse_as_dense
        self.process_set = process_set
        self.backward_passes_per_step = backward_passes_per_step
        self._parameter_names = _parameter_names(self, named_parameters)
        self._handles = {}
        self._passes = {}
        self._synchronized = False
        self._should_synchronize = True
        self._groups, self._group_of, self._ready = [], {}, {}
        self._set_groups(groups)
        if not core.is_alone() and process_set.included():
            self._register_hooks()

    def _set_groups(self, groups):
        all_params = [p for g in self.param_groups for p in g["params"] if p.requires_grad]
        if groups is None:
            return
        if isinstance(groups, int):
            # Slices of nearly equal numbers of parameters.
            size, rest = divmod(len(all_params), groups)
            at, chosen = 0, []
            for i in range(groups):
                end = at + size + (i < rest)
                chosen.append(all_params[at:end])
                at = end
        else:
            known = {id(p) for p in all_params}
            chosen = [[p for p in g if id(p) in known] for g in groups]
        for i, members in enumerate(m for m in chosen if m):
            self._groups.append(members)
            for p in members:
                self._group_of[p] = i

    def _register_hooks(self):
        for group in self.param_groups:
            for p in group["params"]:
                if p.requires_grad:
                    self._passes[p] = self.backward_passes_per_step
                    # A parameter belongs to the optimizer that was made last.
                    earlier = getattr(p, "_ferroflow_hook", None)
                    if earlier is not None:
                        earlier.remove()
                    p._ferroflow_hook = p.register_post_accumulate_grad_hook(self._gradient_ready)

    def _gradient_ready(self, p):
        if p in self._handles and self._handles[p][0] is not None:
            if self._passes[p] <= 0:
                raise AssertionError(
                    "gradients were computed more than backward_passes_per_step times before "
                    "step(); increase backward_passes_per_step to accumulate gradients")
        self._passes[p] -= 1
        if self._passes[p] == 0:
            self._submit(p)

    def _factors(self):
        """The operation, and the factors before and after it."""
        if self._op != core.Average:
            return self._op, 1.0, 1.0
        return self._op, 1.0 / self._predivide, self._predivide

    def _submit(self, p):
        """Starts the reduction of a gradient, or of its group if that is complete."""
        at = self._group_of.get(p)
        if at is None:
            self._handles[p] = self._start(p)
            return
        ready = self._ready.setdefault(at, set())
        ready.add(p)
        members = self._groups[at]
        if len(ready) == len(members):
            self._ready[at] = set()
            self._start_group(at, members)

    def _start_group(self, at, members):
        op, before, after = self._factors()
        small, contexts = [], []
        for p in members:
            if p.grad is None:
                p.grad = p.data.new_zeros(p.shape)
            t, ctx = self._compression.compress(p.grad)
            small.append(t)
            contexts.append(ctx)
        handle = mpi_ops.grouped_allreduce_async_(
            small, name=f"gradients.group.{at}", op=op, prescale_factor=before,
            postscale_factor=after, process_set=self.process_set)
        for i, (p, ctx) in enumerate(zip(members, contexts)):
            self._handles[p] = (_Nth(handle, i), ctx)

    def _start(self, p):
        if p.grad is None:
            p.grad = p.data.new_zeros(p.shape)
        name, op, before, after = self._parameter_names[p], *self._factors()
        grad = p.grad
        if grad.is_sparse:
            if not self._sparse_as_dense:
                handle = mpi_ops.sparse_allreduce_async(grad, f"gradient.{name}", op,
                                                        self.process_set)
                return handle, None
            grad = grad.to_dense()
        small, ctx = self._compression.compress(grad)
        handle = mpi_ops.allreduce_async_(
            small, name=f"gradient.{name}", op=op, prescale_factor=before, postscale_factor=after,
            process_set=self.process_set)
        return handle, ctx

    def synchronize(self):
        """Waits for all gradients. `step()` does it, unless `skip_synchronize()` is used."""
        if not self.process_set.included():
            self._synchronized = True
            return
        if not core.is_alone():
            # Gradients that this rank did not compute, which other ranks may have.
            for group in self.param_groups:
                for p in group["params"]:
                    if p.requires_grad and p not in self._handles and p not in self._ready.get(
                            self._group_of.get(p), ()):
                        self._submit(p)
            for at, ready in list(self._ready.items()):
                if ready:
                    self._ready[at] = set()
                    self._start_group(at, self._groups[at])
        for p, (handle, ctx) in self._handles.items():
            reduced = mpi_ops.synchronize(handle)
            self._passes[p] = self.backward_passes_per_step
            grad = self._compression.decompress(reduced, ctx)
            if p.grad.is_sparse:
                p.grad = grad if grad.is_sparse else grad.to_sparse()
            elif grad is not p.grad:
                p.grad.copy_(grad)
        self._handles.clear()
        self._synchronized = True

    @contextlib.contextmanager
    def skip_synchronize(self):
        """Within it, `step()` does not synchronize: call `synchronize()` before."""
        self._should_synchronize = False
        try:
            yield
        finally:
            self._should_synchronize = True

    def step(self, closure=None):
        if self._should_synchronize:
            if self._synchronized:
                warnings.warn("optimizer.step() called without optimizer.skip_synchronize() after "
                              "optimizer.synchronize(): the gradients are reduced twice")
            self.synchronize()
        self._synchronized = False
        return super().step(closure)

    def load_state_dict(self, *args, **kwargs):
        """Loads the state of the wrapped optimizer. Reductions of older gradients are forgotten."""
        self._handles.clear()
        self._ready.clear()
        self._synchronized = False
        self._should_synchronize = True
        self.set_backward_passes_per_step(self.backward_passes_per_step)
        return super().load_state_dict(*args, **kwargs)

    def zero_grad(self, *args, **kwargs):
        if self._handles:
            raise AssertionError("zero_grad() was called after backward() but before step() or "
                                 "synchronize(); gradients are still being reduced")
        return super().zero_grad(*args, **kwargs)

    def set_backward_passes_per_step(self, passes):
        """Changes the number of backward passes between steps."""
        self.backward_passes_per_step = passes
        for p in self._passes:
            self._passes[p] = passes


class _Nth:
    """One result of a grouped reduction."""

    def __init__(self, handle, index):
        self._handle, self._index = handle, index

    def poll(self):
        return self._handle.poll()

    def wait(self, timeout=None):
        return self._handle.wait(timeout)[self._index]


class _AdasumOptimizer:
    """Combines the changes that the wrapped optimizer makes, instead of gradients, by Adasum."""

    def _hvd_start(self, named_parameters, compression, backward_passes_per_step, process_set):
        self._compression = compression
        self.process_set = process_set
        self.backward_passes_per_step = backward_passes_per_step
        self._parameter_names = _parameter_names(self, named_parameters)

    def synchronize(self):
        """Does nothing: the changes are combined in `step()`."""

    @contextlib.contextmanager
    def skip_synchronize(self):
        raise AssertionError("skip_synchronize() does not work with Adasum")
        yield

    def step(self, closure=None):
        params = [p for g in self.param_groups for p in g["params"] if p.requires_grad]
        before = [p.detach().clone() for p in params]
        loss = super().step(closure)
        if not core.is_alone() and self.process_set.included():
            small, contexts = [], []
            for p, old in zip(params, before):
                t, ctx = self._compression.compress(p.detach() - old)
                small.append(t)
                contexts.append(ctx)
            handles = [mpi_ops.allreduce_async_(t, name=f"delta.{self._parameter_names[p]}",
                                                op=core.Adasum, process_set=self.process_set)
                       for p, t in zip(params, small)]
            with torch.no_grad():
                for p, old, handle, ctx in zip(params, before, handles, contexts):
                    delta = self._compression.decompress(mpi_ops.synchronize(handle), ctx)
                    p.copy_(old + delta)
        return loss


def _parameter_names(optimizer, named_parameters):
    """The name of each parameter. All ranks give the same names."""
    everything = [p for g in optimizer.param_groups for p in g["params"]]
    if named_parameters is None:
        return {p: f"allreduce.noname.{i}.{j}"
                for i, g in enumerate(optimizer.param_groups) for j, p in enumerate(g["params"])}
    named = list(named_parameters)
    if any(not isinstance(item, tuple) for item in named):
        raise ValueError("named_parameters should be the result of model.named_parameters()")
    names = [name for name, _ in named]
    doubles = sorted({n for n in names if names.count(n) > 1})
    if doubles:
        raise ValueError(f"parameter names in named_parameters must be unique, these are not: "
                         f"{', '.join(doubles)}")
    found = {p: name for name, p in named}
    if any(p not in found for p in everything):
        raise ValueError("named_parameters was given, but one or more parameters of the optimizer "
                         "are not named; name all of them")
    return found


def _check_groups(groups):
    if groups is None or isinstance(groups, int) and groups > 0:
        return
    if not isinstance(groups, (list, tuple)):
        raise ValueError(f"groups should be a positive number or lists of parameters: {groups!r}")
    members = [p for group in groups for p in group]
    if not all(isinstance(p, torch.Tensor) for p in members):
        raise ValueError("groups must consist of torch tensors")
    if len({id(p) for p in members}) < len(members):
        raise ValueError("a parameter can only appear once in groups")


def DistributedOptimizer(optimizer, named_parameters=None, compression=Compression.none,
                         backward_passes_per_step=1, op=core.Average,
                         gradient_predivide_factor=1.0, num_groups=0, groups=None,
                         sparse_as_dense=False, process_set=global_process_set):
    """Wraps an optimizer, so that it averages gradients over all ranks before each step.

    Each gradient is reduced as soon as it is computed, while the backward pass goes on.
    Before that, `backward_passes_per_step` gradients are summed, as torch does; divide the loss for
    their average. `groups` (a number, or lists of parameters) reduces gradients together.
    """
    if gradient_predivide_factor != 1.0 and op != core.Average:
        raise ValueError("gradient_predivide_factor needs op == Average")
    if backward_passes_per_step <= 0:
        raise ValueError("backward_passes_per_step must be greater than 0")
    if num_groups and groups is None:
        groups = num_groups
    _check_groups(groups)
    base = _AdasumOptimizer if op == core.Adasum and not core.is_alone() else _DistributedOptimizer
    cls = type(optimizer.__class__.__name__, (base, optimizer.__class__), {})
    made = cls.__new__(cls)
    # The wrapped optimizer's state is shared: schedulers and state_dict() see the same.
    made.__dict__.update(optimizer.__dict__)
    if base is _AdasumOptimizer:
        made._hvd_start(named_parameters, compression, backward_passes_per_step, process_set)
    else:
        made._hvd_start(named_parameters, compression, backward_passes_per_step, op,
                        gradient_predivide_factor, groups, sparse_as_dense, process_set)
    return made
