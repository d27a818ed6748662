"""Collectives on TensorFlow tensors: eagerly, in `tf.function` and in graphs of v1 sessions.

Each tensor is submitted by one op, which returns at once, and waited for by another. They are
registered with the loaded TensorFlow when this module is imported. XLA cannot compile them.
"""

import ctypes
import os
import re

import tensorflow as tf
from tensorflow.python.eager import context, execute
from tensorflow.python.framework import auto_control_deps, op_def_library, ops

from ferroflow._ferroflow import reduce as _reduce
from ferroflow._hvd import core
from ferroflow._hvd.core import (  # noqa: F401 (Horovod's names)
    Adasum, Average, Max, Min, ProcessSet, Product, Sum, add_process_set, ccl_built, cross_rank,
    cross_size, cuda_built, ddl_built, global_process_set, gloo_built, gloo_enabled, init,
    is_homogeneous, is_initialized, local_rank, local_size, mpi_built, mpi_enabled,
    mpi_threads_supported, nccl_built, rank, remove_process_set, rocm_built, shutdown, size,
    start_timeline, stop_timeline)

from . import wait_order


def _register():
    names = _reduce.tensorflow_functions()
    folder = tf.sysconfig.get_lib()
    found = {}
    for file in ("libtensorflow_framework.so.2", "libtensorflow_cc.so.2"):
        path = os.path.join(folder, file)
        if not os.path.exists(path):
            continue
        library = ctypes.CDLL(path)
        for name in names:
            if name not in found and hasattr(library, name):
                found[name] = ctypes.cast(getattr(library, name), ctypes.c_void_p).value
    _reduce.register_tensorflow_ops(found)
    # Submissions need not run in the order of the program, so they overlap with the rest of it.
    known = getattr(auto_control_deps, "ASYNC_STATEFUL_OPS", None)
    if known is not None:
        auto_control_deps.ASYNC_STATEFUL_OPS = frozenset(known) | {"FerroflowSubmit"}


_register()


def _refuse_xla():
    from tensorflow.python.ops import control_flow_util
    graph = ops.get_default_graph()
    if not context.executing_eagerly() and control_flow_util.GraphOrParentsInXlaContext(graph):
        raise NotImplementedError(
            "collectives do not work inside jit_compile=True: XLA cannot compile ops from outside "
            "TensorFlow. Compile the model without the optimizer, or leave jit_compile out")


def _submit(tensors, kind, name, op=core.Sum, root=0, process_set=global_process_set, splits=None,
            prescale=1.0, postscale=1.0):
    """Submits tensors, which run together. Returns the number to wait for."""
    core._place()
    _refuse_xla()
    if splits is None:
        splits = tf.zeros([0], tf.int32)
    number = core.set_number(process_set)
    with tf.device("CPU:0"):
        if context.executing_eagerly():
            ctx = context.context()
            ctx.ensure_initialized()
            attrs = ("T", [t.dtype.as_datatype_enum for t in tensors], "kind", kind, "op", op,
                     "root", root, "process_set", number, "tensor_name", name.encode(),
                     "prescale", prescale, "postscale", postscale)
            return execute.execute(b"FerroflowSubmit", 1 + len(tensors),
                                   list(tensors) + [splits], attrs, ctx)[0]
        _, _, made, _ = op_def_library._apply_op_helper(
            "FerroflowSubmit", tensors=list(tensors), splits=splits, kind=kind, op=op, root=root,
            process_set=number, tensor_name=name, prescale=prescale, postscale=postscale,
            name=_op_name("FerroflowSubmit", name))
        return made.outputs[0]


def _wait(handles, dtypes, is_alone=True):
    """The tensors of these numbers, and the counts of gathers. `is_alone` is false for the one wait of
    an optimizer."""
    with tf.device("CPU:0"):
        if context.executing_eagerly():
            ctx = context.context()
            attrs = ("N", len(handles), "T", [d.as_datatype_enum for d in dtypes])
            results = execute.execute(b"FerroflowWait", len(dtypes) + 1, list(handles), attrs, ctx)
        else:
            with tf.control_dependencies(wait_order.earlier(handles) if is_alone else []):
                _, _, made, _ = op_def_library._apply_op_helper(
                    "FerroflowWait", handles=list(handles), T=list(dtypes), name="FerroflowWait")
            if is_alone:
                wait_order.added(made)
            results = made.outputs
    return list(results[:-1]), results[-1]


