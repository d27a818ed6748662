//! QuantizeDownAndShrinkRange, Requantize, RequantizationRange: convert quantised integers to
//! another range.

use super::affine::{Levels, Line, Quantized, like_input_and_range, scalar, set_range, to_float};
use super::quantize_op::quantized_dtype;
use crate::prelude::*;

/// The range that elements use, extended to include zero.
fn range_in_use(x: &[i32], min: f32, max: f32) -> (f32, f32) {
    let lowest = x.iter().copied().fold(i32::MAX, Ord::min);
    let highest = x.iter().copied().fold(i32::MIN, Ord::max);
    (to_float(lowest, min, max).min(0.0), to_float(highest, min, max))
}

/// Moves 32-bit elements to 8 bits over another range.
fn moved<T: Quantized>(x: &[i32], from: (f32, f32), to: (f32, f32), out: &mut [T]) {
    if T::LOWEST == 0 {
        // In fixed point, with 16 bits behind the point.
        let (span, wanted) = (from.1 - from.0, to.1 - to.0);
        let one = f64::from(1 << 16);
        let (mut scale, mut offset) = (0i64, 0i64);
        if wanted != 0.0 {
            scale = (255.0 * one * f64::from(span) / f64::from(wanted)) as i64;
            let per_level = (255.0 / f64::from(wanted)) as f32;
            let centre = ((f64::from(from.0 + from.1)) / 2.0) as f32;
            offset = (centre * per_level * one as f32) as i64;
            offset -= (one * (f64::from(to.0) * 255.0) / f64::from(wanted)).round() as i64;
        }
        for (out, &x) in out.iter_mut().zip(x) {
            let level = (i128::from(x) * i128::from(scale)) >> 32;
            let level = (level + i128::from(offset) + (1 << 15)) >> 16;
            *out = T::of(level.clamp(0, 255) as i64);
        }
        return;
    }
    let (line, levels) = (Line::new::<i32>(from.0, from.1), Levels::new::<T>(to.0, to.1));
    out.iter_mut().zip(x).for_each(|(out, &x)| *out = levels.of(line.at(x)));
}

fn requantize<T: Quantized>(ctx: &mut Ctx<'_>) -> Result<()> {
    let from = (scalar(ctx, 1, "input_min")?, scalar(ctx, 2, "input_max")?);
    let to = (scalar(ctx, 3, "requested_output_min")?, scalar(ctx, 4, "requested_output_max")?);
    ensure!(to.0 <= 0.0, InvalidArgument, "requested_output_min must be <= 0, but got {}", to.0);
    ensure!(
        to.1 >= to.0,
        InvalidArgument,
        "requested_output_max must be >= requested_output_min, but got {} and {}",
        to.1,
        to.0
    );
    let x = ctx.input(0)?;
    let mut out = ctx.alloc(quantized_dtype::<T>(), x.shape().clone())?;
    moved::<T>(x.as_slice()?, from, to, out.as_mut_slice()?);
    ctx.set(0, out)?;
    set_range(ctx, to)
}

fn shrink(ctx: &mut Ctx<'_>) -> Result<()> {
    let from = (scalar(ctx, 1, "input_min")?, scalar(ctx, 2, "input_max")?);
    let x = ctx.input(0)?;
    let to = range_in_use(x.as_slice()?, from.0, from.1);
    let mut out = ctx.alloc(DType::QUInt8, x.shape().clone())?;
    moved::<u8>(x.as_slice()?, from, to, out.as_mut_slice()?);
    ctx.set(0, out)?;
    set_range(ctx, to)
}

fn range(ctx: &mut Ctx<'_>) -> Result<()> {
    let (min, max) = (scalar(ctx, 1, "input_min")?, scalar(ctx, 2, "input_max")?);
    let (min, max) = range_in_use(ctx.input(0)?.as_slice()?, min, max);
    ctx.set(0, Tensor::scalar(min))?;
    ctx.set(1, Tensor::scalar(max))
}

/// Refuses inputs that are not of 32 bits.
fn of_32_bits(init: &KernelInit<'_>) -> Result<()> {
    match init.dtype("Tinput")? {
        DType::QInt32 => Ok(()),
        other => Err(unsupported(init, "Tinput", other)),
    }
}

/// Integers and the range that they represent.
const RANGED: [&str; 3] = ["input: Tinput", "input_min: float", "input_max: float"];

/// Integers and the range that they represent.
const RANGED_OUTPUT: [&str; 3] = ["output: out_type", "output_min: float", "output_max: float"];

pub(crate) fn register(c: &mut Catalog) {
    c.op("QuantizeDownAndShrinkRange")
        .doc("32-bit elements as 8-bit ones over the range that they take up.")
        .inputs(&RANGED)
        .outputs(&RANGED_OUTPUT)
        .attr("Tinput: quantizedtype")
        .attr("out_type: quantizedtype")
        .shape(like_input_and_range)
        .cpu(|init| {
            of_32_bits(init)?;
            match init.dtype("out_type")? {
                DType::QUInt8 => Ok(KernelBox::new(shrink)),
                other => Err(unsupported(init, "out_type", other)),
            }
        });
    c.op("Requantize")
        .doc("32-bit elements as 8-bit ones over a given range.")
        .inputs(&RANGED)
        .input("requested_output_min: float")
        .input("requested_output_max: float")
        .outputs(&RANGED_OUTPUT)
        .attr("Tinput: quantizedtype")
        .attr("out_type: quantizedtype")
        .shape(like_input_and_range)
        .cpu(|init| {
            of_32_bits(init)?;
            per_dtype!([QUInt8 u8, QInt8 i8], "out_type", T => requantize::<T>)(init)
        });
    c.op("RequantizationRange")
        .doc("The range that 32-bit elements take up.")
        .inputs(&RANGED)
        .output("output_min: float")
        .output("output_max: float")
        .attr("Tinput: quantizedtype")
        .shape(shape::scalar)
        .cpu(|init| {
            of_32_bits(init)?;
            Ok(KernelBox::new(range))
        });
}
