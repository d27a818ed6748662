//! QuantizedInstanceNorm, QuantizedBatchNormWithGlobalNormalization.

use super::affine::{Levels, from_float, like_input_and_range, scalar, set_range, to_float};
use crate::prelude::*;

/// Normalizes each channel of each image to mean 0 and variance 1.
struct InstanceNorm {
    /// The range of the result; otherwise it is the one that the result takes up.
    range: Option<(f32, f32)>,
    epsilon: f32,
    min_separation: f32,
}

impl Kernel for InstanceNorm {
    fn compute(&self, ctx: &mut Ctx<'_>) -> Result<()> {
        let x = ctx.input(0)?;
        let (min, max) = (scalar(ctx, 1, "x_min")?, scalar(ctx, 2, "x_max")?);
        let &[batch, height, width, channels] = x.shape().dims() else {
            bail!(InvalidArgument, "input must be 4-dimensional, got shape {}", x.shape());
        };
        ensure!(
            min < max,
            InvalidArgument,
            "input_min must be less than input_max : {min} >= {max}"
        );
        let scale = (max - min) / 255.0;
        let (pixels, data) = (height * width, x.as_slice::<u8>()?);
        let mut normed = vec![0f32; data.len()];
        for image in 0..batch {
            for channel in 0..channels {
                let place = |i: usize| (image * pixels + i) * channels + channel;
                let sum: f32 = (0..pixels).map(|i| f32::from(data[place(i)])).sum();
                let mean = sum / pixels as f32;
                let from_mean = |i: usize| scale * (f32::from(data[place(i)]) - mean);
                let squares: f32 = (0..pixels).map(|i| from_mean(i) * from_mean(i)).sum();
                let deviation = (squares / pixels as f32 + self.epsilon).sqrt();
                (0..pixels).for_each(|i| normed[place(i)] = from_mean(i) / deviation);
            }
        }
        let ends = |x: &[f32]| {
            let least = x.iter().copied().fold(f32::INFINITY, f32::min);
            (least, x.iter().copied().fold(f32::NEG_INFINITY, f32::max))
        };
        let (min, max) = self.range.unwrap_or_else(|| ends(&normed));
        let max = if max - min < self.min_separation { min + self.min_separation } else { max };
        let levels = Levels::new::<u8>(min, max);
        let mut out = ctx.alloc(DType::QUInt8, x.shape().clone())?;
        for (out, &x) in out.as_mut_slice::<u8>()?.iter_mut().zip(&normed) {
            *out = levels.of(x);
        }
        ctx.set(0, out)?;
        set_range(ctx, (min, max))
    }
}

/// The range of results: a million on either side of zero, in steps of 1/2048.
const RANGE: (f32, f32) = (-1048576.0, 1048576.0);

struct BatchNorm {
    epsilon: f32,
    scales: bool,
}

impl BatchNorm {
    /// The floats of the quantised vector in input `at`. Its range is in the next inputs.
    fn vector(ctx: &Ctx<'_>, at: usize, name: &str, channels: usize) -> Result<Vec<f32>> {
        let t = ctx.input(at)?;
        ensure!(
            t.shape()[..] == [channels],
            InvalidArgument,
            "{name} must have shape [{channels}], got {}",
            t.shape()
        );
        let min = scalar(ctx, at + 1, &format!("{name}_min"))?;
        let max = scalar(ctx, at + 2, &format!("{name}_max"))?;
        Ok(t.as_slice::<u8>()?.iter().map(|&x| to_float(x, min, max)).collect())
    }
}

