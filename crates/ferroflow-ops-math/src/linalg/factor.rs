//! Cholesky and CholeskyGrad, Qr, Svd, XlaSvd.

use super::pieces;
use super::problem::{
    COPIES_FOR_VECTORS, Field, Linear, Problem, adjoint, batched, matrix_parts, square_shape, times,
};
use crate::prelude::*;
use ferroflow_dense::Half;

/// A matrix that is not positive definite gives NaN in the lower half.
fn cholesky<T: Linear>(ctx: &mut Ctx<'_>) -> Result<()> {
    let problem = Problem::<T>::square(ctx)?;
    let n = problem.sizes[0].0;
    let mut out = problem.solve::<T>(&[vec![n, n]], |a| {
        let factor = <T::Wide as Field>::cholesky(&a[0], n).unwrap_or_else(|| {
            let nan = <T::Wide as Field>::from_real(f64::NAN);
            let at = |i: usize| if i % n <= i / n { nan } else { <T::Wide as Field>::ZERO };
            (0..n * n).map(at).collect()
        });
        Ok(vec![factor])
    })?;
    ctx.set(0, out.remove(0))
}

/// With `P` the lower half of `L* G`, its diagonal halved: `L^-* (P + P*) L^-1 / 2`.
fn cholesky_grad<T: Linear>(ctx: &mut Ctx<'_>) -> Result<()> {
    let problem = Problem::<T>::new(ctx, 2)?;
    let [(m, n), other] = problem.sizes[..] else {
        bail!(Internal, "a gradient has two operands");
    };
    ensure!(m == n, InvalidArgument, "Inputs must be a square matrices.");
    ensure!(other == (m, n), InvalidArgument, "Inputs (L and grad) must have the same shape.");
    let mut out = problem.solve::<T>(&[vec![n, n]], |mut inputs| {
        let (mut grad, l) = (inputs.remove(1), inputs.remove(0));
        for i in 0..n {
            grad[i * n + i + 1..(i + 1) * n].fill(<T::Wide as Field>::ZERO);
        }
        let upper = adjoint(&l, n, n);
        let p = times(&upper, &grad, n, n, n);
        let mut sum = p.clone();
        for i in 0..n {
            for j in i + 1..n {
                sum[i * n + j] = p[j * n + i].conjugate();
            }
        }
        // L^-* (P + P*) L^-1, the right factor by solving for the adjoint.
        <T::Wide as Field>::solve_triangular(&upper, n, Half::Upper, &mut sum, n);
        let mut sum = adjoint(&sum, n, n);
        <T::Wide as Field>::solve_triangular(&upper, n, Half::Upper, &mut sum, n);
        let half = <T::Wide as Field>::from_real(0.5);
        let sum = adjoint(&sum, n, n).into_iter().map(|x| x.times(half)).collect();
        Ok(vec![sum])
    })?;
    ctx.set(0, out.remove(0))
}

fn qr<T: Linear>(whole: bool) -> impl Kernel {
    move |ctx: &mut Ctx<'_>| {
        let problem = Problem::<T>::new(ctx, 1)?;
        let (m, n) = problem.sizes[0];
        let k = if whole { m } else { m.min(n) };
        let mut out = problem.solve::<T>(&[vec![m, k], vec![k, n]], |a| {
            let (q, r) = <T::Wide as Field>::qr(&a[0], m, n, whole);
            Ok(vec![q, r])
        })?;
        ctx.set(1, out.remove(1))?;
        ctx.set(0, out.remove(0))
    }
}

