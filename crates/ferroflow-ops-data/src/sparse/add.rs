//! SparseAdd, SparseSparseMaximum, SparseSparseMinimum, and the gradients of SparseAdd and
//! SparseSlice: walking two sparse tensors in order.

use super::coo::{Coo, index_matrix, sparse_like};
use crate::prelude::*;
use std::cmp::Ordering;

/// The number of a place in each of two sparse tensors. At least one of them has the place.
type Pair = (Option<usize>, Option<usize>);

/// The places of both, in order. Each of them must be in order.
fn merged(a: &Coo<'_>, b: &Coo<'_>) -> Vec<Pair> {
    let (mut i, mut j, mut pairs) = (0, 0, Vec::new());
    while i < a.len() || j < b.len() {
        let order = match (i < a.len(), j < b.len()) {
            (true, true) => a.at(i).cmp(b.at(j)),
            (true, false) => Ordering::Less,
            _ => Ordering::Greater,
        };
        let pair = (order.is_le().then_some(i), order.is_ge().then_some(j));
        i += usize::from(pair.0.is_some());
        j += usize::from(pair.1.is_some());
        pairs.push(pair);
    }
    pairs
}

fn ensure_same_shape(a: &Coo<'_>, b: &Coo<'_>) -> Result<()> {
    ensure!(
        a.rank() == b.rank(),
        InvalidArgument,
        "Operands do not have the same ranks; got shapes: {} and {}",
        a.rank(),
        b.rank()
    );
    for (d, (x, y)) in a.shape.iter().zip(&b.shape).enumerate() {
        ensure!(
            x == y,
            InvalidArgument,
            "Operands' shapes do not match: got {x} and {y} for dimension {d}"
        );
    }
    Ok(())
}

fn indices_of(a: &Coo<'_>, b: &Coo<'_>, pairs: &[Pair]) -> Result<Tensor> {
    let mut indices = Vec::with_capacity(pairs.len() * a.rank());
    for pair in pairs {
        match *pair {
            (Some(i), _) => indices.extend_from_slice(a.at(i)),
            (_, Some(j)) => indices.extend_from_slice(b.at(j)),
            _ => {}
        }
    }
    index_matrix(&indices, a.rank(), pairs.len())
}

/// Numbers with a magnitude to compare with a threshold.
trait Magnitude: Num {
    fn magnitude(self) -> f64;
}

macro_rules! magnitudes {
    ($($t:ty: |$x:ident| $m:expr;)*) => {$(
        impl Magnitude for $t {
            fn magnitude(self) -> f64 { let $x = self; $m }
        }
    )*};
}
magnitudes! {
    f32: |x| f64::from(f32::abs(x));
    f64: |x| f64::abs(x);
    i8: |x| f64::from(x).abs();
    i16: |x| f64::from(x).abs();
    i32: |x| f64::from(x).abs();
    i64: |x| (x as f64).abs();
    Complex32: |x| f64::from(x.norm());
    Complex64: |x| x.norm();
}

fn add<T: Magnitude>(ctx: &mut Ctx<'_>) -> Result<()> {
    let (ranks, thresh) = ((ctx.input(0)?.shape(), ctx.input(3)?.shape()), ctx.input(6)?);
    if let (&[_, a], &[_, b]) = (ranks.0.dims(), ranks.1.dims()) {
        ensure!(
            a == b,
            InvalidArgument,
            "Input indices must have the same dimension, got {a} and {b}"
        );
    }
    let (a, b) = (Coo::input(ctx, 0)?, Coo::input(ctx, 3)?);
    ensure_same_shape(&a, &b)?;
    ensure!(
        thresh.rank() == 0,
        InvalidArgument,
        "The magnitude threshold must be a scalar: got shape {}",
        thresh.shape()
    );
    let thresh = match thresh.dtype() {
        DType::Float => f64::from(thresh.scalar_value::<f32>()?),
        DType::Double => thresh.scalar_value::<f64>()?,
        _ => thresh.scalar_index()? as f64,
    };
    let (x, y) = (a.values.as_slice::<T>()?, b.values.as_slice::<T>()?);
    let (mut pairs, mut sums) = (merged(&a, &b), Vec::new());
    pairs.retain(|pair| {
        let sum = match *pair {
            (Some(i), Some(j)) => Num::add(x[i], y[j]),
            (Some(i), None) => x[i],
            (None, Some(j)) => y[j],
            (None, None) => return false,
        };
        // A value to which nothing was added stays, however small it is.
        let is_sum = pair.0.is_some() && pair.1.is_some();
        let is_kept = !is_sum || thresh <= sum.magnitude();
        if is_kept {
            sums.push(sum);
        }
        is_kept
    });
    let (indices, shape) = (indices_of(&a, &b, &pairs)?, a.shape.clone());
    ctx.set(0, indices)?;
    ctx.set(1, Tensor::vector(&sums))?;
    ctx.set(2, Tensor::vector(&shape))
}

