"""Images of other sizes: crops, padding, rotations, boxes; and measures of likeness."""

import numpy as np

from ferroflow.python.framework import dtypes
from ferroflow.python.framework import ops
from ferroflow.python.ops import array_ops
from ferroflow.python.ops import control_flow_ops
from ferroflow.python.ops import convolution_ops
from ferroflow.python.ops import gen_ops
from ferroflow.python.ops import image_ops
from ferroflow.python.ops import math_ops
from ferroflow.python.ops import nn_ops
from ferroflow.python.util.api import export


def _batch(image):
    """An image as a batch, and whether it was a single one."""
    image = ops.convert_to_tensor(image, name="image")
    rank = image.get_shape().ndims
    if rank == 3:
        return array_ops.expand_dims(image, 0), True
    if rank not in (None, 4):
        raise ValueError("'image' (shape %s) must have either 3 or 4 dimensions." % image.get_shape())
    return image, False


def _sizes(image):
    """Height and width: numbers where they are known."""
    static = image.get_shape().as_list() if image.get_shape().ndims else [None] * 4
    dynamic = array_ops.unstack(array_ops.shape(image)) if None in static[1:3] else static
    return [s if s is not None else d for s, d in zip(static[1:3], dynamic[1:3])]


def _known(*values):
    return all(isinstance(v, (int, np.integer)) for v in values)


@export("image.pad_to_bounding_box")
def pad_to_bounding_box(image, offset_height, offset_width, target_height, target_width):
    """The image with zeros around it."""
    with ops.name_scope(None, "pad_to_bounding_box", [image]):
        image, single = _batch(image)
        height, width = _sizes(image)
        after_height = target_height - offset_height - height
        after_width = target_width - offset_width - width
        for value, text in ((offset_height, "offset_height must be >= 0"), (offset_width, "offset_width must be >= 0"),
                            (after_width, "width must be <= target - offset"),
                            (after_height, "height must be <= target - offset")):
            if _known(value) and value < 0:
                raise ValueError(text)
        paddings = array_ops.reshape(array_ops.stack([
            0, 0, offset_height, after_height, offset_width, after_width, 0, 0]), [4, 2])
        padded = array_ops.pad(image, paddings)
        static = image.get_shape().as_list() if image.get_shape().ndims else [None] * 4
        padded.set_shape([static[0], target_height if _known(target_height) else None,
                          target_width if _known(target_width) else None, static[3]])
        return array_ops.squeeze(padded, axis=[0]) if single else padded


def _largest(a, b):
    return max(a, b) if _known(a, b) else math_ops.maximum(a, b)


def _smallest(a, b):
    return min(a, b) if _known(a, b) else math_ops.minimum(a, b)


