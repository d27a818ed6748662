//! How many replicas a step waits for, and what changes that.
//!
//! A replica counts itself in at the gate, an accumulator beside the global step, once it has handed over all
//! its gradients. The chief takes none until the gate has counted as many replicas as are to be aggregated, so
//! one that dies half-way leaves no step half-made. The chief's wait is never cut short, which might leave one
//! half-made, too: where replicas are missing for too long, the chief counts them in itself, and the step is
//! made by those that are there.

use super::accumulator::Accumulator;
use crate::graph::Graph;
use crate::output::{Operation, Output};
use crate::session::GraphSession;
use crate::variable::{Variable, VariableOptions};
use ferroflow_core::Result;
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
            // It may have shrunk since. Who has joined since is for the next step.
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
    leave: Operation,
    look: Look,
    new_size: Output,
    /// Sets the size to what `new_size` is fed with.
    shrink: Operation,
    missed_step: Output,
    /// Counts in a replica that is missing in the step that `missed_step` is fed with, unless that was made.
    stand_in: Operation,
    patience: Duration,
}

/// How a step stands.
#[derive(Clone, Debug)]
struct Look {
    /// How many replicas the gate has counted.
    there: Output,
    /// How many gradients the fullest accumulator has.
    held: Output,
    size: Output,
    /// The global step; read after the others, so they are not of a later one.
    step: Output,
}

impl Quorum {
    #[track_caller]
    pub fn new(
        gate: &Gate,
        whole: i32,
        accumulators: &[Accumulator],
        global_step: &Variable,
        local_step: &Variable,
        patience: Duration,
    ) -> Quorum {
        let (g, size) = (global_step.graph(), &gate.size);
        let there = gate.counter.pending();
        let held: Vec<Output> = accumulators.iter().map(Accumulator::pending).collect();
        let held = g.pack(&held, 0).max_all();
        let read = [there.operation(), held.operation()];
        let step = g.control_dependencies(&read, || global_step.read());
        let new_size = g.placeholder::<i32>("new_quorum", ());
        let missed_step = g.placeholder::<i64>("missed_step", ());
        let less = size.assign((size.read() - 1.0).maximum(1));
        Quorum {
            is_set: size.is_initialized(),
            whole,
            join: size.assign((size.read() + 1.0).minimum(whole)),
            // Whoever waits for it in this step need not.
            leave: g.control_dependencies(&[less], || gate.counter.count_in(local_step)),
            look: Look { there, held, size: size.read(), step },
            shrink: size.assign(&new_size),
            new_size,
            stand_in: gate.counter.count_in(&missed_step),
            missed_step,
            patience,
        }
    }

    /// A replica is there, for the first time or again.
    pub fn join(&self, session: &GraphSession) -> Result<()> {
        match session.run(self.is_set.scalar::<bool>())? {
            true => session.run(&self.join),
            // The chief, who has it start with everybody, is still to come.
            false => Ok(()),
        }
    }

    /// A replica leaves in an orderly way.
    pub fn leave(&self, session: &GraphSession) -> Result<()> {
        session.run(&self.leave)
    }

    /// The step is made by those that are there.
    fn go_on(&self, session: &GraphSession, step: i64, there: i32) -> Result<()> {
        session.run_fed((&self.new_size, there.min(self.whole)), &self.shrink)?;
        // How many the gate waits for may be more than the quorum is now. Those too many are dropped.
        for _ in there..self.whole {
            session.run_fed((&self.missed_step, step), &self.stand_in)?;
        }
        Ok(())
    }
}

/// The chief's watch over the steps: looks now and then whether one lacks replicas.
pub(super) struct Watch<'a> {
    quorum: &'a Quorum,
    /// Has everybody compute the step again.
    again: &'a Operation,
    step: i64,
    /// When something of that step was first seen to be there, or last done about it.
    since: Option<Instant>,
    tries: u32,
}

impl<'a> Watch<'a> {
    pub fn new(quorum: &'a Quorum, again: &'a Operation) -> Watch<'a> {
        Watch { quorum, again, step: -1, since: None, tries: 0 }
    }

    /// How often to look.
    pub fn interval(&self) -> Duration {
        self.quorum.patience / 4
    }

    /// Looks, and helps a step along whose replicas have waited for others too long.
    pub fn look(&mut self, session: &GraphSession) -> Result<()> {
        let Look { there, held, size, step } = &self.quorum.look;
        let counts = [there.scalar::<i32>(), held.scalar(), size.scalar()];
        let (counts, step) = session.run((counts, step.scalar::<i64>()))?;
        let [there, held, size] = counts[..] else { return Ok(()) };
        if step != self.step {
            (self.step, self.since, self.tries) = (step, None, 0);
        }
        // While all compute nobody waits for anybody, however long that takes.
        if there == 0 && held == 0 {
            self.since = None;
            return Ok(());
        }
        let since = *self.since.get_or_insert_with(Instant::now);
        if since.elapsed() < self.quorum.patience.saturating_mul(1 << self.tries.min(8)) {
            return Ok(());
        }
        (self.since, self.tries) = (Some(Instant::now()), self.tries + 1);
        if there > 0 {
            tracing::warn!(
                "step {step} goes on with {there} of {size} replicas: the others are silent"
            );
            return self.quorum.go_on(session, step, there);
        }
        // A replica died half-way, or the chief did and left half a step.
        tracing::warn!("step {step} is computed again: gradients are missing");
        session.run(self.again)
    }
}

#[cfg(test)]
impl Quorum {
    pub fn size(&self, session: &GraphSession) -> i32 {
        session.run(self.look.size.scalar::<i32>()).unwrap()
    }
}
