//! Rows and slices of variables, without a copy of the whole.

use super::scatter::{check_indices, position};
use super::scatter_nd::offsets;
use crate::prelude::*;
use ferroflow_op_kit::gpu::{self, GpuTypes, copy::GatherSizes};
use ferroflow_op_kit::handle::Target;
use std::marker::PhantomData;

struct Gather<T> {
    target: Target,
    batch_dims: i64,
    of: PhantomData<fn() -> T>,
}

impl<T: Movable> Kernel for Gather<T> {
    fn compute(&self, ctx: &mut Ctx<'_>) -> Result<()> {
        let params = self.target.get(ctx)?.read()?;
        let indices = ctx.input(1)?;
        ensure!(params.rank() > 0, InvalidArgument, "params must be at least 1 dimensional");
        let batch = usize::try_from(self.batch_dims)
            .map_err(|_| err!(InvalidArgument, "batch_dims {} is negative", self.batch_dims))?;
        ensure!(
            batch <= indices.rank() && batch < params.rank(),
            InvalidArgument,
            "batch_dims {batch} must be less than rank(params) {} and at most rank(indices) {}",
            params.rank(),
            indices.rank()
        );
        ensure!(
            params.shape()[..batch] == indices.shape()[..batch],
            InvalidArgument,
            "params.shape {} and indices.shape {} differ in the first {batch} dimensions",
            params.shape(),
            indices.shape()
        );
        let rows = params.shape()[batch];
        let row_dims = &params.shape()[batch + 1..];
        let shape: Vec<usize> = indices.shape().iter().chain(row_dims).copied().collect();
        let mut out = params.alloc_beside(params.dtype(), Shape::from(shape))?;
        let row: usize = row_dims.iter().product();
        let each: usize = indices.shape()[batch..].iter().product();
        if out.gpu().is_some() {
            let sizes = GatherSizes { outer: 1, rows, inner: row, picks: each };
            gpu::copy::gather(&params, indices, sizes, &out)?;
            return ctx.set(0, out);
        }
        let at = indices.to_indices()?;
        check_indices(&at, indices.shape(), rows)?;
        if out.elements() > 0 {
            let from = T::of(&params)?;
            for (k, (to, &i)) in T::of_mut(&mut out)?.chunks_exact_mut(row).zip(&at).enumerate() {
                let start = (k / each * rows + i as usize) * row;
                to.clone_from_slice(&from[start..start + row]);
            }
        }
        ctx.set(0, out)
    }
}

struct GatherNd<T> {
    target: Target,
    of: PhantomData<fn() -> T>,
}

impl<T: Movable> Kernel for GatherNd<T> {
    fn compute(&self, ctx: &mut Ctx<'_>) -> Result<()> {
        let params = self.target.get(ctx)?.read()?;
        let indices = ctx.input(1)?;
        ensure!(params.rank() > 0, InvalidArgument, "params must be at least a vector");
        let Some((&depth, batch)) = indices.shape().split_last() else {
            bail!(InvalidArgument, "indices must be at least a vector");
        };
        ensure!(
            depth <= params.rank(),
            InvalidArgument,
            "index innermost dimension length must be <= params rank; saw: {depth} vs. {}",
            params.rank()
        );
        let row_dims = &params.shape()[depth..];
        let shape: Vec<usize> = batch.iter().chain(row_dims).copied().collect();
        let mut out = params.alloc_beside(params.dtype(), Shape::from(shape))?;
        if out.gpu().is_some() {
            gpu::copy::gather_nd(&params, indices, &params.shape()[..depth], &out)?;
            return ctx.set(0, out);
        }
        if depth == 0 && out.elements() == 0 {
            return ctx.set(0, out);
        }
        let places = offsets(indices, batch, depth, params.shape()).map_err(|(at, tuple)| {
            err!(
                InvalidArgument,
                "indices{} = {tuple:?} does not index into param shape {}, node name: {}",
                position(batch, at),
                params.shape(),
                ctx.name()
            )
        })?;
        let slice: usize = row_dims.iter().product();
        if out.elements() > 0 {
            let from = T::of(&params)?;
            for (to, start) in T::of_mut(&mut out)?.chunks_exact_mut(slice).zip(places) {
                to.clone_from_slice(&from[start..start + slice]);
            }
        }
        ctx.set(0, out)
    }
}

