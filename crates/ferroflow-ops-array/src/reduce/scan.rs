//! Cumsum, Cumprod, CumulativeLogsumexp.

use super::axes::around;
use crate::prelude::*;
use ferroflow_op_kit::gpu::{self, GpuKernel, GpuTypes, address, c_type, length};
use ferroflow_op_kit::parallel::for_rows;

/// A running total along one dimension.
struct Scan<T, J> {
    exclusive: bool,
    reverse: bool,
    start: T,
    join: J,
}

impl<T: Element, J: Fn(T, T) -> T> Scan<T, J> {
    fn new(init: &KernelInit<'_>, start: T, join: J) -> Result<Self> {
        let (exclusive, reverse) = (init.bool("exclusive")?, init.bool("reverse")?);
        Ok(Scan { exclusive, reverse, start, join })
    }

    /// Replaces rows of width `inner` with their running totals.
    fn run(&self, x: &mut [T], inner: usize) {
        let rows = x.len() / inner;
        let mut total = vec![self.start; inner];
        for i in 0..rows {
            let i = if self.reverse { rows - 1 - i } else { i };
            for (x, total) in x[i * inner..(i + 1) * inner].iter_mut().zip(&mut total) {
                let next = (self.join)(*total, *x);
                *x = if self.exclusive { *total } else { next };
                *total = next;
            }
        }
    }
}

impl<T: Element, J: Fn(T, T) -> T + Send + Sync> Kernel for Scan<T, J> {
    fn compute(&self, ctx: &mut Ctx<'_>) -> Result<()> {
        let axis = checked_axis(ctx)?;
        let mut y = ctx.take_or_copy(0)?;
        let (_, r, inner) = around(&y.shape().clone(), axis);
        if y.elements() > 0 {
            for_rows(y.as_mut_slice()?, r * inner, r * inner * 2, |_, part| {
                part.chunks_exact_mut(r * inner).for_each(|x| self.run(x, inner));
            });
        }
        ctx.set(0, y)
    }
}

/// The dimension that input 1 names.
fn checked_axis(ctx: &Ctx<'_>) -> Result<usize> {
    let axis = ctx.input(1)?;
    ensure!(
        axis.rank() == 0,
        InvalidArgument,
        "ScanOp: axis must be a scalar, not {}",
        axis.shape()
    );
    let (axis, rank) = (axis.scalar_index()?, ctx.input(0)?.rank() as i64);
    ensure!(
        -rank <= axis && axis < rank,
        InvalidArgument,
        "ScanOp: Expected scan axis in the range [{}, {rank}), but got {axis}",
        -rank
    );
    Ok(if axis < 0 { axis + rank } else { axis } as usize)
}

/// One thread for each running total. Steps are rounded to the type, as on the CPU.
const TEXT: &str = r#"
typedef WideOf<T>::type W;
__device__ inline f64 log_add_exp(f64 a, f64 b) {
    f64 high = a > b || a != a ? a : b, low = a > b || a != a ? b : a;
    f64 infinity = (f64)from_bits(0x7f800000u);
    if (high == -infinity || (high == infinity && low == low)) return high;
    return high + log1p(exp(low - high));
}
extern "C" __global__ void scan(i64 n, i64 rows, i64 inner, const T *x, T *out) {
    for (i64 i = thread_number(); i < n; i += thread_count()) {
        i64 from = i / inner * rows * inner + i % inner;
        W total = START;
        for (i64 j = 0; j < rows; j++) {
            i64 at = from + (REVERSE ? rows - 1 - j : j) * inner;
            W x_ = wide(x[at]), next = wide(Narrow<T>::from(JOIN));
            out[at] = Narrow<T>::from(EXCLUSIVE ? total : next);
            total = next;
        }
    }
}
"#;

