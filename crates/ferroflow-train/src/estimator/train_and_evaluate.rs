//! Training with evaluation: alternating in one process, or concurrent in the tasks of a cluster.

use super::{Batch, Estimator, Scores, ServingInput, Until};
use crate::graph::Graph;
use crate::hooks::{Hook, Ran};
use crate::saver::latest_checkpoint;
use ferroflow_core::{Result, bail};
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::{Duration, Instant};

type Input = Arc<dyn Fn(&Graph) -> Batch + Send + Sync>;
type Serving = Arc<dyn Fn(&Graph) -> ServingInput + Send + Sync>;

/// Training input and final step.
#[derive(Clone)]
pub struct TrainSpec {
    input: Input,
    last_step: i64,
}

impl TrainSpec {
    /// Trains on `input` until the global step is `last_step`.
    pub fn new(
        input: impl Fn(&Graph) -> Batch + Send + Sync + 'static,
        last_step: i64,
    ) -> TrainSpec {
        TrainSpec { input: Arc::new(input), last_step }
    }
}

/// Evaluation input and exports.
#[derive(Clone)]
pub struct EvalSpec {
    input: Input,
    steps: Option<u64>,
    exports: Vec<(String, Serving)>,
    wait: Duration,
}

impl EvalSpec {
    /// Evaluates on all batches of `input`.
    pub fn new(input: impl Fn(&Graph) -> Batch + Send + Sync + 'static) -> EvalSpec {
        let wait = Duration::from_secs(24 * 3600);
        EvalSpec { input: Arc::new(input), steps: None, exports: Vec::new(), wait }
    }

    /// Limits an evaluation to this many batches.
    #[must_use]
    pub fn steps(mut self, steps: u64) -> EvalSpec {
        self.steps = Some(steps);
        self
    }

    /// Exports the last checkpoint to `export/name` in the estimator's directory.
    #[must_use]
    pub fn export(
        mut self,
        name: &str,
        serving: impl Fn(&Graph) -> ServingInput + Send + Sync + 'static,
    ) -> EvalSpec {
        self.exports.push((name.into(), Arc::new(serving)));
        self
    }

    /// Time that an evaluator waits for the next checkpoint before it fails; the default is a day.
    #[must_use]
    pub fn wait(mut self, wait: Duration) -> EvalSpec {
        self.wait = wait;
        self
    }
}

/// The role of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Trains, and evaluates every checkpoint after writing it.
    Alone,
    /// Trains as a task of a cluster.
    Trainer,
    /// Evaluates the checkpoints that other processes write, up to the last one.
    Evaluator,
}

/// Trains and evaluates, as `role` says. Returns the last scores, if this process evaluates.
pub fn run_as(
    role: Role,
    estimator: &Estimator,
    train: &TrainSpec,
    eval: &EvalSpec,
) -> Result<Option<Scores>> {
    let until = Until::GlobalStep(train.last_step);
    match role {
        Role::Trainer => {
            estimator.train_with(&*train.input, until, Vec::new())?;
            Ok(None)
        }
        Role::Evaluator => evaluate_all(estimator, train.last_step, eval).map(Some),
        Role::Alone => {
            let scores = Arc::default();
            let hook = EvaluateCheckpoints {
                estimator: estimator.clone(),
                eval: eval.clone(),
                scores: Arc::clone(&scores),
            };
            estimator.train_with(&*train.input, until, vec![Box::new(hook)])?;
            let last: Option<Scores> = scores.lock().take();
            let last = match last {
                Some(scores) => scores,
                // Training was already complete.
                None => evaluate_one(estimator, &estimator.latest_checkpoint()?, eval)?,
            };
            export(estimator, eval)?;
            Ok(Some(last))
        }
    }
}

fn evaluate_one(estimator: &Estimator, checkpoint: &str, eval: &EvalSpec) -> Result<Scores> {
    estimator.evaluate_checkpoint(checkpoint, &*eval.input, eval.steps, "eval")
}

fn export(estimator: &Estimator, eval: &EvalSpec) -> Result<()> {
    for (name, serving) in &eval.exports {
        let checkpoint = estimator.latest_checkpoint()?;
        let dir = estimator.dir().join("export").join(name);
        estimator.export_checkpoint(&checkpoint, &dir, &**serving)?;
    }
    Ok(())
}

/// Evaluates every checkpoint when it is written.
struct EvaluateCheckpoints {
    estimator: Estimator,
    eval: EvalSpec,
    scores: Arc<Mutex<Option<Scores>>>,
}

impl Hook for EvaluateCheckpoints {
    fn after(&mut self, _: &mut Ran<'_>) -> Result<()> {
        Ok(())
    }

    fn saved(&mut self, checkpoint: &str, _: i64) -> Result<()> {
        let scores = evaluate_one(&self.estimator, checkpoint, &self.eval)?;
        *self.scores.lock() = Some(scores);
        Ok(())
    }
}

/// Evaluates checkpoints that other processes write, until the one of the last step.
fn evaluate_all(estimator: &Estimator, last_step: i64, eval: &EvalSpec) -> Result<Scores> {
    /// Interval between two checks for a new checkpoint.
    const POLL: Duration = Duration::from_millis(200);
    let mut seen: Option<String> = None;
    let mut since = Instant::now();
    loop {
        let latest = latest_checkpoint(estimator.dir());
        match latest.filter(|path| Some(path) != seen.as_ref()) {
            Some(path) => {
                let scores = match evaluate_one(estimator, &path, eval) {
                    // The trainer rotated this checkpoint out before it was read.
                    Err(_) if latest_checkpoint(estimator.dir()).is_some_and(|p| p != path) => {
                        continue;
                    }
                    scores => scores?,
                };
                if scores.get("global_step").is_some_and(|step| *step >= last_step as f64) {
                    export(estimator, eval)?;
                    return Ok(scores);
                }
                seen = Some(path);
                since = Instant::now();
            }
            None if since.elapsed() > eval.wait => bail!(
                DeadlineExceeded,
                "no new checkpoint in {} for {:?}",
                estimator.dir().display(),
                eval.wait
            ),
            None => std::thread::sleep(POLL),
        }
    }
}
