//! UniformQuantize, UniformDequantize, UniformQuantizedClipByValue: an integer represents a scale
//! times its distance from a zero point.

use super::affine::Quantized;
use super::quantize_op::quantized_dtype;
use crate::prelude::*;

/// The scales and zero points of a tensor: one of each, or one for each slice along an axis.
#[derive(Clone, Copy, Debug)]
struct Axis(i64);

/// Scale and zero point of each slice, and elements of a slice between two of the next.
struct Scales {
    parts: Vec<(f32, i32)>,
    inner: usize,
}

impl Axis {
    fn new(init: &KernelInit<'_>, attr: &str) -> Result<Axis> {
        let axis = init.int(attr)?;
        ensure!(axis >= -1, InvalidArgument, "{attr} must be >= -1, given: {axis}");
        Ok(Axis(axis))
    }

    /// Those in inputs `at` and `at + 1`, for a tensor of this shape.
    fn scales(self, ctx: &Ctx<'_>, at: usize, shape: &Shape) -> Result<Scales> {
        let (scales, zeros) = (ctx.input(at)?, ctx.input(at + 1)?);
        ensure!(
            scales.shape() == zeros.shape(),
            InvalidArgument,
            "scales and zero_points shape must be same, given scales shape {} and zero_points \
             shape {}",
            scales.shape(),
            zeros.shape()
        );
        let (slices, inner) = match usize::try_from(self.0) {
            Ok(axis) => {
                ensure!(
                    axis < shape.rank(),
                    InvalidArgument,
                    "quantization_axis {axis} must be smaller than the rank of the tensor, {}",
                    shape.rank()
                );
                ensure!(
                    scales.shape().dims() == [shape[axis]],
                    InvalidArgument,
                    "scales must have shape [{}] along the quantization axis, got {}",
                    shape[axis],
                    scales.shape()
                );
                (shape[axis], shape[axis + 1..].iter().product::<usize>())
            }
            Err(_) => {
                ensure!(
                    scales.rank() == 0,
                    InvalidArgument,
                    "scales and zero_points must be scalars if quantization_axis is -1, given \
                     scales shape {}",
                    scales.shape()
                );
                (1, shape.elements())
            }
        };
        let values = scales.as_slice::<f32>()?;
        ensure!(
            values.iter().all(|&x| x > 0.0 && x.is_finite()),
            InvalidArgument,
            "scales elements must be all positive and finite."
        );
        let parts: Vec<_> =
            values.iter().copied().zip(zeros.as_slice::<i32>()?.iter().copied()).collect();
        debug_assert_eq!(parts.len(), slices);
        Ok(Scales { parts, inner: inner.max(1) })
    }
}

impl Scales {
    fn at(&self, i: usize) -> (f32, i32) {
        self.parts[i / self.inner % self.parts.len()]
    }
}

/// The least and the largest element that are used.
fn bounds<T: Quantized>(init: &KernelInit<'_>, prefix: &str) -> Result<(i64, i64)> {
    let min = init.int(&format!("{prefix}quantization_min_val"))?;
    let max = init.int(&format!("{prefix}quantization_max_val"))?;
    ensure!(
        T::LOWEST <= min && min < max && max <= T::HIGHEST,
        InvalidArgument,
        "quantization_min_val {min} and quantization_max_val {max} are out of range"
    );
    Ok((min, max))
}

fn quantized(x: f32, (scale, zero): (f32, i32), (min, max): (i64, i64)) -> i64 {
    // The inverse is computed first: its rounding is part of the result.
    let level = (x * (1.0 / scale)).round() + zero as f32;
    (level as i64).clamp(min, max)
}

fn quantize<T: Quantized>(axis: Axis, bounds: (i64, i64)) -> impl Kernel {
    move |ctx: &mut Ctx<'_>| {
        let x = ctx.input(0)?;
        let scales = axis.scales(ctx, 1, x.shape())?;
        let mut out = ctx.alloc(quantized_dtype::<T>(), x.shape().clone())?;
        let pairs = out.as_mut_slice::<T>()?.iter_mut().zip(x.as_slice::<f32>()?);
        for (i, (out, &x)) in pairs.enumerate() {
            *out = T::of(quantized(x, scales.at(i), bounds));
        }
        ctx.set(0, out)
    }
}

