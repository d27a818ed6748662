"""Collectives for JAX, inside and outside `jit`: `import ferroflow.jax as hvd`.

Inside `jit` a collective is one call of XLA's foreign-function interface, which runs while other
parts of the program go on. All ranks must trace the same programs in the same order, and use
arguments of the same shapes.
"""

import ctypes
import functools
import os
import re

import jax
import jax.numpy as jnp
import numpy as np

from ferroflow._ferroflow import reduce as _reduce
from ferroflow._hvd import arrays, core
from ferroflow._hvd.arrays import allgather_object, broadcast_object  # noqa: F401
from ferroflow._hvd.core import (  # noqa: F401
    Adasum, Average, Max, Min, ProcessSet, Product, Sum, add_process_set, barrier, ccl_built,
    cross_rank, cross_size, cuda_built, ddl_built, get_process_set_ids_and_ranks,
    global_process_set, gloo_built, gloo_enabled, init, is_homogeneous, is_initialized, join,
    local_rank, local_size, mpi_built, mpi_enabled, mpi_threads_supported, nccl_built,
    process_set_included, rank, remove_process_set, rocm_built, shutdown, size, start_timeline,
    stop_timeline)
from ferroflow._hvd.errors import HorovodInternalError, HostsUpdatedInterrupt  # noqa: F401

from . import elastic  # noqa: F401

_TARGET = "ferroflow_collective"


def _interface_version():
    """The minor version of XLA's foreign-function interface, from the header that jaxlib has."""
    path = os.path.join(jax.ffi.include_dir(), "xla", "ffi", "api", "c_api.h")
    with open(path, encoding="utf-8") as header:
        found = re.search(r"#define XLA_FFI_API_MINOR (\d+)", header.read())
    return int(found.group(1)) if found else 0


@functools.cache
def _register():
    new = ctypes.pythonapi.PyCapsule_New
    new.restype = ctypes.py_object
    new.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
    capsule = new(_reduce.jax_handler(_interface_version()), b"xla._CUSTOM_CALL_TARGET", None)
    jax.ffi.register_ffi_target(_TARGET, capsule, platform="cpu")


def _call(kind, tensors, shapes, name, op=core.Sum, root=0, process_set=global_process_set):
    """One call for several tensors, which run together."""
    core._place()
    _register()
    results = [jax.ShapeDtypeStruct(shape, t.dtype) for shape, t in zip(shapes, tensors)]
    call = jax.ffi.ffi_call(_TARGET, results, has_side_effect=True)
    return call(*tensors, kind=np.int64(kind), op=np.int64(op), root=np.int64(root),
                process_set=np.int64(core.set_number(process_set)), name=name)


def _scaled(tensor, factor):
    return tensor if factor == 1.0 else (tensor * factor).astype(tensor.dtype)


@functools.partial(jax.custom_vjp, nondiff_argnums=(1, 2, 3))
def _allreduce(tensors, names, op, process_set):
    # The first name identifies the call: XLA's handler numbers its tensors.
    return tuple(_call(core.ALLREDUCE, tensors, [t.shape for t in tensors], names, op,
                       process_set=process_set))


def _allreduce_forward(tensors, names, op, process_set):
    return _allreduce(tensors, names, op, process_set), None


def _allreduce_backward(names, op, process_set, _, grads):
    if op not in (Average, Sum):
        raise NotImplementedError(
            f"the gradient of an allreduce by {core.OP_NAMES[op]} is not defined; "
            "use Average or Sum")
    return (_allreduce(grads, f"{names}.gradient", op, process_set),)


_allreduce.defvjp(_allreduce_forward, _allreduce_backward)


