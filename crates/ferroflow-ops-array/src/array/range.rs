//! Range and LinSpace.

use super::args::require_rank;
use crate::prelude::*;
use ferroflow_op_kit::gpu;

/// Number types for ranges.
trait Step: Real + std::fmt::Display {
    /// The number of steps of `delta` from `start` to before `limit`. `delta` is not zero and has
    /// the right sign.
    fn steps(start: Self, limit: Self, delta: Self) -> Option<i64>;
    fn at(start: Self, delta: Self, i: i64) -> Self;
}

macro_rules! integer_steps {
    ($($t:ty),*) => {$(
        impl Step for $t {
            fn steps(start: Self, limit: Self, delta: Self) -> Option<i64> {
                let way = (limit as i128 - start as i128).abs();
                let step = (delta as i128).abs();
                i64::try_from((way + step - 1) / step).ok()
            }
            fn at(start: Self, delta: Self, i: i64) -> Self {
                start.wrapping_add((i as $t).wrapping_mul(delta))
            }
        }
    )*};
}
integer_steps!(i32, i64);

macro_rules! float_steps {
    ($($t:ty),*) => {$(
        impl Step for $t {
            fn steps(start: Self, limit: Self, delta: Self) -> Option<i64> {
                let n = ((limit - start) / delta).abs().ceil();
                (n < i64::MAX as $t).then_some(n as i64)
            }
            fn at(start: Self, delta: Self, i: i64) -> Self {
                start + i as $t * delta
            }
        }
    )*};
}
float_steps!(f32, f64);

fn len<T: Step>(start: T, limit: T, delta: T) -> Result<i64> {
    let zero = <T as Num>::ZERO;
    ensure!(delta != zero, InvalidArgument, "Requires delta != 0: {delta}");
    if delta > zero {
        ensure!(
            start <= limit,
            InvalidArgument,
            "Requires start <= limit when delta > 0: {start}/{limit}"
        );
    } else {
        ensure!(
            start >= limit,
            InvalidArgument,
            "Requires start >= limit when delta < 0: {start}/{limit}"
        );
    }
    T::steps(start, limit, delta)
        .ok_or_else(|| err!(InvalidArgument, "Requires ((limit - start) / delta) <= {}", i64::MAX))
}

fn range<T: Step>(ctx: &mut Ctx<'_>) -> Result<()> {
    let mut args = [<T as Num>::ZERO; 3];
    for (i, name) in ["start", "limit", "delta"].into_iter().enumerate() {
        let t = ctx.input(i)?;
        ensure!(
            t.elements() == 1,
            InvalidArgument,
            "{name} must be a scalar, not shape {}",
            t.shape()
        );
        args[i] = t.scalar_value::<T>()?;
    }
    let [start, limit, delta] = args;
    let n = len(start, limit, delta)?;
    let mut out = ctx.alloc(T::DTYPE, Shape::from_dims(&[n])?)?;
    for (i, v) in out.as_mut_slice::<T>()?.iter_mut().enumerate() {
        *v = T::at(start, delta, i as i64);
    }
    ctx.set(0, out)
}

fn range_shape(c: &ShapeCtx<'_>) -> Result<Vec<PartialShape>> {
    fn of<T: Step>(c: &ShapeCtx<'_>) -> Result<Option<usize>> {
        let arg = |i| c.constant(i).and_then(|t| t.scalar_value::<T>().ok());
        let (Some(start), Some(limit), Some(delta)) = (arg(0), arg(1), arg(2)) else {
            return Ok(None);
        };
        Ok(usize::try_from(len(start, limit, delta)?).ok())
    }
    for i in 0..3 {
        require_rank(&c.input(i), 0)?;
    }
    let n = match c.attrs.dtype("Tidx")? {
        DType::Int32 => of::<i32>(c)?,
        DType::Int64 => of::<i64>(c)?,
        DType::Float => of::<f32>(c)?,
        DType::Double => of::<f64>(c)?,
        _ => None,
    };
    Ok(vec![PartialShape::new([n])])
}

fn lin_space<T: Float>(ctx: &mut Ctx<'_>) -> Result<()> {
    for (i, name) in ["start", "stop", "num"].into_iter().enumerate() {
        let t = ctx.input(i)?;
        ensure!(t.rank() == 0, InvalidArgument, "{name} must be a scalar, not shape {}", t.shape());
    }
    let (start, stop) = (ctx.input(0)?.scalar_value::<T>()?, ctx.input(1)?.scalar_value::<T>()?);
    let num = ctx.input(2)?.scalar_index()?;
    ensure!(num > 0, InvalidArgument, "Requires num > 0: {num}");
    let mut out = ctx.alloc(T::DTYPE, Shape::from_dims(&[num])?)?;
    let values = out.as_mut_slice::<T>()?;
    values[0] = start;
    if num > 1 {
        let step = stop.sub(start).div(T::from_i64(num - 1));
        for (i, v) in values.iter_mut().enumerate().skip(1) {
            *v = start.add(step.mul(T::from_i64(i as i64)));
        }
        values[num as usize - 1] = stop;
    }
    ctx.set(0, out)
}

