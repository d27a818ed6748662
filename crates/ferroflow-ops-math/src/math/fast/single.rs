//! Single-precision functions without branches: every case is computed and the right one selected,
//! which compiles to vector instructions. Polynomials are our own minimax fits.
//!
//! The bits of NaN and infinity go through the same integer arithmetic, so that must wrap. No
//! multiplication is fused with an addition, so results are the same on every processor.

// Constants split into parts end in zeros on purpose; polynomials have the digits of `f32`.
#![allow(clippy::excessive_precision)]

/// Adding and subtracting 1.5 * 2^23 rounds to the nearest integer, which remains in the low bits.
const ROUND: f32 = 12582912.0;
/// ln 2 in two parts: integers up to 2^9 times the first are exact.
const LN2_HIGH: f32 = 0.693359375;
const LN2_LOW: f32 = -2.12194440e-4;

/// The polynomial with these coefficients, lowest first, by Horner's scheme.
#[inline(always)]
fn poly<const N: usize>(x: f32, coefficients: [f32; N]) -> f32 {
    let mut sum = coefficients[N - 1];
    let mut i = N - 1;
    while i > 0 {
        i -= 1;
        sum = sum * x + coefficients[i];
    }
    sum
}

/// `2^n` for `n` from -126 to 127, infinity for 128.
#[inline(always)]
fn power_of_two(n: i32) -> f32 {
    f32::from_bits((n.wrapping_add(127) << 23) as u32)
}

/// `x` as `n ln 2 + r`, with `exp(r) - 1` instead of `r`. Meaningful for |x| < 120.
#[inline(always)]
fn reduce(x: f32) -> (i32, f32) {
    let shifted = x * std::f32::consts::LOG2_E + ROUND;
    let n = (shifted.to_bits() as i32).wrapping_sub(ROUND.to_bits() as i32);
    let whole = shifted - ROUND;
    let r = (x - whole * LN2_HIGH) - whole * LN2_LOW;
    let tail = poly(r, [0.5, 0.16666667, 0.04166627, 0.0083332658, 0.0013946084, 0.00019917826]);
    (n, r + r * r * tail)
}

#[inline(always)]
pub(super) fn exp(x: f32) -> f32 {
    // At and beyond these limits the result is infinite or zero.
    let (n, m1) = reduce(x.clamp(-105.0, 89.0));
    // In two steps, so that no factor overflows before the result does.
    let half = n >> 1;
    // NaN reaches this point and passes through.
    (m1 + 1.0) * power_of_two(half) * power_of_two(n.wrapping_sub(half))
}

/// `1 / (1 + exp(-x))`. Where the exponential is below the smallest normal number it does not
/// count, and where it is above 2^127.5 the result is zero as for infinity.
#[inline(always)]
pub(super) fn sigmoid(x: f32) -> f32 {
    let (n, m1) = reduce((-x).clamp(-87.0, 89.0));
    1.0 / (1.0 + (m1 + 1.0) * power_of_two(n))
}

#[inline(always)]
pub(super) fn exp_m1(x: f32) -> f32 {
    let (n, m1) = reduce(x.clamp(-30.0, 89.0));
    let scale = power_of_two(n.min(127));
    let near = scale * m1 + (scale - 1.0);
    let half = n >> 1;
    let far = (m1 + 1.0) * power_of_two(half) * power_of_two(n.wrapping_sub(half));
    let y = if n > 30 { far } else { near };
    // Also keeps the sign of zero.
    if x.abs() < 1e-10 || x.is_nan() { x } else { y }
}

#[inline(always)]
pub(super) fn ln(x: f32) -> f32 {
    // Subnormal numbers are made normal.
    let is_tiny = x < f32::MIN_POSITIVE;
    let bits = (if is_tiny { x * 8388608.0 } else { x }).to_bits() as i32;
    // x = 2^e (1 + f), with 1 + f from sqrt(1/2) to sqrt(2).
    const SQRT_HALF: i32 = 0x3f3504f3;
    let e = bits.wrapping_sub(SQRT_HALF) >> 23;
    let f = f32::from_bits(bits.wrapping_sub(e << 23) as u32) - 1.0;
    let e = e as f32 - if is_tiny { 23.0 } else { 0.0 };
    let tail = poly(
        f,
        [
            0.33333310,
            -0.24999987,
            0.20002227,
            -0.16669251,
            0.14218658,
            -0.12384348,
            0.11872976,
            -0.11789808,
            0.06915368,
        ],
    );
    let square = f * f;
    let y = f + (f * square * tail + e * LN2_LOW - 0.5 * square) + e * LN2_HIGH;
    let y = if x == f32::INFINITY { x } else { y };
    // Also if a subnormal number was flushed to zero.
    let y = if bits & i32::MAX == 0 { f32::NEG_INFINITY } else { y };
    if x >= 0.0 { y } else { f32::NAN }
}

#[inline(always)]
pub(super) fn ln_1p(x: f32) -> f32 {
    // What rounding 1 + x loses is put back, to first order.
    let u = 1.0 + x;
    let lost = if x < 1.0 { x - (u - 1.0) } else { 1.0 - (u - x) };
    let y = ln(u) + if u < f32::INFINITY && u > 0.0 { lost / u } else { 0.0 };
    // For small x the logarithm's own polynomial has no error to put back.
    if x.abs() < 1e-7 { x } else { y }
}