def grouped_allreduce(tensors, average=None, name=None, op=None, prescale_factor=1.0,
                      postscale_factor=1.0, process_set=global_process_set):
    """Reduces several arrays over all ranks, together."""
    op = core.reduce_op(op, average)
    tensors = tuple(_scaled(jnp.asarray(t), prescale_factor) for t in tensors)
    if not tensors:
        return []
    # Complex numbers travel as pairs of real numbers.
    real = tuple(jnp.stack([t.real, t.imag]) if jnp.iscomplexobj(t) else t for t in tensors)
    reduced = _allreduce(real, core.name_of("jax.allreduce", name, process_set), op, process_set)
    reduced = [jax.lax.complex(r[0], r[1]) if jnp.iscomplexobj(t) else r
               for r, t in zip(reduced, tensors)]
    return [_scaled(t, postscale_factor) for t in reduced]


def allreduce(tensor, average=None, name=None, op=None, prescale_factor=1.0,
              postscale_factor=1.0, process_set=global_process_set):
    """Reduces an array, or all arrays of a tree, over all ranks. The default is the average."""
    leaves, tree = jax.tree_util.tree_flatten(tensor)
    reduced = grouped_allreduce(leaves, average, name, op, prescale_factor, postscale_factor,
                                process_set)
    return jax.tree_util.tree_unflatten(tree, reduced)


def _set_size(process_set):
    return process_set.size()


@functools.partial(jax.custom_vjp, nondiff_argnums=(1, 2))
def _allgather(tensor, name, process_set):
    shape = (tensor.shape[0] * _set_size(process_set),) + tensor.shape[1:]
    return _call(core.ALLGATHER, [tensor], [shape], name, process_set=process_set)[0]


def _allgather_backward(name, process_set, _, grad):
    return (_reducescatter(grad, f"{name}.gradient", Sum, process_set),)


_allgather.defvjp(lambda t, name, s: (_allgather(t, name, s), None), _allgather_backward)


def _by_rows(collective, tensor):
    """Calls a collective that works on rows. Complex numbers travel as pairs of real numbers."""
    if not jnp.iscomplexobj(tensor):
        return collective(tensor)
    pairs = collective(jnp.stack([tensor.real, tensor.imag], axis=-1))
    return jax.lax.complex(pairs[..., 0], pairs[..., 1])


def allgather(tensor, name=None, process_set=global_process_set):
    """Concatenates the arrays of all ranks along the first dimension."""
    tensor = jnp.asarray(tensor)
    tensor = tensor.reshape(1) if tensor.ndim == 0 else tensor
    name = core.name_of("jax.allgather", name, process_set)
    return _by_rows(lambda t: _allgather(t, name, process_set), tensor)


def grouped_allgather(tensors, name=None, process_set=global_process_set):
    """Gathers several arrays."""
    return [allgather(t, f"{name}.{i}" if name else None, process_set)
            for i, t in enumerate(tensors)]


@functools.partial(jax.custom_vjp, nondiff_argnums=(1, 2, 3))
def _reducescatter(tensor, name, op, process_set):
    n, me = _set_size(process_set), process_set.rank()
    rows, rest = divmod(tensor.shape[0], n)
    shape = (rows + (me < rest),) + tensor.shape[1:]
    return _call(core.REDUCESCATTER, [tensor], [shape], name, op, process_set=process_set)[0]


def _reducescatter_backward(name, op, process_set, rows, grad):
    if op not in (Average, Sum):
        raise NotImplementedError("only Sum and Average of reducescatter are differentiable")
    if op == Average:
        grad = grad / _set_size(process_set)
    n = _set_size(process_set)
    if rows % n:
        raise NotImplementedError(
            f"the gradient of reducescatter needs as many rows on each rank; {rows} rows are not "
            f"a multiple of {n}")
    return (_allgather(grad, f"{name}.gradient", process_set),)


_reducescatter.defvjp(
    lambda t, name, op, s: (_reducescatter(t, name, op, s), t.shape[0]), _reducescatter_backward)


def reducescatter(tensor, name=None, op=Average, prescale_factor=1.0, postscale_factor=1.0,
                  process_set=global_process_set):
    """Reduces an array and returns this rank's share of the rows."""
    tensor = _scaled(jnp.asarray(tensor), prescale_factor)
    if tensor.ndim == 0:
        raise ValueError("reducescatter needs a first dimension")
    name, op = core.name_of("jax.reducescatter", name, process_set), core.reduce_op(op)
    reduced = _by_rows(lambda t: _reducescatter(t, name, op, process_set), tensor)
    return _scaled(reduced, postscale_factor)


