//! Small buffers. A step allocates one for nearly every node. Each thread keeps a few freed buffers
//! of the smallest size and counts small sizes itself, so that threads do not contend.

use super::{ALIGN, pages, reserve, unreserve};
use std::cell::RefCell;
use std::ptr::NonNull;

/// Freed buffers of the smallest size that a thread keeps.
const KEPT: usize = 256;
/// Bytes that a thread reserves at a time from the global limit.
const CHUNK: usize = 64 << 10;

thread_local! {
    static LOCAL: RefCell<Local> = const { RefCell::new(Local { free: Vec::new(), credit: 0 }) };
}

struct Local {
    /// Free blocks of `ALIGN` bytes. They stay counted.
    free: Vec<NonNull<u8>>,
    /// Bytes that are reserved but not in use.
    credit: usize,
}

/// Memory of `capacity` zero bytes. `None` if the system or the limit has no more.
pub(super) fn take(capacity: usize) -> Option<NonNull<u8>> {
    let local = LOCAL.try_with(|local| {
        let mut local = local.borrow_mut();
        if capacity == ALIGN
            && let Some(ptr) = local.free.pop()
        {
            // SAFETY: a free block has no other owner and `ALIGN` bytes.
            unsafe { ptr.write_bytes(0, ALIGN) };
            return Some(ptr);
        }
        if local.credit < capacity {
            if reserve(CHUNK).is_err() {
                return None;
            }
            local.credit += CHUNK;
        }
        local.credit -= capacity;
        drop(local);
        let ptr = pages::allocate(capacity);
        if ptr.is_none() {
            give(capacity);
        }
        ptr
    });
    // The thread is ending, so its thread-local state is gone.
    local.unwrap_or_else(|_| {
        reserve(capacity).ok()?;
        let ptr = pages::allocate(capacity);
        if ptr.is_none() {
            unreserve(capacity);
        }
        ptr
    })
}

/// Takes back memory of this capacity that was allocated and counted, on any thread.
pub(super) fn put_back(ptr: NonNull<u8>, capacity: usize) {
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
        give(capacity);
    }
}

/// Counts bytes as unused.
fn give(capacity: usize) {
    let kept = LOCAL.try_with(|local| {
        let mut local = local.borrow_mut();
        local.credit += capacity;
        if local.credit > 2 * CHUNK {
            local.credit -= CHUNK;
            unreserve(CHUNK);
        }
    });
    if kept.is_err() {
        unreserve(capacity);
    }
}

impl Drop for Local {
    fn drop(&mut self) {
        for ptr in &self.free {
            // SAFETY: `put_back` added each as a block of `ALIGN` bytes without other references.
            unsafe { pages::release(*ptr, ALIGN) };
        }
        unreserve(self.credit + self.free.len() * ALIGN);
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
