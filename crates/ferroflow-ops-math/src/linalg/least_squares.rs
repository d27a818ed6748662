//! MatrixSolveLs.

use super::lu::solution_shape;
use super::pieces;
use super::problem::{Field, Linear, Problem, adjoint, times};
use crate::prelude::*;
use ferroflow_dense::Half;

struct MatrixSolveLs<T> {
    fast: bool,
    marker: std::marker::PhantomData<T>,
}

impl<T: Linear> Kernel for MatrixSolveLs<T> {
    fn compute(&self, ctx: &mut Ctx<'_>) -> Result<()> {
        let problem = Problem::<T>::new(ctx, 2)?;
        let [(m, n), (rows, k)] = problem.sizes[..] else {
            bail!(Internal, "a system has two operands");
        };
        ensure!(m == rows, InvalidArgument, "Input matrix and rhs are incompatible.");
        let regularizer = ctx.input(2)?;
        ensure!(
            regularizer.rank() == 0,
            InvalidArgument,
            "l2_regularizer must be scalar, got shape {}",
            regularizer.shape()
        );
        let lambda = regularizer.scalar_value::<f64>()?;
        ensure!(lambda >= 0.0, InvalidArgument, "l2_regularizer must be >= 0.");
        let mut out = problem.solve::<T>(&[vec![n, k]], |inputs| {
            let (a, b) = (&inputs[0], &inputs[1]);
            if m == 0 || n == 0 || k == 0 {
                return Ok(vec![vec![<T::Wide as Field>::ZERO; n * k]]);
            }
            let x = match self.fast {
                true => by_normal_equations(a, b, (m, n, k), lambda)?,
                false => by_singular_values(a, b, (m, n, k)),
            };
            Ok(vec![x])
        })?;
        ctx.set(0, out.remove(0))
    }
}

/// `(A* A + λ) x = A* b` when there are at least as many equations as unknowns, else
/// `x = A* (A A* + λ)^-1 b`.
fn by_normal_equations<W: Field>(
    a: &[W],
    b: &[W],
    (m, n, k): (usize, usize, usize),
    lambda: f64,
) -> Result<Vec<W>> {
    let conj = adjoint(a, m, n);
    let (mut gram, size) = match m >= n {
        true => (times(&conj, a, n, m, n), n),
        false => (times(a, &conj, m, n, m), m),
    };
    gram.iter_mut().step_by(size + 1).for_each(|x| *x = x.plus(W::from_real(lambda)));
    let Some(factor) = W::cholesky(&gram, size) else {
        bail!(
            InvalidArgument,
            "Input matrix was rank deficient or ill-conditioned. Try setting fast=False or provide \
             a larger l2_regularizer > 0."
        );
    };
    let mut x = if m >= n { times(&conj, b, n, m, k) } else { b.to_vec() };
    W::solve_triangular(&factor, size, Half::Lower, &mut x, k);
    W::solve_triangular(&adjoint(&factor, size, size), size, Half::Upper, &mut x, k);
    Ok(if m >= n { x } else { times(&conj, &x, n, m, k) })
}

/// The shortest of the best solutions, for any rank. NaN if the matrix is not finite.
fn by_singular_values<W: Field>(a: &[W], b: &[W], (m, n, k): (usize, usize, usize)) -> Vec<W> {
    let Some(svd) = W::svd(a, m, n, false) else {
        return vec![W::from_real(f64::NAN); n * k];
    };
    let r = m.min(n);
    let smallest = svd.s.first().copied().unwrap_or(0.0) * f64::EPSILON * m.max(n) as f64;
    let mut x = times(&adjoint(&svd.u, m, r), b, r, m, k);
    for (row, &s) in x.chunks_exact_mut(k).zip(&svd.s) {
        let scale = W::from_real(if s > smallest { 1.0 / s } else { 0.0 });
        row.iter_mut().for_each(|x| *x = x.times(scale));
    }
    times(&svd.v, &x, n, r, k)
}

