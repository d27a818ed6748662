//! Dequantize: quantised integers back to floats.

use super::affine::Quantized;
use super::quantize_op::Mode;
use super::slices_of;
use crate::prelude::*;

struct Dequantize<T> {
    mode: Mode,
    narrow_range: bool,
    axis: i64,
    to_bfloat16: bool,
    marker: std::marker::PhantomData<T>,
}

impl<T: Quantized> Dequantize<T> {
    fn new(init: &KernelInit<'_>) -> Result<Dequantize<T>> {
        let mode = Mode::new(init)?;
        let to_bfloat16 = init.dtype("dtype")? == DType::BFloat16;
        ensure!(
            !to_bfloat16 || mode == Mode::MinCombined,
            InvalidArgument,
            "When output type is bfloat16, Mode string must be 'MIN_COMBINED', is '{}'",
            init.string("mode")?
        );
        Ok(Dequantize {
            mode,
            narrow_range: init.bool("narrow_range")?,
            axis: init.int("axis")?,
            to_bfloat16,
            marker: std::marker::PhantomData,
        })
    }

    /// Scale and offsets before and after it.
    fn line(&self, min: f32, max: f32) -> (f32, f32, f32) {
        let (lowest, highest) = (T::LOWEST as f32, T::HIGHEST as f32);
        match self.mode {
            Mode::MinCombined => {
                let half = if T::LOWEST < 0 { (highest - lowest + 1.0) / 2.0 } else { 0.0 };
                (half, (max - min) / (highest - lowest), min)
            }
            Mode::MinFirst => {
                let scale = (f64::from(max - min) / T::steps()) as f32;
                let start = if max == min { min } else { (min / scale).round() * scale };
                (0.0, scale, start - lowest * scale)
            }
            Mode::Scaled => {
                let first = lowest + if self.narrow_range { 1.0 } else { 0.0 };
                let scale = match T::LOWEST {
                    0 => max / highest,
                    _ => {
                        let (below, above) = (min / first, max / highest);
                        if below < above { above } else { below }
                    }
                };
                (0.0, scale, 0.0)
            }
        }
    }
}

impl<T: Quantized> Kernel for Dequantize<T> {
    fn compute(&self, ctx: &mut Ctx<'_>) -> Result<()> {
        let (x, min, max) = (ctx.input(0)?, ctx.input(1)?, ctx.input(2)?);
        ensure!(
            self.axis < x.rank() as i64,
            InvalidArgument,
            "Axis must be less than input dimension({}), got {}",
            x.rank(),
            self.axis
        );
        let (slices, inner) = slices_of(x, self.axis, min, max)?;
        ensure!(
            slices == 1 || self.mode != Mode::MinFirst,
            Unimplemented,
            "MIN_FIRST mode is not implemented for Dequantize with axis != -1."
        );
        let ends = min.as_slice::<f32>()?.iter().zip(max.as_slice::<f32>()?);
        let lines: Vec<_> = ends.map(|(&min, &max)| self.line(min, max)).collect();
        let mut out = ctx.alloc(DType::Float, x.shape().clone())?;
        let runs = out.as_mut_slice::<f32>()?.chunks_mut(inner.max(1));
        for (i, (out, x)) in runs.zip(x.as_slice::<T>()?.chunks(inner.max(1))).enumerate() {
            let (before, scale, after) = lines[i % slices];
            for (out, &x) in out.iter_mut().zip(x) {
                let x: i64 = x.into();
                *out = (x as f32 + before) * scale + after;
            }
        }
        if self.to_bfloat16 {
            let mut narrow = ctx.alloc(DType::BFloat16, x.shape().clone())?;
            let pairs = narrow.as_mut_slice::<bf16>()?.iter_mut().zip(out.as_slice::<f32>()?);
            pairs.for_each(|(to, from)| *to = bf16::from_f32(*from));
            out = narrow;
        }
        ctx.set(0, out)
    }
}

pub(crate) fn register(c: &mut Catalog) {
    c.op("Dequantize")
        .doc("Quantised integers as the floats that they stand for.")
        .input("input: T")
        .input("min_range: float")
        .input("max_range: float")
        .output("output: dtype")
        .attr("T: quantizedtype")
        .attr("mode: {'MIN_COMBINED', 'MIN_FIRST', 'SCALED'} = 'MIN_COMBINED'")
        .attr("narrow_range: bool = false")
        .attr("axis: int = -1")
        .attr("dtype: {bfloat16, float} = DT_FLOAT")
        .shape(shape::same_as_input)
        .cpu(per_dtype!(
            [QInt8 i8, QUInt8 u8, QInt16 i16, QUInt16 u16, QInt32 i32],
            init,
            T => Dequantize::<T>::new(init)?
        ));
}
