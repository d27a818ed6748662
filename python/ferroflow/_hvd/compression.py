"""Compression of gradients before they are sent, for any framework."""


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


def _sixteen_bits(name, dtype, is_floating, cast):
    class SixteenBits(Compressor):
        @staticmethod
        def compress(tensor):
            if is_floating(tensor.dtype) and tensor.dtype != dtype:
                return cast(tensor, dtype), tensor.dtype
            return tensor, None

        @staticmethod
        def decompress(tensor, ctx):
            return tensor if ctx is None else cast(tensor, ctx)

    SixteenBits.__name__ = SixteenBits.__qualname__ = name
    return SixteenBits


def compressions(float16, bfloat16, is_floating, cast):
    """The class `Compression` of a framework with these types. `cast(tensor, dtype)` converts."""
    class Compression:
        """The compressions that there are."""

        none = NoneCompressor
        fp16 = _sixteen_bits("FP16Compressor", float16, is_floating, cast)
        bf16 = _sixteen_bits("BF16Compressor", bfloat16, is_floating, cast)

    return Compression
