//! Synchronous training of several replicas over parameter servers, with TensorFlow's semantics.
//!
//! Each replica adds its gradients to accumulators next to the variables and waits for a token. The
//! chief takes the mean of the required number of gradients from each accumulator, applies it,
//! increments the global step, and issues a token for each replica. Accumulators drop stale
//! gradients, which belong to an earlier step, and count them. Replicas beyond the required number
//! are backup workers: a step does not wait for the slowest of them.
//!
//! The number of live replicas is a variable next to the global step. It shrinks when a replica
//! leaves or is silent for the timeout, and grows when the replica is back. A step never waits for
//! more replicas than are alive.

mod accumulator;
mod chief;
mod quorum;

pub(crate) use accumulator::Accumulator;
pub(crate) use chief::Chief;

use crate::graph::Graph;
use crate::init;
use crate::optimizer::{GradAndVar, Optimizer};
use crate::output::{Operation, Output};
use crate::session::Session;
use crate::step::StepOptions;
use crate::variable::{Variable, VariableOptions};
use ferroflow_core::{DType, PartialShape, Result, Shape};
use quorum::{Parts, Quorum, ReplicaCounter, Watch};
use std::time::Duration;

/// Makes an optimizer synchronous.
///
/// ```
/// # let g = ferroflow_train::Graph::new();
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
    replica_timeout: Duration,
    /// Whether a replica's first step ends before it is aggregated.
    starts_ahead: bool,
}

/// The ops of synchronous training. [`crate::MonitoredTraining::synchronous`] connects them.
#[derive(Clone, Debug)]
pub struct SyncTraining {
    /// A replica's step: computes gradients, adds them, waits for its token.
    pub train: Operation,
    /// The chief's loop body: takes the gradients, applies them, issues tokens.
    pub aggregate: Operation,
    /// The chief's start: sets the accumulators' step and may issue the first tokens.
    pub chief_init: Operation,
    /// Each replica's start: reads the global step.
    pub local_init: Operation,
    /// The global step after a replica's step.
    pub(crate) token: Output,
    /// Takes another token instead of the last one.
    next_token: (Output, Operation),
    global_step: Variable,
    /// Number of backup workers.
    backups: i32,
    /// Number of replicas' steps that came too late, and whether there are any.
    stale: (Output, Output),
    /// Issues tokens again, so that every replica computes the current step, possibly a second
    /// time.
    put: Operation,
    quorum: Quorum,
}

impl<O: Optimizer> SyncReplicas<O> {
    /// Aggregates the gradients of `aggregate` out of `replicas` replicas in each step.
    pub fn new(optimizer: O, aggregate: usize, replicas: usize) -> SyncReplicas<O> {
        let clamp = |n: usize| i32::try_from(n.max(1)).unwrap_or(i32::MAX);
        let replica_timeout = Duration::from_secs(10);
        SyncReplicas {
            optimizer,
            aggregate: clamp(aggregate),
            replicas: clamp(replicas),
            replica_timeout,
            // With backup workers, a token at the start would be one too many: a replica would use
            // it to contribute to the first step twice.
            starts_ahead: replicas <= aggregate,
        }
    }

    /// Time that a step waits for a replica before it continues without it; the default is 10 s.
    #[must_use]
    pub fn replica_timeout(mut self, replica_timeout: Duration) -> Self {
        self.replica_timeout = replica_timeout;
        self
    }

    /// Trains all trainable variables synchronously.
    #[track_caller]
    pub fn minimize(&self, loss: &Output, global_step: &Variable) -> SyncTraining {
        let variables = loss.graph().trainable_variables();
        let gradients = self.optimizer.compute_gradients(loss, &variables);
        self.apply_gradients(loss.graph(), &gradients, global_step)
    }

    /// Applies gradients synchronously.
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
            let replicas = self.replicas.max(self.aggregate);
            let gate = ReplicaCounter::new(g, self.aggregate, replicas, global_step);
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
            // One token for each live replica, backup workers included.
            let put = || {
                g.device(&global_step.device(), || {
                    let count = gate.size.read().expand_dims(0);
                    let tokens = g.fill(&count, global_step.read());
                    g.op("QueueEnqueueManyV2").input(&queue).list(&[tokens]).operation()
                })
            };
            let aggregate = g.control_dependencies(&[updated], put);
            // The replica counter last: a counted replica has added all its gradients.
            let told: Vec<_> = accumulators.iter().map(|a| a.tell(global_step)).collect();
            let told = g.control_dependencies(&told, || gate.counter.tell(global_step));
            let set = [told, gate.size.initializer()];
            let chief_init = match self.starts_ahead {
                true => g.control_dependencies(&set, put),
                false => g.group("chief_init", &set),
            };
            let local_init = local_step.assign(&**global_step);
            let counted = g.control_dependencies(&handed, || gate.counter.count_in(&local_step));
            let dequeue = || {
                let op = g.op("QueueDequeueV2").input(&queue);
                let token = op.attr("component_types", vec![DType::Int64]).output();
                token.set_shape(());
                token
            };
            let token = g.control_dependencies(&[counted], dequeue);
            let next = dequeue();
            let next_token = (next.clone(), local_step.assign(&next));
            // The token comes last, so a replica that has it need not wait for anything else.
            let train = local_step.assign(&token);
            SyncTraining {
                train,
                aggregate,
                chief_init,
                local_init,
                token,
                next_token,
                global_step: global_step.clone(),
                backups: replicas - self.aggregate,
                stale: gate.counter.stale(),
                put: put(),
                quorum: Quorum::new(Parts {
                    gate: &gate,
                    accumulators: &accumulators,
                    tokens: &queue,
                    global_step,
                    local_step: &local_step,
                    whole: replicas,
                    replica_timeout: self.replica_timeout,
                }),
            }
        })
    }
}

