//! UniformQuantize, UniformDequantize, UniformRequantize, UniformQuantizedClipByValue: an integer
//! represents a scale times its distance from a zero point.

use super::affine::Quantized;
use super::quantize_op::quantized_dtype;
use crate::prelude::*;
use ferroflow_op_kit::dispatch::unsupported;

/// The scales and zero points of a tensor: one of each, or one for each slice along an axis.
#[derive(Clone, Copy, Debug)]
pub(super) struct Axis(i64);

/// Scale and zero point of each slice, and elements of a slice between two of the next.
pub(super) struct Scales {
    pub parts: Vec<(f32, i32)>,
    pub inner: usize,
}

impl Axis {
    /// No axis: one scale for all elements.
    pub const WHOLE: Axis = Axis(-1);

    pub fn new(init: &KernelInit<'_>, attr: &str) -> Result<Axis> {
        let axis = init.int(attr)?;
        ensure!(axis >= -1, InvalidArgument, "{attr} must be >= -1, given: {axis}");
        Ok(Axis(axis))
    }

    /// Those in inputs `at` and `at + 1`, for a tensor of this shape.
    pub fn scales(self, ctx: &Ctx<'_>, at: usize, shape: &Shape) -> Result<Scales> {
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
    pub fn at(&self, i: usize) -> (f32, i32) {
        self.parts[i / self.inner % self.parts.len()]
    }
}

/// The least and the largest element that are used.
pub(super) fn bounds<T: Quantized>(init: &KernelInit<'_>, prefix: &str) -> Result<(i64, i64)> {
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

/// A factor in fixed point, `multiplier / 2^31 * 2^shift`: a positive quotient of two floats.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct FixedPoint {
    multiplier: i64,
    shift: i32,
}

impl FixedPoint {
    pub fn new(factor: f64) -> Result<FixedPoint> {
        ensure!(
            factor > 0.0 && factor.is_finite(),
            InvalidArgument,
            "the quotient of the scales must be a positive finite number, got {factor}"
        );
        // Quotients of two floats are never subnormal doubles.
        let (bits, exponent_bits) = (factor.to_bits(), 0x7ff << 52);
        let mut shift = ((bits & exponent_bits) >> 52) as i32 - 1022;
        let fraction = f64::from_bits(bits & !exponent_bits | 1022 << 52);
        let mut multiplier = (fraction * (1u64 << 31) as f64).round() as i64;
        if multiplier == 1 << 31 {
            (multiplier, shift) = (multiplier / 2, shift + 1);
        }
        Ok(match shift {
            ..-31 => FixedPoint { multiplier: 0, shift: 0 },
            -31..=30 => FixedPoint { multiplier, shift },
            _ => FixedPoint { multiplier: i64::from(i32::MAX), shift: 30 },
        })
    }

