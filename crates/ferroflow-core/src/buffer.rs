//! Memory of tensors. It is 64-byte aligned, always initialized, and counted against a limit. Freed
//! buffers are recycled, so that a repeated step causes no page faults.
//!
//! A recycled buffer that another session freed is zeroed before it is handed out, unless the
//! caller overwrites all of it. A buffer of a known session keeps that session as its owner.

mod pages;
mod reservation;
mod small;

pub use reservation::Reservation;

use crate::memory_owner::MemoryAccount;
use crate::{MemoryOwner, Result, bail, heap};
use bytes::Bytes;
use parking_lot::Mutex;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};

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
    /// Allocated here.
    Ours(Allocation),
    /// Borrowed from reference-counted bytes. Must not be written to.
    Borrowed(#[allow(dead_code)] Bytes),
}

struct Allocation {
    capacity: usize,
    /// The part of the capacity that counts against the limit: less than all of it until the
    /// contents have arrived.
    counted: usize,
    holder: Holder,
}

/// The session that a value counts for, and that its contents belong to.
#[derive(Default)]
enum Holder {
    /// The session is not known.
    #[default]
    Unknown,
    Session(Arc<MemoryOwner>),
    /// The account that counts a small value.
    Account(&'static MemoryAccount),
}

impl Holder {
    fn of_session(session: Option<Arc<MemoryOwner>>) -> Holder {
        session.map_or(Holder::Unknown, Holder::Session)
    }

    fn of_account(account: Option<&'static MemoryAccount>) -> Holder {
        account.map_or(Holder::Unknown, Holder::Account)
    }

    fn account(&self) -> Option<&'static MemoryAccount> {
        match self {
            Holder::Account(account) => Some(account),
            _ => None,
        }
    }
}

/// What a caller does with a new buffer.
#[derive(Clone, Copy, PartialEq, Eq)]
enum NewUse {
    /// It may read bytes before it writes them.
    Any,
    /// It reads only zeros or what it has written.
    Zeros,
    /// It writes all bytes before anything can be read.
    Overwrite,
}

// SAFETY: a `Buffer` owns its memory, or a `Bytes` that does. It returns `&[u8]` from `&self` and
// `&mut [u8]` from `&mut self` only, so the usual borrow rules apply across threads.
unsafe impl Send for Buffer {}
// SAFETY: see above. `&Buffer` allows reads only.
unsafe impl Sync for Buffer {}

impl Buffer {
    /// A buffer of `len` initialized bytes with unspecified values: zeros, or bytes that this
    /// thread's current session has freed.
    pub fn alloc(len: usize) -> Result<Buffer> {
        Buffer::recycled_or_fresh(len, NewUse::Any)
    }

    /// A buffer of `len` zero bytes.
    pub fn zeroed(len: usize) -> Result<Buffer> {
        Buffer::recycled_or_fresh(len, NewUse::Zeros)
    }

    /// A buffer of `len` bytes that the caller overwrites before they are visible outside. They may
    /// have any value. The buffer belongs to no session.
    pub fn for_overwrite(len: usize) -> Result<Buffer> {
        MemoryOwner::run_outside(|| Buffer::recycled_or_fresh(len, NewUse::Overwrite))
    }

    /// The same for bytes that arrive from outside. A large buffer counts against the limit and
    /// takes physical memory only as [`Buffer::arrives`] says.
    pub(crate) fn arriving(len: usize) -> Result<Buffer> {
        let capacity = capacity_for(len)?;
        if capacity < pages::MAP_FROM {
            return Buffer::for_overwrite(len);
        }
        let (ptr, counted) = match RECYCLED.take(capacity, 0) {
            Some(free) => (free.at, capacity),
            None => match pages::allocate(capacity) {
                Some(ptr) => (ptr, 0),
                None => bail!(
                    ResourceExhausted,
                    "OOM when allocating {len} bytes: the system has no memory left"
                ),
            },
        };
        let allocation = Allocation { capacity, counted, holder: Holder::Unknown };
        Ok(Buffer { ptr, len, owner: Owner::Ours(allocation) })
    }

