//! Products of single-precision matrices on processors with AVX-512. A block of the first factor is
//! copied into panels as high as a tile. The second factor is copied strip by strip into one as
//! wide as a tile. So the tiles of the result read both from the cache, one element after the
//! other. Where rows of the second factor are contiguous, the first tile copies the strip as it
//! reads it, which hides the wait for memory behind arithmetic.

use super::gemm::Job;
use std::arch::x86_64::*;

/// Elements of a vector.
const LANES: usize = 16;
/// Columns of a tile.
const COLS: usize = 2 * LANES;
/// Most rows of a tile: its sums, a row of the strip and one more vector fill the registers.
const ROWS: usize = 14;
/// Most steps summed in registers, and rows of the first factor copied at a time. The copy of 384
/// KB and a strip fit the second-level cache.
const DEPTH: usize = 512;
const HEIGHT: usize = 192;
/// How many steps ahead the rows of the second factor are prefetched.
const AHEAD: usize = 32;

/// Whether [`multiply`] supports a product and is faster than loops without copies.
pub(super) fn suits(job: &Job<f32>) -> bool {
    let has_rows = |strides: [usize; 2]| strides.contains(&1);
    let Job { m, n, k, .. } = *job;
    m >= ROWS
        && n >= COLS
        && m.saturating_mul(n).saturating_mul(k) >= 1 << 21
        && has_rows(job.a_strides)
        && has_rows(job.b_strides)
        && std::arch::is_x86_feature_detected!("avx512f")
}

/// The rows and steps of a block, so that blocks are as even as possible.
fn block(job: &Job<f32>) -> (usize, usize) {
    let even = |n: usize, most: usize| n.div_ceil(n.div_ceil(most));
    (even(job.m, HEIGHT), even(job.k, DEPTH))
}

/// Elements of memory that [`multiply`] needs: a block, which may be written to a vector beyond its
/// end, and a strip.
pub(super) fn scratch(job: &Job<f32>) -> usize {
    let (height, depth) = block(job);
    height * depth + LANES + COLS * depth
}

/// # Safety
/// The processor must have AVX-512 ([`suits`] says so), the job be as [`Job`] demands, and `memory`
/// hold [`scratch`] elements.
#[target_feature(enable = "avx512f")]
pub(super) unsafe fn multiply(job: &Job<f32>, memory: &mut [f32]) {
    let (height, depth) = block(job);
    let Job { m, n, k, a_strides, b_strides, .. } = *job;
    let (panels, strip) = memory.split_at_mut(height * depth + LANES);
    for row in (0..m).step_by(height) {
        let rows = height.min(m - row);
        let tiles = rows.div_ceil(ROWS);
        let edge = |t: usize| rows * t / tiles;
        for step in (0..k).step_by(depth) {
            let steps = depth.min(k - step);
            for t in 0..tiles {
                let (first, last) = (edge(t), edge(t + 1));
                // SAFETY: the rows and steps are some of the first factor's.
                unsafe {
                    let from = job.a.add((row + first) * a_strides[0] + step * a_strides[1]);
                    copy_panel(from, a_strides, last - first, steps, &mut panels[first * steps..]);
                }
            }
            for column in (0..n).step_by(COLS) {
                let columns = COLS.min(n - column);
                // SAFETY: the steps and columns are some of the second factor's.
                let from = unsafe { job.b.add(step * b_strides[0] + column * b_strides[1]) };
                let is_plain = columns == COLS && b_strides[1] == 1;
                if !is_plain {
                    // SAFETY: as above.
                    unsafe { copy_strip(from, b_strides, columns, steps, strip) };
                }
                for t in 0..tiles {
                    let (first, last) = (edge(t), edge(t + 1));
                    let (make, b) = match TILES[last - first - 1] {
                        tiles if is_plain && t == 0 => (tiles[2], (from, b_strides[0])),
                        tiles => (tiles[usize::from(columns > LANES)], (strip.as_ptr(), COLS)),
                    };
                    // SAFETY: a panel and a strip with this number of steps were just made, or the
                    // first tile makes the strip from rows of the second factor. The tile is inside
                    // the result.
                    unsafe {
                        let out = job.out.add((row + first) * job.out_stride + column);
                        let a = panels[first * steps..].as_ptr();
                        let is_sum = job.add || step > 0;
                        make(steps, a, b, strip.as_mut_ptr(), out, job.out_stride, columns, is_sum);
                    }
                }
            }
        }
    }
}

