//! StatelessRandomBinomial and StatefulRandomBinomial: by summing geometric values where few
//! successes are expected, else by Hörmann's transformed rejection (BTRS).

use super::per_parameter::{Doubles, ensure_ends_with, fill_per_parameter, parameters};
use super::stateful::take;
use super::stateless::stream_of_seed;
use super::wanted_shape;
use crate::prelude::*;
use ferroflow_op_kit::philox::Philox;

/// Successes in `count` tries, counted by the failures between them.
fn by_inversion(count: f64, prob: f64, stream: Philox) -> f64 {
    let mut uniform = Doubles::new(stream);
    let (mut tries, mut successes) = (0.0, 0.0);
    loop {
        tries += (uniform.next().ln() / (-prob).ln_1p()).ceil();
        if tries > count || tries.is_nan() {
            return successes;
        }
        successes += 1.0;
    }
}

/// The error of Stirling's approximation of ln(k!).
fn stirling_tail(k: f64) -> f64 {
    const SMALL: [f64; 10] = [
        0.0810614667953272,
        0.0413406959554092,
        0.0276779256849983,
        0.02079067210376509,
        0.0166446911898211,
        0.0138761288230707,
        0.0118967099458917,
        0.0104112652619720,
        0.00925546218271273,
        0.00833056343336287,
    ];
    if k <= 9.0 {
        return SMALL[k.max(0.0) as usize];
    }
    let square = (k + 1.0) * (k + 1.0);
    (1.0 / 12.0 - (1.0 / 360.0 - 1.0 / 1260.0 / square) / square) / (k + 1.0)
}

fn by_rejection(count: f64, prob: f64, stream: Philox) -> f64 {
    let stddev = (count * prob * (1.0 - prob)).sqrt();
    let b = 1.15 + 2.53 * stddev;
    let a = -0.0873 + 0.0248 * b + 0.01 * prob;
    let c = count * prob + 0.5;
    let v_r = 0.92 - 4.2 / b;
    let r = prob / (1.0 - prob);
    let alpha = (2.83 + 5.1 / b) * stddev;
    let m = ((count + 1.0) * prob).floor();
    let mut uniform = Doubles::new(stream);
    loop {
        let u = uniform.next() - 0.5;
        let v = uniform.next();
        let us = 0.5 - u.abs();
        let k = ((2.0 * a / us + b) * u + c).floor();
        // Extreme parameters give NaN instead of an endless loop.
        if (us >= 0.07 && v <= v_r) || k.is_nan() {
            return k;
        }
        if k < 0.0 || k > count {
            continue;
        }
        let v = (v * alpha / (a / (us * us) + b)).ln();
        let bound = (m + 0.5) * ((m + 1.0) / (r * (count - m + 1.0))).ln()
            + (count + 1.0) * ((count - m + 1.0) / (count - k + 1.0)).ln()
            + (k + 0.5) * (r * (count - k + 1.0) / (k + 1.0)).ln()
            + stirling_tail(m)
            + stirling_tail(count - m)
            - stirling_tail(k)
            - stirling_tail(count - k);
        if v <= bound {
            return k;
        }
    }
}

/// Successes in `count` tries; `round` rounds to the precision of the parameters.
fn draw(count: f64, prob: f64, round: fn(f64) -> f64, stream: Philox, output: u64) -> f64 {
    if count.is_nan() || prob.is_nan() {
        return f64::NAN;
    }
    if count <= 0.0 || prob <= 0.0 {
        return 0.0;
    }
    if prob >= 1.0 {
        return count;
    }
    let few = |p: f64| {
        if round(count * p) >= 10.0 {
            by_rejection(count, p, stream.skipped(output.wrapping_mul(256)))
        } else {
            by_inversion(count, p, stream.skipped(output.wrapping_mul(42)))
        }
    };
    if prob <= 0.5 { few(prob) } else { count - few(round(1.0 - prob)) }
}

/// Counts and probabilities, broadcast against each other.
struct Tries {
    counts: Vec<f64>,
    probs: Vec<f64>,
    /// For each place, the index into either.
    places: Vec<(usize, usize)>,
    shape: Shape,
    round: fn(f64) -> f64,
}

