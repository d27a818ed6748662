//! RandomPoisson and similar ops: multiplies uniform values for rates below 10, and uses Hörmann's
//! transformed rejection above.

use super::per_parameter::{
    Doubles, appended, appended_shapes, ensure_ends_with, fill_per_parameter, parameters,
};
use super::stateless::stream_of_seed;
use super::wanted_shape;
use crate::prelude::*;
use ferroflow_op_kit::philox::{Philox, SharedPhilox};

/// How often a value too large for the output's dtype is redrawn before it is accepted.
const MAX_REDRAWS: usize = 1000;

/// One value of a Poisson distribution with this rate, at most `highest` if possible.
fn draw(rate: f64, highest: f64, stream: Philox) -> f64 {
    let mut uniform = Doubles::new(stream);
    if rate.is_nan() || rate == f64::INFINITY {
        return rate;
    }
    if rate < 10.0 {
        let limit = (-rate).exp();
        let (mut product, mut count) = (1.0, 0.0);
        loop {
            product *= uniform.next();
            if product <= limit {
                return count;
            }
            count += 1.0;
        }
    }
    let log_rate = rate.ln();
    let b = 0.931 + 2.53 * rate.sqrt();
    let a = -0.059 + 0.02483 * b;
    let inverse_alpha = 1.1239 + 1.1328 / (b - 3.4);
    let mut redraws = 0;
    loop {
        let u = uniform.next() - 0.5;
        let v = uniform.next();
        let shifted = 0.5 - u.abs();
        let k = ((2.0 * a / shifted + b) * u + rate + 0.43).floor();
        if k > highest && redraws < MAX_REDRAWS {
            redraws += 1;
            continue;
        }
        if shifted >= 0.07 && v <= 0.9277 - 3.6224 / (b - 2.0) {
            return k;
        }
        if k < 0.0 || (shifted < 0.013 && v > shifted) {
            continue;
        }
        let s = (v * inverse_alpha / (a / (shifted * shifted) + b)).ln();
        let t = -rate + k * log_rate - ln_factorial(k);
        if s <= t {
            return k;
        }
    }
}

/// ln(k!) for a whole number `k >= 0`: Stirling's series, from 16 upwards.
fn ln_factorial(k: f64) -> f64 {
    let (mut x, mut product) = (k + 1.0, 1.0);
    while x < 16.0 {
        product *= x;
        x += 1.0;
    }
    let r = 1.0 / (x * x);
    let series =
        (1.0 / 12.0 - r * (1.0 / 360.0 - r * (1.0 / 1260.0 - r * (1.0 / 1680.0 - r / 1188.0)))) / x;
    let half_ln_tau = 0.918_938_533_204_672_8;
    (x - 0.5) * x.ln() - x + half_ln_tau + series - f64::ln(product)
}

fn fill(out: &mut Tensor, rate: &Tensor, stream: Philox) -> Result<()> {
    let rate = parameters(rate)?;
    let highest = match out.dtype() {
        DType::Half => f16::MAX.to_f64(),
        DType::Float => f64::from(f32::MAX),
        DType::Int32 => f64::from(i32::MAX),
        DType::Int64 => i64::MAX as f64,
        _ => f64::MAX,
    };
    fill_per_parameter(out, rate.len(), 100, |i, output| {
        draw(rate[i], highest, stream.skipped(output.wrapping_mul(256)))
    })
}

struct RandomPoisson {
    dtype: DType,
    stream: SharedPhilox,
}

impl Kernel for RandomPoisson {
    fn compute(&self, ctx: &mut Ctx<'_>) -> Result<()> {
        let rate = ctx.input(1)?;
        let samples = wanted_shape(ctx.input(0)?)?;
        let mut out = ctx.alloc(self.dtype, appended(samples, rate.shape())?)?;
        let stream = self.stream.reserve_outputs(out.elements());
        fill(&mut out, rate, stream)?;
        ctx.set(0, out)
    }
}

fn make(init: &KernelInit<'_>) -> Result<KernelBox> {
    let (dtype, stream) = (init.dtype("dtype")?, SharedPhilox::from_attrs(init)?);
    Ok(KernelBox::new(RandomPoisson { dtype, stream }))
}

fn stateless(init: &KernelInit<'_>) -> Result<KernelBox> {
    let dtype = init.dtype("dtype")?;
    Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
        let rate = ctx.input(2)?;
        let stream = stream_of_seed(ctx.input(1)?)?;
        let mut out = ctx.alloc(dtype, wanted_shape(ctx.input(0)?)?)?;
        if out.elements() > 0 {
            ensure_ends_with(out.shape(), rate.shape())?;
            fill(&mut out, rate, stream)?;
        }
        ctx.set(0, out)
    }))
}

pub(crate) fn register(c: &mut Catalog) {
    c.op("RandomPoisson")
        .work(work::any)
        .doc("Values of Poisson distributions with these rates.")
        .input("shape: S")
        .input("rate: dtype")
        .output("output: dtype")
        .attr("seed: int = 0")
        .attr("seed2: int = 0")
        .attr("S: {int32, int64}")
        .attr("dtype: {half, float, double}")
        .stateful()
        .expensive()
        .shape(appended_shapes)
        .cpu(make);
    c.op("RandomPoissonV2")
        .work(work::any)
        .doc("Values of Poisson distributions with these rates, of any dtype.")
        .input("shape: S")
        .input("rate: R")
        .output("output: dtype")
        .attr("seed: int = 0")
        .attr("seed2: int = 0")
        .attr("S: {int32, int64}")
        .attr("R: {half, float, double, int32, int64} = DT_DOUBLE")
        .attr("dtype: {half, float, double, int32, int64} = DT_INT64")
        .stateful()
        .expensive()
        .shape(appended_shapes)
        .cpu(make);
    c.op("StatelessRandomPoisson")
        .work(work::any)
        .doc("Values of Poisson distributions, from a seed.")
        .input("shape: T")
        .input("seed: Tseed")
        .input("lam: Rtype")
        .output("output: dtype")
        .attr("Rtype: {half, float, double, int32, int64}")
        .attr("dtype: {half, float, double, int32, int64}")
        .attr("T: {int32, int64}")
        .attr("Tseed: {int32, int64} = DT_INT64")
        .expensive()
        .shape(shape::from_input_0)
        .cpu(stateless);
    c.no_gradient(&["StatelessRandomPoisson"]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::check;

    #[test]
    fn seeds_give_the_values_of_tensorflow() {
        let draw = |rate: &[f32]| {
            check("RandomPoissonV2")
                .attr("seed", 5i64)
                .attr("seed2", 6i64)
                .input(Tensor::vector(&[3i32]))
                .input(Tensor::vector(rate))
        };
        let want = [0i64, 4, 43, 1, 6, 63, 1, 3, 57];
        draw(&[0.5, 4.0, 50.0]).gives(Tensor::from_slice([3, 3], &want).unwrap());
        let odd = draw(&[-1.0, f32::INFINITY, 1e30]).attr("dtype", DType::Float).run().unwrap();
        let odd = odd[0].as_slice::<f32>().unwrap();
        assert_eq!(odd[..2], [0.0, f32::INFINITY]);
        assert!((0.99e30..1.01e30).contains(&odd[2]));
    }

    #[test]
    fn logs_of_factorials() {
        assert!(ln_factorial(0.0).abs() < 1e-12);
        assert!((ln_factorial(5.0) - 120f64.ln()).abs() < 1e-12);
        assert!((ln_factorial(100.0) - 363.739_375_555_563_5).abs() < 1e-10);
    }
}