/// For each row of `of`, the gradient of the row of `sums` to which it was added. Both are in
/// order.
fn grads_of<T: Num>(of: &Tensor, sums: &Tensor, grads: &[T]) -> Result<Vec<T>> {
    let (rank, rows) = (of.shape()[1], of.shape()[0]);
    let (of, sums) = (of.as_slice::<i64>()?, sums.as_slice::<i64>()?);
    let (mut out, mut k) = (vec![<T as Num>::ZERO; rows], 0);
    for (i, to) in out.iter_mut().enumerate() {
        let place = &of[i * rank..(i + 1) * rank];
        while k < grads.len() && sums[k * rank..(k + 1) * rank] < *place {
            k += 1;
        }
        if k < grads.len() && sums[k * rank..(k + 1) * rank] == *place {
            *to = grads[k];
        }
    }
    Ok(out)
}

fn add_grad<T: Num>(ctx: &mut Ctx<'_>) -> Result<()> {
    let (grads, a, b, sums) = (ctx.input(0)?, ctx.input(1)?, ctx.input(2)?, ctx.input(3)?);
    for (t, name) in [(a, "a_indices"), (b, "b_indices"), (sums, "sum_indices")] {
        ensure!(
            t.rank() == 2,
            InvalidArgument,
            "Input {name} should be a matrix, got shape: {}",
            t.shape()
        );
    }
    ensure!(
        grads.rank() == 1,
        InvalidArgument,
        "Input backprop_val_grad should be a vector, got shape: {}",
        grads.shape()
    );
    ensure!(
        a.shape()[1] == b.shape()[1] && b.shape()[1] == sums.shape()[1],
        InvalidArgument,
        "The densified operands should have the same ndims, got {}, {}, {}",
        a.shape()[1],
        b.shape()[1],
        sums.shape()[1]
    );
    ensure!(
        grads.elements() == sums.shape()[0],
        InvalidArgument,
        "# elements of backprop_val_grad and # rows of sum_indices should match (#nnz of sum): got \
         {} and {}",
        grads.elements(),
        sums.shape()[0]
    );
    let grads = grads.as_slice::<T>()?;
    let (da, db) = (grads_of(a, sums, grads)?, grads_of(b, sums, grads)?);
    ctx.set(0, Tensor::vector(&da))?;
    ctx.set(1, Tensor::vector(&db))
}

