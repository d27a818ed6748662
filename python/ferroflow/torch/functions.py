"""Broadcast of parameters, optimizer states and objects."""

import torch

from ferroflow._hvd import arrays
from ferroflow._hvd.core import global_process_set

from . import mpi_ops


def broadcast_parameters(params, root_rank, process_set=global_process_set):
    """Copies parameters from rank `root_rank` to all ranks, in place.

    `params` is a `state_dict()`, or what `named_parameters()` or `parameters()` returns.
    """
    if isinstance(params, dict):
        named = sorted(params.items())
    else:
        try:
            named = [p if isinstance(p, tuple) else (i, p) for i, p in enumerate(params)]
        except TypeError:
            named = [("params", params)]
        wrong = [type(p).__name__ for _, p in named if not isinstance(p, torch.Tensor)]
        if wrong:
            raise ValueError(f"broadcast_parameters needs parameters, not {wrong[0]}")
    handles = []
    for name, tensor in named:
        if not isinstance(tensor, torch.Tensor):
            continue
        handles.append(mpi_ops.broadcast_async_(tensor, root_rank, f"parameter.{name}",
                                                process_set))
    for handle in handles:
        mpi_ops.synchronize(handle)


def broadcast_optimizer_state(optimizer, root_rank, model=None, process_set=global_process_set):
    """Copies the state of an optimizer from rank `root_rank` to all ranks."""
    if isinstance(optimizer, torch.optim.LBFGS):
        raise ValueError("cannot broadcast the state of torch.optim.LBFGS")
    # As after a call of Horovod's function, gradients exist.
    for group in optimizer.param_groups:
        for p in group["params"]:
            if p.requires_grad and p.grad is None:
                p.grad = torch.zeros_like(p)
    # The tensors of the state travel as tensors, the rest as an object.
    mine = optimizer.state_dict()
    tensors, plain = {}, {}
    if mpi_ops.rank() == root_rank:
        for pid, state in mine["state"].items():
            plain[pid] = {}
            for key, value in state.items():
                if isinstance(value, torch.Tensor):
                    tensors[(pid, key)] = value
                else:
                    plain[pid][key] = value
        heads = {at: (tuple(t.shape), t.dtype) for at, t in tensors.items()}
        described = (plain, heads, mine["param_groups"])
    else:
        described = None
    plain, heads, groups = broadcast_object(described, root_rank, "optimizer_state", process_set)
    handles, values = [], {}
    for (pid, key), (shape, dtype) in heads.items():
        value = tensors.get((pid, key))
        if value is None:
            old = mine["state"].get(pid, {}).get(key)
            fits = isinstance(old, torch.Tensor) and old.shape == shape and old.dtype == dtype
            value = old if fits else torch.empty(shape, dtype=dtype)
        values[(pid, key)] = value
        handles.append(mpi_ops.broadcast_async_(value, root_rank,
                                                f"optimizer_state.{pid}.{key}", process_set))
    for handle in handles:
        mpi_ops.synchronize(handle)
    if mpi_ops.rank() == root_rank:
        return
    state = {pid: dict(values_of) for pid, values_of in plain.items()}
    for (pid, key), value in values.items():
        state.setdefault(pid, {})[key] = value
    optimizer.load_state_dict({"state": state, "param_groups": groups})


def broadcast_object(obj, root_rank=0, name=None, process_set=global_process_set):
    """Returns the object of rank `root_rank`, which is pickled, on all ranks."""
    return arrays.broadcast_object(obj, root_rank, name, process_set)


def broadcast_object_fn(root_rank=0, name=None, process_set=global_process_set):
    """A function that calls `broadcast_object` with these arguments."""
    def fn(obj):
        return broadcast_object(obj, root_rank, name, process_set)
    return fn


def allgather_object(obj, name=None, process_set=global_process_set):
    """Returns a list of the objects of all ranks, which are pickled."""
    return arrays.allgather_object(obj, name, process_set)
