//! SelfAdjointEig, SelfAdjointEigV2, XlaSelfAdjointEig, Eig.

use super::pieces;
use super::problem::{COPIES_FOR_VECTORS, Field, Linear, Problem, batched, square_parts};
use crate::prelude::*;

fn self_adjoint_eig<T: Linear>(with_vectors: bool) -> impl Kernel {
    move |ctx: &mut Ctx<'_>| {
        let problem = Problem::<T>::square(ctx)?.taking(COPIES_FOR_VECTORS);
        let n = problem.sizes[0].0;
        let reals = |e: Vec<f64>| e.into_iter().map(<T::Wide as Field>::from_real).collect();
        let failed = || {
            err!(
                InvalidArgument,
                "Self-adjoint eigen decomposition was not successful. The input might not be valid."
            )
        };
        let mut out = if with_vectors {
            problem.solve::<T>(&[vec![n], vec![n, n]], |a| {
                let (e, v) = <T::Wide as Field>::eigh(&a[0], n).ok_or_else(failed)?;
                Ok(vec![reals(e), v])
            })?
        } else {
            let mut out = problem.solve::<T>(&[vec![n]], |a| {
                Ok(vec![reals(<T::Wide as Field>::eigvalsh(&a[0], n).ok_or_else(failed)?)])
            })?;
            out.push(Tensor::zeros(T::DTYPE, [0])?);
            out
        };
        ctx.set(1, out.remove(1))?;
        ctx.set(0, out.remove(0))
    }
}

/// Reads the lower or the upper triangle of real matrices.
fn xla_self_adjoint_eig<T: Linear<Wide = f64>>(is_lower: bool) -> impl Kernel {
    move |ctx: &mut Ctx<'_>| {
        let problem = Problem::<T>::square(ctx)?.taking(COPIES_FOR_VECTORS);
        let n = problem.sizes[0].0;
        let mut out = problem.solve::<T>(&[vec![n], vec![n, n]], |mut a| {
            let mut a = a.remove(0);
            for i in (0..n).filter(|_| !is_lower) {
                (0..i).for_each(|j| a[i * n + j] = a[j * n + i]);
            }
            let found = f64::eigh(&a, n);
            let (e, v) = found.unwrap_or_else(|| (vec![f64::NAN; n], vec![f64::NAN; n * n]));
            Ok(vec![e, v])
        })?;
        ctx.set(1, out.remove(1))?;
        ctx.set(0, out.remove(0))
    }
}

/// Eigenvalues in the first row, vectors in the columns below.
fn self_adjoint_eig_v1<T: Linear>(ctx: &mut Ctx<'_>) -> Result<()> {
    let problem = Problem::<T>::square(ctx)?.taking(COPIES_FOR_VECTORS);
    let n = problem.sizes[0].0;
    let mut out = problem.solve::<T>(&[vec![n + 1, n]], |a| {
        let Some((e, v)) = <T::Wide as Field>::eigh(&a[0], n) else {
            bail!(
                InvalidArgument,
                "Self-adjoint eigen decomposition was not successful. The input might not be valid."
            );
        };
        let e = e.into_iter().map(<T::Wide as Field>::from_real);
        Ok(vec![e.chain(v).collect()])
    })?;
    ctx.set(0, out.remove(0))
}

fn eig<T: Linear, U: Linear<Wide = Complex64>>(with_vectors: bool) -> impl Kernel {
    move |ctx: &mut Ctx<'_>| {
        let problem = Problem::<T>::square(ctx)?.taking(COPIES_FOR_VECTORS);
        let n = problem.sizes[0].0;
        let mut out = problem.solve::<U>(&[vec![n], vec![n, n]], |a| {
            let Some((e, v)) = <T::Wide as Field>::eig(&a[0], n) else {
                bail!(
                    InvalidArgument,
                    "Eigen decomposition was not successful. The input might not be valid."
                );
            };
            Ok(vec![e, v])
        })?;
        let v = out.remove(1);
        ctx.set(1, if with_vectors { v } else { Tensor::zeros(U::DTYPE, [0])? })?;
        ctx.set(0, out.remove(0))
    }
}

