//! AddSparseToTensorsMap, AddManySparseToTensorsMap, TakeManySparseFromTensorsMap: sparse tensors
//! kept under numbers until they are batched.

use super::coo::Coo;
use super::serialize::{Parts, rows_of, stack};
use crate::prelude::*;
use ferroflow_graph::ResourceName;
use parking_lot::Mutex;
use std::collections::HashMap;

#[derive(Default)]
struct TensorsMap {
    kept: Mutex<(i64, HashMap<i64, Parts>)>,
}

impl Resource for TensorsMap {
    fn describe(&self) -> String {
        "A SparseTensorsMap".into()
    }
}

impl TensorsMap {
    fn add(&self, parts: Parts) -> i64 {
        let mut kept = self.kept.lock();
        let number = kept.0;
        kept.0 += 1;
        kept.1.insert(number, parts);
        number
    }

    fn take(&self, number: i64) -> Result<Parts> {
        self.kept
            .lock()
            .1
            .remove(&number)
            .ok_or_else(|| err!(InvalidArgument, "Unable to find SparseTensor: {number} in map"))
    }
}

fn find(ctx: &Ctx<'_>, name: &ResourceName) -> Result<Arc<TensorsMap>> {
    ctx.resources().lookup_or_create(&name.container, &name.name, || Ok(TensorsMap::default()))
}

fn add(init: &KernelInit<'_>) -> Result<KernelBox> {
    let name = init.resource_name(true)?;
    Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
        Coo::input(ctx, 0)?;
        let parts = [ctx.input(0)?.clone(), ctx.input(1)?.clone(), ctx.input(2)?.clone()];
        let number = find(ctx, &name)?.add(parts);
        ctx.set(0, Tensor::scalar(number))
    }))
}

fn add_many(init: &KernelInit<'_>) -> Result<KernelBox> {
    let name = init.resource_name(true)?;
    Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
        let rows = rows_of(&Coo::input(ctx, 0)?)?;
        let map = find(ctx, &name)?;
        let numbers: Vec<i64> = rows.into_iter().map(|row| map.add(row)).collect();
        ctx.set(0, Tensor::vector(&numbers))
    }))
}

fn take_many(init: &KernelInit<'_>) -> Result<KernelBox> {
    let (name, dtype) = (init.resource_name(true)?, init.dtype("dtype")?);
    Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
        let numbers = ctx.input(0)?;
        ensure!(
            numbers.rank() == 1,
            InvalidArgument,
            "sparse_handles should be a vector but received shape {}",
            numbers.shape()
        );
        let map = find(ctx, &name)?;
        let numbers = numbers.as_slice::<i64>()?;
        ensure!(
            !numbers.is_empty(),
            InvalidArgument,
            "Must have at least 1 serialized SparseTensor, but input matrix has 0 rows"
        );
        let parts = numbers.iter().map(|&n| map.take(n)).collect::<Result<Vec<_>>>()?;
        let [indices, values, shape] = stack(&parts, &[parts.len() as i64], dtype)?;
        ctx.set(0, indices)?;
        ctx.set(1, values)?;
        ctx.set(2, shape)
    }))
}

/// A sparse tensor.
const SPARSE: [&str; 3] = ["sparse_indices: int64", "sparse_values: T", "sparse_shape: int64"];

pub(crate) fn register(c: &mut Catalog) {
    c.op("AddSparseToTensorsMap")
        .doc("Keeps a sparse tensor; gives its number.")
        .inputs(&SPARSE)
        .output("sparse_handle: int64")
        .attr("T: type")
        .attr("container: string = ''")
        .attr("shared_name: string = ''")
        .stateful()
        .shape(shape::scalar)
        .cpu(add);
    c.op("AddManySparseToTensorsMap")
        .doc("Keeps the rows of a sparse tensor; gives their numbers.")
        .inputs(&SPARSE)
        .output("sparse_handles: int64")
        .attr("T: type")
        .attr("container: string = ''")
        .attr("shared_name: string = ''")
        .stateful()
        .shape(shape::vector)
        .cpu(add_many);
    c.op("TakeManySparseFromTensorsMap")
        .doc("The sparse tensors kept under these numbers, put together.")
        .input("sparse_handles: int64")
        .output("sparse_indices: int64")
        .output("sparse_values: dtype")
        .output("sparse_shape: int64")
        .attr("dtype: type")
        .attr("container: string = ''")
        .attr("shared_name: string = ''")
        .stateful()
        .shape(|_| {
            Ok(vec![PartialShape::of_rank(2), PartialShape::of_rank(1), PartialShape::of_rank(1)])
        })
        .cpu(take_many);
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::testing::check;

    #[test]
    fn rows_are_kept_and_taken_once() {
        let resources = Arc::new(Resources::new());
        let places = || Tensor::from_slice([2, 2], &[0i64, 1, 1, 0]).unwrap();
        let numbers = check("AddManySparseToTensorsMap")
            .resources(&resources)
            .attr("shared_name", "m")
            .input(places())
            .input(Tensor::vector(&[1f32, 2.]))
            .input(Tensor::vector(&[2i64, 3]))
            .run()
            .unwrap()
            .remove(0);
        let take = || {
            check("TakeManySparseFromTensorsMap")
                .resources(&resources)
                .attr("shared_name", "m")
                .attr("dtype", DType::Float)
                .input(numbers.clone())
        };
        let out = take().run().unwrap();
        assert_eq!(out[0], places());
        assert_eq!(out[1], Tensor::vector(&[1f32, 2.]));
        assert_eq!(out[2], Tensor::vector(&[2i64, 3]));
        take().fails(Code::InvalidArgument, "Unable to find SparseTensor: 0");
    }
}
