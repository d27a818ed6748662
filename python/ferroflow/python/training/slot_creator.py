"""Slots: the variables that an optimizer keeps beside a variable."""

from ferroflow.python.framework import dtypes
from ferroflow.python.framework import ops
from ferroflow.python.framework import tensor_shape
from ferroflow.python.ops import array_ops
from ferroflow.python.ops import init_ops
from ferroflow.python.ops import resource_variable_ops
from ferroflow.python.ops import variable_scope
from ferroflow.python.ops import variables


def _create_slot_var(primary, value, shape, dtype, validate_shape):
    scope = variable_scope.get_variable_scope()
    # A slot follows the variable it belongs to: it is never partitioned by itself.
    partitioner = scope.partitioner
    scope.set_partitioner(None)
    use_resource = None
    if resource_variable_ops.is_resource_variable(primary):
        use_resource = True
    elif isinstance(primary, variables.RefVariable):
        use_resource = False
    slot = variable_scope.get_variable(
        "", initializer=value, trainable=False, use_resource=use_resource,
        shape=shape if callable(value) else None, dtype=dtype, validate_shape=validate_shape)
    scope.set_partitioner(partitioner)
    info = getattr(primary, "_save_slice_info", None)
    if info is not None:
        rank = slot.get_shape().ndims
        own = slot.op.name[len(primary.op.name + "/"):]
        slot._set_save_slice_info(variables.Variable.SaveSliceInfo(
            info.full_name + "/" + own, info.full_shape[:rank], info.var_offset[:rank],
            info.var_shape[:rank]))
    return slot


def _in_scope(primary, name, colocate, make):
    with variable_scope.variable_scope(None, primary.op.name + "/" + name):
        if not colocate:
            return make()
        with ops.colocate_with(primary.op):
            return make()


def create_slot(primary, val, name, colocate_with_primary=True, copy_xla_sharding=False):
    """A slot that starts with the value `val`."""
    validate_shape = val.get_shape().is_fully_defined()
    return _in_scope(primary, name, colocate_with_primary,
                     lambda: _create_slot_var(primary, val, None, None, validate_shape))


def create_slot_with_initializer(primary, initializer, shape, dtype, name,
                                 colocate_with_primary=True, copy_xla_sharding=False):
    """A slot that starts with what an initializer makes."""
    shape = tensor_shape.as_shape(shape)
    return _in_scope(primary, name, colocate_with_primary,
                     lambda: _create_slot_var(primary, initializer, shape, dtype,
                                              shape.is_fully_defined()))


def create_zeros_slot(primary, name, dtype=None, colocate_with_primary=True,
                      copy_xla_sharding=False):
    """A slot of zeros in the shape of its variable."""
    dtype = primary.dtype.base_dtype if dtype is None else dtypes.as_dtype(dtype)
    static = primary.get_shape()
    if static.is_fully_defined():
        return create_slot_with_initializer(
            primary, init_ops.zeros_initializer(), static, dtype, name,
            colocate_with_primary=colocate_with_primary)
    if isinstance(primary, variables.Variable):
        shape = array_ops.shape(primary.initialized_value())
    else:
        shape = array_ops.shape(primary)
    return create_slot(primary, array_ops.zeros(shape, dtype=dtype), name,
                       colocate_with_primary=colocate_with_primary)
