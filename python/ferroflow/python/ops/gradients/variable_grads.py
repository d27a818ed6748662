"""Gradients of reads of variables."""

from ferroflow.python.framework import indexed_slices
from ferroflow.python.ops import array_ops
from ferroflow.python.ops import resource_variable_ops
from ferroflow.python.ops.gradient_registry import gradient, not_differentiable


@gradient("ReadVariableOp")
def _read(op, grad):
    return grad


@gradient("ResourceGather")
def _gather(op, grad):
    handle, indices = op.inputs
    shape = resource_variable_ops.variable_shape(handle)
    size = array_ops.expand_dims(array_ops.size(indices), 0)
    values = array_ops.reshape(grad, array_ops.concat([size, shape[1:]], 0))
    return indexed_slices.IndexedSlices(values, array_ops.reshape(indices, size), shape), None


not_differentiable(
    "Assign", "AssignAdd", "AssignSub", "ScatterAdd", "ScatterSub", "ScatterMul", "ScatterDiv",
    "ScatterNdAdd", "ScatterNdSub", "ScatterNdUpdate", "AssignVariableOp",
    "AssignAddVariableOp", "AssignSubVariableOp", "Variable", "VariableV2", "VarHandleOp")
