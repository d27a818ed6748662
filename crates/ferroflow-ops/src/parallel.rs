//! Sharing a mutable slice out among the compute threads.

use ferroflow_core::ComputePool;
use std::marker::PhantomData;

/// Runs `work(first, part)` over parts of `out` that together cover it, on several threads when
/// `out.len() * cost` nanoseconds are worth it. Parts hold whole units of `unit` elements (the last
/// one whatever remains), and `first` is the index of a part's first element.
pub(crate) fn split_mut<T: Send>(
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
        // SAFETY: `parallel_for` hands every index out once, so the ranges made from them are
        // disjoint; they lie within the slice, which is exclusively ours until all parts are done.
        work(from, unsafe { shared.part(from, to) });
    });
}

/// [`split_mut`] over two slices in step: `work(unit, a, b)` gets matching runs of units, `a_unit`
/// and `b_unit` elements each. Both slices must hold `units` whole units.
#[allow(dead_code)]
pub(crate) fn split_mut2<A: Send, B: Send>(
    a: &mut [A],
    b: &mut [B],
    units: usize,
    cost: usize,
    work: impl Fn(usize, &mut [A], &mut [B]) + Sync,
) {
    if units == 0 {
        return;
    }
    let (a_unit, b_unit) = (a.len() / units, b.len() / units);
    let (a, b) = (Shared::new(a), Shared::new(b));
    ComputePool::parallel_for(units, cost, |range| {
        // SAFETY: as in `split_mut`; `units * unit` is at most the length of either slice.
        let (x, y) = unsafe {
            (
                a.part(range.start * a_unit, range.end * a_unit),
                b.part(range.start * b_unit, range.end * b_unit),
            )
        };
        work(range.start, x, y);
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
    fn two_slices_are_split_in_step() {
        let (mut a, mut b) = (vec![0usize; 2000], vec![0usize; 1000]);
        split_mut2(&mut a, &mut b, 1000, 1000, |unit, x, y| {
            assert_eq!(x.len(), 2 * y.len());
            x.fill(unit + 1);
            y.fill(unit + 1);
        });
        assert!(a.chunks(2).zip(&b).all(|(x, &y)| x == [y, y] && y > 0));
    }
}
