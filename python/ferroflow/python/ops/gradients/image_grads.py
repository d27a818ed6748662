"""Gradients of image ops."""

from ferroflow.python.framework import dtypes
from ferroflow.python.ops import array_ops
from ferroflow.python.ops import gen_ops as g
from ferroflow.python.ops import linalg_ops
from ferroflow.python.ops.gradient_registry import gradient


def _sampling(op):
    return {k: op.get_attr(k) for k in ("align_corners", "half_pixel_centers")}


@gradient("ResizeNearestNeighbor")
def _nearest(op, grad):
    image = op.inputs[0]
    if image.get_shape()[1:3].is_fully_defined():
        shape = image.get_shape().as_list()[1:3]
    else:
        shape = array_ops.shape(image)[1:3]
    return [g.ResizeNearestNeighborGrad(grad, shape, **_sampling(op)), None]


@gradient("ResizeBilinear")
def _bilinear(op, grad):
    return [g.ResizeBilinearGrad(grad, op.inputs[0], **_sampling(op)), None]


@gradient("ResizeBicubic")
def _bicubic(op, grad):
    if op.inputs[0].dtype in (dtypes.float32, dtypes.float64):
        return [g.ResizeBicubicGrad(grad, op.inputs[0], **_sampling(op)), None]
    return [None, None]


@gradient("CropAndResize")
def _crop_and_resize(op, grad):
    image, boxes, indices = op.inputs[0], op.inputs[1], op.inputs[2]
    method = op.get_attr("method")
    shape = image.get_shape().as_list() if image.get_shape().is_fully_defined() else (
        array_ops.shape(image))
    image_grad = None
    if image.dtype in (dtypes.float16, dtypes.float32, dtypes.float64):
        image_grad = g.CropAndResizeGradImage(grad, boxes, indices, shape, T=image.dtype,
                                              method=method)
    return [image_grad, g.CropAndResizeGradBoxes(grad, image, boxes, indices), None, None]


@gradient("ExtractImagePatches")
def _extract_image_patches(op, grad):
    """Patches are a convolution with filters that pick one pixel each."""
    image = op.inputs[0]
    _, rows, columns, _ = op.get_attr("ksizes")
    channels = array_ops.shape(image)[3]
    count = rows * columns * channels
    filters = array_ops.reshape(linalg_ops.eye(count, dtype=image.dtype), [rows, columns, channels, count])
    return g.Conv2DBackpropInput(
        array_ops.shape(image), filters, grad, strides=op.get_attr("strides"), padding=op.get_attr("padding"),
        dilations=op.get_attr("rates"))


@gradient("ImageProjectiveTransformV2")
def _image_projective_transform(op, dy):
    """The gradient seen through the inverse transforms."""
    images, transforms = op.inputs[0], op.inputs[1]
    if images.dtype.base_dtype not in (dtypes.float16, dtypes.float32, dtypes.float64):
        return [None, None, None]
    ones = array_ops.ones_like(transforms[:, :1])
    matrices = array_ops.reshape(array_ops.concat([transforms, ones], axis=1), [-1, 3, 3])
    rows = array_ops.reshape(g.MatrixInverse(matrices), [-1, 9])
    back = (rows / rows[:, 8:9])[:, :8]
    return [g.ImageProjectiveTransformV2(dy, back, array_ops.shape(images)[1:3], interpolation=op.get_attr("interpolation"),
                                         fill_mode=op.get_attr("fill_mode")), None, None]
