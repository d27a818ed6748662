//! Estimators on the cluster that the environment variable TF_CONFIG describes.

use super::train_and_evaluate::run_as;
use super::{Estimator, EvalSpec, Model, Opener, Role, RunConfig, Scores, TrainSpec};
use crate::background_server::BackgroundServer;
use crate::device::ReplicaDeviceSetter;
use crate::session::Session;
use ferroflow_cluster::{ConnectOptions, ServerOptions, TfConfig};
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
/// TF_CONFIG may have more keys. `model_dir` is the folder of checkpoints, if `config` names none.
/// `session_master` (or `session_master_target`) is the server whose master runs the sessions.
/// `rpc_layer` is `grpc` or `grpcs`.
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
    let config = match task {
        Some(task) => config.in_dir_of(task)?,
        None => config,
    };
    match task {
        Some(task) if task.cluster.tasks().next().is_some() => {
            task.ensure_one_chief()?;
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
    match task.job.as_str() {
        "evaluator" => {
            return run_as(Role::Evaluator, &estimator, train, eval);
        }
        "ps" => {
            serve(task)?.join()?;
            return Ok(None);
        }
        "chief" | "master" | "worker" => {}
        other => bail!(
            InvalidArgument,
            "TF_CONFIG: task.type {other:?} is none of chief, worker, ps and evaluator"
        ),
    }
    let is_chief = task.is_chief();
    let server = serve(task)?;
    let ps = task.cluster.tasks().filter(|(job, _, _)| *job == "ps").count();
    let here = format!("/job:{}/task:{}", task.job, task.task);
    let ps = u32::try_from(ps).map_err(|_| err!(InvalidArgument, "too many ps tasks"))?;
    let devices = ReplicaDeviceSetter::new(ps).worker(&here);
    let master = task.master_target()?;
    let open: Opener = Arc::new(move |graph| {
        let session = match &master {
            None => server.session(graph, &["/job:ps", &here])?,
            Some(target) => {
                let device_filters = vec!["/job:ps".to_string(), here.clone()];
                let options = ConnectOptions { device_filters, ..ConnectOptions::default() };
                // The server of this process is a task of that session.
                let _serving = &server;
                Session::connect_with(target, graph, &options)?
            }
        };
        Ok(session.with_timeout(STEP_TIMEOUT))
    });
    let estimator = estimator.trained_by(config.replica(devices, is_chief), open);
    run_as(Role::Trainer, &estimator, train, eval)
}

fn serve(task: &TfConfig) -> Result<BackgroundServer> {
    BackgroundServer::start(ServerOptions::of(task))
}
