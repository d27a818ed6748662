"""Assignments to variables, and scatters into them."""

from ferroflow.python.framework import ops
from ferroflow.python.framework import tensor_shape
from ferroflow.python.ops import gen_ops
from ferroflow.python.ops import module_names
from ferroflow.python.util.api import export

__getattr__ = module_names.fallback(__name__)


def variable_op_v2(shape, dtype, name="Variable", container="", shared_name=""):
    """The op that holds the value of a reference variable."""
    return gen_ops.VariableV2(shape=shape, dtype=dtype, name=name, container=container,
                              shared_name=shared_name)


def variable_op(shape, dtype, name="Variable", set_shape=True, container="", shared_name=""):
    result = gen_ops.Variable(shape=shape if set_shape else tensor_shape.unknown_shape(),
                              dtype=dtype, name=name, container=container,
                              shared_name=shared_name)
    return result


def _is_ref(ref):
    dtype = getattr(ref, "dtype", None)
    return dtype is not None and getattr(dtype, "_is_ref_dtype", False)


def _reference(ref):
    """The reference of a variable; a reference stays."""
    return ref._ref() if hasattr(ref, "_ref") and not isinstance(ref, ops.Tensor) else ref


@export("is_variable_initialized")
def is_variable_initialized(ref, name=None):
    if _is_ref(ref):
        return gen_ops.IsVariableInitialized(ref=_reference(ref), name=name)
    return ref.is_initialized(name=name)


@export("assign")
def assign(ref, value, validate_shape=None, use_locking=None, name=None):
    if _is_ref(ref):
        return gen_ops.Assign(_reference(ref), value, use_locking=use_locking, name=name,
                              validate_shape=validate_shape)
    return ref.assign(value, name=name)


@export("assign_add")
def assign_add(ref, value, use_locking=None, name=None):
    if _is_ref(ref):
        return gen_ops.AssignAdd(_reference(ref), value, use_locking=use_locking, name=name)
    return ref.assign_add(value)


@export("assign_sub")
def assign_sub(ref, value, use_locking=None, name=None):
    if _is_ref(ref):
        return gen_ops.AssignSub(_reference(ref), value, use_locking=use_locking, name=name)
    return ref.assign_sub(value)


@export("count_up_to")
def count_up_to(ref, limit, name=None):
    if _is_ref(ref):
        return gen_ops.CountUpTo(_reference(ref), limit=limit, name=name)
    return gen_ops.ResourceCountUpTo(ref.handle, limit, T=ref.dtype, name=name)


def _scatter(ref_op, resource_op, indices_dtype=None):
    """A scatter into either kind of variable."""
    def function(ref, indices, updates, use_locking=False, name=None):
        if _is_ref(ref):
            return getattr(gen_ops, ref_op)(_reference(ref), indices, updates,
                                            use_locking=use_locking, name=name)
        done = getattr(gen_ops, resource_op)(
            ref.handle, indices, ops.convert_to_tensor(updates, ref.dtype), name=name)
        return ref._lazy_read(done)
    return function


scatter_add = export("scatter_add")(_scatter("ScatterAdd", "ResourceScatterAdd"))
scatter_sub = export("scatter_sub")(_scatter("ScatterSub", "ResourceScatterSub"))
scatter_mul = export("scatter_mul")(_scatter("ScatterMul", "ResourceScatterMul"))
scatter_div = export("scatter_div")(_scatter("ScatterDiv", "ResourceScatterDiv"))
scatter_min = export("scatter_min")(_scatter("ScatterMin", "ResourceScatterMin"))
scatter_max = export("scatter_max")(_scatter("ScatterMax", "ResourceScatterMax"))


@export("scatter_update")
def scatter_update(ref, indices, updates, use_locking=True, name=None):
    return _scatter("ScatterUpdate", "ResourceScatterUpdate")(
        ref, indices, updates, use_locking, name)


def _scatter_nd(ref_op, resource_op, locking):
    def function(ref, indices, updates, use_locking=locking, name=None):
        if _is_ref(ref):
            return getattr(gen_ops, ref_op)(_reference(ref), indices, updates, use_locking, name)
        done = getattr(gen_ops, resource_op)(
            ref.handle, indices, ops.convert_to_tensor(updates, dtype=ref.dtype), name=name)
        return ref._lazy_read(done)
    return function


scatter_nd_update = export("scatter_nd_update")(
    _scatter_nd("ScatterNdUpdate", "ResourceScatterNdUpdate", True))
scatter_nd_add = export("scatter_nd_add")(
    _scatter_nd("ScatterNdAdd", "ResourceScatterNdAdd", False))
scatter_nd_sub = export("scatter_nd_sub")(
    _scatter_nd("ScatterNdSub", "ResourceScatterNdSub", False))


@export("batch_scatter_update")
def batch_scatter_update(ref, indices, updates, use_locking=True, name=None):
    from ferroflow.python.ops import array_ops
    from ferroflow.python.ops import math_ops
    with ops.name_scope(name):
        indices = ops.convert_to_tensor(indices, name="indices")
        shape = array_ops.shape(indices)
        rank = indices.get_shape().ndims
        grids = []
        for dim in range(rank - 1):
            steps = math_ops.range(0, shape[dim], 1, dtype=indices.dtype)
            shaped = array_ops.reshape(steps, [1] * dim + [-1] + [1] * (rank - dim))
            grids.append(gen_ops.Tile(shaped, array_ops.stack(
                [shape[i] if i != dim else 1 for i in range(rank)] + [1])))
        grids.append(array_ops.expand_dims(indices, -1))
        final = array_ops.concat(grids, axis=-1)
        return scatter_nd_update(ref, final, updates, use_locking)
