"""Gradients of ops that move elements."""

from ferroflow.python.framework import constant_op
from ferroflow.python.framework import dtypes
from ferroflow.python.framework import indexed_slices
from ferroflow.python.framework import tensor_util
from ferroflow.python.ops import array_ops
from ferroflow.python.ops import gen_ops as g
from ferroflow.python.ops import math_ops
from ferroflow.python.ops.gradient_registry import gradient

IndexedSlices = indexed_slices.IndexedSlices
_MASKS = ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask")


def dense(grad):
    """An IndexedSlices gradient as a tensor."""
    if not isinstance(grad, IndexedSlices):
        return grad
    if grad.dense_shape is None:
        raise ValueError("Tensor conversion requested for IndexedSlices without dense_shape: %s" %
                         grad)
    return g.UnsortedSegmentSum(grad.values, grad.indices, grad.dense_shape[0])


@gradient("Pack")
def _pack(op, grad):
    return array_ops.unstack(grad, num=op.get_attr("N"), axis=op.get_attr("axis"))


@gradient("Unpack")
def _unpack(op, *grads):
    return array_ops.stack(grads, axis=op.get_attr("axis"))


@gradient("ConcatV2")
def _concat_v2(op, grad):
    inputs = list(op.inputs)
    return _concat(op, grad, inputs[:-1], inputs[-1]) + [None]


@gradient("Concat")
def _concat_v1(op, grad):
    inputs = list(op.inputs)
    return [None] + _concat(op, grad, inputs[1:], inputs[0])


def _concat(op, grad, values, axis):
    if len(values) == 1:
        return [grad]
    if isinstance(grad, IndexedSlices):
        return _concat_slices(grad, values, axis)
    axis = _in_context_of(axis, grad)
    axis = axis % array_ops.rank(values[0])
    sizes = _shapes(values)
    if len(sizes) > 16:
        sizes = array_ops.squeeze(
            array_ops.slice(array_ops.stack(sizes, axis=1), [axis, 0], [1, -1]))
        return list(array_ops.split(grad, sizes, axis))
    offsets = g.ConcatOffset(axis, sizes)
    return [array_ops.slice(grad, begin, size) for begin, size in zip(offsets, sizes)]


def _in_context_of(axis, grad):
    """The axis, created again if the gradient is in another control-flow context."""
    if axis.op.type != "Const":
        return axis
    from ferroflow.python.ops import control_flow_util
    if control_flow_util.output_context(axis.op) is control_flow_util.output_context(grad.op):
        return axis
    return constant_op.constant(tensor_util.constant_value(axis), dtype=axis.dtype)


def _shapes(values):
    sizes = []
    for x in values:
        shape = array_ops.shape(x)
        if shape.op.type != "Const":
            return g.ShapeN(values)
        sizes.append(shape)
    return sizes


def _concat_slices(grad, values, axis):
    positive = axis % array_ops.rank(values[0])
    static = tensor_util.constant_value(axis)
    if static is None:
        raise ValueError("Can only compute IndexedSlices gradient with statically-known "
                         "concat_dim")
    if static < 0:
        rank = tensor_util.constant_value(array_ops.rank(values[0]))
        if rank is None:
            raise ValueError("Can only compute IndexedSlices gradient with negative concat_dim "
                             "when first value rank is statically-known.")
        static %= rank
    sizes = [array_ops.shape(x) for x in values]
    out = []
    if static > 0:
        rank = array_ops.shape(sizes[0])
        mask = array_ops.concat([
            array_ops.zeros(array_ops.expand_dims(positive, 0), dtype=dtypes.int32), [1],
            array_ops.zeros(rank - positive - 1, dtype=dtypes.int32)], 0)
        begin = array_ops.zeros(rank, dtype=dtypes.int32)
        for size in sizes:
            part = array_ops.slice(grad.values, begin, array_ops.concat(
                [[-1], array_ops.slice(size, [1], [-1])], 0))
            out.append(IndexedSlices(part, grad.indices, size))
            begin = math_ops.add(begin, size * mask)
        return out
    start = constant_op.constant(0, dtype=grad.indices.dtype)
    for size in sizes:
        length = array_ops.gather(size, positive)
        if length.dtype != grad.indices.dtype:
            length = math_ops.cast(length, dtype=grad.indices.dtype)
        end = start + length
        chosen = array_ops.squeeze(array_ops.where(
            g.LogicalAnd(grad.indices >= start, grad.indices < end)), axis=[1])
        indices = array_ops.gather(grad.indices, chosen) - start
        out.append(IndexedSlices(array_ops.gather(grad.values, chosen), indices, size))
        start = end
    return out


