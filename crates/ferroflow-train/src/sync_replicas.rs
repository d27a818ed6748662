//! Synchronous training of several replicas over parameter servers, with TensorFlow's semantics.
//!
//! Each replica hands its gradients to accumulators beside the variables and waits for a token. The
//! chief takes from each accumulator the mean of as many gradients as are to be aggregated, applies
//! them, counts the step, and puts out a token for each replica. Gradients computed for an earlier
//! step than the current one are dropped, so replicas more than are aggregated are backups.
//!
//! How many gradients are aggregated, the quorum, is a variable beside the global step: it shrinks when
//! a replica leaves, or when one is not heard of for a while, and grows when one is there again.

mod accumulator;
mod chief;
mod quorum;

pub(crate) use chief::Chief;

use crate::graph::Graph;
use crate::init;
use crate::optimizer::{GradAndVar, Optimizer};
use crate::output::{Operation, Output};
use crate::session::GraphSession;
use crate::step::StepOptions;
use crate::variable::{Variable, VariableOptions};
use accumulator::Accumulator;
use ferroflow_core::{DType, PartialShape, Result, Shape};
use quorum::{Gate, Parts, Quorum, Watch};
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
    /// Puts out tokens: has everybody compute the current step, once more if need be.
    put: Operation,
    quorum: Quorum,
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
            let gate = Gate::new(g, self.aggregate, global_step);
            let (mut handed, mut taken) = (Vec::new(), Vec::new());
            let mut accumulators = Vec::new();
            for (gradient, variable) in gradients {
                let Some(gradient) = gradient else { continue };
                let accumulator = Accumulator::of(variable, gradient);
                handed.push(accumulator.hand_over(gradient, &local_step));
                taken.push((Some(accumulator.take(&gate.count)), variable.clone()));
                accumulators.push(accumulator);
            }
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
                    let count = (gate.size.read() + backups as f32).expand_dims(0);
                    let tokens = g.fill(&count, global_step.read());
                    g.op("QueueEnqueueManyV2").input(&queue).list(&[tokens]).operation()
                })
            };
            let aggregate = g.control_dependencies(&[updated], put);
            // The gate last: one that it counts has handed over gradients that were not dropped.
            let told: Vec<_> = accumulators.iter().map(|a| a.tell(global_step)).collect();
            let told = g.control_dependencies(&told, || gate.counter.tell(global_step));
            let chief_init = g.control_dependencies(&[told, gate.size.initializer()], put);
            let local_init = local_step.assign(&**global_step);
            let counted = g.control_dependencies(&handed, || gate.counter.count_in(&local_step));
            let token = g.control_dependencies(&[counted], || {
                let op = g.op("QueueDequeueV2").input(&queue);
                op.attr("component_types", vec![DType::Int64]).output()
            });
            token.set_shape(());
            // The token comes after all else: nothing more to wait for.
            let train = local_step.assign(&token);
            SyncTraining {
                train,
                aggregate,
                chief_init,
                local_init,
                token,
                put: put(),
                quorum: Quorum::new(Parts {
                    gate: &gate,
                    accumulators: &accumulators,
                    tokens: &queue,
                    global_step,
                    local_step: &local_step,
                    whole: self.aggregate,
                    patience: self.patience,
                }),
            }
        })
    }
}

impl SyncTraining {
    /// One turn of the chief: aggregates a step. It waits for the replicas as long as it takes: a
    /// [`Watch`] beside it sees to it that it goes on, and the session's end ends it.
    fn turn(&self, session: &GraphSession) -> Result<()> {
        let options = StepOptions { timeout: None, ..session.options() };
        session.run_with((), &self.aggregate, options).map(|((), _)| ())
    }