def _op_name(kind, name):
    clean = re.sub(r"[^A-Za-z0-9_.\-/]", "_", name)
    return f"{kind}_{clean}"


def _tensor_name(kind, tensor, name, process_set):
    """Names in graphs follow from the tensor, so all ranks agree even if their order differs."""
    if name is not None:
        return f"{kind}.{name}"
    if not context.executing_eagerly():
        scope = ops.get_default_graph()
        return scope.unique_name(f"{kind}.{tensor.op.name}", mark_as_used=True)
    return core.name_of(kind, None, process_set)


def _gradient_name(name):
    """The name of a gradient. A graph may have several gradients of one op, which run at once."""
    name = f"{name}.gradient"
    if context.executing_eagerly():
        return name
    return ops.get_default_graph().unique_name(name, mark_as_used=True)


def _as_tensor(value):
    return tf.convert_to_tensor(value)


def _reducible(tensor):
    """Complex numbers as pairs of real numbers."""
    if tensor.dtype.is_complex:
        return tf.stack([tf.math.real(tensor), tf.math.imag(tensor)])
    return tensor


def _restored(value, like):
    if like.dtype.is_complex:
        value = tf.complex(value[0], value[1])
    if not context.executing_eagerly():
        value.set_shape(like.shape)
    return value


def _allreduce_all(tensors, names, op, prescale, postscale, process_set, together=False):
    """Reduces tensors: one submission for each, or one for all, and one wait."""
    sent = [_reducible(t) for t in tensors]
    if together:
        handles = [_submit(sent, core.ALLREDUCE, names[0], op, process_set=process_set,
                           prescale=prescale, postscale=postscale)]
    else:
        handles = [_submit([t], core.ALLREDUCE, n, op, process_set=process_set, prescale=prescale,
                           postscale=postscale) for t, n in zip(sent, names)]
    results, _ = _wait(handles, [t.dtype for t in sent])
    return [_restored(r, t) for r, t in zip(results, tensors)]


def _allreduce(tensor, name=None, op=Sum, prescale_factor=1.0, postscale_factor=1.0,
               process_set=global_process_set):
    """Reduces a tensor by an operation, without compression."""
    tensor = _as_tensor(tensor)
    name = _tensor_name("allreduce", tensor, name, process_set)

    @tf.custom_gradient
    def reduce(x):
        [result] = _allreduce_all([x], [name], op, prescale_factor, postscale_factor, process_set)

        def grad(dy):
            return _allreduce(dy, _gradient_name(name), op, prescale_factor, postscale_factor,
                              process_set)
        return result, grad

    return reduce(tensor)


def _grouped_allreduce(tensors, name=None, op=Sum, prescale_factor=1.0, postscale_factor=1.0,
                       process_set=global_process_set):
    tensors = [_as_tensor(t) for t in tensors]
    if not tensors:
        return []
    name = _tensor_name("grouped_allreduce", tensors[0], name, process_set)

    @tf.custom_gradient
    def reduce(*xs):
        results = _allreduce_all(list(xs), [name], op, prescale_factor, postscale_factor,
                                 process_set, together=True)

        def grad(*dys):
            return _grouped_allreduce(dys, _gradient_name(name), op, prescale_factor,
                                      postscale_factor, process_set)
        return results, grad

    return list(reduce(*tensors))


def _rows(value, like):
    if not context.executing_eagerly():
        value.set_shape([None] + list(like.shape[1:]) if like.shape.rank else [None]
                        if like.shape.rank == 0 else None)
    return value


def allgather(tensor, name=None, ignore_name_scope=False, process_set=global_process_set):
    """Concatenates the tensors of all ranks along the first dimension. Ranks may have different
    numbers of rows."""
    tensor = _as_tensor(tensor)
    name = _tensor_name("allgather", tensor, name, process_set)

    @tf.custom_gradient
    def gather(x):
        handle = _submit([x], core.ALLGATHER, name, process_set=process_set)
        [result], counts = _wait([handle], [x.dtype])
        result = _rows(result, x)

        def grad(dy):
            return _own_rows(dy, counts, x, _gradient_name(name), process_set)
        return result, grad

    return gather(tensor)


def _own_rows(gradient, counts, like, name, process_set):
    """The gradient of the rows that this rank gave to a gather. As in Horovod, it is an average over
    the ranks."""
    mean = _allreduce(gradient, name, Average, process_set=process_set)
    parts = tf.split(mean, counts, num=process_set.size())
    return tf.reshape(parts[process_set.rank()], tf.shape(like))


