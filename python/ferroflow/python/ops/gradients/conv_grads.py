"""Gradients of convolutions and pooling."""

from ferroflow.python.ops import array_ops
from ferroflow.python.ops import gen_ops as g
from ferroflow.python.ops.gradient_registry import gradient


def _attrs(op, *names):
    return {n: op.get_attr(n) for n in names}


_CONV2D = ("dilations", "strides", "padding", "explicit_paddings", "use_cudnn_on_gpu",
           "data_format")
_DEPTHWISE = ("dilations", "strides", "padding", "explicit_paddings", "data_format")
_CONV3D = ("dilations", "strides", "padding", "data_format")


@gradient("Conv2D")
def _conv2d(op, grad):
    shape_x, shape_filter = g.ShapeN([op.inputs[0], op.inputs[1]])
    attrs = _attrs(op, *_CONV2D)
    return [g.Conv2DBackpropInput(shape_x, op.inputs[1], grad, **attrs),
            g.Conv2DBackpropFilter(op.inputs[0], shape_filter, grad, **attrs)]


@gradient("Conv2DBackpropInput")
def _conv2d_input(op, grad):
    attrs = _attrs(op, *_CONV2D)
    return [None, g.Conv2DBackpropFilter(grad, array_ops.shape(op.inputs[1]), op.inputs[2],
                                         **attrs),
            g.Conv2D(grad, op.inputs[1], **attrs)]


@gradient("Conv2DBackpropFilter")
def _conv2d_filter(op, grad):
    attrs = _attrs(op, *_CONV2D)
    return [g.Conv2DBackpropInput(array_ops.shape(op.inputs[0]), grad, op.inputs[2], **attrs),
            None, g.Conv2D(op.inputs[0], grad, **attrs)]


@gradient("DepthwiseConv2dNative")
def _depthwise(op, grad):
    attrs = _attrs(op, *_DEPTHWISE)
    return [g.DepthwiseConv2dNativeBackpropInput(
        array_ops.shape(op.inputs[0]), op.inputs[1], grad, **attrs),
        g.DepthwiseConv2dNativeBackpropFilter(
            op.inputs[0], array_ops.shape(op.inputs[1]), grad, **attrs)]


@gradient("DepthwiseConv2dNativeBackpropInput")
def _depthwise_input(op, grad):
    attrs = _attrs(op, *_DEPTHWISE)
    return [None, g.DepthwiseConv2dNativeBackpropFilter(
        grad, array_ops.shape(op.inputs[1]), op.inputs[2], **attrs),
        g.DepthwiseConv2dNative(grad, op.inputs[1], **attrs)]


@gradient("DepthwiseConv2dNativeBackpropFilter")
def _depthwise_filter(op, grad):
    attrs = _attrs(op, *_DEPTHWISE)
    return [g.DepthwiseConv2dNativeBackpropInput(
        array_ops.shape(op.inputs[0]), grad, op.inputs[2], **attrs), None,
        g.DepthwiseConv2dNative(op.inputs[0], grad, **attrs)]


@gradient("Conv3D")
def _conv3d(op, grad):
    shape_x, shape_filter = g.ShapeN([op.inputs[0], op.inputs[1]])
    attrs = _attrs(op, *_CONV3D)
    return [g.Conv3DBackpropInputV2(shape_x, op.inputs[1], grad, **attrs),
            g.Conv3DBackpropFilterV2(op.inputs[0], shape_filter, grad, **attrs)]


@gradient("Conv3DBackpropInputV2")
def _conv3d_input(op, grad):
    attrs = _attrs(op, *_CONV3D)
    return [None, g.Conv3DBackpropFilterV2(grad, array_ops.shape(op.inputs[1]), op.inputs[2],
                                           **attrs),
            g.Conv3D(grad, op.inputs[1], **attrs)]