@gradient("Slice")
def _slice(op, grad):
    x, begin = op.inputs[0], op.inputs[1]
    rank = array_ops.rank(x)
    size = array_ops.shape(op.outputs[0], out_type=begin.dtype)
    shape = array_ops.stack([rank, 1])
    before = array_ops.reshape(begin, shape)
    after = array_ops.reshape(
        array_ops.shape(x, out_type=begin.dtype) - size - begin, shape)
    return array_ops.pad(grad, array_ops.concat([before, after], 1)), None, None


def _known(tensor):
    value = tensor_util.constant_value(tensor)
    return tensor if value is None else value


@gradient("StridedSlice")
def _strided_slice(op, grad):
    begin, end, strides = op.inputs[1], op.inputs[2], op.inputs[3]
    shape = _known(array_ops.shape(op.inputs[0], out_type=begin.dtype))
    return g.StridedSliceGrad(
        shape, _known(begin), _known(end), _known(strides), grad,
        **{m: op.get_attr(m) for m in _MASKS}), None, None, None


@gradient("StridedSliceGrad")
def _strided_slice_grad(op, grad):
    return None, None, None, None, array_ops.strided_slice(
        grad, op.inputs[1], op.inputs[2], op.inputs[3], **{m: op.get_attr(m) for m in _MASKS})


@gradient("Split")
def _split(op, *grads):
    return None, array_ops.concat(list(grads), op.inputs[0])


@gradient("SplitV")
def _split_v(op, *grads):
    return [array_ops.concat(list(grads), op.inputs[2]), None, None]


@gradient("Diag")
def _diag(op, grad):
    return g.DiagPart(grad)


@gradient("DiagPart")
def _diag_part(op, grad):
    return g.Diag(grad)


@gradient("MatrixDiagV3")
def _matrix_diag(op, grad):
    return array_ops.matrix_diag_part(
        grad, k=op.inputs[1], align=op.get_attr("align")), None, None, None, None


@gradient("MatrixDiagPartV3")
def _matrix_diag_part(op, grad):
    x, k = op.inputs[0], op.inputs[1]
    align = op.get_attr("align")
    shape = x.get_shape()[-2:]
    if shape.is_fully_defined():
        rows, cols = shape.as_list()
        return array_ops.matrix_diag(grad, k=k, num_rows=rows, num_cols=cols, align=align), (
            None), None
    return array_ops.matrix_set_diag(array_ops.zeros_like(x), grad, k=k, align=align), None, None


@gradient("MatrixSetDiagV3")
def _matrix_set_diag(op, grad):
    shape = op.inputs[1].get_shape()
    if not shape.is_fully_defined():
        shape = array_ops.shape(op.inputs[1])
    align = op.get_attr("align")
    kept = array_ops.matrix_set_diag(grad, array_ops.zeros(shape, dtype=grad.dtype),
                                     k=op.inputs[2], align=align)
    return kept, array_ops.matrix_diag_part(grad, k=op.inputs[2], align=align), None


@gradient("MatrixBandPart")
def _matrix_band_part(op, grad):
    return g.MatrixBandPart(grad, op.inputs[1], op.inputs[2]), None, None


@gradient("Fill")
def _fill(op, grad):
    return None, math_ops.reduce_sum(grad)


def _to_input(op, grad):
    return array_ops.reshape(dense(grad), array_ops.shape(op.inputs[0]))


@gradient("Reshape", "ExpandDims")
def _reshape(op, grad):
    return [_to_input(op, grad), None]


