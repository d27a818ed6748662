//! Hooks: code that a monitored session runs with every step.
//!
//! ```
//! use ferroflow_train::hooks::{Hook, Ran};
//! /// Ends training after a minute.
//! struct Minute(std::time::Instant);
//! impl Hook for Minute {
//!     fn after(&mut self, ran: &mut Ran<'_>) -> ferroflow_core::Result<()> {
//!         ran.stop |= self.0.elapsed().as_secs() >= 60;
//!         Ok(())
//!     }
//! }
//! ```

use crate::checkpoint_state::write_whole;
use crate::events::{EventWriter, file_error};
use crate::output::Output;
use crate::session::Session;
use ferroflow_core::{DType, Result, Tensor, bail, bf16, f16};
use ferroflow_graph::RunMetadata;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Code that runs with each step. The training thread calls all methods.
pub trait Hook: Send {
    /// Called after a session is opened, the first time or again.
    fn created(&mut self, _session: &Session, _step: i64) -> Result<()> {
        Ok(())
    }

    /// The tensors to fetch in the next step, after the global step `step`.
    fn fetches(&self, _step: i64) -> Vec<Output> {
        Vec::new()
    }

    /// Whether to trace the next step, after the global step `step`.
    fn traces(&self, _step: i64) -> bool {
        false
    }

    /// Called after each step.
    fn after(&mut self, ran: &mut Ran<'_>) -> Result<()>;

    /// Called after a checkpoint is written.
    fn saved(&mut self, _checkpoint: &str, _step: i64) -> Result<()> {
        Ok(())
    }

    /// Called when training ends.
    fn end(&mut self, _step: i64) -> Result<()> {
        Ok(())
    }
}

/// A completed step.
pub struct Ran<'a> {
    /// The global step after it.
    pub step: i64,
    /// The values of the hook's tensors.
    pub values: &'a [Tensor],
    /// The event writer; `None` if this is not the chief, or without a directory.
    pub events: Option<&'a mut EventWriter>,
    /// The trace of the step; empty unless a hook asked for it.
    pub metadata: &'a RunMetadata,
    /// Set to end training.
    pub stop: bool,
}

/// Stops when the global step reaches a number.
///
/// ```
/// # let g = ferroflow_train::Graph::new();
/// use ferroflow_train::{MonitoredTraining, Optimizer, Sgd, hooks::StopAtStep};
/// let w = g.variable("w", 0.0);
/// let loss = (&*w - 3.0).square();
/// let train = Sgd::new(0.1).minimize_counted(&loss, &g.global_step());
/// let training = MonitoredTraining::new(&g, &train).hook(StopAtStep(1000));
/// ```
pub struct StopAtStep(pub i64);

impl Hook for StopAtStep {
    fn after(&mut self, ran: &mut Ran<'_>) -> Result<()> {
        ran.stop |= ran.step >= self.0;
        Ok(())
    }
}

/// Fails, or ends training, when the loss is NaN.
///
/// ```
/// # let g = ferroflow_train::Graph::new();
/// use ferroflow_train::{MonitoredTraining, Optimizer, Sgd, hooks::NanGuard};
/// let w = g.variable("w", 0.0);
/// let loss = (&*w - 3.0).square();
/// let train = Sgd::new(0.1).minimize_counted(&loss, &g.global_step());
/// let training = MonitoredTraining::new(&g, &train).hook(NanGuard::new(&loss));
/// ```
pub struct NanGuard {
    loss: Output,
    only_stops: bool,
}

impl NanGuard {
    /// Checks this loss.
    pub fn new(loss: &Output) -> NanGuard {
        NanGuard { loss: loss.clone(), only_stops: false }
    }

    /// Ends training without an error instead.
    #[must_use]
    pub fn only_stops(mut self) -> NanGuard {
        self.only_stops = true;
        self
    }
}

impl Hook for NanGuard {
    fn fetches(&self, _: i64) -> Vec<Output> {
        vec![self.loss.clone()]
    }

    fn after(&mut self, ran: &mut Ran<'_>) -> Result<()> {
        if !has_nan(&ran.values[0])? {
            return Ok(());
        }
        if !self.only_stops {
            bail!(Internal, "NaN loss during training, at step {}", ran.step);
        }
        ran.stop = true;
        Ok(())
    }
}

