//! The innermost loop of convolutions: a tile of sums of products. One factor is addressed by
//! offsets, so it need not be copied first.

use ferroflow_op_kit::num::Num;
use std::borrow::Cow;
use std::ops::Range;

/// Offsets into a slice, with an upper bound.
pub struct Offsets<'a> {
    all: Cow<'a, [u32]>,
    largest: usize,
}

impl Offsets<'_> {
    /// `None` if an offset needs more than 32 bits.
    pub fn new(offsets: impl Iterator<Item = usize>) -> Option<Offsets<'static>> {
        let all: Vec<u32> = offsets.map(|o| u32::try_from(o).ok()).collect::<Option<_>>()?;
        let largest = all.iter().copied().max().unwrap_or(0) as usize;
        Some(Offsets { all: all.into(), largest })
    }

    /// A range of the offsets.
    pub fn part(&self, range: Range<usize>) -> Offsets<'_> {
        let all = &self.all[range];
        let largest = all.iter().copied().max().unwrap_or(0) as usize;
        Offsets { all: Cow::Borrowed(all), largest }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    pub fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        self.all.iter().map(|&o| o as usize)
    }

    #[cfg(test)]
    fn at(&self, i: usize) -> usize {
        self.all[i] as usize
    }
}

/// Computes all tiles of a strip.
type Strip<T> = unsafe fn(*const T, [&[u32]; 2], *const T, &[u32], *mut T, &[u32], usize, bool);

/// The functions that compute tiles of a type on this processor.
#[derive(Clone, Copy)]
pub struct Tiles<T> {
    strip: Strip<T>,
    /// Columns of a strip.
    pub columns: usize,
}

