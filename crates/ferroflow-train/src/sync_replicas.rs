//! Synchronous training of several replicas over parameter servers, with TensorFlow's semantics.
//!
//! Each replica hands its gradients to accumulators beside the variables and waits for a token. The
//! chief takes from each accumulator the mean of as many gradients as are to be aggregated, applies
//! them, counts the step, and puts out a token for each replica. Gradients computed for an earlier
//! step than the current one are dropped, so replicas more than are aggregated are backups.
//!
//! How many gradients are aggregated, the quorum, is a variable beside the global step: it shrinks when
//! a replica leaves, or when one is not heard of for a while, and grows when one joins again.

use crate::gradient::{Gradient, IndexedSlices};
use crate::graph::Graph;
use crate::init;
use crate::optimizer::{GradAndVar, Optimizer};
use crate::output::{Operation, Output};
use crate::session::GraphSession;
use crate::variable::{Variable, VariableOptions};
use ferroflow_core::{Code, DType, PartialShape, Result, Shape};
use std::time::Duration;

/// Makes an optimizer synchronous.
///
/// ```
/// # let mut catalog = ferroflow_graph::Catalog::new();
/// # ferroflow_ops::register(&mut catalog);
/// # let g = ferroflow_train::Graph::new(catalog.into());
/// use ferroflow_train::{MonitoredTraining, Sgd, SyncReplicas};
/// let w = g.variable("w", 0.0);
/// let loss = (&*w - 3.0).square();
/// let sync = SyncReplicas::new(Sgd::new(0.1), 2, 2).minimize(&loss, &g.global_step());
/// let training = MonitoredTraining::synchronous(&g, &sync);
/// assert!(g.check().is_ok());
/// ```
pub struct SyncReplicas<O> {
    optimizer: O,
    aggregate: i32,
    replicas: i32,
    patience: Duration,
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
    /// The global step that a replica's step came to.
    pub(crate) token: Output,
    quorum: Quorum,
}

/// How many gradients make a step, and what changes that.
#[derive(Clone, Debug)]
struct Quorum {
    size: Variable,
    /// How many gradients of the current step are there.
    pending: Output,
    /// Fed with the quorum that [`Quorum::shrink`] sets.
    new_size: Output,
    /// Sets the quorum, has the accumulators count from the global step, and lets all replicas
    /// compute that step again: some may have been taken and not applied.
    shrink: Operation,
    join: Operation,
    leave: Operation,
    patience: Duration,
}

impl<O: Optimizer> SyncReplicas<O> {
    /// Aggregates the gradients of `aggregate` out of `replicas` replicas in each step.
    pub fn new(optimizer: O, aggregate: usize, replicas: usize) -> SyncReplicas<O> {
        let clamp = |n: usize| i32::try_from(n.max(1)).unwrap_or(i32::MAX);
        let patience = Duration::from_secs(10);
        SyncReplicas { optimizer, aggregate: clamp(aggregate), replicas: clamp(replicas), patience }
    }

    /// How long a step waits for a replica before it goes on without it; 10 s, if not given.
    #[must_use]
    pub fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
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
            // Neither trained nor saved: it is of those that train now.
            let options = VariableOptions { trainable: false, collections: Vec::new() };
            let quorum = g.device(&global_step.device(), || {
                g.variable_with("quorum", self.aggregate, options)
            });
            let count = quorum.read();
            let (mut handed, mut taken) = (Vec::new(), Vec::new());
            let mut accumulators = Vec::new();
            for (gradient, variable) in gradients {
                let Some(gradient) = gradient else { continue };
                let accumulator = Accumulator::new(g, variable, gradient);
                handed.push(accumulator.hand_over(gradient, &local_step));
                taken.push((Some(accumulator.take(&count)), variable.clone()));
                accumulators.push(accumulator);
            }
            let tell = || accumulators.iter().map(|a| a.tell(global_step)).collect::<Vec<_>>();
            let updated = self.optimizer.apply_gradients(g, &taken, Some(global_step));
            let queue = g.device(&global_step.device(), || {
                let shapes = vec![PartialShape::scalar()];
                let op = g.op("FIFOQueueV2").name("sync_token_q").attr("shapes", shapes);
                let op = op.attr("component_types", vec![DType::Int64]);
                op.attr("shared_name", "sync_token_q").output()
            });
            // One for each replica that is there: those more than are aggregated get theirs, too.
            let backups = (self.replicas - self.aggregate).max(0);
            let put = || {
                g.device(&global_step.device(), || {
                    let count = (quorum.read() + backups as f32).expand_dims(0);
                    let tokens = g.fill(&count, global_step.read());
                    g.op("QueueEnqueueManyV2").input(&queue).list(&[tokens]).operation()
                })
            };
            let aggregate = g.control_dependencies(&[updated], put);
            let mut first = tell();
            first.push(quorum.initializer());
            let chief_init = g.control_dependencies(&first, put);
            let local_init = local_step.assign(&**global_step);
            let token = g.control_dependencies(&handed, || {
                let op = g.op("QueueDequeueV2").input(&queue);
                op.attr("component_types", vec![DType::Int64]).output()
            });
            token.set_shape(());
            // The token comes after all else: nothing more to wait for.
            let train = local_step.assign(&token);
            let pending: Vec<Output> = accumulators.iter().map(Accumulator::pending).collect();
            let new_size = g.placeholder::<i32>("new_quorum", ());
            let mut again = tell();
            again.push(quorum.assign(&new_size));
            let quorum = Quorum {
                pending: g.pack(&pending, 0).min_all(),
                shrink: g.control_dependencies(&again, put),
                join: quorum.assign((quorum.read() + 1.0).minimum(self.aggregate)),
                leave: quorum.assign((quorum.read() - 1.0).maximum(1)),
                new_size,
                size: quorum,
                patience: self.patience,
            };
            SyncTraining { train, aggregate, chief_init, local_init, token, quorum }
        })
    }
}

