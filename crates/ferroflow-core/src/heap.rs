//! Counts the bytes of the heap. Values that no tensor holds (hash tables, lists, graphs) count
//! against the memory limit by this alone.

mod mimalloc;

pub use mimalloc::Mimalloc;

use crate::{MemoryOwner, Reservation, Result};
use std::alloc::{GlobalAlloc, Layout};
use std::cell::Cell;
use std::sync::atomic::{AtomicIsize, Ordering};

static IN_USE: AtomicIsize = AtomicIsize::new(0);

/// Bytes that a thread reports at a time. A thread that ends leaves fewer than these uncounted.
const PORTION: isize = 8 << 10;

thread_local! {
    /// Constant and without a destructor, so that using it never allocates.
    static UNREPORTED: Cell<isize> = const { Cell::new(0) };
    /// Bytes that this thread has reported.
    static REPORTED: Cell<isize> = const { Cell::new(0) };
}

/// Bytes of the heap that are in use. Zero unless the program's allocator is a [`CountedHeap`].
pub(crate) fn in_use() -> usize {
    usize::try_from(IN_USE.load(Ordering::Relaxed)).unwrap_or(0)
}

/// Runs `work`, and counts the memory that it leaves on the heap for the current session, until the
/// reservation is dropped. Fails without running it if the session or the process holds more than
/// it may. Fails too if that is so afterwards.
pub fn count_heap<R>(work: impl FnOnce() -> Result<R>) -> Result<(R, Reservation)> {
    MemoryOwner::check_current()?;
    let before = taken_by_thread();
    let done = work()?;
    let left = usize::try_from(taken_by_thread().saturating_sub(before)).unwrap_or(0);
    Ok((done, Reservation::new(left)?))
}

/// Bytes that this thread has allocated, without those that it has freed.
fn taken_by_thread() -> isize {
    REPORTED.get().saturating_add(UNREPORTED.get())
}

/// An allocator that counts what `A` allocates.
///
/// ```
/// use ferroflow_core::CountedHeap;
/// #[global_allocator]
/// static ALLOCATOR: CountedHeap<std::alloc::System> = CountedHeap(std::alloc::System);
/// # fn main() {}
/// ```
pub struct CountedHeap<A>(pub A);

#[inline]
fn add(bytes: isize) {
    let _ = UNREPORTED.try_with(|unreported| {
        let sum = unreported.get() + bytes;
        if (-PORTION..PORTION).contains(&sum) {
            unreported.set(sum);
        } else {
            unreported.set(0);
            report(sum);
        }
    });
}

#[cold]
fn report(bytes: isize) {
    IN_USE.fetch_add(bytes, Ordering::Relaxed);
    let _ = REPORTED.try_with(|reported| reported.set(reported.get().wrapping_add(bytes)));
}

// Out of line: with the counting in 70,000 places, the program would be a tenth larger.
//
// SAFETY: every call goes to `A` as it is. Counting neither allocates nor panics: sizes are at most
// `isize::MAX`, and a thread reports long before its sum could overflow.
unsafe impl<A: GlobalAlloc> GlobalAlloc for CountedHeap<A> {
    #[inline(never)]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        add(layout.size() as isize);
        // SAFETY: the caller keeps to the contract of `alloc`.
        unsafe { self.0.alloc(layout) }
    }

    #[inline(never)]
    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        add(-(layout.size() as isize));
        // SAFETY: the caller keeps to the contract of `dealloc`.
        unsafe { self.0.dealloc(ptr, layout) }
    }

    #[inline(never)]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        add(layout.size() as isize);
        // SAFETY: the caller keeps to the contract of `alloc_zeroed`.
        unsafe { self.0.alloc_zeroed(layout) }
    }

    #[inline(never)]
    unsafe fn realloc(&self, ptr: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        add(new_size as isize - layout.size() as isize);
        // SAFETY: the caller keeps to the contract of `realloc`.
        unsafe { self.0.realloc(ptr, layout, new_size) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Limit, Limits};
    use std::alloc::System;

    #[test]
    fn what_is_allocated_counts_until_it_is_freed() {
        const SIZE: usize = 100 << 20;
        let heap = CountedHeap(System);
        let layout = Layout::from_size_align(SIZE, 64).unwrap();
        let before = in_use();
        // SAFETY: the layout has a size, and is the one with which the memory was allocated.
        unsafe {
            let memory = heap.alloc(layout);
            assert!(in_use() - before >= SIZE / 2);
            heap.dealloc(memory, layout);
        }
        assert!(in_use() < before + SIZE / 2);
    }

    #[test]
    fn what_work_leaves_on_the_heap_counts_for_its_session() {
        const SIZE: usize = 1 << 20;
        let layout = Layout::from_size_align(SIZE, 64).unwrap();
        let limit = Limit { most: 3 * SIZE / 2, ..Limits::DEFAULT.session_memory };
        let session = MemoryOwner::new("session 7", limit);
        let heap = CountedHeap(System);
        let mut taken: Vec<*mut u8> = Vec::new();
        let mut take = || {
            session.run(|| {
                count_heap(|| {
                    // SAFETY: the layout has a size.
                    taken.push(unsafe { heap.alloc(layout) });
                    Ok(())
                })
            })
        };
        let ((), held) = take().unwrap();
        assert!((SIZE..SIZE + (64 << 10)).contains(&session.live()), "{}", session.live());
        let e = take().err().unwrap();
        assert!(e.message().contains("--max-session-memory"), "{e}");
        drop(held);
        assert_eq!(session.live(), 0);
        assert_eq!(taken.len(), 2);
        // SAFETY: allocated above with this layout.
        taken.into_iter().for_each(|block| unsafe { heap.dealloc(block, layout) });
    }
}
