"""`map_fn`, `foldl`, `foldr` and `scan`: loops over the first dimension."""

import contextlib

from ferroflow.python.framework import constant_op
from ferroflow.python.framework import dtypes
from ferroflow.python.framework import ops
from ferroflow.python.framework import tensor_shape
from ferroflow.python.ops import array_ops
from ferroflow.python.ops import control_flow_context
from ferroflow.python.ops import tensor_array_ops
from ferroflow.python.ops import variable_scope
from ferroflow.python.ops.while_loop import while_loop
from ferroflow.python.util import nest
from ferroflow.python.util.api import export


@contextlib.contextmanager
def _cached_reads():
    """Variables that the function reads are read once, outside of the loop."""
    scope = variable_scope.get_variable_scope()
    unset = scope.caching_device is None
    if unset:
        scope.set_caching_device(lambda op: op.device)
    yield
    if unset:
        scope.set_caching_device(None)


def _check(fn):
    if not callable(fn):
        raise TypeError("%s is not callable. Please provide a callable function." % fn)


def _length(tensor):
    """(the static length or None, the length to use)"""
    static = tensor.get_shape().with_rank_at_least(1).as_list()[0]
    return static, static or array_ops.shape(tensor)[0]


@export("map_fn")
def map_fn(fn, elems, dtype=None, parallel_iterations=None, back_prop=True, swap_memory=False,
           infer_shape=True, name=None, fn_output_signature=None):
    _check(fn)
    signature = dtype if fn_output_signature is None else fn_output_signature
    elems = nest.map_structure(control_flow_context.as_tensor_if_variable, elems)
    flat = nest.flatten(elems)
    if not flat:
        raise ValueError("elems must be a Tensor or (possibly nested) sequence of Tensors. Got "
                         "%s, which does not contain any Tensors." % (elems,))
    with ops.name_scope(name, "map", flat), _cached_reads():
        flat = [ops.convert_to_tensor(t, name="elem") for t in flat]
        if flat[0].get_shape().ndims == 0:
            raise ValueError("Elements in elems must be 1+ dimensional Tensors, not scalars")
        static, n = _length(flat[0])
        arrays = [tensor_array_ops.TensorArray(dtype=t.dtype, size=n, dynamic_size=False,
                                               infer_shape=True) for t in flat]
        arrays = [a.unstack(t) for a, t in zip(arrays, flat)]
        i = constant_op.constant(0)
        structure = elems if signature is None else signature
        kinds = [t.dtype for t in flat] if signature is None else [
            dtypes.as_dtype(d) for d in nest.flatten(signature)]
        results = [tensor_array_ops.TensorArray(dtype=k, size=n, dynamic_size=False,
                                                infer_shape=infer_shape) for k in kinds]

        def compute(i, arrays_out):
            value = fn(nest.pack_sequence_as(elems, [a.read(i) for a in arrays]))
            nest.assert_same_structure(structure, value)
            out = [a.write(i, v) for a, v in zip(arrays_out, nest.flatten(value))]
            return i + 1, out

        _, results = while_loop(
            lambda i, _: i < n, compute, (i, results),
            parallel_iterations=parallel_iterations or 10, back_prop=back_prop,
            swap_memory=swap_memory, maximum_iterations=n)
        stacked = [r.stack() for r in results]
        for r in stacked:
            r.set_shape(tensor_shape.TensorShape([static]).concatenate(r.get_shape()[1:]))
        return nest.pack_sequence_as(structure, stacked)


def _unstacked(elems, n):
    return nest.map_structure(lambda elem: tensor_array_ops.TensorArray(
        dtype=elem.dtype, size=n, dynamic_size=False, infer_shape=True).unstack(elem), elems)