pub(crate) fn register(c: &mut Catalog) {
    c.op("Range").work(work::any)
        .doc("The numbers from `start` to before `limit`, `delta` apart.")
        .input("start: Tidx")
        .input("limit: Tidx")
        .input("delta: Tidx")
        .output("output: Tidx")
        .attr("Tidx: {bfloat16, half, float, double, int8, int16, int32, int64, uint16, uint32} = DT_INT32")
        .shape(range_shape)
        // Its inputs and its output are in host memory on GPUs too, as in TensorFlow.
        .gpu(
            &[("Tidx", &[DType::Float, DType::Double, DType::Int32, DType::Int64])],
            per_dtype!([Float f32, Double f64, Int32 i32, Int64 i64], "Tidx", T => range::<T>),
        )
        .host_inputs(&["start", "limit", "delta"])
        .host_outputs(&["output"])
        .cpu(per_dtype!([Float f32, Double f64, Int32 i32, Int64 i64], "Tidx", T => range::<T>));
    c.op("LinSpace")
        .work(work::any)
        .doc("`num` numbers at equal distances from `start` to `stop`, both included.")
        .input("start: T")
        .input("stop: T")
        .input("num: Tidx")
        .output("output: T")
        .attr("T: {bfloat16, half, float, double}")
        .attr("Tidx: {int32, int64} = DT_INT32")
        .shape(|c| {
            let num = c.constant_ints(2).and_then(|n| n.first().copied());
            Ok(vec![PartialShape::new([num.and_then(|n| usize::try_from(n).ok())])])
        })
        .gpu(gpu::FLOAT, per_dtype!(FLOAT, T => lin_space::<T>))
        .host_inputs(&["start", "stop", "num"])
        .host_outputs(&["output"])
        .cpu(per_dtype!(FLOAT, T => lin_space::<T>));
    c.no_gradient(&["Range", "LinSpace"]);
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::testing::{Check, check};

    fn range<T: Element>(start: T, limit: T, delta: T) -> Check<'static> {
        let t = Tensor::scalar::<T>;
        check("Range").input(t(start)).input(t(limit)).input(t(delta))
    }

    #[test]
    fn numbers_are_delta_apart() {
        range(0i32, 10, 3).gives(Tensor::vector(&[0i32, 3, 6, 9]));
        range(10i64, 0, -3).gives(Tensor::vector(&[10i64, 7, 4, 1]));
        range(5i32, 5, 1).gives(Tensor::vector::<i32>(&[]));
        range(0.0f32, 1.0, 0.25).gives(Tensor::vector(&[0.0f32, 0.25, 0.5, 0.75]));
        range(1.0f64, 0.0, -0.3).gives(Tensor::vector(&[1.0, 0.7, 0.4, 0.1]));
        range(i32::MIN, i32::MAX, 1 << 30).gives(Tensor::vector(&[
            i32::MIN,
            -(1 << 30),
            0,
            1 << 30,
        ]));
    }

    #[test]
    fn ranges_without_end_are_refused() {
        let invalid = Code::InvalidArgument;
        range(0i32, 5, 0).fails(invalid, "Requires delta != 0: 0");
        range(5i32, 0, 1).fails(invalid, "Requires start <= limit when delta > 0: 5/0");
        range(0i32, 5, -1).fails(invalid, "Requires start >= limit when delta < 0: 0/5");
        range(0.0f32, f32::INFINITY, 0.1).fails(invalid, "Requires ((limit - start) / delta) <=");
        range(0.0f32, f32::NAN, 0.1).fails(invalid, "Requires start <= limit");
        range(i64::MIN, i64::MAX, 1).fails(invalid, "Requires ((limit - start) / delta) <=");
        range(0, i64::MAX, 1).fails(Code::ResourceExhausted, "OOM");
    }

    #[test]
    fn a_line_has_both_ends() {
        let line = |num: i32| {
            check("LinSpace")
                .input(Tensor::scalar(1.0f32))
                .input(Tensor::scalar(2.0f32))
                .input(Tensor::scalar(num))
        };
        line(4).gives(Tensor::vector(&[1.0f32, 4.0 / 3.0, 5.0 / 3.0, 2.0]));
        line(1).gives(Tensor::vector(&[1.0f32]));
        line(0).fails(Code::InvalidArgument, "Requires num > 0: 0");
    }
}
