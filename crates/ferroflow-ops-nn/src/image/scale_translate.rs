//! ScaleAndTranslate and its gradient: resampling with a choice of filters.

use super::pixels::{Images, floats};
use super::resize::{original_shape, resized_shape};
use crate::prelude::*;
use ferroflow_op_kit::parallel::for_rows;
use std::f32::consts::PI;

/// A filter: the weight of a pixel by its distance.
#[derive(Clone, Copy, Debug)]
enum Filter {
    Lanczos(f32),
    Gaussian,
    Box,
    Triangle,
    KeysCubic,
    MitchellCubic,
}

impl Filter {
    fn new(name: &str) -> Result<Filter> {
        Ok(match name.to_ascii_lowercase().as_str() {
            "lanczos1" => Filter::Lanczos(1.0),
            "lanczos3" => Filter::Lanczos(3.0),
            "lanczos5" => Filter::Lanczos(5.0),
            "gaussian" => Filter::Gaussian,
            "box" => Filter::Box,
            "triangle" => Filter::Triangle,
            "keyscubic" => Filter::KeysCubic,
            "mitchellcubic" => Filter::MitchellCubic,
            _ => bail!(InvalidArgument, "Unrecognized kernel type: {name}"),
        })
    }

    /// Pixels beyond this distance have no weight.
    fn radius(self) -> f32 {
        match self {
            Filter::Lanczos(radius) => radius,
            Filter::Gaussian => 1.5,
            Filter::Box | Filter::Triangle => 1.0,
            Filter::KeysCubic | Filter::MitchellCubic => 2.0,
        }
    }

    fn at(self, x: f32) -> f32 {
        let x = x.abs();
        match self {
            Filter::Lanczos(r) if x > r => 0.0,
            // Close to zero the quotient would not be exact.
            Filter::Lanczos(_) if x <= 1e-3 => 1.0,
            Filter::Lanczos(r) => r * (PI * x).sin() * (PI * x / r).sin() / (PI * PI * x * x),
            Filter::Gaussian if x >= 1.5 => 0.0,
            Filter::Gaussian => (-x * x / (2.0 * 0.5 * 0.5)).exp(),
            Filter::Box if x < 0.5 => 1.0,
            Filter::Box if x == 0.5 => 0.5,
            Filter::Box => 0.0,
            Filter::Triangle => (1.0 - x).max(0.0),
            Filter::KeysCubic | Filter::MitchellCubic if x >= 2.0 => 0.0,
            Filter::KeysCubic if x >= 1.0 => ((-0.5 * x + 2.5) * x - 4.0) * x + 2.0,
            Filter::KeysCubic => ((1.5 * x - 2.5) * x) * x + 1.0,
            Filter::MitchellCubic if x >= 1.0 => {
                (((-7.0 / 18.0) * x + 2.0) * x - 10.0 / 3.0) * x + 16.0 / 9.0
            }
            Filter::MitchellCubic => (((7.0 / 6.0) * x - 2.0) * x) * x + 8.0 / 9.0,
        }
    }
}

/// The consecutive input elements that make up an output element.
#[derive(Clone, Debug, Default)]
struct Span {
    start: usize,
    weights: Vec<f32>,
}

fn spans(
    filter: Filter,
    antialias: bool,
    input: usize,
    output: usize,
    (scale, translation): (f32, f32),
) -> Vec<Span> {
    let inverse = 1.0 / scale;
    let shift = -inverse * translation;
    // When an image shrinks, the filter is widened to cover all pixels.
    let stretch = if antialias { inverse.max(1.0) } else { 1.0 };
    let reach = filter.radius() * stretch;
    let last = input as i64 - 1;
    (0..output)
        .map(|i| {
            let place = (i as f32 + 0.5) * inverse + shift;
            if !(0.0..=input as f32).contains(&place) {
                return Span::default();
            }
            let start = ((place - reach - 0.5).ceil() as i64).clamp(0, last);
            let end = ((place + reach - 0.5).floor() as i64).clamp(0, last) + 1;
            let mut weights: Vec<f32> = (start..end)
                .map(|at| filter.at((at as f32 + 0.5 - place) * (1.0 / stretch)))
                .collect();
            let sum: f32 = weights.iter().sum();
            if sum.abs() < 1000.0 * f32::MIN_POSITIVE {
                return Span::default();
            }
            let one_over = 1.0 / sum;
            weights.iter_mut().for_each(|w| *w *= one_over);
            Span { start: start as usize, weights }
        })
        .collect()
}

/// The inverse spans: the outputs that each of `input` elements contributed to.
fn reversed(spans: &[Span], input: usize) -> Vec<Span> {
    let mut parts: Vec<Vec<(usize, f32)>> = vec![Vec::new(); input];
    for (i, span) in spans.iter().enumerate() {
        for (at, &w) in (span.start..).zip(&span.weights) {
            if w != 0.0 {
                parts[at].push((i, w));
            }
        }
    }
    let span = |parts: Vec<(usize, f32)>| {
        let (Some(first), Some(last)) = (parts.first(), parts.last()) else {
            return Span::default();
        };
        let mut span = Span { start: first.0, weights: vec![0.0; last.0 - first.0 + 1] };
        for (i, w) in &parts {
            span.weights[i - span.start] += w;
        }
        span
    };
    parts.into_iter().map(span).collect()
}

