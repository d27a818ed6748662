//! Synchronous training of several replicas over parameter servers, with TensorFlow's semantics.
//!
//! Each replica hands its gradients to accumulators beside the variables and waits for a token. The
//! chief takes from each accumulator the mean of as many gradients as are to be aggregated, applies
//! them, counts the step, and puts out a token for each replica. Gradients computed for an earlier
//! step than the current one are dropped, so replicas more than are aggregated are backups.

use crate::gradient::{Gradient, IndexedSlices};
use crate::graph::Graph;
use crate::init;
use crate::optimizer::{GradAndVar, Optimizer};
use crate::output::{Operation, Output};
use crate::variable::{Variable, VariableOptions};
use ferroflow_core::{DType, PartialShape, Shape};

/// Makes an optimizer synchronous.
pub struct SyncReplicas<O> {
    optimizer: O,
    aggregate: i32,
    replicas: i32,
}

/// What synchronous training runs. [`crate::MonitoredTraining::synchronous`] wires it.
#[derive(Clone, Debug)]
pub struct SyncTraining {
    /// A replica's step: computes, hands over, waits for its token.
    pub train: Operation,
    /// The chief's, over and over: takes the gradients, applies them, puts out tokens.
    pub aggregate: Operation,
    /// The chief's, at the start: tells the accumulators the step, puts out the first tokens.
    pub chief_init: Operation,
    /// Every replica's, at the start: takes over the global step.
    pub local_init: Operation,
}

impl<O: Optimizer> SyncReplicas<O> {
    /// Aggregates the gradients of `aggregate` out of `replicas` replicas in each step.
    pub fn new(optimizer: O, aggregate: usize, replicas: usize) -> SyncReplicas<O> {
        let clamp = |n: usize| i32::try_from(n.max(1)).unwrap_or(i32::MAX);
        SyncReplicas { optimizer, aggregate: clamp(aggregate), replicas: clamp(replicas) }
    }

    /// Trains all trainable variables, in step.
    #[track_caller]
    pub fn minimize(&self, loss: &Output, global_step: &Variable) -> SyncTraining {
        let variables = loss.graph().trainable_variables();
        let gradients = self.optimizer.compute_gradients(loss, &variables);
        self.apply_gradients(loss.graph(), &gradients, global_step)
    }

    /// Applies gradients, in step.
    #[track_caller]
    pub fn apply_gradients(
        &self,
        g: &Graph,
        gradients: &[GradAndVar],
        global_step: &Variable,
    ) -> SyncTraining {
        let start = init::zeros(Shape::scalar()).of(DType::Int64);
        let local_step = g.variable_with("sync_rep_local_step", start, VariableOptions::local());
        g.name_scope("sync_replicas", |_| {
            let count = g.named_constant("replicas_to_aggregate", self.aggregate);
            let (mut handed, mut taken, mut told) = (Vec::new(), Vec::new(), Vec::new());
            for (gradient, variable) in gradients {
                let Some(gradient) = gradient else { continue };
                let accumulator = Accumulator::new(g, variable, gradient);
                handed.push(accumulator.hand_over(gradient, &local_step));
                taken.push((Some(accumulator.take(&count)), variable.clone()));
                told.push(accumulator.tell(global_step));
            }
            let updated = self.optimizer.apply_gradients(g, &taken, Some(global_step));
            let queue = g.device(&global_step.device(), || {
                let shapes = vec![PartialShape::scalar()];
                let op = g.op("FIFOQueueV2").name("sync_token_q").attr("shapes", shapes);
                let op = op.attr("component_types", vec![DType::Int64]);
                op.attr("shared_name", "sync_token_q").output()
            });
            let put = |n: i32| {
                let tokens = g.fill([n], global_step.read());
                g.op("QueueEnqueueManyV2").input(&queue).list(&[tokens]).operation()
            };
            let aggregate =
                g.control_dependencies(&[updated], || put(self.replicas.max(self.aggregate)));
            let chief_init = g.control_dependencies(&told, || put(self.aggregate));
            let local_init = local_step.assign(&**global_step);
            let train = g.control_dependencies(&handed, || {
                let op = g.op("QueueDequeueV2").input(&queue);
                let token = op.attr("component_types", vec![DType::Int64]).output();
                token.set_shape(());
                local_step.assign(&token)
            });
            SyncTraining { train, aggregate, chief_init, local_init }
        })
    }
}