const ON_GPU: GpuTypes = &[("dtype", gpu::MOVED), ("Tindices", gpu::INDEX)];

/// The kernel works in either memory; elements of a GPU are moved by their width.
fn gather(init: &KernelInit<'_>) -> Result<KernelBox> {
    let make = per_width!("dtype", init, T => Gather::<T> {
        target: Target::new(init, 0),
        batch_dims: init.int("batch_dims")?,
        of: PhantomData,
    });
    make(init)
}

fn gather_nd(init: &KernelInit<'_>) -> Result<KernelBox> {
    let make = per_width!("dtype", init, T => GatherNd::<T> { target: Target::new(init, 0), of: PhantomData });
    make(init)
}

pub(crate) fn register(c: &mut Catalog) {
    c.op("ResourceGather")
        .doc("Rows of a variable.")
        .input("resource: resource")
        .input("indices: Tindices")
        .output("output: dtype")
        .attr("batch_dims: int = 0")
        .attr("validate_indices: bool = true")
        .attr("dtype: type")
        .attr("Tindices: {int32, int64}")
        .stateful()
        .reads_variables()
        .shape(shape::unknown)
        .gpu(ON_GPU, gather)
        .cpu(gather);
    c.op("ResourceGatherNd")
        .doc("Slices of a variable.")
        .input("resource: resource")
        .input("indices: Tindices")
        .output("output: dtype")
        .attr("dtype: type")
        .attr("Tindices: {int32, int64}")
        .stateful()
        .reads_variables()
        .shape(shape::unknown)
        .gpu(ON_GPU, gather_nd)
        .cpu(gather_nd);
    c.gradient("ResourceGather", |g, dy| {
        if g.attrs().int("batch_dims")? != 0 {
            bail!(Unimplemented, "the gradient of ResourceGather with batch_dims is not defined");
        }
        Ok(g.only(ferroflow_ops_array::array::gather::rows_gradient(g, dy[0], g.input(0).shape())))
    });
    c.gradient("ResourceGatherNd", |g, dy| {
        let shape = g.input(0).shape_as(g.input(1).dtype());
        Ok(g.only(ferroflow_ops_array::array::gather_nd::scattered(g, dy[0], shape)))
    });
}

#[cfg(test)]
mod tests {
    use super::super::testing::Held;
    use super::*;

    fn matrix() -> Held {
        Held::by_handle(Tensor::from_slice([2, 3], &[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0]).unwrap())
    }

    #[test]
    fn rows_are_gathered() {
        let gather = |i: Tensor| matrix().on("ResourceGather").input(i).attr("dtype", DType::Float);
        gather(Tensor::scalar(1i32)).gives(Tensor::vector(&[4.0f32, 5.0, 6.0]));
        let want = Tensor::from_slice([1, 2, 3], &[4.0f32, 5.0, 6.0, 1.0, 2.0, 3.0]).unwrap();
        gather(Tensor::from_slice([1, 2], &[1i64, 0]).unwrap()).gives(want);
        gather(Tensor::from_slice([2, 2], &[0i32, 1, 2, 2]).unwrap())
            .attr("batch_dims", 1)
            .gives(Tensor::from_slice([2, 2], &[1.0f32, 2.0, 6.0, 6.0]).unwrap());
        gather(Tensor::vector(&[0i32, 5]))
            .fails(Code::InvalidArgument, "indices[1] = 5 is not in [0, 2)");
        gather(Tensor::vector::<i32>(&[])).gives(Tensor::zeros(DType::Float, [0, 3]).unwrap());
    }

    #[test]
    fn slices_are_gathered() {
        let gather =
            |i: Tensor| matrix().on("ResourceGatherNd").input(i).attr("dtype", DType::Float);
        gather(Tensor::from_slice([2, 2], &[0i32, 1, 1, 2]).unwrap())
            .gives(Tensor::vector(&[2.0f32, 6.0]));
        gather(Tensor::vector(&[1i64])).gives(Tensor::vector(&[4.0f32, 5.0, 6.0]));
        gather(Tensor::from_slice([2, 1], &[0i32, 5]).unwrap()).fails(
            Code::InvalidArgument,
            "indices[1] = [5] does not index into param shape [2,3], node name: node_under_test",
        );
    }
}
