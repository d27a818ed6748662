//! Gradients of the ops on compressed sparse matrices. The gradient of a sparse matrix has entries
//! only where the matrix has them.

use crate::prelude::*;

/// How a factor enters a product.
#[derive(Clone, Copy, PartialEq)]
enum Turned {
    No,
    Transposed,
    Adjoint,
    Conjugated,
}
use Turned::{Adjoint, Conjugated, No, Transposed};

impl Turned {
    /// How the factor `a` or `b` of the node enters.
    fn of(g: &GradientScope<'_>, factor: char) -> Result<Turned> {
        let is = |what: &str| g.attrs().bool(&format!("{what}_{factor}"));
        Ok(match (is("transpose")?, is("adjoint")?) {
            (_, true) => Adjoint,
            (true, false) => Transposed,
            (false, false) => No,
        })
    }

    fn adjoint(self) -> Turned {
        match self {
            No => Adjoint,
            Transposed => Conjugated,
            Adjoint => No,
            Conjugated => Transposed,
        }
    }

    fn conjugated(self) -> Turned {
        match self {
            No => Conjugated,
            Transposed => Adjoint,
            Adjoint => Transposed,
            Conjugated => No,
        }
    }
}

/// The places, values and shape of a sparse matrix.
fn entries<'g>(g: &GradientScope<'g>, matrix: Term<'g>, dtype: DType) -> Vec<Term<'g>> {
    g.calls_with("CSRSparseMatrixToSparseTensor", &[matrix], Attrs::new().with("type", dtype))
}

fn matrix_of<'g>(g: &GradientScope<'g>, [at, values, shape]: [Term<'g>; 3]) -> Term<'g> {
    g.call("SparseTensorToCSRSparseMatrix", &[at, values, shape])
}

/// Columns `from..to` of places; `to` may be counted from the end.
fn columns<'g>(g: &GradientScope<'g>, at: Term<'g>, from: i64, to: Option<i64>) -> Term<'g> {
    let attrs = Attrs::new()
        .with("begin_mask", if from == 0 { 3i64 } else { 1 })
        .with("end_mask", if to.is_none() { 3i64 } else { 1 });
    let ends = [at, g.ints(&[0, from]), g.ints(&[0, to.unwrap_or(0)]), g.ints(&[1, 1])];
    g.call_with("StridedSlice", &ends, attrs)
}

fn dense_turned<'g>(g: &GradientScope<'g>, x: Term<'g>, turned: Turned) -> Term<'g> {
    match turned {
        No => x,
        Transposed => g.matrix_transpose(x),
        Adjoint => g.adjoint(x),
        Conjugated => x.conj(),
    }
}

/// A sparse matrix times a dense one.
fn product_gradient<'g>(g: &GradientScope<'g>, dy: &[Term<'g>]) -> Result<Vec<Term<'g>>> {
    let (a, b, dtype) = (g.input(0), g.input(1), g.attrs().dtype("T")?);
    let (turned_a, turned_b) = (Turned::of(g, 'a')?, Turned::of(g, 'b')?);
    let dy = if g.attrs().bool("transpose_output")? { g.matrix_transpose(dy[0]) } else { dy[0] };
    let dy = if g.attrs().bool("conjugate_output")? { dy.conj() } else { dy };
    let factor = dense_turned(g, b, turned_b);
    // An entry of the sparse factor's gradient is the inner product of a row of each.
    let (left, right) = match turned_a {
        Transposed => (factor.conj(), dy),
        Adjoint => (factor, dy.conj()),
        _ => (dy, factor.conj()),
    };
    let found = entries(g, a, dtype);
    let (at, shape) = (found[0], found[2]);
    let rows = columns(g, at, 0, Some(-1));
    let batch_and_column = [columns(g, at, 0, Some(-2)), columns(g, at, -1, None)];
    let of_right = g.concat(&batch_and_column, 1);
    let pick = |from: Term<'g>, at: Term<'g>| g.call("GatherNd", &[from, at]);
    let values = (pick(left, rows) * pick(right, of_right)).sum(g.ints(&[-1]), false);
    let da = matrix_of(g, [at, values, shape]);
    // With a sparse factor that must be conjugated alone, the dense one and the product are.
    let of_a = turned_a.adjoint();
    let (dense, is_conjugated) = if of_a == Conjugated { (dy.conj(), true) } else { (dy, false) };
    let is_turned = matches!(turned_b, Transposed | Adjoint);
    let attrs = Attrs::new()
        .with("adjoint_a", of_a == Adjoint)
        .with("transpose_a", of_a == Transposed)
        .with("transpose_output", is_turned)
        .with("conjugate_output", is_conjugated != (turned_b == Adjoint));
    let db = g.call_with("SparseMatrixMatMul", &[a, dense], attrs);
    Ok(vec![da, db])
}

/// A product of two sparse matrices of `dtype`.
fn product<'g>(
    g: &GradientScope<'g>,
    (a, turned_a): (Term<'g>, Turned),
    (b, turned_b): (Term<'g>, Turned),
    dtype: DType,
) -> Term<'g> {
    let plain = |x: Term<'g>, turned: Turned| match turned {
        Conjugated => {
            let attrs = Attrs::new().with("conjugate", true).with("type", dtype);
            (g.call_with("SparseMatrixTranspose", &[x], attrs), Transposed)
        }
        other => (x, other),
    };
    let ((a, turned_a), (b, turned_b)) = (plain(a, turned_a), plain(b, turned_b));
    let attrs = Attrs::new()
        .with("type", dtype)
        .with("transpose_a", turned_a == Transposed)
        .with("adjoint_a", turned_a == Adjoint)
        .with("transpose_b", turned_b == Transposed)
        .with("adjoint_b", turned_b == Adjoint);
    g.call_with("SparseMatrixSparseMatMul", &[a, b], attrs)
}

/// The entries of `x` at the places where `pattern` has some.
fn restricted<'g>(g: &GradientScope<'g>, x: Term<'g>, pattern: Term<'g>, dtype: DType) -> Term<'g> {
    let (found, wanted) = (entries(g, x, dtype), entries(g, pattern, dtype));
    let flat = |entries: &[Term<'g>]| {
        let all = g.integers(&[-1], DType::Int64);
        let places = g.calls("SparseReshape", &[entries[0], entries[2], all])[0];
        g.call("Reshape", &[places, g.ints(&[-1])])
    };
    let (places, wanted_places) = (flat(&found), flat(&wanted));
    // One that no place equals follows the last, so that each search ends at something.
    let none = g.integers(&[i64::MAX], DType::Int64);
    let places = g.concat(&[places, none], 0);
    let row = |x: Term<'g>| g.call("ExpandDims", &[x, g.int(0)]);
    let nearest = g.call("LowerBound", &[row(places), row(wanted_places)]);
    let nearest = g.call("Reshape", &[nearest, g.ints(&[-1])]);
    let pick = |from: Term<'g>, at: Term<'g>| g.call("GatherV2", &[from, at, g.int(0)]);
    let equal = g.call("Equal", &[pick(places, nearest), wanted_places]);
    let kept = g.call("Reshape", &[g.call("Where", &[equal]), g.ints(&[-1])]);
    let values = pick(found[1], pick(nearest, kept));
    matrix_of(g, [pick(wanted[0], kept), values, wanted[2]])
}