fn has_nan(t: &Tensor) -> Result<bool> {
    Ok(match t.dtype() {
        DType::Float => t.as_slice::<f32>()?.iter().any(|x| x.is_nan()),
        DType::Double => t.as_slice::<f64>()?.iter().any(|x| x.is_nan()),
        DType::Half => t.as_slice::<f16>()?.iter().any(|x| x.is_nan()),
        DType::BFloat16 => t.as_slice::<bf16>()?.iter().any(|x| x.is_nan()),
        _ => false,
    })
}

/// Writes a summary every `steps` steps.
///
/// ```
/// # let g = ferroflow_train::Graph::new();
/// use ferroflow_train::{MonitoredTraining, Optimizer, Sgd, hooks::SummarySaver};
/// let w = g.variable("w", 0.0);
/// let loss = (&*w - 3.0).square();
/// let train = Sgd::new(0.1).minimize_counted(&loss, &g.global_step());
/// ferroflow_train::summary::scalar("loss", &loss);
/// let all = ferroflow_train::summary::merge_all(&g).unwrap();
/// let training = MonitoredTraining::new(&g, &train).hook(SummarySaver::new(&all, 100));
/// ```
pub struct SummarySaver {
    summary: Output,
    every: i64,
    next: i64,
}

impl SummarySaver {
    /// Writes `summary` every `every` steps.
    pub fn new(summary: &Output, every: i64) -> SummarySaver {
        SummarySaver { summary: summary.clone(), every: every.max(1), next: 0 }
    }
}

impl Hook for SummarySaver {
    fn fetches(&self, step: i64) -> Vec<Output> {
        if step >= self.next { vec![self.summary.clone()] } else { Vec::new() }
    }

    fn after(&mut self, ran: &mut Ran<'_>) -> Result<()> {
        let step = ran.step;
        if let (Some(events), [summary]) = (&mut ran.events, ran.values) {
            events.summary(summary, step)?;
            self.next = step + self.every;
        }
        Ok(())
    }
}

/// Writes the steps per second, every `steps` steps.
///
/// ```
/// # let g = ferroflow_train::Graph::new();
/// use ferroflow_train::{MonitoredTraining, Optimizer, Sgd, hooks::StepCounter};
/// let w = g.variable("w", 0.0);
/// let loss = (&*w - 3.0).square();
/// let train = Sgd::new(0.1).minimize_counted(&loss, &g.global_step());
/// let training = MonitoredTraining::new(&g, &train).hook(StepCounter::new(100));
/// ```
pub struct StepCounter {
    every: i64,
    since: Option<(i64, Instant)>,
}

impl StepCounter {
    /// Writes the rate every `every` steps.
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

/// Traces a step at regular intervals. Writes `timeline-STEP.json`, which `chrome://tracing` and
/// Perfetto open, and an event, which TensorBoard shows in the graph.
///
/// ```
/// # let g = ferroflow_train::Graph::new();
/// use ferroflow_train::{MonitoredTraining, Optimizer, Sgd, hooks::Profiler};
/// let w = g.variable("w", 0.0);
/// let loss = (&*w - 3.0).square();
/// let train = Sgd::new(0.1).minimize_counted(&loss, &g.global_step());
/// let training = MonitoredTraining::new(&g, &train).hook(Profiler::new("out/profile", 1000));
/// ```
pub struct Profiler {
    dir: PathBuf,
    every: i64,
    next: i64,
}

impl Profiler {
    /// Writes the files to `dir`. The first traced step is the one after `every`, since the first
    /// steps are not typical.
    pub fn new(dir: impl AsRef<Path>, every: i64) -> Profiler {
        let every = every.max(1);
        Profiler { dir: dir.as_ref().to_path_buf(), every, next: every }
    }
}

impl Hook for Profiler {
    fn created(&mut self, _: &Session, step: i64) -> Result<()> {
        self.next = step + self.every;
        Ok(())
    }

    fn traces(&self, step: i64) -> bool {
        step >= self.next
    }

