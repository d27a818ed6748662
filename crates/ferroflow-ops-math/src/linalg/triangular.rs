//! MatrixTriangularSolve and BandedTriangularSolve.

use super::matmul::broadcast_batches;
use super::pieces;
use super::problem::{Field, Linear, adjoint, batched, matrix_parts};
use crate::prelude::*;
use ferroflow_dense::Half;

/// Which half of a matrix is stored, and whether its adjoint is used.
#[derive(Clone, Copy)]
struct Form {
    lower: bool,
    adjoint: bool,
}

impl Form {
    fn new(init: &KernelInit<'_>) -> Result<Form> {
        Ok(Form { lower: init.bool("lower")?, adjoint: init.bool("adjoint")? })
    }
}

/// Solves every batch. `check` validates the sizes; `solve` replaces the right-hand side with the
/// solution.
fn solve_all<T: Linear>(
    ctx: &mut Ctx<'_>,
    check: impl Fn(&Shape, &Shape) -> Result<()>,
    solve: impl Fn(&[T::Wide], (usize, usize), &mut [T::Wide], usize) -> Result<()>,
) -> Result<()> {
    let (a, b) = (ctx.input(0)?, ctx.input(1)?);
    let batches = broadcast_batches(a.shape(), b.shape())?;
    check(a.shape(), b.shape())?;
    let sizes = |s: &Shape| (s[s.rank() - 2], s[s.rank() - 1]);
    let ((rows, n), (_, k)) = (sizes(a.shape()), sizes(b.shape()));
    let shape: Vec<usize> = batches.shape.iter().copied().chain([n, k]).collect();
    let mut out = ctx.alloc(T::DTYPE, shape)?;
    let (x, y) = (a.as_slice::<T>()?, b.as_slice::<T>()?);
    let to = out.as_mut_slice::<T>()?;
    if !to.is_empty() {
        for (i, to) in to.chunks_exact_mut(n * k).enumerate() {
            let (i, j) = (batches.x.at(i), batches.y.at(i));
            let a: Vec<_> = x[i * rows * n..(i + 1) * rows * n].iter().map(|x| x.widen()).collect();
            let mut b: Vec<_> = y[j * n * k..(j + 1) * n * k].iter().map(|x| x.widen()).collect();
            solve(&a, (rows, n), &mut b, k)?;
            to.iter_mut().zip(b).for_each(|(to, x)| *to = T::narrow(x));
        }
    }
    ctx.set(0, out)
}

fn triangular_solve<T: Linear>(form: Form) -> impl Kernel {
    move |ctx: &mut Ctx<'_>| {
        let check = |a: &Shape, b: &Shape| {
            let (rows, cols) = (a[a.rank() - 2], a[a.rank() - 1]);
            ensure!(
                rows == cols,
                InvalidArgument,
                "In[0] matrices in the last dimensions must be square ({cols} =/= {rows})"
            );
            check_rows(form, a, b)
        };
        solve_all::<T>(ctx, check, |a, (_, n), b, k| {
            let conj = form.adjoint.then(|| adjoint(a, n, n));
            let half = if form.lower != form.adjoint { Half::Lower } else { Half::Upper };
            <T::Wide as Field>::solve_triangular(conj.as_deref().unwrap_or(a), n, half, b, k);
            Ok(())
        })
    }
}

fn check_rows(form: Form, a: &Shape, b: &Shape) -> Result<()> {
    let (n, rows) = (a[a.rank() - 1], b[b.rank() - 2]);
    ensure!(
        n == rows,
        InvalidArgument,
        "In[0] mismatch In[1] shape: {n} vs. {rows}: {a} {b} {} {}",
        i32::from(form.lower),
        i32::from(form.adjoint)
    );
    Ok(())
}

