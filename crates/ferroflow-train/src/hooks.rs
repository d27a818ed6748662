//! What is done with every step of a monitored session.

use crate::events::EventWriter;
use crate::output::Output;
use crate::session::GraphSession;
use ferroflow_core::{Result, Tensor, bail};
use std::time::Instant;

/// Something to do with each step. All methods are called by the thread that trains.
pub trait Hook: Send {
    /// A session was opened, for the first time or again.
    fn created(&mut self, _session: &GraphSession, _step: i64) -> Result<()> {
        Ok(())
    }

    /// What it wants to see of the next step.
    fn fetches(&self) -> Vec<Output> {
        Vec::new()
    }

    /// A step was run.
    fn after(&mut self, ran: &mut Ran<'_>) -> Result<()>;

    /// Training ends.
    fn end(&mut self, _step: i64) -> Result<()> {
        Ok(())
    }
}

/// A step that was run.
pub struct Ran<'a> {
    /// The global step after it.
    pub step: i64,
    /// What the hook asked for.
    pub values: &'a [Tensor],
    /// Where summaries go; none if this is not the chief, or there is no directory.
    pub events: Option<&'a mut EventWriter>,
    /// Set to end training.
    pub stop: bool,
}

/// Stops when the global step reaches a number.
pub struct StopAtStep(pub i64);

impl Hook for StopAtStep {
    fn after(&mut self, ran: &mut Ran<'_>) -> Result<()> {
        ran.stop |= ran.step >= self.0;
        Ok(())
    }
}

/// Fails when the loss is no longer a number.
pub struct NanGuard {
    loss: Output,
}

impl NanGuard {
    pub fn new(loss: &Output) -> NanGuard {
        NanGuard { loss: loss.clone() }
    }
}

impl Hook for NanGuard {
    fn fetches(&self) -> Vec<Output> {
        vec![self.loss.clone()]
    }

    fn after(&mut self, ran: &mut Ran<'_>) -> Result<()> {
        if ran.values[0].scalar_value::<f32>()?.is_nan() {
            bail!(Internal, "NaN loss during training, at step {}", ran.step);
        }
        Ok(())
    }
}

/// Writes a summary, every so many steps.
pub struct SummarySaver {
    summary: Output,
    every: i64,
    next: i64,
}

impl SummarySaver {
    pub fn new(summary: &Output, every: i64) -> SummarySaver {
        SummarySaver { summary: summary.clone(), every: every.max(1), next: 0 }
    }
}

impl Hook for SummarySaver {
    fn fetches(&self) -> Vec<Output> {
        vec![self.summary.clone()]
    }

    fn after(&mut self, ran: &mut Ran<'_>) -> Result<()> {
        let step = ran.step;
        if step >= self.next
            && let Some(events) = &mut ran.events
        {
            events.summary(&ran.values[0], step)?;
            self.next = step + self.every;
        }
        Ok(())
    }
}

/// Writes how many steps are made in a second, every so many of them.
pub struct StepCounter {
    every: i64,
    since: Option<(i64, Instant)>,
}

impl StepCounter {
    pub fn new(every: i64) -> StepCounter {
        StepCounter { every: every.max(1), since: None }
    }
}

impl Hook for StepCounter {
    fn after(&mut self, ran: &mut Ran<'_>) -> Result<()> {
        let (from, at) = *self.since.get_or_insert((ran.step, Instant::now()));
        if ran.step - from >= self.every {
            let rate = (ran.step - from) as f64 / at.elapsed().as_secs_f64();
            if let Some(events) = &mut ran.events {
                events.scalar("global_step/sec", rate as f32, ran.step)?;
            }
            self.since = Some((ran.step, Instant::now()));
        }
        Ok(())
    }
}

/// Calls a function with the values of some tensors after every step.
pub struct Observe<F> {
    outputs: Vec<Output>,
    tell: F,
}

impl<F: FnMut(i64, &[Tensor]) + Send> Observe<F> {
    pub fn new(outputs: &[Output], tell: F) -> Observe<F> {
        Observe { outputs: outputs.to_vec(), tell }
    }
}

impl<F: FnMut(i64, &[Tensor]) + Send> Hook for Observe<F> {
    fn fetches(&self) -> Vec<Output> {
        self.outputs.clone()
    }

    fn after(&mut self, ran: &mut Ran<'_>) -> Result<()> {
        (self.tell)(ran.step, ran.values);
        Ok(())
    }
}