impl Kernel for BatchNorm {
    fn compute(&self, ctx: &mut Ctx<'_>) -> Result<()> {
        let x = ctx.input(0)?;
        let (min, max) = (scalar(ctx, 1, "t_min")?, scalar(ctx, 2, "t_max")?);
        ensure!(
            x.rank() == 4,
            InvalidArgument,
            "input must be 4-dimensional, got shape {}",
            x.shape()
        );
        let channels = x.shape()[3];
        let mean = Self::vector(ctx, 3, "mean", channels)?;
        let variance = Self::vector(ctx, 6, "var", channels)?;
        let beta = Self::vector(ctx, 9, "beta", channels)?;
        let gamma = Self::vector(ctx, 12, "gamma", channels)?;
        let level = |x: f32| from_float::<i32>(x, RANGE.0, RANGE.1);
        let lines: Vec<(i32, i32)> = (0..channels)
            .map(|c| {
                let deviation = (variance[c] + self.epsilon).sqrt();
                let scale = if self.scales { 1.0 / deviation * gamma[c] } else { 1.0 / deviation };
                (level(scale), level(-mean[c] * scale + beta[c]))
            })
            .collect();
        let one = level(1.0);
        let mut out = ctx.alloc(DType::QInt32, x.shape().clone())?;
        let pairs = out.as_mut_slice::<i32>()?.iter_mut().zip(x.as_slice::<u8>()?);
        for ((out, &x), &(scale, offset)) in pairs.zip(lines.iter().cycle()) {
            let x = level(to_float(x, min, max));
            *out = (x.wrapping_mul(scale) / one).wrapping_add(offset);
        }
        ctx.set(0, out)?;
        set_range(ctx, RANGE)
    }
}

pub(crate) fn register(c: &mut Catalog) {
    c.op("QuantizedInstanceNorm")
        .doc("Channels of quantised images with mean 0 and variance 1.")
        .input("x: T")
        .input("x_min: float")
        .input("x_max: float")
        .output("y: T")
        .output("y_min: float")
        .output("y_max: float")
        .attr("T: quantizedtype")
        .attr("output_range_given: bool = false")
        .attr("given_y_min: float = 0")
        .attr("given_y_max: float = 0")
        .attr("variance_epsilon: float = 1e-05")
        .attr("min_separation: float = 0.001")
        .shape(like_input_and_range)
        .cpu(|init| match init.dtype("T")? {
            DType::QUInt8 => {
                let given = (init.float("given_y_min")?, init.float("given_y_max")?);
                let is_given = init.bool("output_range_given")?;
                ensure!(
                    !is_given || given.0 < given.1,
                    InvalidArgument,
                    "given_y_min must be less than given_y_max : {} >= {}",
                    given.0,
                    given.1
                );
                Ok(KernelBox::new(InstanceNorm {
                    range: is_given.then_some(given),
                    epsilon: init.float("variance_epsilon")?,
                    min_separation: init.float("min_separation")?,
                }))
            }
            other => Err(unsupported(init, "T", other)),
        });
    c.op("QuantizedBatchNormWithGlobalNormalization")
        .doc("Quantised images normalized by given means and variances.")
        .inputs(&[
            "t: Tinput",
            "t_min: float",
            "t_max: float",
            "m: Tinput",
            "m_min: float",
            "m_max: float",
            "v: Tinput",
            "v_min: float",
            "v_max: float",
            "beta: Tinput",
            "beta_min: float",
            "beta_max: float",
            "gamma: Tinput",
            "gamma_min: float",
            "gamma_max: float",
        ])
        .output("result: out_type")
        .output("result_min: float")
        .output("result_max: float")
        .attr("Tinput: quantizedtype")
        .attr("out_type: quantizedtype")
        .attr("variance_epsilon: float")
        .attr("scale_after_normalization: bool")
        .shape(like_input_and_range)
        .cpu(|init| match (init.dtype("Tinput")?, init.dtype("out_type")?) {
            (DType::QUInt8, DType::QInt32) => Ok(KernelBox::new(BatchNorm {
                epsilon: init.float("variance_epsilon")?,
                scales: init.bool("scale_after_normalization")?,
            })),
            (DType::QUInt8, other) => Err(unsupported(init, "out_type", other)),
            (other, _) => Err(unsupported(init, "Tinput", other)),
        });
}
