//! Optimizers. Ops, slots and slot names are TensorFlow's, so that checkpoints are compatible.

mod accumulate;
mod adagrad;
mod adam;
mod ftrl;
mod loss_scale;
mod momentum;
mod rmsprop;
mod sgd;

pub use accumulate::AccumulateGradients;
pub(crate) use accumulate::accumulated;
pub use adagrad::Adagrad;
pub use adam::Adam;
pub use ftrl::Ftrl;
pub use loss_scale::LossScale;
pub use momentum::Momentum;
pub use rmsprop::RmsProp;
pub use sgd::Sgd;

use crate::gradient::{Gradient, IndexedSlices};
use crate::graph::{Graph, keys};
use crate::init::{self, Initializer};
use crate::names::join;
use crate::output::{Operation, Output};
use crate::schedule::Rate;
use crate::variable::{Variable, VariableOptions};
use ferroflow_core::{DType, Shape, Tensor, err};

/// A gradient, if there is one, and its variable.
pub type GradAndVar = (Option<Gradient>, Variable);

/// Trains variables.
///
/// ```
/// # let g = ferroflow_train::Graph::new();
/// use ferroflow_train::{Optimizer, Sgd};
/// let w = g.variable("w", 0.0);
/// let loss = (&*w - 3.0).square();
/// let train = Sgd::new(0.1).minimize(&loss);
/// assert!(g.check().is_ok());
/// ```
pub trait Optimizer {
    /// Its name, which is part of the names of its nodes and slots.
    fn name(&self) -> &str;

    /// The hyperparameters, such as the learning rate, as tensors of the type of the variables.
    fn parameters(&self, graph: &Graph, dtype: DType) -> Vec<Output>;

    /// The slots of each variable: names and initial values of the elements.
    fn slots(&self) -> Vec<f32> {
        Vec::new()
    }

    /// State that all variables share: names and initial values.
    fn shared(&self) -> Vec<(&'static str, f32)> {
        Vec::new()
    }