fn eig_kernel(init: &KernelInit<'_>) -> Result<KernelBox> {
    let with_vectors = init.bool("compute_v")?;
    let (from, to) = (init.dtype("T")?, init.dtype("Tout")?);
    Ok(match (from, to) {
        (DType::Float, DType::Complex64) => KernelBox::new(eig::<f32, Complex32>(with_vectors)),
        (DType::Double, DType::Complex128) => KernelBox::new(eig::<f64, Complex64>(with_vectors)),
        (DType::Complex64, DType::Complex64) => {
            KernelBox::new(eig::<Complex32, Complex32>(with_vectors))
        }
        (DType::Complex128, DType::Complex128) => {
            KernelBox::new(eig::<Complex64, Complex64>(with_vectors))
        }
        _ => bail!(InvalidArgument, "Invalid output dtype {to} for input dtype {from}"),
    })
}

fn eigen_shape(c: &ShapeCtx<'_>) -> Result<Vec<PartialShape>> {
    let (batch, n) = square_parts(c)?;
    let v = match c.attrs.bool("compute_v")? {
        true => batched(&batch, &[n, n]),
        false => [0].into(),
    };
    Ok(vec![batched(&batch, &[n]), v])
}

fn eigen_shape_v1(c: &ShapeCtx<'_>) -> Result<Vec<PartialShape>> {
    let (batch, n) = square_parts(c)?;
    Ok(vec![batched(&batch, &[n.map(|n| n + 1), n])])
}