fn dequantize<T: Quantized>(axis: Axis) -> impl Kernel {
    move |ctx: &mut Ctx<'_>| {
        let x = ctx.input(0)?;
        let scales = axis.scales(ctx, 1, x.shape())?;
        let mut out = ctx.alloc(DType::Float, x.shape().clone())?;
        let pairs = out.as_mut_slice::<f32>()?.iter_mut().zip(x.as_slice::<T>()?);
        for (i, (out, &x)) in pairs.enumerate() {
            let ((scale, zero), x): (_, i64) = (scales.at(i), x.into());
            *out = (x - i64::from(zero)) as f32 * scale;
        }
        ctx.set(0, out)
    }
}

fn clip(axis: Axis) -> impl Kernel {
    move |ctx: &mut Ctx<'_>| {
        let (x, min, max) = (ctx.input(0)?, ctx.input(1)?, ctx.input(2)?);
        ensure!(
            min.shape() == max.shape(),
            InvalidArgument,
            "Input min and max shape must be same, given min shape {} and max shape {}",
            min.shape(),
            max.shape()
        );
        let scales = axis.scales(ctx, 3, x.shape())?;
        let slices = scales.parts.len();
        ensure!(
            min.elements() == slices && min.rank() == usize::from(axis.0 >= 0),
            InvalidArgument,
            "min and max must have the shape of scales, got {}",
            min.shape()
        );
        let (low, high) = (min.as_slice::<i32>()?.to_vec(), max.as_slice::<i32>()?.to_vec());
        let mut out = ctx.take_or_copy(0)?;
        for (i, x) in out.as_mut_slice::<i32>()?.iter_mut().enumerate() {
            let at = i / scales.inner % slices;
            *x = Ord::max(Ord::min(*x, high[at]), low[at]);
        }
        ctx.set(0, out)
    }
}

pub(crate) fn register(c: &mut Catalog) {
    const ATTRS: [&str; 3] =
        ["quantization_axis: int = -1", "quantization_min_val: int", "quantization_max_val: int"];
    c.op("UniformQuantize")
        .doc("Floats as integers that stand for a scale times their distance from a zero point.")
        .input("input: Tin")
        .input("scales: float")
        .input("zero_points: int32")
        .output("output: Tout")
        .attr("Tin: {float}")
        .attr("Tout: {qint8, qint32}")
        .attr(ATTRS[0])
        .attr(ATTRS[1])
        .attr(ATTRS[2])
        .shape(shape::same_as_input)
        .cpu(per_dtype!([QInt8 i8, QInt32 i32], "Tout", init, T => {
            quantize::<T>(Axis::new(init, "quantization_axis")?, bounds::<T>(init, "")?)
        }));
    c.op("UniformDequantize")
        .doc("The floats that uniformly quantised integers stand for.")
        .input("input: Tin")
        .input("scales: float")
        .input("zero_points: int32")
        .output("output: Tout")
        .attr("Tin: {qint8, qint32}")
        .attr("Tout: {float}")
        .attr(ATTRS[0])
        .attr(ATTRS[1])
        .attr(ATTRS[2])
        .shape(shape::same_as_input)
        .cpu(per_dtype!([QInt8 i8, QInt32 i32], "Tin", init, T => {
            bounds::<T>(init, "")?;
            dequantize::<T>(Axis::new(init, "quantization_axis")?)
        }));
    c.op("UniformQuantizedClipByValue")
        .doc("Uniformly quantised integers between a least and a largest.")
        .input("operand: T")
        .input("min: T")
        .input("max: T")
        .input("scales: float")
        .input("zero_points: int32")
        .output("output: T")
        .attr("T: {qint32}")
        .attr(ATTRS[0])
        .attr(ATTRS[1])
        .attr(ATTRS[2])
        .shape(shape::same_as_input)
        .cpu(|init| {
            bounds::<i32>(init, "")?;
            Ok(KernelBox::new(clip(Axis::new(init, "quantization_axis")?)))
        });
}
