//! Sum, Mean, Prod, Max, Min, All, Any, EuclideanNorm.

use super::axes::{reduced_dims, reduced_shape, reduction};
use super::fold::{Fold, Reduction};
use crate::prelude::*;
use ferroflow_op_kit::gpu::{self, GpuTypes, reduce::FoldKernels};

struct Sum;
struct Mean;
struct Prod;
struct Max;
struct Min;
struct EuclideanNorm;
struct All;
struct Any;

/// What the folds of a dtype need: an accumulator type and square roots.
pub(super) trait Summed: Num {
    /// The type of sums: wider for half types.
    type Sum: Num;
    /// The type of means: integers use 64 bits.
    type Mean: Num;
    fn to_sum(self) -> Self::Sum;
    fn from_sum(x: Self::Sum) -> Self;
    fn to_mean(self) -> Self::Mean;
    fn from_mean(x: Self::Mean) -> Self;
    /// `|x|²`.
    fn square(self) -> Self::Sum;
    fn root(x: Self::Sum) -> Self;
}

macro_rules! summed {
    ($($t:ty, $sum:ty, $mean:ty, $x:ident, $to_sum:expr, $from_sum:expr, $to_mean:expr,
       $from_mean:expr, $norm:expr, $root:expr;)*) => {$(
        impl Summed for $t {
            type Sum = $sum;
            type Mean = $mean;
            #[inline]
            fn to_sum(self) -> $sum { let $x = self; $to_sum }
            #[inline]
            fn from_sum($x: $sum) -> $t { $from_sum }
            #[inline]
            fn to_mean(self) -> $mean { let $x = self; $to_mean }
            #[inline]
            fn from_mean($x: $mean) -> $t { $from_mean }
            #[inline]
            fn square(self) -> $sum { let $x = self; $norm }
            #[inline]
            fn root($x: $sum) -> $t { $root }
        }
    )*};
}
macro_rules! summed_ints {
    ($($t:ty, $wide:ty;)*) => {
        summed! {$($t, $t, $wide, x, x, x, x as $wide, x as $t, x.wrapping_mul(x),
            (x as f64).sqrt() as $t;)*}
    };
}
summed_ints! {
    i8, i64; i16, i64; i32, i64; i64, i64; u8, u64; u16, u64; u32, u64; u64, u64;
}
summed! {
    f32, f32, f32, x, x, x, x, x, x * x, x.sqrt();
    f64, f64, f64, x, x, x, x, x, x * x, x.sqrt();
    f16, f32, f32, x, x.to_f32(), f16::from_f32(x), x.to_f32(), f16::from_f32(x),
        x.to_f32() * x.to_f32(), f16::from_f32(x.sqrt());
    bf16, f32, f32, x, x.to_f32(), bf16::from_f32(x), x.to_f32(), bf16::from_f32(x),
        x.to_f32() * x.to_f32(), bf16::from_f32(x.sqrt());
    Complex32, Complex32, Complex32, x, x, x, x, x, Complex32::new(x.norm_sqr(), 0.0), x.sqrt();
    Complex64, Complex64, Complex64, x, x, x, x, x, Complex64::new(x.norm_sqr(), 0.0), x.sqrt();
}

impl<T: Summed> Fold<T> for Sum {
    type Acc = T::Sum;
    const START: T::Sum = <T::Sum as Num>::ZERO;
    #[inline]
    fn lift(x: T) -> T::Sum {
        x.to_sum()
    }
    #[inline]
    fn join(a: T::Sum, b: T::Sum) -> T::Sum {
        a.add(b)
    }
    #[inline]
    fn finish(acc: T::Sum, _: usize) -> T {
        T::from_sum(acc)
    }
}

impl<T: Summed> Fold<T> for Mean {
    type Acc = T::Mean;
    const START: T::Mean = <T::Mean as Num>::ZERO;
    #[inline]
    fn lift(x: T) -> T::Mean {
        x.to_mean()
    }
    #[inline]
    fn join(a: T::Mean, b: T::Mean) -> T::Mean {
        a.add(b)
    }
    #[inline]
    fn finish(acc: T::Mean, count: usize) -> T {
        T::from_mean(acc.div(Num::from_i64(count as i64)))
    }
}

impl<T: Summed> Fold<T> for EuclideanNorm {
    type Acc = T::Sum;
    const START: T::Sum = <T::Sum as Num>::ZERO;
    #[inline]
    fn lift(x: T) -> T::Sum {
        x.square()
    }
    #[inline]
    fn join(a: T::Sum, b: T::Sum) -> T::Sum {
        a.add(b)
    }
    #[inline]
    fn finish(acc: T::Sum, _: usize) -> T {
        T::root(acc)
    }
}

