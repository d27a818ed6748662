//! QuantizeV2: floats to quantised integers.

use super::affine::Quantized;
use super::slices_of;
use crate::prelude::*;

/// How integers are spread over a range.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Mode {
    MinCombined,
    MinFirst,
    Scaled,
}

impl Mode {
    pub fn new(init: &KernelInit<'_>) -> Result<Mode> {
        match init.string("mode")?.as_str() {
            "MIN_COMBINED" => Ok(Mode::MinCombined),
            "MIN_FIRST" => Ok(Mode::MinFirst),
            "SCALED" => Ok(Mode::Scaled),
            other => bail!(
                InvalidArgument,
                "Mode string must be 'MIN_COMBINED', 'MIN_FIRST', or 'SCALED', is '{other}'"
            ),
        }
    }
}

struct Quantize<T> {
    mode: Mode,
    half_to_even: bool,
    narrow_range: bool,
    axis: i64,
    least_range: f32,
    marker: std::marker::PhantomData<T>,
}

impl<T: Quantized> Quantize<T> {
    fn new(init: &KernelInit<'_>) -> Result<Quantize<T>> {
        let mode = Mode::new(init)?;
        let half_to_even = init.string("round_mode")? == "HALF_TO_EVEN";
        ensure!(
            !half_to_even || mode == Mode::Scaled,
            InvalidArgument,
            "Round mode 'HALF_TO_EVEN' only supported for mode 'SCALED', but mode is '{}'.",
            init.string("mode")?
        );
        Ok(Quantize {
            mode,
            half_to_even,
            narrow_range: init.bool("narrow_range")?,
            axis: init.int("axis")?,
            least_range: init.float("ensure_minimum_range")?,
            marker: std::marker::PhantomData,
        })
    }

    /// The range that is used, and how a value is quantised in it.
    fn quantizer(&self, min: f32, max: f32) -> Result<(f32, f32, impl Fn(f32) -> T + use<T>)> {
        ensure!(
            max >= min,
            InvalidArgument,
            "input_max_range must be larger than input_min_range."
        );
        // The range contains zero and is not too narrow.
        let low = min.min(0.0);
        let epsilon = min.abs().max(max.abs()).max(1.0) * self.least_range;
        let high = max.max(low + epsilon).max(0.0);
        let (lowest, highest) = (T::LOWEST as f32, T::HIGHEST as f32);
        let (mut low, mut high) = (low, high);
        let (mode, half_to_even) = (self.mode, self.half_to_even);
        let scale = match mode {
            Mode::MinCombined => ((T::HIGHEST - T::LOWEST) as f64 / f64::from(high - low)) as f32,
            Mode::MinFirst if low == high => 0.0,
            Mode::MinFirst => (T::steps() / f64::from(high - low)) as f32,
            Mode::Scaled => {
                let first = lowest + if self.narrow_range { 1.0 } else { 0.0 };
                let side = |level: f32, x: f32| if level * x > 0.0 { level / x } else { f32::MAX };
                let scale = side(first, low).min(side(highest, high));
                (low, high) = (first / scale, highest / scale);
                scale
            }
        };
        let half = if T::LOWEST < 0 { (T::steps() as f32 + 1.0) / 2.0 } else { 0.0 };
        let offset = (low * scale).round() - lowest;
        let (least, most) = (lowest.max(-2.147_483_6e9), highest.min(2.147_483_5e9));
        let quantize = move |x: f32| {
            let inside = if x > high { high } else { x };
            let inside = if inside < low { low } else { inside };
            let level = match mode {
                Mode::MinCombined if T::LOWEST < 0 => ((inside - low) * scale - half).round(),
                Mode::MinCombined => ((inside - low) * scale + 0.5).floor(),
                Mode::MinFirst => ((x * scale).round() - offset).max(least).min(most),
                Mode::Scaled if half_to_even => (inside * scale).round_ties_even(),
                Mode::Scaled => (inside * scale).round(),
            };
            T::clamped(level as i64)
        };
        Ok((low, high, quantize))
    }
}

