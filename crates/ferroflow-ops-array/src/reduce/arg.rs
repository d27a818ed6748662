//! ArgMax and ArgMin.

use super::axes::{around, dimension, without_dimension};
use crate::prelude::*;
use ferroflow_op_kit::gpu::{self, GpuKernel, GpuTypes, address, c_type, length};
use ferroflow_op_kit::parallel::for_rows;

/// Elements that can be compared: numbers and bools.
trait Ordered: Element + PartialOrd {}
impl<T: Element + PartialOrd> Ordered for T {}

/// The shape without dimension `axis`; and the elements before it, in it and behind it.
fn reduced(x: &Tensor, axis: &Tensor) -> Result<(Vec<usize>, [usize; 3])> {
    ensure!(
        axis.rank() == 0,
        InvalidArgument,
        "dim must be a scalar, but received tensor of shape: {}",
        axis.shape()
    );
    let axis = dimension(x.rank(), axis.scalar_index()?)?;
    let (outer, r, inner) = around(x.shape(), axis);
    ensure!(r > 0, InvalidArgument, "Reduction axis {axis} is empty in shape {}", x.shape());
    let mut shape = x.shape().to_vec();
    shape.remove(axis);
    Ok((shape, [outer, r, inner]))
}

/// The positions of the best element along a dimension. Of equal elements the first wins. NaN never
/// wins.
fn arg<T: Ordered>(
    init: &KernelInit<'_>,
    better: impl Fn(T, T) -> bool + Copy + Send + Sync + 'static,
) -> Result<KernelBox> {
    let to = init.dtype("output_type")?;
    Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
        let x = ctx.input(0)?;
        let (shape, [outer, r, inner]) = reduced(x, ctx.input(1)?)?;
        let mut y = ctx.alloc(DType::Int64, shape)?;
        let (x, out) = (x.as_slice::<T>()?, y.as_mut_slice::<i64>()?);
        if outer * inner > 0 {
            for_rows(out, inner, r * inner, |range, out| {
                for (i, out) in range.zip(out.chunks_exact_mut(inner)) {
                    positions(&x[i * r * inner..(i + 1) * r * inner], out, better);
                }
            });
        }
        ctx.set(0, narrowed(y, to)?)
    }))
}

/// The best element of each column of `x`. Rows of `x` are as wide as `out`.
fn positions<T: Ordered>(x: &[T], out: &mut [i64], better: impl Fn(T, T) -> bool) {
    let inner = out.len();
    if inner == 1 {
        let mut best: Option<(usize, T)> = None;
        for (i, &x) in x.iter().enumerate() {
            if best.is_none_or(|(_, b)| better(x, b)) && is_ordered(x) {
                best = Some((i, x));
            }
        }
        out[0] = best.map_or(0, |(i, _)| i as i64);
        return;
    }
    out.fill(0);
    let mut best = x[..inner].to_vec();
    for (i, row) in x.chunks_exact(inner).enumerate().skip(1) {
        for ((out, best), &x) in out.iter_mut().zip(&mut best).zip(row) {
            if better(x, *best) || (!is_ordered(*best) && is_ordered(x)) {
                (*out, *best) = (i as i64, x);
            }
        }
    }
}

/// False for NaN.
#[allow(clippy::eq_op)]
fn is_ordered<T: Ordered>(x: T) -> bool {
    x == x
}

fn narrowed(y: Tensor, to: DType) -> Result<Tensor> {
    fn cast<T: Element>(y: &Tensor, cast: fn(i64) -> T) -> Result<Tensor> {
        let values: Vec<T> = y.as_slice::<i64>()?.iter().map(|&i| cast(i)).collect();
        Tensor::from_slice(y.shape().clone(), &values)
    }
    match to {
        DType::Int32 => cast(&y, |i| i as i32),
        DType::Int16 => cast(&y, |i| i as i16),
        DType::UInt16 => cast(&y, |i| i as u16),
        _ => Ok(y),
    }
}

/// The kernel for a node's dtype, or an error if there is none.
macro_rules! arg_kernel {
    ($better:tt) => {
        |init: &KernelInit<'_>| match init.dtype("T")? {
            DType::Half => arg::<f16>(init, |a, b| a $better b),
            DType::BFloat16 => arg::<bf16>(init, |a, b| a $better b),
            DType::Float => arg::<f32>(init, |a, b| a $better b),
            DType::Double => arg::<f64>(init, |a, b| a $better b),
            DType::Int8 => arg::<i8>(init, |a, b| a $better b),
            DType::Int16 => arg::<i16>(init, |a, b| a $better b),
            DType::Int32 => arg::<i32>(init, |a, b| a $better b),
            DType::Int64 => arg::<i64>(init, |a, b| a $better b),
            DType::UInt8 => arg::<u8>(init, |a, b| a $better b),
            DType::UInt16 => arg::<u16>(init, |a, b| a $better b),
            DType::UInt32 => arg::<u32>(init, |a, b| a $better b),
            DType::UInt64 => arg::<u64>(init, |a, b| a $better b),
            DType::Bool => arg::<bool>(init, |a, b| a $better b),
            other => Err(unsupported(init, "T", other)),
        }
    };
}

const TYPES: &str = "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, \
                     uint32, uint64, qint8, quint8, qint32, qint16, quint16, bool}";

const ON_GPU: GpuTypes = &[("T", gpu::REALS), ("output_type", &[DType::Int32, DType::Int64])];

