//! Fill, ZerosLike, OnesLike, Empty: tensors whose elements do not depend on an input's elements.

use super::args::{require_rank, to_shape};
use super::walk;
use crate::prelude::*;
use ferroflow_core::Variant;
use ferroflow_op_kit::gpu;

fn fill(ctx: &mut Ctx<'_>) -> Result<()> {
    let (dims, value) = (ctx.input(0)?, ctx.input(1)?);
    ensure!(
        dims.rank() <= 1,
        InvalidArgument,
        "dims must represent a vector, got shape {}",
        dims.shape()
    );
    ensure!(
        value.elements() == 1,
        InvalidArgument,
        "value must represent a scalar, got shape {}",
        value.shape()
    );
    let shape = to_shape(&dims.to_indices()?)?;
    let is_zero = value.bytes().is_ok_and(|b| b.iter().all(|&b| b == 0));
    let mut out = if is_zero {
        Tensor::zeros(value.dtype(), shape)?
    } else {
        value.alloc_beside(value.dtype(), shape)?
    };
    if !is_zero {
        walk::fill(&mut out, value)?;
    }
    ctx.set(0, out)
}

fn zeros_like(init: &KernelInit<'_>) -> Result<KernelBox> {
    let dtype = init.dtype("T")?;
    if dtype == DType::Resource {
        return Err(unsupported(init, "T", dtype));
    }
    if dtype == DType::Variant {
        return Ok(KernelBox::new(|ctx: &mut Ctx<'_>| {
            let x = ctx.input(0)?;
            let zeros = x.variants()?.iter().map(Variant::zeros_like);
            let zeros = zeros.collect::<Result<Vec<Variant>>>()?;
            let y = Tensor::from_variants(x.shape().clone(), zeros)?;
            ctx.set(0, y)
        }));
    }
    Ok(KernelBox::new(|ctx: &mut Ctx<'_>| {
        let x = ctx.input(0)?;
        let y = x.zeros_beside(x.dtype(), x.shape().clone())?;
        ctx.set(0, y)
    }))
}

/// The value 1 of a dtype.
fn one(dtype: DType) -> Option<Tensor> {
    fn of<T: Num>() -> Option<Tensor> {
        Some(Tensor::scalar(T::ONE))
    }
    match dtype {
        DType::Bool => Some(Tensor::scalar(true)),
        DType::Half => of::<f16>(),
        DType::BFloat16 => of::<bf16>(),
        DType::Float => of::<f32>(),
        DType::Double => of::<f64>(),
        DType::Int8 => of::<i8>(),
        DType::Int16 => of::<i16>(),
        DType::Int32 => of::<i32>(),
        DType::Int64 => of::<i64>(),
        DType::UInt8 => of::<u8>(),
        DType::UInt16 => of::<u16>(),
        DType::UInt32 => of::<u32>(),
        DType::UInt64 => of::<u64>(),
        DType::Complex64 => of::<Complex32>(),
        DType::Complex128 => of::<Complex64>(),
        _ => None,
    }
}

fn ones_like(init: &KernelInit<'_>) -> Result<KernelBox> {
    let dtype = init.dtype("T")?;
    let one = one(dtype).ok_or_else(|| unsupported(init, "T", dtype))?;
    gpu::copy::prepare(init, dtype)?;
    Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
        let mut y = ctx.take(0)?;
        if !y.is_unique() {
            y = y.alloc_beside(dtype, y.shape().clone())?;
        }
        walk::fill(&mut y, &one)?;
        ctx.set(0, y)
    }))
}

fn empty(init: &KernelInit<'_>) -> Result<KernelBox> {
    let (dtype, zeroed) = (init.dtype("dtype")?, init.bool("init")?);
    Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
        let dims = ctx.input(0)?;
        ensure!(
            dims.rank() == 1,
            InvalidArgument,
            "shape must be a vector of int32, got shape {}",
            dims.shape()
        );
        let shape = to_shape(&dims.to_indices()?)?;
        let out = if zeroed { Tensor::zeros(dtype, shape)? } else { ctx.alloc(dtype, shape)? };
        ctx.set(0, out)
    }))
}

