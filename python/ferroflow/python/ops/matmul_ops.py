"""Matrix products and contractions."""

import numpy as np

from ferroflow.python.framework import dtypes
from ferroflow.python.framework import ops
from ferroflow.python.ops import gen_ops
from ferroflow.python.util.api import export

convert = ops.convert_to_tensor


@export("matmul", "linalg.matmul")
def matmul(a, b, transpose_a=False, transpose_b=False, adjoint_a=False, adjoint_b=False,
           a_is_sparse=False, b_is_sparse=False, output_type=None, name=None):
    from ferroflow.python.ops import math_ops
    with ops.name_scope(name, "MatMul", [a, b]) as scope:
        if transpose_a and adjoint_a:
            raise ValueError("Only one of `transpose_a` and `adjoint_a` can be True. Received "
                             "`transpose_a`=%s, `adjoint_a`=%s." % (transpose_a, adjoint_a))
        if transpose_b and adjoint_b:
            raise ValueError("Only one of `transpose_b` and `adjoint_b` can be True. Received "
                             "`transpose_b`=%s, `adjoint_b`=%s." % (transpose_b, adjoint_b))
        a = convert(a, name="a")
        b = convert(b, preferred_dtype=a.dtype.base_dtype, name="b")
        a_rank, b_rank = a.get_shape().ndims, b.get_shape().ndims
        use_v3 = output_type is not None and output_type not in (a.dtype, b.dtype)
        broadcast_batch = (a_rank is None or a_rank > 2) or (b_rank is None or b_rank > 2)
        if (not a_is_sparse and not b_is_sparse) and broadcast_batch:
            if transpose_a:
                a = math_ops.conj(a)
                adjoint_a = True
            if transpose_b:
                b = math_ops.conj(b)
                adjoint_b = True
            if use_v3:
                return gen_ops.BatchMatMulV3(a, b, adj_x=adjoint_a, adj_y=adjoint_b,
                                             Tout=output_type, name=scope)
            return gen_ops.BatchMatMulV2(a, b, adj_x=adjoint_a, adj_y=adjoint_b, name=scope)
        if adjoint_a:
            a = math_ops.conj(a)
            transpose_a = True
        if adjoint_b:
            b = math_ops.conj(b)
            transpose_b = True
        if a_is_sparse or b_is_sparse:
            kinds = (dtypes.bfloat16, dtypes.float32)
            if a.dtype in kinds and b.dtype in kinds:
                product = gen_ops.SparseMatMul(
                    a, b, transpose_a=transpose_a, transpose_b=transpose_b,
                    a_is_sparse=a_is_sparse, b_is_sparse=b_is_sparse, name=scope)
                if a.dtype == dtypes.bfloat16 and b.dtype == dtypes.bfloat16:
                    product = math_ops.cast(product, dtypes.bfloat16)
                return product
        if use_v3:
            return gen_ops.BatchMatMulV3(a, b, adj_x=transpose_a, adj_y=transpose_b,
                                         Tout=output_type, name=scope)
        return gen_ops.MatMul(a, b, transpose_a=transpose_a, transpose_b=transpose_b, name=scope)


@export("linalg.matvec")
def matvec(a, b, transpose_a=False, adjoint_a=False, a_is_sparse=False, b_is_sparse=False,
           name=None):
    from ferroflow.python.ops import array_ops
    with ops.name_scope(name, "MatVec", [a, b]):
        output = matmul(a, array_ops.expand_dims(b, axis=-1), transpose_a=transpose_a,
                        adjoint_a=adjoint_a, a_is_sparse=a_is_sparse, b_is_sparse=b_is_sparse)
        return array_ops.squeeze(output, axis=-1)


@export("trace", "linalg.trace")
def trace(x, name=None):
    from ferroflow.python.ops import array_ops
    from ferroflow.python.ops import reduction_ops
    with ops.name_scope(name, "Trace", [x]) as scope:
        x = convert(x, name="x")
        return reduction_ops.reduce_sum(array_ops.matrix_diag_part(x), [-1], name=scope)