fn sparse_product_gradient<'g>(g: &GradientScope<'g>, dy: &[Term<'g>]) -> Result<Vec<Term<'g>>> {
    let (a, b, dy, dtype) = (g.input(0), g.input(1), dy[0], g.attrs().dtype("type")?);
    let (turned_a, turned_b) = (Turned::of(g, 'a')?, Turned::of(g, 'b')?);
    let da = match turned_a {
        Transposed => product(g, (b, turned_b.conjugated()), (dy, Transposed), dtype),
        Adjoint => product(g, (b, turned_b), (dy, Adjoint), dtype),
        _ => product(g, (dy, No), (b, turned_b.adjoint()), dtype),
    };
    let db = match turned_b {
        Transposed => product(g, (dy, Transposed), (a, turned_a.conjugated()), dtype),
        Adjoint => product(g, (dy, Adjoint), (a, turned_a), dtype),
        _ => product(g, (a, turned_a.adjoint()), (dy, No), dtype),
    };
    Ok(vec![restricted(g, da, a, dtype), restricted(g, db, b, dtype)])
}

pub(crate) fn register(c: &mut Catalog) {
    c.gradient("DenseToCSRSparseMatrix", |g, dy| {
        let attrs = Attrs::new().with("type", g.attrs().dtype("T")?);
        Ok(g.only(g.call_with("CSRSparseMatrixToDense", &[dy[0]], attrs)))
    });
    c.gradient("CSRSparseMatrixToDense", |g, dy| {
        let found = entries(g, g.input(0), g.attrs().dtype("type")?);
        let values = g.call("GatherNd", &[dy[0], found[0]]);
        Ok(vec![matrix_of(g, [found[0], values, found[2]])])
    });
    c.gradient("SparseTensorToCSRSparseMatrix", |g, dy| {
        Ok(g.at(1, entries(g, dy[0], g.attrs().dtype("T")?)[1]))
    });
    c.gradient("CSRSparseMatrixToSparseTensor", |g, dy| {
        Ok(vec![matrix_of(g, [g.output(0), dy[1], g.output(2)])])
    });
    c.gradient("SparseMatrixTranspose", |g, dy| {
        Ok(vec![g.call_like("SparseMatrixTranspose", &[dy[0]])])
    });
    c.gradient("SparseMatrixMatMul", product_gradient);
    c.gradient("SparseMatrixSparseMatMul", sparse_product_gradient);
    c.no_gradient(&["SparseMatrixNNZ"]);
}
