"""Compression of gradients before they are sent."""

import tensorflow as tf


class Compressor:
    """Interface: `compress` returns a tensor and a context, `decompress` undoes it."""

    @staticmethod
    def compress(tensor):
        raise NotImplementedError

    @staticmethod
    def decompress(tensor, ctx):
        raise NotImplementedError


class NoneCompressor(Compressor):
    """Sends tensors as they are."""

    @staticmethod
    def compress(tensor):
        return tensor, None

    @staticmethod
    def decompress(tensor, ctx):
        return tensor


def _sixteen_bits(dtype):
    class SixteenBits(Compressor):
        @staticmethod
        def compress(tensor):
            if tensor.dtype.is_floating and tensor.dtype != dtype:
                return tf.cast(tensor, dtype), tensor.dtype
            return tensor, None

        @staticmethod
        def decompress(tensor, ctx):
            return tensor if ctx is None else tf.cast(tensor, ctx)

    return SixteenBits


FP16Compressor = _sixteen_bits(tf.float16)
BF16Compressor = _sixteen_bits(tf.bfloat16)


class Compression:
    """The compressions that there are."""

    none = NoneCompressor
    fp16 = FP16Compressor
    bf16 = BF16Compressor
