//! Memory of tensors. It is 64-byte aligned, always initialized, and counted against a limit. Freed
//! buffers are recycled, so that a repeated step causes no page faults.

mod small;

use crate::{Result, bail};
use bytes::Bytes;
use parking_lot::Mutex;
use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ptr::NonNull;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Alignment of all buffers allocated here.
const ALIGN: usize = 64;
/// Least alignment of borrowed memory (a slice of a network buffer). Memory with less is copied.
const FOREIGN_ALIGN: usize = 16;
/// Least size for recycling. The allocator and [`small`] are fast enough for smaller buffers.
const RECYCLE_FROM: usize = 4 << 10;
/// Least size for huge pages, with which the first touch is four times faster.
const HUGE_FROM: usize = 4 << 20;
const HUGE_PAGE: usize = 2 << 20;
/// Bytes of freed buffers that are kept for the next step.
const KEEP_BYTES: usize = 1 << 30;

/// A block of bytes: allocated here (aligned, writable when it has one owner) or borrowed from a
/// network buffer.
pub struct Buffer {
    ptr: NonNull<u8>,
    len: usize,
    owner: Owner,
}

enum Owner {
    /// Allocated here with this capacity.
    Ours(usize),
    /// Borrowed from reference-counted bytes. Must not be written to.
    Borrowed(#[allow(dead_code)] Bytes),
}

// SAFETY: a `Buffer` owns its memory, or a `Bytes` that does. It returns `&[u8]` from `&self` and
// `&mut [u8]` from `&mut self` only, so the usual borrow rules apply across threads.
unsafe impl Send for Buffer {}
// SAFETY: see above. `&Buffer` allows reads only.
unsafe impl Sync for Buffer {}

impl Buffer {
    /// A buffer of `len` initialized bytes with unspecified values.
    pub fn alloc(len: usize) -> Result<Buffer> {
        let capacity = capacity_for(len)?;
        let found = match capacity < RECYCLE_FROM {
            true => small::take(capacity),
            false => RECYCLED.take(capacity),
        };
        match found {
            Some(ptr) => Ok(Buffer { ptr, len, owner: Owner::Ours(capacity) }),
            None => Buffer::fresh(len, capacity),
        }
    }

    /// A buffer of `len` zero bytes.
    pub fn zeroed(len: usize) -> Result<Buffer> {
        let capacity = capacity_for(len)?;
        if capacity >= HUGE_FROM && !RECYCLED.has(capacity) {
            // The kernel's fresh pages are already zero. Use them only if no freed buffer fits, or
            // every step would leave one more buffer behind.
            return Buffer::fresh(len, capacity);
        }
        let mut buffer = Buffer::alloc(len)?;
        buffer.bytes_mut().expect("a new buffer is ours").fill(0);
        Ok(buffer)
    }

    /// Shares the memory of `bytes` if it is aligned for all element types, else copies it.
    pub fn from_bytes(bytes: Bytes) -> Result<Buffer> {
        if bytes.as_ptr().align_offset(FOREIGN_ALIGN) == 0 && !bytes.is_empty() {
            let ptr = NonNull::new(bytes.as_ptr().cast_mut()).expect("slices are never null");
            return Ok(Buffer { ptr, len: bytes.len(), owner: Owner::Borrowed(bytes) });
        }
        let mut buffer = Buffer::alloc(bytes.len())?;
        buffer.bytes_mut().expect("a new buffer is ours").copy_from_slice(&bytes);
        Ok(buffer)
    }

    /// The number of bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: `ptr` is valid for `len` initialized bytes while `self` exists. Own memory is
        // zeroed when it is allocated. Borrowed memory belongs to the held `Bytes`.
        unsafe { std::slice::from_raw_parts(self.ptr.as_ptr(), self.len) }
    }

    /// The bytes for writing. `None` if they are borrowed.
    pub fn bytes_mut(&mut self) -> Option<&mut [u8]> {
        if !matches!(self.owner, Owner::Ours(_)) {
            return None;
        }
        // SAFETY: as in `bytes`. `&mut self` makes the access exclusive.
        Some(unsafe { std::slice::from_raw_parts_mut(self.ptr.as_ptr(), self.len) })
    }

