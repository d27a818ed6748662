//! Small buffers. A step allocates one for nearly every node. Each thread keeps a few freed buffers
//! of the smallest size and counts small sizes itself, so that threads do not contend.

use super::{ALIGN, pages, take_unrefused, unreserve};
use crate::memory_owner::MemoryAccount;
use std::cell::RefCell;
use std::ptr::NonNull;

/// Freed buffers of the smallest size that a thread keeps.
const KEPT: usize = 256;
/// Bytes that a thread reserves at a time from the global limit.
const CHUNK: usize = 64 << 10;
/// Bytes of an account that a thread reports at a time.
const PORTION: isize = 16 << 10;
/// The bytes that a small value takes besides its elements: tensor, shape, entry in a list.
pub(super) const AROUND: usize = 128;

thread_local! {
    static LOCAL: RefCell<Local> =
        const { RefCell::new(Local { free: Vec::new(), credit: 0, account: None, owed: 0 }) };
}

struct Local {
    /// Free blocks of `ALIGN` bytes. They do not count as used.
    free: Vec<NonNull<u8>>,
    /// Bytes that are reserved but not in use.
    credit: usize,
    /// The account that this thread has used last.
    account: Option<&'static MemoryAccount>,
    /// Bytes that this thread has not reported to the account yet.
    owed: isize,
}

impl Local {
    fn charge(&mut self, account: &'static MemoryAccount, bytes: isize) {
        if !self.account.is_some_and(|last| std::ptr::eq(last, account)) {
            self.report();
            self.account = Some(account);
        }
        self.owed += bytes;
        if self.owed.abs() >= PORTION {
            self.report();
        }
    }

    fn report(&mut self) {
        if let Some(account) = self.account {
            account.add(std::mem::take(&mut self.owed));
        }
    }
}

/// Counts a small value of `bytes` bytes. It is never refused: the limits are checked before the
/// next node.
pub(super) fn count(bytes: usize, account: Option<&'static MemoryAccount>) {
    let bytes = bytes + AROUND;
    let counted = LOCAL.try_with(|local| {
        let mut local = local.borrow_mut();
        if let Some(account) = account {
            local.charge(account, bytes as isize);
        }
        if local.credit < bytes {
            take_unrefused(CHUNK);
            local.credit += CHUNK;
        }
        local.credit -= bytes;
    });
    // The thread is ending, so its thread-local state is gone.
    if counted.is_err() {
        account.map(|account| account.add(bytes as isize));
        take_unrefused(bytes);
    }
}

/// Undoes [`count`], on any thread.
pub(super) fn discount(bytes: usize, account: Option<&'static MemoryAccount>) {
    let bytes = bytes + AROUND;
    let counted = LOCAL.try_with(|local| {
        let mut local = local.borrow_mut();
        if let Some(account) = account {
            local.charge(account, -(bytes as isize));
        }
        local.credit += bytes;
        if local.credit > 2 * CHUNK {
            local.credit -= CHUNK;
            unreserve(CHUNK);
        }
    });
    if counted.is_err() {
        account.map(|account| account.add(-(bytes as isize)));
        unreserve(bytes);
    }
}

/// Memory of `capacity` zero bytes. `None` if the system has no more.
pub(super) fn take(
    capacity: usize,
    account: Option<&'static MemoryAccount>,
) -> Option<NonNull<u8>> {
    let kept = LOCAL.try_with(|local| match capacity {
        ALIGN => local.borrow_mut().free.pop(),
        _ => None,
    });
    let ptr = match kept.ok().flatten() {
        Some(ptr) => {
            // SAFETY: a free block has no other owner and `ALIGN` bytes.
            unsafe { ptr.write_bytes(0, ALIGN) };
            ptr
        }
        None => pages::allocate(capacity)?,
    };
    count(capacity, account);
    Some(ptr)
}

/// Takes back memory of this capacity that [`take`] gave for this account, on any thread.
pub(super) fn put_back(ptr: NonNull<u8>, capacity: usize, account: Option<&'static MemoryAccount>) {
    let is_kept = capacity == ALIGN
        && LOCAL.try_with(|local| {
            let mut local = local.borrow_mut();
            let has_room = local.free.len() < KEPT;
            if has_room {
                local.free.push(ptr);
            }
            has_room
        }) == Ok(true);
    if !is_kept {
        // SAFETY: by this function's contract the memory has this capacity, and the caller gave up
        // the last reference.
        unsafe { pages::release(ptr, capacity) };
    }
    discount(capacity, account);
}

impl Drop for Local {
    fn drop(&mut self) {
        for ptr in &self.free {
            // SAFETY: `put_back` added each as a block of `ALIGN` bytes without other references.
            unsafe { pages::release(*ptr, ALIGN) };
        }
        self.report();
        unreserve(self.credit);
    }
}

#[cfg(test)]
mod tests {
    use crate::{Buffer, Tensor};

    #[test]
    fn small_buffers_can_be_freed_on_another_thread_and_reused() {
        let (sender, receiver) = std::sync::mpsc::channel::<Tensor>();
        std::thread::scope(|scope| {
            scope.spawn(move || {
                for i in 0..if cfg!(miri) { 40 } else { 2000 } {
                    sender.send(Tensor::scalar(i)).unwrap();
                }
            });
            for (i, t) in receiver.iter().enumerate() {
                assert_eq!(t.scalar_value::<i32>().unwrap(), i as i32);
                // A freed block is used again, and its old bytes are not visible.
                let zero = Buffer::zeroed(8).unwrap();
                assert_eq!(zero.bytes(), [0; 8]);
            }
        });
    }
}
