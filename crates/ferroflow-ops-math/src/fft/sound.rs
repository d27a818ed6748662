//! AudioSpectrogram and Mfcc, the features of speech recognition.

use super::plan::Plans;
use crate::prelude::*;
use ferroflow_core::Reservation;
use rustfft::num_complex::Complex;

struct Spectrogram {
    window: Vec<f64>,
    stride: usize,
    squared: bool,
    plans: Plans<f64>,
}

fn spectrogram(init: &KernelInit<'_>) -> Result<KernelBox> {
    let (window, stride) = (init.int("window_size")?, init.int("stride")?);
    ensure!(
        window >= 2 && stride >= 1,
        InvalidArgument,
        "window_size must be at least 2 and stride at least 1, got {window} and {stride}"
    );
    // Allocated here, so that a size that is too large is an error.
    Tensor::alloc(DType::Double, [usize::try_from(window).unwrap_or(usize::MAX)])?;
    let hann = |i: i64| 0.5 - 0.5 * (std::f64::consts::TAU * i as f64 / window as f64).cos();
    Ok(KernelBox::new(Spectrogram {
        window: (0..window).map(hann).collect(),
        stride: stride as usize,
        squared: init.bool("magnitude_squared")?,
        plans: Plans::new(),
    }))
}

impl Kernel for Spectrogram {
    fn compute(&self, ctx: &mut Ctx<'_>) -> Result<()> {
        let x = ctx.input(0)?;
        ensure!(
            x.rank() == 2,
            InvalidArgument,
            "input must be 2-dimensional, got shape {}",
            x.shape()
        );
        let (samples, channels) = (x.shape()[0], x.shape()[1]);
        let n = self.window.len().next_power_of_two();
        let half = n / 2 + 1;
        let frames = match samples.checked_sub(self.window.len()) {
            Some(beyond) => beyond / self.stride + 1,
            None => 0,
        };
        let mut out = ctx.alloc(DType::Float, [channels, frames, half])?;
        // Without channels there may be any number of frames.
        if out.elements() == 0 {
            return ctx.set(0, out);
        }
        let x = x.as_slice::<f32>()?;
        let bytes = (frames * half).saturating_mul(size_of::<Complex<f64>>());
        let _counted = Reservation::new(bytes)?;
        // One channel at a time, to bound the memory for complex numbers.
        let mut spectrum = vec![Complex::<f64>::ZERO; frames * half];
        // A signal that is too short has no frames.
        let size = (frames * half).max(1);
        for (c, out) in out.as_mut_slice::<f32>()?.chunks_exact_mut(size).enumerate() {
            self.plans.forward_rows(n, &mut spectrum, |frame, row| {
                let first = frame * self.stride;
                for (i, to) in row.iter_mut().enumerate() {
                    *to = match self.window.get(i) {
                        Some(w) => w * f64::from(x[(first + i) * channels + c]),
                        None => 0.0,
                    };
                }
            });
            for (to, z) in out.iter_mut().zip(&spectrum) {
                let power = z.norm_sqr();
                *to = if self.squared { power as f32 } else { power.sqrt() as f32 };
            }
        }
        ctx.set(0, out)
    }
}

/// Triangular filters of equal width on the mel scale.
struct Filters {
    /// The filter on whose falling side each point lies, if any. The point lies on the rising side
    /// of the next filter.
    falling: Vec<Option<isize>>,
    /// The weight of each point on the falling side.
    weights: Vec<f64>,
    channels: usize,
}

fn mel(frequency: f64) -> f64 {
    1127.0 * (1.0 + frequency / 700.0).ln()
}

impl Filters {
    fn new(points: usize, rate: f64, channels: usize, (low, high): (f64, f64)) -> Result<Filters> {
        ensure!(
            points >= 2 && rate > 0.0 && channels > 0 && low >= 0.0 && high > low,
            InvalidArgument,
            "Mfcc initialization failed for channel count {points}, sample rate {rate} and \
             filterbank_channel_count {channels}"
        );
        let (start, end) = (mel(low), mel(high));
        let step = (end - start) / (channels + 1) as f64;
        let centre = |i: usize| start + step * (i + 1) as f64;
        let per_point = 0.5 * rate / (points - 1) as f64;
        let (first, last) = ((1.5 + low / per_point) as usize, (high / per_point) as usize);
        let (mut falling, mut weights) = (Vec::new(), Vec::new());
        let mut next = 0;
        for i in 0..points {
            let at = mel(i as f64 * per_point);
            if i < first || i > last {
                falling.push(None);
                weights.push(0.0);
                continue;
            }
            while next < channels && centre(next) < at {
                next += 1;
            }
            falling.push(Some(next as isize - 1));
            weights.push(match next {
                0 => (centre(0) - at) / (centre(0) - start),
                _ => (centre(next) - at) / (centre(next) - centre(next - 1)),
            });
        }
        Ok(Filters { falling, weights, channels })
    }

    fn apply(&self, spectrum: &[f32], out: &mut [f64]) {
        out.fill(0.0);
        for ((&power, falling), weight) in spectrum.iter().zip(&self.falling).zip(&self.weights) {
            let Some(channel) = *falling else { continue };
            let value = f64::from(power).sqrt();
            let weighted = value * weight;
            if let Ok(channel) = usize::try_from(channel) {
                out[channel] += weighted;
            }
            let rising = (channel + 1) as usize;
            if rising < self.channels {
                out[rising] += value - weighted;
            }
        }
    }
}

