//! MatrixSquareRoot, MatrixLogarithm, MatrixExponential.

use super::lu::Factors;
use super::pieces;
use super::problem::{Field, Linear, Problem, adjoint, identity, square_shape, times};
use crate::prelude::*;
use ferroflow_dense::{Half, Schur, schur};

/// Number types whose matrices are converted to complex ones and back.
trait Complexed: Field {
    fn to_complex(self) -> Complex64;
    /// The real part, for real numbers.
    fn from_complex(z: Complex64) -> Self;
    const IS_REAL: bool;
}

impl Complexed for f64 {
    fn to_complex(self) -> Complex64 {
        Complex64::new(self, 0.0)
    }
    fn from_complex(z: Complex64) -> f64 {
        z.re
    }
    const IS_REAL: bool = true;
}

impl Complexed for Complex64 {
    fn to_complex(self) -> Complex64 {
        self
    }
    fn from_complex(z: Complex64) -> Complex64 {
        z
    }
    const IS_REAL: bool = false;
}

/// Applies a function of upper triangular matrices through the Schur form. Gives NaN if there is no
/// result.
fn by_schur<W: Complexed>(
    a: &[W],
    n: usize,
    function: impl Fn(&[Complex64], usize) -> Option<Vec<Complex64>>,
) -> Vec<W> {
    let complex: Vec<Complex64> = a.iter().map(|x| x.to_complex()).collect();
    let result = schur(&complex, n).and_then(|Schur { t, q }| {
        let size: f64 = t.iter().map(|z| z.norm()).fold(0.0, f64::max);
        let negative = |z: Complex64| z.re < 0.0 && z.im.abs() <= 1e-12 * size;
        if W::IS_REAL && (0..n).any(|i| negative(t[i * n + i])) {
            return None;
        }
        let f = function(&t, n)?;
        Some(times(&times(&q, &f, n, n, n), &adjoint(&q, n, n), n, n, n))
    });
    match result {
        Some(result) => result.into_iter().map(W::from_complex).collect(),
        None => vec![W::from_complex(Complex64::new(f64::NAN, f64::NAN)); n * n],
    }
}

/// The principal root of an upper triangular matrix, column by column.
fn triangular_root(t: &[Complex64], n: usize) -> Vec<Complex64> {
    let mut r = vec![Complex64::ZERO; n * n];
    for j in 0..n {
        r[j * n + j] = t[j * n + j].sqrt();
        for i in (0..j).rev() {
            let known: Complex64 = (i + 1..j).map(|k| r[i * n + k] * r[k * n + j]).sum();
            r[i * n + j] = (t[i * n + j] - known) / (r[i * n + i] + r[j * n + j]);
        }
    }
    r
}

/// Nodes and weights of Gauss and Legendre's rule with eight points, on 0..1.
const RULE: [(f64, f64); 8] = [
    (0.019855071751231884, 0.05061426814518813),
    (0.10166676129318664, 0.11119051722668724),
    (0.2372337950418355, 0.15685332293894363),
    (0.4082826787521751, 0.181341891689181),
    (0.591717321247825, 0.181341891689181),
    (0.7627662049581645, 0.15685332293894363),
    (0.8983332387068134, 0.11119051722668724),
    (0.9801449282487681, 0.05061426814518813),
];

/// The logarithm of an upper triangular matrix: roots until it is near one, then
/// `log(1 + X) = ∫ X (1 + tX)^-1 dt`. `None` if it is singular.
fn triangular_log(t: &[Complex64], n: usize) -> Option<Vec<Complex64>> {
    let mut root = t.to_vec();
    let mut doublings = 1.0;
    let distance = |m: &[Complex64]| {
        let off = |(i, z): (usize, &Complex64)| if i % (n + 1) == 0 { z - 1.0 } else { *z };
        m.iter().enumerate().map(|x| off(x).norm_sqr()).sum::<f64>().sqrt()
    };
    while distance(&root) > 0.25 {
        if doublings > 1e30 || !distance(&root).is_finite() {
            return None;
        }
        root = triangular_root(&root, n);
        doublings *= 2.0;
    }
    root.iter_mut().step_by(n + 1).for_each(|z| *z -= 1.0);
    let mut sum = vec![Complex64::ZERO; n * n];
    for (node, weight) in RULE {
        let mut system: Vec<Complex64> = root.iter().map(|z| z * node).collect();
        system.iter_mut().step_by(n + 1).for_each(|z| *z += 1.0);
        let mut x = root.clone();
        Complex64::solve_triangular(&system, n, Half::Upper, &mut x, n);
        sum.iter_mut().zip(&x).for_each(|(sum, x)| *sum += x * weight);
    }
    sum.iter_mut().for_each(|z| *z *= doublings);
    for i in 0..n {
        sum[i * n + i] = t[i * n + i].ln();
    }
    Some(sum)
}

