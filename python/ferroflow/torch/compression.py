"""Compression of gradients before they are sent."""

import torch

from ferroflow._hvd.compression import Compressor, NoneCompressor, compressions  # noqa: F401

Compression = compressions(torch.float16, torch.bfloat16, lambda dtype: dtype.is_floating_point,
                           lambda tensor, dtype: tensor.to(dtype))
FP16Compressor, BF16Compressor = Compression.fp16, Compression.bf16
