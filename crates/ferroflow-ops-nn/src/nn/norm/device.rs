//! FusedBatchNorm and its gradient on a GPU.

use super::{gradient_and_input, nothing};
use crate::nn::conv::device::reordered_on_device;
use crate::nn::window::Layout;
use crate::prelude::*;
use ferroflow_core::LaunchArg;
use ferroflow_op_kit::gpu::elementwise::Elementwise;
use ferroflow_op_kit::gpu::{GpuProgram, GpuTypes, address, c_type, length};

const TEXT: &str = include_str!("device.cu");
/// The most parts that the rows of an image are divided into.
const MAX_PARTS: usize = 128;
/// The same for blocks that have whole rows.
const MAX_PACKED_PARTS: usize = 528;
/// Threads of such a block.
const THREADS: usize = 256;
/// Bytes that a thread reads at once.
const PACK_BYTES: usize = 16;
const F: DType = DType::Float;

const IMAGES: &[DType] = &[DType::Half, DType::BFloat16, DType::Float];
/// The types of the first versions.
pub(super) const ON_GPU: GpuTypes = &[("T", IMAGES)];
/// Those of the later ones.
pub(super) const ON_GPU_V2: GpuTypes = &[("T", IMAGES), ("U", &[DType::Float])];

struct NormOnDevice {
    program: GpuProgram,
    /// `y = a x + b`, with `a` and `b` for each channel, or the gradient `dx = p dy + q x + r`.
    image: Elementwise,
    epsilon: f64,
    is_training: bool,
    factor: f32,
    layout: Layout,
}

/// The kernel of FusedBatchNorm, or of its gradient.
pub(super) fn batch_norm(init: &KernelInit<'_>, gradient: bool) -> Result<KernelBox> {
    let dtype = init.dtype("T")?;
    let text = format!("typedef {} T;\n{TEXT}", c_type(dtype)?);
    let image = match gradient {
        false => Elementwise::of_rows(init, &[dtype, F, F], dtype, "x * y + z")?,
        true => Elementwise::of_rows(init, &[dtype, dtype, F, F, F], dtype, "z * y + w * x + u")?,
    };
    let norm = NormOnDevice {
        program: GpuProgram::new(text).prepared(init)?,
        image,
        epsilon: f64::from(init.float("epsilon")?),
        is_training: init.bool("is_training")?,
        factor: if gradient { 1.0 } else { init.float("exponential_avg_factor")? },
        layout: Layout::new(init.attrs)?,
    };
    Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| match gradient {
        false => norm.forward(ctx),
        true => norm.backward(ctx),
    }))
}

impl NormOnDevice {
    /// Runs a kernel for each channel, with blocks of 8 channels.
    fn run(
        &self,
        ctx: &Ctx<'_>,
        name: &'static str,
        channels: usize,
        sizes: &[LaunchArg],
        tensors: &[&Tensor],
    ) -> Result<()> {
        let mut args = sizes.to_vec();
        for t in tensors {
            args.push(address(t)?);
        }
        let grid = [channels.div_ceil(8) as u32, 1, 1];
        self.program.blocks(ctx.gpu()?.as_ref(), name, grid, [8, 32, 1], &args)
    }