    fn fresh(len: usize, capacity: usize) -> Result<Buffer> {
        if reserve(capacity).is_err() {
            RECYCLED.clear();
            if let Err(live) = reserve(capacity) {
                let limit = memory_limit();
                bail!(
                    ResourceExhausted,
                    "OOM when allocating {len} bytes: tensors may use {limit} bytes on this machine \
                     and {live} are in use"
                );
            }
        }
        // SAFETY: the layout has a size of at least ALIGN, never zero.
        let raw = unsafe { alloc_zeroed(layout(capacity)) };
        let Some(ptr) = NonNull::new(raw) else {
            unreserve(capacity);
            bail!(
                ResourceExhausted,
                "OOM when allocating {len} bytes: the system has no memory left"
            );
        };
        if capacity >= HUGE_FROM {
            // SAFETY: the range was allocated just above, and the advice changes no contents. The
            // kernel may refuse huge pages; that is harmless.
            let _ = unsafe {
                rustix::mm::madvise(raw.cast(), capacity, rustix::mm::Advice::LinuxHugepage)
            };
        }
        Ok(Buffer { ptr, len, owner: Owner::Ours(capacity) })
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        match self.owner {
            Owner::Ours(capacity) if capacity < RECYCLE_FROM => small::put_back(self.ptr, capacity),
            Owner::Ours(capacity) if !RECYCLED.keep(capacity, self.ptr) => {
                release(self.ptr, capacity)
            }
            _ => {}
        }
    }
}

/// Returns the memory of freed buffers to the system.
pub fn trim_recycled() {
    RECYCLED.clear();
}

/// Sets how many bytes tensors may use, for tests and for servers that share a machine. The default
/// is nine tenths of physical memory.
pub fn set_memory_limit(bytes: usize) {
    LIMIT_BYTES.store(bytes, Ordering::Relaxed);
}

fn memory_limit() -> usize {
    match LIMIT_BYTES.load(Ordering::Relaxed) {
        0 => *PHYSICAL_LIMIT,
        set => set,
    }
}

/// Counts `capacity` bytes as used. If that exceeds the limit, the error is the number of bytes in
/// use.
fn reserve(capacity: usize) -> std::result::Result<usize, usize> {
    let limit = memory_limit();
    LIVE_BYTES.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |live| {
        live.checked_add(capacity).filter(|&sum| sum <= limit)
    })
}

fn unreserve(capacity: usize) {
    LIVE_BYTES.fetch_sub(capacity, Ordering::Relaxed);
}

/// Counts memory that is allocated elsewhere against the limit, until it is dropped.
pub(crate) struct Reservation(usize);

impl Reservation {
    /// Counts `bytes`. An error if the limit does not allow it.
    pub fn new(bytes: usize) -> Result<Reservation> {
        if reserve(bytes).is_err() {
            RECYCLED.clear();
            if let Err(live) = reserve(bytes) {
                let limit = memory_limit();
                bail!(
                    ResourceExhausted,
                    "OOM when allocating {bytes} bytes: tensors may use {limit} bytes on this \
                     machine and {live} are in use"
                );
            }
        }
        Ok(Reservation(bytes))
    }

    /// Counts `bytes` that are already allocated.
    pub fn after_the_fact(bytes: usize) -> Reservation {
        LIVE_BYTES.fetch_add(bytes, Ordering::Relaxed);
        Reservation(bytes)
    }

    pub fn bytes(&self) -> usize {
        self.0
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        if self.0 > 0 {
            unreserve(self.0);
        }
    }
}

fn release(ptr: NonNull<u8>, capacity: usize) {
    // SAFETY: `ptr` came from `alloc_zeroed` with the same layout, and the caller gave up the last
    // reference.
    unsafe { dealloc(ptr.as_ptr(), layout(capacity)) };
    unreserve(capacity);
}

fn layout(capacity: usize) -> Layout {
    let align = if capacity >= HUGE_FROM { HUGE_PAGE } else { ALIGN };
    Layout::from_size_align(capacity, align).expect("capacity_for keeps sizes below isize::MAX")
}

/// Rounds up to a size class: multiples of the alignment for small sizes, else four classes per
/// power of two. This wastes at most a fifth and keeps the number of classes small.
fn capacity_for(len: usize) -> Result<usize> {
    const MAX: usize = 1 << 46;
    if len > MAX {
        bail!(
            ResourceExhausted,
            "OOM when allocating {len} bytes: no machine has that much memory"
        );
    }
    if len <= RECYCLE_FROM {
        return Ok(len.next_multiple_of(ALIGN).max(ALIGN));
    }
    let step = (len - 1).next_power_of_two() / 8;
    Ok(len.next_multiple_of(step.max(ALIGN)))
}

static LIVE_BYTES: AtomicUsize = AtomicUsize::new(0);