/// The least energy of a filter, before its logarithm is taken.
const FLOOR: f64 = 1e-12;

struct Mfcc {
    range: (f64, f64),
    channels: usize,
    coefficients: usize,
}

fn mfcc(init: &KernelInit<'_>) -> Result<KernelBox> {
    let count = |name: &str| -> Result<usize> {
        let n = init.int(name)?;
        let n = usize::try_from(n).ok().filter(|&n| n > 0 && n <= 1 << 20);
        n.ok_or_else(|| err!(InvalidArgument, "{name} must be positive and at most {}", 1 << 20))
    };
    let low = f64::from(init.float("lower_frequency_limit")?);
    let high = f64::from(init.float("upper_frequency_limit")?);
    let channels = count("filterbank_channel_count")?;
    let coefficients = count("dct_coefficient_count")?;
    Ok(KernelBox::new(Mfcc { range: (low, high), channels, coefficients }))
}

impl Kernel for Mfcc {
    fn compute(&self, ctx: &mut Ctx<'_>) -> Result<()> {
        let (x, rate) = (ctx.input(0)?, ctx.input(1)?);
        ensure!(
            x.rank() == 3,
            InvalidArgument,
            "spectrogram must be 3-dimensional, got shape {}",
            x.shape()
        );
        ensure!(
            rate.rank() == 0,
            InvalidArgument,
            "Input sample_rate should be a scalar tensor, got {} instead.",
            rate.shape()
        );
        let rate = f64::from(rate.scalar_value::<i32>()?);
        let (audio, frames, points) = (x.shape()[0], x.shape()[1], x.shape()[2]);
        let filters = Filters::new(points, rate, self.channels, self.range)?;
        ensure!(
            self.coefficients <= self.channels,
            InvalidArgument,
            "dct_coefficient_count {} is more than filterbank_channel_count {}",
            self.coefficients,
            self.channels
        );
        let mut out = ctx.alloc(DType::Float, [audio, frames, self.coefficients])?;
        let n = self.channels as f64;
        let (scale, arc) = ((2.0 / n).sqrt(), std::f64::consts::PI / n);
        let mut energies = vec![0.0; self.channels];
        let rows = x.as_slice::<f32>()?.chunks_exact(points);
        for (row, out) in rows.zip(out.as_mut_slice::<f32>()?.chunks_exact_mut(self.coefficients)) {
            filters.apply(row, &mut energies);
            energies.iter_mut().for_each(|e| *e = e.max(FLOOR).ln());
            for (i, to) in out.iter_mut().enumerate() {
                let cosine = |j: usize| (i as f64 * arc * (j as f64 + 0.5)).cos();
                let sum: f64 = energies.iter().enumerate().map(|(j, e)| cosine(j) * e).sum();
                *to = (scale * sum) as f32;
            }
        }
        ctx.set(0, out)
    }
}

pub(crate) fn register(c: &mut Catalog) {
    c.op("AudioSpectrogram")
        .doc("How loud each frequency is in sound, window by window.")
        .input("input: float")
        .output("spectrogram: float")
        .attr("window_size: int")
        .attr("stride: int")
        .attr("magnitude_squared: bool = false")
        .expensive()
        .shape(|c| {
            let input = c.input(0).merge(&PartialShape::of_rank(2))?;
            Ok(vec![PartialShape::new([input.dim(1), None, None])])
        })
        .cpu(spectrogram);
    c.op("Mfcc")
        .doc("The mel-frequency cepstral coefficients of spectrograms.")
        .input("spectrogram: float")
        .input("sample_rate: int32")
        .output("output: float")
        .attr("upper_frequency_limit: float = 4000")
        .attr("lower_frequency_limit: float = 20")
        .attr("filterbank_channel_count: int = 40")
        .attr("dct_coefficient_count: int = 13")
        .expensive()
        .shape(|c| {
            let input = c.input(0).merge(&PartialShape::of_rank(3))?;
            let n = usize::try_from(c.attrs.int("dct_coefficient_count")?).ok();
            Ok(vec![PartialShape::new([input.dim(0), input.dim(1), n])])
        })
        .cpu(mfcc);
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::testing::check;

    #[test]
    fn frames_without_channels_take_no_memory() {
        let out = check("AudioSpectrogram")
            .input(Tensor::zeros(DType::Float, [1 << 20, 0]).unwrap())
            .attr("window_size", 16i64)
            .attr("stride", 16i64)
            .run()
            .unwrap();
        assert_eq!(out[0].elements(), 0);
    }

    #[test]
    fn a_tone_is_seen_where_it_is() {
        let tone: Vec<f32> =
            (0..64).map(|i| (std::f32::consts::TAU * 4.0 * i as f32 / 16.0).sin()).collect();
        let out = check("AudioSpectrogram")
            .input(Tensor::from_slice([64, 1], &tone).unwrap())
            .attr("window_size", 16i64)
            .attr("stride", 16i64)
            .run()
            .unwrap()
            .remove(0);
        assert_eq!(out.shape().dims(), [1, 4, 9]);
        for row in out.as_slice::<f32>().unwrap().chunks(9) {
            let loudest = (0..9).max_by(|&a, &b| row[a].total_cmp(&row[b]));
            assert_eq!(loudest, Some(4), "{row:?}");
        }
    }
}
