//! How long nodes take that are worth a thread of their own. Which they are, their ops say for what they
//! may be asked to do; one that has little to do, such as the sum of ten numbers, is done in less time
//! than it takes to wake a thread for it.

use ferroflow_core::DType;
use ferroflow_graph::{Node, OpCost};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

/// What a node is taken to need before it has run a few times.
const AT_FIRST: u32 = 100_000;
/// With less than this it is done before another thread has woken up.
const WORTH_A_THREAD: u32 = 20_000;

/// What is known of the cost a node takes.
pub(crate) enum NodeCost {
    Cheap,
    /// Whatever it took so far: the next time it may have to wait for a file.
    Expensive,
    /// Nanoseconds, as a moving average.
    Measured(AtomicU32),
}

impl NodeCost {
    pub fn of(node: &Node) -> NodeCost {
        if node.op.cost != OpCost::Expensive {
            return NodeCost::Cheap;
        }
        // What has effects computes if it is about a variable, and talks to the world otherwise.
        let has_variable =
            node.input_types.first().is_some_and(|t| t.is_ref || t.dtype == DType::Resource);
        match node.op.is_pure() || has_variable {
            true => NodeCost::Measured(AtomicU32::new(AT_FIRST)),
            false => NodeCost::Expensive,
        }
    }

    /// Whether it is better done by another thread, if this one has other things to do.
    pub fn is_worth_a_thread(&self) -> bool {
        match self {
            NodeCost::Cheap => false,
            NodeCost::Expensive => true,
            NodeCost::Measured(nanos) => nanos.load(Ordering::Relaxed) >= WORTH_A_THREAD,
        }
    }

    /// Does the node's work, and notes what it took.
    pub fn measure<R>(&self, work: impl FnOnce() -> R) -> R {
        let NodeCost::Measured(nanos) = self else { return work() };
        let begun = Instant::now();
        let result = work();
        note(nanos, u32::try_from(begun.elapsed().as_nanos()).unwrap_or(u32::MAX));
        result
    }
}

fn note(nanos: &AtomicU32, took: u32) {
    // Of two threads that do this at a time one is forgotten, which does not matter.
    let before = nanos.load(Ordering::Relaxed);
    nanos.store(before - before / 4 + took / 4, Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(times: &[u32]) -> bool {
        let nanos = AtomicU32::new(AT_FIRST);
        times.iter().for_each(|&took| note(&nanos, took));
        NodeCost::Measured(nanos).is_worth_a_thread()
    }

    #[test]
    fn what_turns_out_to_be_quick_is_not_worth_a_thread() {
        assert!(after(&[]) && after(&[300; 5]) && !after(&[300; 20]));
    }

    #[test]
    fn what_takes_long_again_is_worth_one_at_once() {
        let mut times = vec![300; 100];
        times.push(100_000);
        assert!(after(&times));
        assert!(after(&[u32::MAX; 100]));
    }

    #[test]
    fn what_is_cheap_by_nature_is_not_measured() {
        assert_eq!(NodeCost::Cheap.measure(|| 1), 1);
        assert!(!NodeCost::Cheap.is_worth_a_thread() && NodeCost::Expensive.is_worth_a_thread());
    }
}
