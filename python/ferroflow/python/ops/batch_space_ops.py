"""Moves of data between the batch, space and depth dimensions; image patches."""

import numpy as np

from ferroflow.python.framework import dtypes
from ferroflow.python.framework import ops
from ferroflow.python.framework import tensor_util
from ferroflow.python.ops import gen_ops
from ferroflow.python.util.api import deprecated_alias, export

convert = ops.convert_to_tensor


@export("space_to_batch", "nn.space_to_batch")
def space_to_batch(input, paddings, block_size=None, name=None, block_shape=None):
    block_size = deprecated_alias("block_shape", block_shape, "block_size", block_size)
    result = gen_ops.SpaceToBatchND(
        input, block_shape=np.array([block_size, block_size], dtype=np.int64),
        paddings=paddings, name=name)
    return result


@export("batch_to_space")
def batch_to_space(input, crops, block_size, name=None, block_shape=None):
    block_size = deprecated_alias("block_shape", block_shape, "block_size", block_size)
    return gen_ops.BatchToSpaceND(
        input, block_shape=np.array([block_size, block_size], dtype=np.int64), crops=crops,
        name=name)


@export("space_to_depth", "nn.space_to_depth")
def space_to_depth(input, block_size, name=None, data_format="NHWC"):
    return gen_ops.SpaceToDepth(input, block_size, data_format, name=name)


@export("depth_to_space", "nn.depth_to_space")
def depth_to_space(input, block_size, name=None, data_format="NHWC"):
    return gen_ops.DepthToSpace(input, block_size, data_format, name=name)


@export("extract_image_patches", "image.extract_image_patches")
def extract_image_patches(images, ksizes=None, strides=None, rates=None, padding=None, name=None,
                          sizes=None):
    ksizes = deprecated_alias("sizes", sizes, "ksizes", ksizes)
    return gen_ops.ExtractImagePatches(images, ksizes, strides, rates, padding, name)


@export("image.extract_patches")
def extract_patches(images, sizes, strides, rates, padding, name=None):
    return gen_ops.ExtractImagePatches(images, sizes, strides, rates, padding, name)


@export("required_space_to_batch_paddings")
def required_space_to_batch_paddings(input_shape, block_shape, base_paddings=None, name=None):
    from ferroflow.python.ops import array_ops
    with ops.name_scope(name, "required_space_to_batch_paddings", [input_shape, block_shape]):
        input_shape = convert(input_shape, dtype=dtypes.int32, name="input_shape")
        block_shape = convert(block_shape, dtype=dtypes.int32, name="block_shape")
        block_shape.get_shape().assert_is_fully_defined()
        block_shape.get_shape().assert_has_rank(1)
        count = block_shape.get_shape().as_list()[0]
        if count == 0:
            empty = array_ops.zeros([0, 2], dtypes.int32)
            return empty, empty
        if base_paddings is not None:
            base_paddings = convert(base_paddings, dtype=dtypes.int32, name="base_paddings")
        else:
            base_paddings = array_ops.zeros([count, 2], dtypes.int32)
        known_block = tensor_util.constant_value(block_shape)
        known_input = tensor_util.constant_value(input_shape)
        known_base = tensor_util.constant_value(base_paddings)
        if known_block is not None and known_input is not None and known_base is not None:
            block_shape, input_shape, base_paddings = known_block, known_input, known_base
        pad_start = base_paddings[:, 0]
        original_end = base_paddings[:, 1]
        full = input_shape + pad_start + original_end
        extra = (block_shape - full % block_shape) % block_shape
        pad_end = original_end + extra
        paddings = array_ops.stack([[pad_start[i], pad_end[i]] for i in range(count)],
                                   name="paddings")
        crops = array_ops.stack([[0, extra[i]] for i in range(count)], name="crops")
        return paddings, crops