/// A matrix without singular values gives NaN everywhere.
fn svd<T: Linear>(with_vectors: bool, whole: bool) -> impl Kernel {
    move |ctx: &mut Ctx<'_>| {
        let problem = Problem::<T>::new(ctx, 1)?.taking(COPIES_FOR_VECTORS);
        let (m, n) = problem.sizes[0];
        let k = m.min(n);
        let nan = || <T::Wide as Field>::from_real(f64::NAN);
        let reals = |s: Vec<f64>| s.into_iter().map(<T::Wide as Field>::from_real).collect();
        if !with_vectors {
            let mut out = problem.solve::<T>(&[vec![k]], |a| {
                let s = <T::Wide as Field>::singular_values(&a[0], m, n);
                Ok(vec![s.map_or_else(|| vec![nan(); k], reals)])
            })?;
            for i in 1..3 {
                ctx.set(i, Tensor::zeros(T::DTYPE, [0])?)?;
            }
            return ctx.set(0, out.remove(0));
        }
        let (left, right) = if whole { (m, n) } else { (k, k) };
        let out = problem.solve::<T>(&[vec![k], vec![m, left], vec![n, right]], |a| {
            Ok(match <T::Wide as Field>::svd(&a[0], m, n, whole) {
                Some(svd) => vec![reals(svd.s), svd.u, svd.v],
                None => vec![vec![nan(); k], vec![nan(); m * left], vec![nan(); n * right]],
            })
        })?;
        for (i, out) in out.into_iter().enumerate() {
            ctx.set(i, out)?;
        }
        Ok(())
    }
}

fn qr_shape(c: &ShapeCtx<'_>) -> Result<Vec<PartialShape>> {
    let (batch, m, n) = matrix_parts(c, 0)?;
    let k = match c.attrs.bool("full_matrices")? {
        true => m,
        false => m.zip(n).map(|(m, n)| m.min(n)),
    };
    Ok(vec![batched(&batch, &[m, k]), batched(&batch, &[k, n])])
}

fn svd_shape(c: &ShapeCtx<'_>) -> Result<Vec<PartialShape>> {
    let (batch, m, n) = matrix_parts(c, 0)?;
    let k = m.zip(n).map(|(m, n)| m.min(n));
    let s = batched(&batch, &[k]);
    if !c.attrs.bool("compute_uv")? {
        return Ok(vec![s, [0].into(), [0].into()]);
    }
    let (left, right) = if c.attrs.bool("full_matrices")? { (m, n) } else { (k, k) };
    Ok(vec![s, batched(&batch, &[m, left]), batched(&batch, &[n, right])])
}

fn qr_gradient<'g>(g: &GradientScope<'g>, dy: &[Term<'g>]) -> Result<Vec<Term<'g>>> {
    let (a, q, r, dq, dr) = (g.input(0), g.output(0), g.output(1), dy[0].dense(), dy[1].dense());
    let dims = |t: Term<'g>| {
        let rank = t.rank()?;
        let shape = t.static_shape();
        Some((shape.dim(rank.checked_sub(2)?)?, shape.dim(rank - 1)?))
    };
    let (Some((rows, inner)), Some((_, columns))) = (dims(q), dims(r)) else {
        bail!(Unimplemented, "QrGrad not implemented with dynamic shapes.");
    };
    ensure!(
        !(rows > columns && inner == rows),
        Unimplemented,
        "QrGrad not implemented when nrows > ncols and full_matrices is true."
    );
    if rows >= columns {
        return Ok(vec![deep_qr_gradient(g, [q, r, dq, dr])]);
    }
    // Only the first columns form a square matrix; the others follow from a product.
    let n = rows as i64;
    let (y, u) = (pieces::columns(g, a, n, None), pieces::columns(g, r, 0, Some(n)));
    let (dv, du) = (pieces::columns(g, dr, n, None), pieces::columns(g, dr, 0, Some(n)));
    let d_rest = g.batch_matmul(q, dv, (false, false));
    let dq = dq + g.batch_matmul(y, dv, (false, true));
    Ok(vec![g.concat(&[deep_qr_gradient(g, [q, u, dq, du]), d_rest], -1)])
}

