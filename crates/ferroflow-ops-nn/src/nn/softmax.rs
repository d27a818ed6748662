//! Softmax, LogSoftmax.

pub(super) mod device;

use crate::prelude::*;
use ferroflow_op_kit::gpu;
use ferroflow_op_kit::multiversion;
use ferroflow_op_kit::parallel::for_rows;
use ferroflow_ops_math::math::fast::Fast;

/// The arithmetic that softmax is made in: `f32` and `f64`.
pub(crate) trait Exp: Float<Wide = Self> + Fast {}
impl Exp for f32 {}
impl Exp for f64 {}

/// Independent accumulators in a loop over a row.
const LANES: usize = 32;
/// Elements whose exponentials are computed before they are summed.
const BLOCK: usize = 256;

multiversion! {
    /// The largest element of `x`; NaN if any is.
    fn largest[T: Float<Wide = W>, W: Exp]<T, W>(x: &[T], top: &mut W) {
        let mut lanes = [W::from_f64(f64::NEG_INFINITY); LANES];
        let mut chunks = x.chunks_exact(LANES);
        for chunk in &mut chunks {
            for (lane, &x) in lanes.iter_mut().zip(chunk) {
                *lane = Real::max(*lane, x.wide());
            }
        }
        let rest = chunks.remainder().iter().map(|x| x.wide());
        *top = lanes.into_iter().chain(rest).fold(W::from_f64(f64::NEG_INFINITY), Real::max);
    }
}

multiversion! {
    /// `exp(x - top)` of every element, and their sum.
    wide(size_of::<W>() <= 4)
    fn exps_and_sum[T: Float<Wide = W>, W: Exp]<T, W>(
        x: &[T], top: W, exps: &mut [W], total: &mut W
    ) {
        let mut lanes = [<W as Num>::ZERO; LANES];
        for (x, exps) in x.chunks(BLOCK).zip(exps.chunks_mut(BLOCK)) {
            for (x, e) in x.iter().zip(&mut *exps) {
                *e = x.wide().sub(top).fast_exp();
            }
            add_to_lanes(exps, &mut lanes);
        }
        *total = sum_of_lanes(lanes);
    }
}

multiversion! {
    /// The sum of `exp(x - top)`.
    wide(size_of::<W>() <= 4)
    fn sum_of_exps[T: Float<Wide = W>, W: Exp]<T, W>(x: &[T], top: W, total: &mut W) {
        let mut lanes = [<W as Num>::ZERO; LANES];
        let mut exps = [<W as Num>::ZERO; BLOCK];
        for x in x.chunks(BLOCK) {
            for (x, e) in x.iter().zip(&mut exps) {
                *e = x.wide().sub(top).fast_exp();
            }
            add_to_lanes(&exps[..x.len()], &mut lanes);
        }
        *total = sum_of_lanes(lanes);
    }
}

multiversion! {
    /// `out = x * scale`.
    pub(super) fn scaled[T: Float<Wide = W>, W: Exp]<T, W>(x: &[W], scale: W, out: &mut [T]) {
        for (out, &x) in out.iter_mut().zip(x) {
            *out = T::narrow(x.mul(scale));
        }
    }
}

#[inline(always)]
fn add_to_lanes<T: Exp>(x: &[T], lanes: &mut [T; LANES]) {
    let (chunks, rest) = x.as_chunks::<LANES>();
    let mut sums = *lanes;
    for chunk in chunks {
        for i in 0..LANES {
            sums[i] = sums[i].add(chunk[i]);
        }
    }
    *lanes = sums;
    for (lane, x) in lanes.iter_mut().zip(rest) {
        *lane = lane.add(*x);
    }
}

#[inline(always)]
fn sum_of_lanes<T: Exp>(lanes: [T; LANES]) -> T {
    let mut lanes = lanes;
    let mut width = LANES / 2;
    while width > 0 {
        for i in 0..width {
            lanes[i] = lanes[i].add(lanes[i + width]);
        }
        width /= 2;
    }
    lanes[0]
}

/// The largest element of a row, the exponentials of the differences from it, and their sum.
pub(crate) fn exponentials<T: Float<Wide = W>, W: Exp>(x: &[T], exps: &mut [W]) -> (W, W) {
    let (mut top, mut total) = (<W as Num>::ZERO, <W as Num>::ZERO);
    largest::<T, W>(x, &mut top);
    exps_and_sum::<T, W>(x, top, exps, &mut total);
    (top, total)
}

/// Narrower rows are processed together, to fill the vectors.
pub(crate) const NARROW: usize = 64;

