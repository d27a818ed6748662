//! The gamma function's family: digamma, zeta, polygamma, incomplete gamma and beta.

use libm::lgamma;
use std::f64::consts::PI;

const EPS: f64 = f64::EPSILON / 2.0;

/// Derivative of `lgamma`.
pub(super) fn digamma(x: f64) -> f64 {
    if x.is_nan() || x == f64::NEG_INFINITY {
        return f64::NAN;
    }
    if x <= 0.0 {
        if x == x.floor() {
            return f64::NAN;
        }
        // Reflection; the tangent is taken of the distance to the nearest integer.
        return digamma(1.0 - x) - PI / (PI * (x - x.round())).tan();
    }
    // Recurrence up to where the asymptotic series is precise.
    let (mut x, mut shift) = (x, 0.0);
    while x < 10.0 {
        shift += 1.0 / x;
        x += 1.0;
    }
    const TERMS: [f64; 7] = [
        1.0 / 12.0,
        -1.0 / 120.0,
        1.0 / 252.0,
        -1.0 / 240.0,
        1.0 / 132.0,
        -691.0 / 32760.0,
        1.0 / 12.0,
    ];
    let z = 1.0 / (x * x);
    let series = TERMS.iter().rev().fold(0.0, |sum, t| (sum + t) * z);
    x.ln() - 0.5 / x - series - shift
}

/// Hurwitz's zeta function: the sum of `(q + k)^-x` over all `k >= 0`.
pub(super) fn zeta(x: f64, q: f64) -> f64 {
    if x == 1.0 {
        return f64::INFINITY;
    }
    if x < 1.0 || x.is_nan() || q.is_nan() {
        return f64::NAN;
    }
    if q <= 0.0 {
        let is_whole = x == x.floor();
        if q == q.floor() {
            return if is_whole && x % 2.0 == 0.0 { f64::INFINITY } else { f64::NAN };
        }
        if !is_whole {
            return f64::NAN;
        }
    }
    if x.is_infinite() {
        return if q > 1.0 { 0.0 } else { f64::INFINITY };
    }
    // Plain sums at first, then Euler and Maclaurin's formula.
    let (mut a, mut sum, mut term, mut i) = (q, q.powf(-x), 0.0, 0);
    // Far below zero the sum would have about `q` terms and would not be more precise.
    while (i < 9 || a <= 9.0) && i < 10_000 {
        i += 1;
        a += 1.0;
        term = a.powf(-x);
        sum += term;
        if (term / sum).abs() < EPS {
            return sum;
        }
    }
    sum += term * a / (x - 1.0) - 0.5 * term;
    // (2k)! / B_2k.
    const FACTORS: [f64; 12] = [
        12.0,
        -720.0,
        30240.0,
        -1209600.0,
        47900160.0,
        -1.307674368e12 / 691.0,
        7.47242496e10,
        -1.067062284288e16 / 3617.0,
        5.109094217170944e18 / 43867.0,
        -8.028576626982912e20 / 174611.0,
        1.5511210043330986e23 / 854513.0,
        -1.6938241367317437e27 / 236364091.0,
    ];
    let (mut product, mut k) = (1.0, 0.0);
    for factor in FACTORS {
        product *= x + k;
        term /= a;
        let t = product * term / factor;
        sum += t;
        if (t / sum).abs() < EPS {
            break;
        }
        product *= x + k + 1.0;
        term /= a;
        k += 2.0;
    }
    sum
}

/// The `n`th derivative of [`digamma`].
pub(super) fn polygamma(n: f64, x: f64) -> f64 {
    if n == 0.0 {
        return digamma(x);
    }
    if n != n.floor() || n < 0.0 || n.is_nan() {
        return f64::NAN;
    }
    let sign = if n % 2.0 == 0.0 { -1.0 } else { 1.0 };
    sign * lgamma(n + 1.0).exp() * zeta(n + 1.0, x)
}

/// A value, its derivative for `a`, and the derivative of the quantile for `a`.
struct Incomplete {
    value: f64,
    by_a: f64,
    sample_by_a: f64,
}

/// After this many steps a series or fraction does not get better.
const MAX_STEPS: usize = 10_000;

/// Lower incomplete gamma, normalised: the series, for `x <= a` or small `x`.
fn lower_series(a: f64, x: f64) -> Incomplete {
    let scale = (a * x.ln() - x - lgamma(a)).exp() / a;
    let (mut r, mut c, mut sum, mut dc, mut dsum) = (a, 1.0, 1.0, 0.0, 0.0);
    for _ in 0..MAX_STEPS {
        r += 1.0;
        let (term, dterm) = (x / r, -x / (r * r));
        dc = term * dc + dterm * c;
        dsum += dc;
        c *= term;
        sum += c;
        if c <= EPS * sum && dc.abs() <= EPS * dsum.abs() {
            break;
        }
    }
    let dlog = x.ln() - digamma(a + 1.0);
    let slope = dsum + sum * dlog;
    Incomplete { value: sum * scale, by_a: slope * scale, sample_by_a: -slope * x / a }
}

