//! Gradient accumulation over several steps.

use super::{GradAndVar, Optimizer, Update, forward_to};
use crate::gradient::{Gradient, IndexedSlices};
use crate::graph::{Graph, keys};
use crate::init;
use crate::output::{Operation, Output};
use crate::variable::{Variable, VariableOptions};
use ferroflow_core::{DType, Shape, err};

/// Makes an optimizer accumulate the gradients of several steps and apply their mean, for batches
/// that do not fit into memory. The global step counts the updates.
///
/// ```
/// # let g = ferroflow_train::Graph::new();
/// use ferroflow_train::{AccumulateGradients, Optimizer, Sgd};
/// let w = g.variable("w", 0.0);
/// let loss = (&*w - 3.0).square();
/// let train = AccumulateGradients::new(Sgd::new(0.1), 4).minimize(&loss);
/// assert!(g.check().is_ok()); // every fourth run of `train` changes w
/// ```
#[derive(Clone, Debug)]
pub struct AccumulateGradients<O> {
    optimizer: O,
    steps: usize,
}

impl<O: Optimizer> AccumulateGradients<O> {
    /// Applies the mean gradient of every `steps` steps. The sums are local variables: run the
    /// graph's local initializer.
    pub fn new(optimizer: O, steps: usize) -> AccumulateGradients<O> {
        AccumulateGradients { optimizer, steps: steps.max(1) }
    }
}

impl<O: Optimizer> Optimizer for AccumulateGradients<O> {
    forward_to!(gradients of optimizer);

    #[track_caller]
    fn apply_gradients(
        &self,
        graph: &Graph,
        gradients: &[GradAndVar],
        global_step: Option<&Variable>,
    ) -> Operation {
        accumulated(graph, gradients, self.steps, self.steps, |means| {
            self.optimizer.apply_gradients(graph, &means, global_step)
        })
    }
}

/// Accumulates the gradients, and after `steps` steps calls `apply` with the sums divided by
/// `divisor`.
#[track_caller]
pub(crate) fn accumulated(
    g: &Graph,
    gradients: &[GradAndVar],
    steps: usize,
    divisor: usize,
    apply: impl FnOnce(Vec<GradAndVar>) -> Operation,
) -> Operation {
    let (mut sums, mut added) = (Vec::new(), Vec::new());
    for (gradient, variable) in gradients {
        let Some(gradient) = gradient else { continue };
        let shape = variable.variable_shape().known();
        let shape = g.or_fail(shape.ok_or_else(|| {
            let name = variable.variable_name();
            err!(
                InvalidArgument,
                "cannot accumulate gradients of variable '{name}': its shape is unknown"
            )
        }));
        let start = init::zeros(shape.unwrap_or_default()).of(variable.dtype());
        let name = format!("{}/gradient_sum", variable.variable_name());
        let sum = g.variable_with(&name, start, VariableOptions::local());
        added.push(sum.assign_add(gradient.dense()));
        sums.push((sum, variable.clone()));
    }
    let start = init::zeros(Shape::scalar()).of(DType::Int64);
    let count = g.variable_with("backward_passes", start, VariableOptions::local());
    added.push(count.assign_add(g.constant(1i64)));
    let is_due =
        g.control_dependencies(&added, || count.read().greater_equal(g.constant(steps as i64)));
    let applied = g.cond(
        &is_due,
        || {
            let mean = |sum: &Variable| {
                let divisor = g.constant(divisor as f32).cast(sum.dtype());
                g.op("RealDiv").input(&sum.read()).input(&divisor).output()
            };
            let means = sums
                .iter()
                .map(|(sum, variable)| (Some(Gradient::Dense(mean(sum))), variable.clone()))
                .collect();
            // The names of slots do not contain the branch.
            let updated = g.name_scope("", |_| apply(means));
            let cleared = g.control_dependencies(&[updated], || {
                let mut cleared: Vec<Operation> = sums
                    .iter()
                    .map(|(sum, _)| sum.assign(g.op("ZerosLike").input(&sum.read()).output()))
                    .collect();
                cleared.push(count.assign(g.constant(0i64)));
                cleared
            });
            vec![g.control_dependencies(&cleared, || g.constant(true))]
        },
        || vec![g.constant(false)],
    );
    let done: Vec<Operation> = applied.iter().map(Output::operation).collect();
    let train = g.group("accumulate", &done);
    g.add_operation_to_collection(keys::TRAIN_OP, &train);
    train
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::optimizer::Momentum;
    use crate::testing::{graph, initialized};

    #[test]
    fn the_mean_gradient_is_applied_every_few_steps() {
        let g = graph();
        let w = g.variable("w", 1.0);
        let x = g.placeholder::<f32>("x", ());
        let loss = &*w * &x;
        let step = g.global_step();
        let train =
            AccumulateGradients::new(Momentum::new(0.5, 0.9), 2).minimize_counted(&loss, &step);
        let s = initialized(&g).unwrap();
        let mut seen = Vec::new();
        for x_value in [1.0f32, 3.0, 2.0, 2.0] {
            s.run_fed((&x, x_value), &train).unwrap();
            seen.push(s.run((w.scalar::<f32>(), step.scalar::<i64>())).unwrap());
        }
        // Velocities 2, then 0.9 * 2 + 2.
        assert_eq!(seen[..3], [(1.0, 0), (0.0, 1), (0.0, 1)]);
        assert!((seen[3].0 + 1.9).abs() < 1e-6 && seen[3].1 == 2, "{seen:?}");
        // The slots have the same names as without accumulation.
        assert!(g.find_variable("w/Momentum").is_ok());
    }
}
