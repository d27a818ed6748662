//! Ops based on an LU factorisation: MatrixInverse, MatrixDeterminant, LogMatrixDeterminant,
//! MatrixSolve, Lu.

use super::pieces;
use super::problem::{
    Field, Linear, Problem, adjoint, batched, identity, matrix_parts, square_parts, square_shape,
};
use crate::prelude::*;
use ferroflow_dense::{Half, lu_by_modulus};

/// An LU factorisation.
pub(super) struct Factors<W> {
    lu: Vec<W>,
    rows: Vec<usize>,
    n: usize,
}

impl<W: Field> Factors<W> {
    pub(super) fn new(mut lu: Vec<W>, n: usize) -> Factors<W> {
        let rows = W::lu(&mut lu, n);
        Factors { lu, rows, n }
    }

    /// Uses TensorFlow's choice of pivot rows, which callers can observe.
    fn as_tensorflow(mut lu: Vec<W>, n: usize, is_complex: bool) -> Factors<W> {
        let rows = if is_complex { lu_by_modulus(&mut lu, n) } else { W::lu(&mut lu, n) };
        Factors { lu, rows, n }
    }

    fn pivots(&self) -> impl Iterator<Item = W> + '_ {
        (0..self.n).map(|i| self.lu[i * self.n + i])
    }

    fn is_invertible(&self) -> bool {
        self.pivots().all(|p| p.modulus() > 0.0)
    }

    /// Solves for `cols` right-hand sides.
    pub(super) fn solve(&self, b: &[W], cols: usize) -> Vec<W> {
        let mut x = Vec::with_capacity(b.len());
        for &row in &self.rows {
            x.extend_from_slice(&b[row * cols..(row + 1) * cols]);
        }
        W::solve_triangular(&self.lu, self.n, Half::UnitLower, &mut x, cols);
        W::solve_triangular(&self.lu, self.n, Half::Upper, &mut x, cols);
        x
    }

    /// The sign (or phase) of the determinant, and the logarithm of its size. A determinant that is
    /// not finite counts as zero.
    fn log_determinant(&self) -> (W, f64) {
        let mut swapped = false;
        let mut rows = self.rows.clone();
        for i in 0..rows.len() {
            while rows[i] != i {
                let to = rows[i];
                rows.swap(i, to);
                swapped = !swapped;
            }
        }
        let mut sign = W::from_real(if swapped { -1.0 } else { 1.0 });
        let mut log = 0.0;
        for pivot in self.pivots() {
            let size = pivot.modulus();
            sign = sign.times(pivot.over(W::from_real(size)));
            log += size.ln();
        }
        if log.is_finite() { (sign, log) } else { (W::ZERO, f64::NEG_INFINITY) }
    }
}

struct MatrixInverse<T> {
    adjoint: bool,
    marker: std::marker::PhantomData<T>,
}

impl<T: Linear> Kernel for MatrixInverse<T> {
    fn compute(&self, ctx: &mut Ctx<'_>) -> Result<()> {
        let problem = Problem::<T>::square(ctx)?;
        let n = problem.sizes[0].0;
        let mut out = problem.solve::<T>(&[vec![n, n]], |mut a| {
            let a = a.remove(0);
            let a = if self.adjoint { adjoint(&a, n, n) } else { a };
            let factors = Factors::new(a, n);
            ensure!(factors.is_invertible(), InvalidArgument, "Input is not invertible.");
            Ok(vec![factors.solve(&identity(n), n)])
        })?;
        ctx.set(0, out.remove(0))
    }
}

fn determinant<T: Linear>(ctx: &mut Ctx<'_>) -> Result<()> {
    let problem = Problem::<T>::square(ctx)?;
    let n = problem.sizes[0].0;
    let mut out = problem.solve::<T>(&[vec![]], |mut a| {
        let (sign, log) = Factors::new(a.remove(0), n).log_determinant();
        Ok(vec![vec![sign.times(<T::Wide as Field>::from_real(log.exp()))]])
    })?;
    ctx.set(0, out.remove(0))
}

fn log_determinant<T: Linear>(ctx: &mut Ctx<'_>) -> Result<()> {
    let problem = Problem::<T>::square(ctx)?;
    let n = problem.sizes[0].0;
    let mut out = problem.solve::<T>(&[vec![], vec![]], |mut a| {
        let (sign, log) = Factors::new(a.remove(0), n).log_determinant();
        Ok(vec![vec![sign], vec![<T::Wide as Field>::from_real(log)]])
    })?;
    ctx.set(1, out.remove(1))?;
    ctx.set(0, out.remove(0))
}