@export("foldl")
def foldl(fn, elems, initializer=None, parallel_iterations=10, back_prop=True, swap_memory=False,
          name=None):
    _check(fn)
    with ops.name_scope(name, "foldl", [elems]), _cached_reads():
        elems = nest.map_structure(lambda e: ops.convert_to_tensor(e, name="elem"), elems)
        _, n = _length(nest.flatten(elems)[0])
        arrays = _unstacked(elems, n)
        if initializer is None:
            a = nest.map_structure(lambda x: x.read(0), arrays)
            i = constant_op.constant(1)
        else:
            a, i = initializer, constant_op.constant(0)

        def compute(i, a):
            a = fn(a, nest.map_structure(lambda x: x.read(i), arrays))
            return [i + 1, a]

        _, result = while_loop(lambda i, a: i < n, compute, [i, a],
                               parallel_iterations=parallel_iterations, back_prop=back_prop,
                               swap_memory=swap_memory, maximum_iterations=n)
        return result


@export("foldr")
def foldr(fn, elems, initializer=None, parallel_iterations=10, back_prop=True, swap_memory=False,
          name=None):
    _check(fn)
    with ops.name_scope(name, "foldr", [elems]), _cached_reads():
        elems = nest.map_structure(lambda e: ops.convert_to_tensor(e, name="elem"), elems)
        _, n = _length(nest.flatten(elems)[0])
        arrays = _unstacked(elems, n)
        if initializer is None:
            i = n - 1
            a = nest.map_structure(lambda x: x.read(i), arrays)
        else:
            i, a = n, initializer

        def compute(i, a):
            i -= 1
            return [i, fn(a, nest.map_structure(lambda x: x.read(i), arrays))]

        _, result = while_loop(lambda i, a: i > 0, compute, [i, a],
                               parallel_iterations=parallel_iterations, back_prop=back_prop,
                               swap_memory=swap_memory, maximum_iterations=n)
        return result


@export("scan")
def scan(fn, elems, initializer=None, parallel_iterations=10, back_prop=True, swap_memory=False,
         infer_shape=True, reverse=False, name=None):
    _check(fn)
    structure = elems if initializer is None else initializer
    flat = nest.flatten(elems)
    with ops.name_scope(name, "scan", flat), _cached_reads():
        flat = [ops.convert_to_tensor(e, name="elem") for e in flat]
        static = flat[0].get_shape().with_rank_at_least(1).as_list()[0]
        n = array_ops.shape(flat[0])[0] if static is None else static
        arrays = [tensor_array_ops.TensorArray(
            dtype=e.dtype, size=n, dynamic_size=False, element_shape=e.get_shape()[1:],
            infer_shape=True) for e in flat]
        arrays = [a.unstack(e) for a, e in zip(arrays, flat)]
        first = n - 1 if reverse else 0
        if initializer is None:
            state, i = [a.read(first) for a in arrays], 1
        else:
            state, i = [ops.convert_to_tensor(x) for x in nest.flatten(initializer)], 0
        results = [tensor_array_ops.TensorArray(
            dtype=s.dtype, size=n, element_shape=s.get_shape() if infer_shape else None,
            dynamic_size=False, infer_shape=infer_shape) for s in state]
        if initializer is None:
            results = [r.write(first, s) for r, s in zip(results, state)]

        def compute(i, state, results):
            value = fn(nest.pack_sequence_as(structure, state),
                       nest.pack_sequence_as(elems, [a.read(i) for a in arrays]))
            nest.assert_same_structure(structure, value)
            out = nest.flatten(value)
            results = [r.write(i, v) for r, v in zip(results, out)]
            return i - 1 if reverse else i + 1, out, results

        start = n - 1 - i if reverse else i
        condition = (lambda i, _1, _2: i >= 0) if reverse else (lambda i, _1, _2: i < n)
        _, _, results = while_loop(
            condition, compute, (start, state, results), parallel_iterations=parallel_iterations,
            back_prop=back_prop, swap_memory=swap_memory, maximum_iterations=n)
        stacked = [r.stack() for r in results]
        for r in stacked:
            r.set_shape(tensor_shape.TensorShape([static]).concatenate(r.get_shape()[1:]))
        return nest.pack_sequence_as(structure, stacked)