/// Coefficients of the diagonal Padé approximant of degree 13 to the exponential.
const PADE: [f64; 14] = [
    64764752532480000.0,
    32382376266240000.0,
    7771770303897600.0,
    1187353796428800.0,
    129060195264000.0,
    10559470521600.0,
    670442572800.0,
    33522128640.0,
    1323241920.0,
    40840800.0,
    960960.0,
    16380.0,
    182.0,
    1.0,
];

/// The exponential, by scaling, Padé approximation and squaring.
fn exponential<W: Field>(a: &[W], n: usize) -> Vec<W> {
    let norm =
        a.chunks_exact(n).map(|row| row.iter().map(|x| x.modulus()).sum()).fold(0.0, f64::max);
    if !norm.is_finite() || a.iter().any(|x| x.modulus().is_nan()) {
        return vec![W::from_real(f64::NAN); n * n];
    }
    let squarings = (norm / 5.371920351148152).log2().ceil().clamp(0.0, 1100.0) as i32;
    let scale = W::from_real(0.5f64.powi(squarings));
    let a: Vec<W> = a.iter().map(|x| x.times(scale)).collect();
    let product = |x: &[W], y: &[W]| times(x, y, n, n, n);
    let a2 = product(&a, &a);
    let a4 = product(&a2, &a2);
    let a6 = product(&a4, &a2);
    let combined = |terms: &[(&[W], f64)]| -> Vec<W> {
        (0..n * n)
            .map(|i| {
                let term = |(m, c): &(&[W], f64)| m[i].times(W::from_real(*c));
                terms.iter().map(term).fold(W::ZERO, W::plus)
            })
            .collect()
    };
    let one = identity::<W>(n);
    let b = PADE;
    let high = combined(&[(&a6, b[13]), (&a4, b[11]), (&a2, b[9])]);
    let low = combined(&[(&a6, b[7]), (&a4, b[5]), (&a2, b[3]), (&one, b[1])]);
    let odd = product(&a, &combined(&[(&product(&a6, &high), 1.0), (&low, 1.0)]));
    let high = combined(&[(&a6, b[12]), (&a4, b[10]), (&a2, b[8])]);
    let low = combined(&[(&a6, b[6]), (&a4, b[4]), (&a2, b[2]), (&one, b[0])]);
    let even = combined(&[(&product(&a6, &high), 1.0), (&low, 1.0)]);
    let denominator = combined(&[(&even, 1.0), (&odd, -1.0)]);
    let numerator = combined(&[(&even, 1.0), (&odd, 1.0)]);
    let mut result = Factors::new(denominator, n).solve(&numerator, n);
    for _ in 0..squarings {
        result = product(&result, &result);
    }
    result
}

/// Applies a function to every matrix.
fn mapped<T: Linear>(function: fn(&[T::Wide], usize) -> Vec<T::Wide>) -> impl Kernel {
    move |ctx: &mut Ctx<'_>| {
        let problem = Problem::<T>::square(ctx)?;
        let n = problem.sizes[0].0;
        let mut out = problem.solve::<T>(&[vec![n, n]], |a| Ok(vec![function(&a[0], n)]))?;
        ctx.set(0, out.remove(0))
    }
}

fn square_root<W: Complexed>(a: &[W], n: usize) -> Vec<W> {
    by_schur(a, n, |t, n| Some(triangular_root(t, n)))
}

fn logarithm<W: Complexed>(a: &[W], n: usize) -> Vec<W> {
    by_schur(a, n, triangular_log)
}

