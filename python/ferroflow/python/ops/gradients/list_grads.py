"""Gradients of the ops of tensor lists."""

from ferroflow.python.ops import array_ops
from ferroflow.python.ops import gen_ops as g
from ferroflow.python.ops.gradient_registry import gradient
from ferroflow.python.ops.gradient_registry import not_differentiable

not_differentiable("EmptyTensorList", "TensorListReserve", "TensorListLength",
                   "TensorListElementShape")


def _element_shape(tensor):
    return array_ops.shape(tensor)


@gradient("TensorListPushBack")
def _push(op, dlist):
    return g.TensorListPopBack(dlist, _element_shape(op.inputs[1]),
                               element_dtype=op.get_attr("element_dtype"))


@gradient("TensorListPopBack")
def _pop(op, dlist, delement):
    if dlist is None:
        dlist = g.EmptyTensorList(_element_shape(delement), -1,
                                  element_dtype=op.get_attr("element_dtype"))
    if delement is None:
        delement = array_ops.zeros_like(op.outputs[1])
    return g.TensorListPushBack(dlist, delement), None


@gradient("TensorListStack")
def _stack(op, dtensor):
    return g.TensorListFromTensor(dtensor, _element_shape(dtensor)[1:]), None


@gradient("TensorListFromTensor")
def _from_tensor(op, dlist):
    tensor = op.inputs[0]
    found = g.TensorListStack(dlist, _element_shape(tensor)[1:],
                              element_dtype=tensor.dtype.base_dtype)
    found.set_shape(tensor.get_shape())
    return found, None


@gradient("TensorListGetItem")
def _get(op, ditem):
    zeros = g.TensorListReserve(_element_shape(ditem), g.TensorListLength(op.inputs[0]),
                                element_dtype=op.get_attr("element_dtype"))
    return g.TensorListSetItem(zeros, op.inputs[1], ditem), None, None


@gradient("TensorListSetItem")
def _set(op, dlist):
    _, index, item = op.inputs[:3]
    kind = op.get_attr("element_dtype")
    dlist_in = g.TensorListSetItem(dlist, index, array_ops.zeros_like(item))
    return dlist_in, None, g.TensorListGetItem(dlist, index, _element_shape(item), element_dtype=kind)


@gradient("TensorListGather")
def _gather(op, dtensor):
    kind = op.get_attr("element_dtype")
    zeros = g.TensorListReserve(_element_shape(dtensor)[1:], g.TensorListLength(op.inputs[0]),
                                element_dtype=kind)
    return g.TensorListScatterIntoExistingList(zeros, dtensor, op.inputs[1]), None, None

