//! The context of a node: outside all loops, in a loop, or in the backward loop of another one.

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
    /// All `Enter` nodes into it.
    pub enters: Vec<NodeId>,
    pub condition: Option<NodeId>,
    pub variables: Vec<LoopVariable>,
    /// Added when the first gradient asks for it.
    pub counter: Option<LoopCounter>,
}

/// A value that a loop passes from one iteration to the next.
#[derive(Clone, Debug)]
pub(super) struct LoopVariable {
    pub enter: NodeId,
    pub merge: NodeId,
    pub next: NodeId,
    pub switch: Option<NodeId>,
    pub exits: Vec<NodeId>,
}

/// Counts the iterations of a loop and orders the pushes of its iterations.
#[derive(Clone, Copy, Debug)]
pub(super) struct LoopCounter {
    /// A node outside the loop that is alive if the loop runs.
    pub anchor: NodeId,
    /// A node in the loop that is alive in each iteration, after all pushes of the one before.
    pub pivot: NodeId,
    /// Waits for the pushes of an iteration, dead or alive.
    pub sync: NodeId,
    /// The number of iterations.
    pub total: Endpoint,
}

/// The backward loop of another loop.
pub(super) struct BackwardLoop {
    pub of: LoopContextId,
    pub frame: String,
    pub parallel_iterations: i64,
    /// Alive in each iteration.
    pub pivot: NodeId,
    /// Waits for the pops of an iteration, dead or alive.
    pub sync: NodeId,
    /// Tensors of the enclosing context, and their tensors in this loop.
    pub entered: HashMap<Endpoint, Endpoint>,
    /// Tensors of the forward loop, and the pops that return them.
    pub recalled: HashMap<Endpoint, Endpoint>,
    /// Nodes that are alive if a branch was taken.
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

    /// The control input that puts a node without inputs into this context.
    pub fn pivot(&self) -> Option<NodeId> {
        match &self.kind {
            LoopContextKind::Backward(b) => Some(b.pivot),
            _ => None,
        }
    }
}
