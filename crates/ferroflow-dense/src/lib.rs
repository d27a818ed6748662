//! Dense matrix factorizations on plain row-major slices of `f64` and complex `f64`.
//!
//! This crate wraps `faer`, whose generic code takes long to compile. It is instantiated only here,
//! because the crates of the ops change often. Nothing here starts a thread.
#![forbid(unsafe_code)]

mod pivot;
mod schur;

pub use num_complex::Complex64;
pub use pivot::lu_by_modulus;
pub use schur::{Schur, schur};

use faer::linalg::solvers::{Eigen, Llt, PartialPivLu, Qr, SelfAdjointEigen, Svd as FaerSvd};
use faer::traits::ComplexField;
use faer::{Mat, MatMut, MatRef, Side};

/// `f64` or [`Complex64`], with matrix factorizations. A matrix is a row-major slice. Functions
/// panic if its length does not match its dimensions.
pub trait Field: Copy + Send + Sync + PartialEq + std::fmt::Debug + 'static {
    const ZERO: Self;
    const ONE: Self;
    fn from_real(x: f64) -> Self;
    fn real(self) -> f64;
    fn modulus(self) -> f64;
    fn conjugate(self) -> Self;
    fn plus(self, other: Self) -> Self;
    fn minus(self, other: Self) -> Self;
    fn times(self, other: Self) -> Self;
    fn over(self, other: Self) -> Self;

    /// Replaces an `n` by `n` matrix by its factors L (below the diagonal, which is one) and U.
    /// Returns the row of the matrix for each row of L U.
    fn lu(a: &mut [Self], n: usize) -> Vec<usize>;
    /// Solves `a x = b` in place for a triangular `a`. Does not read the other half of `a`. `b` has
    /// `cols` columns.
    fn solve_triangular(a: &[Self], n: usize, half: Half, b: &mut [Self], cols: usize);
    /// The factor L of `a = L L*`. Reads only the lower half of `a`. `None` if `a` is not positive
    /// definite.
    fn cholesky(a: &[Self], n: usize) -> Option<Vec<Self>>;
    /// The factors Q and R of an `m` by `n` matrix, either full (`m` by `m` and `m` by `n`) or
    /// thin.
    fn qr(a: &[Self], m: usize, n: usize, whole: bool) -> (Vec<Self>, Vec<Self>);
    /// Singular values, largest first, and vectors. `None` if the iteration does not converge.
    fn svd(a: &[Self], m: usize, n: usize, whole: bool) -> Option<Svd<Self>>;
    fn singular_values(a: &[Self], m: usize, n: usize) -> Option<Vec<f64>>;
    /// Eigenvalues in ascending order and eigenvectors (in columns) of a self-adjoint matrix. Reads
    /// only its lower half. `None` if the iteration does not converge.
    fn eigh(a: &[Self], n: usize) -> Option<(Vec<f64>, Vec<Self>)>;
    fn eigvalsh(a: &[Self], n: usize) -> Option<Vec<f64>>;
    /// Eigenvalues and eigenvectors (in columns, of length 1) of any square matrix. `None` if the
    /// iteration does not converge.
    fn eig(a: &[Self], n: usize) -> Option<(Vec<Complex64>, Vec<Complex64>)>;
}

/// Which triangle a matrix has.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Half {
    Lower,
    /// Lower, with ones on the diagonal. The stored diagonal is ignored.
    UnitLower,
    Upper,
}

/// Singular values, and left and right singular vectors in columns: `a = u s v*`.
pub struct Svd<T> {
    pub s: Vec<f64>,
    pub u: Vec<T>,
    pub v: Vec<T>,
}

fn row_major<T: Copy>(m: MatRef<'_, T>) -> Vec<T> {
    let mut out = Vec::with_capacity(m.nrows() * m.ncols());
    for i in 0..m.nrows() {
        out.extend((0..m.ncols()).map(|j| m[(i, j)]));
    }
    out
}

fn identity<T: Field>(n: usize) -> Vec<T> {
    let mut out = vec![T::ZERO; n * n];
    out.iter_mut().step_by(n + 1).for_each(|x| *x = T::ONE);
    out
}

fn is_finite<T: Field>(a: &[T]) -> bool {
    a.iter().all(|x| x.modulus().is_finite())
}

fn lu<T: Field + ComplexField>(a: &mut [T], n: usize) -> Vec<usize> {
    let lu = PartialPivLu::new(MatRef::from_row_major_slice(a, n, n));
    let (l, u) = (lu.L(), lu.U());
    for i in 0..n {
        for j in 0..n {
            a[i * n + j] = if j < i { l[(i, j)] } else { u[(i, j)] };
        }
    }
    lu.P().arrays().0.to_vec()
}

