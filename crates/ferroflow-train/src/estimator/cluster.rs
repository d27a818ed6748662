//! Estimators on the cluster that the environment variable TF_CONFIG describes.

use super::train_and_evaluate::run_as;
use super::{Estimator, EvalSpec, Model, Opener, Role, RunConfig, Scores, TrainSpec};
use crate::background_server::BackgroundServer;
use crate::device::ReplicaDeviceSetter;
use ferroflow_cluster::{ServerOptions, TfConfig};
use ferroflow_core::{Result, bail, err};
use std::sync::Arc;
use std::time::Duration;

/// Trains and evaluates as one task of the cluster that the environment variable TF_CONFIG
/// describes, or alone if there is none. Every task of the cluster runs the same program:
///
/// - `chief`, or worker 0 where there is no chief, trains, saves and initializes; `worker`s train;
/// - a `ps` serves until it receives a signal to end;
/// - an `evaluator`, which is not in the cluster, evaluates each checkpoint until the last.
///
/// Returns the last scores, if this task evaluates.
pub fn train_and_evaluate(
    model: impl Model + 'static,
    config: RunConfig,
    train: &TrainSpec,
    eval: &EvalSpec,
) -> Result<Option<Scores>> {
    train_and_evaluate_as(TfConfig::from_env()?.as_ref(), model, config, train, eval)
}

/// [`train_and_evaluate`] as this task of a cluster, or alone without one.
pub fn train_and_evaluate_as(
    task: Option<&TfConfig>,
    model: impl Model + 'static,
    config: RunConfig,
    train: &TrainSpec,
    eval: &EvalSpec,
) -> Result<Option<Scores>> {
    match task {
        Some(task) if task.cluster.tasks().next().is_some() => {
            run_task(task, Estimator::new(model, config.clone()), config, train, eval)
        }
        _ => run_as(Role::Alone, &Estimator::new(model, config), train, eval),
    }
}

/// How long a step may take before the task looks whether its cluster is still there.
const STEP_TIMEOUT: Duration = Duration::from_secs(600);

fn run_task(
    task: &TfConfig,
    estimator: Estimator,
    config: RunConfig,
    train: &TrainSpec,
    eval: &EvalSpec,
) -> Result<Option<Scores>> {
    let has = |job: &str| task.cluster.tasks().any(|(j, _, _)| j == job);
    let is_chief = match task.job.as_str() {
        "evaluator" => {
            return run_as(Role::Evaluator, &estimator, train, eval);
        }
        "ps" => {
            serve(task)?.join()?;
            return Ok(None);
        }
        "chief" | "master" => true,
        "worker" => task.task == 0 && !has("chief") && !has("master"),
        other => bail!(
            InvalidArgument,
            "TF_CONFIG: task.type {other:?} is none of chief, worker, ps and evaluator"
        ),
    };
    let server = serve(task)?;
    let ps = task.cluster.tasks().filter(|(job, _, _)| *job == "ps").count();
    let here = format!("/job:{}/task:{}", task.job, task.task);
    let ps = u32::try_from(ps).map_err(|_| err!(InvalidArgument, "too many ps tasks"))?;
    let devices = ReplicaDeviceSetter::new(ps).worker(&here);
    let open: Opener = Arc::new(move |graph| {
        let session = server.session(graph, &["/job:ps", &here])?;
        Ok(session.with_timeout(STEP_TIMEOUT))
    });
    let estimator = estimator.trained_by(config.replica(devices, is_chief), open);
    run_as(Role::Trainer, &estimator, train, eval)
}

fn serve(task: &TfConfig) -> Result<BackgroundServer> {
    BackgroundServer::start(ServerOptions::of(task))
}