/// A mask of the first `n` lanes; all lanes if there are no more.
fn lanes(n: usize) -> __mmask16 {
    if n < LANES { (1 << n) - 1 } else { !0 }
}

/// Copies `rows` rows of the first factor, `ROWS` at most: of each step, an element of each row.
///
/// # Safety
/// The rows and steps must be readable at `from`, one of `strides` (of rows, of steps) being 1.
/// `to` has room for them and a vector.
#[target_feature(enable = "avx512f")]
unsafe fn copy_panel(
    from: *const f32,
    strides: [usize; 2],
    rows: usize,
    steps: usize,
    to: &mut [f32],
) {
    assert!(to.len() + 1 > rows * steps + LANES - rows, "the copy fits");
    let to = to.as_mut_ptr();
    if strides[0] != 1 {
        // SAFETY: as promised by the caller.
        return unsafe { transpose(from, strides[0], rows, steps, to, rows) };
    }
    let mask = lanes(rows);
    for step in 0..steps {
        // SAFETY: as promised; what a step writes beyond its own is the next one's.
        unsafe {
            let x = _mm512_maskz_loadu_ps(mask, from.add(step * strides[1]));
            _mm512_storeu_ps(to.add(step * rows), x);
        }
    }
}

/// Copies columns of the second factor to vectors that are [`COLS`] elements apart, step by step.
///
/// # Safety
/// The steps and columns must be readable at `from`, one of `strides` (of steps, of columns) being
/// 1.
#[target_feature(enable = "avx512f")]
unsafe fn copy_strip(
    from: *const f32,
    strides: [usize; 2],
    columns: usize,
    steps: usize,
    to: &mut [f32],
) {
    assert!(to.len() >= COLS * steps, "the copy fits");
    let to = to.as_mut_ptr();
    for first in (0..columns).step_by(LANES) {
        let columns = LANES.min(columns - first);
        // SAFETY: as promised by the caller.
        let from = unsafe { from.add(first * strides[1]) };
        if strides[1] != 1 {
            // SAFETY: as promised; `to` has room for whole vectors.
            unsafe { transpose(from, strides[1], columns, steps, to.add(first), COLS) };
            continue;
        }
        let mask = lanes(columns);
        for step in 0..steps {
            // SAFETY: as promised; no more than `columns` are read.
            unsafe {
                let x = _mm512_maskz_loadu_ps(mask, from.add(step * strides[0]));
                _mm512_storeu_ps(to.add(step * COLS + first), x);
            }
        }
    }
}

/// Writes element `j` of row `i` to `to[j * to_stride + i]`; up to 16 rows, `stride` apart. Of
/// every `j` 16 elements are written.
///
/// # Safety
/// At least one row, all readable; the output must be writable.
#[target_feature(enable = "avx512f")]
unsafe fn transpose(
    from: *const f32,
    stride: usize,
    rows: usize,
    length: usize,
    to: *mut f32,
    to_stride: usize,
) {
    for first in (0..length).step_by(LANES) {
        let mask = lanes(length - first);
        let mut square = [_mm512_setzero_ps(); LANES];
        for i in 0..LANES {
            // SAFETY: as promised; a row too many is the last one again.
            unsafe {
                let row = from.add(i.min(rows - 1) * stride + first);
                _mm_prefetch::<_MM_HINT_T1>(row.wrapping_add(rows * stride).cast());
                square[i] = _mm512_maskz_loadu_ps(mask, row);
            }
        }
        let square = transposed(square);
        for j in 0..LANES.min(length - first) {
            // SAFETY: as promised.
            unsafe { _mm512_storeu_ps(to.add((first + j) * to_stride), square[j]) };
        }
    }
}

