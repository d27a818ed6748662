//! Shape, ShapeN, Size, Rank: ops that read only the shape of a tensor.

use super::args::index_tensor;
use crate::prelude::*;

fn too_large(what: &str, n: usize) -> Error {
    err!(InvalidArgument, "{what} output type is 32-bit but {n} does not fit; use int64")
}

/// The dimensions of every input.
fn shapes(init: &KernelInit<'_>) -> Result<KernelBox> {
    let dtype = init.dtype("out_type")?;
    Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
        for i in 0..ctx.num_inputs() {
            let dims = ctx.input(i)?.shape().to_i64s();
            if dtype == DType::Int32
                && let Some(&d) = dims.iter().find(|&&d| d > i32::MAX as i64)
            {
                return Err(too_large("Shape", d as usize));
            }
            ctx.set(i, index_tensor(dtype, [dims.len()], &dims)?)?;
        }
        Ok(())
    }))
}

/// The number of elements.
fn size(init: &KernelInit<'_>) -> Result<KernelBox> {
    let dtype = init.dtype("out_type")?;
    Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
        let n = ctx.input(0)?.elements();
        if dtype == DType::Int32 && n > i32::MAX as usize {
            return Err(too_large("Size", n));
        }
        ctx.set(0, index_tensor(dtype, Shape::scalar(), &[n as i64])?)
    }))
}

fn rank(ctx: &mut Ctx<'_>) -> Result<()> {
    let rank = ctx.input(0)?.rank() as i32;
    ctx.set(0, Tensor::scalar(rank))
}

/// A vector for each input, as long as the input's rank.
fn rank_vectors(c: &ShapeCtx<'_>) -> Result<Vec<PartialShape>> {
    Ok((0..c.outputs).map(|i| PartialShape::new([c.input(i).rank()])).collect())
}

pub(crate) fn register(c: &mut Catalog) {
    c.op("Shape")
        .doc("The dimensions of a tensor.")
        .input("input: T")
        .output("output: out_type")
        .attr("T: type")
        .attr("out_type: {int32, int64} = DT_INT32")
        .metadata()
        .shape(rank_vectors)
        .anywhere()
        .host_outputs(&["output"])
        .cpu(shapes);
    c.op("ShapeN")
        .doc("The dimensions of each of several tensors.")
        .input("input: N * T")
        .output("output: N * out_type")
        .attr("N: int >= 1")
        .attr("T: type")
        .attr("out_type: {int32, int64} = DT_INT32")
        .metadata()
        .shape(rank_vectors)
        .anywhere()
        .host_outputs(&["output"])
        .cpu(shapes);
    c.op("Size")
        .doc("The number of elements of a tensor.")
        .input("input: T")
        .output("output: out_type")
        .attr("T: type")
        .attr("out_type: {int32, int64} = DT_INT32")
        .metadata()
        .shape(shape::scalar)
        .anywhere()
        .host_outputs(&["output"])
        .cpu(size);
    c.op("Rank")
        .doc("The number of dimensions of a tensor.")
        .input("input: T")
        .output("output: int32")
        .attr("T: type")
        .metadata()
        .shape(shape::scalar)
        .anywhere()
        .host_outputs(&["output"])
        .cpu_fn(rank);
    c.no_gradient(&["Shape", "ShapeN", "Size", "Rank"]);
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::testing::check;

    #[test]
    fn dimensions_are_returned() {
        let x = Tensor::zeros(DType::Float, [2, 0]).unwrap();
        check("Shape").input(x.clone()).gives(Tensor::vector(&[2i32, 0]));
        check("Shape")
            .input(x.clone())
            .attr("out_type", DType::Int64)
            .gives(Tensor::vector(&[2i64, 0]));
        check("Size").input(x.clone()).gives(Tensor::scalar(0i32));
        check("Rank").input(x.clone()).gives(Tensor::scalar(2i32));
        let out = check("ShapeN").input(x).input(Tensor::scalar(1.0f32)).run().unwrap();
        assert_eq!(out, [Tensor::vector(&[2i32, 0]), Tensor::vector::<i32>(&[])]);
    }

    #[test]
    fn strings_have_a_shape_too() {
        check("Size").input(Tensor::string("abc")).gives(Tensor::scalar(1i32));
    }
}