/// The gradient for at least as many rows as columns.
fn deep_qr_gradient<'g>(g: &GradientScope<'g>, [q, r, dq, dr]: [Term<'g>; 4]) -> Term<'g> {
    // x times the adjoint of the inverse of r.
    let over = |x: Term<'g>| {
        let attrs = Attrs::new().with("lower", false).with("adjoint", false);
        g.adjoint(g.call_with("MatrixTriangularSolve", &[r, g.adjoint(x)], attrs))
    };
    let q_dq = g.batch_matmul(q, dq, (true, false));
    let r_dr = g.batch_matmul(r, dr, (false, true));
    let skew = q_dq - g.adjoint(q_dq) + (r_dr - g.adjoint(r_dr));
    let first = g.batch_matmul(q, dr + over(pieces::lower(g, skew)), (false, false));
    let second = over(dq - g.batch_matmul(q, q_dq, (false, false)));
    if !q.dtype().is_complex() {
        return first + second;
    }
    let m = r_dr - g.adjoint(q_dq);
    let diagonal = m.apply("MatrixDiagPart");
    let imaginary = diagonal - real_part(diagonal);
    let correction = g.call("MatrixSetDiag", &[m.zeros_like(), imaginary]);
    first + second + over(g.batch_matmul(q, g.adjoint(correction), (false, false)))
}

