"""Colours of images: hue, saturation, gamma, colour spaces, JPEG quality."""

from ferroflow.python.framework import dtypes
from ferroflow.python.framework import ops
from ferroflow.python.framework import tensor_util
from ferroflow.python.framework import random_seed
from ferroflow.python.ops import array_ops
from ferroflow.python.ops import gen_ops
from ferroflow.python.ops import image_ops
from ferroflow.python.ops import math_ops
from ferroflow.python.ops import random_ops
from ferroflow.python.util.api import export


def _in_floats(image, name, change):
    """Applies `change` to an image with values of a floating type, and restores its type."""
    with ops.name_scope(None, name, [image]):
        image = ops.convert_to_tensor(image, name="image")
        original = image.dtype
        if original not in (dtypes.float16, dtypes.float32):
            image = image_ops.convert_image_dtype(image, dtypes.float32)
        return image_ops.convert_image_dtype(change(image), original, saturate=True)


@export("image.adjust_hue")
def adjust_hue(image, delta, name=None):
    return _in_floats(image, name or "adjust_hue", lambda x: gen_ops.AdjustHue(x, delta))


@export("image.adjust_saturation")
def adjust_saturation(image, saturation_factor, name=None):
    return _in_floats(image, name or "adjust_saturation",
                      lambda x: gen_ops.AdjustSaturation(x, saturation_factor))


@export("image.random_hue")
def random_hue(image, max_delta, seed=None):
    if max_delta > 0.5:
        raise ValueError("max_delta must be <= 0.5.")
    if max_delta < 0:
        raise ValueError("max_delta must be non-negative.")
    return adjust_hue(image, random_ops.random_uniform([], -max_delta, max_delta, seed=seed))


@export("image.random_saturation")
def random_saturation(image, lower, upper, seed=None):
    if upper <= lower:
        raise ValueError("upper must be > lower.")
    if lower < 0:
        raise ValueError("lower must be non-negative.")
    return adjust_saturation(image, random_ops.random_uniform([], lower, upper, seed=seed))


@export("image.adjust_gamma")
def adjust_gamma(image, gamma=1, gain=1):
    """`gain * image ** gamma`, with the image scaled to [0, 1]."""
    with ops.name_scope(None, "adjust_gamma", [image, gamma, gain]):
        image = ops.convert_to_tensor(image, name="image")
        original = image.dtype
        if not original.is_floating:
            image = image_ops.convert_image_dtype(image, dtypes.float32)
        if not tensor_util.is_tensor(gamma) and gamma < 0:
            raise ValueError("Gamma should be a non-negative real number.")
        return image_ops.convert_image_dtype(gain * image ** gamma, original, saturate=True)


_YIQ = [[0.299, 0.59590059, 0.2115], [0.587, -0.27455667, -0.52273617], [0.114, -0.32134392, 0.31119955]]
_FROM_YIQ = [[1, 1, 1], [0.95598634, -0.27201283, -1.10674021], [0.6208248, -0.64720424, 1.70423049]]
_YUV = [[0.299, -0.14714119, 0.61497538], [0.587, -0.28886916, -0.51496512], [0.114, 0.43601035, -0.10001026]]
_FROM_YUV = [[1, 1, 1], [0, -0.394642334, 2.03206185], [1.13988303, -0.58062185, 0]]


def _colour_space(name, matrix):
    def function(images):
        images = ops.convert_to_tensor(images, name="images")
        kernel = ops.convert_to_tensor(matrix, dtype=images.dtype, name="kernel")
        rank = images.get_shape().ndims
        return math_ops.tensordot(images, kernel, axes=[[rank - 1], [0]])
    function.__name__ = name
    return function


rgb_to_yiq = export("image.rgb_to_yiq")(_colour_space("rgb_to_yiq", _YIQ))
yiq_to_rgb = export("image.yiq_to_rgb")(_colour_space("yiq_to_rgb", _FROM_YIQ))
rgb_to_yuv = export("image.rgb_to_yuv")(_colour_space("rgb_to_yuv", _YUV))
yuv_to_rgb = export("image.yuv_to_rgb")(_colour_space("yuv_to_rgb", _FROM_YUV))


@export("image.adjust_jpeg_quality")
def adjust_jpeg_quality(image, jpeg_quality, name=None):
    """The image after it was written as JPEG and read again."""
    with ops.name_scope(name, "adjust_jpeg_quality", [image]):
        image = ops.convert_to_tensor(image, name="image")
        channels = image.get_shape().as_list()[-1]
        original = image.dtype
        image = image_ops.convert_image_dtype(image, dtypes.uint8, saturate=True)
        quality = ops.convert_to_tensor(jpeg_quality, dtypes.int32)
        data = gen_ops.EncodeJpegVariableQuality(image, quality)
        return image_ops.convert_image_dtype(gen_ops.DecodeJpeg(data, channels=channels), original, saturate=True)


