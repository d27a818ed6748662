//! DenseToSparseBatchDataset: batches of dense elements of different sizes, as sparse tensors.

use super::batch::{batch_size, batched_cardinality, gather};
use super::dataset::*;
use super::scope::Scope;
use crate::prelude::*;
use crate::sparse::serialize::to_output;
use ferroflow_op_kit::pack::concat;

struct SparseBatch {
    input: DatasetRef,
    size: usize,
    row: PartialShape,
}

impl Dataset for SparseBatch {
    fn iterate(&self, scope: &Scope) -> Result<Elements> {
        let input = self.input.iterate(scope)?;
        Ok(Elements::new(SparseBatching { input, size: self.size, row: self.row.clone() }))
    }

    fn cardinality(&self) -> i64 {
        batched_cardinality(self.input.cardinality(), self.size, false)
    }
}

struct SparseBatching {
    input: Elements,
    size: usize,
    row: PartialShape,
}

impl Produce for SparseBatching {
    fn next(&mut self) -> Next<'_> {
        Box::pin(async {
            let batch = gather(&mut self.input, self.size).await?;
            if batch.is_empty() {
                return Ok(None);
            }
            let parts = sparse(&batch, &self.row)?;
            Ok(Some(vec![to_output(DType::Variant, Shape::vector(3), &parts)?]))
        })
    }
}

/// All elements of all rows, and their indices. The dense shape is `row`, or that of the largest
/// row.
fn sparse(batch: &[Tuple], row: &PartialShape) -> Result<[Tensor; 3]> {
    let mut dims: Vec<usize> =
        row.dims().unwrap_or_default().iter().map(|d| d.unwrap_or(0)).collect();
    let (rank, mut indices, mut values) = (dims.len(), Vec::new(), Vec::new());
    for (number, element) in batch.iter().enumerate() {
        let [t] = &element[..] else {
            bail!(InvalidArgument, "an element has {} components", element.len());
        };
        ensure!(
            t.rank() == rank,
            InvalidArgument,
            "Input element had shape ({}) that is incompatible with the row shape ({row}).",
            t.shape()
        );
        for (axis, &d) in t.shape().iter().enumerate() {
            match row.dim(axis) {
                None => dims[axis] = Ord::max(dims[axis], d),
                Some(most) => ensure!(
                    d <= most,
                    DataLoss,
                    "Input element had shape ({}) that is larger than the row shape ({row}).",
                    t.shape()
                ),
            }
        }
        let strides = t.shape().strides();
        for i in 0..t.elements() {
            indices.push(number as i64);
            let place = t.shape().iter().zip(&strides).map(|(&d, &stride)| (i / stride % d) as i64);
            indices.extend(place);
        }
        values.push(t.reshape([t.elements()])?);
    }
    let dtype = values.first().map_or(DType::Float, Tensor::dtype);
    let values = concat(dtype, &[], values.iter())?;
    let indices = Tensor::from_slice([values.elements(), rank + 1], &indices)?;
    let shape: Vec<i64> = std::iter::once(batch.len()).chain(dims).map(|d| d as i64).collect();
    Ok([indices, values, Tensor::vector(&shape)])
}

pub(crate) fn register(c: &mut Catalog) {
    for op in ["DenseToSparseBatchDataset", "ExperimentalDenseToSparseBatchDataset"] {
        c.op(op)
            .doc("A dataset of batches of elements of different sizes, each a sparse tensor.")
            .input("input_dataset: variant")
            .input("batch_size: int64")
            .input("row_shape: int64")
            .makes_dataset()
            .element_types()
            .cpu(|init| {
                makes(init, |ctx| {
                    let row = ctx.input(2)?;
                    ensure!(row.rank() == 1, InvalidArgument, "row_shape must be a vector");
                    Ok(SparseBatch {
                        input: input(ctx, 0)?,
                        size: batch_size(ctx, 1)?,
                        row: PartialShape::from_i64s(&row.to_indices()?)?,
                    })
                })
            });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_element_has_its_place() {
        let batch = [vec![Tensor::vector(&[7i32])], vec![Tensor::vector(&[8i32, 9])]];
        let [indices, values, shape] = sparse(&batch, &PartialShape::of_rank(1)).unwrap();
        assert_eq!(indices, Tensor::from_slice([3, 2], &[0i64, 0, 1, 0, 1, 1]).unwrap());
        assert_eq!(values, Tensor::vector(&[7i32, 8, 9]));
        assert_eq!(shape, Tensor::vector(&[2i64, 2]));
        let e = sparse(&batch, &PartialShape::from([1])).unwrap_err();
        assert_eq!(e.code(), Code::DataLoss);
    }
}