#[target_feature(enable = "avx512f")]
fn transposed(r: [__m512; LANES]) -> [__m512; LANES] {
    let mut pairs = r;
    for i in (0..LANES).step_by(2) {
        pairs[i] = _mm512_unpacklo_ps(r[i], r[i + 1]);
        pairs[i + 1] = _mm512_unpackhi_ps(r[i], r[i + 1]);
    }
    let mut fours = pairs;
    for i in (0..LANES).step_by(4) {
        for j in 0..2 {
            let (a, b) = (_mm512_castps_pd(pairs[i + j]), _mm512_castps_pd(pairs[i + j + 2]));
            fours[i + 2 * j] = _mm512_castpd_ps(_mm512_unpacklo_pd(a, b));
            fours[i + 2 * j + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(a, b));
        }
    }
    // Quarter `q` of `fours[4 * g + c]` is of rows `4 * g..` and of column `4 * q + c`.
    let mut columns = fours;
    for c in 0..4 {
        let low = _mm512_shuffle_f32x4::<0x88>(fours[c], fours[4 + c]);
        let high = _mm512_shuffle_f32x4::<0x88>(fours[8 + c], fours[12 + c]);
        columns[c] = _mm512_shuffle_f32x4::<0x88>(low, high);
        columns[8 + c] = _mm512_shuffle_f32x4::<0xdd>(low, high);
        let low = _mm512_shuffle_f32x4::<0xdd>(fours[c], fours[4 + c]);
        let high = _mm512_shuffle_f32x4::<0xdd>(fours[8 + c], fours[12 + c]);
        columns[4 + c] = _mm512_shuffle_f32x4::<0x88>(low, high);
        columns[12 + c] = _mm512_shuffle_f32x4::<0xdd>(low, high);
    }
    columns
}

/// Steps; a panel; a strip and its stride; where to copy the strip to; the tile's place and stride;
/// the number of its columns that are wanted; whether to add the sums to the old values.
type Tile =
    unsafe fn(usize, *const f32, (*const f32, usize), *mut f32, *mut f32, usize, usize, bool);

macro_rules! tiles {
    ($($rows:literal)*) => { [$([tile::<$rows, 1, false>, tile::<$rows, 2, false>, tile::<$rows, 2, true>]),*] };
}
/// By rows; those of one vector, of two, and of two that copy the strip.
static TILES: [[Tile; 3]; ROWS] = tiles!(1 2 3 4 5 6 7 8 9 10 11 12 13 14);

/// # Safety
/// The processor must have AVX-512. `a` must have `R` elements to a step, `b` [`COLS`], at a
/// distance of `b_stride` if they are copied, else of `COLS`, and `copy` as much room; `columns`
/// elements of `R` rows must be writable at `out`.
#[target_feature(enable = "avx512f")]
unsafe fn tile<const R: usize, const V: usize, const COPY: bool>(
    steps: usize,
    mut a: *const f32,
    (mut b, b_stride): (*const f32, usize),
    mut copy: *mut f32,
    out: *mut f32,
    out_stride: usize,
    columns: usize,
    add: bool,
) {
    for i in 0..R {
        _mm_prefetch::<_MM_HINT_T0>(out.wrapping_add(i * out_stride).cast());
        _mm_prefetch::<_MM_HINT_T0>(out.wrapping_add(i * out_stride + columns - 1).cast());
    }
    // Loops use indices, here and elsewhere: closures with vectors are not always inlined.
    let mut row = [_mm512_setzero_ps(); V];
    let mut sums = [[_mm512_setzero_ps(); V]; R];
    for _ in 0..steps {
        // SAFETY: as promised; neither is read from after the last step.
        unsafe {
            for j in 0..V {
                row[j] = _mm512_loadu_ps(b.add(j * LANES));
            }
            if COPY {
                let later = b.wrapping_add(AHEAD * b_stride);
                _mm_prefetch::<_MM_HINT_T1>(later.cast());
                _mm_prefetch::<_MM_HINT_T1>(later.wrapping_add(COLS - 1).cast());
                for j in 0..V {
                    _mm512_storeu_ps(copy.add(j * LANES), row[j]);
                }
                copy = copy.wrapping_add(COLS);
            }
            for i in 0..R {
                let x = _mm512_set1_ps(*a.add(i));
                for j in 0..V {
                    sums[i][j] = _mm512_fmadd_ps(x, row[j], sums[i][j]);
                }
            }
        }
        a = a.wrapping_add(R);
        b = b.wrapping_add(if COPY { b_stride } else { COLS });
    }
    for i in 0..R {
        for j in 0..V {
            let mask = lanes(columns - j * LANES);
            // SAFETY: as promised; no column that is not wanted is read or written.
            unsafe {
                let to = out.add(i * out_stride + j * LANES);
                let mut sum = sums[i][j];
                if add {
                    sum = _mm512_add_ps(_mm512_maskz_loadu_ps(mask, to), sum);
                }
                _mm512_mask_storeu_ps(to, mask, sum);
            }
        }
    }
}
