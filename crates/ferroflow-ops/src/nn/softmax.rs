//! Softmax, LogSoftmax.

use crate::parallel::for_rows;
use crate::prelude::*;

/// The arithmetic that softmax is made in: `f32` and `f64`.
pub(crate) trait Exp: Float<Wide = Self> {
    /// `e^x`, written so that a loop over it runs on vectors.
    fn fast_exp(self) -> Self;
    fn ln(self) -> Self;
}

impl Exp for f32 {
    fn fast_exp(self) -> f32 {
        // e^x = 2^n e^r with |r| <= ln 2 / 2; e^r by its minimax polynomial.
        const ROUND: f32 = 12582912.0; // 1.5 * 2^23: adding it rounds to an integer
        let x = self.clamp(-87.0, 88.0);
        let n = x * std::f32::consts::LOG2_E + ROUND;
        let scale = f32::from_bits((n.to_bits() << 23).wrapping_add(0x3f80_0000));
        let n = n - ROUND;
        let r = x - n * 0.693_359_4 - n * -2.121_944_4e-4;
        let p = 1.987_569_1e-4;
        let p = p * r + 1.398_2e-3;
        let p = p * r + 8.333_452e-3;
        let p = p * r + 4.166_579_6e-2;
        let p = p * r + 0.166_666_65;
        let p = p * r + 0.5;
        let e = (p * r * r + r + 1.0) * scale;
        let e = if self > 88.0 { f32::INFINITY } else { e };
        let e = if self < -87.0 { 0.0 } else { e };
        if self.is_nan() { self } else { e }
    }
    fn ln(self) -> f32 {
        f32::ln(self)
    }
}

impl Exp for f64 {
    fn fast_exp(self) -> f64 {
        self.exp()
    }
    fn ln(self) -> f64 {
        f64::ln(self)
    }
}

/// The largest element; NaN if any is.
pub(crate) fn largest<T: Exp>(x: &[T]) -> T {
    let mut lanes = [T::from_f64(f64::NEG_INFINITY); 8];
    let mut chunks = x.chunks_exact(8);
    for chunk in &mut chunks {
        for (lane, &x) in lanes.iter_mut().zip(chunk) {
            *lane = Real::max(*lane, x);
        }
    }
    let rest = chunks.remainder().iter().copied();
    lanes.into_iter().chain(rest).fold(T::from_f64(f64::NEG_INFINITY), Real::max)
}

/// Sum in eight lanes.
pub(crate) fn sum<T: Exp>(x: &[T]) -> T {
    let mut lanes = [<T as Num>::ZERO; 8];
    let mut chunks = x.chunks_exact(8);
    for chunk in &mut chunks {
        for (lane, &x) in lanes.iter_mut().zip(chunk) {
            *lane = lane.add(x);
        }
    }
    let rest = chunks.remainder().iter().copied();
    lanes.into_iter().chain(rest).fold(<T as Num>::ZERO, Num::add)
}

/// Replaces a row by its softmax.
pub(crate) fn softmax_row<T: Exp>(x: &mut [T]) {
    let top = largest(x);
    x.iter_mut().for_each(|x| *x = x.sub(top).fast_exp());
    let scale = <T as Num>::ONE.div(sum(x));
    x.iter_mut().for_each(|x| *x = x.mul(scale));
}

/// Replaces a row by the logarithm of its softmax.
fn log_softmax_row<T: Exp>(x: &mut [T]) {
    let top = largest(x);
    x.iter_mut().for_each(|x| *x = x.sub(top));
    let mut total = <T as Num>::ZERO;
    for x in x.chunks(64) {
        let mut exps = [<T as Num>::ZERO; 64];
        for (e, x) in exps.iter_mut().zip(x) {
            *e = x.fast_exp();
        }
        total = total.add(sum(&exps[..x.len()]));
    }
    let log = total.ln();
    x.iter_mut().for_each(|x| *x = x.sub(log));
}

