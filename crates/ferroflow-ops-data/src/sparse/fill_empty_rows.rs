//! SparseFillEmptyRows and its gradient.

use super::coo::{Coo, gather, index_matrix};
use crate::prelude::*;
use ferroflow_core::Reservation;

fn fill(ctx: &mut Ctx<'_>) -> Result<()> {
    let default = ctx.input(3)?;
    let shape = ctx.input(2)?;
    ensure!(
        shape.rank() == 1 && shape.elements() > 0,
        InvalidArgument,
        "Dense shape cannot be empty."
    );
    ensure!(
        default.rank() == 0,
        InvalidArgument,
        "default_value must be a scalar, saw: {}",
        default.shape()
    );
    let sparse = Coo::input(ctx, 0)?;
    let rows = sparse.shape[0];
    ensure!(
        rows > 0 || sparse.len() == 0,
        InvalidArgument,
        "Received SparseTensor with dense_shape[0] = 0 but indices.shape[0] = {}",
        sparse.len()
    );
    let rows = Shape::from_dims(&[rows])?.elements();
    let rank = sparse.rank();
    // For each row and value its members, and twice its indices.
    let each = size_of::<Vec<usize>>() + size_of::<(usize, usize)>() + 2 * rank * size_of::<i64>();
    let _counted = Reservation::new(rows.saturating_add(sparse.len()).saturating_mul(each))?;
    let mut members: Vec<Vec<usize>> = vec![Vec::new(); rows];
    for (i, place) in sparse.places().enumerate() {
        let row = place[0];
        ensure!(row >= 0, InvalidArgument, "indices({i}, 0) is invalid: {row} < 0");
        ensure!(row < rows as i64, InvalidArgument, "indices({i}, 0) is invalid: {row} >= {rows}");
        members[row as usize].push(i);
    }
    let (mut indices, mut from) = (Vec::new(), Vec::new());
    let mut reverse = vec![0i64; sparse.len()];
    for (row, members) in members.iter().enumerate() {
        for &i in members {
            reverse[i] = from.len() as i64;
            indices.extend_from_slice(sparse.at(i));
            from.push((0, i));
        }
        if members.is_empty() {
            indices.push(row as i64);
            indices.extend(std::iter::repeat_n(0, rank - 1));
            from.push((1, 0));
        }
    }
    let empty: Vec<bool> = members.iter().map(Vec::is_empty).collect();
    let indices = index_matrix(&indices, rank, from.len())?;
    let values = gather(&[sparse.values, default], &from)?;
    ctx.set(0, indices)?;
    ctx.set(1, values)?;
    ctx.set(2, Tensor::vector(&empty))?;
    ctx.set(3, Tensor::vector(&reverse))
}

/// The gradients of the values return to their places. The sum of the others is the gradient of the
/// default.
fn grad<T: Num>(ctx: &mut Ctx<'_>) -> Result<()> {
    let (map, grads) = (ctx.input(0)?, ctx.input(1)?);
    ensure!(
        map.rank() == 1,
        InvalidArgument,
        "reverse_index_map must be a vector, saw: {}",
        map.shape()
    );
    ensure!(
        grads.rank() == 1,
        InvalidArgument,
        "grad_values must be a vector, saw: {}",
        grads.shape()
    );
    let (map, grads) = (map.as_slice::<i64>()?, grads.as_slice::<T>()?);
    let mut out = ctx.alloc(T::DTYPE, [map.len()])?;
    let mut is_taken = vec![false; grads.len()];
    for (to, &i) in out.as_mut_slice::<T>()?.iter_mut().zip(map) {
        let Some(at) = usize::try_from(i).ok().filter(|&at| at < grads.len()) else {
            bail!(
                InvalidArgument,
                "Elements in reverse index must be in [0, {}) but got {i}",
                grads.len()
            );
        };
        *to = grads[at];
        is_taken[at] = true;
    }
    let rest = grads.iter().zip(&is_taken).filter(|(_, taken)| !**taken);
    let rest = rest.fold(<T as Num>::ZERO, |sum, (&g, _)| Num::add(sum, g));
    ctx.set(0, out)?;
    ctx.set(1, Tensor::scalar(rest))
}

