//! RMSProp.

use super::{Optimizer, Update, parameters};
use crate::gradient::IndexedSlices;
use crate::graph::Graph;
use crate::node::NodeBuilder;
use crate::output::{Operation, Output};
use crate::schedule::Rate;
use ferroflow_core::DType;

/// RMSProp: divides each element's rate by the root of a running mean of its squared gradients.
///
/// ```
/// # let g = ferroflow_train::Graph::new();
/// use ferroflow_train::{RmsProp, Optimizer};
/// let w = g.variable("w", 0.0);
/// let train = RmsProp::new(0.01).momentum(0.9).minimize(&(&*w - 3.0).square());
/// assert!(g.check().is_ok());
/// ```
#[derive(Clone, Debug)]
pub struct RmsProp {
    rate: Rate,
    decay: f32,
    momentum: f32,
    epsilon: f32,
    centered: bool,
}

impl RmsProp {
    /// With this learning rate.
    pub fn new(rate: impl Into<Rate>) -> RmsProp {
        RmsProp { rate: rate.into(), decay: 0.9, momentum: 0.0, epsilon: 1e-10, centered: false }
    }

    /// Sets the decay of the mean square.
    pub fn decay(mut self, decay: f32) -> RmsProp {
        self.decay = decay;
        self
    }

    /// Sets the momentum; 0 by default.
    pub fn momentum(mut self, momentum: f32) -> RmsProp {
        self.momentum = momentum;
        self
    }

    /// Sets the number added to the mean square.
    pub fn epsilon(mut self, epsilon: f32) -> RmsProp {
        self.epsilon = epsilon;
        self
    }

    /// Divides by the standard deviation of the gradients instead of the root of their mean square.
    pub fn centered(mut self) -> RmsProp {
        self.centered = true;
        self
    }

    fn start(&self, u: &Update<'_>, prefix: &str) -> NodeBuilder {
        let centered = if self.centered { "Centered" } else { "" };
        let op = u.graph.op(&format!("{prefix}{centered}RMSProp")).input(&u.variable.handle());
        let handles: Vec<Output> = u.slots.iter().map(|s| s.handle()).collect();
        // The op takes the mean before the mean square; the slots have the opposite order.
        let order: &[usize] = if self.centered { &[1, 0, 2] } else { &[0, 1] };
        let op = order.iter().fold(op, |op, &i| op.input(&handles[i]));
        u.parameters.iter().fold(op, |op, p| op.input(p))
    }
}

impl Optimizer for RmsProp {
    fn name(&self) -> &str {
        "RMSProp"
    }

    fn parameters(&self, graph: &Graph, dtype: DType) -> Vec<Output> {
        let others =
            [("decay", self.decay), ("momentum", self.momentum), ("epsilon", self.epsilon)];
        parameters(graph, dtype, &self.rate, &others)
    }

    fn slots(&self) -> Vec<f32> {
        if self.centered { vec![1.0, 0.0, 0.0] } else { vec![1.0, 0.0] }
    }

    fn dense(&self, u: &Update<'_>, gradient: &Output) -> Operation {
        self.start(u, "ResourceApply").input(gradient).operation()
    }

    fn sparse(&self, u: &Update<'_>, gradient: &IndexedSlices) -> Operation {
        let gradient = gradient.deduplicated();
        let op = self.start(u, "ResourceSparseApply");
        op.input(&gradient.values).input(&gradient.indices).operation()
    }
}