impl SyncTraining {
    /// One iteration of the chief: aggregates a step. It has no deadline of its own: a [`Watch`]
    /// resolves stalled steps, and closing the session ends the wait.
    fn turn(&self, session: &Session) -> Result<()> {
        let options = StepOptions { timeout: None, ..session.options() };
        session.run_with((), &self.aggregate, options).map(|((), _)| ())
    }

    /// Number of replicas' steps whose gradients were dropped because they came too late.
    pub fn stale_steps(&self, session: &Session) -> Result<i64> {
        let (count, is_counted) = &self.stale;
        match session.run(is_counted.scalar::<bool>())? {
            true => session.run(count.scalar::<i64>()),
            false => Ok(0),
        }
    }

    /// The token for a replica's next step, after it computed the step `before` and got `token`.
    ///
    /// Slow backup workers leave tokens in the queue. The replica drops those of completed steps,
    /// because gradients for them would be stale. It also drops as many tokens of its own last step
    /// as there are backup workers, so that it does not contribute to one step twice. More tokens
    /// than that were issued again after a loss, and ask for the step once more.
    pub(crate) fn current_token(&self, session: &Session, before: i64, token: i64) -> Result<i64> {
        let (mut token, mut left_over) = (token, self.backups);
        if self.backups == 0 {
            return Ok(token);
        }
        loop {
            let is_again = token == before && left_over > 0;
            if !is_again && token >= session.run(self.global_step.scalar::<i64>())? {
                return Ok(token);
            }
            left_over -= i32::from(is_again);
            let (next, take) = &self.next_token;
            (token, ()) = session.run((next.scalar::<i64>(), take))?;
        }
    }

