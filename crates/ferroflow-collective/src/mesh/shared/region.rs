//! Memory that processes share: mapping it, and access by offset.

use super::handover;
use ferroflow_core::{Result, err};
use rustix::fd::OwnedFd;
use rustix::fs::{MemfdFlags, fcntl_add_seals, ftruncate, memfd_create};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64};

/// Mapped shared memory. Every access is checked against its length. The users' flags in the memory
/// determine which process may access which part.
pub(crate) struct Region {
    at: NonNull<u8>,
    len: usize,
    file: OwnedFd,
}

// SAFETY: the mapping belongs to no thread. The safe methods return only atomics, and the `unsafe`
// ones leave exclusion to their callers.
unsafe impl Send for Region {}
// SAFETY: as above.
unsafe impl Sync for Region {}

impl Region {
    /// Creates zeroed memory that exists until the last process unmaps it.
    pub(crate) fn create(len: usize) -> Result<Region> {
        let create = || {
            let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
            let file = memfd_create("ferroflow-ranks", flags)?;
            ftruncate(&file, len as u64)?;
            // An access behind the end would kill the process that makes it.
            fcntl_add_seals(&file, handover::SEALS)?;
            Ok(file)
        };
        let file = create().map_err(|e: rustix::io::Errno| {
            err!(Unavailable, "cannot create shared memory: {e}")
        })?;
        Region::map(file, len)
    }

    /// Maps the memory that another process of this host and user has offered under `name`.
    pub(crate) fn open(name: &str, len: usize) -> Result<Region> {
        Region::map(handover::take(name, len)?, len)
    }

    /// Offers the memory to `times` other processes of this host and user. Returns the name for
    /// [`Region::open`]. The offer stands for a minute.
    pub(crate) fn offer(&self, times: usize) -> Result<String> {
        handover::offer(&self.file, times)
    }

    fn map(file: OwnedFd, len: usize) -> Result<Region> {
        let prot = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a fresh mapping at an address that the kernel chooses aliases no other memory.
        let at = unsafe { mmap(std::ptr::null_mut(), len, prot, MapFlags::SHARED, &file, 0) }
            .map_err(|e| err!(Unavailable, "cannot map shared memory: {e}"))?;
        let at = NonNull::new(at.cast())
            .ok_or_else(|| err!(Internal, "the kernel mapped memory at address 0"))?;
        Ok(Region { at, len, file })
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    fn check(&self, at: usize, len: usize) {
        let end = at.checked_add(len).expect("offsets are ours and small");
        assert!(end <= self.len, "offsets into shared memory are computed, never received");
    }

    pub(crate) fn u32(&self, at: usize) -> &AtomicU32 {
        self.check(at, 4);
        assert!(at.is_multiple_of(4), "atomics are aligned by layout");
        // SAFETY: in bounds and aligned (both just checked), mapped as long as `self` exists, and
        // used only as an atomic by all processes.
        unsafe { AtomicU32::from_ptr(self.at.as_ptr().add(at).cast()) }
    }

    pub(crate) fn u64(&self, at: usize) -> &AtomicU64 {
        self.check(at, 8);
        assert!(at.is_multiple_of(8), "atomics are aligned by layout");
        // SAFETY: as in `u32`.
        unsafe { AtomicU64::from_ptr(self.at.as_ptr().add(at).cast()) }
    }

    /// Bytes that no process writes to while the result exists.
    ///
    /// # Safety
    /// The caller's flags must have shown that the writer has finished, and must keep it from
    /// starting again.
    pub(crate) unsafe fn bytes(&self, at: usize, len: usize) -> &[u8] {
        self.check(at, len);
        // SAFETY: in bounds, initialized (the kernel zeroes it), and not written to by contract.
        unsafe { std::slice::from_raw_parts(self.at.as_ptr().add(at), len) }
    }

    /// Bytes that only the caller uses while the result exists.
    ///
    /// # Safety
    /// The caller's flags must give the caller exclusive access to this range, in all processes.
    #[allow(clippy::mut_from_ref)]
    pub(crate) unsafe fn bytes_mut(&self, at: usize, len: usize) -> &mut [u8] {
        self.check(at, len);
        // SAFETY: in bounds, initialized, and exclusive by contract.
        unsafe { std::slice::from_raw_parts_mut(self.at.as_ptr().add(at), len) }
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: mapped by `map` with this length, and no borrow of `self` exists any more.
        let _ = unsafe { munmap(self.at.as_ptr().cast(), self.len) };
    }
}
