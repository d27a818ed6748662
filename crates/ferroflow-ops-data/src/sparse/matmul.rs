//! SparseTensorDenseMatMul.

use super::coo::Coo;
use crate::prelude::*;
use std::borrow::Cow;

/// Numbers that products are summed in, with their conjugates.
trait Conjugate: Num {
    fn conj(self) -> Self;
}

macro_rules! conjugates {
    ($($t:ty: |$x:ident| $e:expr;)*) => {$(
        impl Conjugate for $t {
            fn conj(self) -> Self { let $x = self; $e }
        }
    )*};
}
conjugates! {
    f32: |x| x;
    f64: |x| x;
    i32: |x| x;
    Complex32: |x| num_complex::Complex::conj(&x);
    Complex64: |x| num_complex::Complex::conj(&x);
}

#[derive(Clone, Copy)]
struct Adjoint {
    a: bool,
    b: bool,
}

/// The sizes of a product: rows, inner dimension, columns.
struct Sizes {
    m: usize,
    k: usize,
    n: usize,
}

fn sizes(ctx: &Ctx<'_>, adjoint: Adjoint) -> Result<Sizes> {
    let (indices, values, shape, b) = (ctx.input(0)?, ctx.input(1)?, ctx.input(2)?, ctx.input(3)?);
    let refuse = |ok: bool, what: &str| {
        if ok { Ok(()) } else { Err(err!(InvalidArgument, "{what}")) }
    };
    refuse(b.rank() == 2, "Tensor 'b' is not a matrix")?;
    refuse(shape.rank() == 1, "Tensor 'a_shape' is not a vector")?;
    refuse(shape.elements() == 2, "Tensor 'a_shape' must have 2 elements")?;
    refuse(values.rank() == 1, "Tensor 'a_values' is not a vector")?;
    refuse(indices.rank() == 2, "Tensor 'a_indices' is not a matrix")?;
    ensure!(
        indices.shape()[0] == values.elements(),
        InvalidArgument,
        "Number of rows of a_indices does not match number of entries in a_values"
    );
    ensure!(
        indices.shape()[1] == 2,
        InvalidArgument,
        "Number of columns of a_indices does not match number of entries in a_shape"
    );
    let a = shape.to_indices()?;
    let whole = Shape::from_dims(&a)?;
    let (m, k) = if adjoint.a { (whole[1], whole[0]) } else { (whole[0], whole[1]) };
    let (inner, n) = match adjoint.b {
        true => (b.shape()[1], b.shape()[0]),
        false => (b.shape()[0], b.shape()[1]),
    };
    ensure!(
        k == inner,
        InvalidArgument,
        "Cannot multiply A and B because inner dimension does not match: {k} vs. {inner}.  Did you \
         forget a transpose?  Dimensions of A: [{m}, {k}).  Dimensions of B: {}",
        b.shape()
    );
    Ok(Sizes { m, k, n })
}

/// `b` as rows of the inner dimension: transposed and conjugated where it is adjoint.
fn rows_of<'a, T: Conjugate>(b: &'a [T], size: &Sizes, is_adjoint: bool) -> Cow<'a, [T]> {
    if !is_adjoint {
        return Cow::Borrowed(b);
    }
    let at = |i: usize| b[(i % size.n) * size.k + i / size.n].conj();
    Cow::Owned((0..size.k * size.n).map(at).collect())
}

fn product<T: Conjugate>(
    sparse: &Coo<'_>,
    values: &[T],
    b: &[T],
    size: &Sizes,
    adjoint: Adjoint,
) -> Result<Vec<T>> {
    let total = Shape::from_dims(&[size.m as i64, size.n as i64])?.checked_elements()?;
    let b = rows_of(b, size, adjoint.b);
    let mut out = Vec::new();
    if out.try_reserve_exact(total).is_err() {
        bail!(ResourceExhausted, "OOM when allocating a product of {total} elements");
    }
    out.resize(total, <T as Num>::ZERO);
    for (i, place) in sparse.places().enumerate() {
        let (row, inner) = if adjoint.a { (place[1], place[0]) } else { (place[0], place[1]) };
        let (row_at, inner_at) = if adjoint.a { (1, 0) } else { (0, 1) };
        ensure!(
            (0..size.k as i64).contains(&inner),
            InvalidArgument,
            "k ({inner}) from index[{i},{inner_at}] out of bounds (>={})",
            size.k
        );
        ensure!(
            (0..size.m as i64).contains(&row),
            InvalidArgument,
            "m ({row}) from index[{i},{row_at}] out of bounds (>={})",
            size.m
        );
        let value = if adjoint.a { values[i].conj() } else { values[i] };
        let to = &mut out[row as usize * size.n..][..size.n];
        let from = &b[inner as usize * size.n..][..size.n];
        for (to, &x) in to.iter_mut().zip(from) {
            *to = to.add(value.mul(x));
        }
    }
    Ok(out)
}

/// Products summed in the element type itself.
fn plain<T: Conjugate>(ctx: &mut Ctx<'_>, adjoint: Adjoint) -> Result<()> {
    let size = sizes(ctx, adjoint)?;
    let sparse = Coo::input(ctx, 0)?;
    let (values, b) = (sparse.values.as_slice::<T>()?, ctx.input(3)?.as_slice::<T>()?);
    let out = product(&sparse, values, b, &size, adjoint)?;
    ctx.set(0, Tensor::from_slice([size.m, size.n], &out)?)
}