    /// The watch over the chief's iterations.
    fn watch(&self) -> Watch<'_> {
        Watch::new(&self.quorum, &self.put)
    }

    /// Registers a replica that has started or restarted.
    pub(crate) fn join(&self, session: &Session) -> Result<()> {
        self.quorum.join(session)
    }

    /// Called after a replica computed for the step `before` and received a token for `after`. If
    /// steps in between ran without it, the chief may have removed it from the quorum, so it
    /// registers again.
    pub(crate) fn caught_up(&self, session: &Session, before: i64, after: i64) -> Result<()> {
        match after > before.saturating_add(1) {
            true => self.quorum.rejoin(session),
            false => Ok(()),
        }
    }

    /// Unregisters a replica that leaves.
    pub(crate) fn leave(&self, session: &Session) -> Result<()> {
        self.quorum.leave(session)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::background_server::{BackgroundServer, loopback_spec};
    use crate::device::ReplicaDeviceSetter;
    use crate::monitored::MonitoredTraining;
    use crate::optimizer::Sgd;
    use crate::testing::{graph, session};
    use ferroflow_cluster::ServerOptions;

    #[test]
    fn synchronous_training_of_one_replica_equals_plain_training() {
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

    /// A worker of three, of which each step needs two.
    struct Worker {
        goal: Output,
        w: Variable,
        sync: SyncTraining,
        session: crate::monitored::MonitoredSession,
    }

    impl Worker {
        fn open(server: &BackgroundServer, task: usize) -> Worker {
            let g = graph();
            let setter = ReplicaDeviceSetter::new(1).worker(&format!("/job:worker/task:{task}"));
            g.device(setter, || {
                let w = g.variable("w", 0.0);
                let goal = g.placeholder::<f32>("goal", ());
                let loss = (&*w - &goal).square();
                let sync = SyncReplicas::new(Sgd::new(0.1), 2, 3).minimize(&loss, &g.global_step());
                let training = MonitoredTraining::synchronous(&g, &sync).chief(task == 0);
                let server = server.clone();
                let open = move |g: &Graph| {
                    let session = server.session(g, &[])?;
                    Ok(session.with_timeout(Duration::from_secs(60)))
                };
                Worker { goal, w, session: training.open(open).unwrap(), sync }
            })
        }

        fn train(&mut self, goal: f32) {
            self.session.train_fed((&self.goal, goal), ()).unwrap();
        }

        fn look(&self) -> (f32, i64) {
            let session = self.session.session().unwrap();
            let stale = self.sync.stale_steps(session).unwrap();
            (session.run(self.w.scalar::<f32>()).unwrap(), stale)
        }
    }

    #[test]
    fn gradients_of_a_slow_backup_worker_are_dropped_and_counted() {
        const STEPS: i64 = 24;
        let cluster = loopback_spec(&[("ps", 1), ("worker", 3)]).unwrap();
        let start = |job: &str, task: u32| {
            BackgroundServer::start(ServerOptions::new(cluster.clone(), job, task)).unwrap()
        };
        let _ps = start("ps", 0);
        let servers = [0, 1, 2].map(|task| start("worker", task));
        let mut chief = Worker::open(&servers[0], 0);
        let [mut other, mut slow] = [1, 2].map(|task| Worker::open(&servers[task], task));
        // The slow worker computes its first step while the others train. They wait for each other
        // before each step. Otherwise one that is a step ahead could take the slow worker's token,
        // and give both gradients of the next step.
        for _ in 0..STEPS {
            std::thread::scope(|scope| {
                scope.spawn(|| other.train(3.0));
                chief.train(3.0);
            });
        }
        let (w, stale) = chief.look();
        assert_eq!((chief.session.global_step(), stale), (STEPS, 0));
        let expected = 3.0 * (1.0 - 0.8f32.powi(STEPS as i32));
        assert!((w - expected).abs() < 1e-3, "{w} {expected}");
        // Its gradient, which pulls elsewhere, comes too late.
        slow.train(-1000.0);
        let (after, stale) = slow.look();
        assert_eq!((after, stale), (w, 1));
        // It has caught up: with one other worker, the next step uses its gradient.
        assert_eq!(slow.session.global_step(), STEPS);
        std::thread::scope(|scope| {
            scope.spawn(|| other.train(3.0));
            slow.train(5.0);
        });
        let (w, stale) = slow.look();
        assert_eq!(stale, 1);
        assert!((w - (expected + 0.2 * (4.0 - expected))).abs() < 1e-3, "{w}");
    }

    /// Two replicas on one session, which stands in for their shared parameter server.
    struct Two {
        graph: Graph,
        w: Variable,
        sync: SyncTraining,
        session: Session,
    }

    impl Two {
        fn new() -> Two {
            let graph = graph();
            let w = graph.variable("w", 0.0);
            let v = graph.variable("v", 0.0);
            let loss = (&*w - 3.0).square() + (&*v - 1.0).square();
            let sync =
                SyncReplicas::new(Sgd::new(0.1), 2, 2).replica_timeout(Duration::from_millis(40));
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

        /// An up-to-date replica, which must have a token.
        fn replica(&self) {
            self.session.run(&self.sync.local_init).unwrap();
            self.session.run(&self.sync.train).unwrap();
        }

        /// One iteration of the chief with its watch. Returns how often the watch ran.
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
    fn training_continues_without_a_lost_replica() {
        let two = Two::new();
        assert_eq!(two.quorum(), 2);
        // Both replicas add gradients: the step completes.
        two.replica();
        two.replica();
        two.turn();
        assert_eq!((two.quorum(), two.step()), (2, 1));
        // One replica is silent: the chief waits, then continues with the other alone.
        two.replica();
        assert!(two.turn() > 1);
        assert_eq!((two.quorum(), two.step()), (1, 2));
        two.replica();
        two.turn();
        assert_eq!((two.quorum(), two.step()), (1, 3));
        // The silent replica was only slow: its gradient is stale, and it registers again.
        two.sync.caught_up(&two.session, 2, 3).unwrap();
        assert_eq!(two.quorum(), 1);
        two.sync.caught_up(&two.session, 1, 3).unwrap();
        assert_eq!(two.quorum(), 2);
        // It leaves, so the current step does not wait for it.
        two.replica();
        two.session.run(&two.sync.local_init).unwrap();
        two.sync.leave(&two.session).unwrap();
        two.turn();
        assert_eq!((two.quorum(), two.step()), (1, 4));
    }

    /// Gradients of a replica that dies between adding its first and its last one are not taken
    /// before another replica's are complete.
    #[test]
    fn a_replica_that_dies_between_two_gradients_leaves_no_partial_step() {
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

    /// The chief dies in the middle of a step, with some gradients taken and others not.
    #[test]
    fn a_step_that_a_lost_chief_left_partial_completes() {
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

    /// The remaining replica waits for a token that another replica took before it died; its own
    /// last gradient was stale.
    #[test]
    fn a_lost_token_is_issued_again() {
        let two = Two::new();
        two.replica();
        two.replica();
        two.turn();
        let (session, train) = (&two.session, &two.sync.train);
        // A replica dies with both tokens of step 1.
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

    /// A replica that leaves is counted but contributes no gradients.
    #[test]
    fn a_step_does_not_wait_for_a_replica_that_has_left() {
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

    /// The learning rate is fed to a replica's step, although the chief applies the gradients.
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
        fn created(&mut self, _: &Session, _: i64) -> Result<()> {
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
