//! Adagrad.

use super::{Optimizer, Update, parameters};
use crate::gradient::IndexedSlices;
use crate::graph::Graph;
use crate::output::{Operation, Output};
use crate::schedule::Rate;
use ferroflow_core::DType;

/// Adagrad: divides each element's rate by the root of the sum of its squared gradients.
///
/// ```
/// # let g = ferroflow_train::Graph::new();
/// use ferroflow_train::{Adagrad, Optimizer};
/// let w = g.variable("w", 0.0);
/// let train = Adagrad::new(0.1).minimize(&(&*w - 3.0).square());
/// assert!(g.check().is_ok());
/// ```
#[derive(Clone, Debug)]
pub struct Adagrad {
    rate: Rate,
    start: f32,
}

impl Adagrad {
    /// With this learning rate.
    pub fn new(rate: impl Into<Rate>) -> Adagrad {
        Adagrad { rate: rate.into(), start: 0.1 }
    }

    /// The initial value of the sums of squares; 0.1 by default.
    pub fn initial_accumulator(mut self, start: f32) -> Adagrad {
        self.start = start;
        self
    }
}

impl Optimizer for Adagrad {
    fn name(&self) -> &str {
        "Adagrad"
    }

    fn parameters(&self, graph: &Graph, dtype: DType) -> Vec<Output> {
        parameters(graph, dtype, &self.rate, &[])
    }

    fn slots(&self) -> Vec<f32> {
        vec![self.start]
    }

    fn dense(&self, u: &Update<'_>, gradient: &Output) -> Operation {
        let op = u.graph.op("ResourceApplyAdagrad").input(&u.variable.handle());
        op.input(&u.slots[0].handle()).input(&u.parameters[0]).input(gradient).operation()
    }

    fn sparse(&self, u: &Update<'_>, gradient: &IndexedSlices) -> Operation {
        let gradient = gradient.deduplicated();
        let op = u.graph.op("ResourceSparseApplyAdagrad").input(&u.variable.handle());
        let op = op.input(&u.slots[0].handle()).input(&u.parameters[0]).input(&gradient.values);
        op.input(&gradient.indices).operation()
    }
}