    /// The chief's watch over its turns.
    fn watch(&self) -> Watch<'_> {
        Watch::new(&self.quorum, &self.put)
    }

    /// A replica is there: for the first time, or started again.
    pub(crate) fn join(&self, session: &GraphSession) -> Result<()> {
        self.quorum.join(session)
    }

    /// A replica computed for the step `before`, and its token says `after`. If steps were made without
    /// it in between, it may have been given up, and says that it is there.
    pub(crate) fn caught_up(&self, session: &GraphSession, before: i64, after: i64) -> Result<()> {
        match after > before.saturating_add(1) {
            true => self.quorum.rejoin(session),
            false => Ok(()),
        }
    }

    /// A replica leaves.
    pub(crate) fn leave(&self, session: &GraphSession) -> Result<()> {
        self.quorum.leave(session)
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
    struct Two {
        graph: Graph,
        w: Variable,
        sync: SyncTraining,
        session: GraphSession,
    }

    impl Two {
        fn new() -> Two {
            let graph = graph();
            let w = graph.variable("w", 0.0);
            let v = graph.variable("v", 0.0);
            let loss = (&*w - 3.0).square() + (&*v - 1.0).square();
            let sync = SyncReplicas::new(Sgd::new(0.1), 2, 2).patience(Duration::from_millis(40));
            let sync = sync.minimize(&loss, &graph.global_step());
            let session = session(&graph).unwrap();
            session.run([graph.global_initializer(), graph.local_initializer()]).unwrap();
            session.run(&sync.local_init).unwrap();
            session.run(&sync.chief_init).unwrap();
            Two { graph, w, sync, session }
        }

        fn step(&self) -> i64 {
            self.session.run(self.graph.global_step().scalar::<i64>()).unwrap()
        }

        fn quorum(&self) -> i32 {
            self.sync.quorum.size(&self.session)
        }

        /// A replica that is up to date; there must be a token for it.
        fn replica(&self) {
            self.session.run(&self.sync.local_init).unwrap();
            self.session.run(&self.sync.train).unwrap();
        }

        /// A turn of the chief with its watch. Returns how often the watch looked.
        fn turn(&self) -> usize {
            std::thread::scope(|scope| {
                let turn = scope.spawn(|| self.sync.turn(&self.session).unwrap());
                let mut watch = self.sync.watch();
                let mut looks = 0;
                while !turn.is_finished() {
                    watch.look(&self.session, Duration::ZERO).unwrap();
                    std::thread::sleep(watch.interval());
                    looks += 1;
                }
                looks
            })
        }
    }

    #[test]
    fn training_goes_on_without_a_replica_that_is_gone() {
        let two = Two::new();
        assert_eq!(two.quorum(), 2);
        // Both hand over: the step is made.
        two.replica();
        two.replica();
        two.turn();
        assert_eq!((two.quorum(), two.step()), (2, 1));
        // One is silent: the chief waits, then goes on with the other alone.
        two.replica();
        assert!(two.turn() > 1);
        assert_eq!((two.quorum(), two.step()), (1, 2));
        two.replica();
        two.turn();
        assert_eq!((two.quorum(), two.step()), (1, 3));
        // The other was only slow: its gradient comes too late, and it says that it is there.
        two.sync.caught_up(&two.session, 2, 3).unwrap();
        assert_eq!(two.quorum(), 1);
        two.sync.caught_up(&two.session, 1, 3).unwrap();
        assert_eq!(two.quorum(), 2);
        // It leaves in an orderly way: nobody waits for it, not even now.
        two.replica();
        two.session.run(&two.sync.local_init).unwrap();
        two.sync.leave(&two.session).unwrap();
        two.turn();
        assert_eq!((two.quorum(), two.step()), (1, 4));
    }

    /// The gradients of a replica that dies between handing over the first and the last are not taken
    /// before another replica's are complete.
    #[test]
    fn a_replica_that_dies_half_way_leaves_no_step_half_made() {
        let two = Two::new();
        let half = two.graph.operation("sync_replicas/AccumulatorApplyGradient").unwrap();
        for _ in 0..3 {
            let before = two.step();
            two.session.run(&two.sync.local_init).unwrap();
            two.session.run(&half).unwrap();
            two.replica();
            assert!(two.turn() > 1);
            assert_eq!(two.step(), before + 1);
            two.sync.join(&two.session).unwrap();
        }
        let w = two.session.run(two.w.scalar::<f32>()).unwrap();
        assert!((w - 3.0 * (1.0 - 0.8f32.powi(3))).abs() < 1e-5, "{w}");
    }

    /// The chief is lost in the middle of a step: some gradients are taken, others not.
    #[test]
    fn what_a_lost_chief_left_half_made_is_made() {
        let two = Two::new();
        two.replica();
        two.replica();
        let taken = two.graph.tensor("sync_replicas/AccumulatorTakeGradient_1:0").unwrap();
        two.session.run(&taken).unwrap();
        assert_eq!(two.step(), 0);
        two.session.run(&two.sync.chief_init).unwrap();
        two.replica();
        two.replica();
        two.turn();
        assert_eq!((two.quorum(), two.step()), (2, 1));
    }

    /// The one that is left waits for a token that another took and died with; what it handed over
    /// before was too old.
    #[test]
    fn who_waits_for_a_token_that_is_lost_gets_another() {
        let two = Two::new();
        two.replica();
        two.replica();
        two.turn();
        let (session, train) = (&two.session, &two.sync.train);
        // One dies with both tokens of step 1.
        for _ in 0..2 {
            session.run(&two.sync.token).unwrap();
        }
        std::thread::scope(|scope| {
            let survivor = scope.spawn(|| (0..2).for_each(|_| session.run(train).unwrap()));
            assert!(two.turn() > 1);
            survivor.join().unwrap();
        });
        assert_eq!((two.quorum(), two.step()), (1, 2));
    }

    /// Who leaves is counted in, but brings no gradients.
    #[test]
    fn nobody_is_taken_for_one_that_has_left() {
        let two = Two::new();
        two.sync.leave(&two.session).unwrap();
        two.sync.leave(&two.session).unwrap();
        let session = &two.session;
        std::thread::scope(|scope| {
            let late = scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(80));
                two.replica();
            });
            two.turn();
            late.join().unwrap();
        });
        assert_eq!((two.quorum(), two.step()), (1, 1));
        assert!(session.run(two.w.scalar::<f32>()).unwrap() > 0.0);
    }

    /// The rate is fed to the step of a replica, but it is the chief who applies gradients.
    #[test]
    fn why_the_chief_cannot_aggregate_is_what_training_says() {
        let g = graph();
        let w = g.variable("w", 0.0);
        let rate = g.placeholder::<f32>("rate", ());
        let sync = SyncReplicas::new(Sgd::new(&rate), 1, 1).minimize(&w.square(), &g.global_step());
        let mut s = MonitoredTraining::synchronous(&g, &sync).open(session).unwrap();
        let failed = (0..3).find_map(|_| s.train_fed((&rate, 0.1), ()).err()).unwrap();
        assert_eq!(failed.code(), ferroflow_core::Code::InvalidArgument, "{failed}");
        assert!(failed.message().contains("placeholder tensor 'rate'"), "{failed}");
    }

    struct Broken;
    impl crate::hooks::Hook for Broken {
        fn created(&mut self, _: &GraphSession, _: i64) -> Result<()> {
            Err(ferroflow_core::err!(NotFound, "what this hook needs"))
        }
        fn after(&mut self, _: &mut crate::hooks::Ran<'_>) -> Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_hook_that_fails_ends_the_chief() {
        let g = graph();
        let w = g.variable("w", 0.0);
        let sync = SyncReplicas::new(Sgd::new(0.1), 2, 2).minimize(&w.square(), &g.global_step());
        let training = MonitoredTraining::synchronous(&g, &sync).hook(Broken);
        let failed = training.open(session).err().unwrap();
        assert!(failed.message().contains("what this hook needs"), "{failed}");
    }
}