/// Upper incomplete gamma, normalised: the continued fraction, for `x > a` and `x > 1`.
fn upper_fraction(a: f64, x: f64) -> Incomplete {
    let scale = (a * x.ln() - x - lgamma(a)).exp();
    const BIG: f64 = 1.0 / EPS;
    let (mut y, mut z, mut c) = (1.0 - a, x + 2.0 - a, 0.0);
    // Numerators and denominators of two convergents, with their derivatives.
    let (mut p2, mut q2, mut p1, mut q1) = (1.0, x, x + 1.0, z * x);
    let (mut dp2, mut dq2, mut dp1, mut dq1) = (0.0, 0.0, 0.0, -x);
    let mut value = p1 / q1;
    let mut slope = (dp1 - value * dq1) / q1;
    for _ in 0..MAX_STEPS {
        c += 1.0;
        y += 1.0;
        z += 2.0;
        let yc = y * c;
        let (p, q) = (p1 * z - p2 * yc, q1 * z - q2 * yc);
        let dp = dp1 * z - p1 - dp2 * yc + p2 * c;
        let dq = dq1 * z - q1 - dq2 * yc + q2 * c;
        let (before, slope_before) = (value, slope);
        if q != 0.0 {
            value = p / q;
            slope = (dp - value * dq) / q;
        }
        (p2, p1, q2, q1, dp2, dp1, dq2, dq1) = (p1, p, q1, q, dp1, dp, dq1, dq);
        if p.abs() > BIG {
            for v in [&mut p2, &mut p1, &mut q2, &mut q1, &mut dp2, &mut dp1, &mut dq2, &mut dq1] {
                *v /= BIG;
            }
        }
        let is_steady = (value - before).abs() <= EPS * value.abs();
        if q != 0.0 && is_steady && (slope - slope_before).abs() <= EPS {
            break;
        }
    }
    let slope = slope + value * (x.ln() - digamma(a));
    Incomplete { value: value * scale, by_a: slope * scale, sample_by_a: slope * x }
}

/// Whether the lower function is computed from the upper one.
fn is_upper(a: f64, x: f64) -> bool {
    x > 1.0 && x > a
}

/// Values at the ends of the domain; `None` inside it.
fn igamma_edge(a: f64, x: f64) -> Option<f64> {
    if x < 0.0 || a <= 0.0 || x.is_nan() || a.is_nan() {
        Some(f64::NAN)
    } else if a.is_infinite() {
        Some(if x.is_infinite() { f64::NAN } else { 0.0 })
    } else if x.is_infinite() {
        Some(1.0)
    } else {
        None
    }
}

/// Lower incomplete gamma function, normalised.
pub(super) fn igamma(a: f64, x: f64) -> f64 {
    if x == 0.0 {
        return 0.0;
    }
    if let Some(edge) = igamma_edge(a, x) {
        return edge;
    }
    if is_upper(a, x) { 1.0 - upper_fraction(a, x).value } else { lower_series(a, x).value }
}

/// Upper incomplete gamma function, normalised.
pub(super) fn igammac(a: f64, x: f64) -> f64 {
    if let Some(edge) = igamma_edge(a, x) {
        return 1.0 - edge;
    }
    if x == 0.0 {
        return 1.0;
    }
    if x < 1.0 || x < a { 1.0 - lower_series(a, x).value } else { upper_fraction(a, x).value }
}

/// Derivative of [`igamma`] for `a`.
pub(super) fn igamma_grad_a(a: f64, x: f64) -> f64 {
    if x == 0.0 {
        return 0.0;
    }
    if let Some(edge) = igamma_edge(a, x) {
        return edge * 0.0;
    }
    if is_upper(a, x) { -upper_fraction(a, x).by_a } else { lower_series(a, x).by_a }
}

/// How a gamma-distributed sample `x` moves with the distribution's `alpha`.
pub(super) fn random_gamma_grad(alpha: f64, x: f64) -> f64 {
    if x == 0.0 {
        return 0.0;
    }
    if let Some(edge) = igamma_edge(alpha, x) {
        return edge * 0.0;
    }
    if is_upper(alpha, x) {
        upper_fraction(alpha, x).sample_by_a
    } else {
        lower_series(alpha, x).sample_by_a
    }
}

/// Incomplete beta function, normalised.
pub(super) fn betainc(a: f64, b: f64, x: f64) -> f64 {
    let is_inside = a > 0.0 && b > 0.0 && (0.0..=1.0).contains(&x);
    if !is_inside {
        return f64::NAN;
    }
    if x == 0.0 || x == 1.0 {
        return x;
    }
    let front = (lgamma(a + b) - lgamma(a) - lgamma(b) + a * x.ln() + b * (-x).ln_1p()).exp();
    if x < (a + 1.0) / (a + b + 2.0) {
        front * beta_fraction(a, b, x) / a
    } else {
        1.0 - front * beta_fraction(b, a, 1.0 - x) / b
    }
}

/// The continued fraction of [`betainc`], by Lentz's method.
fn beta_fraction(a: f64, b: f64, x: f64) -> f64 {
    const TINY: f64 = 1e-300;
    let away = |v: f64| if v.abs() < TINY { TINY } else { v };
    let mut c = 1.0;
    let mut d = 1.0 / away(1.0 - (a + b) * x / (a + 1.0));
    let mut h = d;
    for m in 1..MAX_STEPS {
        let m = m as f64;
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        d = 1.0 / away(1.0 + even * d);
        c = away(1.0 + even / c);
        h *= d * c;
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        d = 1.0 / away(1.0 + odd * d);
        c = away(1.0 + odd / c);
        let step = d * c;
        h *= step;
        if (step - 1.0).abs() <= 2.0 * EPS {
            break;
        }
    }
    h
}
