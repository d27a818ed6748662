//! The quorum: the number of replicas that a step waits for. It is the number of gradients that a
//! step aggregates, or the number of live replicas if that is less.
//!
//! A replica increments the replica counter, an accumulator next to the global step, after it has
//! added all its gradients. The chief takes no gradient before the counter reaches the quorum, so a
//! replica that dies between two gradients leaves no partial step. The chief's wait is never
//! cancelled, because that could leave a partial step too. When replicas are missing for longer
//! than the timeout, the watch counts them in itself, and the step uses the gradients that are
//! there. When no replica has added gradients, all may be waiting for tokens that were lost with
//! dead replicas, so the watch issues new tokens.

use super::accumulator::Accumulator;
use crate::graph::Graph;
use crate::output::{Operation, Output};
use crate::session::Session;
use crate::variable::{Variable, VariableOptions};
use ferroflow_core::{Result, Tensor};
use std::time::{Duration, Instant};

/// The replica counter that guards the gradients.
pub(super) struct ReplicaCounter {
    pub counter: Accumulator,
    /// Number of live replicas, backup workers included.
    pub size: Variable,
    /// Number of gradients to take per variable; known when the quorum is reached.
    pub count: Output,
}

impl ReplicaCounter {
    #[track_caller]
    pub fn new(g: &Graph, aggregate: i32, replicas: i32, global_step: &Variable) -> ReplicaCounter {
        let counter = Accumulator::gate(global_step);
        // Neither trained nor saved: it describes the current replicas.
        let options = VariableOptions { trainable: false, collections: Vec::new() };
        g.device(&global_step.device(), || {
            let size = g.variable_with("live_replicas", replicas, options);
            // The quorum: the count at which gradients may be taken.
            let wanted = size.read().minimum(aggregate);
            let opened = counter.take(&wanted).values().operation();
            // The quorum may have shrunk since, with missing replicas counted in.
            let count = g.control_dependencies(&[opened], || size.read().minimum(&wanted));
            ReplicaCounter { counter, size, count }
        })
    }
}

/// Ops of replicas and chief that change the quorum.
#[derive(Clone, Debug)]
pub(super) struct Quorum {
    is_set: Output,
    /// Number of replicas when all are alive.
    whole: i32,
    join: Operation,
    rejoin: Operation,
    leave: Operation,
    look: Look,
    new_size: Output,
    missed_step: Output,
    /// Sets the size to the fed `new_size`, unless the step `missed_step` has completed.
    shrink: Operation,
    /// Counts in a replica that is missing in the step `missed_step`, unless that has completed.
    stand_in: Operation,
    replica_timeout: Duration,
}

/// The state of a step.
#[derive(Clone, Debug)]
struct Look {
    /// Number of counted replicas.
    counted: Output,
    /// Smallest number of gradients in an accumulator.
    held: Output,
    size: Output,
    tokens: Output,
    /// The global step; read last, so that the other values are not of a later step.
    step: Output,
}

/// Settings of a quorum.
pub(super) struct Parts<'a> {
    pub gate: &'a ReplicaCounter,
    pub accumulators: &'a [Accumulator],
    pub tokens: &'a Output,
    pub global_step: &'a Variable,
    pub local_step: &'a Variable,
    pub whole: i32,
    pub replica_timeout: Duration,
}

impl Quorum {
    #[track_caller]
    pub fn new(parts: Parts<'_>) -> Quorum {
        let Parts { gate, accumulators, tokens, global_step, local_step, whole, replica_timeout } =
            parts;
        let (g, size) = (global_step.graph(), &gate.size);
        let held: Vec<Output> = accumulators.iter().map(Accumulator::pending).collect();
        let look = |counted: Output, held: Output| {
            let read = [counted.operation(), held.operation()];
            let step = g.control_dependencies(&read, || global_step.read());
            let tokens = g.op("QueueSizeV2").input(tokens).output();
            Look { counted, held, size: size.read(), tokens, step }
        };
        let new_size = g.placeholder::<i32>("new_quorum", ());
        let missed_step = g.placeholder::<i64>("missed_step", ());
        let less = size.assign((size.read() - 1.0).maximum(1));
        g.device(&global_step.device(), || Quorum {
            is_set: size.is_initialized(),
            whole,
            join: size.assign((size.read() + 1.0).minimum(whole)),
            // The replica takes one of the issued tokens.
            rejoin: {
                let old = size.read();
                let new = (&old + 1.0).minimum(whole);
                let grown = g.fill((&new - &old).expand_dims(0), global_step.read());
                let put = g.op("QueueEnqueueManyV2").input(tokens).list(&[grown]).operation();
                g.control_dependencies(&[put], || size.assign(&new))
            },
            // The current step must not wait for it.
            leave: g.control_dependencies(&[less], || gate.counter.count_in(local_step)),
            look: look(gate.counter.pending(), g.pack(&held, 0).min_all()),
            shrink: {
                let is_missed = global_step.read().equal(&missed_step);
                size.assign(is_missed.select(&new_size, size.read()))
            },
            stand_in: gate.counter.count_in(&missed_step),
            new_size,
            missed_step,
            replica_timeout,
        })
    }

