//! Gradient descent.

use super::{Optimizer, Update, parameters};
use crate::gradient::IndexedSlices;
use crate::graph::Graph;
use crate::output::{Operation, Output};
use crate::schedule::Rate;
use ferroflow_core::DType;

/// Gradient descent: `w -= rate * gradient`.
///
/// ```
/// # let g = ferroflow_train::Graph::new();
/// use ferroflow_train::{Sgd, Optimizer};
/// let w = g.variable("w", 0.0);
/// let train = Sgd::new(0.1).minimize(&(&*w - 3.0).square());
/// assert!(g.check().is_ok());
/// ```
#[derive(Clone, Debug)]
pub struct Sgd {
    rate: Rate,
}

impl Sgd {
    /// With this learning rate.
    pub fn new(rate: impl Into<Rate>) -> Sgd {
        Sgd { rate: rate.into() }
    }
}

impl Optimizer for Sgd {
    fn name(&self) -> &str {
        "GradientDescent"
    }

    fn parameters(&self, graph: &Graph, dtype: DType) -> Vec<Output> {
        parameters(graph, dtype, &self.rate, &[])
    }

    fn dense(&self, u: &Update<'_>, gradient: &Output) -> Operation {
        let op = u.graph.op("ResourceApplyGradientDescent").input(&u.variable.handle());
        op.input(&u.parameters[0]).input(gradient).operation()
    }

    fn sparse(&self, u: &Update<'_>, gradient: &IndexedSlices) -> Operation {
        u.variable.scatter_add(&gradient.indices, &-(&gradient.values * &u.parameters[0]))
    }
}
