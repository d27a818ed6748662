//! SparseToDense.

use super::coo::list;
use crate::prelude::*;

fn to_dense<W: Movable>(ctx: &mut Ctx<'_>, validate: bool) -> Result<()> {
    let (indices, shape) = (ctx.input(0)?, ctx.input(1)?);
    let (values, default) = (ctx.input(2)?, ctx.input(3)?);
    ensure!(
        indices.rank() <= 2,
        InvalidArgument,
        "sparse_indices should be a scalar, vector, or matrix, got shape {}",
        indices.shape()
    );
    let count = indices.shape().first().copied().unwrap_or(1);
    let rank = indices.shape().get(1).copied().unwrap_or(1);
    ensure!(
        shape.rank() == 1,
        InvalidArgument,
        "output_shape must be rank 1, got shape {}",
        shape.shape()
    );
    ensure!(
        shape.elements() == rank,
        InvalidArgument,
        "output_shape has incorrect number of elements: {} should be: {rank}",
        shape.elements()
    );
    ensure!(
        values.rank() == 0 || (values.rank() == 1 && values.elements() == count),
        InvalidArgument,
        "sparse_values has incorrect shape {}, should be [] or [{count}]",
        values.shape()
    );
    ensure!(default.rank() == 0, InvalidArgument, "default_value should be a scalar.");
    let (places, dims) = (indices.to_indices()?, shape.to_indices()?);
    let shape = Shape::from_dims(&dims)?;
    let strides = shape.strides();
    let mut out = ctx.alloc(default.dtype(), shape)?;
    let to = W::of_mut(&mut out)?;
    to.fill(W::of(default)?[0].clone());
    let values = W::of(values)?;
    let place = |i: usize| &places[i * rank..(i + 1) * rank];
    for i in 0..count {
        let is_inside = place(i).iter().zip(&dims).all(|(x, dim)| (0..*dim).contains(x));
        ensure!(
            is_inside || !validate,
            InvalidArgument,
            "indices[{i}] = {} is out of bounds: need 0 <= index < {}",
            list(place(i)),
            list(&dims)
        );
        ensure!(
            is_inside,
            InvalidArgument,
            "Indices are not valid (out of bounds).  Shape: {}",
            list(&dims)
        );
        if validate && i > 0 {
            ensure!(
                place(i - 1) != place(i),
                InvalidArgument,
                "indices[{i}] = {} is repeated",
                list(place(i))
            );
            ensure!(
                place(i - 1) < place(i),
                InvalidArgument,
                "indices[{i}] = {} is out of order. Many sparse ops require sorted indices.\n    \
                 Use `tf.sparse.reorder` to create a correctly ordered copy.\n\n",
                list(place(i))
            );
        }
        let at: usize = place(i).iter().zip(&strides).map(|(&x, s)| x as usize * s).sum();
        to[at] = values[if values.len() == 1 { 0 } else { i }].clone();
    }
    ctx.set(0, out)
}

pub(crate) fn register(c: &mut Catalog) {
    c.op("SparseToDense")
        .work(work::of_shape::<1>)
        .doc("A dense tensor of a default value, with other values at some places.")
        .input("sparse_indices: Tindices")
        .input("output_shape: Tindices")
        .input("sparse_values: T")
        .input("default_value: T")
        .output("dense: T")
        .attr("validate_indices: bool = true")
        .attr("T: type")
        .attr("Tindices: {int32, int64}")
        .shape(|c| Ok(vec![c.shape_from(1)]))
        .cpu(per_width!(init, W => {
            let validate = init.bool("validate_indices")?;
            move |ctx: &mut Ctx<'_>| to_dense::<W>(ctx, validate)
        }));
    c.gradient("SparseToDense", |g, dy| {
        let of_values = g.call("GatherNd", &[dy[0], g.input(0)]);
        let all = dy[0].sum(g.range(dy[0].rank_term()), false);
        let of_default = all - of_values.sum(g.range(of_values.rank_term()), false);
        Ok(vec![g.none(), g.none(), of_values, of_default])
    });
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::testing::{Check, check};

    fn dense(indices: &[i32], values: &[f32]) -> Check<'static> {
        check("SparseToDense")
            .input(Tensor::vector(indices))
            .input(Tensor::vector(&[4i32]))
            .input(Tensor::vector(values))
            .input(Tensor::scalar(0f32))
    }

    #[test]
    fn values_go_to_their_places() {
        dense(&[0, 2], &[1., 2.]).gives(Tensor::vector(&[1f32, 0., 2., 0.]));
        check("SparseToDense")
            .input(Tensor::from_slice([2, 2], &[0i64, 1, 1, 0]).unwrap())
            .input(Tensor::vector(&[2i64, 2]))
            .input(Tensor::string("x"))
            .input(Tensor::string("-"))
            .gives(
                Tensor::from_strings([2, 2], ["-", "x", "x", "-"].map(bytes::Bytes::from).to_vec())
                    .unwrap(),
            );
    }

    #[test]
    fn indices_are_checked() {
        let bad = Code::InvalidArgument;
        dense(&[2, 0], &[1., 2.]).fails(bad, "indices[1] = [0] is out of order.");
        dense(&[0, 0], &[1., 2.]).fails(bad, "indices[1] = [0] is repeated");
        dense(&[0, 7], &[1., 2.])
            .fails(bad, "indices[1] = [7] is out of bounds: need 0 <= index < [4]");
        dense(&[0, -1], &[1., 2.])
            .attr("validate_indices", false)
            .fails(bad, "Indices are not valid (out of bounds).  Shape: [4]");
        dense(&[0, 1], &[1., 2., 3.]).fails(bad, "incorrect shape [3], should be [] or [2]");
    }
}
