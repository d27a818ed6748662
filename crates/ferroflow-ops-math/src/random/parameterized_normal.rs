//! ParameterizedTruncatedNormal and its stateless version: normal values between bounds. One of
//! three rejection samplers is chosen by the bounds (Robert, 1995).

use super::distribution::Sample;
use super::stateless::stream_of_seed;
use super::wanted_shape;
use crate::prelude::*;
use ferroflow_op_kit::philox::{Philox, SharedPhilox};

const MAX_ITERATIONS: u64 = 1000;

/// The functions the samplers need, in the precision of the type.
trait Functions: Sample {
    fn exp(self) -> Self;
    fn ln(self) -> Self;
    fn sqrt(self) -> Self;
    fn of(x: f64) -> Self;
}

macro_rules! functions {
    ($($t:ty, $wide:ty);*) => {$(
        impl Functions for $t {
            fn exp(self) -> Self { Self::narrow(<$wide>::exp(self.wide())) }
            fn ln(self) -> Self { Self::narrow(<$wide>::ln(self.wide())) }
            fn sqrt(self) -> Self { Self::narrow(<$wide>::sqrt(self.wide())) }
            fn of(x: f64) -> Self { Self::narrow(x as $wide) }
        }
    )*};
}
functions!(f16, f32; f32, f32; f64, f64);

fn no_luck(which: &str) -> Error {
    err!(Internal, "TruncatedNormal {which} rejection sampler failed to accept a sample.")
}

/// Fills `out` with values of N(mean, stddev²) in [min, max], from the current position of the
/// stream.
fn sample<T: Functions>(
    out: &mut [T],
    [mean, stddev, min, max]: [T; 4],
    stream: &mut Philox,
) -> Result<()> {
    ensure!(
        stddev > T::of(0.0) && min < max && (min.to_f64().is_finite() || max.to_f64().is_finite()),
        InvalidArgument,
        "Invalid parameters"
    );
    // Mirrors the distribution so that a single bound is the lower one, and bounds on one side of
    // the mean are above it.
    let turned = (min.to_f64() == f64::NEG_INFINITY) || max < mean;
    let (stddev, min, max) = if turned { (stddev.neg(), max, min) } else { (stddev, min, max) };
    let low = min.sub(mean).div(stddev);
    let high = max.sub(mean).div(stddev);
    let root = low.mul(low).add(T::of(4.0)).sqrt();
    let exponent = T::of(0.5).add(low.mul(low.sub(root)).div(T::of(4.0)));
    let cutoff = T::of(2.0).mul(exponent.exp()).div(low.add(root));
    let inside = T::of(1.3);
    let back = |z: T| z.mul(stddev).add(mean);
    if (low < inside.neg() && high >= T::of(0.0)) || (high > inside && low <= T::of(0.0)) {
        by_normal(out, low, high, back, stream)
    } else if high.sub(low) < cutoff {
        by_uniform(out, low, high.sub(low), back, stream)
    } else {
        by_exponential(out, low, high, back, stream)
    }
}

fn by_normal<T: Functions>(
    out: &mut [T],
    low: T,
    high: T,
    back: impl Fn(T) -> T,
    stream: &mut Philox,
) -> Result<()> {
    let (mut at, mut misses) = (0, 0);
    while at < out.len() {
        for x in T::normal(stream.draw()).into_iter().take(T::GROUP) {
            if x >= low && x <= high {
                out[at] = back(x);
                at += 1;
                if at == out.len() {
                    break;
                }
                misses = 0;
            } else {
                misses += 1;
                ensure_luck(misses <= MAX_ITERATIONS, "randn")?;
            }
        }
    }
    Ok(())
}