/// Numbers that may have a fast way to compute tiles.
pub trait Tiled: Num {
    /// `None` if the processor lacks the instructions.
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
    /// Computes `out[to[i] + j] = Σ a[from[i] + offsets[s]] * b[rows[s] + j]` over all steps `s`,
    /// in their order and without rounding between multiplication and addition. `j` runs up to
    /// `width`, which is at most `columns`. With `add`, the sum includes the old value of `out`.
    /// The function may read `columns` elements of `b`, even if `width` is less.
    pub fn strip(
        &self,
        (a, from, offsets): (&[T], &Offsets<'_>, &Offsets<'_>),
        (b, rows): (&[T], &Offsets<'_>),
        (out, to): (&mut [T], &Offsets<'_>),
        width: usize,
        add: bool,
    ) {
        assert!(from.len() == to.len() && offsets.len() == rows.len(), "factors fit");
        if from.is_empty() || offsets.is_empty() {
            return;
        }
        assert!(from.largest + offsets.largest < a.len(), "the first factor holds what is asked");
        assert!(rows.largest + self.columns <= b.len(), "the second factor has all rows");
        assert!(width > 0 && width <= self.columns, "a strip has columns");
        assert!(to.largest + width <= out.len(), "the result has room");
        let (a, b, out) = (a.as_ptr(), b.as_ptr(), out.as_mut_ptr());
        // SAFETY: `Tiles` are only made where the processor has the instructions. The assertions
        // check that all reads and writes are inside the slices.
        unsafe {
            (self.strip)(a, [&from.all, &offsets.all], b, &rows.all, out, &to.all, width, add)
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
    /// readable, as must `COLS` elements from any of `rows` in `b`; from any of `to`, of which
    /// there are as many as of `from`, `width` elements of `out` must be writable.
    #[target_feature(enable = "avx2,fma")]
    pub unsafe fn strip(
        a: *const f32,
        [from, offsets]: [&[u32]; 2],
        b: *const f32,
        rows: &[u32],
        out: *mut f32,
        to: &[u32],
        width: usize,
        add: bool,
    ) {
        let mut tile = [[0f32; COLS]; ROWS];
        for (from, to) in from.chunks(ROWS).zip(to.chunks(ROWS)) {
            // The last tile may have fewer rows: its last row is then computed several times.
            // SAFETY: the caller's promise.
            let first: [*const f32; ROWS] =
                std::array::from_fn(|i| unsafe { a.add(from[i.min(from.len() - 1)] as usize) });
            if width == COLS && from.len() == ROWS {
                // SAFETY: the caller's promise.
                unsafe {
                    let out = std::array::from_fn(|i| out.add(to[i] as usize));
                    tile_of(first, offsets, b, rows, out, add);
                }
                continue;
            }
            // SAFETY: as above; the tile is written aside.
            unsafe {
                tile_of(first, offsets, b, rows, tile.each_mut().map(|r| r.as_mut_ptr()), false)
            };
            for (row, &to) in tile.iter().zip(to) {
                // SAFETY: the caller's promise.
                let to = unsafe { std::slice::from_raw_parts_mut(out.add(to as usize), width) };
                for (to, x) in to.iter_mut().zip(row) {
                    *to = if add { *to + x } else { *x };
                }
            }
        }
    }

    /// # Safety
    /// As [`strip`], with room for a row of a tile at each of `out`.
    #[target_feature(enable = "avx2,fma")]
    unsafe fn tile_of(
        a: [*const f32; ROWS],
        offsets: &[u32],
        b: *const f32,
        rows: &[u32],
        out: [*mut f32; ROWS],
        add: bool,
    ) {
        const { assert!(ROWS == 6 && COLS == 16) };
        let zero = _mm256_setzero_ps();
        let [a0, a1, a2, a3, a4, a5] = a;
        // Separate variables, not an array, so that all of them stay in registers.
        let (mut s00, mut s01, mut s10, mut s11) = (zero, zero, zero, zero);
        let (mut s20, mut s21, mut s30, mut s31) = (zero, zero, zero, zero);
        let (mut s40, mut s41, mut s50, mut s51) = (zero, zero, zero, zero);
        macro_rules! each_row {
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
                        let from = out[$i];
                        (_mm256_loadu_ps(from), _mm256_loadu_ps(from.add(8)))
                    };
                };
            }
            each_row!(load);
        }
        for (&offset, &row) in offsets.iter().zip(rows) {
            let offset = offset as usize;
            // SAFETY: the caller's promise.
            let (low, high) = unsafe {
                let row = b.add(row as usize);
                (_mm256_loadu_ps(row), _mm256_loadu_ps(row.add(8)))
            };
            macro_rules! step {
                ($i:literal, $a:ident, $low:ident, $high:ident) => {
                    // SAFETY: the caller's promise.
                    let x = unsafe { _mm256_broadcast_ss(&*$a.add(offset)) };
                    $low = _mm256_fmadd_ps(x, low, $low);
                    $high = _mm256_fmadd_ps(x, high, $high);
                };
            }
            each_row!(step);
        }
        macro_rules! store {
            ($i:literal, $a:ident, $low:ident, $high:ident) => {
                // SAFETY: the caller's promise.
                unsafe {
                    let to = out[$i];
                    _mm256_storeu_ps(to, $low);
                    _mm256_storeu_ps(to.add(8), $high);
                }
            };
        }
        each_row!(store);
    }
}

/// The same sums in tiles of 8 x 32. With more rows, the addresses would not fit the registers.
#[cfg(target_arch = "x86_64")]
mod avx512 {
    use std::arch::x86_64::*;

    const LANES: usize = 16;
    const ROWS: usize = 8;
    pub(super) const COLS: usize = 2 * LANES;

    type Tile = super::Strip<f32>;

    macro_rules! tiles {
        ($($rows:literal)*) => { [$([tile::<$rows, 1>, tile::<$rows, 2>]),*] };
    }
    /// Functions by number of rows: for one vector and for two.
    static TILES: [[Tile; 2]; ROWS] = tiles!(1 2 3 4 5 6 7 8);

    /// # Safety
    /// As [`super::avx2::strip`], on a processor that has AVX-512.
    pub unsafe fn strip(
        a: *const f32,
        [from, offsets]: [&[u32]; 2],
        b: *const f32,
        rows: &[u32],
        out: *mut f32,
        to: &[u32],
        width: usize,
        add: bool,
    ) {
        // Makes all tiles equally high, up to a row.
        let tiles = from.len().div_ceil(ROWS);
        let edge = |t: usize| from.len() * t / tiles;
        for t in 0..tiles {
            let (from, to) = (&from[edge(t)..edge(t + 1)], &to[edge(t)..edge(t + 1)]);
            let tile = TILES[from.len() - 1][usize::from(width > LANES)];
            // SAFETY: the caller's promise, for these rows.
            unsafe { tile(a, [from, offsets], b, rows, out, to, width, add) };
        }
    }