@export("image.resize_image_with_crop_or_pad", "image.resize_with_crop_or_pad")
def resize_image_with_crop_or_pad(image, target_height, target_width):
    """Cuts or pads both sides of an image equally."""
    with ops.name_scope(None, "resize_image_with_crop_or_pad", [image]):
        image, single = _batch(image)
        for value, name in ((target_height, "target_height"), (target_width, "target_width")):
            if _known(value) and value <= 0:
                raise ValueError("%s must be > 0." % name)
        height, width = _sizes(image)
        over_height, over_width = target_height - height, target_width - width
        cropped = image_ops.crop_to_bounding_box(
            image, _largest(-over_height // 2, 0), _largest(-over_width // 2, 0),
            _smallest(target_height, height), _smallest(target_width, width))
        padded = pad_to_bounding_box(cropped, _largest(over_height // 2, 0), _largest(over_width // 2, 0),
                                     target_height, target_width)
        return array_ops.squeeze(padded, axis=[0]) if single else padded


@export("image.resize_image_with_pad")
def resize_image_with_pad(image, target_height, target_width, method=image_ops.ResizeMethod.BILINEAR,
                          align_corners=False):
    """Scales an image without distortion and pads it."""
    with ops.name_scope(None, "resize_image_with_pad", [image]):
        image, single = _batch(image)
        height, width = [math_ops.cast(x, dtypes.float32) for x in _sizes(image)]
        goal = [math_ops.cast(x, dtypes.float32) for x in (target_height, target_width)]
        ratio = math_ops.maximum(width / goal[1], height / goal[0])
        new = [math_ops.cast(math_ops.floor(x / ratio), dtypes.int32) for x in (height, width)]
        offsets = [math_ops.cast(math_ops.maximum(0.0, math_ops.floor((t - math_ops.floor(x / ratio)) / 2)),
                                 dtypes.int32) for t, x in zip(goal, (height, width))]
        resized = image_ops.resize_images(image, array_ops.stack(new), method, align_corners=align_corners)
        padded = pad_to_bounding_box(resized, offsets[0], offsets[1], target_height, target_width)
        return array_ops.squeeze(padded, axis=[0]) if single else padded


@export("image.central_crop")
def central_crop(image, central_fraction):
    """The middle part of an image."""
    with ops.name_scope(None, "central_crop", [image]):
        if not 0.0 < central_fraction <= 1.0:
            raise ValueError("central_fraction must be within (0, 1]")
        image = ops.convert_to_tensor(image, name="image")
        if central_fraction == 1.0:
            return image
        image, single = _batch(image)
        height, width = _sizes(image)

        def span(size):
            if _known(size):
                start = int((size - size * central_fraction) / 2)
                return start, size - 2 * start
            whole = math_ops.cast(size, dtypes.float64)
            start = math_ops.cast((whole - whole * central_fraction) / 2, dtypes.int32)
            return start, size - 2 * start

        (top, high), (left, wide) = span(height), span(width)
        cut = array_ops.slice(image, array_ops.stack([0, top, left, 0]), array_ops.stack([-1, high, wide, -1]))
        static = image.get_shape().as_list()
        cut.set_shape([static[0], high if _known(high) else None, wide if _known(wide) else None, static[3]])
        return array_ops.squeeze(cut, axis=[0]) if single else cut


@export("image.transpose_image", "image.transpose")
def transpose_image(image, name=None):
    """Swaps height and width."""
    with ops.name_scope(name, "transpose", [image]):
        image, single = _batch(image)
        turned = array_ops.transpose(image, [0, 2, 1, 3], name=name)
        return array_ops.squeeze(turned, axis=[0]) if single else turned


@export("image.rot90")
def rot90(image, k=1, name=None):
    """Turns an image counter-clockwise by quarters."""
    with ops.name_scope(name, "rot90", [image, k]) as scope:
        image, single = _batch(image)
        if _known(k):
            turned = _quarters(image, k % 4)
        else:
            k = ops.convert_to_tensor(k, dtype=dtypes.int32, name="k")
            k = math_ops.floormod(k, 4)
            turned = control_flow_ops.case(
                [(math_ops.equal(k, i), lambda i=i: _quarters(image, i)) for i in (1, 2, 3)],
                default=lambda: image, exclusive=True, name=scope)
        static = image.get_shape().as_list()
        turned.set_shape([static[0], None, None, static[3]])
        return array_ops.squeeze(turned, axis=[0]) if single else turned


def _quarters(image, k):
    if k == 1:
        return array_ops.transpose(gen_ops.ReverseV2(image, [2]), [0, 2, 1, 3])
    if k == 2:
        return gen_ops.ReverseV2(image, [1, 2])
    if k == 3:
        return gen_ops.ReverseV2(array_ops.transpose(image, [0, 2, 1, 3]), [2])
    return image


@export("image.extract_glimpse")
def extract_glimpse(input, size, offsets, centered=True, normalized=True, uniform_noise=True, name=None):  # pylint: disable=redefined-builtin
    return gen_ops.ExtractGlimpse(input, size, offsets, centered=centered, normalized=normalized,
                                  uniform_noise=uniform_noise, name=name)


@export("image.non_max_suppression_overlaps")
def non_max_suppression_overlaps(overlaps, scores, max_output_size, overlap_threshold=0.5,
                                 score_threshold=float("-inf"), name=None):
    with ops.name_scope(name, "non_max_suppression_overlaps"):
        return gen_ops.NonMaxSuppressionWithOverlaps(overlaps, scores, max_output_size, overlap_threshold,
                                                     score_threshold)


@export("image.non_max_suppression_with_scores")
def non_max_suppression_with_scores(boxes, scores, max_output_size, iou_threshold=0.5,
                                    score_threshold=float("-inf"), soft_nms_sigma=0.0, name=None):
    """The boxes that remain, and their scores after soft suppression."""
    with ops.name_scope(name, "non_max_suppression_with_scores"):
        boxes = ops.convert_to_tensor(boxes, name="boxes")
        limits = [ops.convert_to_tensor(x, boxes.dtype) for x in (iou_threshold, score_threshold, soft_nms_sigma)]
        found, kept, _ = gen_ops.NonMaxSuppressionV5(boxes, scores, max_output_size, *limits,
                                                     pad_to_max_output_size=False)
        return found, kept


@export("image.non_max_suppression_padded")
def non_max_suppression_padded(boxes, scores, max_output_size, iou_threshold=0.5, score_threshold=float("-inf"),
                               pad_to_max_output_size=False, name=None):
    """The boxes that remain, padded with zeros, and how many there are."""
    with ops.name_scope(name, "non_max_suppression_padded"):
        return gen_ops.NonMaxSuppressionV4(boxes, scores, max_output_size, iou_threshold, score_threshold,
                                           pad_to_max_output_size=pad_to_max_output_size)


@export("image.combined_non_max_suppression")
def combined_non_max_suppression(boxes, scores, max_output_size_per_class, max_total_size, iou_threshold=0.5,
                                 score_threshold=float("-inf"), pad_per_class=False, clip_boxes=True, name=None):
    with ops.name_scope(name, "combined_non_max_suppression"):
        return gen_ops.CombinedNonMaxSuppression(
            boxes, scores, max_output_size_per_class, max_total_size, iou_threshold, score_threshold,
            pad_per_class=pad_per_class, clip_boxes=clip_boxes)


@export("image.psnr")
def psnr(a, b, max_val, name=None):
    """Peak signal-to-noise ratio of pairs of images, in decibels."""
    with ops.name_scope(name, "PSNR", [a, b]):
        top = image_ops.convert_image_dtype(math_ops.cast(max_val, ops.convert_to_tensor(a).dtype), dtypes.float32)
        a, b = [image_ops.convert_image_dtype(x, dtypes.float32) for x in (a, b)]
        error = math_ops.reduce_mean(math_ops.squared_difference(a, b), [-3, -2, -1])
        tenth = np.float32(10 / np.log(10))
        return math_ops.subtract(20 * math_ops.log(top) / np.float32(np.log(10.0)), tenth * math_ops.log(error),
                                 name="psnr")


def _window(size, sigma):
    """A normalized Gaussian kernel for a depthwise convolution of one channel."""
    along = math_ops.cast(math_ops.range(size), sigma.dtype)
    along -= math_ops.cast(size - 1, sigma.dtype) / 2.0
    power = math_ops.square(along) * (-0.5 / math_ops.square(sigma))
    both = array_ops.reshape(power, [1, -1]) + array_ops.reshape(power, [-1, 1])
    flat = nn_ops.softmax(array_ops.reshape(both, [1, -1]))
    return array_ops.reshape(flat, array_ops.stack([size, size, 1, 1]))


def _similarity(x, y, max_val, k1, k2, filter_size, filter_sigma):
    """(structural similarity, its contrast part) of each image and channel."""
    size = ops.convert_to_tensor(filter_size, dtype=dtypes.int32)
    sigma = ops.convert_to_tensor(filter_sigma, dtype=x.dtype)
    channels = array_ops.shape(x)[-1]
    kernel = array_ops.tile(_window(size, sigma), [1, 1, channels, 1])

    def blurred(z):
        shape = array_ops.shape(z)
        z = array_ops.reshape(z, array_ops.concat([[-1], shape[-3:]], 0))
        out = convolution_ops.depthwise_conv2d(z, kernel, strides=[1, 1, 1, 1], padding="VALID")
        return array_ops.reshape(out, array_ops.concat([shape[:-3], array_ops.shape(out)[1:]], 0))

    c1, c2 = (k1 * max_val) ** 2, (k2 * max_val) ** 2
    mean_x, mean_y = blurred(x), blurred(y)
    product = mean_x * mean_y * 2.0
    squares = math_ops.square(mean_x) + math_ops.square(mean_y)
    luminance = (product + c1) / (squares + c1)
    mixed = blurred(x * y) * 2.0
    sums = blurred(math_ops.square(x) + math_ops.square(y))
    contrast = (mixed - product + c2) / (sums - squares + c2)
    axes = ops.convert_to_tensor([-3, -2], dtype=dtypes.int32)
    return math_ops.reduce_mean(luminance * contrast, axes), math_ops.reduce_mean(contrast, axes)


def _comparable(img1, img2, max_val):
    first = ops.convert_to_tensor(img1, name="img1")
    second = ops.convert_to_tensor(img2, name="img2")
    first.get_shape()[-3:].assert_is_compatible_with(second.get_shape()[-3:])
    top = image_ops.convert_image_dtype(math_ops.cast(max_val, first.dtype), dtypes.float32)
    return [image_ops.convert_image_dtype(x, dtypes.float32) for x in (first, second)] + [top]


@export("image.ssim")
def ssim(img1, img2, max_val, filter_size=11, filter_sigma=1.5, k1=0.01, k2=0.03):
    """Structural similarity of pairs of images."""
    with ops.name_scope(None, "SSIM", [img1, img2]):
        first, second, top = _comparable(img1, img2, max_val)
        value, _ = _similarity(first, second, top, k1, k2, filter_size, filter_sigma)
        return math_ops.reduce_mean(value, [-1])


_SCALES = (0.0448, 0.2856, 0.3001, 0.2363, 0.1333)


@export("image.ssim_multiscale")
def ssim_multiscale(img1, img2, max_val, power_factors=_SCALES, filter_size=11, filter_sigma=1.5, k1=0.01, k2=0.03):
    """Structural similarity over several scales."""
    with ops.name_scope(None, "MS-SSIM", [img1, img2]):
        first, second, top = _comparable(img1, img2, max_val)
        contrasts = []
        for k, _ in enumerate(power_factors):
            if k:
                first, second = [_halved(x) for x in (first, second)]
            value, contrast = _similarity(first, second, top, k1, k2, filter_size, filter_sigma)
            contrasts.append(gen_ops.Relu(contrast))
        contrasts.pop()
        stacked = array_ops.stack(contrasts + [gen_ops.Relu(value)], axis=-1)
        product = math_ops.reduce_prod(math_ops.pow(stacked, list(power_factors)), [-1])
        return math_ops.reduce_mean(product, [-1])


def _halved(images):
    """Averages of two by two pixels; an odd border is doubled."""
    shape = array_ops.shape(images)
    flat = array_ops.reshape(images, array_ops.concat([[-1], shape[-3:]], 0))
    odd = math_ops.floormod(shape[-3:], 2)
    paddings = array_ops.stack([[0, 0], [0, odd[0]], [0, odd[1]], [0, 0]])
    flat = array_ops.pad(flat, paddings, mode="SYMMETRIC")
    small = gen_ops.AvgPool(flat, ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="VALID")
    return array_ops.reshape(small, array_ops.concat([shape[:-3], array_ops.shape(small)[1:]], 0))

