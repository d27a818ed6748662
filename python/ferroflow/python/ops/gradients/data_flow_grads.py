"""Gradients of TensorArray and of dynamic partition and stitch."""

from ferroflow.python.framework import dtypes
from ferroflow.python.framework import ops
from ferroflow.python.ops import array_ops
from ferroflow.python.ops import gen_ops as g
from ferroflow.python.ops import math_ops
from ferroflow.python.ops import tensor_array_ops
from ferroflow.python.ops.gradient_registry import gradient, not_differentiable

not_differentiable(
    "TensorArrayV3", "TensorArrayGradV3", "TensorArrayGradWithShape", "TensorArraySizeV3",
    "TensorArrayCloseV3", "Queue", "QueueEnqueue", "QueueEnqueueMany", "QueueDequeue",
    "QueueDequeueMany", "QueueDequeueUpTo", "QueueClose", "QueueSize", "Stack", "StackPush",
    "StackPop", "StackClose", "GetSessionHandle", "GetSessionHandleV2", "GetSessionTensor",
    "DeleteSessionTensor")


def _source(tensor):
    """The scope of the `gradients` call that `tensor` belongs to: it names the gradient array."""
    parts = getattr(tensor.graph, "gradient_source", tensor.name).split("/")
    at = [i for i, x in enumerate(parts) if x.startswith("gradients")]
    if not at:
        raise ValueError("Expected op/tensor name to start with gradients (excluding scope), got: "
                         "%s. Please make sure all calls to tf.gradients that have non-empty "
                         "`name` arguments use names that start with 'gradients'." % tensor.name)
    return "/".join(parts[:at[-1] + 1])


def _grad_array(handle, flow, dtype, source):
    return tensor_array_ops.TensorArray(
        dtype=dtype, handle=handle, flow=flow, colocate_with_first_write_call=False).grad(
            source=source, flow=flow)


def _barrier(op, flow):
    """The incoming flow, once the forward write has happened."""
    done = array_ops.identity(op.outputs[0], "flow_out")
    with ops.control_dependencies([done]):
        return array_ops.identity(flow, "write_barrier")


@gradient("TensorArrayReadV3")
def _read(op, grad):
    handle, index, flow = op.inputs
    array = _grad_array(handle, flow, op.get_attr("dtype"), _source(grad))
    return [None, None, array.write(index, grad).flow]


@gradient("TensorArrayWriteV3")
def _write(op, flow):
    source = _source(flow)
    flow = _barrier(op, flow)
    array = _grad_array(op.inputs[0], flow, op.get_attr("T"), source)
    return [None, None, array.read(op.inputs[1]), flow]


@gradient("TensorArrayGatherV3")
def _gather(op, grad):
    handle, indices, flow = op.inputs
    array = _grad_array(handle, flow, op.get_attr("dtype"), _source(grad))
    return [None, None, array.scatter(indices, grad).flow]


@gradient("TensorArrayScatterV3")
def _scatter(op, flow):
    source = _source(flow)
    flow = _barrier(op, flow)
    array = _grad_array(op.inputs[0], flow, op.get_attr("T"), source)
    return [None, None, array.gather(op.inputs[1]), flow]


@gradient("TensorArrayConcatV3")
def _concat(op, grad, _):
    handle, flow = op.inputs
    array = _grad_array(handle, flow, op.get_attr("dtype"), _source(grad))
    return [None, array.split(grad, lengths=op.outputs[1]).flow]


@gradient("TensorArraySplitV3")
def _split(op, flow):
    source = _source(flow)
    flow = _barrier(op, flow)
    array = _grad_array(op.inputs[0], flow, op.get_attr("T"), source)
    return [None, array.concat(), None, flow]


@gradient("DynamicPartition")
def _dynamic_partition(op, *grads):
    data, indices = op.inputs
    count = op.get_attr("num_partitions")
    prefix = array_ops.shape(indices)
    original = array_ops.reshape(
        math_ops.range(math_ops.reduce_prod(prefix)), prefix)
    parts = g.DynamicPartition(original, indices, count)
    joined = g.ParallelDynamicStitch(parts, list(grads))
    return [array_ops.reshape(joined, array_ops.shape(data)), None]


@gradient("DynamicStitch", "ParallelDynamicStitch")
def _dynamic_stitch(op, grad):
    count = len(op.inputs) // 2
    indices = [_as_int32(op.inputs[i]) for i in range(count)]
    if not isinstance(grad, ops.Tensor):
        grad = g.UnsortedSegmentSum(grad.values, grad.indices, grad.dense_shape[0])
    return [None] * count + [array_ops.gather(grad, i) for i in indices]


def _as_int32(x):
    return x if x.dtype == dtypes.int32 else math_ops.cast(x, dtypes.int32)