impl<T: Num> Fold<T> for Prod {
    type Acc = T;
    const START: T = <T as Num>::ONE;
    #[inline]
    fn lift(x: T) -> T {
        x
    }
    #[inline]
    fn join(a: T, b: T) -> T {
        a.mul(b)
    }
    #[inline]
    fn finish(acc: T, _: usize) -> T {
        acc
    }
}

/// The smallest and largest value of a type.
pub(super) trait Bounds: Real {
    const LOWEST: Self;
    const HIGHEST: Self;
}
macro_rules! bounds {
    ($($t:ty, $low:ident, $high:ident;)*) => {
        $(impl Bounds for $t { const LOWEST: Self = <$t>::$low; const HIGHEST: Self = <$t>::$high; })*
    };
}
bounds! {
    f16, NEG_INFINITY, INFINITY; bf16, NEG_INFINITY, INFINITY; f32, NEG_INFINITY, INFINITY;
    f64, NEG_INFINITY, INFINITY; i8, MIN, MAX; i16, MIN, MAX; i32, MIN, MAX; i64, MIN, MAX;
    u8, MIN, MAX; u16, MIN, MAX; u32, MIN, MAX; u64, MIN, MAX;
}

macro_rules! extremes {
    ($($op:ident, $start:ident, $join:ident;)*) => {$(
        impl<T: Bounds> Fold<T> for $op {
            type Acc = T;
            const START: T = T::$start;
            #[inline]
            fn lift(x: T) -> T { x }
            #[inline]
            fn join(a: T, b: T) -> T { Real::$join(a, b) }
            #[inline]
            fn finish(acc: T, _: usize) -> T { acc }
        }
    )*};
}
extremes! { Max, LOWEST, max; Min, HIGHEST, min; }

macro_rules! of_bools {
    ($($op:ident, $start:literal, $join:tt;)*) => {$(
        impl Fold<bool> for $op {
            type Acc = bool;
            const START: bool = $start;
            #[inline]
            fn lift(x: bool) -> bool { x }
            #[inline]
            fn join(a: bool, b: bool) -> bool { a $join b }
            #[inline]
            fn finish(acc: bool, _: usize) -> bool { acc }
        }
    )*};
}
of_bools! { All, true, &; Any, false, |; }

const ORDERED: &str = "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, \
                       half, uint32, uint64, qint8, quint8, qint32, qint16, quint16}";

/// A reduction on GPUs.
#[derive(Clone, Copy)]
struct DeviceFold {
    types: GpuTypes,
    fold: GpuFold,
    /// Whether the result of one element is that element.
    keeps_one: bool,
}

const SUM: DeviceFold = DeviceFold { types: gpu::REAL, fold: GpuFold::SUM, keeps_one: true };
const MEAN: DeviceFold =
    DeviceFold { fold: GpuFold { finish: "a / (Acc)count", ..GpuFold::SUM }, ..FLOAT_SUM };
const FLOAT_SUM: DeviceFold = DeviceFold { types: gpu::FLOAT, ..SUM };
const NORM: DeviceFold = DeviceFold {
    fold: GpuFold { lift: "x * x", finish: "sqrt(a)", ..GpuFold::SUM },
    keeps_one: false,
    ..FLOAT_SUM
};
const PROD: DeviceFold =
    DeviceFold { fold: GpuFold { start: "Acc(1)", join: "a * b", ..GpuFold::SUM }, ..SUM };
const MAX: DeviceFold = DeviceFold {
    fold: GpuFold { start: "lowest<T>()", join: "larger(a, b)", ..GpuFold::SUM },
    ..SUM
};
const MIN: DeviceFold = DeviceFold {
    fold: GpuFold { start: "highest<T>()", join: "smaller(a, b)", ..GpuFold::SUM },
    ..SUM
};
const ALL: DeviceFold = DeviceFold {
    types: &[],
    fold: GpuFold { acc: "bool", start: "true", join: "a && b", ..GpuFold::SUM },
    keeps_one: true,
};
const ANY: DeviceFold =
    DeviceFold { fold: GpuFold { start: "false", join: "a || b", ..ALL.fold }, ..ALL };

