//! OneHot.

use super::args::joined;
use super::walk::{self, by_width};
use crate::prelude::*;
use ferroflow_op_kit::gpu::{self, GpuKernel, GpuTypes, address, c_type, c_width, length};

/// The position of the new axis in the output, for indices of this rank.
fn axis_of(axis: i64, rank: usize) -> Result<usize> {
    ensure!(
        axis == -1 || (0..=rank as i64).contains(&axis),
        InvalidArgument,
        "Expected axis to be -1 or between [0, {}).  But received: {axis}",
        rank + 1
    );
    Ok(if axis == -1 { rank } else { axis as usize })
}

/// Depth, position of the new axis, and shape of the output.
fn checked(ctx: &Ctx<'_>, axis: i64) -> Result<(usize, usize, Shape)> {
    let indices = ctx.input(0)?;
    let axis = axis_of(axis, indices.rank())?;
    for (i, name) in [(1, "depth"), (2, "on_value"), (3, "off_value")] {
        let t = ctx.input(i)?;
        ensure!(t.rank() == 0, InvalidArgument, "{name} must be a scalar, but got: {}", t.shape());
    }
    let depth = ctx.input(1)?.scalar_index()?;
    ensure!(depth >= 0, InvalidArgument, "depth must be non-negative, got: {depth}");
    let depth = depth as usize;
    let shape = joined(&[&indices.shape()[..axis], &[depth], &indices.shape()[axis..]]);
    shape.checked_elements()?;
    Ok((depth, axis, shape))
}

const TEXT: &str = r#"
struct Pair { u64 a, b; };
extern "C" __global__ void one_hot(i64 n, i64 depth, i64 suffix, const Index *indices,
                                   const Word *on, const Word *off, Word *out) {
    for (i64 i = thread_number(); i < n; i += thread_count()) {
        i64 before = i / suffix / depth, at = i / suffix % depth;
        out[i] = (i64)indices[before * suffix + i % suffix] == at ? *on : *off;
    }
}
"#;

fn one_hot_on_device(init: &KernelInit<'_>) -> Result<KernelBox> {
    let axis = init.int("axis")?;
    let text = TEXT
        .replace("Word", c_width(init.dtype("T")?)?)
        .replace("Index", c_type(init.dtype("TI")?)?);
    let kernel = GpuKernel::new(text, "one_hot").prepared(init)?;
    Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
        let (depth, axis, shape) = checked(ctx, axis)?;
        let (indices, on, off) = (ctx.input(0)?, ctx.input(2)?, ctx.input(3)?);
        let suffix: usize = indices.shape()[axis..].iter().product();
        let out = ctx.alloc_on_device(on.dtype(), shape)?;
        let n = out.elements();
        let (indices, on, off) = (address(indices)?, address(on)?, address(off)?);
        let args = [length(n), length(depth), length(suffix), indices, on, off, address(&out)?];
        kernel.over(ctx.gpu()?.as_ref(), n, &args)?;
        ctx.set(0, out)
    }))
}

const ON_GPU: GpuTypes =
    &[("T", gpu::MOVED), ("TI", &[DType::UInt8, DType::Int8, DType::Int32, DType::Int64])];

fn one_hot(init: &KernelInit<'_>) -> Result<KernelBox> {
    let axis = init.int("axis")?;
    Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
        let (depth, axis, shape) = checked(ctx, axis)?;
        let (indices, on, off) = (ctx.input(0)?, ctx.input(2)?, ctx.input(3)?);
        let mut out = ctx.alloc(on.dtype(), shape)?;
        walk::fill(&mut out, off)?;
        let suffix: usize = indices.shape()[axis..].iter().product();
        let indices = indices.to_indices()?;
        by_width!(on.dtype(), W => switch_on(&indices, depth, suffix, &W::of(on)?[0], W::of_mut(&mut out)?));
        ctx.set(0, out)
    }))
}

fn switch_on<W: Movable>(indices: &[i64], depth: usize, suffix: usize, on: &W, out: &mut [W]) {
    for (i, &index) in indices.iter().enumerate() {
        if (0..depth as i64).contains(&index) {
            let (before, after) = (i / suffix, i % suffix);
            out[(before * depth + index as usize) * suffix + after] = on.clone();
        }
    }
}

fn one_hot_shape(c: &ShapeCtx<'_>) -> Result<Vec<PartialShape>> {
    let indices = c.input(0);
    let Some(dims) = indices.dims() else { return shape::unknown(c) };
    let axis = axis_of(c.attrs.int("axis")?, dims.len())?;
    let depth = c.constant_ints(1).and_then(|d| d.first().copied());
    let mut dims = dims.to_vec();
    dims.insert(axis, depth.and_then(|d| usize::try_from(d).ok()));
    Ok(vec![PartialShape::new(dims)])
}

pub(crate) fn register(c: &mut Catalog) {
    c.op("OneHot")
        .work(work::any)
        .doc("A new axis on which the place that each index names is on and all others are off.")
        .input("indices: TI")
        .input("depth: int32")
        .input("on_value: T")
        .input("off_value: T")
        .output("output: T")
        .attr("axis: int = -1")
        .attr("T: type")
        .attr("TI: {uint8, int8, int32, int64} = DT_INT64")
        .shape(one_hot_shape)
        .gpu(ON_GPU, one_hot_on_device)
        .host_inputs(&["depth"])
        .cpu(one_hot);
    c.no_gradient(&["OneHot"]);
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::testing::{Check, check};

    fn one_hot(indices: Tensor, depth: i32) -> Check<'static> {
        check("OneHot")
            .input(indices)
            .input(Tensor::scalar(depth))
            .input(Tensor::scalar(5.0f32))
            .input(Tensor::scalar(-1.0f32))
    }

    #[test]
    fn indices_out_of_range_are_off_everywhere() {
        let (on, off) = (5.0f32, -1.0f32);
        one_hot(Tensor::vector(&[0i64, 2, -1, 3]), 3).gives(
            Tensor::from_slice([4, 3], &[on, off, off, off, off, on, off, off, off, off, off, off])
                .unwrap(),
        );
        one_hot(Tensor::vector(&[0i32, 2]), 3)
            .attr("axis", 0i64)
            .gives(Tensor::from_slice([3, 2], &[on, off, off, off, off, on]).unwrap());
        one_hot(Tensor::scalar(1u8), 2).gives(Tensor::vector(&[off, on]));
        one_hot(Tensor::from_slice([1, 2], &[0i8, 2]).unwrap(), 0)
            .gives(Tensor::zeros(DType::Float, [1, 2, 0]).unwrap());
    }

    #[test]
    fn bad_axes_and_depths_are_refused() {
        let v = || Tensor::vector(&[0i32, 2]);
        one_hot(v(), 3).attr("axis", 2i64).fails(
            Code::InvalidArgument,
            "Expected axis to be -1 or between [0, 2).  But received: 2",
        );
        one_hot(v(), -3).fails(Code::InvalidArgument, "depth must be non-negative, got: -3");
        check("OneHot")
            .input(v())
            .input(Tensor::vector(&[3i32]))
            .input(Tensor::scalar(1i32))
            .input(Tensor::scalar(0i32))
            .fails(Code::InvalidArgument, "depth must be a scalar, but got: [1]");
    }
}
