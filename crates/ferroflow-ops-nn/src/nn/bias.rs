//! BiasAdd and its gradient.

use crate::prelude::*;
use ferroflow_graph::OperandShapes;
use ferroflow_op_kit::gpu::{self, elementwise::Elementwise, reduce::FoldKernels};
use ferroflow_op_kit::parallel::split_mut;
use ferroflow_ops_math::math::{arithmetic::Add, blocks};

/// The number of channels, and of consecutive elements that belong to one channel.
struct Channels {
    count: usize,
    inner: usize,
}

/// The channels are the last dimension, or dimension 1 where `is_nchw`.
fn channels(shape: &Shape, is_nchw: bool) -> Result<Channels> {
    ensure!(shape.rank() >= 2, InvalidArgument, "Input tensor must be at least 2D: {shape}");
    let axis = if is_nchw { 1 } else { shape.rank() - 1 };
    Ok(Channels { count: shape[axis], inner: shape[axis + 1..].iter().product() })
}

/// The channels of input 0; input 1 has one bias for each.
fn biased_channels(ctx: &Ctx<'_>, is_nchw: bool) -> Result<Channels> {
    let (value, bias) = (ctx.input(0)?, ctx.input(1)?);
    let channels = channels(value.shape(), is_nchw)?;
    ensure!(bias.rank() == 1, InvalidArgument, "Biases must be 1D: {}", bias.shape());
    ensure!(
        bias.elements() == channels.count,
        InvalidArgument,
        "Must provide as many biases as the last dimension of the input tensor: {} vs. {}",
        bias.shape(),
        value.shape()
    );
    Ok(channels)
}

fn bias_add<T: Num>(ctx: &mut Ctx<'_>, is_nchw: bool) -> Result<()> {
    let Channels { count, inner } = biased_channels(ctx, is_nchw)?;
    let mut out = ctx.take_or_copy(0)?;
    let bias = ctx.input(1)?.as_slice::<T>()?;
    let unit = count * inner;
    split_mut(out.as_mut_slice::<T>()?, unit, 1, |_, part| {
        if unit == 0 {
            return;
        }
        for row in part.chunks_mut(unit) {
            if inner == 1 {
                for (x, b) in row.iter_mut().zip(bias) {
                    *x = x.add(*b);
                }
            } else {
                for (run, b) in row.chunks_mut(inner).zip(bias) {
                    for x in run {
                        *x = x.add(*b);
                    }
                }
            }
        }
    });
    ctx.set(0, out)
}

/// The type that many elements of a dtype are summed in.
trait Summed: Num {
    type Sum: Num;
    fn widen(self) -> Self::Sum;
    fn narrow(sum: Self::Sum) -> Self;
}
macro_rules! summed {
    ($($t:ty => $sum:ty, $widen:expr, $narrow:expr;)*) => {$(
        impl Summed for $t {
            type Sum = $sum;
            #[inline(always)]
            fn widen(self) -> $sum { ($widen)(self) }
            fn narrow(sum: $sum) -> $t { ($narrow)(sum) }
        }
    )*};
    ($($t:ty),*) => { summed! { $($t => $t, |x| x, |x| x;)* } };
}
summed!(i8, i16, i32, i64, u8, u16, u32, u64, f32, f64, Complex32, Complex64);
summed! {
    f16 => f32, |x: f16| x.to_f32(), f16::from_f32;
    bf16 => f32, |x: bf16| x.to_f32(), bf16::from_f32;
}

