//! Small buffers, of which a step makes one for nearly every node: each thread keeps a few freed ones
//! of the smallest size, and counts small bytes on its own, so that threads do not meet over them.

use super::{ALIGN, layout, reserve, unreserve};
use std::alloc::{alloc_zeroed, dealloc};
use std::cell::RefCell;
use std::ptr::NonNull;

/// Buffers of the smallest size that a thread keeps.
const KEPT: usize = 256;
/// Bytes that a thread counts at a time.
const CHUNK: usize = 64 << 10;

thread_local! {
    static LOCAL: RefCell<Local> = const { RefCell::new(Local { free: Vec::new(), credit: 0 }) };
}

struct Local {
    /// Of `ALIGN` bytes each, which stay counted.
    free: Vec<NonNull<u8>>,
    /// Bytes that are counted but not in use.
    credit: usize,
}

/// Memory of `capacity` initialised but unspecified bytes; none if there is none left, or none that
/// may be counted.
pub(super) fn take(capacity: usize) -> Option<NonNull<u8>> {
    let local = LOCAL.try_with(|local| {
        let mut local = local.borrow_mut();
        if capacity == ALIGN
            && let Some(ptr) = local.free.pop()
        {
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
        let ptr = allocate(capacity);
        if ptr.is_none() {
            give(capacity);
        }
        ptr
    });
    // The thread is ending: its own count is gone.
    local.unwrap_or_else(|_| {
        reserve(capacity).ok()?;
        let ptr = allocate(capacity);
        if ptr.is_none() {
            unreserve(capacity);
        }
        ptr
    })
}

/// Takes memory back that was allocated with `layout(capacity)` and counted, here or elsewhere.
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
        // SAFETY: by this function's contract the memory is of this layout; the caller, who owned it,
        // has given it up.
        unsafe { dealloc(ptr.as_ptr(), layout(capacity)) };
        give(capacity);
    }
}

fn allocate(capacity: usize) -> Option<NonNull<u8>> {
    // SAFETY: capacities are multiples of ALIGN, never zero.
    NonNull::new(unsafe { alloc_zeroed(layout(capacity)) })
}

/// Counts bytes as no longer in use.
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
            // SAFETY: each came here through `put_back`, as a block of `ALIGN` bytes that nobody
            // refers to any more.
            unsafe { dealloc(ptr.as_ptr(), layout(ALIGN)) };
        }
        unreserve(self.credit + self.free.len() * ALIGN);
    }
}

#[cfg(test)]
mod tests {
    use crate::{Buffer, Tensor};

    #[test]
    fn small_buffers_cross_threads_and_come_back() {
        let (tell, told) = std::sync::mpsc::channel::<Tensor>();
        std::thread::scope(|scope| {
            scope.spawn(move || {
                for i in 0..if cfg!(miri) { 40 } else { 2000 } {
                    tell.send(Tensor::scalar(i)).unwrap();
                }
            });
            for (i, t) in told.iter().enumerate() {
                assert_eq!(t.scalar_value::<i32>().unwrap(), i as i32);
                // What was freed is used again, and does not show.
                let zero = Buffer::zeroed(8).unwrap();
                assert_eq!(zero.bytes(), [0; 8]);
            }
        });
    }
}