fn on_device(init: &KernelInit<'_>, fold: DeviceFold) -> Result<KernelBox> {
    let (dtype, keep_dims) = (init.output_dtype(0)?, init.bool("keep_dims")?);
    let kernels = FoldKernels::new(init, dtype, dtype, fold.fold)?;
    Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
        let axes = ctx.input(1)?.to_indices()?;
        let x = ctx.input(0)?;
        let reduced = reduced_dims(x.rank(), &axes)?;
        let shape = reduced_shape(x.shape(), &reduced, keep_dims);
        if fold.keeps_one && shape.elements() == x.elements() {
            // Each result is one element.
            let same = ctx.take(0)?.into_shape(shape)?;
            return ctx.set(0, same);
        }
        let out = kernels.run(ctx, x, &reduced, dtype, shape)?;
        ctx.set(0, out)
    }))
}

macro_rules! reductions {
    ($c:ident; $($op:ident, $doc:literal, $types:expr, $set:tt, $gpu:expr;)*) => {$(
        $c.op(stringify!($op))
            .doc($doc)
            .input("input: T")
            .input("reduction_indices: Tidx")
            .output("output: T")
            .attr("keep_dims: bool = false")
            .attr($types)
            .attr("Tidx: {int32, int64} = DT_INT32")
            .expensive()
            .shape(reduction)
            .gpu($gpu.types, |init| on_device(init, $gpu))
            .host_inputs(&["reduction_indices"])
            .gpu_rows(GpuRows::Fold($gpu.fold))
            .cpu(per_dtype!($set, init, T => Reduction::<T, $op>::new(init)?));
    )*};
}

macro_rules! bool_reductions {
    ($c:ident; $($op:ident, $doc:literal, $gpu:expr;)*) => {$(
        $c.op(stringify!($op))
            .doc($doc)
            .input("input: bool")
            .input("reduction_indices: Tidx")
            .output("output: bool")
            .attr("keep_dims: bool = false")
            .attr("Tidx: {int32, int64} = DT_INT32")
            .shape(reduction)
            .gpu($gpu.types, |init| on_device(init, $gpu))
            .host_inputs(&["reduction_indices"])
            .gpu_rows(GpuRows::Fold($gpu.fold))
            .cpu(|init| Ok(KernelBox::new(Reduction::<bool, $op>::new(init)?)));
    )*};
}

/// Reshapes a tensor of the output's shape so that the reduced dimensions have length 1.
fn kept<'g>(g: &GradientScope<'g>, t: Term<'g>) -> Term<'g> {
    if g.attrs().bool("keep_dims").unwrap_or(false) {
        return t;
    }
    let (x, axes) = (g.input(0), g.input(1));
    if let (Some(rank), Some(axes)) = (x.rank(), axes.value().and_then(|v| v.to_indices().ok())) {
        let rank = rank as i64;
        let mut axes: Vec<i64> = axes.iter().map(|&a| if a < 0 { a + rank } else { a }).collect();
        axes.sort_unstable();
        axes.dedup();
        if let Some(known) = x.static_shape().known() {
            let mut dims = known.to_i64s();
            axes.iter().filter(|a| (0..rank).contains(a)).for_each(|&a| dims[a as usize] = 1);
            return t.reshape(g.ints(&dims));
        }
        return axes.iter().fold(t, |t, &a| t.expand_dims(a));
    }
    let rank = x.rank_term();
    let axes = (axes.cast(DType::Int32) + rank).with("FloorMod", rank);
    let shape = g.call("DynamicStitch", &[g.range(rank), axes, x.shape(), axes.ones_like()]);
    t.reshape(shape)
}

/// The gradient of a sum is the same for all summed elements.
fn spread<'g>(g: &GradientScope<'g>, dy: Term<'g>) -> Term<'g> {
    g.call("BroadcastTo", &[kept(g, dy), g.input(0).shape()])
}

/// The product of all other elements, as the product of those before times the product of those
/// after. A division would fail for zeros.
fn prod_gradient<'g>(g: &GradientScope<'g>, dy: &[Term<'g>]) -> Result<Vec<Term<'g>>> {
    let x = g.input(0);
    let dy = g.call("BroadcastTo", &[kept(g, dy[0]), x.shape()]);
    let rank = x.rank_term();
    let axes = g.input(1).cast(DType::Int32).reshape(g.ints(&[-1]));
    let axes = (axes + rank).with("FloorMod", rank);
    let others = g.call("ListDiff", &[g.range(rank), axes]);
    let order = g.concat(&[axes, others], 0);
    let count = |of: Term<'g>| {
        let dims = g.call("GatherV2", &[x.shape(), of, g.int(0)]);
        g.call("Prod", &[dims, g.ints(&[0])]).expand_dims(0)
    };
    let flat_shape = g.concat(&[count(axes), count(others)], 0);
    let moved = g.call("Transpose", &[x, order]);
    let flat = moved.reshape(flat_shape);
    let scan = |reverse: bool| {
        let attrs = Attrs::new().with("exclusive", true).with("reverse", reverse);
        g.call_with("Cumprod", &[flat, g.int(0)], attrs)
    };
    let product = (scan(false).conj() * scan(true).conj()).reshape(moved.shape());
    let back = g.call("InvertPermutation", &[order]);
    let dx = dy * g.call("Transpose", &[product, back]);
    Ok(g.only(dx.reshape(x.shape())))
}