const TEXT: &str = r#"
extern "C" __global__ void arg(i64 n, i64 r, i64 inner, const T *x, Out *out) {
    for (i64 i = thread_number(); i < n; i += thread_count()) {
        const T *at = x + i / inner * r * inner + i % inner;
        WideOf<T>::type best = wide(at[0]);
        i64 where = 0;
        for (i64 j = 1; j < r; j++) {
            WideOf<T>::type y = wide(at[j * inner]);
            if (y BETTER best || (best != best && y == y)) best = y, where = j;
        }
        out[i] = (Out)where;
    }
}
"#;

/// [`arg`] on a GPU: one thread to an output.
fn arg_on_device(init: &KernelInit<'_>, better: &str) -> Result<KernelBox> {
    let to = init.dtype("output_type")?;
    let types = format!("typedef {} T;\ntypedef {} Out;", c_type(init.dtype("T")?)?, c_type(to)?);
    let text = format!("{types}{}", TEXT.replace("BETTER", better));
    let kernel = GpuKernel::new(text, "arg").prepared(init)?;
    Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
        let x = ctx.input(0)?;
        let (shape, [_, r, inner]) = reduced(x, ctx.input(1)?)?;
        let out = ctx.alloc_on_device(to, shape)?;
        let n = out.elements();
        let args = [length(n), length(r), length(inner), address(x)?, address(&out)?];
        kernel.over(ctx.gpu()?.as_ref(), n, &args)?;
        ctx.set(0, out)
    }))
}

pub(crate) fn register(c: &mut Catalog) {
    c.op("ArgMax")
        .doc("Position of the largest element along a dimension.")
        .input("input: T")
        .input("dimension: Tidx")
        .output("output: output_type")
        .attr(TYPES)
        .attr("Tidx: {int16, int32, int64} = DT_INT32")
        .attr("output_type: {int16, uint16, int32, int64} = DT_INT64")
        .shape(without_dimension)
        .gpu(ON_GPU, |init| arg_on_device(init, ">"))
        .host_inputs(&["dimension"])
        .cpu(arg_kernel!(>));
    c.op("ArgMin")
        .doc("Position of the smallest element along a dimension.")
        .input("input: T")
        .input("dimension: Tidx")
        .output("output: output_type")
        .attr(TYPES)
        .attr("Tidx: {int32, int64} = DT_INT32")
        .attr("output_type: {int32, int64} = DT_INT64")
        .shape(without_dimension)
        .gpu(ON_GPU, |init| arg_on_device(init, "<"))
        .host_inputs(&["dimension"])
        .cpu(arg_kernel!(<));
    c.no_gradient(&["ArgMax", "ArgMin"]);
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::testing::check;

    fn at(op: &str, x: Tensor, axis: i32) -> crate::testing::Check<'static> {
        check(op).input(x).input(Tensor::scalar(axis))
    }

    #[test]
    fn the_first_of_equals_is_found_along_any_dimension() {
        let x = || Tensor::from_slice([2, 3], &[1i32, 5, 5, 7, 0, 5]).unwrap();
        at("ArgMax", x(), 1).gives(Tensor::vector(&[1i64, 0]));
        at("ArgMax", x(), 0).gives(Tensor::vector(&[1i64, 0, 0]));
        at("ArgMin", x(), -2).gives(Tensor::vector(&[0i64, 1, 0]));
        at("ArgMin", x(), -1).attr("output_type", DType::Int32).gives(Tensor::vector(&[0i32, 1]));
        at("ArgMax", x(), 1).attr("output_type", DType::Int16).gives(Tensor::vector(&[1i16, 0]));
        at("ArgMax", Tensor::vector(&[false, true, true]), 0).gives(Tensor::scalar(1i64));
    }

    #[test]
    fn nan_is_passed_over() {
        let nan = f32::NAN;
        at("ArgMax", Tensor::vector(&[nan, 1.0, 2.0, nan]), 0).gives(Tensor::scalar(2i64));
        at("ArgMin", Tensor::vector(&[nan, 1.0, 2.0, nan]), 0).gives(Tensor::scalar(1i64));
        at("ArgMax", Tensor::vector(&[nan, nan]), 0).gives(Tensor::scalar(0i64));
        let columns = Tensor::from_slice([3, 2], &[nan, 3.0, 2.0, nan, 1.0, 4.0]).unwrap();
        at("ArgMax", columns.clone(), 0).gives(Tensor::vector(&[1i64, 2]));
        at("ArgMin", columns, 0).gives(Tensor::vector(&[2i64, 0]));
    }

    #[test]
    fn bad_dimensions_are_refused() {
        let x = || Tensor::vector(&[1f32, 2.0]);
        let text = "Expected dimension in the range [-1, 1), but got 1";
        at("ArgMax", x(), 1).fails(Code::InvalidArgument, text);
        let empty = Tensor::zeros(DType::Float, [0]).unwrap();
        let text = "Reduction axis 0 is empty in shape [0]";
        at("ArgMin", empty, 0).fails(Code::InvalidArgument, text);
        let text = "dim must be a scalar, but received tensor of shape: [1]";
        check("ArgMax")
            .input(x())
            .input(Tensor::vector(&[0i32]))
            .fails(Code::InvalidArgument, text);
        let none = Tensor::zeros(DType::Float, [0, 3]).unwrap();
        at("ArgMax", none, 1).gives(Tensor::zeros(DType::Int64, [0]).unwrap());
    }
}