/// The sum over everything but the channels. Rows are summed in blocks and then the blocks are
/// summed, which keeps long sums precise and in the same order on every machine.
fn bias_add_grad<T: Summed>(ctx: &mut Ctx<'_>, is_nchw: bool) -> Result<()> {
    let g = ctx.input(0)?;
    let Channels { count, inner } = channels(g.shape(), is_nchw)?;
    let mut out = Tensor::zeros(T::DTYPE, [count])?;
    let unit = count * inner;
    let g = g.as_slice::<T>()?;
    if !g.is_empty() {
        let rows = g.len() / unit;
        let block = rows.div_ceil(64).max(16);
        let blocks = rows.div_ceil(block);
        let mut sums = vec![T::Sum::ZERO; blocks * count];
        split_mut(&mut sums, count, block * inner, |first, part| {
            for (i, sums) in part.chunks_mut(count).enumerate() {
                let from = (first / count + i) * block * unit;
                let to = (from + block * unit).min(g.len());
                for row in g[from..to].chunks(unit) {
                    add_row(row, inner, sums);
                }
            }
        });
        let (total, rest) = sums.split_at_mut(count);
        for part in rest.chunks(count) {
            for (sum, x) in total.iter_mut().zip(part) {
                *sum = sum.add(*x);
            }
        }
        for (to, sum) in out.as_mut_slice::<T>()?.iter_mut().zip(total) {
            *to = T::narrow(*sum);
        }
    }
    ctx.set(0, out)
}

/// Adds each channel's `inner` elements to its sum.
fn add_row<T: Summed>(row: &[T], inner: usize, sums: &mut [T::Sum]) {
    if inner == 1 {
        for (sum, x) in sums.iter_mut().zip(row) {
            *sum = sum.add(x.widen());
        }
        return;
    }
    for (sum, run) in sums.iter_mut().zip(row.chunks(inner)) {
        // Eight independent sums that can be added at once.
        let mut lanes = [T::Sum::ZERO; 8];
        let whole = run.chunks_exact(8);
        let rest = whole.remainder();
        for eight in whole {
            for (lane, x) in lanes.iter_mut().zip(eight) {
                *lane = lane.add(x.widen());
            }
        }
        for (lane, x) in lanes.iter_mut().zip(rest) {
            *lane = lane.add(x.widen());
        }
        *sum = lanes.iter().fold(*sum, |a, b| a.add(*b));
    }
}

/// [`bias_add`] on a GPU.
fn bias_on_device(init: &KernelInit<'_>) -> Result<KernelBox> {
    let is_nchw = init.contains("data_format") && is_nchw(init)?;
    let kernel = Elementwise::new(init, "x + y".to_string())?;
    Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
        let value = ctx.input(0)?;
        let Channels { count, .. } = biased_channels(ctx, is_nchw)?;
        let after = if is_nchw { value.rank() - 2 } else { 0 };
        let shape: Shape = std::iter::once(count).chain(std::iter::repeat_n(1, after)).collect();
        let inputs = vec![ctx.take(0)?, ctx.take(1)?.into_shape(shape)?];
        let out = kernel.run(ctx.gpu()?, inputs)?;
        ctx.set(0, out)
    }))
}

/// Biases of the last dimension broadcast like any vector.
const BIAS: GpuFormula = GpuFormula {
    text: |attrs, given| {
        let is_nchw = attrs.contains("data_format") && is_nchw(attrs).ok()?;
        (!is_nchw).then_some(given)
    },
    given: "x + y",
    operands: OperandShapes::Bias { is_nchw: false },
};

/// [`bias_add_grad`] on a GPU.
fn bias_grad_on_device(init: &KernelInit<'_>) -> Result<KernelBox> {
    let (is_nchw, dtype) = (is_nchw(init)?, init.dtype("T")?);
    let kernels = FoldKernels::new(init, dtype, dtype, GpuFold::SUM)?;
    Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
        let g = ctx.input(0)?;
        let Channels { count, .. } = channels(g.shape(), is_nchw)?;
        let axis = if is_nchw { 1 } else { g.rank() - 1 };
        let reduced: Vec<bool> = (0..g.rank()).map(|d| d != axis).collect();
        let out = kernels.run(ctx, g, &reduced, dtype, [count].into())?;
        ctx.set(0, out)
    }))
}

fn is_nchw(attrs: &Attrs) -> Result<bool> {
    Ok(attrs.string("data_format")? == "NCHW")
}

fn bias_blocks(attrs: &Attrs) -> Option<AnyBlockKernel> {
    let is_nchw = attrs.contains("data_format") && is_nchw(attrs).ok()?;
    blocks::binary_over::<Add>(attrs, OperandShapes::Bias { is_nchw })
}