fn solve_triangular<T: Field + ComplexField>(
    a: &[T],
    n: usize,
    half: Half,
    b: &mut [T],
    cols: usize,
) {
    let singular = half != Half::UnitLower && (0..n).any(|i| a[i * n + i] == T::ZERO);
    if n <= SMALL || cols == 0 || singular {
        return substitute(a, n, half, b, cols);
    }
    let a = MatRef::from_row_major_slice(a, n, n);
    let b = MatMut::from_row_major_slice_mut(b, n, cols);
    match half {
        Half::Lower => a.solve_lower_triangular_in_place(b),
        Half::UnitLower => a.solve_unit_lower_triangular_in_place(b),
        Half::Upper => a.solve_upper_triangular_in_place(b),
    }
}

/// Matrices up to this size are solved by plain substitution.
const SMALL: usize = 16;

/// Solves row by row. A zero on the diagonal gives infinities, as a division does.
fn substitute<T: Field>(a: &[T], n: usize, half: Half, b: &mut [T], cols: usize) {
    for step in 0..n {
        let i = if half == Half::Upper { n - 1 - step } else { step };
        let known = if half == Half::Upper { i + 1..n } else { 0..i };
        for j in known {
            let x = a[i * n + j];
            for c in 0..cols {
                b[i * cols + c] = b[i * cols + c].minus(x.times(b[j * cols + c]));
            }
        }
        if half != Half::UnitLower {
            b[i * cols..(i + 1) * cols].iter_mut().for_each(|x| *x = x.over(a[i * n + i]));
        }
    }
}

fn cholesky<T: Field + ComplexField>(a: &[T], n: usize) -> Option<Vec<T>> {
    let llt = Llt::new(MatRef::from_row_major_slice(a, n, n), Side::Lower).ok()?;
    Some(row_major(llt.L()))
}

fn qr<T: Field + ComplexField>(a: &[T], m: usize, n: usize, whole: bool) -> (Vec<T>, Vec<T>) {
    if m * n == 0 {
        let q = if whole { identity(m) } else { Vec::new() };
        return (q, Vec::new());
    }
    let qr = Qr::new(MatRef::from_row_major_slice(a, m, n));
    let mut q = if whole { qr.compute_Q() } else { qr.compute_thin_Q() };
    let mut r = qr.thin_R().to_owned();
    // The usual convention: the diagonal of R is real.
    for i in 0..m.min(n) {
        let d = r[(i, i)];
        let size = d.modulus();
        if d == T::from_real(d.real()) || size == 0.0 || !size.is_finite() {
            continue;
        }
        let phase = d.over(T::from_real(if d.real() < 0.0 { -size } else { size }));
        (0..n).for_each(|j| r[(i, j)] = r[(i, j)].times(phase.conjugate()));
        (0..m).for_each(|j| q[(j, i)] = q[(j, i)].times(phase));
    }
    let mut r = row_major(r.as_ref());
    r.resize(q.ncols() * n, T::ZERO);
    (row_major(q.as_ref()), r)
}

fn svd<T: Field + ComplexField>(a: &[T], m: usize, n: usize, whole: bool) -> Option<Svd<T>> {
    if m * n == 0 {
        let side = |k: usize| if whole { identity(k) } else { Vec::new() };
        return Some(Svd { s: Vec::new(), u: side(m), v: side(n) });
    }
    if !is_finite(a) {
        return None;
    }
    let a = MatRef::from_row_major_slice(a, m, n);
    let svd = if whole { FaerSvd::new(a) } else { FaerSvd::new_thin(a) }.ok()?;
    let s = svd.S().column_vector().iter().map(|x| x.real()).collect();
    Some(Svd { s, u: row_major(svd.U()), v: row_major(svd.V()) })
}

fn eigh<T: Field + ComplexField>(a: &[T], n: usize) -> Option<(Vec<f64>, Vec<T>)> {
    if n == 0 {
        return Some((Vec::new(), Vec::new()));
    }
    if !is_finite(&lower(a, n)) {
        return None;
    }
    let eigen = SelfAdjointEigen::new(MatRef::from_row_major_slice(a, n, n), Side::Lower).ok()?;
    let values = eigen.S().column_vector().iter().map(|x| x.real()).collect();
    Some((values, row_major(eigen.U())))
}

/// A copy with zeros in the upper half.
fn lower<T: Field>(a: &[T], n: usize) -> Vec<T> {
    let mut a = a.to_vec();
    for i in 0..n {
        a[i * n + i + 1..(i + 1) * n].fill(T::ZERO);
    }
    a
}