def grouped_reducescatter(tensors, name=None, op=Average, prescale_factor=1.0,
                          postscale_factor=1.0, process_set=global_process_set):
    """Reduces several arrays and returns this rank's shares of the rows."""
    return [reducescatter(t, f"{name}.{i}" if name else None, op, prescale_factor,
                          postscale_factor, process_set) for i, t in enumerate(tensors)]


@functools.partial(jax.custom_vjp, nondiff_argnums=(1, 2, 3))
def _broadcast(tensors, name, root, process_set):
    return tuple(_call(core.BROADCAST, tensors, [t.shape for t in tensors], name, root=root,
                       process_set=process_set))


def _broadcast_backward(name, root, process_set, _, grads):
    reduced = _allreduce(grads, f"{name}.gradient", Sum, process_set)
    is_root = rank() == root
    return (tuple(g if is_root else jnp.zeros_like(g) for g in reduced),)


_broadcast.defvjp(lambda t, name, r, s: (_broadcast(t, name, r, s), None), _broadcast_backward)


def broadcast(tensor, root_rank=0, name=None, process_set=global_process_set):
    """Returns the array, or the tree of arrays, of rank `root_rank` on all ranks."""
    leaves, tree = jax.tree_util.tree_flatten(tensor)
    leaves = tuple(jnp.asarray(t) for t in leaves)
    if not leaves:
        return tensor
    # Complex numbers travel as pairs of real numbers.
    real = tuple(jnp.stack([t.real, t.imag]) if jnp.iscomplexobj(t) else t for t in leaves)
    name = core.name_of("jax.broadcast", name, process_set)
    sent = _broadcast(real, name, root_rank, process_set)
    sent = [jax.lax.complex(s[0], s[1]) if jnp.iscomplexobj(t) else s
            for s, t in zip(sent, leaves)]
    return jax.tree_util.tree_unflatten(tree, sent)


broadcast_parameters = broadcast


def alltoall(tensor, splits=None, name=None, process_set=global_process_set):
    """Sends `splits[r]` rows to each rank `r`. Not inside `jit`: the result's shape depends on the
    other ranks."""
    if isinstance(tensor, jax.core.Tracer):
        raise NotImplementedError("alltoall does not work inside jit; use it on arrays")
    out = arrays.alltoall(np.asarray(tensor), splits, name, process_set)
    if splits is None:
        return jnp.asarray(out)
    return jnp.asarray(out[0]), jnp.asarray(out[1])


def value_and_grad(fun, argnums=0, has_aux=False, op=Average, process_set=global_process_set):
    """As `jax.value_and_grad`, with value and gradients reduced over all ranks, in one call."""
    local = jax.value_and_grad(fun, argnums, has_aux)
    name = core.name_of("jax.value_and_grad", None, process_set)

    def reduced(*args, **kwargs):
        value, grads = local(*args, **kwargs)
        loss = value[0] if has_aux else value
        loss, grads = allreduce((loss, grads), name=name, op=op, process_set=process_set)
        return ((loss, value[1]) if has_aux else loss), grads

    return reduced


def data_parallel_step(loss, update, op=Average, process_set=global_process_set):
    """A compiled training step: `step(params, state, batch)` returns the new parameters, the new
    state and the loss over the batches of all ranks.

    `loss(params, batch)` is the loss of this rank's batch. `update(grads, state, params)` returns
    the changes of the parameters and the new state, as the optimizers of optax do.
    """
    reduced = value_and_grad(loss, op=op, process_set=process_set)

    @jax.jit
    def step(params, state, batch):
        value, grads = reduced(params, batch)
        changes, state = update(grads, state, params)
        return jax.tree_util.tree_map(lambda p, c: p + c, params, changes), state, value

    return step
