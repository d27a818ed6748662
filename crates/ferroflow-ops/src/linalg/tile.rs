//! The innermost loop of convolutions: a tile of sums of products, one side of which is found by
//! offsets instead of being copied together first.

use crate::num::Num;
use std::borrow::Cow;
use std::ops::Range;

/// Offsets into a slice, and a bound: none is larger.
pub(crate) struct Offsets<'a> {
    all: Cow<'a, [u32]>,
    largest: usize,
}

impl Offsets<'_> {
    /// None when an offset takes more than 32 bits.
    pub(crate) fn new(offsets: impl Iterator<Item = usize>) -> Option<Offsets<'static>> {
        let all: Vec<u32> = offsets.map(|o| u32::try_from(o).ok()).collect::<Option<_>>()?;
        let largest = all.iter().copied().max().unwrap_or(0) as usize;
        Some(Offsets { all: all.into(), largest })
    }

    /// Some of them.
    pub(crate) fn part(&self, range: Range<usize>) -> Offsets<'_> {
        Offsets { all: Cow::Borrowed(&self.all[range]), largest: self.largest }
    }

    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    #[cfg(test)]
    fn at(&self, i: usize) -> usize {
        self.all[i] as usize
    }
}

/// Computes all tiles of a strip.
type Strip<T> = unsafe fn(*const T, &[u32], &[u32], &[T], usize, &mut [T], usize, usize, bool);

/// How tiles of a type are computed on this processor.
#[derive(Clone, Copy)]
pub(crate) struct Tiles<T> {
    strip: Strip<T>,
    /// Columns of a strip.
    pub columns: usize,
}

/// Numbers that may have a fast way to compute tiles.
pub(crate) trait Tiled: Num {
    /// None where the processor lacks the instructions.
    fn tiles() -> Option<Tiles<Self>> {
        None
    }
}

impl Tiled for f32 {
    fn tiles() -> Option<Tiles<f32>> {
        #[cfg(target_arch = "x86_64")]
        if std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("fma")
        {
            if std::arch::is_x86_feature_detected!("avx512f") {
                return Some(Tiles { strip: avx512::strip, columns: avx512::COLS });
            }
            return Some(Tiles { strip: avx2::strip, columns: avx2::COLS });
        }
        None
    }
}

macro_rules! untiled {
    ($($t:ty),*) => { $(impl Tiled for $t {})* };
}
untiled!(f64, i16, i32, i64, crate::prelude::f16, crate::prelude::bf16);
untiled!(crate::prelude::Complex32, crate::prelude::Complex64);