impl SyncTraining {
    /// One turn of the chief: aggregates a step; when replicas have been missing for too long, goes on
    /// with those that are there.
    pub(crate) fn turn(&self, session: &GraphSession) -> Result<()> {
        let quorum = &self.quorum;
        match session.clone().with_timeout(quorum.patience).run(&self.aggregate) {
            Err(e) if e.code() == Code::DeadlineExceeded => {
                let there = session.run(quorum.pending.scalar::<i32>())?;
                // With nobody there, there is nobody to go on with.
                let is_some = there > 0;
                if is_some {
                    session.run_fed((&quorum.new_size, there), &quorum.shrink)?;
                }
                Ok(())
            }
            result => result,
        }
    }

    /// A replica is there, for the first time or again.
    pub(crate) fn join(&self, session: &GraphSession) -> Result<()> {
        match session.run(self.quorum.size.is_initialized().scalar::<bool>())? {
            true => session.run(&self.quorum.join),
            // The chief, who has it start with everybody, is still to come.
            false => Ok(()),
        }
    }

    /// A replica leaves.
    pub(crate) fn leave(&self, session: &GraphSession) -> Result<()> {
        session.run(&self.quorum.leave)
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

    /// How many gradients are there.
    #[track_caller]
    fn pending(&self) -> Output {
        self.graph.op("AccumulatorNumAccumulated").input(&self.handle).output()
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

    /// Two replicas on one session, which stands for the parameter server they share.
    #[test]
    fn training_goes_on_without_a_replica_that_is_gone() {
        let g = graph();
        let w = g.variable("w", 0.0);
        let loss = (&*w - 3.0).square();
        let sync = SyncReplicas::new(Sgd::new(0.1), 2, 2).patience(Duration::from_millis(300));
        let sync = sync.minimize(&loss, &g.global_step());
        let init = [g.global_initializer(), g.local_initializer()];
        let s = session(&g).unwrap();
        s.run(init).unwrap();
        s.run(&sync.local_init).unwrap();
        s.run(&sync.chief_init).unwrap();
        let size = || s.run(sync.quorum.size.scalar::<i32>()).unwrap();
        assert_eq!(size(), 2);
        // Both hand over: the step is made.
        s.run(&sync.train).unwrap();
        s.run(&sync.train).unwrap();
        sync.turn(&s).unwrap();
        assert_eq!(s.run(g.global_step().scalar::<i64>()).unwrap(), 1);
        // One is silent, the other computes: with the step it knows, which is too old, then with the
        // one its token told. The chief waits, then goes on with it alone.
        s.run(&sync.train).unwrap();
        s.run(&sync.train).unwrap();
        sync.turn(&s).unwrap();
        assert_eq!((size(), s.run(g.global_step().scalar::<i64>()).unwrap()), (1, 1));
        sync.turn(&s).unwrap();
        assert_eq!((size(), s.run(g.global_step().scalar::<i64>()).unwrap()), (1, 2));
        // It comes back, and leaves in an orderly way.
        sync.join(&s).unwrap();
        assert_eq!(size(), 2);
        sync.leave(&s).unwrap();
        assert_eq!(size(), 1);
    }
}
