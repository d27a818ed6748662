//! Input slots that threads hand to each other without a lock: the unsafe half of the executor.
//!
//! The protocol that makes it sound, and that [`crate::flat`] and [`crate::frames`] keep:
//!
//! 1. A slot is the end of one edge. The thread that completes the edge's source writes it, before
//!    it counts the consumer down for that edge. Without control flow it is written once in a run.
//!    In an iteration of a loop, a malformed graph may write it more than once, but only with the
//!    frame's lock held and never after the consumer became ready.
//! 2. The consumer becomes ready once, when its count reaches zero; each count-down releases what
//!    was written before it and the last one acquires all of it (an AcqRel counter, the frame's
//!    lock, or a single writer that is also the reader). From then on only the holder of the one
//!    token for the ready node touches the node's slots.
//! 3. A slot is written again, in another run or iteration, only after its node has completed.

use ferroflow_core::Value;
use std::cell::UnsafeCell;
use std::ops::Range;

/// The input slots of the nodes of a plan, or of one iteration of a loop.
pub(crate) struct Slots(Box<[UnsafeCell<Value>]>);

// SAFETY: `Value` is Send. The unsafe methods below hand each slot from one writer to one reader;
// their callers guarantee the order.
unsafe impl Sync for Slots {}

impl Slots {
    /// So many slots, all empty.
    pub fn new(count: usize) -> Slots {
        Slots((0..count).map(|_| UnsafeCell::new(Value::Empty)).collect())
    }

    /// Puts `value` into a slot.
    ///
    /// # Safety
    /// By the protocol the caller must be the slot's writer: it completes the edge's source and has
    /// not counted the consumer down for this edge yet.
    pub unsafe fn put(&self, slot: usize, value: Value) {
        // SAFETY: no other thread touches the slot before the caller counts its consumer down.
        unsafe { *self.0[slot].get() = value };
    }

    /// The slots of a ready node.
    ///
    /// # Safety
    /// By the protocol the caller must hold the token of the ready node that these slots belong to,
    /// and must not call this again while the result lives.
    #[allow(clippy::mut_from_ref)]
    pub unsafe fn of_ready(&self, range: Range<usize>) -> &mut [Value] {
        let slots = &self.0[range];
        // SAFETY: all writers have counted down, so the slots are the caller's alone. The cells are
        // contiguous and `UnsafeCell<Value>` has the layout of `Value`.
        unsafe { std::slice::from_raw_parts_mut(slots.as_ptr() as *mut Value, slots.len()) }
    }

    /// Drops the values that no node took.
    pub fn clear(&mut self) {
        for slot in &mut self.0 {
            let value = slot.get_mut();
            if !value.is_empty() {
                *value = Value::Empty;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ferroflow_core::Tensor;
    use std::sync::atomic::{AtomicU32, Ordering};

    /// The protocol with threads for sources: each writes its slot and counts down, the last reads.
    #[test]
    fn values_cross_threads() {
        for _ in 0..if cfg!(miri) { 3 } else { 200 } {
            let (slots, pending) = (Slots::new(4), AtomicU32::new(3));
            std::thread::scope(|scope| {
                for i in 0..3 {
                    let (slots, pending) = (&slots, &pending);
                    scope.spawn(move || {
                        // SAFETY: this thread alone writes slot `i`, and counts down afterwards.
                        unsafe { slots.put(i, Value::Tensor(Tensor::scalar(i as i32))) };
                        if pending.fetch_sub(1, Ordering::AcqRel) == 1 {
                            // SAFETY: the count reached zero here: the slots are this thread's.
                            let inputs = unsafe { slots.of_ready(0..3) };
                            let sum: i32 = inputs
                                .iter_mut()
                                .map(std::mem::take)
                                .map(|v| v.into_tensor().unwrap().scalar_value::<i32>().unwrap())
                                .sum();
                            assert_eq!(sum, 3);
                        }
                    });
                }
            });
            let mut slots = slots;
            assert!(slots.0.iter_mut().all(|slot| slot.get_mut().is_empty()));
        }
    }

    /// A ready node takes its values and leaves the rest for `clear`, several times over.
    #[test]
    fn slots_are_reused_by_later_steps() {
        let mut slots = Slots::new(3);
        for step in 0..3 {
            // SAFETY: no other thread has these slots.
            let inputs = unsafe {
                slots.put(0, Value::Tensor(Tensor::scalar(step)));
                slots.put(2, Value::Tensor(Tensor::scalar(-step)));
                slots.of_ready(0..2)
            };
            let taken = std::mem::take(&mut inputs[0]).into_tensor().unwrap();
            assert_eq!(taken.scalar_value::<i32>().unwrap(), step);
            assert!(inputs[1].is_empty());
            slots.clear();
            assert!(slots.0.iter_mut().all(|slot| slot.get_mut().is_empty()));
        }
    }
}