/// The limit of [`set_memory_limit`], or 0 if it was not called.
static LIMIT_BYTES: AtomicUsize = AtomicUsize::new(0);

/// Nine tenths of physical memory. An allocation beyond this fails with an error, because the
/// system would kill the process instead.
static PHYSICAL_LIMIT: LazyLock<usize> = LazyLock::new(|| {
    let info = rustix::system::sysinfo();
    let total = (info.totalram as usize).saturating_mul(info.mem_unit as usize);
    let container = std::fs::read_to_string("/sys/fs/cgroup/memory.max")
        .ok()
        .and_then(|text| text.trim().parse().ok())
        .unwrap_or(usize::MAX);
    total.min(container) / 10 * 9
});

static RECYCLED: Recycled =
    Recycled { lists: Mutex::new(Lists { by_capacity: Vec::new(), bytes: 0 }) };

/// Freed buffers by capacity. There are few capacities (size classes), so a sorted list is enough.
struct Recycled {
    lists: Mutex<Lists>,
}

struct Lists {
    by_capacity: Vec<(usize, Vec<Free>)>,
    bytes: usize,
}

struct Free(NonNull<u8>);
// SAFETY: a free block has no owner. Moving its pointer to another thread moves the block.
unsafe impl Send for Free {}

impl Recycled {
    fn take(&self, capacity: usize) -> Option<NonNull<u8>> {
        let mut lists = self.lists.lock();
        let at = lists.by_capacity.binary_search_by_key(&capacity, |entry| entry.0).ok()?;
        let free = lists.by_capacity[at].1.pop()?;
        lists.bytes -= capacity;
        Some(free.0)
    }

    fn has(&self, capacity: usize) -> bool {
        let lists = self.lists.lock();
        let at = lists.by_capacity.binary_search_by_key(&capacity, |entry| entry.0);
        at.is_ok_and(|at| !lists.by_capacity[at].1.is_empty())
    }

    /// Keeps a block for later, unless enough blocks are kept already.
    fn keep(&self, capacity: usize, ptr: NonNull<u8>) -> bool {
        let mut lists = self.lists.lock();
        if lists.bytes + capacity > KEEP_BYTES {
            return false;
        }
        lists.bytes += capacity;
        match lists.by_capacity.binary_search_by_key(&capacity, |entry| entry.0) {
            Ok(at) => lists.by_capacity[at].1.push(Free(ptr)),
            Err(at) => lists.by_capacity.insert(at, (capacity, vec![Free(ptr)])),
        }
        true
    }

    fn clear(&self) {
        let old = {
            let mut lists = self.lists.lock();
            lists.bytes = 0;
            std::mem::take(&mut lists.by_capacity)
        };
        for (capacity, blocks) in old {
            for block in blocks {
                release(block.0, capacity);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_aligned_and_have_the_requested_length() {
        for len in [0, 1, 63, 64, 65, 4096, 4097, 100_000, 5 << 20] {
            let mut b = Buffer::alloc(len).unwrap();
            assert_eq!(b.bytes().len(), len);
            assert_eq!(b.bytes().as_ptr().align_offset(ALIGN), 0);
            b.bytes_mut().unwrap().fill(7);
            assert!(Buffer::zeroed(len).unwrap().bytes().iter().all(|&x| x == 0));
        }
    }

    #[test]
    fn size_classes_waste_at_most_a_fifth() {
        for len in (RECYCLE_FROM + 1..1 << 22).step_by(977) {
            let c = capacity_for(len).unwrap();
            assert!(c >= len && c <= len + len / 4 + ALIGN, "{len} -> {c}");
        }
    }

    #[test]
    fn a_size_beyond_any_machine_is_out_of_memory() {
        assert!(Buffer::alloc(usize::MAX).is_err());
        assert!(Buffer::alloc(1 << 45).is_err());
    }

    #[test]
    fn aligned_borrowed_bytes_are_not_copied_and_read_only() {
        let owner = Buffer::alloc(256).unwrap();
        struct Held(Buffer);
        impl AsRef<[u8]> for Held {
            fn as_ref(&self) -> &[u8] {
                self.0.bytes()
            }
        }
        let bytes = Bytes::from_owner(Held(owner));
        let mut adopted = Buffer::from_bytes(bytes.clone()).unwrap();
        assert_eq!(adopted.bytes().as_ptr(), bytes.as_ptr());
        assert!(adopted.bytes_mut().is_none());
        let mut copied = Buffer::from_bytes(bytes.slice(1..)).unwrap();
        assert!(copied.bytes_mut().is_some());
    }
}
