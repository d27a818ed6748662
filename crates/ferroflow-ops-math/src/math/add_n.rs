//! AddN and AccumulateNV2: sums of any number of tensors.

use crate::prelude::*;
use ferroflow_core::Variant;
use ferroflow_graph::OperandShapes;
use ferroflow_op_kit::gpu::{self, elementwise::Elementwise};
use ferroflow_op_kit::parallel::split_mut;

/// Elements summed at a time, so that the sum stays in the nearest cache.
const BLOCK: usize = 1024;

fn add_n<T: Num>(ctx: &mut Ctx<'_>) -> Result<()> {
    let n = ctx.num_inputs();
    let shape = ctx.input(0)?.shape().clone();
    for i in 1..n {
        let other = ctx.input(i)?.shape();
        ensure!(
            *other == shape,
            InvalidArgument,
            "Inputs to operation {} of type {} must have the same size and shape.  \
             Input 0: {shape} != input {i}: {other}",
            ctx.name(),
            ctx.node().op
        );
    }
    if n == 1 {
        let x = ctx.take(0)?;
        return ctx.set(0, x);
    }
    // Sums of floats depend on their order, so only the first input's storage may be reused.
    let (mut sum, reused) = ctx.reuse_or_alloc(&[0], T::DTYPE, &shape)?;
    let first = match reused {
        Some(_) => None,
        None => Some(ctx.input(0)?.as_slice::<T>()?),
    };
    let rest = (1..n).map(|i| ctx.input(i)?.as_slice::<T>()).collect::<Result<Vec<_>>>()?;
    split_mut(sum.as_mut_slice::<T>()?, 1, n, |from, part| {
        let mut at = from;
        for block in part.chunks_mut(BLOCK) {
            let end = at + block.len();
            if let Some(first) = first {
                block.copy_from_slice(&first[at..end]);
            }
            for other in &rest {
                for (sum, x) in block.iter_mut().zip(&other[at..end]) {
                    *sum = sum.add(*x);
                }
            }
            at = end;
        }
    });
    ctx.set(0, sum)
}

/// Variants are added by their own addition.
fn add_variants(ctx: &mut Ctx<'_>) -> Result<()> {
    let mut sum: Vec<Variant> = ctx.input(0)?.variants()?.to_vec();
    let shape = ctx.input(0)?.shape().clone();
    for i in 1..ctx.num_inputs() {
        let other = ctx.input(i)?.variants()?;
        ensure!(
            other.len() == sum.len(),
            InvalidArgument,
            "AddN of variants: input {i} has {} elements, input 0 has {}",
            other.len(),
            sum.len()
        );
        for (sum, x) in sum.iter_mut().zip(other) {
            *sum = match sum.object() {
                Some(object) => object.plus(x)?,
                None => x.clone(),
            };
        }
    }
    ctx.set(0, Tensor::from_variants(shape, sum)?)
}

fn make(init: &KernelInit<'_>) -> Result<KernelBox> {
    if init.dtype("T")? == DType::Variant {
        return Ok(KernelBox::new(add_variants));
    }
    per_dtype!(NUMBER, T => add_n::<T>)(init)
}

/// The sum on a GPU: one input after the other.
fn add_on_device(init: &KernelInit<'_>) -> Result<KernelBox> {
    let dtype = init.output_dtype(0)?;
    let kernel = Elementwise::of(init, &[dtype, dtype], dtype, "x + y")?;
    Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
        let mut sum = ctx.take(0)?;
        for i in 1..ctx.num_inputs() {
            let next = ctx.take(i)?;
            ensure!(
                next.shape() == sum.shape(),
                InvalidArgument,
                "Inputs to operation {} of type {} must have the same size and shape.  Input 0: \
                 {} != input {i}: {}",
                ctx.name(),
                ctx.node().op,
                sum.shape(),
                next.shape()
            );
            sum = kernel.run(ctx.gpu()?, vec![sum, next])?;
        }
        ctx.set(0, sum)
    }))
}

/// Sums of a few are element-wise. Each is rounded.
const SUM: GpuFormula = GpuFormula {
    text: |attrs, _| {
        Some(match attrs.int("N").ok()? {
            2 => "x + y",
            3 => "rounded<Out>(x + y) + z",
            4 => "rounded<Out>(rounded<Out>(x + y) + z) + w",
            5 => "rounded<Out>(rounded<Out>(rounded<Out>(x + y) + z) + w) + u",
            6 => "rounded<Out>(rounded<Out>(rounded<Out>(rounded<Out>(x + y) + z) + w) + u) + v",
            _ => return None,
        })
    },
    given: "",
    operands: OperandShapes::Alike,
};

pub(crate) fn register(c: &mut Catalog) {
    c.op("AddN")
        .doc("Element-wise sum of tensors of one shape.")
        .input("inputs: N * T")
        .output("sum: T")
        .attr("N: int >= 1")
        .attr("T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, quint16, uint16, complex128, half, uint32, uint64, variant}")
        .commutative()
        .aggregate()
        .shape(shape::merged_inputs)
        .gpu(gpu::REAL, add_on_device)
        .gpu_formula(SUM)
        .cpu(make);
    c.op("AccumulateNV2")
        .doc("Element-wise sum of tensors of one shape.")
        .input("inputs: N * T")
        .output("sum: T")
        .attr("N: int >= 1")
        .attr("T: numbertype")
        .attr("shape: shape")
        .commutative()
        .aggregate()
        .shape(|c| {
            let merged = shape::merged_inputs(c)?;
            Ok(vec![merged[0].merge(&c.attrs.shape("shape")?)?])
        })
        .gpu(gpu::REAL, add_on_device)
        .gpu_formula(SUM)
        .cpu(per_dtype!(NUMBER, T => add_n::<T>));
    for op in ["AddN", "AccumulateNV2"] {
        c.gradient(op, |g, dy| Ok(vec![dy[0]; g.num_inputs()]));
    }
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::testing::check;

    #[test]
    fn tensors_are_summed() {
        let x = Tensor::vector(&[1.0f32; 3000]);
        let want = Tensor::vector(&[3.0f32; 3000]);
        check("AddN").input(x.clone()).input(x.clone()).input(x.clone()).gives(want.clone());
        check("AddN").input(Tensor::vector(&[1.0f32; 3000])).input(x.clone()).input(x).gives(want);
        check("AddN").input(Tensor::scalar(7i64)).gives(Tensor::scalar(7i64));
        check("AccumulateNV2")
            .attr("shape", PartialShape::from([2]))
            .input(Tensor::vector(&[1i32, 2]))
            .input(Tensor::vector(&[3i32, 4]))
            .gives(Tensor::vector(&[4i32, 6]));
    }

    #[test]
    fn shapes_must_be_alike() {
        check("AddN").input(Tensor::vector(&[1.0f32, 2.0])).input(Tensor::vector(&[1.0f32])).fails(
            Code::InvalidArgument,
            "of type AddN must have the same size and shape.  Input 0: [2] != input 1: [1]",
        );
    }
}