fn slice_grad<T: Num>(ctx: &mut Ctx<'_>) -> Result<()> {
    let (grads, input, start, output) =
        (ctx.input(0)?, ctx.input(1)?, ctx.input(2)?, ctx.input(3)?);
    ensure!(
        input.rank() == 2 && output.rank() == 2,
        InvalidArgument,
        "Input and output indices should be matrices but received shapes: {} and {}",
        input.shape(),
        output.shape()
    );
    ensure!(
        grads.rank() == 1,
        InvalidArgument,
        "Input backprop_val_grad should be a vector but received shape: {}",
        grads.shape()
    );
    ensure!(
        input.shape()[1] == output.shape()[1],
        InvalidArgument,
        "The input and output should have the same ndims: got: {} and {}",
        input.shape()[1],
        output.shape()[1]
    );
    ensure!(
        output.shape()[0] <= input.shape()[0],
        InvalidArgument,
        "# rows of output_indices should be not greater than of input_indices, got {} and {}",
        output.shape()[0],
        input.shape()[0]
    );
    ensure!(
        grads.elements() == output.shape()[0],
        InvalidArgument,
        "# elements of backprop_val_grad and # rows of output_indices should match (#nnz of sum): \
         got {} and {}",
        grads.elements(),
        output.shape()[0]
    );
    ensure!(
        start.rank() == 1,
        InvalidArgument,
        "Input start should be a vector but received shape {}",
        start.shape()
    );
    let rank = input.shape()[1];
    ensure!(
        start.elements() == rank,
        InvalidArgument,
        "Expected input_start to be a vector of length {rank} but got length {}",
        start.elements()
    );
    let (rows, start) = (input.shape()[0], start.as_slice::<i64>()?);
    let (input, output) = (input.as_slice::<i64>()?, output.as_slice::<i64>()?);
    let grads = grads.as_slice::<T>()?;
    let (mut out, mut k) = (vec![<T as Num>::ZERO; rows], 0);
    for (i, to) in out.iter_mut().enumerate() {
        let is_next = k < grads.len()
            && (0..rank)
                .all(|d| input[i * rank + d].wrapping_sub(start[d]) == output[k * rank + d]);
        if is_next {
            *to = grads[k];
            k += 1;
        }
    }
    ensure!(
        k == grads.len(),
        Internal,
        "Elements of backprop_val_grad aren't all propagated. Num elements:{}, used: {k}",
        grads.len()
    );
    ctx.set(0, Tensor::vector(&out))
}

/// The larger or smaller of two values at every place; a place without a value has 0.
fn extreme<T: Real, const LARGER: bool>(ctx: &mut Ctx<'_>) -> Result<()> {
    let (a, b) = (Coo::input(ctx, 0)?, Coo::input(ctx, 3)?);
    ensure_same_shape(&a, &b)?;
    a.ensure_in_bounds()?;
    b.ensure_in_bounds()?;
    let (x, y) = (a.values.as_slice::<T>()?, b.values.as_slice::<T>()?);
    let pairs = merged(&a, &b);
    let zero = <T as Num>::ZERO;
    let choose = |&(i, j): &Pair| {
        let (p, q) = (i.map_or(zero, |i| x[i]), j.map_or(zero, |j| y[j]));
        if LARGER { Real::max(p, q) } else { Real::min(p, q) }
    };
    let values: Vec<T> = pairs.iter().map(choose).collect();
    let indices = indices_of(&a, &b, &pairs)?;
    ctx.set(0, indices)?;
    ctx.set(1, Tensor::vector(&values))
}

/// Two sparse tensors.
const PAIR: [&str; 6] = [
    "a_indices: int64",
    "a_values: T",
    "a_shape: int64",
    "b_indices: int64",
    "b_values: T",
    "b_shape: int64",
];

