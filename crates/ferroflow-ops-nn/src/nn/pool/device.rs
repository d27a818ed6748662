//! Pools on a GPU: one thread for each element of the result.

use super::{Pool, PoolAttrs};
use crate::nn::conv::device::{axes_arg, reordered_on_device};
use crate::nn::window::Axis;
use crate::prelude::*;
use ferroflow_core::LaunchArg;
use ferroflow_op_kit::gpu::{self, GpuProgram, address, c_type, length};

const TEXT: &str = include_str!("device.cu");
/// Bytes that a thread reads at once.
const PACK_BYTES: usize = 16;

/// The kernels of pools of one dtype.
pub(crate) struct PoolKernels {
    program: GpuProgram,
}

impl PoolKernels {
    pub(crate) fn new(init: &KernelInit<'_>, dtype: DType) -> Result<PoolKernels> {
        let lowest = gpu::finite_range(dtype)[0];
        let text = format!("typedef {} T;\n#define LOWEST {lowest}\n{TEXT}", c_type(dtype)?);
        Ok(PoolKernels { program: GpuProgram::new(text).prepared(init)? })
    }

    /// Runs kernel `name` for each element of `out`.
    fn run(
        &self,
        ctx: &Ctx<'_>,
        name: &'static str,
        pool: &Pool,
        from: &[&Tensor],
        out: &Tensor,
    ) -> Result<()> {
        let n = out.elements();
        let mut args = vec![length(n), axes_arg(&axes(pool)), length(channels(pool))];
        for t in from.iter().copied().chain([out]) {
            args.push(address(t)?);
        }
        self.program.over(ctx.gpu()?.as_ref(), name, n, &args)
    }

    /// The largest elements of windows, and their positions: each where it is wanted.
    pub(crate) fn largest(
        &self,
        ctx: &Ctx<'_>,
        pool: &Pool,
        x: &Tensor,
        best: Option<&Tensor>,
        index: Option<&Tensor>,
        per_batch: usize,
    ) -> Result<()> {
        let n = best.or(index).map_or(0, Tensor::elements);
        let or_null = |t: Option<&Tensor>| t.map_or(Ok(LaunchArg::Address(0)), address);
        let pack = pack(pool, &[Some(x), best])?;
        let name = if pack > 1 { "packed_largest" } else { "largest" };
        let args = [
            length(n / pack),
            axes_arg(&axes(pool)),
            length(channels(pool)),
            address(x)?,
            or_null(best)?,
            or_null(index)?,
            length(per_batch),
        ];
        self.program.over(ctx.gpu()?.as_ref(), name, n / pack, &args)
    }

    /// The gradient of the input from that of the output, for windows that picked elements `index`.
    pub(crate) fn of_picked(
        &self,
        ctx: &Ctx<'_>,
        pool: &Pool,
        index: &Tensor,
        dy: &Tensor,
        dx: &Tensor,
    ) -> Result<()> {
        let pack = pack(pool, &[Some(dy), Some(dx)])?;
        if pack == 1 {
            return self.run(ctx, "of_picked", pool, &[index, dy], dx);
        }
        let n = dx.elements() / pack;
        let (axes, channels) = (axes_arg(&axes(pool)), length(channels(pool)));
        let args = [length(n), axes, channels, address(index)?, address(dy)?, address(dx)?];
        self.program.over(ctx.gpu()?.as_ref(), "packed_of_picked", n, &args)
    }

    /// The same if all of the largest elements share a gradient.
    pub(crate) fn of_ties(
        &self,
        ctx: &Ctx<'_>,
        pool: &Pool,
        from: [&Tensor; 3],
        dx: &Tensor,
    ) -> Result<()> {
        self.run(ctx, "of_ties", pool, &from, dx)
    }

    /// The elements of `from`, an image for each of the pool's, that windows picked.
    pub(crate) fn picked(
        &self,
        ctx: &Ctx<'_>,
        pool: &Pool,
        index: &Tensor,
        from: &Tensor,
        out: &Tensor,
    ) -> Result<()> {
        let n = out.elements();
        let outputs = n.checked_div(pool.batch).unwrap_or(0);
        let inputs = from.elements().checked_div(pool.batch).unwrap_or(0);
        let sizes = [length(n), length(outputs), length(inputs)];
        let tensors = [address(index)?, address(from)?, address(out)?];
        let args: Vec<_> = sizes.into_iter().chain(tensors).collect();
        self.program.over(ctx.gpu()?.as_ref(), "picked", n, &args)
    }

