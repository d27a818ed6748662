//! Products of a few rows with a large matrix, in single precision, on processors with AVX-512.
//! They are limited by reading the second factor, which is therefore read once, in the order in
//! which it is stored, and never copied.

use super::gemm::Job;
use std::arch::x86_64::*;
use std::ops::Range;

/// Elements of a vector.
const LANES: usize = 16;
/// Most rows of the first factor: with two columns each, their sums fill the registers.
const MOST_ROWS: usize = 13;
/// The number of rows of the second factor that are read at a time by one row of the first. Then
/// the number of their columns, which stay in the first-level cache.
const STEPS: usize = 8;
const WIDTH: usize = 512;
/// The number of rows of the second factor that several rows read at a time: each is a stream of
/// its own for the processor. Rows that are some pages apart share their place in the cache.
const STREAMS: usize = 32;
const STREAMS_OF_PAGES: usize = 16;
/// Elements of two pages.
const PAGES: usize = 2048;

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
            1 if job.m == 1 => by_row(job),
            1 => PANELS[job.m - 2](job),
            _ => DOTS[job.m - 1](job),
        }
    }
}

/// Adds multiples of the second factor's rows to the only row of the result.
///
/// # Safety
/// As for [`multiply`]; rows of the second factor lie in one piece.
#[target_feature(enable = "avx512f")]
unsafe fn by_row(job: &Job<f32>) {
    for step in (0..job.k).step_by(STEPS) {
        let steps = STEPS.min(job.k - step);
        let is_sum = job.add || step > 0;
        for column in (0..job.n).step_by(WIDTH) {
            let columns = WIDTH.min(job.n - column);
            // SAFETY: the steps and columns are some of the factors' and the result's.
            unsafe {
                let a = job.a.add(step);
                let b = job.b.add(step * job.b_strides[0] + column);
                let out = job.out.add(column);
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

/// [`by_panels`] for each number of rows from 2 on. The sums of all rows, a row of the second
/// factor and one more vector fill the registers.
const PANELS: [unsafe fn(&Job<f32>); MOST_ROWS - 1] = [
    by_panels::<2, 4>,
    by_panels::<3, 4>,
    by_panels::<4, 4>,
    by_panels::<5, 4>,
    by_panels::<6, 4>,
    by_panels::<7, 3>,
    by_panels::<8, 3>,
    by_panels::<9, 3>,
    by_panels::<10, 2>,
    by_panels::<11, 2>,
    by_panels::<12, 2>,
    by_panels::<13, 2>,
];

/// Adds products of `M` rows and a piece of the second factor to `V` vectors of each row of the
/// result, piece by piece. So an element of the second factor is read once for all rows.
///
/// # Safety
/// As for [`multiply`]; there are `M` rows, and rows of the second factor lie in one piece.
#[target_feature(enable = "avx512f")]
unsafe fn by_panels<const M: usize, const V: usize>(job: &Job<f32>) {
    let most = if job.b_strides[0].is_multiple_of(PAGES) { STREAMS_OF_PAGES } else { STREAMS };
    for step in (0..job.k).step_by(most) {
        let steps = step..job.k.min(step + most);
        let is_sum = job.add || step > 0;
        let whole = job.n / (V * LANES) * (V * LANES);
        for column in (0..whole).step_by(V * LANES) {
            // SAFETY: the steps and columns are some of the factors' and the result's.
            unsafe { panel::<M, V, false>(job, steps.clone(), column, is_sum) };
        }
        if whole < job.n {
            // SAFETY: as above.
            unsafe { panel::<M, V, true>(job, steps, whole, is_sum) };
        }
    }
}

/// The part of `V` vectors from `column` on, or of the last columns if they are `PARTIAL`.
///
/// # Safety
/// As for [`by_panels`]; the steps and columns exist.
#[target_feature(enable = "avx512f")]
unsafe fn panel<const M: usize, const V: usize, const PARTIAL: bool>(
    job: &Job<f32>,
    steps: Range<usize>,
    column: usize,
    is_sum: bool,
) {
    let mut masks = [!0; V];
    if PARTIAL {
        for (j, mask) in masks.iter_mut().enumerate() {
            *mask = lanes((job.n - column).saturating_sub(j * LANES));
        }
    }
    let ahead = steps.len() * job.b_strides[0];
    // Pointers of vectors beyond the last column are made, and not read.
    let out = job.out.wrapping_add(column);
    let mut sums = [[_mm512_setzero_ps(); V]; M];
    // Loops use indices: closures with vectors are not always inlined.
    if is_sum {
        for i in 0..M {
            for j in 0..V {
                let from = out.wrapping_add(i * job.out_stride + j * LANES);
                // SAFETY: the wanted columns are the result's.
                sums[i][j] = unsafe { _mm512_maskz_loadu_ps(masks[j], from) };
            }
        }
    }
    let mut row = [_mm512_setzero_ps(); V];
    for step in steps {
        let from = job.b.wrapping_add(step * job.b_strides[0] + column);
        for j in 0..V {
            let from = from.wrapping_add(j * LANES);
            // SAFETY: the wanted columns are the second factor's; a prefetch reads nothing.
            unsafe {
                row[j] = _mm512_maskz_loadu_ps(masks[j], from);
                _mm_prefetch::<_MM_HINT_T0>(from.wrapping_add(ahead).cast());
            }
        }
        for i in 0..M {
            // SAFETY: the element is one of the first factor's.
            let x = _mm512_set1_ps(unsafe { *job.a.add(i * job.a_strides[0] + step) });
            for j in 0..V {
                sums[i][j] = _mm512_fmadd_ps(x, row[j], sums[i][j]);
            }
        }
    }
    for i in 0..M {
        for j in 0..V {
            let to = out.wrapping_add(i * job.out_stride + j * LANES);
            // SAFETY: the wanted columns are the result's.
            unsafe { _mm512_mask_storeu_ps(to, masks[j], sums[i][j]) };
        }
    }
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