/// Solves with a matrix given by its diagonals: the main one first, or last for an upper half.
fn banded_solve<T: Linear>(form: Form) -> impl Kernel {
    move |ctx: &mut Ctx<'_>| {
        let check = |a: &Shape, b: &Shape| {
            ensure!(a[a.rank() - 2] > 0, InvalidArgument, "In[0] must have at least one band");
            check_rows(form, a, b)
        };
        solve_all::<T>(ctx, check, |bands, (count, n), b, k| {
            let main = if form.lower { 0 } else { count - 1 };
            let diagonal = &bands[main * n..(main + 1) * n];
            ensure!(
                diagonal.iter().all(|d| d.modulus() > 0.0),
                InvalidArgument,
                "Input matrix is not invertible."
            );
            // Element `offset` away from the diagonal in row `i`.
            let at = |i: usize, offset: usize| match form.lower {
                true => bands[offset * n + i],
                false => bands[(count - 1 - offset) * n + i],
            };
            let forward = form.lower != form.adjoint;
            for step in 0..n {
                let i = if forward { step } else { n - 1 - step };
                for offset in 1..count.min(step + 1) {
                    let j = if forward { i - offset } else { i + offset };
                    let x = match form.adjoint {
                        true => at(j, offset).conjugate(),
                        false => at(i, offset),
                    };
                    for c in 0..k {
                        b[i * k + c] = b[i * k + c].minus(x.times(b[j * k + c]));
                    }
                }
                let d = if form.adjoint { diagonal[i].conjugate() } else { diagonal[i] };
                b[i * k..(i + 1) * k].iter_mut().for_each(|x| *x = x.over(d));
            }
            Ok(())
        })
    }
}

fn solution_shape(c: &ShapeCtx<'_>) -> Result<Vec<PartialShape>> {
    let ((a, _, n), (b, rows, k)) = (matrix_parts(c, 0)?, matrix_parts(c, 1)?);
    let (Some(a), Some(b)) = (a, b) else {
        return Ok(vec![PartialShape::unknown()]);
    };
    let batch = shape::broadcast_shapes(&PartialShape::new(a), &PartialShape::new(b))?;
    Ok(vec![batched(&batch.dims().map(<[_]>::to_vec), &[n.or(rows), k])])
}