/// For whole rows of `width`: each row's largest, and the exponentials of its elements less that.
pub(crate) fn narrow_exponentials<T: Float<Wide = W>, W: Exp>(
    x: &[T],
    width: usize,
    tops: &mut [W],
    exps: &mut [W],
) {
    for ((x, top), e) in x.chunks(width).zip(tops).zip(exps.chunks_mut(width)) {
        *top = x.iter().fold(W::from_f64(f64::NEG_INFINITY), |top, x| Real::max(top, x.wide()));
        for (e, x) in e.iter_mut().zip(x) {
            *e = x.wide().sub(*top);
        }
    }
    exps_in_place::<W>(exps);
}

multiversion! {
    /// The exponentials of all elements, through copies as in `map_in_place`.
    wide(size_of::<W>() <= 4)
    fn exps_in_place[W: Exp]<W>(x: &mut [W]) {
        for x in x.chunks_mut(BLOCK) {
            let mut old = [<W as Num>::ZERO; BLOCK];
            old[..x.len()].copy_from_slice(x);
            for (x, old) in x.iter_mut().zip(&old) {
                *x = old.fast_exp();
            }
        }
    }
}

/// Writes the softmax of `x` to `out`; `exps` has room for as many.
pub(crate) fn softmax_row<T: Float<Wide = W>, W: Exp>(x: &[T], exps: &mut [W], out: &mut [T]) {
    let (_, total) = exponentials(x, exps);
    scaled::<T, W>(exps, <W as Num>::ONE.div(total), out);
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

/// Writes the logarithm of the softmax of `x` to `out`.
fn log_softmax_row<T: Float<Wide = W>, W: Exp>(x: &[T], _: &mut [W], out: &mut [T]) {
    let (mut top, mut total) = (<W as Num>::ZERO, <W as Num>::ZERO);
    largest::<T, W>(x, &mut top);
    sum_of_exps::<T, W>(x, top, &mut total);
    let log = total.fast_ln();
    for (out, x) in out.iter_mut().zip(x) {
        *out = T::narrow(x.wide().sub(top).sub(log));
    }
}

/// Calls a function with every row of the last dimension: input, scratch and output.
fn by_row<T: Float>(row: fn(&[T], &mut [T::Wide], &mut [T])) -> impl Kernel {
    move |ctx: &mut Ctx<'_>| {
        let x = ctx.input(0)?;
        let shape = x.shape().clone();
        ensure!(shape.rank() >= 1, InvalidArgument, "logits must have >= 1 dimension, got {shape}");
        let width = shape[shape.rank() - 1];
        let mut y = ctx.alloc(T::DTYPE, shape)?;
        let x = x.as_slice::<T>()?;
        for_rows(y.as_mut_slice::<T>()?, width, width * 2, |rows, y| {
            let mut exps = vec![<T::Wide as Num>::ZERO; width];
            for (i, y) in rows.zip(y.chunks_exact_mut(width)) {
                row(&x[i * width..(i + 1) * width], &mut exps, y);
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
        .gpu(gpu::FLOAT, |init| device::by_row(init, "softmax"))
        .gpu_rows(GpuRows::Steps(device::softmax_steps))
        .cpu(per_dtype!(FLOAT, T => by_row::<T>(softmax_row::<T, <T as Float>::Wide>)));
    c.op("LogSoftmax")
        .doc("Logarithm of the softmax along the last dimension.")
        .input("logits: T")
        .output("logsoftmax: T")
        .attr("T: {half, bfloat16, float, double}")
        .shape(shape::same_as_input)
        .gpu(gpu::FLOAT, |init| device::by_row(init, "log_softmax"))
        .gpu_rows(GpuRows::Steps(device::log_softmax_steps))
        .cpu(per_dtype!(FLOAT, T => by_row::<T>(log_softmax_row::<T, <T as Float>::Wide>)));
    unary_gradients! { c;
        "Softmax": |g, dy, _, y| (dy - (dy * y).sum(g.ints(&[-1]), true)) * y;
        "LogSoftmax": |g, dy, _, y| dy - dy.sum(g.ints(&[-1]), true) * y.exp();
    }
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::testing::check;

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

    #[test]
    fn gradients_are_slopes() {
        let x = Tensor::from_slice([2, 3], &[0.5f64, -1.5, 2.0, 1.0, 0.25, -0.75]).unwrap();
        check("Softmax").input(x.clone()).gradient();
        check("LogSoftmax").input(x).gradient();
    }
}
