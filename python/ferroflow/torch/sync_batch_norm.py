"""Batch normalization over the batches of all ranks."""

import torch
from torch.nn.modules.batchnorm import _BatchNorm

from ferroflow._hvd.core import global_process_set

from . import mpi_ops


class SyncBatchNorm(_BatchNorm):
    """Normalizes with the mean and variance over all ranks. Ranks may have batches of different
    sizes."""

    def __init__(self, *args, process_set=global_process_set, **options):
        super().__init__(*args, **options)
        self.process_set = process_set

    def _check_input_dim(self, input):
        if input.dim() < 2:
            raise ValueError(f"expected at least 2 dimensions, got {input.dim()}")

    def forward(self, input):
        self._check_input_dim(input)
        use_batch = self.training or self.running_mean is None
        if not use_batch or mpi_ops.size() == 1:
            return super().forward(input)
        if self.training and self.track_running_stats and self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
        mean, var, count, out = _SyncBatchNorm.apply(
            input, self.weight, self.bias, self.eps, self.process_set)
        if self.training and self.track_running_stats:
            factor = self.momentum
            if factor is None:
                factor = 1.0 / float(self.num_batches_tracked)
            with torch.no_grad():
                n = float(count)
                unbiased = var * (n / max(n - 1.0, 1.0))
                self.running_mean.mul_(1 - factor).add_(mean.to(self.running_mean.dtype) * factor)
                self.running_var.mul_(1 - factor).add_(unbiased.to(self.running_var.dtype) * factor)
        return out


class _SyncBatchNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, bias, eps, process_set):
        dims = [0] + list(range(2, x.dim()))
        shape = [1, -1] + [1] * (x.dim() - 2)
        local = x.numel() // x.shape[1] if x.shape[1] else 0
        # Sums in double: one reduction gives mean, variance and count.
        wide = x.detach().double()
        sums = torch.cat([wide.sum(dims), (wide * wide).sum(dims),
                          torch.tensor([float(local)], dtype=torch.float64)])
        sums = mpi_ops.allreduce(sums, op=mpi_ops.Sum, name=None, process_set=process_set)
        channels = x.shape[1]
        count = sums[-1]
        mean = sums[:channels] / count
        var = (sums[channels:2 * channels] / count - mean * mean).clamp_(min=0)
        rstd = (var + eps).rsqrt()
        normal = ((wide - mean.view(shape)) * rstd.view(shape)).to(x.dtype)
        out = normal
        if weight is not None:
            out = out * weight.view(shape)
        if bias is not None:
            out = out + bias.view(shape)
        ctx.save_for_backward(normal, weight, rstd, count)
        ctx.has_bias, ctx.dims, ctx.shape, ctx.process_set = bias is not None, dims, shape, process_set
        mean, var = mean.to(x.dtype), var.to(x.dtype)
        ctx.mark_non_differentiable(mean, var, count)
        return mean, var, count, out

    @staticmethod
    def backward(ctx, _mean, _var, _count, grad):
        normal, weight, rstd, count = ctx.saved_tensors
        dims, shape = ctx.dims, ctx.shape
        wide, wide_normal = grad.double(), normal.double()
        sum_dy, sum_dy_xhat = wide.sum(dims), (wide * wide_normal).sum(dims)
        grad_weight = sum_dy_xhat.to(grad.dtype) if weight is not None else None
        grad_bias = sum_dy.to(grad.dtype) if ctx.has_bias else None
        channels = sum_dy.numel()
        sums = mpi_ops.allreduce(torch.cat([sum_dy, sum_dy_xhat]), op=mpi_ops.Sum,
                                 process_set=ctx.process_set)
        mean_dy = (sums[:channels] / count).view(shape)
        mean_dy_xhat = (sums[channels:] / count).view(shape)
        scale = rstd.view(shape)
        if weight is not None:
            scale = scale * weight.double().view(shape)
        grad_x = (wide - mean_dy - wide_normal * mean_dy_xhat) * scale
        return grad_x.to(grad.dtype), grad_weight, grad_bias, None, None