/// Runs a function on every row of the last dimension, in its wide type.
fn by_row<T: Float>(row: fn(&mut [T::Wide])) -> impl Kernel {
    move |ctx: &mut Ctx<'_>| {
        let shape = ctx.input(0)?.shape().clone();
        ensure!(shape.rank() >= 1, InvalidArgument, "logits must have >= 1 dimension, got {shape}");
        let width = shape[shape.rank() - 1];
        let mut y = ctx.take_or_copy(0)?;
        for_rows(y.as_mut_slice::<T>()?, width, width * 4, |_, part| {
            let mut wide = vec![<T::Wide as Num>::ZERO; width];
            for part in part.chunks_exact_mut(width) {
                for (wide, x) in wide.iter_mut().zip(&*part) {
                    *wide = x.wide();
                }
                row(&mut wide);
                for (x, wide) in part.iter_mut().zip(&wide) {
                    *x = T::narrow(*wide);
                }
            }
        });
        ctx.set(0, y)
    }
}

pub(crate) fn register(c: &mut Catalog) {
    c.op("Softmax")
        .doc("Exponentials scaled to sum 1 along the last dimension.")
        .input("logits: T")
        .output("softmax: T")
        .attr("T: {half, bfloat16, float, double}")
        .shape(shape::same_as_input)
        .cpu(per_dtype!(FLOAT, T => by_row::<T>(softmax_row)));
    c.op("LogSoftmax")
        .doc("Logarithm of the softmax along the last dimension.")
        .input("logits: T")
        .output("logsoftmax: T")
        .attr("T: {half, bfloat16, float, double}")
        .shape(shape::same_as_input)
        .cpu(per_dtype!(FLOAT, T => by_row::<T>(log_softmax_row)));
    unary_gradients! { c;
        "Softmax": |g, dy, _, y| (dy - (dy * y).sum(g.ints(&[-1]), true)) * y;
        "LogSoftmax": |g, dy, _, y| dy - dy.sum(g.ints(&[-1]), true) * y.exp();
    }
}

#[cfg(test)]
mod tests {
    use super::Exp;
    use crate::prelude::*;
    use crate::testing::check;

    #[test]
    fn the_fast_exponential_is_good_to_a_few_ulps() {
        for i in -8700..8800 {
            let x = i as f32 / 100.0;
            let (got, want) = (x.fast_exp(), (x as f64).exp());
            assert!((got as f64 / want - 1.0).abs() < 3e-7, "{x}: {got} {want}");
        }
        assert_eq!(f32::NEG_INFINITY.fast_exp(), 0.0);
        assert_eq!(f32::INFINITY.fast_exp(), f32::INFINITY);
        assert_eq!(0f32.fast_exp(), 1.0);
        assert!(f32::NAN.fast_exp().is_nan());
    }

    #[test]
    fn rows_sum_to_one() {
        let x = Tensor::from_slice([2, 3], &[1f32, 2.0, 3.0, 1000.0, -1000.0, -1000.0]).unwrap();
        let want = [0.09003057f32, 0.24472847, 0.66524096, 1.0, 0.0, 0.0];
        let want = Tensor::from_slice([2, 3], &want).unwrap();
        check("Softmax").input(x.clone()).gives(want);
        let want = [-2.407606f32, -1.407606, -0.407606, 0.0, -2000.0, -2000.0];
        check("LogSoftmax").input(x).gives(Tensor::from_slice([2, 3], &want).unwrap());
        let h = Tensor::vector(&[1.0, 2.0, 3.0].map(f16::from_f32));
        let want = Tensor::vector(&[0.09003, 0.24473, 0.66524].map(f16::from_f32));
        check("Softmax").input(h).gives(want);
    }

    #[test]
    fn infinities_and_nothing() {
        let (inf, nan) = (f32::INFINITY, f32::NAN);
        let x = Tensor::from_slice([2, 2], &[-inf, 1.0, -inf, -inf]).unwrap();
        let want = Tensor::from_slice([2, 2], &[0.0, 1.0, nan, nan]).unwrap();
        check("Softmax").input(x).gives(want);
        let x = Tensor::vector(&[-inf, 1.0]);
        check("LogSoftmax").input(x).gives(Tensor::vector(&[-inf, 0.0]));
        let empty = Tensor::zeros(DType::Float, [2, 0]).unwrap();
        check("Softmax").input(empty.clone()).gives(empty);
        check("LogSoftmax")
            .input(Tensor::scalar(1f32))
            .fails(Code::InvalidArgument, "logits must have >= 1 dimension, got []");
    }
}