pub(crate) fn register(c: &mut Catalog) {
    let types = [
        ("MatrixTriangularSolve", "T: {bfloat16, double, float, half, complex64, complex128}"),
        ("BatchMatrixTriangularSolve", "T: {double, float}"),
    ];
    for (op, types) in types {
        c.op(op)
            .doc("Solutions of systems with triangular matrices.")
            .input("matrix: T")
            .input("rhs: T")
            .output("output: T")
            .attr("lower: bool = true")
            .attr("adjoint: bool = false")
            .attr(types)
            .expensive()
            .shape(solution_shape)
            .cpu(per_dtype!(
                [Float f32, Double f64, Complex64 Complex32, Complex128 Complex64],
                init, T => triangular_solve::<T>(Form::new(init)?)
            ));
    }
    c.op("BandedTriangularSolve")
        .doc("Solutions of systems with triangular matrices given by their diagonals.")
        .input("matrix: T")
        .input("rhs: T")
        .output("output: T")
        .attr("lower: bool = true")
        .attr("adjoint: bool = false")
        .attr("T: {double, float, half, complex64, complex128}")
        .expensive()
        .shape(solution_shape)
        .cpu(per_dtype!(
            [Float f32, Double f64, Complex64 Complex32, Complex128 Complex64],
            init, T => banded_solve::<T>(Form::new(init)?)
        ));
    c.gradient("MatrixTriangularSolve", |g, dy| {
        let (adjoint, is_lower) = (g.attrs().bool("adjoint")?, g.attrs().bool("lower")?);
        let attrs = Attrs::new().with("adjoint", !adjoint).with("lower", is_lower);
        let db = g.call_with("MatrixTriangularSolve", &[g.input(0), dy[0]], attrs);
        let da = pieces::outer(g, db, g.output(0), adjoint);
        let (below, above) = if is_lower { (-1.0, 0.0) } else { (0.0, -1.0) };
        let band = [below, above].map(|n| g.number(n, DType::Int64));
        let da = g.call("MatrixBandPart", &[da, band[0], band[1]]);
        Ok(pieces::unbroadcast_stacks(g, da, db))
    });
    c.gradient("BandedTriangularSolve", |g, dy| {
        let (adjoint, is_lower) = (g.attrs().bool("adjoint")?, g.attrs().bool("lower")?);
        let attrs = Attrs::new().with("adjoint", !adjoint).with("lower", is_lower);
        let db = g.call_with("BandedTriangularSolve", &[g.input(0), dy[0]], attrs);
        let da = pieces::outer(g, db, g.output(0), adjoint);
        // As many diagonals as there are bands, in the form the op takes them.
        let shape = g.input(0).shape();
        let bands = [shape, g.ints(&[-2]), g.ints(&[-1]), g.ints(&[1])];
        let more = g.call("StridedSlice", &bands) - 1.0;
        let zero = more.zeros_like();
        let k = if is_lower { [-more, zero] } else { [zero, more] };
        let k = g.concat(&k, 0);
        let attrs = Attrs::new().with("align", "LEFT_RIGHT");
        let da = g.call_with("MatrixDiagPartV3", &[da, k, da.number(0.0)], attrs);
        Ok(pieces::unbroadcast_stacks(g, da, db))
    });
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::testing::{Check, check};

    fn mat(m: usize, n: usize, values: &[f64]) -> Tensor {
        Tensor::from_slice([m, n], values).unwrap()
    }

    fn solve(op: &str, a: Tensor, b: &[f64], lower: bool, adjoint: bool) -> Check<'static> {
        let check = check(op).input(a).input(mat(b.len(), 1, b));
        check.attr("lower", lower).attr("adjoint", adjoint)
    }

    #[test]
    fn either_half_is_solved() {
        let op = "MatrixTriangularSolve";
        let a = || mat(2, 2, &[2.0, 9.0, 1.0, 4.0]);
        solve(op, a(), &[2.0, 5.0], true, false).gives(mat(2, 1, &[1.0, 1.0]));
        solve(op, a(), &[2.0, 5.0], false, false).gives(mat(2, 1, &[-4.625, 1.25]));
        solve(op, a(), &[2.0, 5.0], true, true).gives(mat(2, 1, &[0.375, 1.25]));
        let singular = mat(2, 2, &[2.0, 9.0, 1.0, 0.0]);
        let inf = f64::INFINITY;
        solve(op, singular, &[2.0, 5.0], true, false).gives(mat(2, 1, &[1.0, inf]));
        let ones = Tensor::from_slice([3, 2, 2], &[1f64; 12]).unwrap();
        let want = Tensor::from_slice([3, 2, 1], &[1f64, 0.0, 1.0, 0.0, 1.0, 0.0]).unwrap();
        solve(op, ones, &[1.0, 1.0], true, false).gives(want);
    }

    #[test]
    fn sizes_must_agree() {
        let op = "MatrixTriangularSolve";
        let fails = |a: Tensor, b: &[f64], text: &str| {
            solve(op, a, b, true, false).fails(Code::InvalidArgument, text)
        };
        let text = "In[0] matrices in the last dimensions must be square (3 =/= 2)";
        fails(mat(2, 3, &[0.0; 6]), &[0.0; 2], text);
        let text = "In[0] mismatch In[1] shape: 2 vs. 3: [2,2] [3,1] 1 0";
        fails(mat(2, 2, &[0.0; 4]), &[0.0; 3], text);
    }

    #[test]
    fn bands_are_solved() {
        let op = "BandedTriangularSolve";
        let b = [1.0, 2.0, 3.0];
        let lower = || mat(2, 3, &[2.0, 3.0, 4.0, 0.0, 1.0, 1.0]);
        solve(op, lower(), &b, true, false).gives(mat(3, 1, &[0.5, 0.5, 0.625]));
        let back = mat(3, 1, &[0.2916666667, 0.4166666667, 0.75]);
        solve(op, lower(), &b, true, true).gives(back.clone());
        let upper = mat(2, 3, &[1.0, 1.0, 0.0, 2.0, 3.0, 4.0]);
        solve(op, upper, &b, false, false).gives(back);
        let many = mat(4, 3, &[1.0; 12]);
        solve(op, many, &b, true, false).gives(mat(3, 1, &[1.0, 1.0, 1.0]));
        let singular = mat(1, 3, &[1.0, 0.0, 1.0]);
        let text = "Input matrix is not invertible.";
        solve(op, singular, &b, true, false).fails(Code::InvalidArgument, text);
    }
}
