//! Dawson's, Fresnel's, exponential and dilogarithm integrals.

use ferroflow_core::Complex64;
use std::f64::consts::{FRAC_PI_2, PI};

const EULER_GAMMA: f64 = 0.577_215_664_901_532_9;

/// `exp(-x^2)` times the integral of `exp(t^2)` from 0 to `x`.
pub(super) fn dawsn(x: f64) -> f64 {
    let size = x.abs();
    if x.is_nan() {
        x
    } else if size < 1.0 {
        // The sum of (-2 x^2)^k x / (2k + 1)!!.
        let (mut term, mut sum) = (x, x);
        for k in 1..40 {
            term *= -2.0 * x * x / (2 * k + 1) as f64;
            sum += term;
        }
        sum
    } else if size > 30.0 {
        let r = 0.5 / (x * x);
        0.5 / x * (1.0 + r * (1.0 + 3.0 * r * (1.0 + 5.0 * r * (1.0 + 7.0 * r * (1.0 + 9.0 * r)))))
    } else {
        // Rybicki's sum of exp(-(x - n h)^2) / n over odd n, around those near x / h.
        const H: f64 = 0.25;
        let even = 2.0 * (0.5 * size / H).round();
        let rest = size - even * H;
        let mut sum = 0.0;
        for i in 0..14 {
            let n = (2 * i + 1) as f64;
            let (below, above) = (rest + n * H, rest - n * H);
            sum += (-below * below).exp() / (even - n) + (-above * above).exp() / (even + n);
        }
        (sum / PI.sqrt()).copysign(x)
    }
}

/// The principal value of the integral of `exp(t) / t` up to `x > 0`.
pub(super) fn expint(x: f64) -> f64 {
    if x.is_nan() || x < 0.0 || x.is_infinite() {
        return f64::NAN;
    }
    if x == 0.0 {
        return f64::NEG_INFINITY;
    }
    if x < 40.0 {
        let (mut power, mut sum) = (1.0, 0.0);
        for k in 1..200 {
            let k = k as f64;
            power *= x / k;
            let term = power / k;
            sum += term;
            if term < f64::EPSILON / 2.0 * sum {
                break;
            }
        }
        return EULER_GAMMA + x.ln() + sum;
    }
    let (mut term, mut sum) = (1.0, 1.0);
    for k in 1..40 {
        term *= k as f64 / x;
        sum += term;
    }
    // In two factors, so that only the result overflows.
    (0.5 * x).exp() * (sum / x) * (0.5 * x).exp()
}

/// Fresnel's integrals of the cosine and the sine of `pi t^2 / 2` from 0 to `x`.
fn fresnel(x: f64) -> (f64, f64) {
    let size = x.abs();
    let (c, s) = if x.is_nan() {
        return (x, x);
    } else if size < 1.6 {
        let t = FRAC_PI_2 * size * size;
        let (mut power, mut c, mut s) = (size, size, 0.0);
        for k in 1..60 {
            // Terms alternate between the two, and in pairs their signs.
            power *= t / k as f64;
            let term = power / (2 * k + 1) as f64;
            let signed = if k / 2 % 2 == 0 { term } else { -term };
            if k % 2 == 0 {
                c += signed
            } else {
                s += signed
            }
            if term < f64::EPSILON / 4.0 * s.abs() {
                break;
            }
        }
        (c, s)
    } else if size > 1e8 {
        (0.5, 0.5)
    } else {
        // The complementary error function of a complex number, as a continued fraction.
        let t = PI * size * size;
        let mut b = Complex64::new(1.0, -t);
        let (mut c, mut d) = (Complex64::new(1e300, 0.0), Complex64::ONE / b);
        let mut h = d;
        for k in 1..1000 {
            let n = (2 * k - 1) as f64;
            let a = -n * (n + 1.0);
            b += 4.0;
            d = Complex64::ONE / (d * a + b);
            c = b + a / c;
            let step = c * d;
            h *= step;
            if (step.re - 1.0).abs() + step.im.abs() < f64::EPSILON {
                break;
            }
        }
        h *= Complex64::new(size, -size);
        let (sin, cos) = (0.5 * t).sin_cos();
        let both = Complex64::new(0.5, 0.5) * (Complex64::ONE - Complex64::new(cos, sin) * h);
        (both.re, both.im)
    };
    if x < 0.0 { (-c, -s) } else { (c, s) }
}

pub(super) fn fresnel_cos(x: f64) -> f64 {
    fresnel(x).0
}

pub(super) fn fresnel_sin(x: f64) -> f64 {
    fresnel(x).1
}

/// Spence's integral: the dilogarithm of `1 - x`.
pub(super) fn spence(x: f64) -> f64 {
    if x.is_nan() || x < 0.0 || x.is_infinite() {
        return f64::NAN;
    }
    const AT_ZERO: f64 = PI * PI / 6.0;
    if x == 0.0 {
        AT_ZERO
    } else if x > 1.5 {
        -0.5 * x.ln().powi(2) - spence(1.0 / x)
    } else if x < 0.5 {
        AT_ZERO - x.ln() * (-x).ln_1p() - spence(1.0 - x)
    } else {
        let z = 1.0 - x;
        let (mut power, mut sum) = (1.0, 0.0);
        for k in 1..60 {
            power *= z;
            sum += power / (k * k) as f64;
        }
        sum
    }
}
