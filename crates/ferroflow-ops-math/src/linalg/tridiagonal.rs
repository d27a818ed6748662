//! TridiagonalSolve and TridiagonalMatMul.

use super::pieces;
use super::problem::{Field, Linear, Problem};
use crate::prelude::*;

struct TridiagonalSolve<T> {
    pivoting: bool,
    perturb: bool,
    marker: std::marker::PhantomData<T>,
}

/// Rows of the diagonals: above, on and below the main one.
struct Diagonals<'a, W> {
    upper: &'a [W],
    main: &'a [W],
    lower: &'a [W],
}

impl<T: Linear> Kernel for TridiagonalSolve<T> {
    fn compute(&self, ctx: &mut Ctx<'_>) -> Result<()> {
        let problem = Problem::<T>::new(ctx, 2)?;
        let [(diagonals, n), (rows, k)] = problem.sizes[..] else {
            bail!(Internal, "a system has two operands");
        };
        ensure!(
            diagonals == 3,
            InvalidArgument,
            "Expected diagonals to be provided as a matrix with 3 rows, got {diagonals} rows."
        );
        ensure!(
            n == rows,
            InvalidArgument,
            "Expected the same number of left-hand sides and right-hand sides, got {n} and {rows}."
        );
        let mut out = problem.solve::<T>(&[vec![n, k]], |mut inputs| {
            let (mut b, a) = (inputs.remove(1), inputs.remove(0));
            let a = Diagonals { upper: &a[..n], main: &a[n..2 * n], lower: &a[2 * n..] };
            let solved = match self.pivoting {
                true => eliminate_with_pivots(&a, &mut b, n, k, self.perturb),
                false => eliminate(&a, &mut b, n, k),
            };
            if solved.is_none() {
                b.fill(<T::Wide as Field>::from_real(f64::NAN));
            }
            Ok(vec![b])
        })?;
        ctx.set(0, out.remove(0))
    }
}

/// `b[to] -= factor * b[from]`, row by row of `k`.
fn subtract<W: Field>(b: &mut [W], to: usize, from: usize, factor: W, k: usize) {
    for c in 0..k {
        b[to * k + c] = b[to * k + c].minus(factor.times(b[from * k + c]));
    }
}

fn scale<W: Field>(b: &mut [W], row: usize, pivot: W, k: usize) {
    b[row * k..(row + 1) * k].iter_mut().for_each(|x| *x = x.over(pivot));
}

/// Elimination in order; `None` at a zero pivot.
fn eliminate<W: Field>(a: &Diagonals<'_, W>, b: &mut [W], n: usize, k: usize) -> Option<()> {
    let mut upper = vec![W::ZERO; n];
    for i in 0..n {
        let mut pivot = a.main[i];
        if i > 0 {
            pivot = pivot.minus(a.lower[i].times(upper[i - 1]));
            subtract(b, i, i - 1, a.lower[i], k);
        }
        if pivot.modulus() == 0.0 {
            return None;
        }
        upper[i] = a.upper[i].over(pivot);
        scale(b, i, pivot, k);
    }
    for i in (0..n.saturating_sub(1)).rev() {
        subtract(b, i, i + 1, upper[i], k);
    }
    Some(())
}

/// Elimination that swaps neighbouring rows for the larger pivot, which fills a second upper
/// diagonal. `None` at a zero pivot, unless it may be perturbed.
fn eliminate_with_pivots<W: Field>(
    a: &Diagonals<'_, W>,
    b: &mut [W],
    n: usize,
    k: usize,
    perturb: bool,
) -> Option<()> {
    let at = |row: &[W], i: usize| row.get(i).copied().unwrap_or(W::ZERO);
    let mut rows = vec![[W::ZERO; 3]; n];
    let mut current = [at(a.main, 0), at(a.upper, 0), W::ZERO];
    for i in 0..n {
        if i + 1 < n {
            let next_upper = if i + 2 < n { a.upper[i + 1] } else { W::ZERO };
            let mut next = [a.lower[i + 1], a.main[i + 1], next_upper];
            if next[0].modulus() > current[0].modulus() {
                std::mem::swap(&mut current, &mut next);
                (0..k).for_each(|c| b.swap(i * k + c, (i + 1) * k + c));
            }
            let current_pivot = pivot(current[0], perturb)?;
            let factor = next[0].over(current_pivot);
            rows[i] = [current_pivot, current[1], current[2]];
            let rest = [1, 2].map(|j| next[j].minus(factor.times(current[j])));
            subtract(b, i + 1, i, factor, k);
            current = [rest[0], rest[1], W::ZERO];
        } else {
            rows[i] = [pivot(current[0], perturb)?, W::ZERO, W::ZERO];
        }
    }
    for i in (0..n).rev() {
        for j in 1..3 {
            if i + j < n {
                subtract(b, i, i + j, rows[i][j], k);
            }
        }
        scale(b, i, rows[i][0], k);
    }
    Some(())
}

