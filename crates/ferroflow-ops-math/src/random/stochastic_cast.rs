//! StochasticCastToInt: floats as integers, rounded up or down at random.

use super::stateless::stream_of_key;
use crate::prelude::*;
use ferroflow_op_kit::philox::{Philox, Singles};

/// Integers that floats are rounded to.
trait Rounded: Element {
    const LEAST: f64;
    const MOST: f64;
    fn of(x: f64) -> Self;
}

macro_rules! rounded {
    ($($t:ty),*) => {$(
        impl Rounded for $t {
            const LEAST: f64 = <$t>::MIN as f64;
            const MOST: f64 = <$t>::MAX as f64;
            fn of(x: f64) -> $t {
                x as $t
            }
        }
    )*};
}
rounded!(i8, i16, i32);

/// Rounds up with the probability of the part behind the point. Each number that is not an integer
/// takes the next of the stream.
fn round<I: Rounded>(x: f64, random: &mut Singles) -> I {
    if x >= I::MOST || x <= I::LEAST || x.is_nan() || x.floor() == x {
        return I::of(x);
    }
    let draw = random.next_f64();
    I::of(if x < 0.0 { (x + draw).floor() } else { (x + 1.0 - draw).floor() })
}

fn run<T: Float, I: Rounded>(ctx: &mut Ctx<'_>) -> Result<()> {
    let stream: Philox = stream_of_key(ctx, 1)?;
    let x = ctx.input(0)?;
    let mut random = Singles::new(stream);
    let mut out = ctx.alloc(I::DTYPE, x.shape().clone())?;
    for (to, x) in out.as_mut_slice::<I>()?.iter_mut().zip(x.as_slice::<T>()?) {
        *to = round(x.to_f64(), &mut random);
    }
    ctx.set(0, out)
}

pub(crate) fn register(c: &mut Catalog) {
    c.op("StochasticCastToInt")
        .doc("Floats as integers, rounded up or down at random, so that their mean stays.")
        .input("input: Tin")
        .input("key: uint64")
        .input("counter: uint64")
        .input("alg: int32")
        .output("output: Tout")
        .attr("Tin: {half, bfloat16, float, double}")
        .attr("Tout: {int8, int16, int32}")
        .shape(shape::same_as_input)
        .cpu(|init| match init.dtype("Tout")? {
            DType::Int8 => per_dtype!(FLOAT, "Tin", T => run::<T, i8>)(init),
            DType::Int16 => per_dtype!(FLOAT, "Tin", T => run::<T, i16>)(init),
            DType::Int32 => per_dtype!(FLOAT, "Tin", T => run::<T, i32>)(init),
            other => Err(unsupported(init, "Tout", other)),
        });
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::testing::{Check, check};

    fn cast(x: &[f32], to: DType) -> Check<'static> {
        check("StochasticCastToInt")
            .attr("Tout", to)
            .input(Tensor::vector(x))
            .input(Tensor::vector(&[123u64]))
            .input(Tensor::vector(&[7u64, 9]))
            .input(Tensor::scalar(1i32))
    }

    #[test]
    fn numbers_are_rounded_both_ways_and_keep_their_mean() {
        for (x, near) in [(0.25f32, [0, 1]), (-3.75, [-4, -3])] {
            let got = cast(&vec![x; 10_000], DType::Int32).run().unwrap().remove(0);
            let got = got.as_slice::<i32>().unwrap();
            assert!(got.iter().all(|y| near.contains(y)));
            let mean = got.iter().sum::<i32>() as f32 / 10_000.0;
            assert!((mean - x).abs() < 0.02, "{mean}");
        }
    }

    #[test]
    fn integers_stay_and_others_are_clamped() {
        let x = [3.0f32, -7.0, 1e9, -1e9, f32::NAN];
        cast(&x, DType::Int8).gives(Tensor::vector(&[3i8, -7, 127, -128, 0]));
        cast(&x, DType::Int16).gives(Tensor::vector(&[3i16, -7, 32767, -32768, 0]));
    }
}