    /// Registers a replica that has started or restarted.
    pub fn join(&self, session: &Session) -> Result<()> {
        match session.run(self.is_set.scalar::<bool>())? {
            true => session.run(&self.join),
            // The chief has not started yet and will set the full size.
            false => Ok(()),
        }
    }

    /// Registers a replica that the watch had removed.
    pub fn rejoin(&self, session: &Session) -> Result<()> {
        session.run(&self.rejoin)
    }

    /// Unregisters a replica that leaves.
    pub fn leave(&self, session: &Session) -> Result<()> {
        session.run(&self.leave)
    }

    /// Lets the step complete with the replicas that are alive.
    fn go_on(&self, session: &Session, step: i64, there: i32) -> Result<()> {
        let (size, step) = (Tensor::scalar(there.min(self.whole)), Tensor::scalar(step));
        let fed = [(&self.new_size, size), (&self.missed_step, step.clone())];
        session.run_fed(fed, &self.shrink)?;
        // The counter may wait for more than the present quorum; the surplus is dropped.
        for _ in 0..self.whole {
            session.run_fed((&self.missed_step, step.clone()), &self.stand_in)?;
        }
        Ok(())
    }
}

/// Checks periodically whether the current step makes progress.
pub(super) struct Watch<'a> {
    quorum: &'a Quorum,
    /// Issues tokens.
    put: &'a Operation,
    step: i64,
    /// When the watch last acted on that step.
    began: Instant,
    /// When replicas began to wait for others in it.
    waiting: Option<Instant>,
    tries: u32,
}

impl<'a> Watch<'a> {
    pub fn new(quorum: &'a Quorum, put: &'a Operation) -> Watch<'a> {
        Watch { quorum, put, step: -1, began: Instant::now(), waiting: None, tries: 0 }
    }

    /// Interval between two checks.
    pub fn interval(&self) -> Duration {
        self.quorum.replica_timeout / 4
    }

    /// Checks the step and resolves a stall. `usual` is the duration of a step.
    pub fn look(&mut self, session: &Session, usual: Duration) -> Result<()> {
        let Look { counted, held, size, tokens, step } = &self.quorum.look;
        let counts = [counted.scalar::<i32>(), held.scalar(), size.scalar(), tokens.scalar()];
        let (counts, step) = session.run((counts, step.scalar::<i64>()))?;
        let [counted, held, size, tokens] = counts[..] else { return Ok(()) };
        if step != self.step {
            *self = Watch { step, ..Watch::new(self.quorum, self.put) };
        }
        // A replica that has left is counted in without gradients.
        let there = counted.min(held);
        if there > 0 {
            let since = *self.waiting.get_or_insert_with(Instant::now);
            if since.elapsed() < self.quorum.replica_timeout {
                return Ok(());
            }
            self.waiting = None;
            tracing::warn!(
                "step {step} goes on with {there} of {size} replicas: the others are silent"
            );
            return self.quorum.go_on(session, step, there);
        }
        self.waiting = None;
        // All replicas may still be computing. A surplus token makes one of them compute an unused
        // gradient.
        let limit = self
            .quorum
            .replica_timeout
            .max(usual.saturating_mul(3))
            .saturating_mul(1 << self.tries.min(3));
        if tokens > 0 || self.began.elapsed() < limit {
            return Ok(());
        }
        (self.began, self.tries) = (Instant::now(), self.tries + 1);
        tracing::warn!("step {step} does not get on: all replicas are asked for it once more");
        session.run(self.put)
    }
}

#[cfg(test)]
impl Quorum {
    pub fn size(&self, session: &Session) -> i32 {
        session.run(self.look.size.scalar::<i32>()).unwrap()
    }
}