pub(crate) fn register(c: &mut Catalog) {
    c.op("SparseAdd")
        .doc("The sum of two sparse tensors, without what is smaller than a threshold.")
        .inputs(&PAIR)
        .input("thresh: Treal")
        .output("sum_indices: int64")
        .output("sum_values: T")
        .output("sum_shape: int64")
        .attr("T: numbertype")
        .attr("Treal: realnumbertype")
        .shape(|c| Ok(sparse_like(c, 0)))
        .cpu(per_dtype!([Float f32, Double f64, Int8 i8, Int16 i16, Int32 i32, Int64 i64,
            Complex64 Complex32, Complex128 Complex64], T => add::<T>));
    c.op("SparseAddGrad")
        .doc("The gradient of SparseAdd.")
        .input("backprop_val_grad: T")
        .input("a_indices: int64")
        .input("b_indices: int64")
        .input("sum_indices: int64")
        .output("a_val_grad: T")
        .output("b_val_grad: T")
        .attr("T: numbertype")
        .shape(|c| {
            let rows = |i: usize| PartialShape::new([c.input(i).dim(0)]);
            Ok(vec![rows(1), rows(2)])
        })
        .cpu(per_dtype!([Float f32, Double f64, Int8 i8, Int16 i16, Int32 i32, Int64 i64,
            Complex64 Complex32, Complex128 Complex64], T => add_grad::<T>));
    c.op("SparseSliceGrad")
        .doc("The gradient of SparseSlice.")
        .input("backprop_val_grad: T")
        .input("input_indices: int64")
        .input("input_start: int64")
        .input("output_indices: int64")
        .output("val_grad: T")
        .attr("T: numbertype")
        .shape(|c| Ok(vec![PartialShape::new([c.input(1).dim(0)])]))
        .cpu(per_dtype!(NUMBER, T => slice_grad::<T>));
    c.op("SparseSparseMaximum")
        .work(work::any)
        .doc("The larger of two sparse tensors, place by place.")
        .inputs(&PAIR)
        .output("output_indices: int64")
        .output("output_values: T")
        .attr("T: realnumbertype")
        .shape(|c| Ok(sparse_like(c, 0)[..2].to_vec()))
        .cpu(per_dtype!(REAL, T => extreme::<T, true>));
    c.op("SparseSparseMinimum")
        .work(work::any)
        .doc("The smaller of two sparse tensors, place by place.")
        .inputs(&PAIR)
        .output("output_indices: int64")
        .output("output_values: T")
        .attr("T: numbertype")
        .shape(|c| Ok(sparse_like(c, 0)[..2].to_vec()))
        .cpu(per_dtype!(REAL, T => extreme::<T, false>));
    c.gradient("SparseAdd", |g, dy| {
        let inputs = [dy[1], g.input(0), g.input(3), g.output(0)];
        let found = g.calls("SparseAddGrad", &inputs);
        let mut all = g.at(1, found[0]);
        all[4] = found[1];
        Ok(all)
    });
    c.no_gradient(&["SparseAddGrad"]);
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::testing::{Check, check};

    fn sparse(c: Check<'static>, places: [i64; 4], values: [f32; 2], width: i64) -> Check<'static> {
        c.input(Tensor::from_slice([2, 2], &places).unwrap())
            .input(Tensor::vector(&values))
            .input(Tensor::vector(&[2, width]))
    }

    fn both(op: &str, width: i64) -> Check<'static> {
        let c = sparse(check(op), [0, 0, 1, 1], [1., 2.], 2);
        sparse(c, [0, 0, 0, 1], [-1., 5.], width)
    }

    #[test]
    fn sums_below_the_threshold_go() {
        let out = both("SparseAdd", 2).input(Tensor::scalar(0f32)).run().unwrap();
        let want = [0i64, 0, 0, 1, 1, 1];
        assert_eq!(out[0], Tensor::from_slice([3, 2], &want).unwrap());
        assert_eq!(out[1], Tensor::vector(&[0f32, 5., 2.]));
        let out = both("SparseAdd", 2).input(Tensor::scalar(0.1f32)).run().unwrap();
        assert_eq!(out[1], Tensor::vector(&[5f32, 2.]));
        both("SparseAdd", 3)
            .input(Tensor::scalar(0f32))
            .fails(Code::InvalidArgument, "got 2 and 3 for dimension 1");
    }

    #[test]
    fn gradients_follow_the_places() {
        let places = |p: &[i64]| Tensor::from_slice([p.len() / 2, 2], p).unwrap();
        let out = check("SparseAddGrad")
            .input(Tensor::vector(&[1f32, 2., 3.]))
            .input(places(&[0, 0, 1, 1]))
            .input(places(&[0, 0, 0, 1]))
            .input(places(&[0, 0, 0, 1, 1, 1]))
            .run()
            .unwrap();
        assert_eq!(out[0], Tensor::vector(&[1f32, 3.]));
        assert_eq!(out[1], Tensor::vector(&[1f32, 2.]));
        check("SparseSliceGrad")
            .input(Tensor::vector(&[5f32, 6.]))
            .input(places(&[0, 0, 0, 2, 1, 1]))
            .input(Tensor::vector(&[0i64, 1]))
            .input(places(&[0, 1, 1, 0]))
            .gives(Tensor::vector(&[0f32, 5., 6.]));
    }

    #[test]
    fn absent_values_are_zero() {
        let out = both("SparseSparseMaximum", 2).run().unwrap();
        assert_eq!(out[1], Tensor::vector(&[1f32, 5., 2.]));
        let out = both("SparseSparseMinimum", 2).run().unwrap();
        assert_eq!(out[1], Tensor::vector(&[-1f32, 0., 0.]));
    }
}