pub(crate) fn register(c: &mut Catalog) {
    c.op("Fill")
        .work(work::of_shape::<0>)
        .doc("A tensor of the given shape, all elements of which are `value`.")
        .input("dims: index_type")
        .input("value: T")
        .output("output: T")
        .attr("T: type")
        .attr("index_type: {int32, int64} = DT_INT32")
        .shape(|c| {
            require_rank(&c.input(0), 1)?;
            require_rank(&c.input(1), 0)?;
            shape::from_input_0(c)
        })
        .anywhere()
        .host_inputs(&["dims"])
        .cpu(|init| {
            gpu::copy::prepare(init, init.dtype("T")?)?;
            Ok(KernelBox::new(fill))
        });
    c.op("ZerosLike")
        .doc("Zeros in the shape of its input.")
        .input("x: T")
        .output("y: T")
        .attr("T: type")
        .shape(shape::same_as_input)
        .anywhere()
        .cpu(zeros_like);
    c.op("OnesLike")
        .doc("Ones in the shape of its input.")
        .input("x: T")
        .output("y: T")
        .attr("T: {bfloat16, half, float, double, int8, uint8, int16, uint16, int32, uint32, int64, uint64, complex64, complex128, bool}")
        .shape(shape::same_as_input)
        .anywhere()
        .cpu(ones_like);
    c.op("Empty")
        .work(work::of_shape::<0>)
        .doc("A tensor of the given shape whose elements are unspecified, or zero if `init`.")
        .input("shape: int32")
        .output("output: dtype")
        .attr("dtype: type")
        .attr("init: bool = false")
        .stateful()
        .shape(shape::from_input_0)
        .cpu(empty);
    c.gradient("Fill", |g, dy| {
        let axes = g.range(dy[0].rank_term());
        Ok(vec![g.none(), dy[0].sum(axes, false)])
    });
    c.no_gradient(&["ZerosLike", "OnesLike"]);
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::testing::check;

    #[test]
    fn a_value_fills_a_shape() {
        check("Fill")
            .input(Tensor::vector(&[2i32, 2]))
            .input(Tensor::scalar(7.5f32))
            .gives(Tensor::from_slice([2, 2], &[7.5f32; 4]).unwrap());
        check("Fill")
            .input(Tensor::vector(&[2i64]))
            .input(Tensor::string("ab"))
            .gives(Tensor::from_strings([2], vec!["ab".into(), "ab".into()]).unwrap());
        check("Fill")
            .input(Tensor::scalar(3i32))
            .input(Tensor::vector(&[true]))
            .gives(Tensor::vector(&[true; 3]));
        check("Fill")
            .input(Tensor::vector::<i32>(&[]))
            .input(Tensor::scalar(0i64))
            .gives(Tensor::scalar(0i64));
    }

    #[test]
    fn bad_shapes_are_refused() {
        let fill =
            |dims: &[i64]| check("Fill").input(Tensor::vector(dims)).input(Tensor::scalar(1.0f32));
        fill(&[2, -1]).fails(Code::InvalidArgument, "Dimension -1 must be >= 0");
        fill(&[1 << 40, 1 << 40]).fails(Code::InvalidArgument, "more than 2**63 - 1 elements");
        fill(&[1 << 50]).fails(Code::ResourceExhausted, "OOM when allocating");
        check("Fill")
            .input(Tensor::vector(&[2i32]))
            .input(Tensor::vector(&[1i32, 2]))
            .fails(Code::InvalidArgument, "value must represent a scalar, got shape [2]");
    }

    #[test]
    fn likenesses_keep_the_shape() {
        check("ZerosLike").maps([f32::NAN, 2.0], [0.0, 0.0]);
        check("ZerosLike").input(Tensor::string("a")).gives(Tensor::string(""));
        check("OnesLike").maps([false, true], [true, true]);
        check("OnesLike").maps([bf16::ZERO], [bf16::ONE]);
        check("OnesLike").maps([Complex32::new(3.0, 4.0)], [Complex32::new(1.0, 0.0)]);
        check("Empty")
            .input(Tensor::vector(&[2i32]))
            .attr("dtype", DType::Float)
            .attr("init", true)
            .gives(Tensor::vector(&[0.0f32; 2]));
    }
}