    /// Counts the first `bytes` bytes. An error if the limit does not allow it.
    pub(crate) fn arrives(&mut self, bytes: usize) -> Result<()> {
        let Owner::Ours(allocation) = &mut self.owner else { return Ok(()) };
        // All of the capacity with the last byte, so that the buffer can be recycled.
        let wanted = if bytes >= self.len { allocation.capacity } else { bytes };
        if wanted > allocation.counted {
            count(wanted - allocation.counted)?;
            pages::count_mapped(allocation.capacity, (wanted - allocation.counted) as isize);
            allocation.counted = wanted;
        }
        Ok(())
    }

    fn recycled_or_fresh(len: usize, new_use: NewUse) -> Result<Buffer> {
        let capacity = capacity_for(len)?;
        if capacity < RECYCLE_FROM {
            let account = MemoryOwner::current_account();
            let Some(ptr) = small::take(capacity, account) else {
                bail!(
                    ResourceExhausted,
                    "OOM when allocating {len} bytes: the system has no memory left"
                )
            };
            let holder = Holder::of_account(account);
            let allocation = Allocation { capacity, counted: capacity, holder };
            return Ok(Buffer { ptr, len, owner: Owner::Ours(allocation) });
        }
        let session = MemoryOwner::current();
        let id = session.as_ref().map_or(0, |session| session.id());
        if let Some(session) = &session {
            session.take(capacity)?;
        }
        let Some(Free { at: ptr, session: of }) = RECYCLED.take(capacity, id) else {
            return Buffer::fresh(len, capacity, session);
        };
        // Zeroed to its end: a later buffer in the same place may be longer.
        let is_foreign = id == 0 || of != id;
        let zeroed = match new_use {
            NewUse::Overwrite => 0,
            NewUse::Any | NewUse::Zeros if is_foreign => capacity,
            NewUse::Any => 0,
            NewUse::Zeros => len,
        };
        // SAFETY: a free block has no other owner and is valid for `capacity` bytes.
        unsafe { ptr.write_bytes(0, zeroed) };
        let holder = Holder::of_session(session);
        let allocation = Allocation { capacity, counted: capacity, holder };
        Ok(Buffer { ptr, len, owner: Owner::Ours(allocation) })
    }