    /// # Safety
    /// As [`strip`], of `R` rows and `V` vectors at most.
    #[target_feature(enable = "avx512f")]
    unsafe fn tile<const R: usize, const V: usize>(
        a: *const f32,
        [from, offsets]: [&[u32]; 2],
        b: *const f32,
        rows: &[u32],
        out: *mut f32,
        to: &[u32],
        width: usize,
        add: bool,
    ) {
        let masks: [__mmask16; V] = std::array::from_fn(|j| match width - j * LANES {
            n if n < LANES => (1 << n) - 1,
            _ => !0,
        });
        // SAFETY: the caller's promise; there are `R` of either.
        let (first, to): ([*const f32; R], [*mut f32; R]) = unsafe {
            let (from, to) = (from.as_ptr(), to.as_ptr());
            (
                std::array::from_fn(|i| a.add(*from.add(i) as usize)),
                std::array::from_fn(|i| out.add(*to.add(i) as usize)),
            )
        };
        // Loops by index: closures that use vectors are not always inlined.
        let mut row = [_mm512_setzero_ps(); V];
        let mut sums = [[_mm512_setzero_ps(); V]; R];
        for i in 0..R {
            for j in 0..V {
                if add {
                    // SAFETY: the caller's promise.
                    sums[i][j] = unsafe { _mm512_maskz_loadu_ps(masks[j], to[i].add(j * LANES)) };
                }
            }
        }
        for (&offset, &at) in offsets.iter().zip(rows) {
            // SAFETY: the caller's promise.
            unsafe {
                for j in 0..V {
                    row[j] = _mm512_loadu_ps(b.add(at as usize + j * LANES));
                }
                for i in 0..R {
                    let x = _mm512_set1_ps(*first[i].add(offset as usize));
                    for j in 0..V {
                        sums[i][j] = _mm512_fmadd_ps(x, row[j], sums[i][j]);
                    }
                }
            }
        }
        for i in 0..R {
            for j in 0..V {
                // SAFETY: the caller's promise; no more than `width` columns are written.
                unsafe {
                    _mm512_mask_storeu_ps(to[i].add(j * LANES), masks[j], sums[i][j]);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All functions that this processor supports.
    fn ways() -> Vec<Tiles<f32>> {
        let mut all = Vec::from_iter(f32::tiles());
        #[cfg(target_arch = "x86_64")]
        if !all.is_empty() {
            all.push(Tiles { strip: avx2::strip, columns: avx2::COLS });
        }
        all
    }

    #[test]
    fn strips_are_sums_of_products_found_by_offsets() {
        let a: Vec<f32> = (0..100).map(|i| (i % 7) as f32).collect();
        let b: Vec<f32> = (0..4 * 40).map(|i| (i % 5) as f32).collect();
        let offsets = Offsets::new([3, 0, 50, 10].into_iter()).unwrap();
        let from = [0, 5, 9, 9, 31, 49, 2, 1, 7, 3, 30, 21, 4, 6, 8, 10, 11, 12, 13, 14, 15];
        let from = Offsets::new(from.into_iter()).unwrap();
        // Rows of the second factor, and of the result, in any order.
        let rows = Offsets::new([80, 0, 120, 40].into_iter()).unwrap();
        let to = Offsets::new((0..21).map(|i| (i * 8 % 21) * 34)).unwrap();
        for tiles in ways() {
            for (width, add) in
                [(tiles.columns, false), (tiles.columns, true), (16, true), (5, true)]
            {
                let mut out = vec![2.0; 21 * 34];
                tiles.strip((&a, &from, &offsets), (&b, &rows), (&mut out, &to), width, add);
                for i in 0..21 {
                    for (j, &got) in out[to.at(i)..to.at(i) + 34].iter().enumerate() {
                        let at = |s: usize| a[from.at(i) + offsets.at(s)] * b[rows.at(s) + j];
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
        let one = (&a[..], &offsets(5), &offsets(3));
        tiles.strip(one, (&b, &offsets(0)), (&mut out, &offsets(0)), 16, false);
    }
}