pub(crate) fn register(c: &mut Catalog) {
    c.op("SparseFillEmptyRows")
        .work(work::any)
        .doc("A sparse tensor with a default value in the first column of every empty row.")
        .input("indices: int64")
        .input("values: T")
        .input("dense_shape: int64")
        .input("default_value: T")
        .output("output_indices: int64")
        .output("output_values: T")
        .output("empty_row_indicator: bool")
        .output("reverse_index_map: int64")
        .attr("T: type")
        .shape(|c| {
            let rank = c.input(0).dim(1).or(c.input(2).dim(0));
            let rows = c.constant_ints(2).and_then(|s| usize::try_from(*s.first()?).ok());
            Ok(vec![
                PartialShape::new([None, rank]),
                PartialShape::of_rank(1),
                PartialShape::new([rows]),
                PartialShape::new([c.input(0).dim(0)]),
            ])
        })
        .cpu_fn(fill);
    c.op("SparseFillEmptyRowsGrad")
        .doc("The gradient of SparseFillEmptyRows.")
        .input("reverse_index_map: int64")
        .input("grad_values: T")
        .output("d_values: T")
        .output("d_default_value: T")
        .attr("T: type")
        .shape(|c| Ok(vec![c.input(0), PartialShape::scalar()]))
        .cpu(per_dtype!(NUMBER, T => grad::<T>));
    c.gradient("SparseFillEmptyRows", |g, dy| {
        let found = g.calls("SparseFillEmptyRowsGrad", &[g.output(3), dy[1]]);
        Ok(vec![g.none(), found[0], g.none(), found[1]])
    });
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::testing::{Check, check};

    fn filled(indices: &[i64], rows: i64) -> Check<'static> {
        check("SparseFillEmptyRows")
            .input(Tensor::from_slice([indices.len() / 2, 2], indices).unwrap())
            .input(Tensor::vector(&[1f32, 2.][..indices.len() / 2]))
            .input(Tensor::vector(&[rows, 3]))
            .input(Tensor::scalar(9f32))
    }

    #[test]
    fn empty_rows_get_the_default() {
        let out = filled(&[2, 0, 0, 1], 4).run().unwrap();
        let want = [0i64, 1, 1, 0, 2, 0, 3, 0];
        assert_eq!(out[0], Tensor::from_slice([4, 2], &want).unwrap());
        assert_eq!(out[1], Tensor::vector(&[2f32, 9., 1., 9.]));
        assert_eq!(out[2], Tensor::vector(&[false, true, false, true]));
        assert_eq!(out[3], Tensor::vector(&[2i64, 0]));
        filled(&[0, 0, 7, 1], 4).fails(Code::InvalidArgument, "indices(1, 0) is invalid: 7 >= 4");
        filled(&[0, 0, 1, 1], 0).fails(Code::InvalidArgument, "dense_shape[0] = 0");
        assert_eq!(filled(&[], 2).run().unwrap()[1], Tensor::vector(&[9f32, 9.]));
    }

    #[test]
    fn gradients_go_back() {
        let grad = |map: &[i64]| {
            check("SparseFillEmptyRowsGrad")
                .input(Tensor::vector(map))
                .input(Tensor::vector(&[1f32, 2., 3., 4.]))
        };
        let out = grad(&[0, 2]).run().unwrap();
        assert_eq!(out[0], Tensor::vector(&[1f32, 3.]));
        assert_eq!(out[1], Tensor::scalar(6f32));
        grad(&[0, 9]).fails(Code::InvalidArgument, "must be in [0, 4) but got 9");
    }
}
