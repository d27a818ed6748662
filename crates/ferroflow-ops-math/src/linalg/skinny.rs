//! Products of a few rows with a large matrix, in single precision, on processors with AVX-512.
//! They are limited by reading the second factor, which is therefore read once, in the order in
//! which it is stored, and never copied.

use super::gemm::Job;
use std::arch::x86_64::*;

/// Elements of a vector.
const LANES: usize = 16;
/// Most rows of the first factor: with two columns each, their sums fill the registers.
const MOST_ROWS: usize = 13;
/// The number of rows of the second factor that are read at a time. Then the number of their
/// columns, which stay in the first-level cache.
const STEPS: usize = 8;
const WIDTH: usize = 512;

/// Whether [`multiply`] supports a product and is the fastest way.
pub(super) fn suits(job: &Job<f32>) -> bool {
    let Job { m, n, k, .. } = *job;
    m <= MOST_ROWS
        && n >= 4 * LANES
        && k >= 4 * LANES
        && job.a_strides[1] == 1
        && job.b_strides.contains(&1)
        && std::arch::is_x86_feature_detected!("avx512f")
}

/// # Safety
/// [`suits`] must say so of the product of which this is a part, and the job be as [`Job`] demands.
#[target_feature(enable = "avx512f")]
pub(super) unsafe fn multiply(job: &Job<f32>) {
    // SAFETY: as promised by the caller.
    unsafe {
        match job.b_strides[1] {
            1 => by_rows(job),
            _ => DOTS[job.m - 1](job),
        }
    }
}

/// Adds multiples of the second factor's rows to the result.
///
/// # Safety
/// As for [`multiply`]; rows of the second factor lie in one piece.
#[target_feature(enable = "avx512f")]
unsafe fn by_rows(job: &Job<f32>) {
    for step in (0..job.k).step_by(STEPS) {
        let steps = STEPS.min(job.k - step);
        let is_sum = job.add || step > 0;
        for column in (0..job.n).step_by(WIDTH) {
            let columns = WIDTH.min(job.n - column);
            for row in 0..job.m {
                // SAFETY: the row, steps and columns are some of the factors' and the result's.
                unsafe {
                    let a = job.a.add(row * job.a_strides[0] + step);
                    let b = job.b.add(step * job.b_strides[0] + column);
                    let out = job.out.add(row * job.out_stride + column);
                    match steps {
                        STEPS => add_rows::<STEPS>(a, b, job.b_strides[0], out, columns, is_sum),
                        _ => {
                            for s in 0..steps {
                                let b = b.add(s * job.b_strides[0]);
                                let is_sum = is_sum || s > 0;
                                add_rows::<1>(a.add(s), b, job.b_strides[0], out, columns, is_sum);
                            }
                        }
                    }
                }
            }
        }
    }
}

/// `out = (out +) a[0] * b[0] + a[1] * b[1] + …` for `N` rows of `b`.
///
/// # Safety
/// `N` elements of `a`, `columns` of each row of `b` and of `out` must be accessible.
#[target_feature(enable = "avx512f")]
unsafe fn add_rows<const N: usize>(
    a: *const f32,
    b: *const f32,
    stride: usize,
    out: *mut f32,
    columns: usize,
    is_sum: bool,
) {
    // SAFETY: as promised by the caller.
    unsafe {
        let mut factors = [_mm512_setzero_ps(); N];
        for (s, factor) in factors.iter_mut().enumerate() {
            *factor = _mm512_set1_ps(*a.add(s));
        }
        for j in (0..columns).step_by(LANES) {
            let mask = lanes(columns - j);
            let mut sum = match is_sum {
                true => _mm512_maskz_loadu_ps(mask, out.add(j)),
                false => _mm512_setzero_ps(),
            };
            for (s, factor) in factors.iter().enumerate() {
                let b = _mm512_maskz_loadu_ps(mask, b.add(s * stride + j));
                sum = _mm512_fmadd_ps(*factor, b, sum);
            }
            _mm512_mask_storeu_ps(out.add(j), mask, sum);
        }
    }
}

/// A mask of the first `n` lanes; all lanes if there are no more.
fn lanes(n: usize) -> __mmask16 {
    if n < LANES { (1 << n) - 1 } else { !0 }
}

/// [`by_dots`] for each number of rows.
const DOTS: [unsafe fn(&Job<f32>); MOST_ROWS] = [
    by_dots::<1>,
    by_dots::<2>,
    by_dots::<3>,
    by_dots::<4>,
    by_dots::<5>,
    by_dots::<6>,
    by_dots::<7>,
    by_dots::<8>,
    by_dots::<9>,
    by_dots::<10>,
    by_dots::<11>,
    by_dots::<12>,
    by_dots::<13>,
];

/// Each element of the result as a product of two vectors.
///
/// # Safety
/// As for [`multiply`]; there are `M` rows, and columns of the second factor lie in one piece.
#[target_feature(enable = "avx512f")]
unsafe fn by_dots<const M: usize>(job: &Job<f32>) {
    let even = job.n / 2 * 2;
    for column in (0..even).step_by(2) {
        // SAFETY: the columns are some of the second factor's.
        unsafe { dots::<M, 2>(job, column) };
    }
    if even < job.n {
        // SAFETY: as above.
        unsafe { dots::<M, 1>(job, even) };
    }
}

/// # Safety
/// As for [`by_dots`]; there are `N` columns from `column` on.
#[target_feature(enable = "avx512f")]
unsafe fn dots<const M: usize, const N: usize>(job: &Job<f32>, column: usize) {
    let mut sums = [[_mm512_setzero_ps(); N]; M];
    // SAFETY: rows and columns of `k` elements each are the factors', and the result's element of
    // each pair of them exists.
    unsafe {
        let b = job.b.add(column * job.b_strides[1]);
        for step in (0..job.k).step_by(LANES) {
            let mask = lanes(job.k - step);
            let mut columns = [_mm512_setzero_ps(); N];
            for (c, values) in columns.iter_mut().enumerate() {
                *values = _mm512_maskz_loadu_ps(mask, b.add(c * job.b_strides[1] + step));
            }
            for (r, sums) in sums.iter_mut().enumerate() {
                let a = _mm512_maskz_loadu_ps(mask, job.a.add(r * job.a_strides[0] + step));
                for (sum, b) in sums.iter_mut().zip(&columns) {
                    *sum = _mm512_fmadd_ps(a, *b, *sum);
                }
            }
        }
        for (r, sums) in sums.iter().enumerate() {
            for (c, sum) in sums.iter().enumerate() {
                let out = job.out.add(r * job.out_stride + column + c);
                let before = if job.add { *out } else { 0.0 };
                *out = before + _mm512_reduce_add_ps(*sum);
            }
        }
    }
}