@gradient("Squeeze", "EnsureShape")
def _squeeze(op, grad):
    return _to_input(op, grad) if op.type == "Squeeze" else grad


@gradient("Transpose")
def _transpose(op, grad):
    return [array_ops.transpose(grad, g.InvertPermutation(op.inputs[1])), None]


@gradient("ConjugateTranspose")
def _conjugate_transpose(op, grad):
    return [array_ops.transpose(grad, g.InvertPermutation(op.inputs[1]), conjugate=True), None]


@gradient("Tile")
def _tile(op, grad):
    x, multiples = op.inputs
    shape = array_ops.shape(x, out_type=multiples.dtype)
    split = array_ops.reshape(
        array_ops.transpose(array_ops.stack([multiples, shape])), [-1])
    axes = math_ops.range(0, array_ops.size(split), 2)
    if isinstance(grad, IndexedSlices):
        first = math_ops.cast(shape[0], grad.indices.dtype)
        grad = g.UnsortedSegmentSum(grad.values, math_ops.floormod(grad.indices, first), first)
        split = array_ops.concat([[1], split[1:]], axis=0)
    result = math_ops.reduce_sum(array_ops.reshape(grad, split), axes)
    result.set_shape(x.get_shape())
    return [result, None]


@gradient("Pad", "PadV2")
def _pad(op, grad):
    x, paddings = op.inputs[0], op.inputs[1]
    before = array_ops.slice(paddings, [0, 0], array_ops.stack([array_ops.rank(x), 1]))
    begin = array_ops.reshape(before, [-1])
    sizes = array_ops.shape(x, out_type=begin.dtype)
    return [array_ops.slice(grad, begin, sizes)] + [None] * (len(op.inputs) - 1)


@gradient("MirrorPad")
def _mirror_pad(op, grad):
    return [g.MirrorPadGrad(grad, op.inputs[1], mode=op.get_attr("mode")), None]


@gradient("MirrorPadGrad")
def _mirror_pad_grad(op, grad):
    return [g.MirrorPad(grad, op.inputs[1], mode=op.get_attr("mode")), None]


@gradient("ReverseSequence")
def _reverse_sequence(op, grad):
    return [array_ops.reverse_sequence(
        grad, batch_axis=op.get_attr("batch_dim"), seq_axis=op.get_attr("seq_dim"),
        seq_lengths=op.inputs[1]), None]


@gradient("Reverse")
def _reverse(op, grad):
    return g.Reverse(grad, op.inputs[1]), None


@gradient("ReverseV2")
def _reverse_v2(op, grad):
    return g.ReverseV2(grad, op.inputs[1]), None


@gradient("Roll")
def _roll(op, grad):
    return g.Roll(grad, -op.inputs[1], op.inputs[2]), None, None


@gradient("SpaceToBatchND")
def _space_to_batch(op, grad):
    return [g.BatchToSpaceND(grad, op.inputs[1], op.inputs[2]), None, None]


@gradient("BatchToSpaceND")
def _batch_to_space(op, grad):
    return [g.SpaceToBatchND(grad, op.inputs[1], op.inputs[2]), None, None]


@gradient("SpaceToDepth")
def _space_to_depth(op, grad):
    return array_ops.depth_to_space(grad, op.get_attr("block_size"),
                                    data_format=op.get_attr("data_format"))


@gradient("DepthToSpace")
def _depth_to_space(op, grad):
    return array_ops.space_to_depth(grad, op.get_attr("block_size"),
                                    data_format=op.get_attr("data_format"))


@gradient("BroadcastTo")
def _broadcast_to(op, grad):
    x, shape = op.inputs
    x_shape = array_ops.shape(x, out_type=shape.dtype)
    static = tensor_util.constant_value(shape)
    if static is not None:
        shape = constant_op.constant([int(d) for d in static], dtype=shape.dtype)
    _, axes = g.BroadcastGradientArgs(shape, x_shape)
    summed = math_ops.reduce_sum(grad, axis=axes, keepdims=True)
    return [array_ops.reshape(summed, x_shape), None]


@gradient("DeepCopy", "Snapshot")
def _copy(op, grad):
    return grad


