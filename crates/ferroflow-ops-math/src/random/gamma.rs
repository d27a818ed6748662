//! RandomGamma and its stateless version, by the method of Marsaglia and Tsang.

use super::distribution::Sample;
use super::per_parameter::{
    Doubles, appended, appended_shapes, ensure_ends_with, fill_per_parameter, parameters,
};
use super::stateless::{stream_of_key, stream_of_seed};
use super::wanted_shape;
use crate::prelude::*;
use ferroflow_op_kit::philox::{Philox, SharedPhilox};

/// Generator calls reserved for one output.
const STRETCH: u64 = 256;

/// One value of shape parameter `alpha`.
fn draw(alpha: f64, stream: Philox) -> f64 {
    let mut uniform = Doubles::new(stream);
    if alpha == 1.0 {
        return -(-uniform.next()).ln_1p();
    }
    // Below 1, a value for alpha + 1 is scaled down by a power of a uniform one.
    let is_small = alpha < 1.0;
    let d = alpha + if is_small { 2.0 / 3.0 } else { -1.0 / 3.0 };
    let c = 1.0 / 3.0 / d.sqrt();
    let mut normals: Option<f64> = None;
    loop {
        // Normal and uniform values alternate in one stream. Each draw has two values, and the
        // second is kept.
        let x = normals.take().unwrap_or_else(|| {
            let [first, second, ..] = f64::normal(uniform.stream.draw());
            normals = Some(first);
            second
        });
        let v = 1.0 + c * x;
        if v <= 0.0 {
            continue;
        }
        let v = v * v * v;
        let u = uniform.next();
        if u < 1.0 - 0.0331 * (x * x) * (x * x) || u.ln() < 0.5 * x * x + d * (1.0 - v + v.ln()) {
            let value = d * v;
            return if is_small { value * uniform.next().powf(1.0 / alpha) } else { value };
        }
    }
}

fn fill(out: &mut Tensor, alpha: &Tensor, stream: Philox) -> Result<()> {
    let alpha = parameters(alpha)?;
    fill_per_parameter(out, alpha.len(), 150, |i, output| {
        draw(alpha[i], stream.skipped(STRETCH.wrapping_mul(output)))
    })
}

struct RandomGamma {
    stream: SharedPhilox,
}

impl Kernel for RandomGamma {
    fn compute(&self, ctx: &mut Ctx<'_>) -> Result<()> {
        let alpha = ctx.input(1)?;
        let samples = wanted_shape(ctx.input(0)?)?;
        let mut out = ctx.alloc(alpha.dtype(), appended(samples, alpha.shape())?)?;
        let stream = self.stream.reserve_outputs(out.elements());
        fill(&mut out, alpha, stream)?;
        ctx.set(0, out)
    }
}

/// The output for the shape in input 0 and the parameters in input `i`.
fn stateless(ctx: &mut Ctx<'_>, stream: Philox, i: usize) -> Result<()> {
    let alpha = ctx.input(i)?;
    let mut out = ctx.alloc(alpha.dtype(), wanted_shape(ctx.input(0)?)?)?;
    if out.elements() > 0 {
        ensure_ends_with(out.shape(), alpha.shape())?;
        fill(&mut out, alpha, stream)?;
    }
    ctx.set(0, out)
}

/// The gradient for `alpha`, of whose gamma distribution samples were drawn, `extra` dimensions of
/// them.
fn alpha_gradient<'g>(
    g: &GradientScope<'g>,
    dy: Term<'g>,
    alpha: Term<'g>,
    extra: Term<'g>,
) -> Term<'g> {
    let ones = g.call("Fill", &[extra.expand_dims(0), g.int(1)]);
    let wide = alpha.reshape(g.concat(&[ones, alpha.shape()], 0));
    let slope = g.call("RandomGammaGrad", &[wide, g.output(0)]);
    (dy * slope).sum(g.range(extra), false)
}

pub(crate) fn register(c: &mut Catalog) {
    c.op("RandomGamma")
        .work(work::any)
        .doc("Values of gamma distributions with shape parameters `alpha` and rate 1.")
        .input("shape: S")
        .input("alpha: T")
        .output("output: T")
        .attr("seed: int = 0")
        .attr("seed2: int = 0")
        .attr("S: {int32, int64}")
        .attr("T: {half, float, double}")
        .stateful()
        .expensive()
        .shape(appended_shapes)
        .cpu(|init| Ok(KernelBox::new(RandomGamma { stream: SharedPhilox::from_attrs(init)? })));
    c.op("StatelessRandomGammaV2")
        .work(work::any)
        .doc("Values of gamma distributions, from a seed.")
        .input("shape: T")
        .input("seed: Tseed")
        .input("alpha: dtype")
        .output("output: dtype")
        .attr("dtype: {half, float, double}")
        .attr("T: {int32, int64}")
        .attr("Tseed: {int32, int64} = DT_INT64")
        .expensive()
        .shape(shape::from_input_0)
        .cpu_fn(|ctx| stateless(ctx, stream_of_seed(ctx.input(1)?)?, 2));
    c.op("StatelessRandomGammaV3")
        .work(work::any)
        .doc("Values of gamma distributions, from a key and counter.")
        .input("shape: shape_dtype")
        .input("key: uint64")
        .input("counter: uint64")
        .input("alg: int32")
        .input("alpha: dtype")
        .output("output: dtype")
        .attr("dtype: {half, float, double}")
        .attr("shape_dtype: {int32, int64} = DT_INT32")
        .expensive()
        .shape(shape::from_input_0)
        .cpu_fn(|ctx| stateless(ctx, stream_of_key(ctx, 1)?, 4));
    c.gradient("RandomGamma", |g, dy| {
        let extra = g.input(0).size();
        Ok(g.at(1, alpha_gradient(g, dy[0], g.input(1), extra)))
    });
    for (op, at) in [("StatelessRandomGammaV2", 2), ("StatelessRandomGammaV3", 4)] {
        c.gradient(op, move |g, dy| {
            let alpha = g.input(at);
            let extra = g.input(0).size() - alpha.rank_term();
            Ok(g.at(at, alpha_gradient(g, dy[0], alpha, extra)))
        });
    }
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::testing::check;

    #[test]
    fn seeds_give_the_values_of_tensorflow() {
        let want = [0.3007053f32, 6.1291842, 2.5006864, 0.068805054, 0.34643304, 2.5089085];
        check("RandomGamma")
            .attr("seed", 5i64)
            .attr("seed2", 6i64)
            .input(Tensor::vector(&[2i32]))
            .input(Tensor::vector(&[0.5f32, 1.0, 3.0]))
            .gives(Tensor::from_slice([2, 3], &want).unwrap());
    }

    #[test]
    fn the_shape_ends_with_that_of_alpha() {
        check("StatelessRandomGammaV2")
            .input(Tensor::vector(&[2i32]))
            .input(Tensor::vector(&[2i32, 3]))
            .input(Tensor::vector(&[0.5f32, 1.0, 3.0]))
            .fails(Code::InvalidArgument, "Shape passed in must end with broadcasted shape.");
    }
}