#[inline(always)]
pub(super) fn tanh(x: f32) -> f32 {
    // (1 - exp(-2|x|)) / (1 + exp(-2|x|)), with the difference precise near zero.
    // Beyond the limit it is 1 to rounding.
    let z = -2.0 * x.abs();
    // Not `max`, which would replace NaN.
    let (n, m1) = reduce(if z < -30.0 { -30.0 } else { z });
    let scale = power_of_two(n);
    let m1 = scale * m1 + (scale - 1.0);
    (-m1 / (2.0 + m1)).copysign(x)
}

#[inline(always)]
pub(super) fn erf(x: f32) -> f32 {
    // Beyond the limit the result is 1 to rounding. Not `min`, which would replace NaN.
    let size = x.abs();
    let size = if size > 4.0 { 4.0 } else { size };
    let near = size
        + size
            * poly(
                size * size,
                [
                    0.128379166,
                    -0.376125991,
                    0.112832919,
                    -0.0268414393,
                    0.00516485749,
                    -0.000780574512,
                    7.18785523e-5,
                ],
            );
    // The fourth root of 1 - erf(x) is nearly linear, and its errors matter little where it is
    // small.
    let root = poly(
        size,
        [
            1.00518715,
            -0.307547808,
            -0.0654955432,
            -0.0485946871,
            0.0651127994,
            -0.0218959376,
            0.00317987846,
            -0.00017559847,
        ],
    );
    let square = root * root;
    let far = 1.0 - square * square;
    (if size < 1.1 { near } else { far }).copysign(x)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The largest error, in units in the last place of the true value.
    fn worst(f: fn(f32) -> f32, truth: fn(f64) -> f64, from: f32, to: f32) -> (f64, f32) {
        let (mut worst, mut at) = (0.0, 0.0);
        for i in 0..=400_000 {
            let x = from + (to - from) * (i as f32 / 400_000.0);
            let want = truth(x as f64);
            let near = want as f32;
            if near.is_infinite() || near.abs() < f32::MIN_POSITIVE {
                continue;
            }
            let ulp = (near.abs().next_up() - near.abs()) as f64;
            let error = (f(x) as f64 - want).abs() / ulp;
            if error > worst {
                (worst, at) = (error, x);
            }
        }
        (worst, at)
    }

    #[test]
    fn functions_are_precise() {
        let rows: [(&str, fn(f32) -> f32, fn(f64) -> f64, &[(f32, f32)], f64); 6] = [
            ("exp", exp, f64::exp, &[(-87.0, 88.72), (-1.0, 1.0)], 1.5),
            ("exp_m1", exp_m1, f64::exp_m1, &[(-20.0, 88.0), (-1.0, 1.0), (-1e-3, 1e-3)], 2.0),
            ("ln", ln, f64::ln, &[(1e-37, 1e-30), (0.0, 0.6), (0.5, 2.0), (2.0, 1e6)], 2.0),
            ("ln_1p", ln_1p, f64::ln_1p, &[(-0.99, 1.0), (-1e-3, 1e-3), (1.0, 1e6)], 2.5),
            ("tanh", tanh, f64::tanh, &[(-10.0, 10.0), (-1.0, 1.0), (-1e-3, 1e-3)], 3.0),
            ("erf", erf, libm::erf, &[(-5.0, 5.0), (-1.0, 1.0), (-1e-3, 1e-3)], 2.0),
        ];
        for (name, f, truth, ranges, allowed) in rows {
            for &(from, to) in ranges {
                let (error, at) = worst(f, truth, from, to);
                assert!(error <= allowed, "{name}({at}) is {error} units off, in {from}..{to}");
            }
        }
    }

    #[test]
    fn limits_are_those_of_the_standard_library() {
        let rows: [(&str, fn(f32) -> f32, fn(f32) -> f32); 6] = [
            ("exp", exp, f32::exp),
            ("exp_m1", exp_m1, f32::exp_m1),
            ("ln", ln, f32::ln),
            ("ln_1p", ln_1p, f32::ln_1p),
            ("tanh", tanh, f32::tanh),
            ("erf", erf, libm::erff),
        ];
        let inf = f32::INFINITY;
        let at =
            [0.0, -0.0, inf, -inf, f32::NAN, -1.0, 1e30, -1e30, 1e-30, -1e-30, f32::MAX, 1e-40];
        for (name, f, std) in rows {
            for x in at {
                let (got, want) = (f(x), std(x));
                let same = got == want && got.is_sign_negative() == want.is_sign_negative()
                    || got.is_nan() && want.is_nan()
                    || (got - want).abs() <= want.abs() * 2e-7;
                assert!(same, "{name}({x}) is {got}, not {want}");
            }
        }
        // Results too small to be normal are still there.
        assert!((exp(-100.0) - 3.7835e-44).abs() < 3e-45);
        assert_eq!(exp(-104.5), 0.0);
    }
}