/// The accumulator of one variable, beside it.
struct Accumulator<'a> {
    graph: &'a Graph,
    handle: Output,
    is_sparse: bool,
    dtype: DType,
    shape: PartialShape,
}

impl<'a> Accumulator<'a> {
    #[track_caller]
    fn new(graph: &'a Graph, variable: &Variable, gradient: &Gradient) -> Accumulator<'a> {
        let is_sparse = matches!(gradient, Gradient::Sparse(_));
        let op = if is_sparse { "SparseConditionalAccumulator" } else { "ConditionalAccumulator" };
        let (dtype, shape) = (variable.dtype(), variable.variable_shape().clone());
        let handle = graph.device(&variable.device(), || {
            graph
                .op(op)
                .attr("dtype", dtype)
                .attr("shape", shape.clone())
                .attr("shared_name", format!("{}/grad_accum", variable.variable_name()).as_str())
                .output()
        });
        Accumulator { graph, handle, is_sparse, dtype, shape }
    }

    #[track_caller]
    fn hand_over(&self, gradient: &Gradient, local_step: &Variable) -> Operation {
        match gradient {
            Gradient::Dense(d) => {
                let op = self.graph.op("AccumulatorApplyGradient").input(&self.handle);
                op.input(local_step).input(d).operation()
            }
            Gradient::Sparse(s) => {
                let op = self.graph.op("SparseAccumulatorApplyGradient").input(&self.handle);
                let (indices, shape) = (s.indices.cast(DType::Int64), s.shape.cast(DType::Int64));
                let op = op.input(local_step).input(&indices).input(&s.values).input(&shape);
                op.attr("has_known_shape", self.shape.known().is_some()).operation()
            }
        }
    }

    #[track_caller]
    fn take(&self, count: &Output) -> Gradient {
        if !self.is_sparse {
            let op = self.graph.op("AccumulatorTakeGradient").input(&self.handle).input(count);
            let mean = op.attr("dtype", self.dtype).output();
            mean.set_shape(&self.shape);
            return Gradient::Dense(mean);
        }
        let op = self.graph.op("SparseAccumulatorTakeGradient").input(&self.handle).input(count);
        let [indices, values, shape] = op.attr("dtype", self.dtype).split();
        Gradient::Sparse(IndexedSlices { values, indices, shape })
    }

    #[track_caller]
    fn tell(&self, global_step: &Variable) -> Operation {
        let op = self.graph.op("AccumulatorSetGlobalStep").input(&self.handle);
        op.input(global_step).operation()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::monitored::MonitoredTraining;
    use crate::optimizer::Sgd;
    use crate::testing::{graph, session};

    #[test]
    fn one_replica_in_step_is_plain_training() {
        let g = graph();
        let w = g.variable("w", 0.0);
        let table = g.variable("t", init::ones([4, 2]));
        let rows = table.gather(&g.constant([1, 1]));
        let loss = (&*w - 3.0).square() + rows.sum_all();
        let sync = SyncReplicas::new(Sgd::new(0.1), 1, 1).minimize(&loss, &g.global_step());
        let mut s = MonitoredTraining::synchronous(&g, &sync).open(session).unwrap();
        while s.global_step() < 10 {
            s.train(()).unwrap();
        }
        let (step, w, t) = {
            let s = s.session().unwrap();
            s.run((g.global_step().scalar::<i64>(), w.scalar::<f32>(), &table)).unwrap()
        };
        s.close().unwrap();
        let expected = 3.0 * (1.0 - 0.8f32.powi(step as i32));
        assert!((w - expected).abs() < 1e-4, "{w} {expected} after {step}");
        let row = 1.0 - 0.2 * step as f32;
        assert!((t.as_slice::<f32>().unwrap()[2] - row).abs() < 1e-4, "{t:?}");
    }
}
