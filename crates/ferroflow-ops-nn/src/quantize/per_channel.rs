//! RequantizePerChannel, RequantizationRangePerChannel: 32-bit elements whose channels, the last
//! dimension, have ranges of their own.

use super::affine::{Quantized, like_input_and_range, scalar, set_range};
use super::quantize_op::quantized_dtype;
use crate::prelude::*;

/// Levels of 32-bit elements on one side of zero.
const HALF: f32 = (1u64 << 31) as f32;

/// The largest absolute value of each channel's range, from inputs 1 and 2.
fn channel_ends(ctx: &Ctx<'_>) -> Result<Vec<f32>> {
    let (x, min, max) = (ctx.input(0)?, ctx.input(1)?, ctx.input(2)?);
    ensure!(x.rank() > 0, InvalidArgument, "input must have a dimension of channels");
    let channels = x.shape()[x.rank() - 1];
    for (name, t) in [("input_min", min), ("input_max", max)] {
        ensure!(
            t.elements() == channels,
            InvalidArgument,
            "{name} has incorrect size, expected {channels} was {}",
            t.elements()
        );
    }
    let pairs = min.as_slice::<f32>()?.iter().zip(max.as_slice::<f32>()?);
    Ok(pairs.map(|(min, max)| min.abs().max(max.abs())).collect())
}

fn requantize<T: Quantized>(ctx: &mut Ctx<'_>) -> Result<()> {
    let to = (scalar(ctx, 3, "requested_output_min")?, scalar(ctx, 4, "requested_output_max")?);
    let levels = if T::LOWEST < 0 { 127f32 } else { 255.0 };
    let end = to.0.abs().max(to.1.abs());
    let scales: Vec<f32> =
        channel_ends(ctx)?.into_iter().map(|from| levels * (from / end / HALF)).collect();
    let x = ctx.input(0)?;
    let mut out = ctx.alloc(quantized_dtype::<T>(), x.shape().clone())?;
    let pairs = out.as_mut_slice::<T>()?.iter_mut().zip(x.as_slice::<i32>()?);
    for ((out, &x), scale) in pairs.zip(scales.iter().cycle()) {
        *out = T::clamped((x as f32 * scale).round_ties_even() as i64);
    }
    ctx.set(0, out)?;
    set_range(ctx, to)
}

struct Range {
    /// No range is larger than this.
    clip: f32,
}

impl Kernel for Range {
    fn compute(&self, ctx: &mut Ctx<'_>) -> Result<()> {
        let ends = channel_ends(ctx)?;
        let x = ctx.input(0)?.as_slice::<i32>()?;
        let mut largest = vec![0u32; ends.len()];
        for row in x.chunks_exact(ends.len().max(1)) {
            for (largest, x) in largest.iter_mut().zip(row) {
                *largest = Ord::max(*largest, x.unsigned_abs());
            }
        }
        let parts = ends.iter().zip(&largest).map(|(end, &n)| end * n as f32 / HALF);
        let end = parts.fold(f32::MIN_POSITIVE, f32::max).min(self.clip);
        let is_negative = x.iter().any(|&x| x < 0);
        ctx.set(0, Tensor::scalar(if is_negative { -end } else { 0.0 }))?;
        ctx.set(1, Tensor::scalar(end))
    }
}

pub(crate) fn register(c: &mut Catalog) {
    c.op("RequantizePerChannel")
        .doc("32-bit elements as 8-bit ones; each channel has its own range.")
        .input("input: T")
        .input("input_min: float")
        .input("input_max: float")
        .input("requested_output_min: float")
        .input("requested_output_max: float")
        .output("output: out_type")
        .output("output_min: float")
        .output("output_max: float")
        .attr("T: quantizedtype = DT_QINT32")
        .attr("out_type: quantizedtype = DT_QUINT8")
        .shape(like_input_and_range)
        .cpu(|init| match init.dtype("T")? {
            DType::QInt32 => {
                per_dtype!([QUInt8 u8, QInt8 i8], "out_type", T => requantize::<T>)(init)
            }
            other => Err(unsupported(init, "T", other)),
        });
    c.op("RequantizationRangePerChannel")
        .doc("The range that 32-bit elements take up; each channel has its own range.")
        .input("input: T")
        .input("input_min: float")
        .input("input_max: float")
        .output("output_min: float")
        .output("output_max: float")
        .attr("T: quantizedtype = DT_QINT32")
        .attr("clip_value_max: float")
        .shape(shape::scalar)
        .cpu(|init| match init.dtype("T")? {
            DType::QInt32 => Ok(KernelBox::new(Range { clip: init.float("clip_value_max")? })),
            other => Err(unsupported(init, "T", other)),
        });
}