    /// Positions as `int32`.
    pub(crate) fn narrow_index(&self, ctx: &Ctx<'_>, index: &Tensor) -> Result<Tensor> {
        let out = ctx.alloc_on_device(DType::Int32, index.shape().clone())?;
        let n = out.elements();
        let args = [length(n), address(index)?, address(&out)?];
        self.program.over(ctx.gpu()?.as_ref(), "to_narrow_index", n, &args)?;
        Ok(out)
    }
}

/// The axes that windows slide over. A pool over channels is one over the last axis of an image
/// with one channel.
fn axes(pool: &Pool) -> [Axis; 3] {
    if pool.depth_window == 1 {
        return pool.axes;
    }
    let pixels = pool.pixels();
    let outputs = pool.channels / pool.depth_window;
    let whole = Axis { input: pixels, output: pixels, ..Axis::NONE };
    let window = pool.depth_window;
    let across =
        Axis { input: pool.channels, window, output: outputs, stride: window, ..Axis::NONE };
    [Axis::NONE, whole, across]
}

/// Channels that a thread takes at once: as many as 16 bytes of these tensors have, or one.
fn pack(pool: &Pool, tensors: &[Option<&Tensor>]) -> Result<usize> {
    let mut pack = 1;
    for t in tensors.iter().flatten() {
        pack = PACK_BYTES / t.dtype().size().unwrap_or(PACK_BYTES);
        let is_aligned = t.device_address()?.is_multiple_of(PACK_BYTES as u64);
        if !is_aligned || !channels(pool).is_multiple_of(pack) {
            return Ok(1);
        }
    }
    Ok(pack)
}

fn channels(pool: &Pool) -> usize {
    if pool.depth_window == 1 { pool.channels } else { 1 }
}

/// The kernel of AvgPool and AvgPool3D, or of their gradients.
pub(crate) fn average(init: &KernelInit<'_>, spatial: usize, gradient: bool) -> Result<KernelBox> {
    let attrs = PoolAttrs::new(init.attrs, spatial)?;
    if let Some((window, strides)) = &attrs.window {
        let channel = attrs.layout.channels(spatial + 2);
        ensure!(
            window[channel] == 1 && strides[channel] == 1,
            Unimplemented,
            "Non-spatial pooling is not yet supported. Volunteers? :)"
        );
    }
    let dtype = init.dtype("T")?;
    let kernels = PoolKernels::new(init, dtype)?;
    Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
        let layout = attrs.layout;
        let window = attrs.window(ctx, 0)?;
        if !gradient {
            let x = ctx.input(0)?;
            let pool = attrs.over(x.shape(), &window)?;
            let x = reordered_on_device(x, layout, true)?;
            let y = ctx.alloc_on_device(dtype, pool.output_shape(spatial))?;
            kernels.run(ctx, "average", &pool, &[&x], &y)?;
            let y = reordered_on_device(&y, layout, false)?;
            return ctx.set(0, y);
        }
        let (sizes, dy) = (ctx.input(0)?, ctx.input(1)?);
        ensure!(
            sizes.rank() == 1 && sizes.elements() == spatial + 2,
            InvalidArgument,
            "orig_input_shape must be 1-dimensional and {} elements",
            spatial + 2
        );
        let shape = sizes.to_shape()?;
        let pool = attrs.over(&shape, &window)?;
        let wanted = layout.stored(&pool.output_shape(spatial));
        ensure!(
            *dy.shape() == wanted,
            InvalidArgument,
            "Expected grad shape to be {wanted}, but got {}",
            dy.shape()
        );
        let dy = reordered_on_device(dy, layout, true)?;
        let dx = ctx.alloc_on_device(dtype, layout.to_last(&shape))?;
        kernels.run(ctx, "of_average", &pool, &[&dy], &dx)?;
        let dx = reordered_on_device(&dx, layout, false)?;
        ctx.set(0, dx)
    }))
}
