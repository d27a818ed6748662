//! The cost of nodes in nanoseconds. An op declares itself expensive for its largest inputs. A node
//! of such an op is measured, and counts as cheap if it proves to be: the sum of ten numbers, for
//! example.

use ferroflow_core::DType;
use ferroflow_core::inline::{WAKE_NANOS, node_nanos};
use ferroflow_graph::{Node, OpCost};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

/// The estimate for an expensive node before it has run a few times.
const FIRST_ESTIMATE: u32 = 100_000;

/// The cost of enqueueing a kernel on a GPU, however much the kernel computes.
const ENQUEUE_NANOS: u64 = 5_000;

/// The known cost of a node.
pub(crate) enum NodeCost {
    Cheap,
    /// It enqueues work on a GPU.
    Enqueues,
    /// It may wait for a file the next time, however short it was so far.
    Expensive,
    /// A moving average.
    Measured(AtomicU32),
}

impl NodeCost {
    /// The cost of a node, `on_gpu` if a GPU computes it.
    pub fn of(node: &Node, on_gpu: bool) -> NodeCost {
        if on_gpu && !node.op.does_io {
            return NodeCost::Enqueues;
        }
        if node.op.cost != OpCost::Expensive {
            return NodeCost::Cheap;
        }
        // A node with effects computes if it works on a variable or has a seed, and does I/O
        // otherwise.
        let has_variable =
            node.input_types.first().is_some_and(|t| t.is_ref || t.dtype == DType::Resource);
        let computes = node.op.is_pure() || has_variable || node.attrs.contains("seed");
        match computes && !node.op.does_io {
            true => NodeCost::Measured(AtomicU32::new(FIRST_ESTIMATE)),
            false => NodeCost::Expensive,
        }
    }

    /// The estimate for a run with so many bytes of input.
    pub fn nanos(&self, bytes: usize) -> u64 {
        match self {
            NodeCost::Cheap => node_nanos(bytes),
            NodeCost::Enqueues => ENQUEUE_NANOS,
            NodeCost::Expensive => u64::MAX,
            NodeCost::Measured(nanos) => {
                u64::from(nanos.load(Ordering::Relaxed)).max(node_nanos(bytes))
            }
        }
    }

    /// Whether a compute thread with more to do should give the node to another one.
    pub fn is_worth_a_thread(&self) -> bool {
        match self {
            NodeCost::Cheap | NodeCost::Enqueues => false,
            NodeCost::Expensive => true,
            NodeCost::Measured(nanos) => u64::from(nanos.load(Ordering::Relaxed)) >= WAKE_NANOS,
        }
    }

    /// Runs the node, and notes how long that took.
    pub fn measure<R>(&self, work: impl FnOnce() -> R) -> R {
        let NodeCost::Measured(nanos) = self else { return work() };
        let start = Instant::now();
        let result = work();
        note(nanos, u32::try_from(start.elapsed().as_nanos()).unwrap_or(u32::MAX));
        result
    }
}

fn note(nanos: &AtomicU32, took: u32) {
    // When two threads do this at the same time, one measurement is lost. The average bears that.
    let before = nanos.load(Ordering::Relaxed);
    nanos.store(before - before / 4 + took / 4, Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(times: &[u32]) -> NodeCost {
        let nanos = AtomicU32::new(FIRST_ESTIMATE);
        times.iter().for_each(|&took| note(&nanos, took));
        NodeCost::Measured(nanos)
    }

    #[test]
    fn a_node_that_turns_out_to_be_quick_is_not_worth_a_thread() {
        assert!(after(&[]).is_worth_a_thread() && after(&[300; 5]).is_worth_a_thread());
        assert!(!after(&[300; 20]).is_worth_a_thread());
        assert!(after(&[300; 20]).nanos(0) < 2000);
    }

    #[test]
    fn a_node_that_takes_long_again_is_worth_a_thread_at_once() {
        let mut times = vec![300; 100];
        times.push(100_000);
        assert!(after(&times).is_worth_a_thread());
        assert!(after(&[u32::MAX; 100]).is_worth_a_thread());
    }

    #[test]
    fn cheap_nodes_cost_what_their_inputs_do() {
        assert_eq!(NodeCost::Cheap.measure(|| 1), 1);
        assert!(!NodeCost::Cheap.is_worth_a_thread() && NodeCost::Expensive.is_worth_a_thread());
        assert_eq!(NodeCost::Expensive.nanos(0), u64::MAX);
        assert!(NodeCost::Cheap.nanos(0) < NodeCost::Cheap.nanos(1 << 20));
        assert_eq!(NodeCost::Enqueues.nanos(0), NodeCost::Enqueues.nanos(1 << 30));
    }
}