struct MatrixSolve<T> {
    adjoint: bool,
    marker: std::marker::PhantomData<T>,
}

impl<T: Linear> Kernel for MatrixSolve<T> {
    fn compute(&self, ctx: &mut Ctx<'_>) -> Result<()> {
        let problem = Problem::<T>::new(ctx, 2)?;
        let [(n, cols), (rows, k)] = problem.sizes[..] else {
            bail!(Internal, "a system has two operands");
        };
        ensure!(n == cols, InvalidArgument, "First input (lhs) must be a square matrix.");
        ensure!(n == rows, InvalidArgument, "Input matrix and rhs are incompatible.");
        let mut out = problem.solve::<T>(&[vec![n, k]], |mut inputs| {
            let (b, a) = (inputs.remove(1), inputs.remove(0));
            let a = if self.adjoint { adjoint(&a, n, n) } else { a };
            let factors = Factors::new(a, n);
            ensure!(factors.is_invertible(), InvalidArgument, "Input matrix is not invertible.");
            Ok(vec![factors.solve(&b, k)])
        })?;
        ctx.set(0, out.remove(0))
    }
}

/// Both factors in one matrix, and the input row of each row.
fn lu<T: Linear>(index: DType) -> impl Kernel {
    move |ctx: &mut Ctx<'_>| {
        let shape = ctx.input(0)?.shape().clone();
        let rank = shape.rank();
        ensure!(rank >= 2, InvalidArgument, "Input tensor must have rank >= 2, got {rank}");
        let problem = Problem::<T>::square(ctx)?;
        let n = problem.sizes[0].0;
        let mut out = Tensor::alloc(T::DTYPE, shape.clone())?;
        let mut rows = Tensor::alloc(DType::Int64, &shape[..rank - 1])?;
        if out.elements() > 0 {
            let factors = problem.each(|mut a| {
                let is_complex = T::DTYPE.is_complex();
                let factors = Factors::as_tensorflow(a.remove(0), n, is_complex);
                ensure!(factors.is_invertible(), InvalidArgument, "Input is not invertible.");
                Ok(factors)
            })?;
            let to = out.as_mut_slice::<T>()?.chunks_exact_mut(n * n);
            let to_rows = rows.as_mut_slice::<i64>()?.chunks_exact_mut(n);
            for ((to, to_rows), factors) in to.zip(to_rows).zip(&factors) {
                to.iter_mut().zip(&factors.lu).for_each(|(to, x)| *to = T::narrow(*x));
                to_rows.iter_mut().zip(&factors.rows).for_each(|(to, &row)| *to = row as i64);
            }
        }
        if index == DType::Int32 {
            let narrow: Vec<i32> = rows.as_slice::<i64>()?.iter().map(|&i| i as i32).collect();
            rows = Tensor::from_slice(&shape[..rank - 1], &narrow)?;
        }
        ctx.set(0, out)?;
        ctx.set(1, rows)
    }
}

fn inverse<T: Linear>(init: &KernelInit<'_>) -> Result<MatrixInverse<T>> {
    Ok(MatrixInverse { adjoint: init.bool("adjoint")?, marker: std::marker::PhantomData })
}

fn solve<T: Linear>(init: &KernelInit<'_>) -> Result<MatrixSolve<T>> {
    Ok(MatrixSolve { adjoint: init.bool("adjoint")?, marker: std::marker::PhantomData })
}

fn scalars_shape(c: &ShapeCtx<'_>) -> Result<Vec<PartialShape>> {
    let (batch, _) = square_parts(c)?;
    Ok(vec![batched(&batch, &[]); c.outputs])
}

/// The shape of a solution: as many rows as the matrices have columns, as many columns as the
/// right-hand sides have.
pub(super) fn solution_shape(c: &ShapeCtx<'_>) -> Result<Vec<PartialShape>> {
    let (batch, _, n) = matrix_parts(c, 0)?;
    let (other, _, k) = matrix_parts(c, 1)?;
    Ok(vec![batched(&batch.or(other), &[n, k])])
}

fn lu_shape(c: &ShapeCtx<'_>) -> Result<Vec<PartialShape>> {
    let (batch, n) = square_parts(c)?;
    Ok(vec![batched(&batch, &[n, n]), batched(&batch, &[n])])
}

