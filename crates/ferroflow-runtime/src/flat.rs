//! How values travel when there is no control flow: one slot per input, one counter per node.
//!
//! Each thread that has written a slot of a node counts the node's counter down. The thread that
//! reaches zero queues the node. A node with a single incoming edge needs no counter: its only
//! writer queues it.

use crate::executor::Propagator;
use crate::plan::{CONTROL, Plan};
use crate::slots::Slots;
use ferroflow_core::{Tensor, Value};
use std::sync::atomic::{AtomicU32, Ordering};

/// The values and counters of one step; recycled from step to step.
pub(crate) struct FlatState {
    slots: Slots,
    pending: Box<[AtomicU32]>,
}

impl FlatState {
    pub fn new(plan: &Plan) -> FlatState {
        plan.spare_states.lock().pop().unwrap_or_else(|| FlatState {
            slots: Slots::new(plan.input_slots),
            pending: plan.nodes.iter().map(|n| AtomicU32::new(n.pending)).collect(),
        })
    }

    /// Keeps the state for the next step. Only a step that ran to its end may call this: every node
    /// has then run and emptied its slots, and each counter was reset when its node became ready.
    pub fn recycle(self, plan: &Plan) {
        const KEPT: usize = 64;
        let mut spare = plan.spare_states.lock();
        if spare.len() < KEPT {
            spare.push(self);
        }
    }
}

impl Propagator for FlatState {
    type Ready = u32;
    const IS_SHARED_CHEAPLY: bool = true;

    fn start(&self, plan: &Plan, args: Vec<Tensor>, ready: &mut Vec<u32>) {
        ready.extend_from_slice(&plan.roots);
        for (&node, arg) in plan.args.iter().zip(args) {
            self.complete(plan, node, Some(&mut [Value::Tensor(arg)]), ready);
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
        // SAFETY: `ready` is the node's only token: it is made when the counter reaches zero. Its
        // borrow keeps a second call away.
        unsafe { self.slots.of_ready(range) }
    }

    fn complete(
        &self,
        plan: &Plan,
        ready: u32,
        outputs: Option<&mut [Value]>,
        queue: &mut Vec<u32>,
    ) {
        let node = &plan.nodes[ready as usize];
        let outputs = outputs.unwrap_or_default();
        for edge in plan.edges_of(node) {
            if edge.slot != CONTROL {
                let output = outputs.get_mut(edge.slot as usize);
                let value = match output {
                    Some(value) if edge.is_last_use => std::mem::take(value),
                    Some(value) => value.clone(),
                    None => Value::Empty,
                };
                // SAFETY: this thread completes the edge's source, and counts down right below.
                unsafe { self.slots.put(edge.place as usize, value) };
            }
            if !edge.is_only {
                let counter = &self.pending[edge.to as usize];
                if counter.fetch_sub(1, Ordering::AcqRel) != 1 {
                    continue;
                }
                // Reset for the next step: no thread counts it down any more in this one.
                counter.store(plan.nodes[edge.to as usize].pending, Ordering::Relaxed);
            }
            queue.push(edge.to);
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