def grouped_allgather(tensors, name=None, ignore_name_scope=False,
                      process_set=global_process_set):
    """Gathers several tensors, which run together."""
    tensors = [_as_tensor(t) for t in tensors]
    if not tensors:
        return []
    name = _tensor_name("grouped_allgather", tensors[0], name, process_set)

    @tf.custom_gradient
    def gather(*xs):
        handle = _submit(xs, core.ALLGATHER, name, process_set=process_set)
        results, counts = _wait([handle], [x.dtype for x in xs])
        results = [_rows(r, x) for r, x in zip(results, xs)]
        counts = tf.reshape(counts, [len(xs), -1])

        def grad(*dys):
            return [_own_rows(dy, counts[i], x, _gradient_name(f"{name}.{i}"), process_set)
                    for i, (dy, x) in enumerate(zip(dys, xs))]
        return results, grad

    return list(gather(*tensors))


def broadcast(tensor, root_rank, name=None, ignore_name_scope=False,
              process_set=global_process_set):
    """Returns the tensor of rank `root_rank` on all ranks."""
    tensor = _as_tensor(tensor)
    name = _tensor_name("broadcast", tensor, name, process_set)

    @tf.custom_gradient
    def send(x):
        handle = _submit([x], core.BROADCAST, name, root=root_rank, process_set=process_set)
        [result], _ = _wait([handle], [x.dtype])
        result = _restored_shape(result, x)

        def grad(dy):
            mean = _allreduce(dy, _gradient_name(name), Average, process_set=process_set)
            if core.rank() == root_rank:
                return mean
            # A session must run the reduction on all ranks, also where its result is not used.
            with tf.control_dependencies([mean]):
                return tf.identity(tf.zeros_like(mean))
        return result, grad

    return send(tensor)


def broadcast_(variables, root_rank, name=None, process_set=global_process_set):
    """Assigns the values of rank `root_rank` to variables on all ranks, and returns the variables,
    or the assignments if this is in a graph."""
    variables = list(variables)
    names = [f"{name or 'inplace'}.{i}.{getattr(v, 'name', '')}" for i, v in enumerate(variables)]
    sent = broadcast_all([tf.convert_to_tensor(v) for v in variables], root_rank, names,
                         process_set)
    assigned = [v.assign(value) for v, value in zip(variables, sent)]
    return variables if context.executing_eagerly() else assigned


def _restored_shape(value, like):
    if not context.executing_eagerly():
        value.set_shape(like.shape)
    return value


def broadcast_all(tensors, root_rank, names, process_set=global_process_set):
    """Broadcasts tensors: one submission for each, one wait for all."""
    tensors = [_as_tensor(t) for t in tensors]
    if not tensors:
        return []
    handles = [_submit([t], core.BROADCAST, f"broadcast.{n}", root=root_rank,
                       process_set=process_set) for t, n in zip(tensors, names)]
    results, _ = _wait(handles, [t.dtype for t in tensors])
    return [_restored_shape(r, t) for r, t in zip(results, tensors)]