    /// Updates a variable by a dense gradient.
    fn dense(&self, update: &Update<'_>, gradient: &Output) -> Operation;

    /// Updates rows of a variable.
    fn sparse(&self, update: &Update<'_>, gradient: &IndexedSlices) -> Operation;

    /// Updates the shared state, after all variables.
    fn finish(&self, _parameters: &[Output], _shared: &[Variable]) -> Vec<Operation> {
        Vec::new()
    }

    /// The gradients of `loss` by `variables`.
    #[track_caller]
    fn compute_gradients(&self, loss: &Output, variables: &[Variable]) -> Vec<GradAndVar> {
        let g = loss.graph();
        let gradients = g.gradients(std::slice::from_ref(loss), variables);
        gradients.into_iter().zip(variables.iter().cloned()).collect()
    }

    /// An operation that applies gradients, and then increments `global_step` if there is one.
    #[track_caller]
    fn apply_gradients(
        &self,
        graph: &Graph,
        gradients: &[GradAndVar],
        global_step: Option<&Variable>,
    ) -> Operation {
        apply(self, graph, gradients, global_step)
    }

    /// An operation that updates all trainable variables on which `loss` depends.
    #[track_caller]
    fn minimize(&self, loss: &Output) -> Operation {
        let variables = loss.graph().trainable_variables();
        let gradients = self.compute_gradients(loss, &variables);
        self.apply_gradients(loss.graph(), &gradients, None)
    }

    /// [`Optimizer::minimize`] that also increments the global step.
    #[track_caller]
    fn minimize_counted(&self, loss: &Output, global_step: &Variable) -> Operation {
        let variables = loss.graph().trainable_variables();
        let gradients = self.compute_gradients(loss, &variables);
        self.apply_gradients(loss.graph(), &gradients, Some(global_step))
    }
}

/// The methods of an optimizer that wraps another one, `inner`, and changes only the gradients.
/// With `gradients of`, the inner optimizer computes the gradients too.
macro_rules! forward_to {
    (gradients of $($inner:tt)+) => {
        $crate::optimizer::forward_to!($($inner)+);

        #[track_caller]
        fn compute_gradients(&self, loss: &Output, variables: &[Variable]) -> Vec<GradAndVar> {
            self.$($inner)+.compute_gradients(loss, variables)
        }
    };
    ($($inner:tt)+) => {
        fn name(&self) -> &str {
            self.$($inner)+.name()
        }
        fn parameters(&self, graph: &Graph, dtype: DType) -> Vec<Output> {
            self.$($inner)+.parameters(graph, dtype)
        }
        fn slots(&self) -> Vec<f32> {
            self.$($inner)+.slots()
        }
        fn shared(&self) -> Vec<(&'static str, f32)> {
            self.$($inner)+.shared()
        }
        fn dense(&self, update: &Update<'_>, gradient: &Output) -> Operation {
            self.$($inner)+.dense(update, gradient)
        }
        fn sparse(&self, update: &Update<'_>, gradient: &IndexedSlices) -> Operation {
            self.$($inner)+.sparse(update, gradient)
        }
        fn finish(&self, parameters: &[Output], shared: &[Variable]) -> Vec<Operation> {
            self.$($inner)+.finish(parameters, shared)
        }
    };
}
pub(crate) use forward_to;

impl<O: Optimizer + ?Sized> Optimizer for Box<O> {
    forward_to!(gradients of as_ref());

    #[track_caller]
    fn apply_gradients(
        &self,
        graph: &Graph,
        gradients: &[GradAndVar],
        global_step: Option<&Variable>,
    ) -> Operation {
        (**self).apply_gradients(graph, gradients, global_step)
    }
}

/// The update of one variable.
pub struct Update<'a> {
    /// The graph.
    pub graph: &'a Graph,
    /// The variable.
    pub variable: &'a Variable,
    /// The tensors of [`Optimizer::parameters`].
    pub parameters: &'a [Output],
    /// The slots of [`Optimizer::slots`].
    pub slots: &'a [Variable],
    /// The values of [`Optimizer::shared`], in the type of the variable.
    pub shared: &'a [Output],
}

#[track_caller]
fn apply<O: Optimizer + ?Sized>(
    optimizer: &O,
    graph: &Graph,
    gradients: &[GradAndVar],
    global_step: Option<&Variable>,
) -> Operation {
    let present: Vec<(&Gradient, &Variable)> =
        gradients.iter().filter_map(|(g, v)| Some((g.as_ref()?, v))).collect();
    let Some((_, first)) = present.first() else {
        graph.fail(err!(
            InvalidArgument,
            "no gradients provided for any variable: does the loss depend on them?"
        ));
        return Operation::new(graph, None);
    };
    let shared: Vec<Variable> = optimizer
        .shared()
        .into_iter()
        .map(|(name, start)| {
            let initial = init::filled(Shape::scalar(), start).of(first.info.dtype);
            graph.device(&first.device(), || {
                graph.variable_with(name, initial, VariableOptions::untrained())
            })
        })
        .collect();
    let slots: Vec<Vec<Variable>> =
        present.iter().map(|(_, v)| make_slots(graph, optimizer, v)).collect();
    graph.name_scope(optimizer.name(), |_| {
        // All of it runs on the devices of the variables: a worker only sends its gradients.
        let numbers = |dtype: DType| {
            graph.device(&first.device(), || {
                let shared: Vec<Output> = shared.iter().map(|v| v.cast(dtype)).collect();
                (dtype, optimizer.parameters(graph, dtype), shared)
            })
        };
        let mut by_type = vec![numbers(first.info.dtype)];
        let mut updates = Vec::with_capacity(present.len());
        for ((gradient, variable), slots) in present.iter().zip(&slots) {
            let name = format!("update_{}", variable.variable_name());
            let dtype = variable.info.dtype;
            let known = by_type.iter().position(|(of, ..)| *of == dtype);
            let known = known.unwrap_or_else(|| {
                by_type.push(numbers(dtype));
                by_type.len() - 1
            });
            let (_, parameters, shared) = &by_type[known];
            let update = Update { graph, variable, parameters, slots, shared };
            let make = || match gradient {
                Gradient::Dense(d) => optimizer.dense(&update, d),
                Gradient::Sparse(s) => optimizer.sparse(&update, s),
            };
            updates.push(graph.name_scope(&name, |_| graph.device(&variable.device(), make)));
        }
        let finished = graph.device(&first.device(), || {
            graph.control_dependencies(&updates, || optimizer.finish(&by_type[0].1, &shared))
        });
        updates.extend(finished);
        let last = global_step.unwrap_or(first).device();
        let train = graph.device(&last, || {
            let all = graph.group("update", &updates);
            let Some(step) = global_step else { return all };
            graph.control_dependencies(&[all], || {
                let one = graph.constant_from(one_of(step.info.dtype), Some("value"));
                let op = graph.op("AssignAddVariableOp").name("count");
                op.input(&step.handle()).input(&one).operation()
            })
        });
        graph.add_operation_to_collection(keys::TRAIN_OP, &train);
        train
    })
}

fn one_of(dtype: DType) -> ferroflow_core::Result<Tensor> {
    crate::value::number_as(Tensor::scalar(1i32), dtype)
}

/// The slots of a variable, on its device, named after it and the optimizer.
#[track_caller]
fn make_slots<O: Optimizer + ?Sized>(
    graph: &Graph,
    optimizer: &O,
    variable: &Variable,
) -> Vec<Variable> {
    let mut made = Vec::new();
    for start in optimizer.slots() {
        let shape = variable.variable_shape().known();
        let shape = graph.or_fail(shape.ok_or_else(|| {
            err!(
                InvalidArgument,
                "variable '{}' has no known shape, so it can have no slots",
                variable.variable_name()
            )
        }));
        let initial: Initializer = init::filled(shape.unwrap_or_default(), start);
        let name = join(variable.variable_name(), optimizer.name());
        let name = graph.state().names.unique(&name);
        // The slots of a partition are partitions too.
        let slice = variable.info.slice.clone().map(|mut slice| {
            let suffix = name.rsplit('/').next().unwrap_or_default();
            slice.full_name = join(&slice.full_name, suffix);
            slice
        });
        made.push(graph.device(&variable.device(), || {
            let options = VariableOptions::untrained();
            graph.make_variable(&name, initial.of(variable.info.dtype), options, slice)
        }));
    }
    made
}

/// Numbers as tensors, the learning rate first.
#[track_caller]
pub(crate) fn parameters(
    graph: &Graph,
    dtype: DType,
    rate: &Rate,
    others: &[(&str, f32)],
) -> Vec<Output> {
    let mut all = vec![rate.tensor(graph).cast(dtype)];
    for (name, value) in others {
        let value = crate::value::number_as(Tensor::scalar(*value), dtype);
        all.push(graph.constant_from(value, Some(name)));
    }
    all
}

impl Graph {
    /// The global step variable. The first call makes it.
    #[track_caller]
    pub fn global_step(&self) -> Variable {
        if let Some(step) = self.variables_of(keys::GLOBAL_STEP).into_iter().next() {
            return step;
        }
        let options = VariableOptions {
            trainable: false,
            collections: vec![keys::GLOBAL_VARIABLES.into(), keys::GLOBAL_STEP.into()],
        };
        self.state().names.take("global_step");
        let initial = init::zeros(Shape::scalar()).of(DType::Int64);
        self.make_variable("global_step", initial, options, None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::ReplicaDeviceSetter;
    use crate::testing::{graph, initialized};

    /// Nodes of the update that are not on the parameter server.
    fn elsewhere(optimizer: impl Optimizer) -> Vec<String> {
        let g = graph();
        g.device(ReplicaDeviceSetter::new(1).worker("/job:worker/task:0"), || {
            let w = g.variable("w", 0.0);
            let table = g.variable("table", init::zeros([4, 2]));
            let rows = table.gather(&g.constant([1, 1]));
            optimizer.minimize_counted(&(w.square() + rows.sum_all()), &g.global_step());
        });
        let def = g.to_def().unwrap();
        let scope = format!("{}/", optimizer.name());
        let of_update = def.nodes.iter().filter(|n| n.name.starts_with(&scope));
        let elsewhere = of_update.filter(|n| n.device != "/job:ps/task:0");
        elsewhere.map(|n| format!("{} {}", n.name, n.device)).collect()
    }

    #[test]
    fn three_steps_equal_those_of_tensorflow() {
        // The results for [1, -2, 0.5], and for rows 1 and 3 of a table of ones.
        let expected: [(Box<dyn Optimizer>, [f32; 5]); 7] = [
            (
                Box::new(RmsProp::new(0.1).decay(0.8).momentum(0.5).epsilon(1e-3).centered()),
                [0.385_573_3, -1.127_538_4, -0.074_462_67, 0.197_921_13, 0.251_109_72],
            ),
            (
                Box::new(RmsProp::new(0.1).decay(0.8).momentum(0.5)),
                [0.442_324_88, -1.263_758_4, -0.037_398_204, 0.304_892_57, 0.342_214],
            ),
            (
                Box::new(Ftrl::new(0.1).initial_accumulator(0.2).regularization(0.01, 0.02)),
                [0.581_715_6, -1.667_004_1, 0.231_211_87, 0.728_265, 0.677_451_97],
            ),
            (
                Box::new(
                    Ftrl::new(0.1)
                        .initial_accumulator(0.2)
                        .regularization(0.01, 0.02)
                        .shrinkage(0.1),
                ),
                [0.563_277_7, -1.656_240_5, 0.225_648_18, 0.723_147_6, 0.667_518_56],
            ),
            (
                Box::new(Adagrad::new(0.1).initial_accumulator(0.3)),
                [0.785_824_7, -1.776_178_1, 0.293_193_5, 0.780_806_06, 0.781_843_66],
            ),
            (
                Box::new(Momentum::new(0.05, 0.9).nesterov()),
                [0.327_321, 0.216_703_95, -0.174_086_47, -0.433_295_94, -0.108_351_976],
            ),
            (
                Box::new(Adam::new(0.1)),
                [0.701_587_3, -1.700_624_5, 0.204_872_25, 0.701_587_26, 0.701_587_3],
            ),
        ];
        for (optimizer, expected) in expected {
            let g = graph();
            let v = g.variable("v", [1.0, -2.0, 0.5]);
            let t = g.variable("t", init::ones([4, 2]));
            let rows =
                t.gather(&g.constant([1, 3, 1])).square() * g.constant([[1.0], [2.0], [3.0]]);
            let loss = (v.square() * g.constant([1.0, 2.0, 3.0])).sum_all() + rows.sum_all();
            let train = optimizer.minimize(&loss);
            let s = initialized(&g).unwrap();
            for _ in 0..3 {
                s.run(&train).unwrap();
            }
            let (v, t) = s.run((&v, &t)).unwrap();
            let (v, t) = (v.as_slice::<f32>().unwrap(), t.as_slice::<f32>().unwrap());
            let seen = [v[0], v[1], v[2], t[2], t[7]];
            let near = seen.iter().zip(expected).all(|(a, b)| (a - b).abs() < 2e-6);
            assert!(near && t[0] == 1.0, "{}: {seen:?} {expected:?}", optimizer.name());
        }
    }

    #[test]
    fn variables_of_several_types_are_trained_together() {
        for optimizer in [Box::new(Adam::new(0.1)) as Box<dyn Optimizer>, Box::new(Sgd::new(0.1))] {
            let g = graph();
            let single = g.variable("single", 1.0);
            let double = g.variable("double", Tensor::scalar(1.0f64));
            let table = g.variable("table", init::ones([2, 1]).of(DType::Double));
            let rows = table.gather(&g.constant([1])).sum_all();
            let loss = single.square() + (&*double * &*double + rows).cast(DType::Float);
            let train = optimizer.minimize(&loss);
            let s = initialized(&g).unwrap();
            s.run(&train).unwrap();
            let (a, b) = s.run((single.scalar::<f32>(), double.scalar::<f64>())).unwrap();
            assert!(a < 1.0 && (f64::from(a) - b).abs() < 1e-6, "{a} {b}");
            let table = s.run(&table).unwrap();
            assert!(table.as_slice::<f64>().unwrap()[1] < 1.0, "{table:?}");
        }
    }

    #[test]
    fn updates_run_on_the_device_of_the_variable() {
        // Otherwise slots and control edges would travel to the worker and back.
        assert_eq!(elsewhere(Sgd::new(0.1)), [""; 0]);
        assert_eq!(elsewhere(Adam::new(0.1)), [""; 0]);
    }
}