/// From the Sylvester equation that the derivative obeys, written out with Kronecker products.
fn square_root_gradient<'g>(g: &GradientScope<'g>, dy: &[Term<'g>]) -> Result<Vec<Term<'g>>> {
    let root = g.output(0);
    let shape = root.shape();
    let attrs = Attrs::new().with("begin_mask", 1i64);
    let batch = [shape, g.ints(&[0]), g.ints(&[-2]), g.ints(&[1])];
    let batch = g.call_with("StridedSlice", &batch, attrs);
    let attrs = Attrs::new().with("end_mask", 1i64);
    let order =
        g.call_with("StridedSlice", &[shape, g.ints(&[-1]), g.ints(&[0]), g.ints(&[1])], attrs);
    let one = g.ints(&[1]);
    let squared = order * order;
    // The Kronecker product of two matrices.
    let kronecker = |a: Term<'g>, b: Term<'g>| {
        let a = a.reshape(g.concat(&[batch, order, one, order, one], 0));
        let b = b.reshape(g.concat(&[batch, one, order, one, order], 0));
        (a * b).reshape(g.concat(&[batch, squared, squared], 0))
    };
    let eye = pieces::identity_like(root);
    let sum = kronecker(eye, g.matrix_transpose(root)) + kronecker(root, eye);
    let column = g.matrix_transpose(dy[0]).reshape(g.concat(&[batch, squared, one], 0));
    let solved = g.call("MatrixSolve", &[sum, column]).reshape(shape);
    Ok(vec![g.matrix_transpose(solved)])
}

pub(crate) fn register(c: &mut Catalog) {
    c.op("MatrixSquareRoot")
        .doc("Principal square roots of matrices; NaN where there is none.")
        .input("input: T")
        .output("output: T")
        .attr("T: {double, float, half, complex64, complex128}")
        .expensive()
        .shape(square_shape)
        .cpu(per_dtype!(
            [Float f32, Double f64, Complex64 Complex32, Complex128 Complex64],
            T => mapped::<T>(square_root)
        ));
    c.op("MatrixLogarithm")
        .doc("Principal logarithms of matrices; NaN where there is none.")
        .input("input: T")
        .output("output: T")
        .attr("T: {complex64, complex128}")
        .expensive()
        .shape(square_shape)
        .cpu(per_dtype!(COMPLEX, T => mapped::<T>(logarithm)));
    c.op("MatrixExponential")
        .doc("Exponentials of matrices.")
        .input("input: T")
        .output("output: T")
        .attr("T: {double, float, half, complex64, complex128}")
        .expensive()
        .shape(square_shape)
        .cpu(per_dtype!(
            [Float f32, Double f64, Complex64 Complex32, Complex128 Complex64],
            T => mapped::<T>(exponential)
        ));
    c.gradient("MatrixSquareRoot", square_root_gradient);
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::testing::check;

    fn mat(values: [f64; 4]) -> Tensor {
        Tensor::from_slice([2, 2], &values).unwrap()
    }

    fn complex(values: [(f64, f64); 4]) -> Tensor {
        Tensor::from_slice([2, 2], &values.map(|(re, im)| Complex64::new(re, im))).unwrap()
    }

    #[test]
    fn roots_are_principal() {
        let root = |a| check("MatrixSquareRoot").input(mat(a));
        let want = mat([1.98157763, 0.27083221, 0.27083221, 1.71074543]);
        root([4.0, 1.0, 1.0, 3.0]).gives(want);
        let r = 0.5f64.sqrt();
        root([0.0, 1.0, -1.0, 0.0]).gives(mat([r, r, -r, r]));
        root([-4.0, 1.0, 1.0, 3.0]).gives(mat([f64::NAN; 4]));
        root([f64::NAN, 1.0, 1.0, 3.0]).gives(mat([f64::NAN; 4]));
    }

    #[test]
    fn logarithms_are_principal() {
        let log = |a| check("MatrixLogarithm").input(complex(a));
        let want =
            [(std::f64::consts::LN_2, 0.0), (0.40546511, 0.0), (0.0, 0.0), (1.09861229, 0.0)];
        log([(2.0, 0.0), (1.0, 0.0), (0.0, 0.0), (3.0, 0.0)]).gives(complex(want));
        let want = [
            (1.41539035, 3.08115461),
            (-0.0379759, -0.43153094),
            (-0.0379759, -0.43153094),
            (1.14955901, 0.06043804),
        ];
        log([(-4.0, 0.0), (1.0, 0.0), (1.0, 0.0), (3.0, 0.0)]).gives(complex(want));
        log([(0.0, 0.0); 4]).gives(complex([(f64::NAN, f64::NAN); 4]));
    }

    #[test]
    fn exponentials_of_small_and_large() {
        let exp = |a| check("MatrixExponential").input(mat(a));
        exp([0.0; 4]).gives(mat([1.0, 0.0, 0.0, 1.0]));
        exp([1.0, 0.0, 0.0, -20.0]).gives(mat([1f64.exp(), 0.0, 0.0, (-20f64).exp()]));
        let (s, c) = 10f64.sin_cos();
        exp([0.0, 10.0, -10.0, 0.0]).gives(mat([c, s, -s, c]));
    }
}
