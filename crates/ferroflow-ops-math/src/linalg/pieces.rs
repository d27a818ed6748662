//! Formulas that the gradients of matrix ops share.

use crate::prelude::*;

/// `-(a @ b^H)`, or the other way round when the matrix was taken adjoint.
pub(crate) fn outer<'g>(
    g: &GradientScope<'g>,
    of_b: Term<'g>,
    solution: Term<'g>,
    adjoint: bool,
) -> Term<'g> {
    let (left, right) = if adjoint { (solution, of_b) } else { (of_b, solution) };
    -g.batch_matmul(left, right, (false, true))
}

/// Gradients of two stacks of matrices that were broadcast against each other.
pub(crate) fn unbroadcast_stacks<'g>(
    g: &GradientScope<'g>,
    da: Term<'g>,
    db: Term<'g>,
) -> Vec<Term<'g>> {
    let (a, b) = (g.input(0), g.input(1));
    let batch_of = |t: Term<'g>| {
        let dims = t.static_shape().known()?.to_i64s();
        Some(dims.get(..dims.len().checked_sub(2)?)?.to_vec())
    };
    if let (Some(x), Some(y)) = (batch_of(a), batch_of(b))
        && x == y
    {
        return vec![da, db];
    }
    let batch = |t: Term<'g>| {
        let attrs = Attrs::new().with("begin_mask", 1i64);
        let ends = [t.shape(), g.ints(&[0]), g.ints(&[-2]), g.ints(&[1])];
        g.call_with("StridedSlice", &ends, attrs)
    };
    let axes = g.calls("BroadcastGradientArgs", &[batch(a), batch(b)]);
    vec![da.sum(axes[0], false).reshape(a.shape()), db.sum(axes[1], false).reshape(b.shape())]
}

/// Columns `from..to` of matrices; `None` means the end.
pub(crate) fn columns<'g>(
    g: &GradientScope<'g>,
    x: Term<'g>,
    from: i64,
    to: Option<i64>,
) -> Term<'g> {
    let attrs = Attrs::new()
        .with("ellipsis_mask", 1i64)
        .with("end_mask", if to.is_none() { 2i64 } else { 0 });
    let ends = [x, g.ints(&[0, from]), g.ints(&[0, to.unwrap_or(0)]), g.ints(&[1, 1])];
    g.call_with("StridedSlice", &ends, attrs)
}

/// Rows `from..to` of matrices; `None` means the end.
pub(crate) fn rows<'g>(g: &GradientScope<'g>, x: Term<'g>, from: i64, to: Option<i64>) -> Term<'g> {
    let all = 4;
    let attrs = Attrs::new()
        .with("ellipsis_mask", 1i64)
        .with("begin_mask", all)
        .with("end_mask", if to.is_none() { 2 | all } else { all });
    let ends = [x, g.ints(&[0, from, 0]), g.ints(&[0, to.unwrap_or(0), 0]), g.ints(&[1, 1, 1])];
    g.call_with("StridedSlice", &ends, attrs)
}

/// Matrices with every row moved up by one, the last being zero; or down, the first being zero.
pub(crate) fn shifted<'g>(g: &GradientScope<'g>, x: Term<'g>, up: bool) -> Term<'g> {
    let zeros = rows(g, x, 0, Some(1)).zeros_like();
    match up {
        true => g.concat(&[rows(g, x, 1, None), zeros], -2),
        false => g.concat(&[zeros, rows(g, x, 0, Some(-1))], -2),
    }
}

/// `1 / x`, and 0 where `x` is.
pub(crate) fn safe_reciprocal(x: Term<'_>) -> Term<'_> {
    x * (x * x + 1e-20).reciprocal()
}

/// For all pairs of a vector's elements the reciprocal of their difference, zero on the diagonal.
pub(crate) fn reciprocal_gaps<'g>(g: &GradientScope<'g>, e: Term<'g>) -> Term<'g> {
    let gaps = safe_reciprocal(e.expand_dims(-2) - e.expand_dims(-1));
    g.call("MatrixSetDiag", &[gaps, e.zeros_like()])
}

/// Identity matrices like the square matrices `x`.
pub(crate) fn identity_like(x: Term<'_>) -> Term<'_> {
    x.apply("MatrixDiagPart").ones_like().apply("MatrixDiag")
}

/// The lower triangle with half the diagonal.
pub(crate) fn lower_half<'g>(g: &GradientScope<'g>, x: Term<'g>) -> Term<'g> {
    let half = x.apply("MatrixDiagPart") * 0.5;
    lower(g, g.call("MatrixSetDiag", &[x, half]))
}

/// The lower triangle.
pub(crate) fn lower<'g>(g: &GradientScope<'g>, x: Term<'g>) -> Term<'g> {
    let [minus, zero] = [-1.0, 0.0].map(|n| g.number(n, DType::Int64));
    g.call("MatrixBandPart", &[x, minus, zero])
}
