//! An optimizer that applies what all ranks' gradients have become.

use super::ops::compression_name;
use super::{Compression, Reduction};
use crate::gradient::{Gradient, IndexedSlices};
use crate::graph::{Graph, keys};
use crate::init;
use crate::optimizer::{GradAndVar, Optimizer, Update};
use crate::output::{Operation, Output};
use crate::variable::{Variable, VariableOptions};
use ferroflow_core::{DType, Shape, err};

/// Makes an optimizer average gradients over all processes before it applies them.
///
/// Each gradient is handed over as soon as the backward pass has it, and reduced while that goes on; those
/// of the variables made first, which the next step needs first, overtake the others. Slots and their names
/// are the inner optimizer's, so checkpoints fit those of one process.
///
/// ```
/// # let mut catalog = ferroflow_graph::Catalog::new();
/// # ferroflow_ops::register(&mut catalog);
/// use ferroflow_train::hvd::{Config, World};
/// use ferroflow_train::{Optimizer, Sgd};
/// let hvd = World::meet(Config::default(), &catalog)?;
/// let g = hvd.graph();
/// let w = g.variable("w", 0.0);
/// let loss = (&*w - 3.0).square();
/// let train = hvd.optimizer(Sgd::new(hvd.scaled_rate(0.1))).minimize(&loss);
/// assert!(g.check().is_ok());
/// # Ok::<(), ferroflow_core::Error>(())
/// ```
pub struct DistributedOptimizer<O> {
    optimizer: O,
    by: Reduction,
    compression: Compression,
    passes: usize,
    sparse_as_dense: bool,
}

impl<O: Optimizer> DistributedOptimizer<O> {
    /// For graphs of a [`super::World`].
    pub fn new(optimizer: O) -> DistributedOptimizer<O> {
        DistributedOptimizer {
            optimizer,
            by: Reduction::Average,
            compression: Compression::None,
            passes: 1,
            sparse_as_dense: false,
        }
    }

    /// How gradients become one: averaged unless told otherwise.
    pub fn reduction(mut self, by: Reduction) -> Self {
        self.by = by;
        self
    }

    /// How gradients travel.
    pub fn compression(mut self, compression: Compression) -> Self {
        self.compression = compression;
        self
    }

    /// How many steps' gradients are added up on each rank, in local variables, before the mean of them
    /// is reduced and applied. The global step counts what is applied.
    pub fn backward_passes_per_step(mut self, passes: usize) -> Self {
        self.passes = passes.max(1);
        self
    }

    /// Gradients that name rows are reduced as whole tensors. Otherwise the rows of all ranks are
    /// gathered.
    pub fn sparse_as_dense(mut self) -> Self {
        self.sparse_as_dense = true;
        self
    }

    /// The gradient of all ranks. `place` is the variable's place among the others.
    #[track_caller]
    fn reduced(&self, gradient: &Gradient, variable: &Variable, place: usize) -> Gradient {
        let g = gradient.values().graph();
        let name = format!("{}/grad/{}", self.optimizer.name(), variable.variable_name());
        let priority = -(place as i64);
        let reduce = |tensor: &Output| {
            g.op("HorovodAllreduce")
                .input(tensor)
                .attr("reduce_op", self.by as i64)
                .attr("compression", compression_name(self.compression).as_str())
                .attr("tensor_name", name.as_str())
                .attr("priority", priority)
                .output()
        };
        let gather = |tensor: &Output, what: &str| {
            let name = format!("{name}/{what}");
            let op = g.op("HorovodAllgather").input(tensor);
            op.attr("tensor_name", name.as_str()).attr("priority", priority).output()
        };
        match gradient {
            Gradient::Sparse(s) if !self.sparse_as_dense => {
                let mut values = gather(&s.values, "values");
                match self.by {
                    Reduction::Sum => {}
                    Reduction::Average => {
                        let op = g.op("RealDiv").input(&values);
                        let size = g.op("HorovodSize").output().cast(values.dtype());
                        values = op.input(&size).output();
                    }
                    other => g.fail(err!(
                        Unimplemented,
                        "{other:?} of gradients that name rows; use sparse_as_dense"
                    )),
                }
                let indices = gather(&s.indices, "indices");
                Gradient::Sparse(IndexedSlices { values, indices, shape: s.shape.clone() })
            }
            gradient => Gradient::Dense(reduce(&gradient.dense())),
        }
    }

