"""Compression of gradients before they are sent."""

import tensorflow as tf

from ferroflow._hvd.compression import Compressor, NoneCompressor, compressions  # noqa: F401

Compression = compressions(tf.float16, tf.bfloat16, lambda dtype: dtype.is_floating, tf.cast)
FP16Compressor, BF16Compressor = Compression.fp16, Compression.bf16