@export("tensordot", "linalg.tensordot")
def tensordot(a, b, axes, name=None):
    from ferroflow.python.ops import array_ops
    with ops.name_scope(name, "Tensordot", [a, b, axes]) as scope:
        a = convert(a, name="a")
        b = convert(b, name="b")
        a_axes, b_axes = _contracted(a, axes)
        a_matrix, a_free, a_static = _as_matrix(a, a_axes)
        b_matrix, b_free, b_static = _as_matrix(b, b_axes, True)
        product = matmul(a_matrix, b_matrix)
        if isinstance(a_free, list) and isinstance(b_free, list):
            if (product.get_shape().is_fully_defined()
                    and product.get_shape().as_list() == a_free + b_free):
                return product
            return array_ops.reshape(product, a_free + b_free, name=scope)
        a_free = convert(a_free, dtype=dtypes.int32)
        b_free = convert(b_free, dtype=dtypes.int32)
        result = array_ops.reshape(product, array_ops.concat([a_free, b_free], 0), name=scope)
        if a_static is not None and b_static is not None:
            result.set_shape(a_static + b_static)
        return result


def _contracted(a, axes):
    rank = a.get_shape().ndims
    if isinstance(axes, (int, np.integer)):
        if axes < 0:
            raise ValueError("`axes` must be at least 0. Received: %s." % axes)
        if rank is not None:
            if axes > rank:
                raise ValueError("`axes` must not be larger than the number of dimensions of "
                                 "tensor %s.  Received %s, vs tensor dimensions %s." % (
                                     a, axes, rank))
            return list(range(rank - axes, rank)), list(range(axes))
        from ferroflow.python.ops import array_ops
        from ferroflow.python.ops import math_ops
        dynamic = array_ops.rank(a)
        return (math_ops.range(dynamic - axes, dynamic, dtype=dtypes.int32),
                math_ops.range(axes, dtype=dtypes.int32))
    if isinstance(axes, (list, tuple)):
        if len(axes) != 2:
            raise ValueError("`axes` must be an integer or have length 2. Received %s." % (axes,))
        first, second = axes
        first = [first] if isinstance(first, (int, np.integer)) else first
        second = [second] if isinstance(second, (int, np.integer)) else second
        if len(first) != len(second):
            raise ValueError("Different number of contraction axes `a` and `b`, %d != %d." % (
                len(first), len(second)))
        return list(first), list(second)
    axes = convert(axes, name="axes", dtype=dtypes.int32)
    return axes[0], axes[1]


def _as_matrix(x, axes, flipped=False):
    """`x` with its contracted axes as one matrix dimension; the free dimensions; static ones."""
    from ferroflow.python.ops import array_ops
    from ferroflow.python.ops import math_ops
    from ferroflow.python.ops import reduction_ops
    if x.get_shape().is_fully_defined() and isinstance(axes, (list, tuple)):
        shape = x.get_shape().as_list()
        axes = [i if i >= 0 else i + len(shape) for i in axes]
        free = [i for i in range(len(shape)) if i not in axes]
        free_dims = [shape[i] for i in free]
        free_size = int(np.prod([shape[i] for i in free]))
        axes_size = int(np.prod([shape[i] for i in axes]))
        perm = list(axes) + free if flipped else free + list(axes)
        new_shape = [axes_size, free_size] if flipped else [free_size, axes_size]
        turned = array_ops.transpose(x, perm) if (
            np.array(perm) != np.arange(len(shape))).any() else x
        if turned.get_shape().as_list() != new_shape:
            turned = array_ops.reshape(turned, new_shape)
        return turned, free_dims, free_dims
    static = None
    if x.get_shape().ndims is not None and isinstance(axes, (list, tuple)):
        shape = x.get_shape().as_list()
        axes = [i if i >= 0 else i + len(shape) for i in axes]
        free = [i for i in range(len(shape)) if i not in axes]
        static = [shape[i] for i in free]
        axes_t = convert(axes, dtype=dtypes.int32, name="axes")
        free_t = convert(free, dtype=dtypes.int32, name="free")
        dynamic = array_ops.shape(x)
    else:
        dynamic = array_ops.shape(x)
        rank = array_ops.rank(x)
        axes_t = convert(axes, dtype=dtypes.int32, name="axes")
        axes_t = gen_ops.SelectV2(axes_t >= 0, axes_t, axes_t + rank)
        free_t, _ = gen_ops.ListDiff(math_ops.range(rank), axes_t, out_idx=dtypes.int32)
    free_dims = array_ops.gather(dynamic, free_t)
    axes_dims = array_ops.gather(dynamic, axes_t)
    free_size = reduction_ops.reduce_prod(free_dims)
    axes_size = reduction_ops.reduce_prod(axes_dims)
    if flipped:
        perm = array_ops.concat([axes_t, free_t], 0)
        new_shape = array_ops.stack([axes_size, free_size])
    else:
        perm = array_ops.concat([free_t, axes_t], 0)
        new_shape = array_ops.stack([free_size, axes_size])
    return array_ops.reshape(array_ops.transpose(x, perm), new_shape), free_dims, static