/// Products of half types, summed in f32.
fn widened<T: Float<Wide = f32>>(ctx: &mut Ctx<'_>, adjoint: Adjoint) -> Result<()> {
    let size = sizes(ctx, adjoint)?;
    let sparse = Coo::input(ctx, 0)?;
    let wide = |t: &Tensor| -> Result<Vec<f32>> {
        Ok(t.as_slice::<T>()?.iter().map(|x| x.wide()).collect())
    };
    let (values, b) = (wide(sparse.values)?, wide(ctx.input(3)?)?);
    let out = product(&sparse, &values, &b, &size, adjoint)?;
    let out: Vec<T> = out.into_iter().map(T::narrow).collect();
    ctx.set(0, Tensor::from_slice([size.m, size.n], &out)?)
}

fn make(init: &KernelInit<'_>) -> Result<KernelBox> {
    let adjoint = Adjoint { a: init.bool("adjoint_a")?, b: init.bool("adjoint_b")? };
    let dtype = init.dtype("T")?;
    let run: fn(&mut Ctx<'_>, Adjoint) -> Result<()> = match dtype {
        DType::Float => plain::<f32>,
        DType::Double => plain::<f64>,
        DType::Int32 => plain::<i32>,
        DType::Complex64 => plain::<Complex32>,
        DType::Complex128 => plain::<Complex64>,
        DType::Half => widened::<f16>,
        DType::BFloat16 => widened::<bf16>,
        _ => return Err(unsupported(init, "T", dtype)),
    };
    Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| run(ctx, adjoint)))
}

fn shapes(c: &ShapeCtx<'_>) -> Result<Vec<PartialShape>> {
    let a = c.shape_from(2);
    let m = a.dim(usize::from(c.attrs.bool("adjoint_a")?));
    let n = c.input(3).dim(usize::from(!c.attrs.bool("adjoint_b")?));
    Ok(vec![PartialShape::new([m, n])])
}

fn sparse_dense_gradient<'g>(g: &GradientScope<'g>, dy: &[Term<'g>]) -> Result<Vec<Term<'g>>> {
    let (at, values, shape, b, dy) = (g.input(0), g.input(1), g.input(2), g.input(3), dy[0]);
    let (adjoint_a, adjoint_b) = (g.attrs().bool("adjoint_a")?, g.attrs().bool("adjoint_b")?);
    let attrs = Attrs::new().with("adjoint_a", !adjoint_a);
    let db = g.call_with("SparseTensorDenseMatMul", &[at, values, shape, dy], attrs);
    let db = if adjoint_b { g.adjoint(db) } else { db };
    let column = |i: i64| {
        let attrs = Attrs::new().with("shrink_axis_mask", 2i64).with("begin_mask", 1i64);
        let attrs = attrs.with("end_mask", 1i64);
        let ends = [at, g.ints(&[0, i]), g.ints(&[0, i + 1]), g.ints(&[1, 1])];
        g.call_with("StridedSlice", &ends, attrs)
    };
    let (of_dy, of_b) = if adjoint_a { (column(1), column(0)) } else { (column(0), column(1)) };
    let pick = |from: Term<'g>, at: Term<'g>| g.call("GatherV2", &[from, at, g.int(0)]);
    let b = if adjoint_b { g.adjoint(b) } else { b };
    // The inner product of a row of each.
    let (left, right) = (pick(dy, of_dy), pick(b, of_b));
    let product = if adjoint_a { left.conj() * right } else { left * right.conj() };
    Ok(vec![g.none(), product.sum(g.ints(&[-1]), false), g.none(), db])
}

pub(crate) fn register(c: &mut Catalog) {
    c.op("SparseTensorDenseMatMul")
        .work(work::any)
        .doc("The product of a sparse matrix and a dense one.")
        .input("a_indices: Tindices")
        .input("a_values: T")
        .input("a_shape: int64")
        .input("b: T")
        .output("product: T")
        .attr("T: type")
        .attr("Tindices: {int32, int64} = DT_INT64")
        .attr("adjoint_a: bool = false")
        .attr("adjoint_b: bool = false")
        .shape(shapes)
        .expensive()
        .cpu(make);
    c.gradient("SparseTensorDenseMatMul", sparse_dense_gradient);
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::testing::{Check, check};

    fn times(places: [i64; 4], b: Tensor) -> Check<'static> {
        check("SparseTensorDenseMatMul")
            .input(Tensor::from_slice([2, 2], &places).unwrap())
            .input(Tensor::vector(&[1f32, 2.]))
            .input(Tensor::vector(&[2i64, 3]))
            .input(b)
    }

    #[test]
    fn a_sparse_matrix_times_a_dense_one() {
        let b = || Tensor::from_slice([3, 2], &[1f32, 2., 3., 4., 5., 6.]).unwrap();
        let want = Tensor::from_slice([2, 2], &[1f32, 2., 10., 12.]).unwrap();
        times([0, 0, 1, 2], b()).gives(want.clone());
        let turned = Tensor::from_slice([2, 3], &[1f32, 3., 5., 2., 4., 6.]).unwrap();
        times([0, 0, 1, 2], turned).attr("adjoint_b", true).gives(want);
        let square = Tensor::from_slice([2, 2], &[1f32, 2., 3., 4.]).unwrap();
        times([0, 0, 1, 2], square.clone())
            .attr("adjoint_a", true)
            .gives(Tensor::from_slice([3, 2], &[1f32, 2., 0., 0., 6., 8.]).unwrap());
        times([0, 0, 1, 2], square)
            .fails(Code::InvalidArgument, "inner dimension does not match: 3 vs. 2");
        times([0, 0, 1, 7], b()).fails(Code::InvalidArgument, "k (7) from index[1,1]");
        times([0, 0, -1, 1], b()).fails(Code::InvalidArgument, "m (-1) from index[1,0]");
    }
}