@export("image.random_jpeg_quality")
def random_jpeg_quality(image, min_jpeg_quality, max_jpeg_quality, seed=None):
    if min_jpeg_quality < 0 or max_jpeg_quality > 100 or min_jpeg_quality >= max_jpeg_quality:
        raise ValueError("jpeg encoding range must be between 0 and 100, and `min_jpeg_quality` must be less than "
                         "`max_jpeg_quality`.")
    quality = random_ops.random_uniform([], min_jpeg_quality, max_jpeg_quality, seed=seed, dtype=dtypes.int32)
    return adjust_jpeg_quality(image, quality)


@export("image.sample_distorted_bounding_box")
def sample_distorted_bounding_box(image_size, bounding_boxes, seed=None, seed2=None, min_object_covered=0.1,
                                  aspect_ratio_range=None, area_range=None, max_attempts=None,
                                  use_image_if_no_bounding_boxes=None, name=None):
    """A random box inside an image that keeps a part of its objects."""
    if seed2 is None:
        seed, seed2 = random_seed.get_seed(seed)
    with ops.name_scope(name, "sample_distorted_bounding_box"):
        return gen_ops.SampleDistortedBoundingBoxV2(
            image_size, bounding_boxes, min_object_covered, seed=seed or 0, seed2=seed2 or 0,
            aspect_ratio_range=aspect_ratio_range or [0.75, 1.33], area_range=area_range or [0.05, 1],
            max_attempts=max_attempts or 100,
            use_image_if_no_bounding_boxes=bool(use_image_if_no_bounding_boxes), name=name)


@export("image.draw_bounding_boxes")
def draw_bounding_boxes(images, boxes, name=None, colors=None):
    if colors is None:
        return gen_ops.DrawBoundingBoxes(images, boxes, name=name)
    return gen_ops.DrawBoundingBoxesV2(images, boxes, colors, name=name)


@export("image.decode_image", "io.decode_image")
def decode_image(contents, channels=None, dtype=dtypes.uint8, name=None, expand_animations=True):
    """Decodes a BMP, GIF, JPEG or PNG image."""
    dtype = dtypes.as_dtype(dtype)
    with ops.name_scope(name, "decode_image"):
        kind = dtype if dtype in (dtypes.float32, dtypes.uint8, dtypes.uint16) else dtypes.uint16
        image = gen_ops.DecodeImage(contents, channels=channels or 0, expand_animations=expand_animations, dtype=kind)
        return image if kind == dtype else image_ops.convert_image_dtype(image, dtype)


@export("image.is_jpeg", "io.is_jpeg")
def is_jpeg(contents, name=None):
    """Whether bytes begin as a JPEG image does."""
    with ops.name_scope(name, "is_jpeg"):
        return gen_ops.Equal(gen_ops.Substr(contents, 0, 3), b"\xff\xd8\xff", name=name)


@export("image.encode_png", "io.encode_png")
def encode_png(image, compression=-1, name=None):
    return gen_ops.EncodePng(image, compression=compression, name=name)


def _differences(image):
    rows = image[:, 1:, :, :] - image[:, :-1, :, :]
    columns = image[:, :, 1:, :] - image[:, :, :-1, :]
    return rows, columns


@export("image.image_gradients")
def image_gradients(image):
    """The differences between neighbours along both axes, with zeros at the end."""
    if image.get_shape().ndims != 4:
        raise ValueError("image_gradients expects a 4D tensor [batch_size, h, w, d], not %s." % image.get_shape())
    shape = array_ops.shape(image)
    batch, height, width, depth = array_ops.unstack(shape)
    rows, columns = _differences(image)
    rows = array_ops.concat([rows, array_ops.zeros(array_ops.stack([batch, 1, width, depth]), image.dtype)], 1)
    columns = array_ops.concat([columns, array_ops.zeros(array_ops.stack([batch, height, 1, depth]), image.dtype)], 2)
    return (array_ops.reshape(rows, shape), array_ops.reshape(columns, shape))


@export("image.sobel_edges")
def sobel_edges(image):
    """The vertical and horizontal Sobel filters of each channel, in a new last axis."""
    static = image.get_shape()
    shape = array_ops.shape(image)
    vertical = [[-1, -2, -1], [0, 0, 0], [1, 2, 1]]
    horizontal = [[-1, 0, 1], [-2, 0, 2], [-1, 0, 1]]
    filters = ops.convert_to_tensor([[[vertical[i][j], horizontal[i][j]] for j in range(3)] for i in range(3)],
                                    dtype=image.dtype)
    filters = array_ops.tile(array_ops.expand_dims(filters, -2), [1, 1, static.as_list()[-1], 1], name="sobel_filters")
    padded = array_ops.pad(image, [[0, 0], [1, 1], [1, 1], [0, 0]], mode="REFLECT")
    found = gen_ops.DepthwiseConv2dNative(padded, filters, strides=[1, 1, 1, 1], padding="VALID")
    found = array_ops.reshape(found, array_ops.concat([shape, [2]], 0))
    found.set_shape(static.concatenate([2]))
    return found