    fn after(&mut self, ran: &mut Ran<'_>) -> Result<()> {
        if ran.step <= self.next || ran.metadata.is_empty() {
            return Ok(());
        }
        self.next = ran.step + self.every;
        std::fs::create_dir_all(&self.dir).map_err(|e| file_error(&self.dir, &e))?;
        let file = self.dir.join(format!("timeline-{}.json", ran.step));
        write_whole(&file, ran.metadata.timeline()?.as_bytes())?;
        if let Some(events) = &mut ran.events {
            events.trace(&format!("step_{}", ran.step), ran.metadata, ran.step)?;
        }
        Ok(())
    }
}

/// Prints tensors every `steps` steps.
///
/// ```
/// # let g = ferroflow_train::Graph::new();
/// use ferroflow_train::{MonitoredTraining, Optimizer, Sgd, hooks::Logging};
/// let w = g.variable("w", 0.0);
/// let loss = (&*w - 3.0).square();
/// let train = Sgd::new(0.1).minimize_counted(&loss, &g.global_step());
/// let training = MonitoredTraining::new(&g, &train).hook(Logging::new(&[("loss", &loss)], 100));
/// ```
pub struct Logging {
    outputs: Vec<(String, Output)>,
    every: i64,
    since: Option<(i64, Instant)>,
}

impl Logging {
    /// Scalars, and the names to print them with.
    pub fn new(outputs: &[(&str, &Output)], every: i64) -> Logging {
        let outputs = outputs.iter().map(|(name, o)| (name.to_string(), (*o).clone())).collect();
        Logging { outputs, every: every.max(1), since: None }
    }
}

impl Hook for Logging {
    fn fetches(&self, _: i64) -> Vec<Output> {
        self.outputs.iter().map(|(_, o)| o.clone()).collect()
    }

    fn after(&mut self, ran: &mut Ran<'_>) -> Result<()> {
        let now = Instant::now();
        let (from, at) = self.since.unwrap_or((ran.step - self.every, now));
        if ran.step - from < self.every {
            return Ok(());
        }
        let values = self.outputs.iter().zip(ran.values).map(|((name, _), value)| {
            match value.scalar_value::<f32>() {
                Ok(number) => format!("{name} = {number}"),
                Err(_) => format!("{name} = {value:?}"),
            }
        });
        let mut line = format!("step {}: {}", ran.step, values.collect::<Vec<_>>().join(", "));
        if self.since.is_some() {
            line += &format!(" ({:.3} s)", (now - at).as_secs_f64());
        }
        eprintln!("{line}");
        self.since = Some((ran.step, now));
        Ok(())
    }
}

/// Calls a function with the values of some tensors after every step.
///
/// ```
/// # let g = ferroflow_train::Graph::new();
/// use ferroflow_train::{MonitoredTraining, Optimizer, Sgd, hooks::Observe};
/// let w = g.variable("w", 0.0);
/// let loss = (&*w - 3.0).square();
/// let train = Sgd::new(0.1).minimize_counted(&loss, &g.global_step());
/// let show = |step: i64, values: &[ferroflow_core::Tensor]| println!("{step}: {values:?}");
/// let training = MonitoredTraining::new(&g, &train).hook(Observe::new(&[loss.clone()], show));
/// ```
pub struct Observe<F> {
    outputs: Vec<Output>,
    tell: F,
}

impl<F: FnMut(i64, &[Tensor]) + Send> Observe<F> {
    /// Calls `tell` with the values of `outputs`.
    pub fn new(outputs: &[Output], tell: F) -> Observe<F> {
        Observe { outputs: outputs.to_vec(), tell }
    }
}

impl<F: FnMut(i64, &[Tensor]) + Send> Hook for Observe<F> {
    fn fetches(&self, _: i64) -> Vec<Output> {
        self.outputs.clone()
    }

    fn after(&mut self, ran: &mut Ran<'_>) -> Result<()> {
        (self.tell)(ran.step, ran.values);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::graph;

    #[test]
    fn nan_losses_of_all_types_are_found() {
        let g = graph();
        let (loss, metadata) = (g.constant(0.0), RunMetadata::default());
        let see = |mut guard: NanGuard, value: Tensor| {
            let (values, metadata) = ([value], &metadata);
            let mut ran = Ran { step: 7, values: &values, events: None, metadata, stop: false };
            guard.after(&mut ran).map(|()| ran.stop)
        };
        for nan in [Tensor::scalar(f32::NAN), Tensor::scalar(f64::NAN), Tensor::scalar(f16::NAN)] {
            let e = see(NanGuard::new(&loss), nan.clone()).unwrap_err();
            assert!(e.message().contains("step 7"), "{e}");
            assert!(see(NanGuard::new(&loss).only_stops(), nan).unwrap());
        }
        assert!(!see(NanGuard::new(&loss), Tensor::vector(&[1f64, 2.0])).unwrap());
    }
}
