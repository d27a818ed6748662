//! ExtractGlimpse and ExtractGlimpseV2: a window of each image, with noise beyond the edges.

use super::pixels::Images;
use crate::prelude::*;
use ferroflow_op_kit::philox::{Philox, Singles, entropy};

#[derive(Clone, Copy, Debug, PartialEq)]
enum Noise {
    Uniform,
    Gaussian,
    Zero,
}

struct Glimpse {
    /// The second version does not change offsets in pixels, or offsets that are not centred.
    version: u8,
    centered: bool,
    normalized: bool,
    noise: Noise,
}

impl Glimpse {
    fn new(init: &KernelInit<'_>, version: u8) -> Result<Glimpse> {
        let (uniform, noise) = (init.bool("uniform_noise")?, init.string("noise")?);
        ensure!(
            !uniform || noise.is_empty() || noise == "uniform",
            InvalidArgument,
            "The uniform_noise and noise could not be specified at the same time"
        );
        let noise = match noise.as_str() {
            "" if uniform => Noise::Uniform,
            "uniform" => Noise::Uniform,
            "" | "gaussian" => Noise::Gaussian,
            "zero" => Noise::Zero,
            other => bail!(
                InvalidArgument,
                "The noise could only be uniform, gaussian, or zero, got{other}"
            ),
        };
        let (centered, normalized) = (init.bool("centered")?, init.bool("normalized")?);
        Ok(Glimpse { version, centered, normalized, noise })
    }

    /// The start of the window along one side of the image.
    fn start(&self, offset: f32, image: usize, window: usize) -> i64 {
        let (image, window) = (image as f32, window as f32);
        let mut x = if self.normalized { offset * image } else { offset };
        match (self.version, self.normalized, self.centered) {
            (1, _, true) => x = x / 2.0 + image / 2.0 - window / 2.0,
            (1, _, false) => x -= window / 2.0,
            (_, true, true) => x = x / 2.0 + image / 2.0 - window / 2.0,
            (_, false, true) => x += image / 2.0,
            (_, _, false) => {}
        }
        x as i64
    }

    /// Fills a glimpse with noise like the image.
    fn fill(&self, image: &[f32], channels: usize, out: &mut [f32], random: &mut Singles) {
        match self.noise {
            Noise::Zero => out.fill(0.0),
            Noise::Uniform => {
                let low = image.iter().copied().fold(f32::INFINITY, f32::min);
                let high = image.iter().copied().fold(f32::NEG_INFINITY, f32::max);
                out.iter_mut().for_each(|x| *x = low + random.next_f32() * (high - low));
            }
            Noise::Gaussian => {
                for c in 0..channels {
                    let values = || image.iter().skip(c).step_by(channels).copied();
                    let count = values().count().max(1) as f32;
                    let mean = values().sum::<f32>() / count;
                    let sigma =
                        (values().map(|x| (x - mean) * (x - mean)).sum::<f32>() / count).sqrt();
                    let low = values().fold(f32::INFINITY, f32::min);
                    let high = values().fold(f32::NEG_INFINITY, f32::max);
                    for x in out.iter_mut().skip(c).step_by(channels) {
                        *x = (mean + normal(random) * sigma).min(high).max(low);
                    }
                }
            }
        }
    }
}

/// A standard normal value, by Box and Muller.
fn normal(random: &mut Singles) -> f32 {
    let radius = (-2.0 * random.next_f32().max(1e-7).ln()).sqrt();
    radius * (std::f32::consts::TAU * random.next_f32()).cos()
}

/// The pixels of the image under the window: their start in the window, their start in the image,
/// and their number.
fn overlap(start: i64, window: usize, image: usize) -> (usize, usize, usize) {
    let (window, image) = (window as i64, image as i64);
    let (from, to) = (start.clamp(0, image), start.saturating_add(window).clamp(0, image));
    ((from - start).clamp(0, window) as usize, from as usize, Ord::max(to - from, 0) as usize)
}

impl Kernel for Glimpse {
    fn compute(&self, ctx: &mut Ctx<'_>) -> Result<()> {
        let (input, window, offsets) = (ctx.input(0)?, ctx.input(1)?, ctx.input(2)?);
        let image = Images::of(input.shape(), || {
            err!(
                InvalidArgument,
                "input must be 4-dimensional (batch_size, height, width, depth){}",
                input.shape()
            )
        })?;
        ensure!(
            window.shape().dims() == [2],
            InvalidArgument,
            "input must be a vector of size 2 (height, width){}",
            window.shape()
        );
        let size = window.to_shape()?;
        let shape = offsets.shape();
        ensure!(shape.rank() == 2, InvalidArgument, "input must be a matrix{shape}");
        ensure!(shape[0] == image.batch, InvalidArgument, "first dimension should be batch{shape}");
        ensure!(
            shape[1] == 2,
            InvalidArgument,
            "second dimension should be of size 2 (y,x){shape}"
        );
        let glimpse = image.sized(size[0], size[1]);
        let mut out = ctx.alloc(DType::Float, glimpse.shape()?)?;
        if out.elements() == 0 {
            return ctx.set(0, out);
        }
        let (x, offsets) = (input.as_slice::<f32>()?, offsets.as_slice::<f32>()?);
        let mut random = Singles::new(Philox::seeded(entropy() as i64, entropy() as i64));
        let c = image.channels;
        let parts = out.as_mut_slice::<f32>()?.chunks_exact_mut(glimpse.image());
        for (i, out) in parts.enumerate() {
            let x = &x[i * image.image()..][..image.image()];
            let y0 = self.start(offsets[2 * i], image.height, glimpse.height);
            let x0 = self.start(offsets[2 * i + 1], image.width, glimpse.width);
            let (to_row, row, rows) = overlap(y0, glimpse.height, image.height);
            let (to_col, col, cols) = overlap(x0, glimpse.width, image.width);
            if rows < glimpse.height || cols < glimpse.width {
                self.fill(x, c, out, &mut random);
            }
            for k in 0..if cols > 0 { rows } else { 0 } {
                let to = (to_row + k) * glimpse.row() + to_col * c;
                let from = (row + k) * image.row() + col * c;
                out[to..to + cols * c].copy_from_slice(&x[from..from + cols * c]);
            }
        }
        ctx.set(0, out)
    }
}

pub(crate) fn register(c: &mut Catalog) {
    for (op, version) in [("ExtractGlimpse", 1), ("ExtractGlimpseV2", 2)] {
        c.op(op)
            .doc("A window of each image, with noise where it looks beyond the edge.")
            .input("input: float")
            .input("size: int32")
            .input("offsets: float")
            .output("glimpse: float")
            .attr("centered: bool = true")
            .attr("normalized: bool = true")
            .attr("uniform_noise: bool = true")
            .attr("noise: string = 'uniform'")
            .shape(super::resize::resized_shape)
            .cpu(move |init| Ok(KernelBox::new(Glimpse::new(init, version)?)));
    }
    c.no_gradient(&["ExtractGlimpse"]);
}