impl<T: Num> Tiles<T> {
    /// `out[i * out_stride + j] = Σ a[from[i] + offsets[s]] * b[s * b_stride + j]` over all steps `s`,
    /// in their order and without rounding between multiplication and addition, for `j` up to
    /// `width`, which is `columns` at most; with `add`, what `out` holds is part of the sum. Of `b`,
    /// `columns` elements may be read whatever the width.
    pub(crate) fn strip(
        &self,
        a: &[T],
        (from, offsets): (&Offsets<'_>, &Offsets<'_>),
        (b, b_stride): (&[T], usize),
        (out, out_stride): (&mut [T], usize),
        width: usize,
        add: bool,
    ) {
        let (rows, steps) = (from.len(), offsets.len());
        if rows == 0 || steps == 0 {
            return;
        }
        assert!(from.largest + offsets.largest < a.len(), "the first factor holds what is asked");
        let end =
            |n: usize, stride: usize, len: usize| (n - 1).checked_mul(stride)?.checked_add(len);
        let has = |slice: &[T], end: Option<usize>| end.is_some_and(|end| end <= slice.len());
        assert!(has(b, end(steps, b_stride, self.columns)), "the second factor has all rows");
        assert!(width > 0 && width <= self.columns, "a strip has columns");
        assert!(has(out, end(rows, out_stride, width)), "the result has room");
        // SAFETY: `Tiles` are only made where the processor has the instructions. The assertions
        // say that what is read and written lies inside the slices.
        unsafe {
            let (from, offsets) = (&from.all, &offsets.all);
            (self.strip)(a.as_ptr(), from, offsets, b, b_stride, out, out_stride, width, add)
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    use std::arch::x86_64::*;

    /// Rows and columns of a tile.
    const ROWS: usize = 6;
    pub(super) const COLS: usize = 16;

    /// # Safety
    /// The processor must have AVX2 and FMA; `a` plus any of `from` plus any of `offsets` must be
    /// readable, as must `COLS` elements of each row of `b`; `out` must have room for the result.
    #[target_feature(enable = "avx2,fma")]
    pub(super) unsafe fn strip(
        a: *const f32,
        from: &[u32],
        offsets: &[u32],
        b: &[f32],
        b_stride: usize,
        out: &mut [f32],
        out_stride: usize,
        width: usize,
        add: bool,
    ) {
        let mut tile = [[0f32; COLS]; ROWS];
        for (t, from) in from.chunks(ROWS).enumerate() {
            let first = t * ROWS * out_stride;
            // The last tile may lack rows: its last is computed several times over.
            // SAFETY: the caller's promise.
            let rows: [*const f32; ROWS] =
                std::array::from_fn(|i| unsafe { a.add(from[i.min(from.len() - 1)] as usize) });
            if width == COLS && from.len() == ROWS {
                // SAFETY: the caller's promise; the tile's rows are `out_stride` apart.
                unsafe {
                    let to = out.as_mut_ptr().add(first);
                    tile_of(rows, offsets, b.as_ptr(), b_stride, to, out_stride, add);
                }
                continue;
            }
            // SAFETY: as above; the tile is written aside.
            unsafe {
                let to = tile.as_mut_ptr().cast();
                tile_of(rows, offsets, b.as_ptr(), b_stride, to, COLS, false);
            }
            for (i, row) in tile[..from.len()].iter().enumerate() {
                let to = &mut out[first + i * out_stride..][..width];
                for (to, x) in to.iter_mut().zip(row) {
                    *to = if add { *to + x } else { *x };
                }
            }
        }
    }

    /// # Safety
    /// As [`strip`], with room for a whole tile at `out`.
    #[target_feature(enable = "avx2,fma")]
    unsafe fn tile_of(
        a: [*const f32; ROWS],
        offsets: &[u32],
        mut b: *const f32,
        b_stride: usize,
        out: *mut f32,
        out_stride: usize,
        add: bool,
    ) {
        const { assert!(ROWS == 6 && COLS == 16) };
        let zero = _mm256_setzero_ps();
        let [a0, a1, a2, a3, a4, a5] = a;
        // Variables of their own, not an array, so that all of them are registers.
        let (mut s00, mut s01, mut s10, mut s11) = (zero, zero, zero, zero);
        let (mut s20, mut s21, mut s30, mut s31) = (zero, zero, zero, zero);
        let (mut s40, mut s41, mut s50, mut s51) = (zero, zero, zero, zero);
        macro_rules! rows {
            ($each:ident) => {
                $each!(0, a0, s00, s01);
                $each!(1, a1, s10, s11);
                $each!(2, a2, s20, s21);
                $each!(3, a3, s30, s31);
                $each!(4, a4, s40, s41);
                $each!(5, a5, s50, s51);
            };
        }
        if add {
            macro_rules! load {
                ($i:literal, $a:ident, $low:ident, $high:ident) => {
                    // SAFETY: the caller's promise.
                    ($low, $high) = unsafe {
                        let from = out.add($i * out_stride);
                        (_mm256_loadu_ps(from), _mm256_loadu_ps(from.add(8)))
                    };
                };
            }
            rows!(load);
        }
        for &offset in offsets {
            let offset = offset as usize;
            // SAFETY: the caller's promise; `b` is not read from after its last step.
            let (low, high) = unsafe { (_mm256_loadu_ps(b), _mm256_loadu_ps(b.add(8))) };
            macro_rules! step {
                ($i:literal, $a:ident, $low:ident, $high:ident) => {
                    // SAFETY: the caller's promise.
                    let x = unsafe { _mm256_broadcast_ss(&*$a.add(offset)) };
                    $low = _mm256_fmadd_ps(x, low, $low);
                    $high = _mm256_fmadd_ps(x, high, $high);
                };
            }
            rows!(step);
            b = b.wrapping_add(b_stride);
        }
        macro_rules! store {
            ($i:literal, $a:ident, $low:ident, $high:ident) => {
                // SAFETY: the caller's promise.
                unsafe {
                    let to = out.add($i * out_stride);
                    _mm256_storeu_ps(to, $low);
                    _mm256_storeu_ps(to.add(8), $high);
                }
            };
        }
        rows!(store);
    }
}

/// The same sums in tiles of 8 x 32: no more rows, or their addresses would not fit the registers.
#[cfg(target_arch = "x86_64")]
mod avx512 {
    use std::arch::x86_64::*;

    const LANES: usize = 16;
    const ROWS: usize = 8;
    pub(super) const COLS: usize = 2 * LANES;

    type Tile =
        unsafe fn(*const f32, &[u32], &[u32], *const f32, usize, *mut f32, usize, usize, bool);

    macro_rules! tiles {
        ($($rows:literal)*) => { [$([tile::<$rows, 1>, tile::<$rows, 2>]),*] };
    }
    /// By rows; those of one vector, and of two.
    static TILES: [[Tile; 2]; ROWS] = tiles!(1 2 3 4 5 6 7 8);

    /// # Safety
    /// As [`super::avx2::strip`], on a processor that has AVX-512.
    pub(super) unsafe fn strip(
        a: *const f32,
        from: &[u32],
        offsets: &[u32],
        b: &[f32],
        b_stride: usize,
        out: &mut [f32],
        out_stride: usize,
        width: usize,
        add: bool,
    ) {
        // All tiles as high as can be, but for a row.
        let tiles = from.len().div_ceil(ROWS);
        let edge = |t: usize| from.len() * t / tiles;
        for t in 0..tiles {
            let rows = &from[edge(t)..edge(t + 1)];
            let tile = TILES[rows.len() - 1][usize::from(width > LANES)];
            // SAFETY: the caller's promise, for these rows.
            unsafe {
                let to = out.as_mut_ptr().add(edge(t) * out_stride);
                tile(a, rows, offsets, b.as_ptr(), b_stride, to, out_stride, width, add);
            }
        }
    }

    /// # Safety
    /// As [`strip`], of `R` rows and `V` vectors at most.
    #[target_feature(enable = "avx512f")]
    unsafe fn tile<const R: usize, const V: usize>(
        a: *const f32,
        from: &[u32],
        offsets: &[u32],
        mut b: *const f32,
        b_stride: usize,
        out: *mut f32,
        out_stride: usize,
        width: usize,
        add: bool,
    ) {
        let masks: [__mmask16; V] = std::array::from_fn(|j| match width - j * LANES {
            n if n < LANES => (1 << n) - 1,
            _ => !0,
        });
        // SAFETY: the caller's promise.
        let rows: [*const f32; R] = std::array::from_fn(|i| unsafe { a.add(from[i] as usize) });
        // Loops by index: closures that use vectors are not always inlined.
        let mut row = [_mm512_setzero_ps(); V];
        let mut sums = [[_mm512_setzero_ps(); V]; R];
        for i in 0..R {
            for j in 0..V {
                if add {
                    // SAFETY: the caller's promise.
                    sums[i][j] = unsafe {
                        _mm512_maskz_loadu_ps(masks[j], out.add(i * out_stride + j * LANES))
                    };
                }
            }
        }
        for &offset in offsets {
            // SAFETY: the caller's promise; `b` is not read from after its last step.
            unsafe {
                for j in 0..V {
                    row[j] = _mm512_loadu_ps(b.add(j * LANES));
                }
                for i in 0..R {
                    let x = _mm512_set1_ps(*rows[i].add(offset as usize));
                    for j in 0..V {
                        sums[i][j] = _mm512_fmadd_ps(x, row[j], sums[i][j]);
                    }
                }
            }
            b = b.wrapping_add(b_stride);
        }
        for i in 0..R {
            for j in 0..V {
                // SAFETY: the caller's promise; no more than `width` columns are written.
                unsafe {
                    let to = out.add(i * out_stride + j * LANES);
                    _mm512_mask_storeu_ps(to, masks[j], sums[i][j]);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strips_are_sums_of_products_found_by_offsets() {
        let Some(tiles) = f32::tiles() else { return };
        let a: Vec<f32> = (0..100).map(|i| (i % 7) as f32).collect();
        let b: Vec<f32> = (0..4 * 40).map(|i| (i % 5) as f32).collect();
        let offsets = Offsets::new([3, 0, 50, 10].into_iter()).unwrap();
        let from = [0, 5, 9, 9, 31, 49, 2, 1, 7, 3, 30, 21, 4, 6, 8, 10, 11, 12, 13, 14, 15];
        let from = Offsets::new(from.into_iter()).unwrap();
        for width in [tiles.columns, 16, 5] {
            for add in [false, true] {
                let mut out = vec![2.0; 21 * 34];
                tiles.strip(&a, (&from, &offsets), (&b, 40), (&mut out, 34), width, add);
                for (i, row) in out.chunks(34).enumerate() {
                    for (j, &got) in row.iter().enumerate() {
                        let at = |s: usize| a[from.at(i) + offsets.at(s)] * b[s * 40 + j];
                        let sum: f32 = if j < width { (0..4).map(at).sum() } else { 2.0 };
                        let before = if add && j < width { 2.0 } else { 0.0 };
                        assert_eq!(got, sum + before, "{i} {j}");
                    }
                }
            }
        }
    }

    #[test]
    #[should_panic(expected = "the first factor holds")]
    fn nothing_beyond_a_slice_is_read() {
        let offsets = |x: usize| Offsets::new([x].into_iter()).unwrap();
        let Some(tiles) = f32::tiles() else { panic!("the first factor holds, having none") };
        let (a, b, mut out) = ([0.0; 8], [0.0; 32], [0.0; 32]);
        tiles.strip(&a, (&offsets(5), &offsets(3)), (&b, 32), (&mut out, 32), 16, false);
    }
}