def alltoall(tensor, splits=None, name=None, ignore_name_scope=False,
             process_set=global_process_set):
    """Sends `splits[r]` rows to each rank `r`. Returns the received rows, and their numbers if
    splits were given."""
    tensor = _as_tensor(tensor)
    name = _tensor_name("alltoall", tensor, name, process_set)
    n = process_set.size()

    def exchange(x, given):
        handle = _submit([x], core.ALLTOALL, name, splits=given, process_set=process_set)
        [result], counts = _wait([handle], [x.dtype])
        return _rows(result, x), tf.cast(counts, tf.int32)

    if splits is None:
        rows = tf.shape(tensor)[0] if tensor.shape.rank != 0 else tf.constant(1)
        # Rows that cannot be split evenly give splits that do not add up, which all ranks report.
        given = tf.fill([n], rows // n)
    else:
        given = tf.cast(_as_tensor(splits), tf.int32)

    @tf.custom_gradient
    def differentiable(x):
        result, received = exchange(x, given)

        def grad(dy, _=None):
            back, _ = alltoall(dy, splits=received, name=_gradient_name(name),
                               process_set=process_set)
            return back
        return (result, received), grad

    result, received = differentiable(tensor)
    return result if splits is None else (result, received)


def _pairs(tensor):
    """Rows of complex numbers as rows of pairs of real numbers."""
    if tensor.dtype.is_complex:
        return tf.stack([tf.math.real(tensor), tf.math.imag(tensor)], axis=-1)
    return tensor


def _from_pairs(value, like):
    return tf.complex(value[..., 0], value[..., 1]) if like.dtype.is_complex else value


def _scatter_factor(op, process_set):
    """The factor of the gradient of a reduce-scatter. As in Horovod, gradients are averages
    over the ranks, whatever the operation of the forward pass."""
    if op not in (Average, Sum):
        raise NotImplementedError("only Sum and Average of reducescatter are differentiable")
    return process_set.size() if op == Sum else 1


def _reducescatter(tensor, name=None, op=Average, prescale_factor=1.0, postscale_factor=1.0,
                   process_set=global_process_set):
    tensor = _as_tensor(tensor)
    name = _tensor_name("reducescatter", tensor, name, process_set)
    if tensor.dtype.is_complex:
        reduced = _reducescatter(_pairs(tensor), name, op, prescale_factor, postscale_factor,
                                 process_set)
        return _from_pairs(reduced, tensor)

    @tf.custom_gradient
    def scatter(x):
        handle = _submit([x], core.REDUCESCATTER, name, op, process_set=process_set,
                         prescale=prescale_factor, postscale=postscale_factor)
        [result], _ = _wait([handle], [x.dtype])

        def grad(dy):
            factor = _scatter_factor(op, process_set) * prescale_factor * postscale_factor
            return allgather(dy * tf.cast(factor, dy.dtype), _gradient_name(name),
                             process_set=process_set)
        return _rows(result, x), grad

    return scatter(tensor)


def _grouped_reducescatter(tensors, name=None, op=Average, prescale_factor=1.0,
                           postscale_factor=1.0, process_set=global_process_set):
    tensors = [_as_tensor(t) for t in tensors]
    name = _tensor_name("grouped_reducescatter", tensors[0], name, process_set)

    @tf.custom_gradient
    def scatter(*xs):
        handle = _submit(xs, core.REDUCESCATTER, name, op, process_set=process_set,
                         prescale=prescale_factor, postscale=postscale_factor)
        results, _ = _wait([handle], [x.dtype for x in xs])

        def grad(*dys):
            factor = _scatter_factor(op, process_set) * prescale_factor * postscale_factor
            return [allgather(dy * tf.cast(factor, dy.dtype), _gradient_name(f"{name}.{i}"),
                              process_set=process_set) for i, dy in enumerate(dys)]
        return [_rows(r, x) for r, x in zip(results, xs)], grad

    parts = scatter(*[_pairs(t) for t in tensors])
    return [_from_pairs(p, t) for p, t in zip(parts, tensors)]


def _place_op(which, process_set_id, name):
    with tf.device("CPU:0"):
        if context.executing_eagerly():
            ctx = context.context()
            ctx.ensure_initialized()
            return execute.execute(b"FerroflowPlace", 1, [], (
                "which", which, "process_set", process_set_id), ctx)[0]
        _, _, made, _ = op_def_library._apply_op_helper(
            "FerroflowPlace", which=which, process_set=process_set_id, name=name)
        made.outputs[0].set_shape([])
        return made.outputs[0]


def rank_op(name=None):
    """The rank as a tensor, read when the op runs."""
    return _place_op(0, 0, name or "HorovodRank")


def size_op(process_set_id=0, name=None):
    """The number of ranks as a tensor, read when the op runs."""
    return _place_op(1, process_set_id, name or "HorovodSize")


def local_rank_op(name=None):
    """The local rank as a tensor, read when the op runs."""
    return _place_op(2, 0, name or "HorovodLocalRank")


def local_size_op(name=None):
    """The number of ranks on this host as a tensor, read when the op runs."""
    return _place_op(3, 0, name or "HorovodLocalSize")


def process_set_included_op(process_set_id=0, name=None):
    """1 if this process is in the process set, else 0, as a tensor."""
    return _place_op(4, process_set_id, name or "HorovodProcessSetIncluded")


def join():
    """Reports that this rank has no more data. Returns the last rank that joined."""
    if context.executing_eagerly():
        return core.join()
    import numpy as np
    return tf.numpy_function(lambda: np.int32(core.join()), [], tf.int32)


def barrier(process_set=global_process_set):
    """Waits until all ranks of the set have called it."""
    core.barrier(process_set)