/// The real part, as a complex number.
fn real_part(z: Term<'_>) -> Term<'_> {
    let dtype = if z.dtype() == DType::Complex128 { DType::Double } else { DType::Float };
    z.apply_with("Real", Attrs::new().with("Tout", dtype)).cast(z.dtype())
}

fn svd_gradient<'g>(g: &GradientScope<'g>, dy: &[Term<'g>]) -> Result<Vec<Term<'g>>> {
    let a = g.input(0);
    let ds = dy[0].dense().cast(a.dtype()).apply("MatrixDiag");
    let product = |parts: [Term<'g>; 3]| {
        let right = g.batch_matmul(parts[1], parts[2], (false, true));
        g.batch_matmul(parts[0], right, (false, false))
    };
    if !g.attrs().bool("compute_uv")? {
        let found = g.calls_with("Svd", &[a], Attrs::new().with("compute_uv", true));
        return Ok(vec![product([found[1], ds, found[2]])]);
    }
    let full = g.attrs().bool("full_matrices")?;
    let rank = a.rank().unwrap_or(0);
    let shape = a.static_shape();
    let dims = rank.checked_sub(2).and_then(|i| Some((shape.dim(i)?, shape.dim(i + 1)?)));
    let Some((m, n)) = dims else {
        bail!(
            Unimplemented,
            "SVD gradient has not been implemented for input with unknown inner matrix shape."
        );
    };
    ensure!(
        !full || m.abs_diff(n) <= 1,
        Unimplemented,
        "svd gradient is not implemented for abs(m - n) > 1 when full_matrices is True."
    );
    let s = g.output(0).cast(a.dtype());
    let (mut u, mut v, mut du, mut dv) = (g.output(1), g.output(2), dy[1].dense(), dy[2].dense());
    let is_deep = m > n;
    let (m, n) = if is_deep { (n, m) } else { (m, n) };
    if is_deep {
        (u, v, du, dv) = (v, u, dv, du);
    }
    let count = m as i64;
    let f = pieces::reciprocal_gaps(g, s.square());
    let s_matrix = s.apply("MatrixDiag");
    let (v1, dv1) = (pieces::columns(g, v, 0, Some(count)), pieces::columns(g, dv, 0, Some(count)));
    let u1 = u;
    let v_dv = g.batch_matmul(v1, dv1, (true, false));
    let fu = f * g.batch_matmul(u1, du, (true, false));
    let fv = f * v_dv;
    let middle = ds
        + g.batch_matmul(fu + g.adjoint(fu), s_matrix, (false, false))
        + g.batch_matmul(s_matrix, fv + g.adjoint(fv), (false, false));
    let mut da = product([u1, middle, v1]);
    let inverse = pieces::safe_reciprocal(s).apply("MatrixDiag");
    if m != n {
        let dv1_h = g.adjoint(dv1);
        let mut rest =
            dv1_h - g.batch_matmul(g.batch_matmul(dv1_h, v1, (false, false)), v1, (false, true));
        if full {
            let end = Some(n as i64);
            let (v2, dv2) = (pieces::columns(g, v, count, end), pieces::columns(g, dv, count, end));
            rest = rest - g.batch_matmul(g.batch_matmul(v1, dv2, (true, false)), v2, (false, true));
        }
        da = da + g.batch_matmul(g.batch_matmul(u1, inverse, (false, false)), rest, (false, false));
    }
    if a.dtype().is_complex() {
        let l = pieces::identity_like(s_matrix) * v_dv;
        let turn = g.batch_matmul(inverse, g.adjoint(l) - l, (false, false));
        da = da + product([u1, turn, v1]) * 0.5;
    }
    Ok(vec![if is_deep { g.adjoint(da) } else { da }])
}

pub(crate) fn register(c: &mut Catalog) {
    const ALL: &str = "T: {double, float, half, complex64, complex128}";
    for (op, types) in [("Cholesky", ALL), ("BatchCholesky", "T: {double, float}")] {
        c.op(op)
            .doc("Lower factors of positive definite matrices.")
            .input("input: T")
            .output("output: T")
            .attr(types)
            .expensive()
            .shape(square_shape)
            .cpu(per_dtype!(
                [Float f32, Double f64, Complex64 Complex32, Complex128 Complex64],
                T => cholesky::<T>
            ));
    }
    let types =
        [("CholeskyGrad", "T: {half, float, double}"), ("BatchCholeskyGrad", "T: {float, double}")];
    for (op, types) in types {
        c.op(op)
            .doc("Gradient of Cholesky.")
            .input("l: T")
            .input("grad: T")
            .output("output: T")
            .attr(types)
            .expensive()
            .shape(square_shape)
            .cpu(per_dtype!([Float f32, Double f64], T => cholesky_grad::<T>));
    }
    c.op("Qr")
        .doc("Orthogonal and upper triangular factors of matrices.")
        .input("input: T")
        .output("q: T")
        .output("r: T")
        .attr("full_matrices: bool = false")
        .attr(ALL)
        .expensive()
        .shape(qr_shape)
        .cpu(per_dtype!(
            [Half f16, Float f32, Double f64, Complex64 Complex32, Complex128 Complex64],
            init, T => qr::<T>(init.bool("full_matrices")?)
        ));
    let types = [("Svd", ALL), ("BatchSvd", "T: {double, float, complex64, complex128}")];
    for (op, types) in types {
        c.op(op)
            .doc("Singular values and vectors of matrices.")
            .input("input: T")
            .output("s: T")
            .output("u: T")
            .output("v: T")
            .attr("compute_uv: bool = true")
            .attr("full_matrices: bool = false")
            .attr(types)
            .expensive()
            .shape(svd_shape)
            .cpu(per_dtype!(
                [Float f32, Double f64, Complex64 Complex32, Complex128 Complex64],
                init, T => svd::<T>(init.bool("compute_uv")?, init.bool("full_matrices")?)
            ));
    }
    c.gradient("Cholesky", |g, dy| {
        let l = g.output(0);
        let inverse = g.call("MatrixTriangularSolve", &[l, pieces::identity_like(l)]);
        let middle = pieces::lower_half(g, g.batch_matmul(l, dy[0], (true, false)));
        let left = g.batch_matmul(inverse, middle, (true, false));
        let da = g.batch_matmul(left, inverse, (false, false));
        Ok(vec![(da + g.adjoint(da)) * 0.5])
    });
    c.gradient("Qr", qr_gradient);
    c.gradient("Svd", svd_gradient);
    c.op("XlaSvd")
        .doc("Singular values, in falling order, and all singular vectors of matrices.")
        .input("a: T")
        .output("s: T")
        .output("u: T")
        .output("v: T")
        .attr("max_iter: int")
        .attr("epsilon: float")
        .attr("precision_config: string")
        .attr("T: numbertype")
        .expensive()
        .shape(|c| {
            let (batch, m, n) = matrix_parts(c, 0)?;
            let k = m.zip(n).map(|(m, n)| m.min(n));
            Ok(vec![batched(&batch, &[k]), batched(&batch, &[m, m]), batched(&batch, &[n, n])])
        })
        .cpu(per_dtype!([Float f32, Double f64], T => svd::<T>(true, true)));
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::testing::check;
    use ferroflow_core::{Limit, Limits, MemoryOwner};
    use ferroflow_testing::assert_close;

    fn mat(m: usize, n: usize, values: &[f64]) -> Tensor {
        Tensor::from_slice([m, n], values).unwrap()
    }

    #[test]
    fn positive_definite_matrices_have_a_root() {
        let want = mat(2, 2, &[2.0, 0.0, 0.5, 2.75f64.sqrt()]);
        // The upper half is not read.
        check("Cholesky").input(mat(2, 2, &[4.0, 100.0, 1.0, 3.0])).gives(want);
        let nan = f64::NAN;
        let want = mat(2, 2, &[nan, 0.0, nan, nan]);
        check("Cholesky").input(mat(2, 2, &[-4.0, 1.0, 1.0, 3.0])).gives(want);
        let square = check("Cholesky").input(mat(1, 2, &[0.0; 2]));
        square.fails(Code::InvalidArgument, "Input matrix must be square.");
        check("CholeskyGrad")
            .input(mat(2, 2, &[2.0, 0.0, 1.0, 3.0]))
            .input(mat(2, 2, &[1.0, 5.0, 2.0, 3.0]))
            .gives(mat(2, 2, &[0.125, 0.25, 0.25, 0.5]));
    }

    #[test]
    fn memory_of_a_factorisation_counts_before_it_is_taken() {
        let limit = Limit { most: 1 << 20, ..Limits::DEFAULT.session_memory };
        let session = MemoryOwner::new("session 7", limit);
        // 12 copies of 128 KiB do not fit, 4 do.
        let svd =
            || check("Svd").input(mat(128, 128, &vec![1.0; 128 * 128])).attr("compute_uv", false);
        session.run(|| svd().fails(Code::ResourceExhausted, "session memory"));
        let qr = || check("Qr").input(mat(128, 128, &vec![1.0; 128 * 128]));
        session.run(|| qr().run()).unwrap();
    }

    #[test]
    fn orthogonal_factors_have_the_usual_signs() {
        let a = || mat(3, 2, &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        let got = check("Qr").input(a()).run().unwrap();
        let q = [-0.16903085, 0.89708523, -0.50709255, 0.27602622, -0.84515425, -0.34503278];
        assert_close(&got[0], &mat(3, 2, &q), 1e-6, 1e-6);
        assert_close(&got[1], &mat(2, 2, &[-5.91607978, -7.43735744, 0.0, 0.82807867]), 1e-6, 1e-6);
        let got = check("Qr").input(a()).attr("full_matrices", true).run().unwrap();
        assert_eq!((got[0].shape(), got[1].shape()), (&[3, 3].into(), &[3, 2].into()));
        let z = |re: f64, im: f64| Complex64::new(re, im);
        let a = [z(0.0, 1.0), z(2.0, 0.0), z(3.0, 0.0), z(0.0, 4.0)];
        let got = check("Qr").input(Tensor::from_slice([2, 2], &a).unwrap()).run().unwrap();
        let r = got[1].as_slice::<Complex64>().unwrap();
        assert!(r[0].im.abs() < 1e-12 && r[3].im.abs() < 1e-12, "{r:?}");
        let none = Tensor::zeros(DType::Double, [3, 0]).unwrap();
        let got = check("Qr").input(none).attr("full_matrices", true).run().unwrap();
        let want = [1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0];
        assert_eq!(got[0], mat(3, 3, &want));
    }

    #[test]
    fn singular_values_fall() {
        let a = || mat(3, 2, &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        let got = check("Svd").input(a()).run().unwrap();
        let s = Tensor::vector(&[9.52551809, 0.51430058]);
        assert_close(&got[0], &s, 1e-7, 1e-7);
        let [s, u, v] = [0, 1, 2].map(|i| got[i].as_slice::<f64>().unwrap());
        for (i, x) in a().as_slice::<f64>().unwrap().iter().enumerate() {
            let (i, j) = (i / 2, i % 2);
            let sum: f64 = (0..2).map(|k| u[i * 2 + k] * s[k] * v[j * 2 + k]).sum();
            assert!((sum - x).abs() < 1e-9);
        }
        let got = check("Svd").input(a()).attr("compute_uv", false).run().unwrap();
        assert_close(&got[0], &Tensor::vector(s), 1e-9, 1e-9);
        let nan = check("Svd").input(mat(1, 2, &[f64::NAN, 1.0])).run().unwrap();
        assert!(nan[2].as_slice::<f64>().unwrap().iter().all(|x| x.is_nan()));
    }
}
