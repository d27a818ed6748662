//! Loss scaling, for training with 16-bit floats.

use super::{GradAndVar, Optimizer, Update, forward_to};
use crate::gradient::{Gradient, IndexedSlices};
use crate::graph::{Graph, keys};
use crate::init;
use crate::output::{Operation, Output};
use crate::variable::{Variable, VariableOptions};
use ferroflow_core::{DType, Shape, err};

/// TensorFlow's names, so that checkpoints are compatible.
const SCALE: &str = "current_loss_scale";
const GOOD_STEPS: &str = "good_steps";

/// Multiplies the loss before its gradients are computed, and divides the gradients by as much.
/// Small gradients do not become zero as 16-bit floats then.
///
/// A dynamic scale is halved when a gradient is not finite, and that step changes no variable. It
/// is doubled after a number of good steps.
///
/// ```
/// # let g = ferroflow_train::Graph::new();
/// use ferroflow_train::{LossScale, Optimizer, Sgd};
/// let w = g.variable("w", 0.0);
/// let loss = (&*w - 3.0).square();
/// let train = LossScale::dynamic(Sgd::new(0.1)).minimize(&loss);
/// assert!(g.check().is_ok());
/// ```
#[derive(Clone, Debug)]
pub struct LossScale<O> {
    optimizer: O,
    start: f32,
    /// Good steps until the scale is doubled; `None` for a fixed scale.
    period: Option<i64>,
}

impl<O: Optimizer> LossScale<O> {
    /// A scale that begins at 2^15 and is doubled after 2,000 good steps, as in TensorFlow.
    pub fn dynamic(optimizer: O) -> LossScale<O> {
        LossScale { optimizer, start: 32768.0, period: Some(2000) }
    }

    /// A scale that does not change.
    pub fn fixed(optimizer: O, scale: f32) -> LossScale<O> {
        LossScale { optimizer, start: scale, period: None }
    }

    /// The first scale.
    pub fn starts_at(self, scale: f32) -> LossScale<O> {
        LossScale { start: scale, ..self }
    }

    /// Good steps until a dynamic scale is doubled.
    pub fn doubles_after(self, steps: u32) -> LossScale<O> {
        LossScale { period: Some(i64::from(steps.max(1))), ..self }
    }

    /// The scale: a variable, or a constant if it is fixed.
    #[track_caller]
    fn scale(&self, g: &Graph) -> Output {
        match self.period {
            None => g.constant(self.start),
            Some(_) => self.state(g).0.read(),
        }
    }

    /// The variables of the scale and of the good steps. The first call makes them.
    #[track_caller]
    fn state(&self, g: &Graph) -> (Variable, Variable) {
        let state = |name: &str, start: f32, dtype: DType| {
            g.find_variable(name).unwrap_or_else(|_| {
                let start = init::filled(Shape::scalar(), start).of(dtype);
                g.name_scope("", |_| g.variable_with(name, start, VariableOptions::untrained()))
            })
        };
        (state(SCALE, self.start, DType::Float), state(GOOD_STEPS, 0.0, DType::Int64))
    }
}

impl<O: Optimizer> Optimizer for LossScale<O> {
    forward_to!(optimizer);

    #[track_caller]
    fn compute_gradients(&self, loss: &Output, variables: &[Variable]) -> Vec<GradAndVar> {
        let g = loss.graph();
        let scale = self.scale(g);
        let scaled = loss * &scale.cast(loss.dtype());
        let gradients = self.optimizer.compute_gradients(&scaled, variables);
        let unscaled = |x: &Output| g.op("RealDiv").input(x).input(&scale.cast(x.dtype())).output();
        let one = |(gradient, variable): GradAndVar| {
            let gradient = gradient.map(|gradient| match gradient {
                Gradient::Dense(x) => Gradient::Dense(unscaled(&x)),
                Gradient::Sparse(rows) => {
                    Gradient::Sparse(IndexedSlices { values: unscaled(&rows.values), ..rows })
                }
            });
            (gradient, variable)
        };
        g.name_scope("loss_scale", |_| gradients.into_iter().map(one).collect())
    }

