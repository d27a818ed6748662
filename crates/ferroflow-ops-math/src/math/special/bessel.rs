//! Bessel functions of order 0 and 1. "e" means exponentially scaled: times `exp(-|x|)` for I,
//! times `exp(x)` for K.

use std::f64::consts::{FRAC_PI_2, PI};

const EULER_GAMMA: f64 = 0.577_215_664_901_532_9;
/// From here on, the asymptotic series of I is precise.
const FAR: f64 = 25.0;

/// `order` is 0 or 1; the power series of I, without its leading power of `x / 2`.
fn i_series(order: f64, x: f64) -> f64 {
    let q = 0.25 * x * x;
    let (mut term, mut sum, mut k) = (1.0, 1.0, 1.0);
    while term > sum * f64::EPSILON / 4.0 {
        term *= q / (k * (k + order));
        sum += term;
        k += 1.0;
    }
    sum
}

/// The asymptotic series of scaled I.
fn ie_far(order: f64, x: f64) -> f64 {
    let mu = 4.0 * order * order;
    let (mut term, mut sum) = (1.0f64, 1.0);
    for k in 1..40 {
        let odd = (2 * k - 1) as f64;
        term *= (odd * odd - mu) / (8.0 * x * k as f64);
        sum += term;
        if term.abs() < f64::EPSILON / 4.0 {
            break;
        }
    }
    sum / (2.0 * PI * x).sqrt()
}

pub(super) fn i0e(x: f64) -> f64 {
    let x = x.abs();
    if x < FAR { i_series(0.0, x) * (-x).exp() } else { ie_far(0.0, x) }
}

pub(super) fn i1e(x: f64) -> f64 {
    let size = x.abs();
    let y = if size < FAR {
        0.5 * size * i_series(1.0, size) * (-size).exp()
    } else {
        ie_far(1.0, size)
    };
    if x < 0.0 { -y } else { y }
}

pub(super) fn i0(x: f64) -> f64 {
    x.abs().exp() * i0e(x)
}

pub(super) fn i1(x: f64) -> f64 {
    x.abs().exp() * i1e(x)
}

/// K of order 0 and 1 for `0 < x <= 2`: power series around the logarithm.
fn k_near(x: f64) -> (f64, f64) {
    let q = 0.25 * x * x;
    let log = (0.5 * x).ln();
    let (mut zeroth, mut first) = (0.0, 0.0);
    // Terms q^k / k!^2 and q^k / (k! (k + 1)!), and psi(k + 1) + gamma.
    let (mut t0, mut t1, mut harmonic) = (1.0, 1.0, 0.0);
    for k in 0..40 {
        let next = 1.0 / (k + 1) as f64;
        zeroth += t0 * harmonic;
        first += t1 * (2.0 * harmonic + next - 2.0 * EULER_GAMMA);
        harmonic += next;
        t0 *= q * next * next;
        t1 *= q * next / (k + 2) as f64;
    }
    let k0 = zeroth - (log + EULER_GAMMA) * i_series(0.0, x);
    let k1 = 1.0 / x + log * 0.5 * x * i_series(1.0, x) - 0.25 * x * first;
    (k0, k1)
}

/// Scaled K of order 0 and 1 for `x > 2`: Temme's continued fraction, by Steed's method.
fn ke_far(x: f64) -> (f64, f64) {
    let mut b = 2.0 * (1.0 + x);
    let mut d = 1.0 / b;
    let (mut h, mut step) = (d, d);
    let (mut q1, mut q2) = (0.0, 1.0);
    let (mut q, mut c, mut a) = (0.25, 0.25, -0.25);
    let mut s = 1.0 + q * step;
    for i in 2..10_000 {
        let i = i as f64;
        a -= 2.0 * (i - 1.0);
        c = -a * c / i;
        let next = (q1 - b * q2) / a;
        (q1, q2) = (q2, next);
        q += c * next;
        b += 2.0;
        d = 1.0 / (b + a * d);
        step *= b * d - 1.0;
        h += step;
        let ds = q * step;
        s += ds;
        if (ds / s).abs() < f64::EPSILON / 2.0 {
            break;
        }
    }
    let k0 = (FRAC_PI_2 / x).sqrt() / s;
    (k0, k0 * (x + 0.5 - 0.25 * h) / x)
}

/// Both orders, scaled or not.
fn k(x: f64, is_scaled: bool) -> (f64, f64) {
    if x.is_nan() {
        (x, x)
    } else if x <= 0.0 {
        (f64::INFINITY, f64::INFINITY)
    } else if x.is_infinite() {
        (0.0, 0.0)
    } else if x <= 2.0 {
        let (k0, k1) = k_near(x);
        let scale = if is_scaled { x.exp() } else { 1.0 };
        (k0 * scale, k1 * scale)
    } else {
        let (k0, k1) = ke_far(x);
        let scale = if is_scaled { 1.0 } else { (-x).exp() };
        (k0 * scale, k1 * scale)
    }
}

pub(super) fn k0(x: f64) -> f64 {
    k(x, false).0
}

pub(super) fn k1(x: f64) -> f64 {
    k(x, false).1
}

pub(super) fn k0e(x: f64) -> f64 {
    k(x, true).0
}

pub(super) fn k1e(x: f64) -> f64 {
    k(x, true).1
}

/// J and Y oscillate: at infinity they have no value.
fn inside(f: fn(f64) -> f64, x: f64) -> f64 {
    if x.is_infinite() { f64::NAN } else { f(x) }
}

pub(super) fn j0(x: f64) -> f64 {
    inside(libm::j0, x)
}

pub(super) fn j1(x: f64) -> f64 {
    inside(libm::j1, x)
}

pub(super) fn y0(x: f64) -> f64 {
    if x <= 0.0 { f64::NEG_INFINITY } else { inside(libm::y0, x) }
}

pub(super) fn y1(x: f64) -> f64 {
    if x <= 0.0 { f64::NEG_INFINITY } else { inside(libm::y1, x) }
}