    fn all_reduced(&self, gradients: Vec<GradAndVar>) -> Vec<GradAndVar> {
        let Some(graph) =
            gradients.iter().find_map(|(g, _)| Some(g.as_ref()?.values().graph().clone()))
        else {
            return gradients;
        };
        graph.name_scope("DistributedOptimizer_Allreduce", |_| {
            let reduced = |(place, (gradient, variable)): (usize, GradAndVar)| {
                let gradient = gradient.map(|g| self.reduced(&g, &variable, place));
                (gradient, variable)
            };
            gradients.into_iter().enumerate().map(reduced).collect()
        })
    }

    /// Adds the gradients up, and applies the reduced mean of them when there are enough.
    #[track_caller]
    fn accumulated(
        &self,
        g: &Graph,
        gradients: &[GradAndVar],
        global_step: Option<&Variable>,
    ) -> Operation {
        let (mut sums, mut added) = (Vec::new(), Vec::new());
        for (gradient, variable) in gradients {
            let Some(gradient) = gradient else { continue };
            let shape = variable.variable_shape().known();
            let shape = g.or_fail(shape.ok_or_else(|| {
                let name = variable.variable_name();
                err!(InvalidArgument, "variable '{name}' has no known shape to add gradients up in")
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
        let is_due = g.control_dependencies(&added, || {
            count.read().greater_equal(g.constant(self.passes as i64))
        });
        let applied = g.cond(
            &is_due,
            || {
                let mean = |sum: &Variable| {
                    let passes = g.constant(self.passes as f32).cast(sum.dtype());
                    g.op("RealDiv").input(&sum.read()).input(&passes).output()
                };
                let means = sums
                    .iter()
                    .map(|(sum, variable)| (Some(Gradient::Dense(mean(sum))), variable.clone()))
                    .collect();
                let reduced = self.all_reduced(means);
                // Slots are named as if there were no branch.
                let updated =
                    g.name_scope("", |_| self.optimizer.apply_gradients(g, &reduced, global_step));
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
}

impl<O: Optimizer> Optimizer for DistributedOptimizer<O> {
    fn name(&self) -> &str {
        self.optimizer.name()
    }

    fn parameters(&self, graph: &Graph, dtype: DType) -> Vec<Output> {
        self.optimizer.parameters(graph, dtype)
    }

    fn slots(&self) -> Vec<f32> {
        self.optimizer.slots()
    }

    fn shared(&self) -> Vec<(&'static str, f32)> {
        self.optimizer.shared()
    }

    fn dense(&self, update: &Update<'_>, gradient: &Output) -> Operation {
        self.optimizer.dense(update, gradient)
    }

    fn sparse(&self, update: &Update<'_>, gradient: &IndexedSlices) -> Operation {
        self.optimizer.sparse(update, gradient)
    }

    fn finish(&self, parameters: &[Output], shared: &[Variable]) -> Vec<Operation> {
        self.optimizer.finish(parameters, shared)
    }

    /// The gradients of all ranks; with [`DistributedOptimizer::backward_passes_per_step`], this rank's.
    #[track_caller]
    fn compute_gradients(&self, loss: &Output, variables: &[Variable]) -> Vec<GradAndVar> {
        let own = self.optimizer.compute_gradients(loss, variables);
        if self.passes > 1 { own } else { self.all_reduced(own) }
    }

    #[track_caller]
    fn apply_gradients(
        &self,
        graph: &Graph,
        gradients: &[GradAndVar],
        global_step: Option<&Variable>,
    ) -> Operation {
        if self.passes > 1 {
            return self.accumulated(graph, gradients, global_step);
        }
        self.optimizer.apply_gradients(graph, gradients, global_step)
    }
}