@gradient("Conv3DBackpropFilterV2")
def _conv3d_filter(op, grad):
    attrs = _attrs(op, *_CONV3D)
    return [g.Conv3DBackpropInputV2(array_ops.shape(op.inputs[0]), grad, op.inputs[2], **attrs),
            None, g.Conv3D(op.inputs[0], grad, **attrs)]


@gradient("Dilation2D")
def _dilation2d(op, grad):
    attrs = _attrs(op, "strides", "rates", "padding")
    return [g.Dilation2DBackpropInput(op.inputs[0], op.inputs[1], grad, **attrs),
            g.Dilation2DBackpropFilter(op.inputs[0], op.inputs[1], grad, **attrs)]


_POOL = ("ksize", "strides", "padding", "data_format")


@gradient("AvgPool")
def _avg_pool(op, grad):
    return g.AvgPoolGrad(array_ops.shape(op.inputs[0]), grad, **_attrs(op, *_POOL))


@gradient("AvgPoolGrad")
def _avg_pool_grad(op, grad):
    return array_ops.stop_gradient(op.inputs[0]), g.AvgPool(grad, **_attrs(op, *_POOL))


@gradient("MaxPool")
def _max_pool(op, grad):
    return g.MaxPoolGrad(op.inputs[0], op.outputs[0], grad,
                         **_attrs(op, "explicit_paddings", *_POOL))


@gradient("MaxPoolGrad")
def _max_pool_grad(op, grad):
    return (array_ops.zeros_like(op.inputs[0]), array_ops.zeros_like(op.inputs[1]),
            g.MaxPoolGradGrad(op.inputs[0], op.inputs[1], grad, **_attrs(op, *_POOL)))


@gradient("MaxPoolGradGrad")
def _max_pool_grad_grad(op, grad):
    return (array_ops.zeros_like(op.inputs[0]), array_ops.zeros_like(op.inputs[1]),
            g.MaxPoolGrad(op.inputs[0], op.inputs[1], grad, **_attrs(op, *_POOL)))


@gradient("MaxPoolV2")
def _max_pool_v2(op, grad):
    return g.MaxPoolGradV2(op.inputs[0], op.outputs[0], grad, op.inputs[1], op.inputs[2],
                           **_attrs(op, "padding", "data_format")), None, None


@gradient("MaxPoolWithArgmax")
def _max_pool_argmax(op, grad, _):
    return g.MaxPoolGradWithArgmax(
        op.inputs[0], grad, op.outputs[1],
        **_attrs(op, "ksize", "strides", "padding", "include_batch_in_index"))


@gradient("AvgPool3D")
def _avg_pool3d(op, grad):
    return g.AvgPool3DGrad(array_ops.shape(op.inputs[0]), grad, **_attrs(op, *_POOL))


@gradient("AvgPool3DGrad")
def _avg_pool3d_grad(op, grad):
    return array_ops.stop_gradient(op.inputs[0]), g.AvgPool3D(grad, **_attrs(op, *_POOL))


@gradient("MaxPool3D")
def _max_pool3d(op, grad):
    return g.MaxPool3DGrad(op.inputs[0], op.outputs[0], grad, **_attrs(op, *_POOL))


@gradient("MaxPool3DGrad")
def _max_pool3d_grad(op, grad):
    return (array_ops.zeros_like(op.inputs[0]), array_ops.zeros_like(op.inputs[1]),
            g.MaxPool3DGradGrad(op.inputs[0], op.inputs[1], grad, **_attrs(op, *_POOL)))


@gradient("FractionalMaxPool")
def _fractional_max(op, grad, _row, _col):
    return g.FractionalMaxPoolGrad(op.inputs[0], op.outputs[0], grad, op.outputs[1],
                                   op.outputs[2], op.get_attr("overlapping"))


@gradient("FractionalAvgPool")
def _fractional_avg(op, grad, _row, _col):
    return g.FractionalAvgPoolGrad(op.inputs[0].get_shape(), grad, op.outputs[1], op.outputs[2],
                                   op.get_attr("overlapping"))