    /// Shares the memory of `bytes` if it is aligned for all element types, else copies it.
    pub fn from_bytes(bytes: Bytes) -> Result<Buffer> {
        if bytes.as_ptr().align_offset(FOREIGN_ALIGN) == 0 && !bytes.is_empty() {
            let ptr = NonNull::new(bytes.as_ptr().cast_mut()).expect("slices are never null");
            return Ok(Buffer { ptr, len: bytes.len(), owner: Owner::Borrowed(bytes) });
        }
        let mut buffer = Buffer::for_overwrite(bytes.len())?;
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

    /// A new buffer. `session` has counted it.
    fn fresh(len: usize, capacity: usize, session: Option<Arc<MemoryOwner>>) -> Result<Buffer> {
        let found = count(capacity).and_then(|()| match pages::allocate(capacity) {
            Some(ptr) => Ok(ptr),
            None => {
                unreserve(capacity);
                bail!(
                    ResourceExhausted,
                    "OOM when allocating {len} bytes: the system has no memory left"
                )
            }
        });
        match found {
            Ok(ptr) => {
                pages::count_mapped(capacity, capacity as isize);
                let holder = Holder::of_session(session);
                let allocation = Allocation { capacity, counted: capacity, holder };
                Ok(Buffer { ptr, len, owner: Owner::Ours(allocation) })
            }
            Err(e) => {
                if let Some(session) = session {
                    session.give_back(capacity);
                }
                Err(e)
            }
        }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        let Owner::Ours(Allocation { capacity, counted, holder }) = &self.owner else { return };
        let (capacity, counted) = (*capacity, *counted);
        if capacity < RECYCLE_FROM {
            return small::put_back(self.ptr, capacity, holder.account());
        }
        let session = match holder {
            Holder::Session(session) => {
                session.give_back(capacity);
                session.id()
            }
            _ => 0,
        };
        if counted < capacity || !RECYCLED.keep(capacity, Free { at: self.ptr, session }) {
            // SAFETY: the memory came from `pages::allocate` with this capacity, and this was its
            // last owner.
            unsafe { pages::release(self.ptr, capacity) };
            pages::count_mapped(capacity, -(counted as isize));
            unreserve(counted);
        }
    }
}

/// Returns the memory of freed buffers to the system.
pub fn trim_recycled() {
    RECYCLED.clear();
}

/// Sets how many bytes tensors may use, for tests and for servers that share a machine. The default
/// is nine tenths of physical memory, or of the limit of the process's control group.
pub fn set_memory_limit(bytes: usize) {
    LIMIT_BYTES.store(bytes, Ordering::Relaxed);
}

/// How many bytes this process may use.
pub fn memory_limit() -> usize {
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

/// Like [`reserve`]; returns recycled memory to the system first, if that is needed.
fn count(bytes: usize) -> Result<()> {
    if reserve(bytes).is_err() {
        RECYCLED.clear();
        if let Err(live) = reserve(bytes) {
            let limit = memory_limit();
            bail!(
                ResourceExhausted,
                "OOM when allocating {bytes} bytes: tensors may use {limit} bytes on this machine \
                 (--max-memory) and {live} are in use"
            );
        }
    }
    Ok(())
}

fn unreserve(capacity: usize) {
    LIVE_BYTES.fetch_sub(capacity, Ordering::Relaxed);
}

/// Counts `bytes` as used, even beyond the limit.
fn take_unrefused(bytes: usize) {
    LIVE_BYTES.fetch_add(bytes, Ordering::Relaxed);
}

/// The bytes of tensors, or those of the heap and the mapped buffers if they are more.
fn in_use() -> usize {
    LIVE_BYTES.load(Ordering::Relaxed).max(pages::mapped().saturating_add(heap::in_use()))
}

/// An error if the process uses more memory than it may, for a session that holds `live` bytes.
pub(crate) fn check_process(live: usize) -> Result<()> {
    if in_use() <= memory_limit() { Ok(()) } else { refuse(live) }
}

/// Fails for a session that holds much. One that holds little may use a reserve, so that the large
/// session is refused first.
#[cold]
fn refuse(live: usize) -> Result<()> {
    RECYCLED.clear();
    let (used, limit) = (in_use(), memory_limit());
    if used <= limit || (live < limit / 8 && used <= limit.saturating_add(limit / 16)) {
        return Ok(());
    }
    bail!(
        ResourceExhausted,
        "OOM: this process uses {used} bytes and may use {limit} (--max-memory); the session holds \
         {live} of them"
    )
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

/// Nine tenths of physical memory, or of the limit of the process's control group. An allocation
/// beyond this fails with an error, because the system would kill the process instead.
static PHYSICAL_LIMIT: LazyLock<usize> = LazyLock::new(|| {
    // Miri cannot ask the system.
    if cfg!(miri) {
        return 1 << 40;
    }
    let info = rustix::system::sysinfo();
    let total = (info.totalram as usize).saturating_mul(info.mem_unit as usize);
    total.min(crate::cgroup::memory_limit().unwrap_or(usize::MAX)) / 10 * 9
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

/// A free block, and the session that its contents belong to; 0 if it is not known.
struct Free {
    at: NonNull<u8>,
    session: u64,
}
// SAFETY: a free block has no owner. Moving its pointer to another thread moves the block.
unsafe impl Send for Free {}

/// The number of blocks to search for one of the same session.
const LOOKED_AT: usize = 16;

impl Recycled {
    /// A block of this capacity, if possible one that `session` has freed.
    fn take(&self, capacity: usize, session: u64) -> Option<Free> {
        let mut lists = self.lists.lock();
        let at = lists.by_capacity.binary_search_by_key(&capacity, |entry| entry.0).ok()?;
        let blocks = &mut lists.by_capacity[at].1;
        // The block that was freed last is most likely in the cache.
        let same = blocks.iter().rev().take(LOOKED_AT).position(|free| free.session == session);
        let last = blocks.len().checked_sub(1)?;
        let free = blocks.swap_remove(same.map_or(last, |from_end| last - from_end));
        lists.bytes -= capacity;
        Some(free)
    }

    /// Keeps a block for later, unless enough blocks are kept already.
    fn keep(&self, capacity: usize, free: Free) -> bool {
        let mut lists = self.lists.lock();
        if lists.bytes + capacity > KEEP_BYTES {
            return false;
        }
        lists.bytes += capacity;
        match lists.by_capacity.binary_search_by_key(&capacity, |entry| entry.0) {
            Ok(at) => lists.by_capacity[at].1.push(free),
            Err(at) => lists.by_capacity.insert(at, (capacity, vec![free])),
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
                // SAFETY: a free block came from `pages::allocate` with its capacity.
                unsafe { pages::release(block.at, capacity) };
                pages::count_mapped(capacity, -(capacity as isize));
                unreserve(capacity);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg_attr(miri, ignore = "maps a gigabyte")]
    fn a_buffer_counts_what_has_arrived_and_not_what_was_announced() {
        let counted = |buffer: &Buffer| match &buffer.owner {
            Owner::Ours(allocation) => allocation.counted,
            _ => panic!("the buffer is not ours"),
        };
        let mut buffer = Buffer::arriving(1 << 30).unwrap();
        assert_eq!(counted(&buffer), 0);
        buffer.arrives(5 << 20).unwrap();
        assert_eq!(counted(&buffer), 5 << 20);
    }

    #[test]
    fn buffers_are_aligned_and_have_the_requested_length() {
        for len in up_to_some_size([0, 1, 63, 64, 65, 4096, 4097, 100_000, 5 << 20]) {
            let mut b = Buffer::alloc(len).unwrap();
            assert_eq!(b.bytes().len(), len);
            assert_eq!(b.bytes().as_ptr().align_offset(ALIGN), 0);
            b.bytes_mut().unwrap().fill(7);
            assert!(Buffer::zeroed(len).unwrap().bytes().iter().all(|&x| x == 0));
        }
    }

    /// Those lengths that Miri can check in seconds.
    fn up_to_some_size<const N: usize>(lengths: [usize; N]) -> impl Iterator<Item = usize> {
        lengths.into_iter().filter(|len| !cfg!(miri) || *len <= 5000)
    }

    fn session() -> Arc<MemoryOwner> {
        MemoryOwner::unlimited()
    }

    #[test]
    fn a_session_never_sees_what_another_has_freed() {
        for len in up_to_some_size([8, 64, 100, 5000, 70_000, 300_000, 5 << 20]) {
            let (first, second) = (session(), session());
            let write = |owner: &Arc<MemoryOwner>, len: usize| {
                let mut secret = owner.run(|| Buffer::alloc(len)).unwrap();
                secret.bytes_mut().unwrap().fill(0xa5);
            };
            let is_clean = |buffer: Buffer| buffer.bytes().iter().all(|&b| b == 0);
            write(&first, len);
            assert!(is_clean(second.run(|| Buffer::alloc(len)).unwrap()), "{len}");
            write(&first, len);
            assert!(is_clean(Buffer::alloc(len).unwrap()), "{len} without a session");
            // Bytes that one session received, or that end behind a shorter buffer of the other.
            write(&first, len);
            let mut received = Buffer::for_overwrite(len / 8 * 7).unwrap();
            received.bytes_mut().unwrap().fill(1);
            drop(received);
            assert!(is_clean(second.run(|| Buffer::alloc(len)).unwrap()), "{len} received");
            write(&first, len);
            drop(second.run(|| Buffer::zeroed(len / 8 * 7)).unwrap());
            assert!(is_clean(second.run(|| Buffer::alloc(len)).unwrap()), "{len} behind");
        }
    }

    #[test]
    fn a_session_gets_its_own_buffers_again_as_they_are() {
        let session = session();
        let mut first = session.run(|| Buffer::alloc(50_000)).unwrap();
        first.bytes_mut().unwrap().fill(7);
        let at = first.bytes().as_ptr();
        drop(first);
        let again = session.run(|| Buffer::alloc(50_000)).unwrap();
        assert_eq!((again.bytes().as_ptr(), again.bytes()[49_999]), (at, 7));
    }

    #[test]
    fn bytes_count_as_they_arrive() {
        let before = LIVE_BYTES.load(Ordering::Relaxed);
        let mut huge = Buffer::arriving(if cfg!(miri) { 1 << 20 } else { 20 << 30 }).unwrap();
        huge.arrives(1000).unwrap();
        let counted = LIVE_BYTES.load(Ordering::Relaxed) - before;
        assert!((1000..20 << 30).contains(&counted) || cfg!(miri), "{counted}");
        drop(huge);
        let mut whole = Buffer::arriving(1 << 20).unwrap();
        whole.arrives(1 << 20).unwrap();
        whole.bytes_mut().unwrap().fill(3);
        assert_eq!(whole.bytes()[(1 << 20) - 1], 3);
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