impl Tries {
    fn new(counts: &Tensor, probs: &Tensor) -> Result<Tries> {
        let shape = shape::broadcast_shapes(&counts.shape().into(), &probs.shape().into());
        let Some(shape) = shape.ok().and_then(|s| s.known()) else {
            bail!(
                InvalidArgument,
                "counts and probs must have compatible batch dimensions: {} vs. {}",
                counts.shape(),
                probs.shape()
            );
        };
        let strides = shape.strides();
        let step = |of: &Shape, at: usize| -> usize {
            let lead = shape.rank() - of.rank();
            let own = of.strides();
            (0..of.rank())
                .filter(|&d| of[d] > 1)
                .map(|d| at / strides[lead + d] % shape[lead + d] * own[d])
                .sum()
        };
        let n = shape.checked_elements()?;
        let places = (0..n).map(|at| (step(counts.shape(), at), step(probs.shape(), at))).collect();
        let round: fn(f64) -> f64 = match probs.dtype() {
            DType::Half => |x| f16::from_f64(x).to_f64(),
            DType::Float => |x| f64::from(x as f32),
            _ => |x| x,
        };
        Ok(Tries { counts: parameters(counts)?, probs: parameters(probs)?, places, shape, round })
    }

    fn fill(&self, stream: Philox, out: &mut Tensor) -> Result<()> {
        fill_per_parameter(out, self.places.len(), 150, |i, output| {
            let (count, prob) = self.places[i];
            draw(self.counts[count], self.probs[prob], self.round, stream, output)
        })
    }
}

fn stateless(init: &KernelInit<'_>) -> Result<KernelBox> {
    let dtype = init.dtype("dtype")?;
    Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
        let stream = stream_of_seed(ctx.input(1)?)?;
        let tries = Tries::new(ctx.input(2)?, ctx.input(3)?)?;
        let mut out = ctx.alloc(dtype, wanted_shape(ctx.input(0)?)?)?;
        ensure_ends_with(out.shape(), &tries.shape)?;
        tries.fill(stream, &mut out)?;
        ctx.set(0, out)
    }))
}

fn stateful(init: &KernelInit<'_>) -> Result<KernelBox> {
    let dtype = init.dtype("dtype")?;
    Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
        let alg = ctx.input(1)?.scalar_index()?;
        ensure!(alg == 1, InvalidArgument, "Unsupported algorithm id: {alg}");
        let tries = Tries::new(ctx.input(3)?, ctx.input(4)?)?;
        let mut out = ctx.alloc(dtype, wanted_shape(ctx.input(2)?)?)?;
        ensure_ends_with(out.shape(), &tries.shape)?;
        // TensorFlow does not advance the stream when there is nothing to draw.
        if out.elements() == 0 {
            return ctx.set(0, out);
        }
        let batches = tries.places.len() as u64;
        let samples = (out.elements() as u64).checked_div(batches).unwrap_or(0);
        let outputs = batches.wrapping_mul(2 * 100).wrapping_mul(samples + 3) / 4;
        let stream = take(ctx, false, outputs.wrapping_mul(256))?;
        tries.fill(stream, &mut out)?;
        ctx.set(0, out)
    }))
}

pub(crate) fn register(c: &mut Catalog) {
    c.op("StatelessRandomBinomial")
        .work(work::any)
        .doc("Values of binomial distributions, from a seed.")
        .input("shape: S")
        .input("seed: Tseed")
        .input("counts: T")
        .input("probs: T")
        .output("output: dtype")
        .attr("S: {int32, int64}")
        .attr("Tseed: {int32, int64} = DT_INT64")
        .attr("T: {half, float, double, int32, int64} = DT_DOUBLE")
        .attr("dtype: {half, float, double, int32, int64} = DT_INT64")
        .expensive()
        .shape(shape::from_input_0)
        .cpu(stateless);
    c.op("StatefulRandomBinomial")
        .work(work::any)
        .doc("Values of binomial distributions, from a stream kept in a variable.")
        .input("resource: resource")
        .input("algorithm: int64")
        .input("shape: S")
        .input("counts: T")
        .input("probs: T")
        .output("output: dtype")
        .attr("S: {int32, int64}")
        .attr("T: {half, float, double, int32, int64} = DT_DOUBLE")
        .attr("dtype: {half, float, double, int32, int64} = DT_INT64")
        .stateful()
        .expensive()
        .shape(|c| Ok(vec![c.shape_from(2)]))
        .cpu(stateful);
    c.no_gradient(&["StatelessRandomBinomial"]);
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::testing::check;

    #[test]
    fn seeds_give_the_values_of_tensorflow() {
        let draw = |shape: &[i32], probs: &[f32]| {
            check("StatelessRandomBinomial")
                .attr("dtype", DType::Int32)
                .input(Tensor::vector(shape))
                .input(Tensor::vector(&[1i32, 2]))
                .input(Tensor::vector(&[10f32, 100., 40.]))
                .input(Tensor::vector(probs))
        };
        draw(&[2, 3], &[0.3, 0.5, 0.9])
            .gives(Tensor::from_slice([2, 3], &[5i32, 57, 34, 5, 63, 35]).unwrap());
        draw(&[2], &[0.3]).fails(Code::InvalidArgument, "must end with broadcasted shape");
        draw(&[3], &[0.3, 0.4]).fails(Code::InvalidArgument, "compatible batch dimensions");
    }
}