fn by_uniform<T: Functions>(
    out: &mut [T],
    low: T,
    width: T,
    back: impl Fn(T) -> T,
    stream: &mut Philox,
) -> Result<()> {
    let plus = if low < T::of(0.0) { T::of(0.0) } else { low.mul(low) };
    let (mut at, mut misses) = (0, 0);
    while at < out.len() {
        let z = T::uniform(stream.draw()).map(|u| u.mul(width).add(low));
        let g = z.map(|z| plus.sub(z.mul(z)).div(T::of(2.0)));
        let u = T::uniform(stream.draw());
        for i in 0..T::GROUP {
            if u[i] <= g[i].exp() {
                out[at] = back(z[i]);
                at += 1;
                if at == out.len() {
                    break;
                }
                misses = 0;
            } else {
                misses += 1;
                ensure_luck(misses < MAX_ITERATIONS, "uniform")?;
            }
        }
    }
    Ok(())
}

fn by_exponential<T: Functions>(
    out: &mut [T],
    low: T,
    high: T,
    back: impl Fn(T) -> T,
    stream: &mut Philox,
) -> Result<()> {
    let alpha = low.add(low.mul(low).add(T::of(4.0)).sqrt()).div(T::of(2.0));
    let (mut at, mut misses) = (0, 0);
    while at < out.len() {
        let words = T::uniform(stream.draw());
        for pair in words[..T::GROUP].chunks_exact(2) {
            let z = pair[0].ln().neg().div(alpha).add(low);
            let x = if low < alpha { alpha.sub(z) } else { low.sub(alpha) };
            let g = x.neg().mul(x).div(T::of(2.0)).exp();
            if pair[1] <= g && z < high {
                out[at] = back(z);
                at += 1;
                if at == out.len() {
                    break;
                }
                misses = 0;
            } else {
                misses += 1;
                ensure_luck(misses < MAX_ITERATIONS, "exponential distribution")?;
            }
        }
    }
    Ok(())
}

fn ensure_luck(is_lucky: bool, which: &str) -> Result<()> {
    if is_lucky { Ok(()) } else { Err(no_luck(which)) }
}

/// How a tensor is divided into batches: their number, and the values in each.
struct Batches {
    count: usize,
    samples: usize,
}

impl Batches {
    /// Generator calls reserved for these batches.
    fn calls(&self) -> u64 {
        (self.count as u64).wrapping_mul(2 * MAX_ITERATIONS).wrapping_mul(self.samples as u64 + 3)
            / 4
    }
}

/// Scalars or vectors with one value per row of the output, as the first version takes them.
fn by_rows(shape: &Shape, parameters: &[&Tensor]) -> Result<Batches> {
    let (&rows, rest) = shape.split_first().ok_or_else(|| {
        err!(InvalidArgument, "Shape tensor must not be empty, got Tensor<type: int32 shape: [0]>")
    })?;
    let samples: usize = rest.iter().product();
    let names = ["means", "stddevs", "minvals", "maxvals"];
    for (name, p) in names.iter().zip(parameters) {
        ensure!(
            p.rank() <= 1,
            InvalidArgument,
            "Input {name} should be a scalar or vector, got shape: {}",
            p.shape()
        );
    }
    let one = |p: &Tensor| p.rank() == 0 || p.shape()[0] == 1;
    if one(parameters[0])
        && one(parameters[1])
        && parameters[2].rank() == 0
        && parameters[3].rank() == 0
    {
        // One distribution for all values: batches of a size that we choose.
        return Ok(Batches { count: (rows * samples).div_ceil(100), samples: 100 });
    }
    for (name, p) in names.iter().zip(parameters) {
        ensure!(
            one(p) || p.shape()[0] == rows,
            InvalidArgument,
            "Input {name} should have length 1 or shape[0], got shape: {}",
            p.shape()
        );
    }
    Ok(Batches { count: rows, samples })
}

fn fill<T: Functions>(
    out: &mut Tensor,
    batches: &Batches,
    parameters: &[&Tensor],
    mut stream: Philox,
) -> Result<()> {
    let values: Vec<&[T]> = parameters.iter().map(|p| p.as_slice::<T>()).collect::<Result<_>>()?;
    let out = out.as_mut_slice::<T>()?;
    if out.is_empty() {
        return Ok(());
    }
    for (b, part) in out.chunks_mut(batches.samples.max(1)).enumerate() {
        let at = |v: &[T]| if v.len() == 1 { v[0] } else { v[b] };
        let parameters = [at(values[0]), at(values[1]), at(values[2]), at(values[3])];
        sample(part, parameters, &mut stream)?;
    }
    Ok(())
}

