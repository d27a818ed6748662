//! SparseTensorSliceDataset: the rows of a sparse tensor, each a sparse tensor.

use super::dataset::*;
use super::scope::Scope;
use crate::prelude::*;

struct SparseRows {
    indices: Tensor,
    values: Tensor,
    /// Of a row.
    shape: Tensor,
    rows: i64,
    rank: usize,
}

impl Dataset for SparseRows {
    fn iterate(&self, _: &Scope) -> Result<Elements> {
        let SparseRows { indices, values, shape, rows, rank } = self;
        let (indices, values, shape) = (indices.clone(), values.clone(), shape.clone());
        let (rows, rank, width) = (*rows, *rank, *rank + 1);
        let (mut row, mut from) = (0, 0);
        Ok(Elements::from_fn(move || {
            if row == rows {
                return Ok(None);
            }
            let all = indices.as_slice::<i64>()?;
            let mine: Vec<&[i64]> = all[from * width..]
                .chunks_exact(width)
                .take_while(|index| index[0] == row)
                .collect();
            let n = mine.len();
            let places: Vec<i64> = mine.iter().flat_map(|index| &index[1..]).copied().collect();
            let element =
                vec![Tensor::from_slice([n, rank], &places)?, values.rows(from, n)?, shape.clone()];
            row += 1;
            from += n;
            Ok(Some(element))
        }))
    }

    fn cardinality(&self) -> i64 {
        self.rows
    }
}

fn sparse_rows(ctx: &mut Ctx<'_>) -> Result<SparseRows> {
    let (indices, values, shape) = (ctx.take(0)?, ctx.take(1)?, ctx.take(2)?);
    ensure!(
        indices.rank() == 2,
        InvalidArgument,
        "Input indices must be a matrix. Got: {}",
        indices.shape()
    );
    ensure!(
        values.rank() == 1,
        InvalidArgument,
        "Input values must be a vector. Got: {}",
        values.shape()
    );
    ensure!(
        shape.rank() == 1,
        InvalidArgument,
        "Input shape must be a vector. Got: {}",
        shape.shape()
    );
    let dims = shape.to_indices()?;
    ensure!(
        values.elements() == indices.shape()[0],
        InvalidArgument,
        "Number of values must match first dimension of indices. Got {} values, indices shape: {}",
        values.elements(),
        indices.shape()
    );
    ensure!(
        dims.len() == indices.shape()[1],
        InvalidArgument,
        "Number of dimensions must match second dimension of indices. Got {} dimensions, indices \
         shape: {}",
        dims.len(),
        indices.shape()
    );
    let Some((&rows, rest)) = dims.split_first() else {
        bail!(InvalidArgument, "The shape argument requires at least one element.");
    };
    ensure!(rows >= 0, InvalidArgument, "Dimension {rows} must be >= 0");
    let all = indices.as_slice::<i64>()?;
    let mut last = -1;
    for index in all.chunks_exact(dims.len()) {
        ensure!(
            index[0] >= last,
            Unimplemented,
            "The SparseTensor must be ordered in the batch dimension; handling arbitrarily ordered \
             input is not currently supported."
        );
        last = index[0];
        ensure!(
            (0..rows).contains(&last),
            InvalidArgument,
            "indices[{last}] is out of bounds: need 0 <= index < {rows}"
        );
    }
    let shape = Tensor::vector(rest);
    Ok(SparseRows { indices, values, shape, rows, rank: rest.len() })
}

pub(crate) fn register(c: &mut Catalog) {
    c.op("SparseTensorSliceDataset")
        .doc("A dataset of the rows of a sparse tensor.")
        .input("indices: int64")
        .input("values: Tvalues")
        .input("dense_shape: int64")
        .makes_dataset()
        .attr("Tvalues: type")
        .stateful()
        .cpu(|init| {
            let types = ElementTypes {
                dtypes: vec![DType::Int64, init.dtype("Tvalues")?, DType::Int64],
                shapes: vec![
                    PartialShape::of_rank(2),
                    PartialShape::of_rank(1),
                    PartialShape::of_rank(1),
                ],
            };
            makes_typed(types, sparse_rows)
        });
}
