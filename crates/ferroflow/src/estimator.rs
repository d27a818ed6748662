//! Estimators of this process, and of the cluster that TF_CONFIG describes.

use crate::background_server::BackgroundServer;
use crate::{ServerOptions, default_catalog, local_session};
use ferroflow_cluster::TfConfig;
use ferroflow_core::{Result, bail, err};
use ferroflow_train::ReplicaDeviceSetter;
use ferroflow_train::estimator::{
    self, Estimator, EvalSpec, Model, Opener, Role, RunConfig, Scores, TrainSpec,
};
use std::sync::Arc;
use std::time::Duration;

/// An estimator whose sessions are of this process.
///
/// ```
/// use ferroflow::prelude::*;
/// use ferroflow::train::estimator::{ArrayInput, LinearRegressor, RunConfig, Until};
/// use ferroflow::train::feature_column::numeric;
///
/// # let dir = std::env::temp_dir().join(format!("ferroflow-doc-estimator-{}", std::process::id()));
/// let data = ArrayInput::new(&[("x", Tensor::vector(&[0.0f32, 1.0, 2.0]))])
///     .labels(Tensor::vector(&[1.0f32, 3.0, 5.0]));
/// let model = LinearRegressor::new(vec![numeric("x").into()]).optimizer(Sgd::new(0.1));
/// let estimator = ferroflow::estimator(model, RunConfig::new(&dir));
/// estimator.train(|g| data.clone().epochs(None).batches(g), Until::Steps(200))?;
/// let scores = estimator.evaluate(|g| data.batches(g), None)?;
/// assert!(scores["loss"] < 0.01);
/// # std::fs::remove_dir_all(&dir).unwrap();
/// # Ok::<(), ferroflow::Error>(())
/// ```
pub fn estimator(model: impl Model + 'static, config: RunConfig) -> Estimator {
    Estimator::new(model, config, default_catalog(), Arc::new(local_session))
}

/// Trains and evaluates as one task of the cluster that the environment variable TF_CONFIG describes, or
/// alone if there is none. Every task of the cluster runs the same program:
///
/// - `chief`, or worker 0 where there is no chief, trains, saves and initializes; `worker`s train;
/// - a `ps` serves until it is told to end;
/// - an `evaluator`, which is not in the cluster, evaluates each checkpoint until the last.
///
/// Returns the last scores, if this task evaluates.
pub fn train_and_evaluate(
    model: impl Model + 'static,
    config: RunConfig,
    train: &TrainSpec,
    eval: &EvalSpec,
) -> Result<Option<Scores>> {
    match TfConfig::from_env()? {
        Some(task) if task.cluster.tasks().next().is_some() => {
            run_task(&task, estimator(model, config.clone()), config, train, eval)
        }
        _ => {
            let estimator = estimator(model, config);
            estimator::train_and_evaluate(&estimator, Role::Alone, train, eval)
        }
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
            return estimator::train_and_evaluate(&estimator, Role::Evaluator, train, eval);
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
    estimator::train_and_evaluate(&estimator, Role::Trainer, train, eval)
}

fn serve(task: &TfConfig) -> Result<BackgroundServer> {
    BackgroundServer::start(ServerOptions::of(task))
}