fn eigen_parts(eigen: Eigen<f64>, n: usize) -> (Vec<Complex64>, Vec<Complex64>) {
    let values = eigen.S().column_vector().iter().copied().collect();
    let mut vectors: Mat<Complex64> = eigen.U().to_owned();
    for j in 0..n {
        let norm = (0..n).map(|i| vectors[(i, j)].norm_sqr()).sum::<f64>().sqrt();
        if norm > 0.0 {
            (0..n).for_each(|i| vectors[(i, j)] /= norm);
        }
    }
    (values, row_major(vectors.as_ref()))
}

macro_rules! factorisations {
    ($new_eigen:expr) => {
        fn plus(self, other: Self) -> Self {
            self + other
        }
        fn minus(self, other: Self) -> Self {
            self - other
        }
        fn times(self, other: Self) -> Self {
            self * other
        }
        fn over(self, other: Self) -> Self {
            self / other
        }
        fn lu(a: &mut [Self], n: usize) -> Vec<usize> {
            lu(a, n)
        }
        fn solve_triangular(a: &[Self], n: usize, half: Half, b: &mut [Self], cols: usize) {
            solve_triangular(a, n, half, b, cols)
        }
        fn cholesky(a: &[Self], n: usize) -> Option<Vec<Self>> {
            cholesky(a, n)
        }
        fn qr(a: &[Self], m: usize, n: usize, whole: bool) -> (Vec<Self>, Vec<Self>) {
            qr(a, m, n, whole)
        }
        fn svd(a: &[Self], m: usize, n: usize, whole: bool) -> Option<Svd<Self>> {
            svd(a, m, n, whole)
        }
        fn singular_values(a: &[Self], m: usize, n: usize) -> Option<Vec<f64>> {
            if m * n == 0 {
                return Some(Vec::new());
            }
            if !is_finite(a) {
                return None;
            }
            MatRef::from_row_major_slice(a, m, n).singular_values().ok()
        }
        fn eigh(a: &[Self], n: usize) -> Option<(Vec<f64>, Vec<Self>)> {
            eigh(a, n)
        }
        fn eigvalsh(a: &[Self], n: usize) -> Option<Vec<f64>> {
            if !is_finite(&lower(a, n)) {
                return None;
            }
            MatRef::from_row_major_slice(a, n, n).self_adjoint_eigenvalues(Side::Lower).ok()
        }
        fn eig(a: &[Self], n: usize) -> Option<(Vec<Complex64>, Vec<Complex64>)> {
            if !is_finite(a) {
                return None;
            }
            let eigen = $new_eigen(MatRef::from_row_major_slice(a, n, n)).ok()?;
            Some(eigen_parts(eigen, n))
        }
    };
}

impl Field for f64 {
    const ZERO: f64 = 0.0;
    const ONE: f64 = 1.0;
    fn from_real(x: f64) -> f64 {
        x
    }
    fn real(self) -> f64 {
        self
    }
    fn modulus(self) -> f64 {
        self.abs()
    }
    fn conjugate(self) -> f64 {
        self
    }
    factorisations!(Eigen::new_from_real);
}

impl Field for Complex64 {
    const ZERO: Complex64 = Complex64::new(0.0, 0.0);
    const ONE: Complex64 = Complex64::new(1.0, 0.0);
    fn from_real(x: f64) -> Complex64 {
        Complex64::new(x, 0.0)
    }
    fn real(self) -> f64 {
        self.re
    }
    fn modulus(self) -> f64 {
        self.norm()
    }
    fn conjugate(self) -> Complex64 {
        self.conj()
    }
    factorisations!(Eigen::new);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample<T: Field>(m: usize, n: usize, make: impl Fn(f64, f64) -> T) -> Vec<T> {
        (0..m * n).map(|i| make((i * 7 % 13) as f64 - 5.0, (i * 5 % 11) as f64 - 4.0)).collect()
    }

    fn product<T: Field>(a: &[T], b: &[T], m: usize, k: usize, n: usize) -> Vec<T> {
        let mut out = vec![T::ZERO; m * n];
        for i in 0..m {
            for j in 0..n {
                for l in 0..k {
                    out[i * n + j] = out[i * n + j].plus(a[i * k + l].times(b[l * n + j]));
                }
            }
        }
        out
    }

    fn adjoint<T: Field>(a: &[T], m: usize, n: usize) -> Vec<T> {
        (0..m * n).map(|i| a[i % m * n + i / m].conjugate()).collect()
    }

    fn close<T: Field>(a: &[T], b: &[T]) {
        assert_eq!(a.len(), b.len());
        for (x, y) in a.iter().zip(b) {
            assert!(x.minus(*y).modulus() < 1e-9, "{x:?} is not {y:?}");
        }
    }