pub(crate) fn register(c: &mut Catalog) {
    reductions! { c;
        Sum, "Sum over the given dimensions.", "T: numbertype", NUMBER, SUM;
        Mean, "Mean over the given dimensions; integers truncate.", "T: numbertype", NUMBER, MEAN;
        Prod, "Product over the given dimensions.", "T: numbertype", NUMBER, PROD;
        EuclideanNorm, "Root of the sum of squares over the given dimensions.", "T: numbertype",
            NUMBER, NORM;
        Max, "Largest element over the given dimensions; NaN if any is.", ORDERED, REAL, MAX;
        Min, "Smallest element over the given dimensions; NaN if any is.", ORDERED, REAL, MIN;
    }
    bool_reductions! { c;
        All, "Whether all elements over the given dimensions are true.", ALL;
        Any, "Whether some element over the given dimensions is true.", ANY;
    }
    c.gradient("Sum", |g, dy| Ok(g.only(spread(g, dy[0]))));
    c.gradient("Mean", |g, dy| {
        let count =
            match (g.input(0).static_shape().elements(), g.output(0).static_shape().elements()) {
                (Some(n), Some(m)) => dy[0].number((n / m.max(1)) as f64),
                _ => {
                    let (n, m) = (g.input(0).size(), g.output(0).size());
                    n.with("FloorDiv", m.with("Maximum", g.int(1))).cast(dy[0].dtype())
                }
            };
        Ok(g.only(spread(g, dy[0]) / count))
    });
    for op in ["Max", "Min"] {
        c.gradient(op, |g, dy| {
            let (x, y, dy) = (g.input(0), kept(g, g.output(0)), kept(g, dy[0]));
            // Equal maxima share the gradient.
            let is_it = y.with("Equal", x).cast(dy.dtype());
            let count = is_it.sum(g.input(1), true);
            Ok(g.only(is_it / count * dy))
        });
    }
    c.gradient("Prod", prod_gradient);
    c.gradient("EuclideanNorm", |g, dy| {
        let (y, dy) = (kept(g, g.output(0)), kept(g, dy[0]));
        Ok(g.only(g.input(0) / (y / dy)))
    });
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::testing::check;

    fn reduced(op: &str, x: Tensor, axes: &[i32]) -> Tensor {
        check(op).input(x).input(Tensor::vector(axes)).run().unwrap().remove(0)
    }

    #[test]
    fn dimensions_are_summed_and_kept() {
        let x = Tensor::from_slice([2, 3], &[1f32, 2.0, 3.0, 4.0, 5.0, 6.0]).unwrap();
        let sum = |axes: &[i32], keep: bool| {
            check("Sum").input(x.clone()).input(Tensor::vector(axes)).attr("keep_dims", keep)
        };
        sum(&[0], false).gives(Tensor::vector(&[5f32, 7.0, 9.0]));
        sum(&[-1], false).gives(Tensor::vector(&[6f32, 15.0]));
        sum(&[1, 0], false).gives(Tensor::scalar(21f32));
        sum(&[], false).gives(x.clone());
        sum(&[0, 1], true).gives(Tensor::from_slice([1, 1], &[21f32]).unwrap());
        check("Sum")
            .input(x.clone())
            .input(Tensor::scalar(1i64))
            .gives(Tensor::vector(&[6f32, 15.0]));
    }

    #[test]
    fn bad_axes_are_refused() {
        let sum = |axes: &[i32]| {
            check("Sum")
                .input(Tensor::from_slice([2, 1], &[1f32, 2.0]).unwrap())
                .input(Tensor::vector(axes))
        };
        let text = "Invalid reduction dimension (2 for input with 2 dimension(s)";
        sum(&[2]).fails(Code::InvalidArgument, text);
        let text = "Invalid reduction arguments: Axes contains duplicate dimension: 0";
        sum(&[0, -2]).fails(Code::InvalidArgument, text);
    }

    #[test]
    fn nothing_reduces_to_the_neutral_element() {
        let empty = || Tensor::zeros(DType::Float, [0, 2]).unwrap();
        let two = |x: f32| Tensor::vector(&[x, x]);
        assert_eq!(reduced("Sum", empty(), &[0]), two(0.0));
        assert_eq!(reduced("Prod", empty(), &[0]), two(1.0));
        assert_eq!(reduced("Max", empty(), &[0]), two(f32::NEG_INFINITY));
        assert_eq!(reduced("Min", empty(), &[0]), two(f32::INFINITY));
        assert_eq!(reduced("EuclideanNorm", empty(), &[0]), two(0.0));
        assert!(reduced("Mean", empty(), &[0]).as_slice::<f32>().unwrap()[0].is_nan());
        assert_eq!(reduced("Sum", empty(), &[1]).elements(), 0);
        let ints = Tensor::zeros(DType::Int32, [0]).unwrap();
        assert_eq!(reduced("Max", ints.clone(), &[0]), Tensor::scalar(i32::MIN));
        assert_eq!(reduced("Mean", ints, &[0]), Tensor::scalar(0i32));
        let bools = || Tensor::zeros(DType::Bool, [0, 1]).unwrap();
        assert_eq!(reduced("All", bools(), &[0]), Tensor::vector(&[true]));
        assert_eq!(reduced("Any", bools(), &[0]), Tensor::vector(&[false]));
    }

    #[test]
    fn nan_spreads_to_extremes() {
        for n in [3, 100] {
            for at in [0, 1, n - 1] {
                let mut x = vec![1f32; n];
                x[at] = f32::NAN;
                for op in ["Max", "Min"] {
                    let y = reduced(op, Tensor::vector(&x), &[0]);
                    assert!(y.scalar_value::<f32>().unwrap().is_nan(), "{op} {at}");
                }
            }
        }
    }

    #[test]
    fn means_of_integers_do_not_overflow_on_the_way() {
        let x = Tensor::vector(&[i32::MAX, i32::MAX, 3]);
        assert_eq!(reduced("Mean", x, &[0]), Tensor::scalar(1431655765i32));
        let x = Tensor::vector(&[-3i32, -4]);
        assert_eq!(reduced("Mean", x, &[0]), Tensor::scalar(-3i32));
        let x = Tensor::vector(&[200u8, 100]);
        assert_eq!(reduced("Sum", x, &[0]), Tensor::scalar(44u8));
    }

    #[test]
    fn halves_are_summed_in_single_precision() {
        let x = Tensor::vector(&vec![f16::ONE; 5000]);
        assert_eq!(reduced("Sum", x, &[0]), Tensor::scalar(f16::from_f32(5000.0)));
        let x = Tensor::vector(&[300.0, 300.0, 0.001].map(f16::from_f32));
        assert_eq!(reduced("Prod", x, &[0]), Tensor::scalar(f16::INFINITY));
    }

    #[test]
    fn norms_of_every_kind() {
        let x = Tensor::from_slice([2, 2], &[3f32, -4.0, 1.0, 2.0]).unwrap();
        assert_eq!(reduced("EuclideanNorm", x, &[1]), Tensor::vector(&[5f32, 5f32.sqrt()]));
        let x = Tensor::from_slice([2, 2], &[3i32, 4, 1, 2]).unwrap();
        assert_eq!(reduced("EuclideanNorm", x, &[1]), Tensor::vector(&[5i32, 2]));
        let x = Tensor::vector(&[Complex32::new(3.0, 4.0)]);
        assert_eq!(reduced("EuclideanNorm", x, &[0]), Tensor::scalar(Complex32::new(5.0, 0.0)));
    }

    #[test]
    fn long_sums_are_accurate() {
        let x = Tensor::vector(&vec![0.1f32; 10_000_000]);
        let sum = reduced("Sum", x, &[0]).scalar_value::<f32>().unwrap();
        assert!((sum - 1e6).abs() < 1.0, "{sum}");
    }

    #[test]
    fn bools_are_joined() {
        let x = || Tensor::from_slice([2, 2], &[true, false, true, true]).unwrap();
        assert_eq!(reduced("All", x(), &[1]), Tensor::vector(&[false, true]));
        assert_eq!(reduced("Any", x(), &[0]), Tensor::vector(&[true, true]));
    }

    #[test]
    fn gradients_are_slopes() {
        let x = Tensor::from_slice([2, 3], &[0.5f64, -1.5, 2.0, 1.0, 0.25, -0.75]).unwrap();
        for op in ["Sum", "Mean", "Prod", "Max", "Min", "EuclideanNorm"] {
            for keep in [false, true] {
                let check = check(op).attr("keep_dims", keep).input(x.clone());
                check.input(Tensor::vector(&[-1i32])).gradient();
            }
        }
    }
}
