//! Random numbers: the same bits that TensorFlow draws from the same seeds.

mod binomial;
mod candidates;
mod clustering;
mod distribution;
mod gamma;
mod index_shuffle;
mod multinomial;
mod parameterized_normal;
mod per_parameter;
mod poisson;
mod seeded;
mod shuffle;
mod sobol;
mod stateful;
pub mod stateless;
mod stochastic_cast;

use crate::prelude::*;

pub(crate) fn register(c: &mut Catalog) {
    binomial::register(c);
    candidates::register(c);
    clustering::register(c);
    gamma::register(c);
    index_shuffle::register(c);
    multinomial::register(c);
    parameterized_normal::register(c);
    poisson::register(c);
    seeded::register(c);
    shuffle::register(c);
    sobol::register(c);
    stateful::register(c);
    stateless::register(c);
    stochastic_cast::register(c);
}

/// The shape in an integer vector.
fn wanted_shape(t: &Tensor) -> Result<Shape> {
    ensure!(
        t.rank() == 1,
        InvalidArgument,
        "shape must be a vector of {{int32,int64}}, got shape {}",
        t.shape()
    );
    t.to_shape()
}

/// The integer bounds in inputs `low` and `high`, in order.
fn bounds(ctx: &Ctx<'_>, low: usize, high: usize) -> Result<(i64, i64)> {
    let scalar = |i: usize, name: &str| {
        let t = ctx.input(i)?;
        ensure!(t.rank() == 0, InvalidArgument, "{name} must be 0-D, got shape {}", t.shape());
        t.scalar_index()
    };
    let (low, high) = (scalar(low, "minval")?, scalar(high, "maxval")?);
    ensure!(low < high, InvalidArgument, "Need minval < maxval, got {low} >= {high}");
    Ok((low, high))
}