struct Seeded<T> {
    stream: SharedPhilox,
    of: std::marker::PhantomData<T>,
}

impl<T: Functions> Kernel for Seeded<T> {
    fn compute(&self, ctx: &mut Ctx<'_>) -> Result<()> {
        let shape = wanted_shape(ctx.input(0)?)?;
        let parameters = ctx.inputs(1..5)?;
        let mut out = ctx.alloc(T::DTYPE, shape)?;
        let batches = by_rows(out.shape(), &parameters)?;
        let stream = self.stream.reserve(batches.calls());
        fill::<T>(&mut out, &batches, &parameters, stream)?;
        drop(parameters);
        ctx.set(0, out)
    }
}

/// Parameters that broadcast to the last dimensions of the output; all samples of one place are
/// drawn together.
fn stateless<T: Functions>(ctx: &mut Ctx<'_>) -> Result<()> {
    let mut stream = stream_of_seed(ctx.input(1)?)?;
    let parameters = ctx.inputs(2..6)?;
    let mut batch = PartialShape::scalar();
    for p in &parameters {
        batch = shape::broadcast_shapes(&batch, &p.shape().into()).map_err(|_| {
            err!(
                InvalidArgument,
                "means, stddevs, minvals, maxvals must have compatible batch dimensions: {} vs. \
                 {} vs. {} vs. {}",
                parameters[0].shape(),
                parameters[1].shape(),
                parameters[2].shape(),
                parameters[3].shape()
            )
        })?;
    }
    let batch = batch.known().unwrap_or_default();
    let mut out = ctx.alloc(T::DTYPE, wanted_shape(ctx.input(0)?)?)?;
    super::per_parameter::ensure_ends_with(out.shape(), &batch)?;
    let places = batch.elements();
    if out.elements() > 0 {
        let samples = out.elements() / places;
        let strides = batch.strides();
        let out = out.as_mut_slice::<T>()?;
        let mut part = vec![T::of(0.0); samples];
        for at in 0..places {
            let mut values = [T::of(0.0); 4];
            for (value, p) in values.iter_mut().zip(&parameters) {
                let (lead, own) = (batch.rank() - p.rank(), p.shape().strides());
                let index: usize = (0..p.rank())
                    .filter(|&d: &usize| p.shape().dims()[d] != 1usize)
                    .map(|d| at / strides[lead + d] % batch[lead + d] * own[d])
                    .sum();
                *value = p.as_slice::<T>()?[index];
            }
            sample(&mut part, values, &mut stream)?;
            for (i, x) in part.iter().enumerate() {
                out[i * places + at] = *x;
            }
        }
    }
    drop(parameters);
    ctx.set(0, out)
}

/// By implicit differentiation of the distribution function.
fn truncated_gradient<'g>(g: &GradientScope<'g>, dy: &[Term<'g>]) -> Result<Vec<Term<'g>>> {
    let [mean, stddev, low, high] = [2, 3, 4, 5].map(|i| g.input(i));
    let (sample, dy) = (g.output(0), dy[0]);
    let standard = |x: Term<'g>| (x - mean) / stddev;
    let (a, b, s) = (standard(low), standard(high), standard(sample));
    // The normal distribution function, without cancellation in its tails.
    let below = |x: Term<'g>| {
        let w = x * std::f64::consts::FRAC_1_SQRT_2;
        let z = w.apply("Abs");
        let tail = z.apply("Erfc");
        let far = g.select(w.with("Greater", w.number(0.0)), 2.0 - tail, tail);
        let near = z.with("Less", z.number(std::f64::consts::FRAC_1_SQRT_2));
        g.select(near, w.apply("Erf") + 1.0, far) * 0.5
    };
    let part = (below(s) - below(a)) / (below(b) - below(a));
    let (tiny, epsilon) = match mean.dtype() {
        DType::Double => (f64::MIN_POSITIVE, f64::EPSILON),
        DType::Half => (6.104e-5, 9.77e-4),
        DType::BFloat16 => (1.18e-38, 7.8125e-3),
        _ => (f64::from(f32::MIN_POSITIVE), f64::from(f32::EPSILON)),
    };
    let part = part.with("Maximum", part.number(tiny)).with("Minimum", part.number(1.0 - epsilon));
    let of_high = ((s.square() - b.square()) * 0.5 + part.log()).exp();
    let of_low = ((s.square() - a.square()) * 0.5 + (-part).apply("Log1p")).exp();
    let one = |d: Term<'g>, x: Term<'g>| g.unbroadcast_one(d, x, sample);
    Ok(vec![
        g.none(),
        g.none(),
        one(dy, mean),
        one(dy * s, stddev),
        one(dy * of_low, low),
        one(dy * of_high, high),
    ])
}

