//! Adam.

use super::{Optimizer, Update, parameters};
use crate::gradient::IndexedSlices;
use crate::graph::Graph;
use crate::output::{Operation, Output};
use crate::schedule::Rate;
use crate::variable::Variable;
use ferroflow_core::DType;

/// Adam (Kingma and Ba 2014): bias-corrected running means of gradients and of their squares.
///
/// ```
/// # let g = ferroflow_train::Graph::new();
/// use ferroflow_train::{Adam, Optimizer};
/// let w = g.variable("w", 0.0);
/// let train = Adam::new(0.001).minimize(&(&*w - 3.0).square());
/// assert!(g.check().is_ok());
/// ```
#[derive(Clone, Debug)]
pub struct Adam {
    rate: Rate,
    beta1: f32,
    beta2: f32,
    epsilon: f32,
}

impl Adam {
    /// With this learning rate.
    pub fn new(rate: impl Into<Rate>) -> Adam {
        Adam { rate: rate.into(), beta1: 0.9, beta2: 0.999, epsilon: 1e-8 }
    }

    /// Sets the decays of the two means; 0.9 and 0.999 by default.
    pub fn betas(mut self, beta1: f32, beta2: f32) -> Adam {
        (self.beta1, self.beta2) = (beta1, beta2);
        self
    }

    /// Sets the number added to the divisor; 1e-8 by default.
    pub fn epsilon(mut self, epsilon: f32) -> Adam {
        self.epsilon = epsilon;
        self
    }
}

impl Optimizer for Adam {
    fn name(&self) -> &str {
        "Adam"
    }

    fn parameters(&self, graph: &Graph, dtype: DType) -> Vec<Output> {
        let others = [("beta1", self.beta1), ("beta2", self.beta2), ("epsilon", self.epsilon)];
        parameters(graph, dtype, &self.rate, &others)
    }

    fn slots(&self) -> Vec<f32> {
        vec![0.0, 0.0]
    }

    fn shared(&self) -> Vec<(&'static str, f32)> {
        vec![("beta1_power", self.beta1), ("beta2_power", self.beta2)]
    }

    fn dense(&self, u: &Update<'_>, gradient: &Output) -> Operation {
        let mut op = u.graph.op("ResourceApplyAdam").input(&u.variable.handle());
        op = op.input(&u.slots[0].handle()).input(&u.slots[1].handle());
        op = op.input(&u.shared[0]).input(&u.shared[1]);
        for parameter in u.parameters {
            op = op.input(parameter);
        }
        op.input(gradient).operation()
    }

    /// As in TensorFlow, the means of all rows decay, and all rows are updated.
    fn sparse(&self, u: &Update<'_>, gradient: &IndexedSlices) -> Operation {
        let gradient = gradient.deduplicated();
        let [rate, beta1, beta2, epsilon] = u.parameters else {
            return Operation::new(u.graph, None);
        };
        let (power1, power2) = (&u.shared[0], &u.shared[1]);
        let rate = rate * (1.0 - power2).sqrt() / (1.0 - power1);
        let decayed = |slot: &Variable, beta: &Output, rows: Output| {
            let decay = slot.assign(&**slot * beta);
            let add = u
                .graph
                .control_dependencies(&[decay], || slot.scatter_add(&gradient.indices, &rows));
            u.graph.control_dependencies(&[add], || slot.read())
        };
        let mean = decayed(&u.slots[0], beta1, &gradient.values * (1.0 - beta1));
        let square = decayed(&u.slots[1], beta2, gradient.values.square() * (1.0 - beta2));
        u.variable.assign_sub(rate * mean / (square.sqrt() + epsilon))
    }

    fn finish(&self, parameters: &[Output], shared: &[Variable]) -> Vec<Operation> {
        let next = |power: &Variable, beta: &Output| power.assign(power.read() * beta);
        vec![next(&shared[0], &parameters[1]), next(&shared[1], &parameters[2])]
    }
}