fn pivot<W: Field>(x: W, perturb: bool) -> Option<W> {
    match x.modulus() > 0.0 {
        true => Some(x),
        false => perturb.then(|| W::from_real(f64::EPSILON)),
    }
}

fn tridiagonal_matmul<T: Linear>(ctx: &mut Ctx<'_>) -> Result<()> {
    let problem = Problem::<T>::new(ctx, 4)?;
    let (n, k) = problem.sizes[3];
    let names = ["superdiagonal", "main diagonal", "subdiagonal"];
    for (name, size) in names.iter().zip(&problem.sizes) {
        ensure!(*size == (1, n), InvalidArgument, "Invalid {name} shape.");
    }
    let mut out = problem.solve::<T>(&[vec![n, k]], |inputs| {
        let [upper, main, lower, b] = &inputs[..] else {
            bail!(Internal, "a product has four operands");
        };
        let mut y = vec![<T::Wide as Field>::ZERO; n * k];
        for i in 0..n {
            for c in 0..k {
                let mut sum = main[i].times(b[i * k + c]);
                if i > 0 {
                    sum = sum.plus(lower[i].times(b[(i - 1) * k + c]));
                }
                if i + 1 < n {
                    sum = sum.plus(upper[i].times(b[(i + 1) * k + c]));
                }
                y[i * k + c] = sum;
            }
        }
        Ok(vec![y])
    })?;
    ctx.set(0, out.remove(0))
}

/// The shape of the last input.
fn rhs_shape(c: &ShapeCtx<'_>) -> Result<Vec<PartialShape>> {
    Ok(vec![c.inputs.last().cloned().unwrap_or_default()])
}

/// Rows moved left by one element, the last being zero; or right, the first being zero.
fn shift_columns<'g>(g: &GradientScope<'g>, x: Term<'g>, left: bool) -> Term<'g> {
    let zero = pieces::columns(g, x, 0, Some(1)).zeros_like();
    match left {
        true => g.concat(&[pieces::columns(g, x, 1, None), zero], -1),
        false => g.concat(&[zero, pieces::columns(g, x, 0, Some(-1))], -1),
    }
}

