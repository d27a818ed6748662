//! An estimator on a cluster. Every task runs this program, and TF_CONFIG says which task it is:
//! `ps`, `chief`, `worker` or `evaluator`. Without TF_CONFIG this process plays a chief, a worker,
//! a parameter server and an evaluator.
//!
//!     cargo run --release --example estimator_cluster
//!     ferroflow run --ps 1 --workers 2 -- target/release/examples/estimator_cluster

use ferroflow::cluster::{BackgroundServer, ServerOptions, TfConfig, loopback_spec};
use ferroflow::prelude::*;
use ferroflow::train::estimator::{
    ArrayInput, EvalSpec, LinearRegressor, RunConfig, Scores, TrainSpec, train_and_evaluate_as,
};
use ferroflow::train::feature_column::numeric;
use std::path::{Path, PathBuf};

const STEPS: i64 = 200;

/// The part of one task; without a task, all of it in this process.
fn run(task: Option<&TfConfig>, dir: &Path) -> Result<Option<Scores>> {
    let xs: Vec<f32> = (0..64).map(|i| i as f32 / 32.0 - 1.0).collect();
    let ys: Vec<f32> = xs.iter().map(|x| 3.0 * x + 1.0).collect();
    let data = ArrayInput::new(&[("x", xs.into_tensor()?)]).labels(ys.into_tensor()?).batch(16);
    let endless = data.clone().epochs(None).shuffled();
    let train = TrainSpec::new(move |g| endless.batches(g), STEPS);
    let eval = EvalSpec::new(move |g| data.batches(g));
    let model = LinearRegressor::new(vec![numeric("x").into()]).optimizer(Sgd::new(0.1));
    train_and_evaluate_as(task, model, RunConfig::new(dir).seed(1), &train, &eval)
}

/// Plays all tasks of a cluster in this process.
fn play(dir: &Path) -> Result<Scores> {
    let spec = loopback_spec(&[("ps", 1), ("chief", 1), ("worker", 1)])?;
    let _ps = BackgroundServer::start(ServerOptions::new(spec.clone(), "ps", 0))?;
    let start = |job: &str| {
        let (task, dir) =
            (TfConfig { cluster: spec.clone(), job: job.into(), task: 0 }, dir.to_path_buf());
        std::thread::spawn(move || run(Some(&task), &dir))
    };
    let tasks = ["chief", "worker", "evaluator"].map(start);
    let mut scores = None;
    for task in tasks {
        let ended = task.join().map_err(|_| Error::new(Code::Internal, "a task panicked"))??;
        scores = ended.or(scores);
    }
    scores.ok_or_else(|| Error::new(Code::Internal, "the evaluator returned no scores"))
}

pub fn main() -> Result<()> {
    if let Some(task) = TfConfig::from_env()? {
        let dir = std::env::args().nth(1).map_or_else(|| PathBuf::from("out"), PathBuf::from);
        println!("{:?}", run(Some(&task), &dir)?);
        return Ok(());
    }
    let name = format!("ferroflow-estimator-cluster-{}", std::process::id());
    let dir = std::env::temp_dir().join(name);
    let scores = play(&dir)?;
    println!("scores {scores:?}");
    assert!(scores["loss"] < 0.01 && scores["global_step"] >= STEPS as f64);
    let _ = std::fs::remove_dir_all(&dir);
    Ok(())
}
