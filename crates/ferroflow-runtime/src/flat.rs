//! How values travel when there is no control flow: one slot per input, one counter per node.
//!
//! The protocol, which makes the unsafe code below sound: an input slot is written by exactly one
//! edge, by the thread that completes the edge's source, before that thread counts the consumer's
//! `pending` down. The thread whose count-down reaches zero is the only one to touch the consumer's
//! slots from then on, until the step ends. A node with a single incoming edge needs no counter:
//! the one writer is also the one that runs it.

use crate::executor::Propagator;
use crate::plan::{CONTROL, Plan};
use ferroflow_core::{Outputs, Tensor, Value};
use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicU32, Ordering};

/// The values and counters of one step; recycled from step to step.
pub(crate) struct FlatState {
    slots: Box<[UnsafeCell<Value>]>,
    pending: Box<[AtomicU32]>,
}

// SAFETY: slots are shared between threads only under the protocol in the module's text, which
// gives each slot one writer and then one reader, ordered by the AcqRel count-down (or by being the
// same thread).
unsafe impl Sync for FlatState {}

impl FlatState {
    pub fn new(plan: &Plan) -> FlatState {
        let state = match plan.spare_states.lock().pop() {
            Some(spare) => spare,
            None => FlatState {
                slots: (0..plan.input_slots).map(|_| UnsafeCell::new(Value::Empty)).collect(),
                pending: plan.nodes.iter().map(|_| AtomicU32::new(0)).collect(),
            },
        };
        for (counter, node) in state.pending.iter().zip(&plan.nodes) {
            counter.store(node.pending, Ordering::Relaxed);
        }
        state
    }

    /// Gives the state back for the next step. Only after a step that ran to its end: every node has
    /// then run, and running a node empties its slots.
    pub fn recycle(self, plan: &Plan) {
        const KEPT: usize = 64;
        let mut spare = plan.spare_states.lock();
        if spare.len() < KEPT {
            spare.push(self);
        }
    }

    /// Puts `value` into the slot of an edge whose source is being completed by this thread.
    fn put(&self, slot: usize, value: Value) {
        // SAFETY: by the protocol this thread is the slot's only writer, and nobody reads it before
        // the consumer's counter, which this thread counts down afterwards, reaches zero.
        unsafe { *self.slots[slot].get() = value };
    }
}

impl Propagator for FlatState {
    type Ready = u32;

    fn start(&self, plan: &Plan, args: Vec<Tensor>, ready: &mut Vec<u32>) {
        ready.extend_from_slice(&plan.roots);
        let mut outputs = Outputs::new();
        for (&node, arg) in plan.args.iter().zip(args) {
            outputs.clear();
            outputs.push(Value::Tensor(arg));
            self.complete(plan, node, Some(&mut outputs), ready);
        }
    }

    fn node(ready: &u32) -> u32 {
        *ready
    }

    fn is_dead(_: &u32) -> bool {
        false
    }

    fn frame_iter(_: &u32) -> (u64, u64) {
        (0, 0)
    }

    fn inputs<'a>(&'a self, plan: &Plan, ready: &'a mut u32) -> &'a mut [Value] {
        let node = &plan.nodes[*ready as usize];
        let range = node.first_input as usize..(node.first_input + node.inputs) as usize;
        let slots = &self.slots[range];
        // SAFETY: the node is ready and `ready` is its only token (it is handed out once, when the
        // counter reaches zero), so by the protocol these slots are this thread's alone. The cells
        // are contiguous and `UnsafeCell<Value>` has the layout of `Value`. The borrow of `ready`
        // keeps a second call from overlapping.
        unsafe { std::slice::from_raw_parts_mut(slots.as_ptr() as *mut Value, slots.len()) }
    }

    fn complete(
        &self,
        plan: &Plan,
        ready: u32,
        outputs: Option<&mut Outputs>,
        queue: &mut Vec<u32>,
    ) {
        let node = &plan.nodes[ready as usize];
        let mut nothing = Outputs::new();
        let outputs = outputs.unwrap_or(&mut nothing);
        for edge in plan.edges_of(node) {
            let to = &plan.nodes[edge.to as usize];
            if edge.slot != CONTROL {
                let output = outputs.get_mut(edge.slot as usize);
                let value = match output {
                    Some(value) if edge.is_last_use => std::mem::take(value),
                    Some(value) => value.clone(),
                    None => Value::Empty,
                };
                self.put((to.first_input + edge.input) as usize, value);
            }
            let counter = &self.pending[edge.to as usize];
            if to.pending == 1 || counter.fetch_sub(1, Ordering::AcqRel) == 1 {
                queue.push(edge.to);
            }
        }
    }

    fn park(&self, ready: u32) -> u64 {
        u64::from(ready)
    }

    fn parked_node(&self, token: u64) -> Option<u32> {
        Some(token as u32)
    }

    fn unpark(&self, token: u64) -> Option<u32> {
        Some(token as u32)
    }

    fn finish(self, plan: &Plan, succeeded: bool) {
        if succeeded {
            self.recycle(plan);
        }
    }
}
