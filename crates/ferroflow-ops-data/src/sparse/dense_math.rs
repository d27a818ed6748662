//! Arithmetic between sparse and dense tensors: SparseTensorDenseAdd, SparseDenseCwiseAdd, Mul and
//! Div, and SparseSoftmax.

use super::coo::{Coo, list};
use crate::prelude::*;

fn dense_add<T: Num>(ctx: &mut Ctx<'_>) -> Result<()> {
    let mut out = ctx.take_or_copy(3)?;
    let sparse = Coo::input(ctx, 0)?;
    ensure!(
        sparse.rank() == out.rank(),
        InvalidArgument,
        "Two operands have different ranks: {} vs. {}",
        sparse.rank(),
        out.rank()
    );
    for (d, (&x, &y)) in sparse.shape.iter().zip(out.shape().iter()).enumerate() {
        ensure!(
            x == y as i64,
            InvalidArgument,
            "Dimension {d} does not equal (no broadcasting is supported): sparse side {x} vs dense \
             side {y}"
        );
    }
    let strides = out.shape().strides();
    let values = sparse.values.as_slice::<T>()?;
    let shape = out.shape().clone();
    let to = out.as_mut_slice::<T>()?;
    for (i, place) in sparse.places().enumerate() {
        for (d, (&x, &dim)) in place.iter().zip(shape.iter()).enumerate() {
            ensure!(
                usize::try_from(x).is_ok_and(|x| x < dim),
                InvalidArgument,
                "Sparse tensor has an invalid index on dimension {d}: a_indices({i},{d}) = {x}, \
                 dense tensor shape: {}",
                shape.iter().map(usize::to_string).collect::<Vec<_>>().join(" ")
            );
        }
        let at: usize = place.iter().zip(&strides).map(|(&x, s)| x as usize * s).sum();
        to[at] = Num::add(to[at], values[i]);
    }
    ctx.set(0, out)
}

/// `f(value, the dense value at its place)`; the dense side broadcasts to the sparse one.
fn cwise<T: Real>(ctx: &mut Ctx<'_>, f: fn(T, T) -> T, is_div: bool) -> Result<()> {
    let (sparse, dense) = (Coo::input(ctx, 0)?, ctx.input(3)?);
    let lead = sparse.rank().checked_sub(dense.rank());
    let fits = lead.is_some_and(|lead| {
        let dims = dense.shape().iter().zip(&sparse.shape[lead..]);
        dims.into_iter().all(|(&d, &s)| d == 1 || d as i64 == s)
    });
    ensure!(
        fits,
        InvalidArgument,
        "SparseDenseBinaryOpShared broadcasts dense to sparse only; got incompatible shapes: {} \
         vs. {}",
        list(&sparse.shape),
        dense.shape()
    );
    let lead = lead.unwrap_or(0);
    sparse.ensure_in_bounds()?;
    let (x, y) = (sparse.values.as_slice::<T>()?, dense.as_slice::<T>()?);
    ensure!(
        !is_div || y.iter().all(|&y| y != <T as Num>::ZERO),
        InvalidArgument,
        "SparseDenseCwiseDiv cannot divide by zero,but input dense tensor contains zero "
    );
    let strides = dense.shape().strides();
    let at = |place: &[i64]| -> usize {
        let dims = (0..dense.rank()).filter(|&d| dense.shape().dims()[d] != 1);
        dims.map(|d| place[lead + d] as usize * strides[d]).sum()
    };
    let out: Vec<T> = sparse.places().zip(x).map(|(place, &x)| f(x, y[at(place)])).collect();
    ctx.set(0, Tensor::vector(&out))
}

/// Softmax over the last dimension of the stored values.
fn softmax<T: Float>(ctx: &mut Ctx<'_>) -> Result<()> {
    let sparse = Coo::input(ctx, 0)?;
    ensure!(
        sparse.rank() >= 2,
        InvalidArgument,
        "Input should have rank >= 2, but received shape: {}",
        sparse.shape.iter().map(i64::to_string).collect::<Vec<_>>().join(" ")
    );
    sparse.ensure_in_bounds()?;
    let values: Vec<f64> = sparse.values.as_slice::<T>()?.iter().map(|x| x.to_f64()).collect();
    let row = |i: usize| &sparse.at(i)[..sparse.rank() - 1];
    let mut out = vec![T::default(); values.len()];
    let mut from = 0;
    while from < values.len() {
        let to = (from..values.len()).find(|&i| row(i) != row(from)).unwrap_or(values.len());
        let largest = values[from..to].iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let powers: Vec<f64> = values[from..to].iter().map(|x| (x - largest).exp()).collect();
        let sum: f64 = powers.iter().sum();
        for (to, p) in out[from..to].iter_mut().zip(powers) {
            *to = T::from_f64(p / sum);
        }
        from = to;
    }
    ctx.set(0, Tensor::vector(&out))
}

/// Which element of the dense operand belongs to each value of the sparse one, and its value.
fn matching<'g>(g: &GradientScope<'g>) -> (Term<'g>, Term<'g>) {
    let (at, shape, dense) = (g.input(0), g.input(2), g.input(3));
    let of_dense = dense.shape_as(DType::Int64);
    let more = (shape.size() - of_dense.size()).expand_dims(0);
    let ones = g.call("Fill", &[more, g.number(1.0, DType::Int64)]);
    let scale = shape.with("FloorDiv", g.concat(&[ones, of_dense], 0));
    let scaled = at.with("FloorDiv", scale);
    let begin = g.concat(&[g.ints(&[0]), more], 0);
    let at = g.call("Slice", &[scaled, begin, g.ints(&[-1, -1])]);
    (at, g.call("GatherNd", &[dense, at]))
}