pub(crate) fn register(c: &mut Catalog) {
    let types = [
        ("SelfAdjointEigV2", "T: {double, float, half, complex64, complex128}"),
        ("BatchSelfAdjointEigV2", "T: {double, float}"),
    ];
    for (op, types) in types {
        c.op(op)
            .doc("Eigenvalues, in rising order, and vectors of self-adjoint matrices.")
            .input("input: T")
            .output("e: T")
            .output("v: T")
            .attr("compute_v: bool = true")
            .attr(types)
            .expensive()
            .shape(eigen_shape)
            .cpu(per_dtype!(
                [Float f32, Double f64, Complex64 Complex32, Complex128 Complex64],
                init, T => self_adjoint_eig::<T>(init.bool("compute_v")?)
            ));
    }
    c.op("XlaSelfAdjointEig")
        .doc("Eigenvalues, in rising order, and vectors of self-adjoint matrices.")
        .input("a: T")
        .output("w: T")
        .output("v: T")
        .attr("lower: bool")
        .attr("max_iter: int")
        .attr("epsilon: float")
        .attr("T: numbertype")
        .expensive()
        .shape(|c| {
            let (batch, n) = square_parts(c)?;
            Ok(vec![batched(&batch, &[n]), batched(&batch, &[n, n])])
        })
        .cpu(per_dtype!(
            [Float f32, Double f64],
            init, T => xla_self_adjoint_eig::<T>(init.bool("lower")?)
        ));
    let types = [
        ("SelfAdjointEig", "T: {double, float, half}"),
        ("BatchSelfAdjointEig", "T: {double, float}"),
    ];
    for (op, types) in types {
        c.op(op)
            .doc("Eigenvalues above the eigenvectors of self-adjoint matrices.")
            .input("input: T")
            .output("output: T")
            .attr(types)
            .expensive()
            .shape(eigen_shape_v1)
            .cpu(per_dtype!([Float f32, Double f64], T => self_adjoint_eig_v1::<T>));
    }
    c.op("Eig")
        .doc("Eigenvalues and vectors of square matrices.")
        .input("input: T")
        .output("e: Tout")
        .output("v: Tout")
        .attr("compute_v: bool = true")
        .attr("T: {float, double, complex64, complex128}")
        .attr("Tout: {complex64, complex128}")
        .expensive()
        .shape(eigen_shape)
        .cpu(eig_kernel);
    c.gradient("SelfAdjointEigV2", |g, dy| {
        let de = dy[0].dense().apply("MatrixDiag");
        let (v, middle) = if g.attrs().bool("compute_v")? {
            let v = g.output(1);
            let turn = g.batch_matmul(v, dy[1], (true, false));
            (v, de + pieces::reciprocal_gaps(g, g.output(0)) * turn)
        } else {
            let attrs = Attrs::new().with("compute_v", true);
            (g.calls_with("SelfAdjointEigV2", &[g.input(0)], attrs)[1], de)
        };
        let right = g.batch_matmul(middle, v, (false, true));
        let da = g.batch_matmul(v, right, (false, false));
        // Only the lower triangle is read.
        Ok(vec![pieces::lower_half(g, da + g.adjoint(da))])
    });
    c.gradient("Eig", |g, dy| {
        let (a, e) = (g.input(0), g.output(0));
        let de = dy[0].dense().apply("MatrixDiag");
        let da = if g.attrs().bool("compute_v")? {
            let v = g.output(1);
            let vh = g.adjoint(v);
            let f = pieces::reciprocal_gaps(g, e).conj();
            let turn = g.batch_matmul(vh, dy[1], (false, false));
            let dtype =
                if turn.dtype() == DType::Complex128 { DType::Double } else { DType::Float };
            let real = turn.apply_with("Real", Attrs::new().with("Tout", dtype)).cast(turn.dtype());
            let diagonal = real.apply("MatrixDiagPart").apply("MatrixDiag");
            let gram = g.batch_matmul(vh, v, (false, false));
            let middle = de + f * (turn - g.batch_matmul(gram, diagonal, (false, false)));
            g.call("MatrixSolve", &[vh, g.batch_matmul(middle, vh, (false, false))])
        } else {
            let attrs = Attrs::new().with("compute_v", true).with("Tout", e.dtype());
            let vh = g.adjoint(g.calls_with("Eig", &[a], attrs)[1]);
            g.call("MatrixSolve", &[vh, g.batch_matmul(de, vh, (false, false))])
        };
        Ok(vec![da.cast(a.dtype())])
    });
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::testing::check;
    use ferroflow_testing::assert_close;

    fn mat(values: [f64; 4]) -> Tensor {
        Tensor::from_slice([2, 2], &values).unwrap()
    }

    #[test]
    fn self_adjoint_matrices_have_real_eigenvalues() {
        let a = || mat([4.0, 100.0, 1.0, 3.0]);
        let got = check("SelfAdjointEigV2").input(a()).run().unwrap();
        let e = Tensor::vector(&[2.38196601125, 4.61803398875]);
        assert_close(&got[0], &e, 1e-9, 1e-9);
        let v = got[1].as_slice::<f64>().unwrap();
        assert!((v[0].abs() - 0.5257311121).abs() < 1e-9 && (v[1] - v[2]).abs() > -1.0);
        let got = check("SelfAdjointEigV2").input(a()).attr("compute_v", false).run().unwrap();
        assert_close(&got[0], &e, 1e-9, 1e-9);
        let got = check("SelfAdjointEig").input(a()).run().unwrap();
        assert_eq!(got[0].shape(), &[3, 2].into());
        let text = "Self-adjoint eigen decomposition was not successful.";
        let nan = check("SelfAdjointEigV2").input(mat([f64::NAN, 1.0, 1.0, 3.0]));
        nan.fails(Code::InvalidArgument, text);
        let none = Tensor::zeros(DType::Float, [2, 0, 0]).unwrap();
        let got = check("SelfAdjointEigV2").input(none).run().unwrap();
        assert_eq!((got[0].shape(), got[1].shape()), (&[2, 0].into(), &[2, 0, 0].into()));
    }

    #[test]
    fn any_matrix_has_complex_eigenvalues() {
        let turn = check("Eig").input(mat([0.0, 1.0, -1.0, 0.0])).attr("Tout", DType::Complex128);
        let got = turn.run().unwrap();
        let mut e = got[0].as_slice::<Complex64>().unwrap().to_vec();
        e.sort_by(|a, b| a.im.total_cmp(&b.im));
        assert!((e[0] - Complex64::new(0.0, -1.0)).norm() < 1e-12);
        assert!((e[1] - Complex64::new(0.0, 1.0)).norm() < 1e-12);
        let nan = check("Eig").input(mat([f64::NAN; 4])).attr("Tout", DType::Complex128);
        let text = "Eigen decomposition was not successful. The input might not be valid.";
        nan.fails(Code::InvalidArgument, text);
    }
}