    /// The nearest integer to `x` times this, within 32 bits.
    pub fn times(self, x: i32) -> i32 {
        let shift = 31 - self.shift;
        let product = i64::from(x) * self.multiplier + (1 << (shift - 1));
        (product >> shift).clamp(i32::MIN.into(), i32::MAX.into()) as i32
    }
}

fn requantize<T: Quantized>(from: Axis, to: Axis, (min, max): (i64, i64)) -> impl Kernel {
    move |ctx: &mut Ctx<'_>| {
        let x = ctx.input(0)?;
        let from = from.scales(ctx, 1, x.shape())?;
        let to = to.scales(ctx, 3, x.shape())?;
        // One factor for each slice along the axis, if there is one.
        let (slices, inner) = match from.parts.len() > 1 {
            true => (from.parts.len(), from.inner),
            false => (to.parts.len(), to.inner),
        };
        let factor = |slice: usize| {
            let at = slice * inner;
            FixedPoint::new(f64::from(from.at(at).0) / f64::from(to.at(at).0))
        };
        if x.elements() == 0 {
            let out = ctx.alloc(DType::QInt8, x.shape().clone())?;
            return ctx.set(0, out);
        }
        let factors = (0..slices).map(factor).collect::<Result<Vec<_>>>()?;
        let mut out = ctx.alloc(DType::QInt8, x.shape().clone())?;
        let pairs = out.as_mut_slice::<i8>()?.iter_mut().zip(x.as_slice::<T>()?);
        for (i, (out, &x)) in pairs.enumerate() {
            let x: i64 = x.into();
            let distance = (x as i32).wrapping_sub(from.at(i).1);
            let level = factors[i / inner % slices].times(distance).wrapping_add(to.at(i).1);
            // The bounds need not be in order, nor fit the type.
            *out = Ord::max(Ord::min(i64::from(level), max), min) as i8;
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
    c.op("UniformRequantize")
        .doc("Uniformly quantised integers with other scales and zero points.")
        .input("input: Tin")
        .input("input_scales: float")
        .input("input_zero_points: int32")
        .input("output_scales: float")
        .input("output_zero_points: int32")
        .output("output: Tout")
        .attr("Tin: {qint8, qint32}")
        .attr("Tout: {qint8, qint32}")
        .attr("input_quantization_axis: int = -1")
        .attr("input_quantization_min_val: int")
        .attr("input_quantization_max_val: int")
        .attr("output_quantization_axis: int = -1")
        .attr("output_quantization_min_val: int")
        .attr("output_quantization_max_val: int")
        .shape(shape::same_as_input)
        .cpu(per_dtype!([QInt8 i8, QInt32 i32], "Tin", init, T => {
            let to_type = init.dtype("Tout")?;
            if to_type != DType::QInt8 {
                return Err(unsupported(init, "Tout", to_type));
            }
            let from = Axis::new(init, "input_quantization_axis")?;
            let to = Axis::new(init, "output_quantization_axis")?;
            ensure!(
                from.0 < 0 || to.0 < 0 || from.0 == to.0,
                InvalidArgument,
                "input_quantization_axis {} and output_quantization_axis {} must be equal if \
                 neither is -1",
                from.0,
                to.0
            );
            let bound = |which: &str| init.int(&format!("output_quantization_{which}_val"));
            requantize::<T>(from, to, (bound("min")?, bound("max")?))
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

#[cfg(test)]
mod tests {
    use super::FixedPoint;
    use crate::prelude::*;
    use crate::testing::{Check, check};

    fn matrix(values: &[i32; 4]) -> Tensor {
        Tensor::from_slice([2, 2], values).unwrap().with_dtype(DType::QInt32).unwrap()
    }

    fn bytes(values: &[i8; 4]) -> Tensor {
        Tensor::from_slice([2, 2], values).unwrap().with_dtype(DType::QInt8).unwrap()
    }

    /// Scales and zero points: one of each, or one of each column.
    fn steps(scales: &[f32], zeros: &[i32]) -> [Tensor; 2] {
        match (scales, zeros) {
            (&[scale], &[zero]) => [Tensor::scalar(scale), Tensor::scalar(zero)],
            _ => [Tensor::vector(scales), Tensor::vector(zeros)],
        }
    }

    fn requantize(x: Tensor, from: [Tensor; 2], to: [Tensor; 2]) -> Check<'static> {
        let axis = |scales: &Tensor| if scales.rank() == 0 { -1 } else { 1 };
        let mut call = check("UniformRequantize")
            .attr("Tout", DType::QInt8)
            .attr("input_quantization_axis", axis(&from[0]))
            .attr("input_quantization_min_val", i64::from(i32::MIN))
            .attr("input_quantization_max_val", i64::from(i32::MAX))
            .attr("output_quantization_axis", axis(&to[0]))
            .attr("output_quantization_min_val", -127)
            .attr("output_quantization_max_val", 126)
            .input(x);
        for input in from.into_iter().chain(to) {
            call = call.input(input);
        }
        call
    }

    #[test]
    fn requantized_integers_are_scaled_rounded_and_clamped() {
        let x = matrix(&[8, -6, 1000, -1000]);
        requantize(x, steps(&[0.5], &[1]), steps(&[1.0], &[10])).gives(bytes(&[14, 7, 126, -127]));
    }

    #[test]
    fn columns_are_requantized_by_their_own_scales() {
        let x = || matrix(&[4, 4, -8, -8]);
        let (one, two) = (|| steps(&[1.0], &[0]), || steps(&[0.5, 2.0], &[0, 1]));
        requantize(x(), two(), one()).gives(bytes(&[2, 6, -4, -18]));
        requantize(x(), one(), two()).gives(bytes(&[8, 3, -16, -3]));
        requantize(x(), two(), two()).gives(bytes(&[4, 4, -8, -8]));
        let text = "scales must have shape [2] along the quantization axis, got [3]";
        let three = steps(&[1.0; 3], &[0; 3]);
        requantize(x(), one(), three).fails(Code::InvalidArgument, text);
    }

    #[test]
    fn factors_in_fixed_point_are_rounded_once_and_saturate() {
        for (factor, x, want) in [
            (0.5, 3, 2),
            (0.5, -3, -1),
            (1.0, i32::MIN, i32::MIN),
            (1e-20, i32::MAX, 0),
            (1e20, 1, 1 << 30),
            (1e20, -4, i32::MIN),
        ] {
            assert_eq!(FixedPoint::new(factor).unwrap().times(x), want, "{factor} * {x}");
        }
        assert!(FixedPoint::new(f64::INFINITY).is_err());
    }
}