/// Values summed up where they belong in the dense operand.
fn summed_at<'g>(g: &GradientScope<'g>, at: Term<'g>, values: Term<'g>) -> Term<'g> {
    g.call("ScatterNd", &[at, values, g.input(3).shape_as(DType::Int64)])
}

pub(crate) fn register(c: &mut Catalog) {
    c.op("SparseTensorDenseAdd")
        .doc("A dense tensor with a sparse one added.")
        .input("a_indices: Tindices")
        .input("a_values: T")
        .input("a_shape: Tindices")
        .input("b: T")
        .output("output: T")
        .attr("T: numbertype")
        .attr("Tindices: {int32, int64}")
        .shape(|c| Ok(vec![c.input(3)]))
        .cpu(per_dtype!(NUMBER, T => dense_add::<T>));
    for (op, doc) in [
        ("SparseDenseCwiseAdd", "The values of a sparse tensor plus a dense one at their places."),
        ("SparseDenseCwiseMul", "The values of a sparse tensor times a dense one at their places."),
        ("SparseDenseCwiseDiv", "The values of a sparse tensor by a dense one at their places."),
    ] {
        let b = c
            .op(op)
            .doc(doc)
            .input("sp_indices: int64")
            .input("sp_values: T")
            .input("sp_shape: int64")
            .input("dense: T")
            .output("output: T")
            .attr("T: numbertype")
            .shape(|c| Ok(vec![PartialShape::new([c.input(0).dim(0)])]));
        match op {
            "SparseDenseCwiseAdd" => b.cpu(per_dtype!(REAL, T => |ctx: &mut Ctx<'_>| {
                cwise::<T>(ctx, <T as Num>::add, false)
            })),
            "SparseDenseCwiseMul" => b.cpu(per_dtype!(REAL, T => |ctx: &mut Ctx<'_>| {
                cwise::<T>(ctx, <T as Num>::mul, false)
            })),
            _ => b.cpu(per_dtype!(REAL, T => |ctx: &mut Ctx<'_>| {
                cwise::<T>(ctx, <T as Num>::div, true)
            })),
        };
    }
    c.op("SparseSoftmax")
        .doc("Softmax over the last dimension of a sparse tensor, of the values there are.")
        .input("sp_indices: int64")
        .input("sp_values: T")
        .input("sp_shape: int64")
        .output("output: T")
        .attr("T: {half, float, double}")
        .shape(|c| Ok(vec![PartialShape::new([c.input(0).dim(0)])]))
        .cpu(per_dtype!([Half f16, Float f32, Double f64], T => softmax::<T>));
    c.gradient("SparseTensorDenseAdd", |g, dy| {
        let of_values = g.call("GatherNd", &[dy[0], g.input(0)]);
        Ok(vec![g.none(), of_values, g.none(), dy[0]])
    });
    c.gradient("SparseDenseCwiseMul", |g, dy| {
        let (at, dense) = matching(g);
        let into = dy[0] * g.input(1);
        Ok(vec![g.none(), dy[0] * dense, g.none(), summed_at(g, at, into)])
    });
    c.gradient("SparseDenseCwiseDiv", |g, dy| {
        let (at, dense) = matching(g);
        let into = dy[0] * (-g.input(1) / dense.square());
        Ok(vec![g.none(), dy[0] / dense, g.none(), summed_at(g, at, into)])
    });
    c.gradient("SparseSoftmax", |g, dy| {
        let (at, shape, y) = (g.input(0), g.input(2), g.output(0));
        let attrs = Attrs::new().with("keep_dims", true);
        let sums = [at, y * dy[0], shape, g.ints(&[-1])];
        let sums = -g.call_with("SparseReduceSum", &sums, attrs);
        let dx = g.call("SparseDenseCwiseAdd", &[at, dy[0], shape, sums]) * y;
        Ok(g.at(1, dx))
    });
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::testing::{Check, check};

    fn diagonal(op: &str) -> Check<'static> {
        check(op)
            .input(Tensor::from_slice([2, 2], &[0i64, 0, 1, 1]).unwrap())
            .input(Tensor::vector(&[1f32, 2.]))
            .input(Tensor::vector(&[2i64, 2]))
    }

    #[test]
    fn values_meet_dense_ones() {
        let dense = Tensor::from_slice([2, 2], &[1f32, 2., 3., 4.]).unwrap();
        diagonal("SparseTensorDenseAdd")
            .input(dense)
            .gives(Tensor::from_slice([2, 2], &[2f32, 2., 3., 6.]).unwrap());
        let row = || Tensor::vector(&[10f32, 20.]);
        diagonal("SparseDenseCwiseAdd").input(row()).gives(Tensor::vector(&[11f32, 22.]));
        diagonal("SparseDenseCwiseMul").input(row()).gives(Tensor::vector(&[10f32, 40.]));
        diagonal("SparseDenseCwiseDiv").input(row()).gives(Tensor::vector(&[0.1f32, 0.1]));
        diagonal("SparseDenseCwiseMul")
            .input(Tensor::vector(&[1f32, 2., 3.]))
            .fails(Code::InvalidArgument, "incompatible shapes: [2,2] vs. [3]");
    }

    #[test]
    fn rows_sum_to_one() {
        check("SparseSoftmax")
            .input(Tensor::from_slice([3, 2], &[0i64, 0, 0, 1, 1, 1]).unwrap())
            .input(Tensor::vector(&[1f32, 2., 3.]))
            .input(Tensor::vector(&[2i64, 2]))
            .gives(Tensor::vector(&[0.26894143f32, 0.7310586, 1.]));
    }
}