fn inverse_adjoint<'g>(g: &GradientScope<'g>) -> Term<'g> {
    g.call_with("MatrixInverse", &[g.input(0)], Attrs::new().with("adjoint", true))
}

pub(crate) fn register(c: &mut Catalog) {
    const ALL: &str = "T: {double, float, half, complex64, complex128}";
    for (op, types) in [("MatrixInverse", ALL), ("BatchMatrixInverse", "T: {double, float}")] {
        c.op(op)
            .doc("Inverses of square matrices, or of their adjoints.")
            .input("input: T")
            .output("output: T")
            .attr("adjoint: bool = false")
            .attr(types)
            .expensive()
            .shape(square_shape)
            .cpu(per_dtype!(
                [Half f16, Float f32, Double f64, Complex64 Complex32, Complex128 Complex64],
                init, T => inverse::<T>(init)?
            ));
    }
    let types = [
        ("MatrixDeterminant", "T: {half, float, double, complex64, complex128}"),
        ("BatchMatrixDeterminant", "T: {float, double, complex64, complex128}"),
    ];
    for (op, types) in types {
        c.op(op)
            .doc("Determinants of square matrices.")
            .input("input: T")
            .output("output: T")
            .attr(types)
            .expensive()
            .shape(scalars_shape)
            .cpu(per_dtype!(
                [Float f32, Double f64, Complex64 Complex32, Complex128 Complex64],
                T => determinant::<T>
            ));
    }
    c.op("LogMatrixDeterminant")
        .doc("Signs of determinants, and logarithms of their sizes.")
        .input("input: T")
        .output("sign: T")
        .output("log_abs_determinant: T")
        .attr("T: {half, float, double, complex64, complex128}")
        .expensive()
        .shape(scalars_shape)
        .cpu(per_dtype!(
            [Float f32, Double f64, Complex64 Complex32, Complex128 Complex64],
            T => log_determinant::<T>
        ));
    for (op, types) in [("MatrixSolve", ALL), ("BatchMatrixSolve", "T: {double, float}")] {
        c.op(op)
            .doc("Solutions of systems of linear equations.")
            .input("matrix: T")
            .input("rhs: T")
            .output("output: T")
            .attr("adjoint: bool = false")
            .attr(types)
            .expensive()
            .shape(solution_shape)
            .cpu(per_dtype!(
                [Float f32, Double f64, Complex64 Complex32, Complex128 Complex64],
                init, T => solve::<T>(init)?
            ));
    }
    c.op("Lu")
        .doc("Lower and upper factors of square matrices, with the order of rows.")
        .input("input: T")
        .output("lu: T")
        .output("p: output_idx_type")
        .attr(ALL)
        .attr("output_idx_type: {int32, int64} = DT_INT32")
        .expensive()
        .shape(lu_shape)
        .cpu(per_dtype!(
            [Float f32, Double f64, Complex64 Complex32, Complex128 Complex64],
            init, T => lu::<T>(init.dtype("output_idx_type")?)
        ));
    c.gradient("MatrixInverse", |g, dy| {
        let (y, adjoint) = (g.output(0), g.attrs().bool("adjoint")?);
        let inner = g.batch_matmul(dy[0], y, (adjoint, !adjoint));
        Ok(vec![-g.batch_matmul(y, inner, (!adjoint, false))])
    });
    c.gradient("MatrixDeterminant", |g, dy| {
        let factor = dy[0] * g.output(0).conj();
        Ok(vec![factor.expand_dims(-1).expand_dims(-1) * inverse_adjoint(g)])
    });
    c.gradient("LogMatrixDeterminant", |g, dy| {
        Ok(vec![dy[1].expand_dims(-1).expand_dims(-1) * inverse_adjoint(g)])
    });
    c.gradient("MatrixSolve", |g, dy| {
        let adjoint = g.attrs().bool("adjoint")?;
        let attrs = Attrs::new().with("adjoint", !adjoint);
        let db = g.call_with("MatrixSolve", &[g.input(0), dy[0]], attrs);
        Ok(vec![pieces::outer(g, db, g.output(0), adjoint), db])
    });
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::testing::check;

    fn mat(values: [f64; 4]) -> Tensor {
        Tensor::from_slice([2, 2], &values).unwrap()
    }

    #[test]
    fn matrices_are_inverted() {
        let a = || mat([4.0, 1.0, 2.0, 3.0]);
        check("MatrixInverse").input(a()).gives(mat([0.3, -0.1, -0.2, 0.4]));
        let adjoint = check("MatrixInverse").input(a()).attr("adjoint", true);
        adjoint.gives(mat([0.3, -0.2, -0.1, 0.4]));
        let singular = check("MatrixInverse").input(mat([1.0, 2.0, 2.0, 4.0]));
        singular.fails(Code::InvalidArgument, "Input is not invertible.");
        let nan = check("MatrixInverse").input(mat([f64::NAN, 1.0, 1.0, 3.0]));
        nan.fails(Code::InvalidArgument, "Input is not invertible.");
        let h = Tensor::from_slice([1, 1], &[f16::from_f32(4.0)]).unwrap();
        let want = Tensor::from_slice([1, 1], &[f16::from_f32(0.25)]).unwrap();
        check("MatrixInverse").input(h).gives(want);
        let none = Tensor::zeros(DType::Float, [2, 0, 0]).unwrap();
        check("MatrixInverse").input(none.clone()).gives(none);
    }

    #[test]
    fn shapes_are_checked() {
        let zeros = |dims: &[usize]| Tensor::zeros(DType::Float, dims).unwrap();
        let fails = |x, text| check("MatrixInverse").input(x).fails(Code::InvalidArgument, text);
        fails(zeros(&[2, 3]), "Input matrix must be square.");
        fails(zeros(&[2]), "Input tensor 0 must have rank >= 2, got 1");
        let fails =
            |x, y, text| check("MatrixSolve").input(x).input(y).fails(Code::InvalidArgument, text);
        fails(zeros(&[2, 3]), zeros(&[2, 1]), "First input (lhs) must be a square matrix.");
        fails(zeros(&[2, 2]), zeros(&[1, 1]), "Input matrix and rhs are incompatible.");
        fails(zeros(&[2, 2]), zeros(&[1, 2, 1]), "All input tensors must have the same rank.");
        let text = "All input tensors must have the same outer dimensions.";
        fails(zeros(&[3, 2, 2]), zeros(&[2, 2, 1]), text);
    }

    #[test]
    fn determinants_of_anything() {
        let det = |x| check("MatrixDeterminant").input(x);
        det(mat([4.0, 100.0, 1.0, 3.0])).gives(Tensor::scalar(-88f64));
        det(mat([0.0, 1.0, 1.0, 0.0])).gives(Tensor::scalar(-1f64));
        det(mat([1.0, 2.0, 2.0, 4.0])).gives(Tensor::scalar(0f64));
        det(mat([f64::NAN, 1.0, 1.0, 3.0])).gives(Tensor::scalar(0f64));
        let none = || Tensor::zeros(DType::Double, [2, 0, 0]).unwrap();
        det(none()).gives(Tensor::vector(&[1f64, 1.0]));
        let log = |x| check("LogMatrixDeterminant").input(x).run().unwrap();
        let want = [Tensor::scalar(0f64), Tensor::scalar(f64::NEG_INFINITY)];
        assert_eq!(log(mat([0.0; 4])), want);
        assert_eq!(log(none()), [Tensor::vector(&[1f64, 1.0]), Tensor::vector(&[0f64, 0.0])]);
        let [sign, log] = &log(mat([-4.0, 1.0, 1.0, 3.0]))[..] else { panic!() };
        assert_eq!(*sign, Tensor::scalar(-1f64));
        assert!((log.scalar_value::<f64>().unwrap() - 13f64.ln()).abs() < 1e-12);
    }

    #[test]
    fn systems_are_solved() {
        let (a, b) = (mat([4.0, 1.0, 2.0, 3.0]), Tensor::from_slice([2, 1], &[6.0, 8.0]).unwrap());
        let want = Tensor::from_slice([2, 1], &[1f64, 2.0]).unwrap();
        check("MatrixSolve").input(a).input(b.clone()).gives(want);
        let singular = check("MatrixSolve").input(mat([1.0, 2.0, 2.0, 4.0])).input(b);
        singular.fails(Code::InvalidArgument, "Input matrix is not invertible.");
    }

    #[test]
    fn factors_and_their_rows() {
        let got = check("Lu").input(mat([1.0, 2.0, 3.0, 4.0])).run().unwrap();
        let want = mat([3.0, 4.0, 1.0 / 3.0, 2.0 / 3.0]);
        ferroflow_testing::assert_close(&got[0], &want, 1e-12, 1e-12);
        assert_eq!(got[1], Tensor::vector(&[1i32, 0]));
        let singular = check("Lu").input(mat([0.0; 4]));
        singular.fails(Code::InvalidArgument, "Input is not invertible.");
    }
}
