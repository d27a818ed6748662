"""`tf.contrib.image`: images turned, moved and seen through projective transforms."""

from ferroflow.python.framework import dtypes
from ferroflow.python.framework import ops
from ferroflow.python.ops import array_ops
from ferroflow.python.ops import gen_ops
from ferroflow.python.ops import math_ops
from ferroflow.python.util.api import export

_DTYPES = (dtypes.uint8, dtypes.int32, dtypes.int64, dtypes.float16, dtypes.float32, dtypes.float64)


@export("contrib.image.transform")
def transform(images, transforms, interpolation="NEAREST", output_shape=None, name=None):
    """Images whose point (x, y) comes from ((a0 x + a1 y + a2) / k, (b0 x + b1 y + b2) / k), where k = c0 x + c1 y + 1.

    `transforms` has the rows [a0, a1, a2, b0, b1, b2, c0, c1], one for each image or one for all."""
    with ops.name_scope(name, "transform"):
        images = ops.convert_to_tensor(images, name="images")
        transforms = ops.convert_to_tensor(transforms, name="transforms", dtype=dtypes.float32)
        if images.dtype.base_dtype not in _DTYPES:
            raise TypeError("Invalid dtype %s." % images.dtype)
        rank = images.get_shape().ndims
        if rank is None:
            raise TypeError("image_or_images rank must be statically known")
        if rank not in (2, 3, 4):
            raise TypeError("Images should have rank between 2 and 4.")
        if transforms.get_shape().ndims is None:
            raise TypeError("transforms rank must be statically known")
        if transforms.get_shape().ndims not in (1, 2):
            raise TypeError("Transforms should have rank 1 or 2.")
        rows = transforms[None] if transforms.get_shape().ndims == 1 else transforms
        batch = images[None, :, :, None] if rank == 2 else images[None] if rank == 3 else images
        shape = array_ops.shape(batch)[1:3] if output_shape is None else ops.convert_to_tensor(output_shape, dtype=dtypes.int32)
        found = gen_ops.ImageProjectiveTransformV2(batch, rows, shape, interpolation=interpolation.upper())
        if output_shape is None:
            found.set_shape(batch.get_shape())
        return found[0, :, :, 0] if rank == 2 else found[0] if rank == 3 else found


@export("contrib.image.compose_transforms")
def compose_transforms(*transforms):
    """One transform for several: the first is that of the innermost output."""
    matrices = flat_transforms_to_matrices(transforms[0])
    for more in transforms[1:]:
        matrices = math_ops.matmul(matrices, flat_transforms_to_matrices(more))
    return matrices_to_flat_transforms(matrices)


@export("contrib.image.flat_transforms_to_matrices")
def flat_transforms_to_matrices(transforms):
    """Matrices of 3x3 of transforms of 8 numbers."""
    transforms = ops.convert_to_tensor(transforms, name="transforms")
    if transforms.get_shape().ndims not in (1, 2):
        raise ValueError("Transforms should be 1D or 2D, got: %s" % transforms)
    rows = array_ops.reshape(transforms, [-1, 8])
    return array_ops.reshape(array_ops.concat([rows, array_ops.ones_like(rows[:, :1])], axis=1), [-1, 3, 3])


@export("contrib.image.matrices_to_flat_transforms")
def matrices_to_flat_transforms(transform_matrices):
    """Transforms of 8 numbers of matrices of 3x3, whose last number becomes 1."""
    matrices = ops.convert_to_tensor(transform_matrices, name="matrices")
    if matrices.get_shape().ndims not in (2, 3):
        raise ValueError("Matrices should be 2D or 3D, got: %s" % matrices)
    rows = array_ops.reshape(matrices, [-1, 9])
    return (rows / rows[:, 8:9])[:, :8]


@export("contrib.image.angles_to_projective_transforms")
def angles_to_projective_transforms(angles, image_height, image_width, name=None):
    """Transforms that turn images about their centre by angles in radians, counterclockwise."""
    with ops.name_scope(name, "angles_to_projective_transforms"):
        angles = ops.convert_to_tensor(angles, dtype=dtypes.float32, name="angles")
        if angles.get_shape().ndims not in (0, 1):
            raise TypeError("Angles should have rank 0 or 1.")
        angles = angles[None] if angles.get_shape().ndims == 0 else angles
        right, down = (math_ops.cast(n, dtypes.float32) - 1 for n in (image_width, image_height))
        cos, sin = math_ops.cos(angles), math_ops.sin(angles)
        x = (right - (cos * right - sin * down)) / 2.0
        y = (down - (sin * right + cos * down)) / 2.0
        zeros = array_ops.zeros_like(angles)
        return array_ops.stack([cos, -sin, x, sin, cos, y, zeros, zeros], axis=1)


@export("contrib.image.rotate")
def rotate(images, angles, interpolation="NEAREST", name=None):
    """Images turned about their centre by angles in radians, counterclockwise. What comes from outside is 0."""
    with ops.name_scope(name, "rotate"):
        images = ops.convert_to_tensor(images)
        rank = images.get_shape().ndims
        if rank is None:
            raise TypeError("image_or_images rank must be statically known")
        if rank not in (2, 3, 4):
            raise TypeError("Images should have rank between 2 and 4.")
        first = 1 if rank == 4 else 0
        shape = array_ops.shape(images)
        return transform(images, angles_to_projective_transforms(angles, shape[first], shape[first + 1]), interpolation=interpolation)


@export("contrib.image.translations_to_projective_transforms")
def translations_to_projective_transforms(translations, name=None):
    """Transforms that move images by [dx, dy]."""
    with ops.name_scope(name, "translations_to_projective_transforms"):
        moves = ops.convert_to_tensor(translations, dtype=dtypes.float32, name="translations")
        if moves.get_shape().ndims not in (1, 2):
            raise TypeError("Translations should have rank 1 or 2.")
        moves = moves[None] if moves.get_shape().ndims == 1 else moves
        zeros = array_ops.zeros_like(moves[:, 0])
        ones = array_ops.ones_like(zeros)
        return array_ops.stack([ones, zeros, -moves[:, 0], zeros, ones, -moves[:, 1], zeros, zeros], axis=1)


@export("contrib.image.translate")
def translate(images, translations, interpolation="NEAREST", name=None):
    """Images moved by [dx, dy]; what comes from outside is 0."""
    with ops.name_scope(name, "translate"):
        return transform(images, translations_to_projective_transforms(translations), interpolation=interpolation)