pub(crate) fn register(c: &mut Catalog) {
    c.op("TridiagonalSolve")
        .doc("Solutions of systems with tridiagonal matrices; NaN where there is none.")
        .input("diagonals: T")
        .input("rhs: T")
        .output("output: T")
        .attr("partial_pivoting: bool = true")
        .attr("perturb_singular: bool = false")
        .attr("T: {double, float, complex64, complex128}")
        .shape(rhs_shape)
        .cpu(per_dtype!(
            [Float f32, Double f64, Complex64 Complex32, Complex128 Complex64],
            init, T => TridiagonalSolve::<T> {
                pivoting: init.bool("partial_pivoting")?,
                perturb: init.bool("perturb_singular")?,
                marker: std::marker::PhantomData,
            }
        ));
    c.op("TridiagonalMatMul")
        .doc("Products of tridiagonal and dense matrices.")
        .input("superdiag: T")
        .input("maindiag: T")
        .input("subdiag: T")
        .input("rhs: T")
        .output("output: T")
        .attr("T: {double, float, complex64, complex128}")
        .shape(rhs_shape)
        .cpu(per_dtype!(
            [Float f32, Double f64, Complex64 Complex32, Complex128 Complex64],
            T => tridiagonal_matmul::<T>
        ));
    c.gradient("TridiagonalMatMul", |g, dy| {
        let [above, main, below] = [0, 1, 2].map(|i| g.adjoint(g.input(i)));
        let (rhs, dy) = (g.input(3).conj(), dy[0]);
        let last = g.ints(&[-1]);
        let d_rhs = pieces::shifted(g, above * dy, false)
            + main * dy
            + pieces::shifted(g, below * dy, true);
        Ok(vec![
            (pieces::shifted(g, rhs, true) * dy).sum(last, false).expand_dims(-2),
            (rhs * dy).sum(last, false).expand_dims(-2),
            (pieces::shifted(g, rhs, false) * dy).sum(last, false).expand_dims(-2),
            d_rhs,
        ])
    });
    c.gradient("TridiagonalSolve", |g, dy| {
        let (diagonals, x) = (g.input(0), g.output(0));
        // The matrix transposed: its diagonals change places, each by one element.
        let [above, main, below] = [0, 1, 2].map(|i| pieces::rows(g, diagonals, i, Some(i + 1)));
        let transposed =
            g.concat(&[shift_columns(g, below, true), main, shift_columns(g, above, false)], -2);
        let d_rhs = g.call_like("TridiagonalSolve", &[transposed, dy[0]]);
        let last = g.ints(&[-1]);
        let parts = [
            (d_rhs * pieces::shifted(g, x, true)).sum(last, false),
            (d_rhs * x).sum(last, false),
            (d_rhs * pieces::shifted(g, x, false)).sum(last, false),
        ];
        let packed = g.call_with("Pack", &parts, Attrs::new().with("axis", -2i64));
        Ok(vec![-packed, d_rhs])
    });
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::testing::{Check, check};

    fn mat(m: usize, n: usize, values: &[f64]) -> Tensor {
        Tensor::from_slice([m, n], values).unwrap()
    }

    fn solve(diagonals: &[f64], b: &[f64], pivoting: bool) -> Check<'static> {
        let n = b.len();
        let check = check("TridiagonalSolve").input(mat(3, n, diagonals)).input(mat(n, 1, b));
        check.attr("partial_pivoting", pivoting)
    }

    #[test]
    fn systems_are_solved_with_and_without_pivots() {
        let diagonals = [1.0, 2.0, 0.0, 4.0, 5.0, 6.0, 0.0, 1.0, 1.0];
        let want = mat(3, 1, &[0.2075471698, 0.1698113208, 0.4716981132]);
        for pivoting in [true, false] {
            solve(&diagonals, &[1.0, 2.0, 3.0], pivoting).gives(want.clone());
        }
        // A zero on the diagonal needs pivots.
        let swap = [1.0, 0.0, 0.0, 0.0, 0.0, 1.0];
        let (nan, b) = (f64::NAN, [2.0, 3.0]);
        solve(&swap, &b, true).gives(mat(2, 1, &[3.0, 2.0]));
        solve(&swap, &b, false).gives(mat(2, 1, &[nan, nan]));
        let singular = [1.0, 0.0, 1.0, 1.0, 0.0, 1.0];
        solve(&singular, &[2.0, 2.0], true).gives(mat(2, 1, &[nan, nan]));
        let perturbed = solve(&singular, &[2.0, 2.0], true).attr("perturb_singular", true);
        perturbed.gives(mat(2, 1, &[2.0, 0.0]));
        solve(&[0.0, 4.0, 0.0], &[2.0], true).gives(mat(1, 1, &[0.5]));
    }

    #[test]
    fn larger_systems_agree_with_their_product() {
        let n = 9;
        let diagonal = |k: usize| -> Vec<f64> {
            (0..n).map(|i| ((i * 7 + k * 5) % 11) as f64 - 4.0).collect()
        };
        let [upper, main, lower] = [0, 1, 2].map(diagonal);
        let x = mat(n, 1, &diagonal(3));
        let b = check("TridiagonalMatMul")
            .input(mat(1, n, &upper))
            .input(mat(1, n, &main))
            .input(mat(1, n, &lower))
            .input(x.clone())
            .run()
            .unwrap()
            .remove(0);
        let diagonals = mat(3, n, &[upper, main, lower].concat());
        check("TridiagonalSolve").input(diagonals).input(b).gives(x);
    }

    #[test]
    fn sizes_must_agree() {
        let fails = |a: [usize; 2], b: [usize; 2], text: &str| {
            let zeros = |dims: [usize; 2]| Tensor::zeros(DType::Double, dims).unwrap();
            let check = check("TridiagonalSolve").input(zeros(a)).input(zeros(b));
            check.fails(Code::InvalidArgument, text)
        };
        let text = "Expected diagonals to be provided as a matrix with 3 rows, got 2 rows.";
        fails([2, 3], [3, 1], text);
        let text = "Expected the same number of left-hand sides and right-hand sides, got 3 and 2.";
        fails([3, 3], [2, 1], text);
        check("TridiagonalMatMul")
            .input(mat(1, 2, &[0.0; 2]))
            .input(mat(1, 3, &[0.0; 3]))
            .input(mat(1, 3, &[0.0; 3]))
            .input(mat(3, 1, &[0.0; 3]))
            .fails(Code::InvalidArgument, "Invalid superdiagonal shape.");
    }
}
