//! Gradient descent with momentum.

use super::{Optimizer, Update, parameters};
use crate::gradient::IndexedSlices;
use crate::graph::Graph;
use crate::output::{Operation, Output};
use crate::schedule::Rate;
use ferroflow_core::DType;

/// Momentum: `a = momentum * a + gradient`, `w -= rate * a`. Nesterov momentum is an option.
///
/// ```
/// # let g = ferroflow_train::Graph::new();
/// use ferroflow_train::{Momentum, Optimizer};
/// let w = g.variable("w", 0.0);
/// let train = Momentum::new(0.05, 0.9).nesterov().minimize(&(&*w - 3.0).square());
/// assert!(g.check().is_ok());
/// ```
#[derive(Clone, Debug)]
pub struct Momentum {
    rate: Rate,
    momentum: f32,
    nesterov: bool,
}

impl Momentum {
    /// With this learning rate and momentum.
    pub fn new(rate: impl Into<Rate>, momentum: f32) -> Momentum {
        Momentum { rate: rate.into(), momentum, nesterov: false }
    }

    /// Uses Nesterov momentum.
    pub fn nesterov(mut self) -> Momentum {
        self.nesterov = true;
        self
    }
}

impl Optimizer for Momentum {
    fn name(&self) -> &str {
        "Momentum"
    }

    fn parameters(&self, graph: &Graph, dtype: DType) -> Vec<Output> {
        parameters(graph, dtype, &self.rate, &[("momentum", self.momentum)])
    }

    fn slots(&self) -> Vec<f32> {
        vec![0.0]
    }

    fn dense(&self, u: &Update<'_>, gradient: &Output) -> Operation {
        let op = u.graph.op("ResourceApplyMomentum").input(&u.variable.handle());
        let op = op.input(&u.slots[0].handle()).input(&u.parameters[0]).input(gradient);
        op.input(&u.parameters[1]).attr("use_nesterov", self.nesterov).operation()
    }

    fn sparse(&self, u: &Update<'_>, gradient: &IndexedSlices) -> Operation {
        let gradient = gradient.deduplicated();
        let op = u.graph.op("ResourceSparseApplyMomentum").input(&u.variable.handle());
        let op = op.input(&u.slots[0].handle()).input(&u.parameters[0]).input(&gradient.values);
        let op = op.input(&gradient.indices).input(&u.parameters[1]);
        op.attr("use_nesterov", self.nesterov).operation()
    }
}