impl<T: Quantized> Kernel for Quantize<T> {
    fn compute(&self, ctx: &mut Ctx<'_>) -> Result<()> {
        let (x, min, max) = (ctx.input(0)?, ctx.input(1)?, ctx.input(2)?);
        ensure!(
            self.axis < x.rank() as i64,
            InvalidArgument,
            "Axis must be less than input dimension({}), got {}",
            x.rank(),
            self.axis
        );
        ensure!(
            self.axis >= -1,
            InvalidArgument,
            "Axis requested is smaller than -1: {}",
            self.axis
        );
        for (name, t) in [("min_range", min), ("max_range", max)] {
            ensure!(
                self.axis < 0 || t.rank() == 1,
                InvalidArgument,
                "If axis is specified, {name} must be a 1-D tensor whose size matches the axis \
                 dimension of the input and output tensors, but {name} dims are {}",
                t.rank()
            );
        }
        let (slices, inner) = slices_of(x, self.axis, min, max)?;
        ensure!(
            slices == 1 || self.mode != Mode::MinFirst,
            Unimplemented,
            "MIN_FIRST mode is not implemented for Quantize with axis != -1."
        );
        let mut out = ctx.alloc(quantized_dtype::<T>(), x.shape().clone())?;
        let mut ends = (Vec::with_capacity(slices), Vec::with_capacity(slices));
        let mut quantizers = Vec::with_capacity(slices);
        for (&min, &max) in min.as_slice::<f32>()?.iter().zip(max.as_slice::<f32>()?) {
            let (min, max, quantize) = self.quantizer(min, max)?;
            ends.0.push(min);
            ends.1.push(max);
            quantizers.push(quantize);
        }
        let runs = out.as_mut_slice::<T>()?.chunks_mut(inner.max(1));
        for (i, (out, x)) in runs.zip(x.as_slice::<f32>()?.chunks(inner.max(1))).enumerate() {
            let quantize = &quantizers[i % slices];
            out.iter_mut().zip(x).for_each(|(out, &x)| *out = quantize(x));
        }
        let is_scalar = self.axis < 0 || slices == 1;
        let shape = if is_scalar { Shape::scalar() } else { Shape::vector(slices) };
        ctx.set(0, out)?;
        ctx.set(1, Tensor::from_slice(shape.clone(), &ends.0)?)?;
        ctx.set(2, Tensor::from_slice(shape, &ends.1)?)
    }
}

/// The quantised dtype that elements of `T` are kept as.
pub(super) fn quantized_dtype<T: Quantized>() -> DType {
    match T::DTYPE {
        DType::UInt8 => DType::QUInt8,
        DType::Int8 => DType::QInt8,
        DType::UInt16 => DType::QUInt16,
        DType::Int16 => DType::QInt16,
        _ => DType::QInt32,
    }
}

pub(crate) fn register(c: &mut Catalog) {
    c.op("QuantizeV2")
        .doc("Floats as quantised integers, and the range that these stand for.")
        .input("input: float")
        .input("min_range: float")
        .input("max_range: float")
        .output("output: T")
        .output("output_min: float")
        .output("output_max: float")
        .attr("T: quantizedtype")
        .attr("mode: {'MIN_COMBINED', 'MIN_FIRST', 'SCALED'} = 'MIN_COMBINED'")
        .attr("round_mode: {'HALF_AWAY_FROM_ZERO', 'HALF_TO_EVEN'} = 'HALF_AWAY_FROM_ZERO'")
        .attr("narrow_range: bool = false")
        .attr("axis: int = -1")
        .attr("ensure_minimum_range: float = 0.009999999776482582")
        .shape(|c| {
            let axis = usize::try_from(c.attrs.int("axis")?);
            let range = match axis {
                // The range of one slice is a scalar.
                Ok(axis) => match c.input(0).dim(axis) {
                    None | Some(1) => PartialShape::unknown(),
                    slices => PartialShape::new([slices]),
                },
                Err(_) => PartialShape::scalar(),
            };
            Ok(vec![c.input(0), range.clone(), range])
        })
        .cpu(per_dtype!(
            [QInt8 i8, QUInt8 u8, QInt16 i16, QUInt16 u16, QInt32 i32],
            init,
            T => Quantize::<T>::new(init)?
        ));
}
