//! How many replicas a step waits for, and what changes that.
//!
//! A replica counts itself in at the gate, an accumulator beside the global step, once it has handed over all
//! its gradients. The chief takes none until the gate has counted as many replicas as are to be aggregated, so
//! one that dies half-way leaves no step half-made. The chief's wait is never cut short, which might leave one
//! half-made, too: where replicas are missing for too long, the chief counts them in itself, and the step is
//! made by those that are there. Where nobody is there, all may be waiting for tokens that were lost with the
//! replicas that had them: new ones are put out.

use super::accumulator::Accumulator;
use crate::graph::Graph;
use crate::output::{Operation, Output};
use crate::session::GraphSession;
use crate::variable::{Variable, VariableOptions};
use ferroflow_core::{Result, Tensor};
use std::time::{Duration, Instant};

/// What gradients are taken behind.
pub(super) struct Gate {
    pub counter: Accumulator,
    /// The quorum: how many replicas open it.
    pub size: Variable,
    /// How many gradients to take of each variable; known when it opens.
    pub count: Output,
}

impl Gate {
    #[track_caller]
    pub fn new(g: &Graph, replicas: i32, global_step: &Variable) -> Gate {
        let counter = Accumulator::gate(global_step);
        // Neither trained nor saved: it is of those that train now.
        let options = VariableOptions { trainable: false, collections: Vec::new() };
        g.device(&global_step.device(), || {
            let size = g.variable_with("quorum", replicas, options);
            let wanted = size.read();
            let opened = counter.take(&wanted).values().operation();
            // It may have shrunk since: others were counted in for those that are missing.
            let count = g.control_dependencies(&[opened], || size.read().minimum(&wanted));
            Gate { counter, size, count }
        })
    }
}

/// What replicas and the chief do about the size of the quorum.
#[derive(Clone, Debug)]
pub(super) struct Quorum {
    is_set: Output,
    /// Its size when all are there.
    whole: i32,
    join: Operation,
    rejoin: Operation,
    leave: Operation,
    look: Look,
    new_size: Output,
    missed_step: Output,
    /// Sets the size to what `new_size` is fed with, unless the step `missed_step` was made.
    shrink: Operation,
    /// Counts in a replica that is missing in the step `missed_step`, unless that was made.
    stand_in: Operation,
    patience: Duration,
}

/// How a step stands.
#[derive(Clone, Debug)]
struct Look {
    /// How many replicas the gate has counted.
    counted: Output,
    /// How many gradients the emptiest accumulator has.
    held: Output,
    size: Output,
    tokens: Output,
    /// The global step; read after the others, so they are not of a later one.
    step: Output,
}

/// What a quorum is made for.
pub(super) struct Parts<'a> {
    pub gate: &'a Gate,
    pub accumulators: &'a [Accumulator],
    pub tokens: &'a Output,
    pub global_step: &'a Variable,
    pub local_step: &'a Variable,
    pub whole: i32,
    pub patience: Duration,
}

impl Quorum {
    #[track_caller]
    pub fn new(parts: Parts<'_>) -> Quorum {
        let Parts { gate, accumulators, tokens, global_step, local_step, whole, patience } = parts;
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
            // It comes back for a token, and has taken one of those that are there.
            rejoin: {
                let old = size.read();
                let new = (&old + 1.0).minimum(whole);
                let grown = g.fill((&new - &old).expand_dims(0), global_step.read());
                let put = g.op("QueueEnqueueManyV2").input(tokens).list(&[grown]).operation();
                g.control_dependencies(&[put], || size.assign(&new))
            },
            // Whoever waits for it in this step need not.
            leave: g.control_dependencies(&[less], || gate.counter.count_in(local_step)),
            look: look(gate.counter.pending(), g.pack(&held, 0).min_all()),
            shrink: {
                let is_missed = global_step.read().equal(&missed_step);
                size.assign(is_missed.select(&new_size, size.read()))
            },
            stand_in: gate.counter.count_in(&missed_step),
            new_size,
            missed_step,
            patience,
        })
    }

    /// A replica is there: for the first time, or started again.
    pub fn join(&self, session: &GraphSession) -> Result<()> {
        match session.run(self.is_set.scalar::<bool>())? {
            true => session.run(&self.join),
            // The chief, who has it start with everybody, is still to come.
            false => Ok(()),
        }
    }

    /// A replica that was given up is there after all.
    pub fn rejoin(&self, session: &GraphSession) -> Result<()> {
        session.run(&self.rejoin)
    }

    /// A replica leaves in an orderly way.
    pub fn leave(&self, session: &GraphSession) -> Result<()> {
        session.run(&self.leave)
    }

    /// The step is made by those that are there.
    fn go_on(&self, session: &GraphSession, step: i64, there: i32) -> Result<()> {
        let (size, step) = (Tensor::scalar(there.min(self.whole)), Tensor::scalar(step));
        let fed = [(&self.new_size, size), (&self.missed_step, step.clone())];
        session.run_fed(fed, &self.shrink)?;
        // The gate may wait for more than the quorum is now. Those too many are dropped.
        for _ in 0..self.whole {
            session.run_fed((&self.missed_step, step.clone()), &self.stand_in)?;
        }
        Ok(())
    }
}

/// The chief's watch over the steps: looks now and then whether one gets on.
pub(super) struct Watch<'a> {
    quorum: &'a Quorum,
    /// Puts out tokens.
    put: &'a Operation,
    step: i64,
    /// Since when nothing has been done about that step.
    began: Instant,
    /// Since when replicas have been waiting for others in it.
    waiting: Option<Instant>,
    tries: u32,
}

impl<'a> Watch<'a> {
    pub fn new(quorum: &'a Quorum, put: &'a Operation) -> Watch<'a> {
        Watch { quorum, put, step: -1, began: Instant::now(), waiting: None, tries: 0 }
    }

    /// How often to look.
    pub fn interval(&self) -> Duration {
        self.quorum.patience / 4
    }

    /// Looks, and helps a step along that does not get on. `usual` is how long one takes.
    pub fn look(&mut self, session: &GraphSession, usual: Duration) -> Result<()> {
        let Look { counted, held, size, tokens, step } = &self.quorum.look;
        let counts = [counted.scalar::<i32>(), held.scalar(), size.scalar(), tokens.scalar()];
        let (counts, step) = session.run((counts, step.scalar::<i64>()))?;
        let [counted, held, size, tokens] = counts[..] else { return Ok(()) };
        if step != self.step {
            *self = Watch { step, ..Watch::new(self.quorum, self.put) };
        }
        // One that has left is counted in without gradients.
        let there = counted.min(held);
        if there > 0 {
            let since = *self.waiting.get_or_insert_with(Instant::now);
            if since.elapsed() < self.quorum.patience {
                return Ok(());
            }
            self.waiting = None;
            tracing::warn!(
                "step {step} goes on with {there} of {size} replicas: the others are silent"
            );
            return self.quorum.go_on(session, step, there);
        }
        self.waiting = None;
        // They may all be computing still: a token too many has one compute in vain.
        let limit = self
            .quorum
            .patience
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
    pub fn size(&self, session: &GraphSession) -> i32 {
        session.run(self.look.size.scalar::<i32>()).unwrap()
    }
}
