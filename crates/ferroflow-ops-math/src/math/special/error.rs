//! Inverses of the error function and of the normal distribution.

use libm::{erf, erfc};
use std::f64::consts::{FRAC_2_SQRT_PI, LN_2, PI, SQRT_2};

/// Inverse of `erf`.
pub(super) fn erfinv(x: f64) -> f64 {
    if x.is_nan() || x.abs() > 1.0 {
        return f64::NAN;
    }
    if x.abs() == 1.0 {
        return f64::INFINITY.copysign(x);
    }
    // A rough value (M. Giles, "Approximating the erfinv function"), polished by Halley's method.
    let near = |w: f64, c: [f64; 9]| c.iter().fold(0.0, |p, c| p * w + c);
    let w = -((1.0 - x) * (1.0 + x)).ln();
    let rough = if w < 5.0 {
        let c = [
            2.81022636e-08,
            3.43273939e-07,
            -3.5233877e-06,
            -4.39150654e-06,
            0.00021858087,
            -0.00125372503,
            -0.00417768164,
            0.246640727,
            1.50140941,
        ];
        near(w - 2.5, c)
    } else {
        let c = [
            -0.000200214257,
            0.000100950558,
            0.00134934322,
            -0.00367342844,
            0.00573950773,
            -0.0076224613,
            0.00943887047,
            1.00167406,
            2.83297682,
        ];
        near(w.sqrt() - 3.0, c)
    };
    let size = x.abs();
    let mut y = rough * size;
    for _ in 0..2 {
        let miss = if size < 0.5 { erf(y) - size } else { (1.0 - size) - erfc(y) };
        let step = miss / (FRAC_2_SQRT_PI * (-y * y).exp());
        y -= step / (1.0 + y * step);
    }
    y.copysign(x)
}

/// Inverse of the distribution function of the standard normal distribution.
pub(super) fn ndtri(p: f64) -> f64 {
    if !(0.0..=1.0).contains(&p) {
        return f64::NAN;
    }
    if p > 0.5 { -ndtri_lower(1.0 - p) } else { ndtri_lower(p) }
}

/// [`ndtri`] up to one half.
fn ndtri_lower(p: f64) -> f64 {
    if p == 0.0 {
        return f64::NEG_INFINITY;
    }
    if p > 0.02 {
        return SQRT_2 * erfinv(2.0 * p - 1.0);
    }
    // Newton's method on the logarithm, which is nearly a parabola out here.
    let log = p.ln();
    let mut y = (-2.0 * log).sqrt();
    y = (-2.0 * log - (2.0 * PI).ln() - 2.0 * y.ln()).sqrt();
    for _ in 0..4 {
        let twice = erfc(y / SQRT_2);
        let density = (-0.5 * y * y).exp() / (2.0 * PI).sqrt();
        if twice == 0.0 || density == 0.0 {
            break;
        }
        y += (twice.ln() - LN_2 - log) * 0.5 * twice / density;
    }
    -y
}
