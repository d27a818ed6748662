"""Images: resizing, flips, crops, colours."""

from ferroflow.python.framework import dtypes
from ferroflow.python.framework import ops
from ferroflow.python.ops import array_ops
from ferroflow.python.ops import gen_ops
from ferroflow.python.ops import math_ops
from ferroflow.python.ops import module_names
from ferroflow.python.ops import random_ops
from ferroflow.python.util.api import export

__getattr__ = module_names.fallback(__name__)


def _resize(op):
    def function(images, size, align_corners=False, name=None, half_pixel_centers=False):
        return getattr(gen_ops, op)(images=images, size=size, align_corners=align_corners,
                                    half_pixel_centers=half_pixel_centers, name=name)
    return function


resize_bilinear = export("image.resize_bilinear")(_resize("ResizeBilinear"))
resize_nearest_neighbor = export("image.resize_nearest_neighbor")(
    _resize("ResizeNearestNeighbor"))
resize_bicubic = export("image.resize_bicubic")(_resize("ResizeBicubic"))


@export("image.ResizeMethod")
class ResizeMethod:
    """How `resize_images` interpolates."""

    BILINEAR = 0
    NEAREST_NEIGHBOR = 1
    BICUBIC = 2
    AREA = 3


@export("image.resize_images", "image.resize")
def resize_images(images, size, method=ResizeMethod.BILINEAR, align_corners=False,
                  preserve_aspect_ratio=False, name=None):
    with ops.name_scope(name, "resize", [images, size]):
        images = ops.convert_to_tensor(images, name="images")
        rank = images.get_shape().ndims
        if rank is None:
            raise ValueError("'images' contains no shape.")
        if rank not in (3, 4):
            raise ValueError("'images' must have either 3 or 4 dimensions.")
        if rank == 3:
            images = array_ops.expand_dims(images, 0)
        size = ops.convert_to_tensor(size, dtypes.int32, name="size")
        if not size.get_shape().is_compatible_with([2]):
            raise ValueError("'size' must be a 1-D Tensor of 2 elements: new_height, new_width")
        if preserve_aspect_ratio:
            now = math_ops.cast(array_ops.shape(images)[1:3], dtypes.float32)
            scale = math_ops.reduce_min(math_ops.cast(size, dtypes.float32) / now)
            size = math_ops.cast(gen_ops.Round(scale * now), dtypes.int32)
        if method == ResizeMethod.BILINEAR:
            images = resize_bilinear(images, size, align_corners=align_corners)
        elif method == ResizeMethod.NEAREST_NEIGHBOR:
            images = resize_nearest_neighbor(images, size, align_corners=align_corners)
        elif method == ResizeMethod.BICUBIC:
            images = resize_bicubic(images, size, align_corners=align_corners)
        elif method == ResizeMethod.AREA:
            images = gen_ops.ResizeArea(images, size, align_corners=align_corners)
        else:
            raise ValueError("Resize method is not implemented.")
        return array_ops.squeeze(images, axis=[0]) if rank == 3 else images


@export("image.flip_left_right")
def flip_left_right(image):
    return _flip(image, 1, "flip_left_right")


@export("image.flip_up_down")
def flip_up_down(image):
    return _flip(image, 0, "flip_up_down")


def _flip(image, axis, name):
    with ops.name_scope(None, name, [image]):
        image = ops.convert_to_tensor(image, name="image")
        rank = image.get_shape().ndims
        if rank is not None and rank < 3:
            raise ValueError("'image' (shape %s) must be at least three-dimensional." % image.get_shape())
        with ops.colocate_with(image):
            image = array_ops.identity(image, name="control_dependency")
        return gen_ops.ReverseV2(image, [axis if rank in (None, 3) else axis + 1])


def _random_flip(image, axis, seed, name):
    with ops.name_scope(None, name, [image]) as scope:
        image = ops.convert_to_tensor(image, name="image")
        rank = image.get_shape().ndims
        if rank is not None and rank < 3:
            raise ValueError("'image' (shape %s) must be at least three-dimensional." % image.get_shape())
        if rank == 4:
            count = array_ops.shape(image)[0]
            draws = array_ops.reshape(random_ops.random_uniform([count], 0, 1.0, seed=seed), [count, 1, 1, 1])
            flips = math_ops.cast(gen_ops.Round(draws), image.dtype)
            return flips * gen_ops.ReverseV2(image, [axis + 1]) + (1 - flips) * image
        from ferroflow.python.ops import cond
        mirror = gen_ops.Less(random_ops.random_uniform([], 0, 1.0, seed=seed), .5)
        return cond.cond(mirror, lambda: gen_ops.ReverseV2(image, [axis]), lambda: image,
                         name=scope)


