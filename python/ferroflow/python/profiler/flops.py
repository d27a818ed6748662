"""How many float operations an operation takes, by TensorFlow's formulas."""

import numpy as np


def _count(tensor):
    """The number of elements, or an error if only a step knows it."""
    count = tensor.get_shape().num_elements()
    if count is None:
        raise ValueError("the shape of %s is not known" % tensor.name)
    return count


def _per_input(each):
    return lambda op: each * _count(op.inputs[0])


def _per_output(each):
    return lambda op: each * _count(op.outputs[0])


def _reduction(last):
    return lambda op: _count(op.inputs[0]) + (last - 1) * _count(op.outputs[0])


def _batch_last(op):
    if op.get_attr("data_format") != b"NHWC":
        raise ValueError("Only NHWC format is supported in flops computations")


def _pool(op):
    _batch_last(op)
    return int(np.prod(op.get_attr("ksize"))) * _count(op.outputs[0])


def _avg_pool_grad(op):
    _batch_last(op)
    return 2 * int(np.prod(op.get_attr("ksize"))) * _count(op.inputs[1])


def _max_pool_grad(op):
    _batch_last(op)
    return (int(np.prod(op.get_attr("ksize"))) + 1) * _count(op.inputs[1])


def _conv_grad(image, kernel):
    """Of a convolution's gradient; the functions find the image and the kernel."""
    def flops(op):
        _batch_last(op)
        strides = op.get_attr("strides")
        pixels = _count(image(op)) // image(op).get_shape().as_list()[-1]
        return int(2 * pixels * _count(kernel(op)) / (strides[1] * strides[2]))
    return flops


def _conv(op):
    kernel = op.inputs[1].get_shape().as_list()
    _count(op.inputs[0])
    return 2 * _count(op.outputs[0]) * int(np.prod(kernel[:-1]))


def _depthwise(op):
    return 2 * _count(op.outputs[0]) * int(np.prod(op.inputs[1].get_shape().as_list()[:2]))


def _dilation(op):
    return 2 * _count(op.outputs[0]) * int(np.prod(op.inputs[1].get_shape().as_list()[:2]))


def _matmul(op):
    _count(op.inputs[0])
    dims = op.inputs[0].get_shape().as_list()
    flipped = op.get_attr("transpose_a") if op.type == "MatMul" else op.get_attr("adj_x")
    return 2 * dims[-2 if flipped else -1] * _count(op.outputs[0])


_FORMULAS = {
    **dict.fromkeys("Reciprocal Square Log Neg AssignSub AssignAdd BiasAdd".split(), _per_input(1)),
    **dict.fromkeys("Add AddV2 Sub Mul RealDiv Maximum Minimum Pow GreaterEqual Greater LessEqual Less Equal NotEqual".split(),
                    _per_output(1)),
    **dict.fromkeys("Sum ArgMax ArgMin BiasAddGrad".split(), _reduction(0)),
    **dict.fromkeys("MatMul BatchMatMul BatchMatMulV2 BatchMatMulV3".split(), _matmul),
    "Rsqrt": _per_input(2), "Softmax": _per_input(5), "RsqrtGrad": _per_output(4), "SquaredDifference": _per_output(2),
    "L2Loss": lambda op: 3 * _count(op.inputs[0]) - 1, "Mean": _reduction(1),
    "AddN": lambda op: (len(op.inputs) - 1) * _count(op.inputs[0]) if op.inputs else 0,
    "AvgPool": _pool, "MaxPool": _pool, "AvgPoolGrad": _avg_pool_grad, "MaxPoolGrad": _max_pool_grad,
    "Conv2DBackpropInput": _conv_grad(lambda op: op.outputs[0], lambda op: op.inputs[1]),
    "Conv2DBackpropFilter": _conv_grad(lambda op: op.inputs[0], lambda op: op.outputs[0]),
    "Conv2D": _conv, "Conv3D": _conv, "DepthwiseConv2dNative": _depthwise, "Dilation2D": _dilation,
}


def flops(op):
    """The float operations of an operation: 0 if there is no formula, None if a shape is not known."""
    formula = _FORMULAS.get(op.type)
    if formula is None:
        return 0
    try:
        return formula(op)
    except (ValueError, TypeError, IndexError):
        return None