    #[track_caller]
    fn apply_gradients(
        &self,
        g: &Graph,
        gradients: &[GradAndVar],
        global_step: Option<&Variable>,
    ) -> Operation {
        let Some(period) = self.period else {
            return self.optimizer.apply_gradients(g, gradients, global_step);
        };
        let Some(finite) = all_finite(g, gradients) else {
            g.fail(err!(
                InvalidArgument,
                "no gradients provided for any variable: does the loss depend on them?"
            ));
            return Operation::new(g, None);
        };
        let (scale, good) = self.state(g);
        let outcome = g.cond(
            &finite,
            || {
                // The names of slots do not contain the branch.
                let applied =
                    g.name_scope("", |_| self.optimizer.apply_gradients(g, gradients, global_step));
                let steps = good.read() + g.constant(1i64);
                let grows = steps.greater_equal(g.constant(period));
                let select = |yes: &Output, no: &Output| {
                    g.op("SelectV2").input(&grows).input(yes).input(no).output()
                };
                let now = scale.read();
                let doubled = (&now * 2.0).minimum(g.constant(f32::MAX / 2.0));
                let updates = [
                    scale.assign(select(&doubled, &now)),
                    good.assign(select(&g.constant(0i64), &steps)),
                    applied,
                ];
                vec![g.control_dependencies(&updates, || g.constant(true))]
            },
            || {
                let halved = (scale.read() * 0.5).maximum(g.constant(1.0f32));
                let updates = [scale.assign(halved), good.assign(g.constant(0i64))];
                vec![g.control_dependencies(&updates, || g.constant(false))]
            },
        );
        let done: Vec<Operation> = outcome.iter().map(Output::operation).collect();
        let train = g.group("loss_scale_update", &done);
        g.add_operation_to_collection(keys::TRAIN_OP, &train);
        train
    }
}

/// Whether all elements of all gradients are finite; `None` without gradients.
fn all_finite(g: &Graph, gradients: &[GradAndVar]) -> Option<Output> {
    let present = gradients.iter().filter_map(|(gradient, _)| gradient.as_ref());
    let finite = |gradient: &Gradient| {
        let values = match gradient {
            Gradient::Dense(x) => x,
            Gradient::Sparse(rows) => &rows.values,
        };
        let each = g.op("IsFinite").input(values).output();
        let flat = g.op("Reshape").input(&each).input(&g.constant([-1i32])).output();
        g.op("All").input(&flat).input(&g.constant([0i32])).output()
    };
    let both = |a: Output, b: Output| g.op("LogicalAnd").input(&a).input(&b).output();
    g.name_scope("all_finite", |_| present.map(finite).reduce(both))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::optimizer::{Momentum, Sgd};
    use crate::testing::{graph, initialized};

    #[test]
    fn a_scaled_step_changes_variables_as_an_unscaled_one() {
        let g = graph();
        let w = g.variable("w", 4.0);
        let loss = (&*w - 1.0).square();
        let train = LossScale::fixed(Sgd::new(0.25), 1024.0).minimize(&loss);
        let s = initialized(&g).unwrap();
        s.run(&train).unwrap();
        assert_eq!(s.run(w.scalar::<f32>()).unwrap(), 2.5);
    }

    #[test]
    fn the_scale_follows_overflow_and_good_steps() {
        let g = graph();
        let w = g.variable("w", 1.0);
        let x = g.placeholder::<f32>("x", ());
        let step = g.global_step();
        let optimizer = LossScale::dynamic(Momentum::new(0.5, 0.0)).starts_at(8.0).doubles_after(2);
        let train = optimizer.minimize_counted(&(&*w * &x), &step);
        let s = initialized(&g).unwrap();
        let scale = g.find_variable(SCALE).unwrap();
        let mut seen = Vec::new();
        for value in [1.0f32, f32::INFINITY, 1.0, 1.0, 0.5] {
            s.run_fed((&x, value), &train).unwrap();
            let fetches = (w.scalar::<f32>(), scale.scalar::<f32>(), step.scalar::<i64>());
            seen.push(s.run(fetches).unwrap());
        }
        let want = [(0.5, 8.0, 1), (0.5, 4.0, 1), (0.0, 4.0, 2), (-0.5, 8.0, 3), (-0.75, 8.0, 4)];
        assert_eq!(seen, want);
        // The slots have the same names as without a scale.
        assert!(g.find_variable("w/Momentum").is_ok());
    }
}
