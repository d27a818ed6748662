//! Zeroed memory from the system for buffers. Large pieces take no physical memory until they are
//! written to.

use super::{ALIGN, HUGE_FROM, HUGE_PAGE};
use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicIsize, Ordering};

/// Buffers of this size and more are mapped. The allocator would write zeros to them.
pub(super) const MAP_FROM: usize = 256 << 10;

/// Zeroed memory of `capacity` bytes, which is a multiple of `ALIGN` and not 0. `None` if the
/// system has no more.
pub(super) fn allocate(capacity: usize) -> Option<NonNull<u8>> {
    if is_mapped(capacity) {
        return map(capacity);
    }
    // SAFETY: the layout has a size of at least ALIGN, never zero.
    NonNull::new(unsafe { alloc_zeroed(layout(capacity)) })
}

/// Returns memory of [`allocate`].
///
/// # Safety
/// `ptr` must come from `allocate(capacity)`, and no reference to the memory may exist.
pub(super) unsafe fn release(ptr: NonNull<u8>, capacity: usize) {
    if is_mapped(capacity) {
        // SAFETY: mapped by `map` with this length, by this function's contract.
        let _ = unsafe { rustix::mm::munmap(ptr.as_ptr().cast(), mapped_len(capacity)) };
        return;
    }
    // SAFETY: allocated with the same layout, by this function's contract.
    unsafe { dealloc(ptr.as_ptr(), layout(capacity)) }
}

static MAPPED: AtomicIsize = AtomicIsize::new(0);

/// Counts bytes of a buffer of this capacity that start or stop using physical memory, if the
/// buffer is mapped.
pub(super) fn count_mapped(capacity: usize, bytes: isize) {
    if is_mapped(capacity) {
        MAPPED.fetch_add(bytes, Ordering::Relaxed);
    }
}

/// The bytes of mapped buffers that use physical memory. Other buffers are on the heap.
pub(super) fn mapped() -> usize {
    usize::try_from(MAPPED.load(Ordering::Relaxed)).unwrap_or(0)
}

fn is_mapped(capacity: usize) -> bool {
    capacity >= MAP_FROM && !cfg!(miri)
}

fn mapped_len(capacity: usize) -> usize {
    capacity.next_multiple_of(4096)
}

fn layout(capacity: usize) -> Layout {
    Layout::from_size_align(capacity, ALIGN).expect("capacity_for keeps sizes below isize::MAX")
}

fn map(capacity: usize) -> Option<NonNull<u8>> {
    use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};
    let len = mapped_len(capacity);
    // Huge pages start at multiples of their size: maps more, and unmaps the surplus on both sides.
    let around = if capacity >= HUGE_FROM { HUGE_PAGE } else { 0 };
    let prot = ProtFlags::READ | ProtFlags::WRITE;
    let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
    // SAFETY: a fresh mapping at an address that the kernel chooses aliases no other memory. The
    // unmapped parts lie within it, and outside of the returned memory.
    unsafe {
        let start = mmap_anonymous(std::ptr::null_mut(), len + around, prot, flags).ok()?;
        let start = start.cast::<u8>();
        let before = if around > 0 { start.align_offset(HUGE_PAGE) } else { 0 };
        let at = start.add(before);
        if before > 0 {
            let _ = munmap(start.cast(), before);
        }
        if around > before {
            let _ = munmap(at.add(len).cast(), around - before);
        }
        if around > 0 {
            // The kernel may refuse huge pages; that is harmless.
            let _ = madvise(at.cast(), len, Advice::LinuxHugepage);
        }
        NonNull::new(at)
    }
}