/// [`Scan`] on a GPU, by a formula of `total` and `x_`.
fn on_device(init: &KernelInit<'_>, start: &str, join: &str) -> Result<KernelBox> {
    let (exclusive, reverse) = (init.bool("exclusive")?, init.bool("reverse")?);
    let head = format!(
        "typedef {} T;\n#define START {start}\n#define JOIN {join}\n#define EXCLUSIVE {exclusive}\n\
         #define REVERSE {reverse}\n",
        c_type(init.dtype("T")?)?
    );
    let kernel = GpuKernel::new(format!("{head}{TEXT}"), "scan").prepared(init)?;
    Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
        let axis = checked_axis(ctx)?;
        let x = ctx.input(0)?;
        let (outer, rows, inner) = around(x.shape(), axis);
        let out = ctx.alloc_on_device(x.dtype(), x.shape().clone())?;
        if out.elements() > 0 {
            let n = outer * inner;
            let sizes = [length(n), length(rows), length(inner)];
            let args: Vec<_> = sizes.into_iter().chain([address(x)?, address(&out)?]).collect();
            kernel.over(ctx.gpu()?.as_ref(), n, &args)?;
        }
        ctx.set(0, out)
    }))
}

/// `log(exp(a) + exp(b))` without overflow.
fn log_add_exp<T: Float>(a: T, b: T) -> T
where
    T::Wide: WideFloat,
{
    let (a, b) = (a.wide(), b.wide());
    T::narrow(T::Wide::log_add_exp(a, b))
}

trait WideFloat: Sized {
    fn log_add_exp(a: Self, b: Self) -> Self;
}
macro_rules! wide_floats {
    ($($t:ty)*) => {$(
        impl WideFloat for $t {
            fn log_add_exp(a: $t, b: $t) -> $t {
                let (high, low) = if a > b || a.is_nan() { (a, b) } else { (b, a) };
                if high == <$t>::NEG_INFINITY || high == <$t>::INFINITY && !low.is_nan() {
                    return high;
                }
                high + (low - high).exp().ln_1p()
            }
        }
    )*};
}
wide_floats!(f32 f64);