fn value_shape(c: &ShapeCtx<'_>) -> Result<Vec<PartialShape>> {
    let value = c.input(0);
    let is_nchw = c.attrs.contains("data_format") && c.attrs.string("data_format")? == "NCHW";
    let Some(mut dims) = value.dims().map(|d| d.to_vec()) else { return Ok(vec![value]) };
    ensure!(
        dims.len() >= 2,
        InvalidArgument,
        "Shape must be at least rank 2 but is rank {}",
        dims.len()
    );
    let axis = if is_nchw { 1 } else { dims.len() - 1 };
    let bias = PartialShape::of_rank(1).merge(&c.input(1))?;
    dims[axis] = PartialShape::new([dims[axis]]).merge(&bias)?.dim(0);
    Ok(vec![PartialShape::new(dims)])
}

pub(crate) fn register(c: &mut Catalog) {
    c.op("BiasAdd")
        .doc("Adds a vector along the channels of a value.")
        .input("value: T")
        .input("bias: T")
        .output("output: T")
        .attr("T: numbertype")
        .attr("data_format: {'NHWC', 'NCHW'} = 'NHWC'")
        .shape(value_shape)
        .blocks(bias_blocks)
        .gpu(gpu::REAL, bias_on_device)
        .gpu_formula(BIAS)
        .cpu(per_dtype!(NUMBER, init, T => {
            let is_nchw = is_nchw(init)?;
            move |ctx: &mut Ctx<'_>| bias_add::<T>(ctx, is_nchw)
        }));
    c.op("BiasAddV1")
        .doc("Adds a vector along the last dimension of a value.")
        .input("value: T")
        .input("bias: T")
        .output("output: T")
        .attr("T: numbertype")
        .shape(value_shape)
        .blocks(bias_blocks)
        .gpu(gpu::REAL, bias_on_device)
        .gpu_formula(BIAS)
        .cpu(per_dtype!(NUMBER, T => |ctx: &mut Ctx<'_>| bias_add::<T>(ctx, false)));
    c.op("BiasAddGrad")
        .doc("Gradient of BiasAdd for the bias: the sum over everything but the channels.")
        .input("out_backprop: T")
        .output("output: T")
        .attr("T: numbertype")
        .attr("data_format: {'NHWC', 'NCHW'} = 'NHWC'")
        .shape(|c| {
            let is_nchw = c.attrs.string("data_format")? == "NCHW";
            let g = c.input(0);
            let Some(rank) = g.rank() else { return shape::vector(c) };
            ensure!(rank >= 2, InvalidArgument, "Shape must be at least rank 2 but is rank {rank}");
            Ok(vec![PartialShape::new([g.dim(if is_nchw { 1 } else { rank - 1 })])])
        })
        .gpu(gpu::REAL, bias_grad_on_device)
        .gpu_rows(GpuRows::FoldColumns(GpuFold::SUM, |attrs| is_nchw(attrs).is_ok_and(|is| !is)))
        .cpu(per_dtype!(NUMBER, init, T => {
            let is_nchw = is_nchw(init)?;
            move |ctx: &mut Ctx<'_>| bias_add_grad::<T>(ctx, is_nchw)
        }));
    c.gradient("BiasAdd", |g, dy| Ok(vec![dy[0], g.call_like("BiasAddGrad", &[dy[0]])]));
    c.gradient("BiasAddV1", |g, dy| Ok(vec![dy[0], g.call("BiasAddGrad", &[dy[0]])]));
    c.gradient("BiasAddGrad", |g, dy| {
        let x = g.input(0);
        let bias = if g.attrs().string("data_format")? == "NCHW" {
            // Channels are dimension 1, followed by as many dimensions of length 1 as there are
            // others.
            let ones = g.call("Fill", &[(x.rank_term() - 2.0).expand_dims(0), g.int(1)]);
            dy[0].reshape(g.concat(&[dy[0].shape(), ones], 0))
        } else {
            dy[0]
        };
        Ok(vec![g.call("BroadcastTo", &[bias, x.shape()])])
    });
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::testing::check;

    fn counted(dims: &[usize]) -> Tensor {
        let n = dims.iter().product::<usize>();
        let values: Vec<f32> = (0..n).map(|i| i as f32).collect();
        Tensor::from_slice(dims, &values).unwrap()
    }

    #[test]
    fn a_bias_is_added_to_each_channel() {
        let want = Tensor::from_slice([2, 2], &[10.0f32, 21.0, 12.0, 23.0]).unwrap();
        for op in ["BiasAdd", "BiasAddV1"] {
            check(op)
                .input(counted(&[2, 2]))
                .input(Tensor::vector(&[10.0f32, 20.0]))
                .gives(want.clone());
        }
        let zeros = Tensor::zeros(DType::Int32, [2, 2, 3]).unwrap();
        let want = [1i32, 1, 1, 2, 2, 2, 1, 1, 1, 2, 2, 2];
        check("BiasAdd")
            .attr("data_format", "NCHW")
            .input(zeros)
            .input(Tensor::vector(&[1i32, 2]))
            .gives(Tensor::from_slice([2, 2, 3], &want).unwrap());
        let empty = Tensor::zeros(DType::Float, [0, 3]).unwrap();
        check("BiasAdd").input(empty.clone()).input(Tensor::vector(&[0.0f32; 3])).gives(empty);
        let empty = Tensor::zeros(DType::Float, [3, 0]).unwrap();
        check("BiasAdd").input(empty.clone()).input(Tensor::vector::<f32>(&[])).gives(empty);
    }

    #[test]
    fn shapes_are_checked() {
        let v = |n: usize| Tensor::zeros(DType::Float, [n]).unwrap();
        let m = || Tensor::zeros(DType::Float, [1, 2]).unwrap();
        let on = |value, bias| check("BiasAdd").input(value).input(bias);
        on(v(2), v(2)).fails(Code::InvalidArgument, "Input tensor must be at least 2D: [2]");
        on(m(), m()).fails(Code::InvalidArgument, "Biases must be 1D: [1,2]");
        on(m(), v(3)).fails(
            Code::InvalidArgument,
            "Must provide as many biases as the last dimension of the input tensor: [3] vs. [1,2]",
        );
        check("BiasAddGrad")
            .input(v(2))
            .fails(Code::InvalidArgument, "Input tensor must be at least 2D: [2]");
    }

    #[test]
    fn the_gradient_sums_over_all_but_the_channels() {
        let g = counted(&[2, 2, 3]);
        check("BiasAddGrad").input(g.clone()).gives(Tensor::vector(&[18.0f32, 22.0, 26.0]));
        check("BiasAddGrad")
            .attr("data_format", "NCHW")
            .input(g)
            .gives(Tensor::vector(&[24.0f32, 42.0]));
        let empty = Tensor::zeros(DType::Float, [0, 3]).unwrap();
        check("BiasAddGrad").input(empty).gives(Tensor::vector(&[0.0f32; 3]));
        let many = Tensor::from_slice([100_000, 2], &[0.1f32; 200_000]).unwrap();
        check("BiasAddGrad").input(many).gives(Tensor::vector(&[10_000.0f32; 2]));
        let halves = Tensor::from_slice([3000, 1], &[f16::ONE; 3000]).unwrap();
        check("BiasAddGrad").input(halves).gives(Tensor::vector(&[f16::from_f32(3000.0)]));
        let wide = Tensor::from_slice([1, 2, 21], &[1i64; 42]).unwrap();
        check("BiasAddGrad")
            .attr("data_format", "NCHW")
            .input(wide)
            .gives(Tensor::vector(&[21i64; 2]));
    }

    #[test]
    fn gradients_are_slopes() {
        let x = Tensor::from_slice([2, 3], &[0.5f64, -1.5, 2.0, 1.0, 0.25, -0.75]).unwrap();
        check("BiasAdd").input(x.clone()).input(Tensor::vector(&[1.0f64, 2.0, 3.0])).gradient();
        check("BiasAddGrad").input(x).gradient();
    }
}
