//! Where a node is: outside all loops, in a loop, or in a loop that runs another one's way back.

use crate::graph::{Endpoint, NodeId};
use std::collections::HashMap;

/// Index into the contexts of a tape.
pub(super) type LoopContextId = usize;

/// Outside all loops.
pub(super) const ROOT: LoopContextId = 0;

pub(super) struct LoopContext {
    pub parent: LoopContextId,
    pub kind: LoopContextKind,
}

pub(super) enum LoopContextKind {
    Root,
    Forward(ForwardLoop),
    Backward(BackwardLoop),
}

/// A loop of the graph.
#[derive(Default)]
pub(super) struct ForwardLoop {
    pub frame: String,
    pub parallel_iterations: i64,
    /// Everything that comes in.
    pub enters: Vec<NodeId>,
    pub condition: Option<NodeId>,
    pub variables: Vec<LoopVariable>,
    /// Added when the first gradient asks for it.
    pub counter: Option<LoopCounter>,
}

/// What a loop hands from one iteration to the next.
#[derive(Clone, Debug)]
pub(super) struct LoopVariable {
    pub enter: NodeId,
    pub merge: NodeId,
    pub next: NodeId,
    pub switch: Option<NodeId>,
    pub exits: Vec<NodeId>,
}

/// Counts the iterations of a loop, and keeps in step what is remembered of them.
#[derive(Clone, Copy, Debug)]
pub(super) struct LoopCounter {
    /// Outside the loop, alive when the loop is.
    pub anchor: NodeId,
    /// In the loop, alive in each iteration, after all that the one before remembers.
    pub pivot: NodeId,
    /// Waits for what an iteration remembers, dead or alive.
    pub sync: NodeId,
    /// How many iterations there were.
    pub total: Endpoint,
}

/// A loop that goes back through another.
pub(super) struct BackwardLoop {
    pub of: LoopContextId,
    pub frame: String,
    pub parallel_iterations: i64,
    /// Alive in each iteration.
    pub pivot: NodeId,
    /// Waits for what an iteration recalls, dead or alive.
    pub sync: NodeId,
    /// Tensors of the context around this one, and what they are within.
    pub entered: HashMap<Endpoint, Endpoint>,
    /// Tensors of the loop that is gone through, and what recalls them.
    pub recalled: HashMap<Endpoint, Endpoint>,
    /// Nodes that are alive when a branch is taken.
    pub branches: HashMap<BranchGuard, NodeId>,
}

/// A node is alive only if `predicate` is `branch`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct BranchGuard {
    pub predicate: Endpoint,
    pub branch: bool,
}

impl LoopContext {
    pub fn root() -> LoopContext {
        LoopContext { parent: ROOT, kind: LoopContextKind::Root }
    }

    /// What a node without inputs must wait for to be in this context.
    pub fn pivot(&self) -> Option<NodeId> {
        match &self.kind {
            LoopContextKind::Backward(b) => Some(b.pivot),
            _ => None,
        }
    }
}