/// Computes in logarithms, with positive and negative gradients separate.
fn log_sum_gradient<'g>(g: &GradientScope<'g>, dy: &[Term<'g>]) -> Result<Vec<Term<'g>>> {
    let (x, axis, y, dy) = (g.input(0), g.input(1), g.output(0), dy[0]);
    let lowest = match dy.dtype() {
        DType::Double => f64::MIN,
        DType::Half => -65504.0,
        DType::BFloat16 => -3.389_531_4e38,
        _ => f64::from(f32::MIN),
    };
    let part = |test: &str, magnitude: Term<'g>| -> Result<Term<'g>> {
        let is_it = dy.with(test, dy.number(0.0));
        let log = g.select(is_it, magnitude.log(), dy.number(lowest));
        let sums = g.call_with("CumulativeLogsumexp", &[log - y, axis], back(g)?);
        Ok((sums + x).exp())
    };
    Ok(g.only(part("Greater", dy)? - part("Less", -dy)?))
}

/// The attributes of the same scan in the opposite direction.
fn back(g: &GradientScope<'_>) -> Result<Attrs> {
    let (exclusive, reverse) = (g.attrs().bool("exclusive")?, g.attrs().bool("reverse")?);
    Ok(Attrs::new().with("exclusive", exclusive).with("reverse", !reverse))
}

const REAL: GpuTypes = gpu::REAL;

pub(crate) fn register(c: &mut Catalog) {
    macro_rules! scans {
        ($($op:literal, $doc:literal, $types:literal, $set:tt, $start:ident, $join:expr,
            $gpu:expr, $start_text:literal, $join_text:literal;)*) => {$(
            c.op($op)
                .doc($doc)
                .input("x: T")
                .input("axis: Tidx")
                .output("out: T")
                .attr("exclusive: bool = false")
                .attr("reverse: bool = false")
                .attr($types)
                .attr("Tidx: {int32, int64} = DT_INT32")
                .shape(shape::same_as_input)
                .gpu($gpu, |init| on_device(init, $start_text, $join_text))
                .host_inputs(&["axis"])
                .cpu(per_dtype!($set, init, T => Scan::new(init, $start::<T>(), $join)?));
        )*};
    }
    fn zero<T: Num>() -> T {
        T::ZERO
    }
    fn one<T: Num>() -> T {
        T::ONE
    }
    fn minus_infinity<T: Float>() -> T {
        T::from_f64(f64::NEG_INFINITY)
    }
    scans! {
        "Cumsum", "Running sum along a dimension.", "T: numbertype", NUMBER, zero, Num::add,
            REAL, "W(0)", "total + x_";
        "Cumprod", "Running product along a dimension.", "T: numbertype", NUMBER, one, Num::mul,
            REAL, "W(1)", "total * x_";
        "CumulativeLogsumexp", "Logarithm of the running sum of exponentials along a dimension.",
            "T: {bfloat16, half, float, double}", FLOAT, minus_infinity, log_add_exp,
            gpu::FLOAT, "-(W)from_bits(0x7f800000u)", "(W)log_add_exp(total, x_)";
    }
    c.gradient("Cumsum", |g, dy| {
        let attrs = back(g)?;
        Ok(g.only(g.call_with("Cumsum", &[dy[0], g.input(1)], attrs)))
    });
    c.gradient("Cumprod", |g, dy| {
        let weighted = g.output(0) * dy[0];
        let out = g.call_with("Cumsum", &[weighted, g.input(1)], back(g)?);
        Ok(g.only(out.with("DivNoNan", g.input(0))))
    });
    c.gradient("CumulativeLogsumexp", log_sum_gradient);
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::testing::check;

    fn scan(op: &str, x: Tensor, exclusive: bool, reverse: bool) -> crate::testing::Check<'static> {
        let check = check(op).input(x).input(Tensor::scalar(0i32));
        check.attr("exclusive", exclusive).attr("reverse", reverse)
    }

    #[test]
    fn totals_run_either_way() {
        let x = || Tensor::vector(&[1f32, 2.0, 3.0]);
        scan("Cumsum", x(), false, false).gives(Tensor::vector(&[1f32, 3.0, 6.0]));
        scan("Cumsum", x(), false, true).gives(Tensor::vector(&[6f32, 5.0, 3.0]));
        scan("Cumsum", x(), true, false).gives(Tensor::vector(&[0f32, 1.0, 3.0]));
        scan("Cumsum", x(), true, true).gives(Tensor::vector(&[5f32, 3.0, 0.0]));
        scan("Cumprod", x(), true, true).gives(Tensor::vector(&[6f32, 3.0, 1.0]));
        let want = Tensor::vector(&[1f32, 2.3132617, 3.4076061]);
        scan("CumulativeLogsumexp", x(), false, false).gives(want);
        let want = Tensor::vector(&[3.3132617f32, 3.0, f32::NEG_INFINITY]);
        scan("CumulativeLogsumexp", x(), true, true).gives(want);
    }

    #[test]
    fn infinities_do_not_become_nan_in_logsumexp() {
        let (inf, nan) = (f32::INFINITY, f32::NAN);
        let x = Tensor::vector(&[-inf, 1.0, inf, 2.0, nan, 1.0]);
        let want = Tensor::vector(&[-inf, 1.0, inf, inf, nan, nan]);
        scan("CumulativeLogsumexp", x, false, false).gives(want);
    }

    #[test]
    fn inner_dimensions_scan_too() {
        let x = || Tensor::from_slice([2, 3], &[1i32, 2, 3, 4, 5, 6]).unwrap();
        let along = |axis: i64| check("Cumsum").input(x()).input(Tensor::scalar(axis));
        along(-1).gives(Tensor::from_slice([2, 3], &[1i32, 3, 6, 4, 9, 15]).unwrap());
        along(0).gives(Tensor::from_slice([2, 3], &[1i32, 2, 3, 5, 7, 9]).unwrap());
        let text = "ScanOp: Expected scan axis in the range [-2, 2), but got 2";
        along(2).fails(Code::InvalidArgument, text);
        check("Cumsum")
            .input(x())
            .input(Tensor::vector(&[0i32]))
            .fails(Code::InvalidArgument, "ScanOp: axis must be a scalar, not [1]");
    }
}