@export("image.random_flip_left_right")
def random_flip_left_right(image, seed=None):
    return _random_flip(image, 1, seed, "random_flip_left_right")


@export("image.random_flip_up_down")
def random_flip_up_down(image, seed=None):
    return _random_flip(image, 0, seed, "random_flip_up_down")


@export("image.convert_image_dtype")
def convert_image_dtype(image, dtype, saturate=False, name=None):
    image = ops.convert_to_tensor(image, name="image")
    dtype = dtypes.as_dtype(dtype)
    if dtype == image.dtype:
        return array_ops.identity(image, name=name)
    with ops.name_scope(name, "convert_image", [image]) as scope:
        if image.dtype.is_integer and dtype.is_integer:
            source, target = image.dtype.max, dtype.max
            if source > target:
                scaled = math_ops.floordiv(image, (source + 1) // (target + 1))
                return math_ops.saturate_cast(scaled, dtype, name=scope) if saturate else (
                    math_ops.cast(scaled, dtype, name=scope))
            cast = math_ops.saturate_cast(image, dtype) if saturate else math_ops.cast(
                image, dtype)
            return gen_ops.Mul(cast, (target + 1) // (source + 1), name=scope)
        if image.dtype.is_floating and dtype.is_floating:
            return math_ops.cast(image, dtype, name=scope)
        if image.dtype.is_integer:
            return gen_ops.Mul(math_ops.cast(image, dtype), 1.0 / image.dtype.max, name=scope)
        scaled = gen_ops.Mul(image, dtype.max + 0.5)
        return math_ops.saturate_cast(scaled, dtype, name=scope) if saturate else (
            math_ops.cast(scaled, dtype, name=scope))


@export("image.adjust_brightness")
def adjust_brightness(image, delta):
    with ops.name_scope(None, "adjust_brightness", [image, delta]) as scope:
        image = ops.convert_to_tensor(image, name="image")
        original = image.dtype
        if original in (dtypes.float16, dtypes.float32):
            flat = image
        else:
            flat = convert_image_dtype(image, dtypes.float32)
        adjusted = math_ops.add(flat, math_ops.cast(delta, flat.dtype), name=scope)
        return convert_image_dtype(adjusted, original, saturate=True)


@export("image.random_brightness")
def random_brightness(image, max_delta, seed=None):
    if max_delta < 0:
        raise ValueError("max_delta must be non-negative.")
    return adjust_brightness(image, random_ops.random_uniform([], -max_delta, max_delta,
                                                              seed=seed))


@export("image.adjust_contrast")
def adjust_contrast(images, contrast_factor):
    with ops.name_scope(None, "adjust_contrast", [images, contrast_factor]) as scope:
        images = ops.convert_to_tensor(images, name="images")
        original = images.dtype
        flat = images if original in (dtypes.float16, dtypes.float32) else convert_image_dtype(
            images, dtypes.float32)
        adjusted = gen_ops.AdjustContrastv2(flat, contrast_factor=contrast_factor, name=scope)
        return convert_image_dtype(adjusted, original, saturate=True)


@export("image.random_contrast")
def random_contrast(image, lower, upper, seed=None):
    if upper <= lower:
        raise ValueError("upper must be > lower.")
    if lower < 0:
        raise ValueError("lower must be non-negative.")
    return adjust_contrast(image, random_ops.random_uniform([], lower, upper, seed=seed))


@export("image.per_image_standardization")
def per_image_standardization(image):
    with ops.name_scope(None, "per_image_standardization", [image]) as scope:
        image = ops.convert_to_tensor(image, name="image")
        if image.dtype not in (dtypes.float16, dtypes.float32):
            image = convert_image_dtype(image, dtypes.float32)
        pixels = math_ops.reduce_prod(array_ops.shape(image)[-3:])
        mean = math_ops.reduce_mean(image, axis=[-1, -2, -3], keepdims=True)
        stddev = math_ops.reduce_std(image, axis=[-1, -2, -3], keepdims=True)
        least = math_ops.rsqrt(math_ops.cast(pixels, image.dtype))
        adjusted = gen_ops.Maximum(stddev, least)
        image -= mean
        return math_ops.divide(image, adjusted, name=scope)


@export("image.rgb_to_grayscale")
def rgb_to_grayscale(images, name=None):
    with ops.name_scope(name, "rgb_to_grayscale", [images]) as scope:
        images = ops.convert_to_tensor(images, name="images")
        original = images.dtype
        flat = convert_image_dtype(images, dtypes.float32)
        gray = math_ops.tensordot(flat, [0.2989, 0.5870, 0.1140], [-1, -1])
        gray = array_ops.expand_dims(gray, -1)
        return convert_image_dtype(gray, original, name=scope)


@export("image.grayscale_to_rgb")
def grayscale_to_rgb(images, name=None):
    with ops.name_scope(name, "grayscale_to_rgb", [images]) as scope:
        images = ops.convert_to_tensor(images, name="images")
        rank = array_ops.expand_dims(array_ops.rank(images) - 1, 0)
        multiples = array_ops.concat(
            [array_ops.ones(rank, dtype=dtypes.int32)]
            + [array_ops.expand_dims(3, 0)], 0)
        result = gen_ops.Tile(images, multiples, name=scope)
        result.set_shape(images.get_shape()[:-1].concatenate([3]))
        return result


@export("image.crop_to_bounding_box")
def crop_to_bounding_box(image, offset_height, offset_width, target_height, target_width):
    with ops.name_scope(None, "crop_to_bounding_box", [image]):
        image = ops.convert_to_tensor(image, name="image")
        rank = image.get_shape().ndims
        if rank not in (3, 4):
            raise ValueError("'image' must have either 3 or 4 dimensions.")
        if rank == 3:
            image = array_ops.expand_dims(image, 0)
        _, height, width, _ = image.get_shape().as_list()
        sizes = (("width", width, offset_width, target_width), ("height", height, offset_height, target_height))
        for side, _, offset, target in sizes:
            if isinstance(offset, int) and offset < 0:
                raise ValueError("offset_%s must be >= 0." % side)
            if isinstance(target, int) and target <= 0:
                raise ValueError("target_%s must be > 0." % side)
        for side, found, offset, target in sizes:
            if found is not None and isinstance(offset, int) and isinstance(target, int) and found < offset + target:
                raise ValueError("%s must be >= target + offset." % side)
        cropped = array_ops.slice(image, array_ops.stack([0, offset_height, offset_width, 0]),
                                  array_ops.stack([array_ops.shape(image)[0], target_height,
                                                   target_width, array_ops.shape(image)[3]]))
        return array_ops.squeeze(cropped, axis=[0]) if rank == 3 else cropped


@export("image.crop_and_resize")
def crop_and_resize(image, boxes, box_ind=None, crop_size=None, method="bilinear",
                    extrapolation_value=0, name=None, box_indices=None):
    box_ind = box_indices if box_ind is None else box_ind
    return gen_ops.CropAndResize(image, boxes, box_ind, crop_size, method, extrapolation_value,
                                 name)


@export("image.non_max_suppression")
def non_max_suppression(boxes, scores, max_output_size, iou_threshold=0.5,
                        score_threshold=float("-inf"), name=None):
    with ops.name_scope(name, "non_max_suppression"):
        iou_threshold = ops.convert_to_tensor(iou_threshold, name="iou_threshold")
        score_threshold = ops.convert_to_tensor(score_threshold, name="score_threshold")
        return gen_ops.NonMaxSuppressionV3(boxes, scores, max_output_size, iou_threshold,
                                           score_threshold)


@export("image.total_variation")
def total_variation(images, name=None):
    with ops.name_scope(name, "total_variation"):
        rank = images.get_shape().ndims
        axis = None if rank == 3 else [1, 2, 3]
        rows = images[..., 1:, :, :] - images[..., :-1, :, :]
        columns = images[..., :, 1:, :] - images[..., :, :-1, :]
        return (math_ops.reduce_sum(math_ops.abs(rows), axis=axis)
                + math_ops.reduce_sum(math_ops.abs(columns), axis=axis))


