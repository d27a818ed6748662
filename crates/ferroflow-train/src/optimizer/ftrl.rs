//! Follow the regularized leader.

use super::{Optimizer, Update, parameters};
use crate::gradient::IndexedSlices;
use crate::graph::Graph;
use crate::node::NodeBuilder;
use crate::output::{Operation, Output};
use crate::schedule::Rate;
use ferroflow_core::DType;

/// FTRL-Proximal (McMahan et al. 2013): sparse weights for wide linear models.
///
/// ```
/// # let g = ferroflow_train::Graph::new();
/// use ferroflow_train::{Ftrl, Optimizer};
/// let w = g.variable("w", 0.0);
/// let train = Ftrl::new(0.1).regularization(0.001, 0.01).minimize(&(&*w - 3.0).square());
/// assert!(g.check().is_ok());
/// ```
#[derive(Clone, Debug)]
pub struct Ftrl {
    rate: Rate,
    power: f32,
    start: f32,
    l1: f32,
    l2: f32,
    shrinkage: f32,
}

impl Ftrl {
    /// With this learning rate.
    pub fn new(rate: impl Into<Rate>) -> Ftrl {
        Ftrl { rate: rate.into(), power: -0.5, start: 0.1, l1: 0.0, l2: 0.0, shrinkage: 0.0 }
    }

    /// The strengths of L1 and L2 regularization.
    pub fn regularization(mut self, l1: f32, l2: f32) -> Ftrl {
        (self.l1, self.l2) = (l1, l2);
        self
    }

    /// The strength of L2 shrinkage, which applies to the weights with every gradient.
    pub fn shrinkage(mut self, l2: f32) -> Ftrl {
        self.shrinkage = l2;
        self
    }

    /// The initial value of the sums of squared gradients; 0.1 by default.
    pub fn initial_accumulator(mut self, start: f32) -> Ftrl {
        self.start = start;
        self
    }

    fn start(&self, u: &Update<'_>, prefix: &str) -> NodeBuilder {
        let version = if self.shrinkage > 0.0 { "V2" } else { "" };
        let op = u.graph.op(&format!("{prefix}Ftrl{version}")).input(&u.variable.handle());
        op.input(&u.slots[0].handle()).input(&u.slots[1].handle())
    }

    /// The power with which the rate falls with the sum of squared gradients; -0.5 by default.
    pub fn learning_rate_power(mut self, power: f32) -> Ftrl {
        self.power = power;
        self
    }
}

impl Optimizer for Ftrl {
    fn name(&self) -> &str {
        "Ftrl"
    }

    fn parameters(&self, graph: &Graph, dtype: DType) -> Vec<Output> {
        let mut others = vec![("l1", self.l1), ("l2", self.l2)];
        if self.shrinkage > 0.0 {
            others.push(("l2_shrinkage", self.shrinkage));
        }
        others.push(("learning_rate_power", self.power));
        parameters(graph, dtype, &self.rate, &others)
    }

    fn slots(&self) -> Vec<f32> {
        vec![self.start, 0.0]
    }

    fn dense(&self, u: &Update<'_>, gradient: &Output) -> Operation {
        let op = self.start(u, "ResourceApply").input(gradient);
        u.parameters.iter().fold(op, |op, p| op.input(p)).operation()
    }

    fn sparse(&self, u: &Update<'_>, gradient: &IndexedSlices) -> Operation {
        let gradient = gradient.deduplicated();
        let op = self.start(u, "ResourceSparseApply");
        let op = op.input(&gradient.values).input(&gradient.indices);
        u.parameters.iter().fold(op, |op, p| op.input(p)).operation()
    }
}
