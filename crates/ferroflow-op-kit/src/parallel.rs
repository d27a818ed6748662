//! Divides a mutable slice among the compute threads.

use ferroflow_core::ComputePool;
use std::marker::PhantomData;
use std::ops::Range;

/// Runs `work(first, part)` over parts that together cover `out`. Uses several threads when
/// `out.len() * cost` nanoseconds justify it. A part holds whole units of `unit` elements; the last
/// one may be shorter. `first` is the index of a part's first element.
pub fn split_mut<T: Send>(
    out: &mut [T],
    unit: usize,
    cost: usize,
    work: impl Fn(usize, &mut [T]) + Sync,
) {
    let (len, unit) = (out.len(), unit.max(1));
    let shared = Shared::new(out);
    ComputePool::parallel_for(len.div_ceil(unit), cost.saturating_mul(unit), |units| {
        let from = units.start.saturating_mul(unit).min(len);
        let to = units.end.saturating_mul(unit).min(len);
        // SAFETY: `parallel_for` hands every index out once, so the ranges are disjoint. They lie
        // within the slice, which this function borrows exclusively until all parts are done.
        work(from, unsafe { shared.part(from, to) });
    });
}

/// Runs `work(rows, part)` over `out`, cut into parts of whole rows of `row` elements. Uses several
/// threads when `cost` nanoseconds a row justify it. `row` may be 0 only if `out` is empty.
pub fn for_rows<T: Send>(
    out: &mut [T],
    row: usize,
    cost: usize,
    work: impl Fn(Range<usize>, &mut [T]) + Sync,
) {
    let rows = out.len().checked_div(row).unwrap_or(0);
    if rows == 0 {
        return;
    }
    let shared = Shared::new(out);
    ComputePool::parallel_for(rows, cost, |range| {
        // SAFETY: as in `split_mut`; `rows * row` is at most the length of the slice.
        let part = unsafe { shared.part(range.start * row, range.end * row) };
        work(range, part);
    });
}

/// Like [`for_rows`], over two outputs that have the same number of rows.
pub fn for_rows2<A: Send, B: Send>(
    a: &mut [A],
    row_a: usize,
    b: &mut [B],
    row_b: usize,
    cost: usize,
    work: impl Fn(Range<usize>, &mut [A], &mut [B]) + Sync,
) {
    let fit = |len: usize, row: usize| len.checked_div(row);
    let rows = match (fit(a.len(), row_a), fit(b.len(), row_b)) {
        (Some(x), Some(y)) => x.min(y),
        (one, other) => one.or(other).unwrap_or(0),
    };
    if rows == 0 {
        return;
    }
    let (a, b) = (Shared::new(a), Shared::new(b));
    ComputePool::parallel_for(rows, cost, |range| {
        // SAFETY: as in `split_mut`; `rows` rows fit into either slice.
        let (x, y) = unsafe {
            (
                a.part(range.start * row_a, range.end * row_a),
                b.part(range.start * row_b, range.end * row_b),
            )
        };
        work(range, x, y);
    });
}

/// A slice that several threads write disjoint parts of.
struct Shared<'a, T> {
    start: *mut T,
    life: PhantomData<&'a mut [T]>,
}

// SAFETY: threads only reach elements through `part`, whose callers keep parts disjoint.
unsafe impl<T: Send> Sync for Shared<'_, T> {}

impl<'a, T> Shared<'a, T> {
    fn new(slice: &'a mut [T]) -> Shared<'a, T> {
        Shared { start: slice.as_mut_ptr(), life: PhantomData }
    }

    /// # Safety
    /// `from <= to` must lie within the slice, and no two parts in use may overlap.
    #[allow(clippy::mut_from_ref)]
    unsafe fn part(&self, from: usize, to: usize) -> &mut [T] {
        // SAFETY: the caller's promise.
        unsafe { std::slice::from_raw_parts_mut(self.start.add(from), to - from) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_cover_the_slice_once_in_whole_units() {
        for len in [0, 1, 5, 6, 1000, 100_003] {
            let mut out = vec![0usize; len];
            split_mut(&mut out, 3, 1000, |first, part| {
                assert_eq!(first % 3, 0);
                for (i, x) in part.iter_mut().enumerate() {
                    *x += first + i + 1;
                }
            });
            assert!(out.iter().enumerate().all(|(i, &x)| x == i + 1));
        }
    }

    #[test]
    fn every_row_is_written_once() {
        for (rows, row, cost) in [(0, 3, 1), (1, 1, 1), (7, 3, 1_000_000), (5, 0, 1_000_000)] {
            let mut out = vec![0; rows * row];
            for_rows(&mut out, row, cost, |range, part| {
                assert_eq!(part.len(), range.len() * row);
                for (i, x) in part.iter_mut().enumerate() {
                    *x += range.start * row + i;
                }
            });
            assert_eq!(out, (0..rows * row).collect::<Vec<_>>());
        }
    }

    #[test]
    fn two_outputs_are_split_in_step() {
        let (mut a, mut b) = (vec![0usize; 2000], vec![0usize; 1000]);
        for_rows2(&mut a, 2, &mut b, 1, 1000, |rows, x, y| {
            assert_eq!(x.len(), 2 * y.len());
            x.fill(rows.start + 1);
            y.fill(rows.start + 1);
        });
        assert!(a.chunks(2).zip(&b).all(|(x, &y)| x == [y, y] && y > 0));
    }
}
