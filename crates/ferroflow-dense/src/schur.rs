//! The complex Schur form, for square roots and logarithms of matrices.

use crate::Complex64;

/// `a = q t q*` with an upper triangular `t` and a unitary `q`, both row-major.
pub struct Schur {
    pub t: Vec<Complex64>,
    pub q: Vec<Complex64>,
}

const ZERO: Complex64 = Complex64::new(0.0, 0.0);
/// Most QR steps per eigenvalue.
const STEPS: usize = 40;

/// The Schur form of an `n` by `n` matrix, by shifted QR steps on its Hessenberg form. `None` if
/// they do not converge or the matrix is not finite.
pub fn schur(a: &[Complex64], n: usize) -> Option<Schur> {
    if !a.iter().all(|z| z.is_finite()) {
        return None;
    }
    let mut t = a.to_vec();
    let mut q = crate::identity::<Complex64>(n);
    to_hessenberg(&mut t, &mut q, n);
    let (mut hi, mut step) = (n.saturating_sub(1), 0);
    while hi > 0 {
        let lo = split(&mut t, n, hi);
        if lo == hi {
            (hi, step) = (hi - 1, 0);
            continue;
        }
        step += 1;
        if step > STEPS {
            return None;
        }
        let shift = if step % 10 == 0 {
            // An arbitrary shift breaks cycles.
            Complex64::from(t[hi * n + hi - 1].norm() + t[hi * n + hi].norm())
        } else {
            wilkinson_shift(&t, n, hi)
        };
        qr_step(&mut t, &mut q, n, lo, hi, shift);
    }
    Some(Schur { t, q })
}

/// Zeroes the entries below the first subdiagonal by reflections.
fn to_hessenberg(t: &mut [Complex64], q: &mut [Complex64], n: usize) {
    for k in 0..n.saturating_sub(2) {
        let mut v: Vec<Complex64> = (k + 1..n).map(|i| t[i * n + k]).collect();
        if v[1..].iter().all(|z| *z == ZERO) {
            continue;
        }
        let norm = v.iter().map(|z| z.norm_sqr()).sum::<f64>().sqrt();
        let phase = if v[0] == ZERO { Complex64::from(1.0) } else { v[0] / v[0].norm() };
        v[0] += phase * norm;
        let scale = 2.0 / v.iter().map(|z| z.norm_sqr()).sum::<f64>();
        // From the left on rows k + 1.., from the right on columns k + 1...
        for j in k..n {
            let dot: Complex64 =
                v.iter().enumerate().map(|(i, v)| v.conj() * t[(k + 1 + i) * n + j]).sum();
            for (i, v) in v.iter().enumerate() {
                t[(k + 1 + i) * n + j] -= v * dot * scale;
            }
        }
        for m in [&mut *t, &mut *q] {
            for row in m.chunks_exact_mut(n) {
                let row = &mut row[k + 1..];
                let dot: Complex64 = row.iter().zip(&v).map(|(x, v)| x * v).sum();
                for (x, v) in row.iter_mut().zip(&v) {
                    *x -= dot * v.conj() * scale;
                }
            }
        }
        for i in k + 2..n {
            t[i * n + k] = ZERO;
        }
    }
}

/// The start of the block that ends at `hi` and has no negligible subdiagonal entry.
fn split(t: &mut [Complex64], n: usize, hi: usize) -> usize {
    let mut lo = hi;
    while lo > 0 {
        let size = t[lo * n + lo].norm() + t[(lo - 1) * n + lo - 1].norm();
        let below = t[lo * n + lo - 1].norm();
        if below <= f64::EPSILON * size || below < f64::MIN_POSITIVE {
            t[lo * n + lo - 1] = ZERO;
            break;
        }
        lo -= 1;
    }
    lo
}

/// The eigenvalue of the last two rows that is closer to the last diagonal element.
fn wilkinson_shift(t: &[Complex64], n: usize, hi: usize) -> Complex64 {
    let (a, b) = (t[(hi - 1) * n + hi - 1], t[(hi - 1) * n + hi]);
    let (c, d) = (t[hi * n + hi - 1], t[hi * n + hi]);
    let half = (a - d) * 0.5;
    let root = (half * half + b * c).sqrt();
    let (p, q) = (half + root, half - root);
    let larger = if p.norm() > q.norm() { p } else { q };
    if larger == ZERO { d } else { d - b * c / larger }
}

/// One QR step on rows and columns `lo..=hi`, by rotations.
fn qr_step(
    t: &mut [Complex64],
    q: &mut [Complex64],
    n: usize,
    lo: usize,
    hi: usize,
    shift: Complex64,
) {
    for i in lo..=hi {
        t[i * n + i] -= shift;
    }
    let mut rotations = Vec::with_capacity(hi - lo);
    for k in lo..hi {
        let (x, y) = (t[k * n + k], t[(k + 1) * n + k]);
        let r = (x.norm_sqr() + y.norm_sqr()).sqrt();
        let (c, s) = if r == 0.0 { (Complex64::from(1.0), ZERO) } else { (x / r, y / r) };
        for j in k..n {
            let (x, y) = (t[k * n + j], t[(k + 1) * n + j]);
            t[k * n + j] = c.conj() * x + s.conj() * y;
            t[(k + 1) * n + j] = c * y - s * x;
        }
        rotations.push((c, s));
    }
    for (k, (c, s)) in (lo..hi).zip(rotations) {
        let turn = |row: &mut [Complex64]| {
            let (x, y) = (row[k], row[k + 1]);
            row[k] = x * c + y * s;
            row[k + 1] = y * c.conj() - x * s.conj();
        };
        t.chunks_exact_mut(n).take(k + 2).for_each(turn);
        q.chunks_exact_mut(n).for_each(turn);
    }
    for i in lo..=hi {
        t[i * n + i] += shift;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_schur_form_is_triangular_and_similar_to_the_matrix() {
        for n in [0, 1, 2, 5, 12] {
            let a: Vec<Complex64> = (0..n * n)
                .map(|i| Complex64::new((i * 7 % 13) as f64 - 5.0, (i * 5 % 11) as f64 - 4.0))
                .collect();
            let Schur { t, q } = schur(&a, n).unwrap();
            for i in 0..n {
                for j in 0..n {
                    assert!(j >= i || t[i * n + j].norm() < 1e-12);
                    let mut sum = ZERO;
                    for k in 0..n {
                        for l in 0..n {
                            sum += q[i * n + k] * t[k * n + l] * q[j * n + l].conj();
                        }
                    }
                    assert!((sum - a[i * n + j]).norm() < 1e-9);
                }
            }
        }
        assert!(schur(&[Complex64::new(f64::NAN, 0.0)], 1).is_none());
    }
}