    fn factors<T: Field>(make: fn(f64, f64) -> T, complex: fn(T) -> Complex64) {
        let n = 6;
        let a = sample(n, n, make);
        let mut packed = a.clone();
        let p = T::lu(&mut packed, n);
        let (mut l, mut u) = (identity::<T>(n), vec![T::ZERO; n * n]);
        for i in 0..n {
            for j in 0..n {
                if j < i {
                    l[i * n + j] = packed[i * n + j];
                } else {
                    u[i * n + j] = packed[i * n + j];
                }
            }
        }
        let permuted: Vec<T> = p.iter().flat_map(|&i| a[i * n..(i + 1) * n].to_vec()).collect();
        close(&product(&l, &u, n, n, n), &permuted);

        let mut b = product(&a, &adjoint(&a, n, n), n, n, n);
        b.iter_mut().step_by(n + 1).for_each(|x| *x = x.plus(T::ONE));
        let l = T::cholesky(&b, n).unwrap();
        close(&product(&l, &adjoint(&l, n, n), n, n, n), &b);
        let (values, v) = T::eigh(&b, n).unwrap();
        let mut scaled = v.clone();
        for (i, x) in scaled.iter_mut().enumerate() {
            *x = x.times(T::from_real(values[i % n]));
        }
        close(&product(&b, &v, n, n, n), &scaled);

        for (m, n) in [(7, 4), (4, 7), (5, 5)] {
            let a = sample(m, n, make);
            for whole in [false, true] {
                let k = m.min(n);
                let (q, r) = T::qr(&a, m, n, whole);
                let inner = if whole { m } else { k };
                close(&product(&q, &r, m, inner, n), &a);
                close(&product(&adjoint(&q, m, inner), &q, inner, m, inner), &identity(inner));
                let svd = T::svd(&a, m, n, whole).unwrap();
                let (p, q) = if whole { (m, n) } else { (k, k) };
                let mut s = vec![T::ZERO; p * q];
                (0..k).for_each(|i| s[i * q + i] = T::from_real(svd.s[i]));
                let us = product(&svd.u, &s, m, p, q);
                close(&product(&us, &adjoint(&svd.v, n, q), m, q, n), &a);
            }
        }

        let (values, v) = T::eig(&a, n).unwrap();
        let a: Vec<Complex64> = a.iter().map(|&x| complex(x)).collect();
        let mut scaled = v.clone();
        for (i, x) in scaled.iter_mut().enumerate() {
            *x *= values[i % n];
        }
        close(&product(&a, &v, n, n, n), &scaled);
    }

    #[test]
    fn triangular_matrices_of_any_size_are_solved() {
        for n in [3, 40] {
            for half in [Half::Lower, Half::UnitLower, Half::Upper] {
                let mut a = sample(n, n, |re, _| re / 20.0);
                a.iter_mut().step_by(n + 1).for_each(|x| *x = 2.0);
                let x = sample(n, 2, |re, _| re);
                let mut kept = a.clone();
                for i in 0..n * n {
                    let (row, col) = (i / n, i % n);
                    match half {
                        Half::Lower | Half::UnitLower if col > row => kept[i] = 0.0,
                        Half::Upper if col < row => kept[i] = 0.0,
                        Half::UnitLower if col == row => kept[i] = 1.0,
                        _ => {}
                    }
                }
                let mut b = product(&kept, &x, n, n, 2);
                f64::solve_triangular(&a, n, half, &mut b, 2);
                close(&b, &x);
            }
        }
    }

    #[test]
    fn factors_of_real_matrices_multiply_to_the_matrix() {
        factors(|re, _| re, Complex64::from);
    }

    #[test]
    fn factors_of_complex_matrices_multiply_to_the_matrix() {
        factors(Complex64::new, |z| z);
    }

    #[test]
    fn matrices_with_nan_or_infinity_have_no_factors() {
        let a = [f64::NAN, 1.0, 1.0, 3.0];
        assert!(f64::cholesky(&a, 2).is_none());
        assert!(f64::svd(&a, 2, 2, false).is_none());
        assert!(f64::singular_values(&a, 2, 2).is_none());
        assert!(f64::eigh(&a, 2).is_none());
        assert!(f64::eigvalsh(&a, 2).is_none());
        assert!(f64::eig(&a, 2).is_none());
        assert!(f64::cholesky(&[0.0; 4], 2).is_none());
        assert_eq!(f64::lu(&mut [0.0; 4], 2), [0, 1]);
        assert_eq!(f64::lu(&mut [], 0), [0; 0]);
    }
}