    /// Sums over rows, in parts.
    fn sums(
        &self,
        ctx: &Ctx<'_>,
        [name, packed]: [&'static str; 2],
        (rows, c): (usize, usize),
        tensors: &[&Tensor],
    ) -> Result<(Tensor, usize)> {
        let pack = PACK_BYTES / tensors[0].dtype().size().unwrap_or(PACK_BYTES);
        let to_a_row = c / pack;
        let is_aligned = |t: &&Tensor| {
            t.device_address().is_ok_and(|address| address.is_multiple_of(PACK_BYTES as u64))
        };
        let is_packed = c.is_multiple_of(pack)
            && (1..=THREADS).contains(&to_a_row)
            && THREADS.is_multiple_of(to_a_row)
            && tensors.iter().take(2).all(is_aligned);
        let parts = match is_packed {
            true => (rows * to_a_row).div_ceil(THREADS * 16).clamp(1, MAX_PACKED_PARTS),
            false => rows.div_ceil(64).clamp(1, MAX_PARTS),
        };
        let sums = ctx.alloc_on_device(DType::Double, [parts * 2 * c])?;
        let mut args = vec![length(rows), length(c)];
        for t in tensors.iter().copied().chain([&sums]) {
            args.push(address(t)?);
        }
        if is_packed {
            let (grid, block) = ([parts as u32, 1, 1], [THREADS as u32, 1, 1]);
            self.program.blocks(ctx.gpu()?.as_ref(), packed, grid, block, &args)?;
            return Ok((sums, parts));
        }
        let grid = [c.div_ceil(32) as u32, parts as u32, 1];
        self.program.blocks(ctx.gpu()?.as_ref(), name, grid, [32, 8, 1], &args)?;
        Ok((sums, parts))
    }

    fn forward(&self, ctx: &mut Ctx<'_>) -> Result<()> {
        let x = ctx.input(0)?;
        ensure!(
            matches!(x.rank(), 4 | 5),
            InvalidArgument,
            "input must be 4 or 5-dimensional{}",
            x.shape()
        );
        let x = reordered_on_device(x, self.layout, true)?;
        let c = x.shape()[x.rank() - 1];
        let rows = x.elements().checked_div(c).unwrap_or(0);
        check_vector(ctx, 1, "scale", "", c)?;
        check_vector(ctx, 2, "offset", "", c)?;
        if !self.is_training || self.factor != 1.0 {
            let when = match self.is_training {
                true => "When exponential_avg_factor != 1, ",
                false => "When is_training=false, ",
            };
            check_vector(ctx, 3, "mean", when, c)?;
            check_vector(ctx, 4, "variance", when, c)?;
        }
        let vector = || ctx.alloc_on_device(DType::Float, [c]);
        let outputs = [vector()?, vector()?, vector()?, vector()?];
        let y = ctx.alloc_on_device(x.dtype(), x.shape().clone())?;
        if rows == 0 {
            let empty = if self.is_training { f32::NAN } else { 0.0 };
            let nans = Tensor::vector(&vec![empty; c]).to_device(ctx.gpu()?)?;
            for (i, output) in outputs.into_iter().enumerate() {
                let given = match self.is_training {
                    true if i < 2 => nans.clone(),
                    true => output.zeros_beside(DType::Float, [c])?,
                    false => ctx.input(3 + i % 2)?.clone(),
                };
                ctx.set(i + 1, given)?;
            }
        } else {
            let (sums, parts) = match self.is_training {
                true => self.sums(ctx, ["moments", "packed_moments"], (rows, c), &[&x])?,
                false => (ctx.input(1)?.clone(), 0),
            };
            let (a, b) = (vector()?, vector()?);
            let sizes = [
                length(c),
                length(rows),
                length(parts),
                length(usize::from(self.is_training)),
                LaunchArg::F64(self.epsilon),
                LaunchArg::F32(self.factor),
            ];
            let [batch_mean, batch_variance, mean, variance] = &outputs;
            let tensors = [
                &x,
                &sums,
                ctx.input(1)?,
                ctx.input(2)?,
                ctx.input(3)?,
                ctx.input(4)?,
                batch_mean,
                batch_variance,
                mean,
                variance,
                &a,
                &b,
            ];
            self.run(ctx, "finish_moments", c, &sizes, &tensors)?;
            self.image.run_into(ctx.gpu()?, &[&x, &a, &b], &y)?;
            for (i, output) in outputs.into_iter().enumerate() {
                ctx.set(i + 1, output)?;
            }
        }
        let half = y.dtype() == DType::Half;
        let y = reordered_on_device(&y, self.layout, false)?;
        ctx.set(0, y)?;
        if ctx.num_outputs() == 6 {
            let reserved = nothing(half)?.to_device(ctx.gpu()?)?;
            ctx.set(5, reserved)?;
        }
        Ok(())
    }

    fn backward(&self, ctx: &mut Ctx<'_>) -> Result<()> {
        let (dy, x) = gradient_and_input(ctx)?;
        let x = reordered_on_device(x, self.layout, true)?;
        let dy = reordered_on_device(dy, self.layout, true)?;
        let c = x.shape()[x.rank() - 1];
        let rows = x.elements().checked_div(c).unwrap_or(0);
        check_vector(ctx, 2, "scale", "", c)?;
        check_vector(ctx, 3, "saved mean", "", c)?;
        check_vector(ctx, 4, "saved variance", "", c)?;
        let (scale, mean, variance) = (ctx.input(2)?, ctx.input(3)?, ctx.input(4)?);
        let names = ["gradient_sums", "packed_gradient_sums"];
        let (sums, parts) = self.sums(ctx, names, (rows, c), &[&x, &dy, mean])?;
        let vector = || ctx.alloc_on_device(DType::Float, [c]);
        let (d_scale, d_offset) = (vector()?, vector()?);
        let (p, q, r) = (vector()?, vector()?, vector()?);
        let sizes = [
            length(c),
            length(rows),
            length(parts),
            length(usize::from(self.is_training)),
            LaunchArg::F64(self.epsilon),
        ];
        let tensors = [&sums, scale, mean, variance, &d_scale, &d_offset, &p, &q, &r];
        self.run(ctx, "finish_gradients", c, &sizes, &tensors)?;
        let dx = ctx.alloc_on_device(x.dtype(), x.shape().clone())?;
        self.image.run_into(ctx.gpu()?, &[&x, &dy, &p, &q, &r], &dx)?;
        let half = x.dtype() == DType::Half;
        let dx = reordered_on_device(&dx, self.layout, false)?;
        ctx.set(0, dx)?;
        ctx.set(1, d_scale)?;
        ctx.set(2, d_offset)?;
        for i in [3, 4] {
            let reserved = nothing(!half)?.to_device(ctx.gpu()?)?;
            ctx.set(i, reserved)?;
        }
        Ok(())
    }
}

/// Input `i` must be a vector of `channels` floats.
pub(super) fn check_vector(
    ctx: &Ctx<'_>,
    i: usize,
    name: &str,
    when: &str,
    channels: usize,
) -> Result<()> {
    let t = ctx.input(i)?;
    ensure!(t.rank() == 1, InvalidArgument, "{name} must be 1-dimensional{}", t.shape());
    ensure!(
        t.elements() == channels,
        InvalidArgument,
        "{when}{name} must have the same number of elements as the channels of x, got {} and \
         {channels}",
        t.elements()
    );
    Ok(())
}