pub(crate) fn register(c: &mut Catalog) {
    c.op("ParameterizedTruncatedNormal")
        .work(work::any)
        .doc("Normal values between bounds, with parameters for each row or for all.")
        .input("shape: T")
        .input("means: dtype")
        .input("stdevs: dtype")
        .input("minvals: dtype")
        .input("maxvals: dtype")
        .output("output: dtype")
        .attr("seed: int = 0")
        .attr("seed2: int = 0")
        .attr("dtype: {half, bfloat16, float, double}")
        .attr("T: {int32, int64}")
        .stateful()
        .expensive()
        .shape(shape::from_input_0)
        .cpu(per_dtype!([Half f16, Float f32, Double f64], "dtype", init, T => Seeded::<T> {
            stream: SharedPhilox::from_attrs(init)?,
            of: std::marker::PhantomData,
        }));
    c.op("StatelessParameterizedTruncatedNormal")
        .work(work::any)
        .doc("Normal values between bounds, from a seed.")
        .input("shape: S")
        .input("seed: Tseed")
        .input("means: dtype")
        .input("stddevs: dtype")
        .input("minvals: dtype")
        .input("maxvals: dtype")
        .output("output: dtype")
        .attr("S: {int32, int64}")
        .attr("Tseed: {int32, int64} = DT_INT64")
        .attr("dtype: {half, float, double}")
        .expensive()
        .shape(shape::from_input_0)
        .cpu(per_dtype!([Half f16, Float f32, Double f64], "dtype", T => stateless::<T>));
    c.no_gradient(&["ParameterizedTruncatedNormal"]);
    c.gradient("StatelessParameterizedTruncatedNormal", truncated_gradient);
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::testing::check;

    fn draw(stddev: f32, min: f32, max: f32) -> crate::testing::Check<'static> {
        check("ParameterizedTruncatedNormal")
            .attr("seed", 5i64)
            .attr("seed2", 6i64)
            .input(Tensor::vector(&[4i32]))
            .input(Tensor::scalar(0f32))
            .input(Tensor::scalar(stddev))
            .input(Tensor::scalar(min))
            .input(Tensor::scalar(max))
    }

    #[test]
    fn seeds_give_the_values_of_tensorflow() {
        draw(1.0, -1.0, 1.5).gives(Tensor::vector(&[
            0.7032734f32,
            -0.4358273,
            -0.82234734,
            -0.28787032,
        ]));
        draw(1.0, 3.0, f32::INFINITY).gives(Tensor::vector(&[
            3.1036308f32,
            3.1149223,
            3.6940413,
            3.0964313,
        ]));
        draw(1.0, 0.1, 0.3).gives(Tensor::vector(&[
            0.24203137f32,
            0.16765946,
            0.23683217,
            0.23928165,
        ]));
    }

    #[test]
    fn bounds_are_in_order() {
        draw(-1.0, 0.0, 1.0).fails(Code::InvalidArgument, "Invalid parameters");
        draw(1.0, 2.0, 1.0).fails(Code::InvalidArgument, "Invalid parameters");
    }
}
