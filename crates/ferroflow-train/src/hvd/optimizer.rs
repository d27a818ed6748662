//! An optimizer that applies the reduced gradients of all ranks.

use super::ops::compression_name;
use super::{Compression, ProcessSet, Reduction};
use crate::gradient::{Gradient, IndexedSlices};
use crate::graph::Graph;
use crate::optimizer::{GradAndVar, Optimizer, Update, accumulated, forward_to};
use crate::output::{Operation, Output};
use crate::variable::Variable;
use ferroflow_core::{DType, err};

/// Makes an optimizer average gradients over all processes before it applies them.
///
/// Each gradient is submitted as soon as the backward pass has computed it, and is reduced while
/// the pass continues. Gradients of variables created first have priority, because the next step
/// needs them first. Slots and their names are the inner optimizer's, so checkpoints fit those of
/// one process.
///
/// ```
/// use ferroflow_train::{Optimizer, Sgd, hvd};
/// let hvd = hvd::init()?;
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
    averages_passes: bool,
    predivide: f32,
    sparse_as_dense: bool,
    process_set: usize,
}

impl<O: Optimizer> DistributedOptimizer<O> {
    /// For graphs of a [`super::World`].
    pub fn new(optimizer: O) -> DistributedOptimizer<O> {
        DistributedOptimizer {
            optimizer,
            by: Reduction::Average,
            compression: Compression::None,
            passes: 1,
            averages_passes: true,
            predivide: 1.0,
            sparse_as_dense: false,
            process_set: 0,
        }
    }

    /// Reduction of gradients; the default is the average.
    pub fn reduction(mut self, by: Reduction) -> Self {
        self.by = by;
        self
    }

    /// Compression of gradients.
    pub fn compression(mut self, compression: Compression) -> Self {
        self.compression = compression;
        self
    }

    /// Number of steps whose gradients each rank accumulates in local variables before their mean
    /// (see [`DistributedOptimizer::average_aggregated_gradients`]) is reduced and applied. The
    /// global step counts applied updates.
    pub fn backward_passes_per_step(mut self, passes: usize) -> Self {
        self.passes = passes.max(1);
        self
    }

    /// Whether accumulated gradients are averaged (the default) or summed.
    pub fn average_aggregated_gradients(mut self, average: bool) -> Self {
        self.averages_passes = average;
        self
    }

    /// Divides gradients by `factor` before the sum over ranks and multiplies by it afterwards. A
    /// factor between 1 and the number of ranks avoids overflow of half floats.
    pub fn gradient_predivide_factor(mut self, factor: f32) -> Self {
        self.predivide = factor;
        self
    }

    /// Reduces gradients over this process set only, which trains its own model.
    pub fn process_set(mut self, set: &ProcessSet) -> Self {
        self.process_set = set.number();
        self
    }

    /// Reduces sparse gradients as dense tensors. By default the rows of all ranks are gathered.
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
        let set = self.process_set as i64;
        let op = |op: &str, tensor: &Output, name: &str| {
            let op = g.op(op).input(tensor).attr("tensor_name", name);
            op.attr("priority", priority).attr("process_set", set)
        };
        let scaled = |tensor: Output, factor: f32| match self.predivide {
            1.0 => tensor,
            _ => {
                let factor = g.constant(factor).cast(tensor.dtype());
                g.op("Mul").input(&tensor).input(&factor).output()
            }
        };
        let reduce = |tensor: Output| {
            let tensor = scaled(tensor, 1.0 / self.predivide);
            let op = op("HorovodAllreduce", &tensor, &name).attr("reduce_op", self.by as i64);
            let op = op.attr("compression", compression_name(self.compression).as_str());
            scaled(op.output(), self.predivide)
        };
        let gather = |tensor: &Output, what: &str| {
            op("HorovodAllgather", tensor, &format!("{name}/{what}")).output()
        };
        match gradient {
            Gradient::Sparse(s) if !self.sparse_as_dense => {
                let mut values = gather(&s.values, "values");
                match self.by {
                    Reduction::Sum => {}
                    Reduction::Average => {
                        // Read in every step, because ranks that have joined contribute no
                        // gradients.
                        let one = g.constant(1.0f32);
                        let count = op("HorovodAllreduce", &one, &format!("{name}/ranks"));
                        let count = count.attr("reduce_op", Reduction::Sum as i64).output();
                        let mean = g.op("RealDiv").input(&values);
                        values = mean.input(&count.cast(values.dtype())).output();
                    }
                    other => g.fail(err!(
                        Unimplemented,
                        "{other:?} of gradients that name rows; use sparse_as_dense"
                    )),
                }
                let indices = gather(&s.indices, "indices");
                Gradient::Sparse(IndexedSlices { values, indices, shape: s.shape.clone() })
            }
            gradient => Gradient::Dense(reduce(gradient.dense())),
        }
    }

    /// The optimizer that applies the gradients.
    pub(crate) fn inner(&self) -> &O {
        &self.optimizer
    }

    /// The gradients of all ranks.
    #[track_caller]
    pub(crate) fn all_reduced(&self, gradients: Vec<GradAndVar>) -> Vec<GradAndVar> {
        let Some(graph) =
            gradients.iter().find_map(|(g, _)| Some(g.as_ref()?.values().graph().clone()))
        else {
            return gradients;
        };
        let linear = matches!(self.by, Reduction::Average | Reduction::Sum);
        if !(self.predivide > 0.0
            && self.predivide.is_finite()
            && (linear || self.predivide == 1.0))
        {
            let (by, factor) = (self.by, self.predivide);
            graph.fail(err!(
                InvalidArgument,
                "a gradient_predivide_factor of {factor} for {by:?}: it is a positive number, and for \
                 Average and Sum"
            ));
        }
        graph.name_scope("DistributedOptimizer_Allreduce", |_| {
            let reduced = |(place, (gradient, variable)): (usize, GradAndVar)| {
                let gradient = gradient.map(|g| self.reduced(&g, &variable, place));
                (gradient, variable)
            };
            gradients.into_iter().enumerate().map(reduced).collect()
        })
    }
}

impl<O: Optimizer> Optimizer for DistributedOptimizer<O> {
    forward_to!(optimizer);

    /// The gradients of all ranks; with [`DistributedOptimizer::backward_passes_per_step`], this
    /// rank's.
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
            let divisor = if self.averages_passes { self.passes } else { 1 };
            return accumulated(graph, gradients, self.passes, divisor, |sums| {
                let reduced = self.all_reduced(sums);
                self.optimizer.apply_gradients(graph, &reduced, global_step)
            });
        }
        self.optimizer.apply_gradients(graph, gradients, global_step)
    }
}