fn least_squares_gradient<'g>(g: &GradientScope<'g>, dy: &[Term<'g>]) -> Result<Vec<Term<'g>>> {
    let (a, b, x, dy) = (g.input(0), g.input(1), g.output(0), dy[0]);
    ensure!(g.attrs().bool("fast")?, InvalidArgument, "Gradient not defined for fast=False");
    let rank = a.rank().and_then(|r| r.checked_sub(2));
    let shape = a.static_shape();
    let Some((m, n)) = rank.and_then(|i| Some((shape.dim(i)?, shape.dim(i + 1)?))) else {
        bail!(Unimplemented, "the gradient of MatrixSolveLs needs the shape of the matrix");
    };
    let weight = g.input(2).cast(a.dtype());
    // The Gram matrix of the shorter side, regularised.
    let is_deep = m >= n;
    let gram = g.batch_matmul(a, a, if is_deep { (true, false) } else { (false, true) });
    let gram = gram + pieces::identity_like(gram) * weight;
    let solve = |y: Term<'g>| g.call("MatrixSolve", &[gram, y]);
    if is_deep {
        let z = solve(dy);
        let xz = g.batch_matmul(x, z, (false, true));
        let both = xz + g.matrix_transpose(xz);
        let da = g.batch_matmul(b, z, (false, true)) - g.batch_matmul(a, both, (false, false));
        return Ok(vec![da, g.batch_matmul(a, z, (false, false)), g.none()]);
    }
    let db = solve(g.batch_matmul(a, dy, (false, false)));
    let tmp = solve(b);
    let inner = -g.batch_matmul(tmp, a, (true, false));
    let first = g.batch_matmul(db, inner, (false, false));
    let rest = dy - g.batch_matmul(a, db, (true, false));
    Ok(vec![first + g.batch_matmul(tmp, rest, (false, true)), db, g.none()])
}

pub(crate) fn register(c: &mut Catalog) {
    let types = [
        ("MatrixSolveLs", "T: {double, float, half, complex64, complex128}"),
        ("BatchMatrixSolveLs", "T: {double, float}"),
    ];
    for (op, types) in types {
        c.op(op)
            .doc("Least-squares solutions of systems of linear equations.")
            .input("matrix: T")
            .input("rhs: T")
            .input("l2_regularizer: double")
            .output("output: T")
            .attr(types)
            .attr("fast: bool = true")
            .expensive()
            .shape(solution_shape)
            .cpu(per_dtype!(
                [Float f32, Double f64, Complex64 Complex32, Complex128 Complex64],
                init, T => MatrixSolveLs::<T> {
                    fast: init.bool("fast")?,
                    marker: std::marker::PhantomData,
                }
            ));
    }
    c.gradient("MatrixSolveLs", least_squares_gradient);
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::testing::{Check, check};

    fn mat(m: usize, n: usize, values: &[f64]) -> Tensor {
        Tensor::from_slice([m, n], values).unwrap()
    }

    fn solve(a: Tensor, b: Tensor, lambda: f64, fast: bool) -> Check<'static> {
        let check = check("MatrixSolveLs").input(a).input(b).input(Tensor::scalar(lambda));
        check.attr("fast", fast)
    }

    #[test]
    fn tall_and_wide_systems_have_best_solutions() {
        let tall = || mat(3, 2, &[1.0, 2.0, 3.0, 4.0, 5.0, 7.0]);
        let b = || mat(3, 1, &[1.0, 2.0, 3.0]);
        for fast in [true, false] {
            solve(tall(), b(), 0.0, fast).gives(mat(2, 1, &[-0.0714285714, 0.5]));
            let wide = mat(2, 3, &[1.0, 2.0, 3.0, 3.0, 4.0, 1.0]);
            let want = mat(3, 1, &[0.2380952381, 0.3095238095, 0.0476190476]);
            solve(wide, mat(2, 1, &[1.0, 2.0]), 0.0, fast).gives(want);
        }
        solve(tall(), b(), 0.5, true).gives(mat(2, 1, &[0.1509433962, 0.3396226415]));
        let none = || Tensor::zeros(DType::Double, [0, 3]).unwrap();
        let rhs = Tensor::zeros(DType::Double, [0, 1]).unwrap();
        solve(none(), rhs, 0.0, true).gives(mat(3, 1, &[0.0; 3]));
    }

    #[test]
    fn rank_deficiency_needs_the_slow_way() {
        let a = || mat(3, 2, &[1.0, 2.0, 2.0, 4.0, 3.0, 6.0]);
        let b = || mat(3, 1, &[1.0, 2.0, 3.0]);
        let text = "Input matrix was rank deficient or ill-conditioned. Try setting fast=False";
        solve(a(), b(), 0.0, true).fails(Code::InvalidArgument, text);
        solve(a(), b(), 0.0, false).gives(mat(2, 1, &[0.2, 0.4]));
        let text = "l2_regularizer must be >= 0.";
        solve(a(), b(), -1.0, true).fails(Code::InvalidArgument, text);
    }
}