/// Gathers the spans of rows, then those of columns.
fn gather(rows: &[Span], cols: &[Span], from: Images, to: Images, x: &[f32], y: &mut [f32]) {
    let c = from.channels;
    let cost = rows.iter().map(|s| s.weights.len()).max().unwrap_or(0) * from.row() + to.row();
    for_rows(y, to.row(), cost, |range, y| {
        let mut blend = vec![0f32; from.row()];
        for (at, y) in range.zip(y.chunks_exact_mut(to.row())) {
            let image = &x[at / to.height * from.image()..][..from.image()];
            let row = &rows[at % to.height];
            blend.fill(0.0);
            for (i, w) in (row.start..).zip(&row.weights) {
                let x = &image[i * from.row()..][..from.row()];
                blend.iter_mut().zip(x).for_each(|(sum, x)| *sum += x * w);
            }
            for (col, y) in cols.iter().zip(y.chunks_exact_mut(c)) {
                y.fill(0.0);
                for (i, w) in (col.start..).zip(&col.weights) {
                    let x = &blend[i * c..][..c];
                    y.iter_mut().zip(x).for_each(|(sum, x)| *sum += x * w);
                }
            }
        }
    });
}

struct ScaleAndTranslate {
    filter: Filter,
    antialias: bool,
    gradient: bool,
}

/// The two elements of a vector, for rows and for columns.
fn pair(t: &Tensor) -> Result<(f32, f32)> {
    ensure!(t.rank() == 1, InvalidArgument, "t must be 1-dimensional{}", t.shape());
    match *t.as_slice::<f32>()? {
        [a, b] => Ok((a, b)),
        _ => bail!(InvalidArgument, "t must have two elements{}", t.shape()),
    }
}

impl ScaleAndTranslate {
    fn new(init: &KernelInit<'_>, gradient: bool) -> Result<ScaleAndTranslate> {
        let filter = Filter::new(&init.string("kernel_type")?)?;
        Ok(ScaleAndTranslate { filter, antialias: init.bool("antialias")?, gradient })
    }

    /// Input and output of the op that is differentiated, or of this one.
    fn sizes(&self, ctx: &Ctx<'_>) -> Result<(Images, Images)> {
        let (a, b) = (ctx.input(0)?, ctx.input(1)?);
        let input = Images::of(a.shape(), || match self.gradient {
            true => err!(InvalidArgument, "grads must be 4-dimensional{}", a.shape()),
            false => err!(InvalidArgument, "input must be 4-dimensional{}", a.shape()),
        })?;
        if self.gradient {
            let image = Images::of(b.shape(), || {
                err!(InvalidArgument, "original_image must be 4-dimensional{}", b.shape())
            })?;
            return Ok((input.sized(image.height, image.width), input));
        }
        ensure!(
            b.rank() == 1,
            InvalidArgument,
            "output_shape_t must be 1-dimensional{}",
            b.shape()
        );
        let &[height, width] = b.as_slice::<i32>()? else {
            bail!(InvalidArgument, "output_shape_t must have two elements{}", b.shape());
        };
        ensure!(height > 0 && width > 0, InvalidArgument, "output dimensions must be positive");
        ensure!(input.channels > 0, InvalidArgument, "image must have at least one channel");
        ensure!(
            input.height > 0 && input.width > 0,
            InvalidArgument,
            "input image must be of non-zero size"
        );
        Ok((input, input.sized(height as usize, width as usize)))
    }
}

impl Kernel for ScaleAndTranslate {
    fn compute(&self, ctx: &mut Ctx<'_>) -> Result<()> {
        let (from, to) = self.sizes(ctx)?;
        let (scale, shift) = (pair(ctx.input(2)?)?, pair(ctx.input(3)?)?);
        ensure!(
            scale.0 > 0.0 && scale.1 > 0.0,
            InvalidArgument,
            "Scale must be greater than zero."
        );
        let out = if self.gradient { from } else { to };
        let mut y = ctx.alloc(DType::Float, out.shape()?)?;
        if y.elements() > 0 {
            let (filter, smooth) = (self.filter, self.antialias);
            let mut rows = spans(filter, smooth, from.height, to.height, (scale.0, shift.0));
            let mut cols = spans(filter, smooth, from.width, to.width, (scale.1, shift.1));
            let x = floats(ctx.input(0)?)?;
            let (source, target) = if self.gradient { (to, from) } else { (from, to) };
            if self.gradient {
                (rows, cols) = (reversed(&rows, from.height), reversed(&cols, from.width));
            }
            gather(&rows, &cols, source, target, &x, y.as_mut_slice()?);
        }
        ctx.set(0, y)
    }
}

pub(crate) fn register(c: &mut Catalog) {
    c.op("ScaleAndTranslate")
        .doc("Images scaled and moved, resampled with one of several filters.")
        .input("images: T")
        .input("size: int32")
        .input("scale: float")
        .input("translation: float")
        .output("resized_images: float")
        .attr("T: {int8, uint8, int16, uint16, int32, int64, bfloat16, half, float, double}")
        .attr("kernel_type: string = 'lanczos3'")
        .attr("antialias: bool = true")
        .expensive()
        .shape(resized_shape)
        .cpu(|init| Ok(KernelBox::new(ScaleAndTranslate::new(init, false)?)));
    c.op("ScaleAndTranslateGrad")
        .doc("Gradient of ScaleAndTranslate.")
        .input("grads: T")
        .input("original_image: T")
        .input("scale: float")
        .input("translation: float")
        .output("output: T")
        .attr("T: {float}")
        .attr("kernel_type: string = 'lanczos3'")
        .attr("antialias: bool = true")
        .expensive()
        .shape(original_shape)
        .cpu(|init| Ok(KernelBox::new(ScaleAndTranslate::new(init, true)?)));
    c.gradient("ScaleAndTranslate", |g, dy| {
        let inputs = [dy[0], g.input(0), g.input(2), g.input(3)];
        Ok(g.only(g.call_like("ScaleAndTranslateGrad", &inputs)))
    });
}
