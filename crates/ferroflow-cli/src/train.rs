//! `ferroflow train`: the main job, with nothing to set up.

mod cluster;
mod curve;
mod data;
mod measure;
mod model;
mod progress;
mod run;

pub use measure::measured;

use clap::ValueEnum;
use ferroflow::{Code, Error, Result};
use std::path::PathBuf;

/// Train a model, with nothing to set up
///
/// Without flags: linear regression of y = 2x + 10 by one parameter server and two workers, real processes
/// on this machine, in step. Leaves a checkpoint, TensorBoard events and a picture of the loss in --out;
/// run again, it goes on from there. Ctrl-C leaves a checkpoint, too.
#[derive(clap::Args, Clone, Debug)]
#[command(
    after_help = "Examples:\n  ferroflow train\n  ferroflow train mlp --local\n  ferroflow train cnn --workers 2 --async"
)]
pub struct Args {
    /// What to train
    #[arg(value_enum, default_value_t = Model::Linear)]
    model: Model,
    /// In this process alone
    #[arg(long, conflicts_with_all = ["ps", "workers", "sync", "asynchronous"])]
    local: bool,
    /// Parameter servers
    #[arg(long, value_name = "P", default_value_t = 1)]
    ps: usize,
    /// Workers
    #[arg(long, value_name = "W", default_value_t = 2)]
    workers: usize,
    /// Workers train in step: each global step is the mean of all their gradients (the default)
    #[arg(long, conflicts_with = "asynchronous")]
    sync: bool,
    /// Every worker applies its own gradients at once
    #[arg(long = "async")]
    asynchronous: bool,
    /// Global steps to train
    #[arg(long, value_name = "N")]
    steps: Option<i64>,
    /// Examples of a worker's step
    #[arg(long, value_name = "B")]
    batch: Option<usize>,
    /// Where checkpoint, events and picture go; ferroflow-out/MODEL if not given
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Report in JSON, one object per line
    #[arg(long)]
    json: bool,
    /// Seed of data and initial values
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    seed: i64,
    /// The cluster this process is a worker of
    #[arg(long, hide = true, requires = "task")]
    cluster: Option<String>,
    /// Which worker of the cluster this process is
    #[arg(long, hide = true)]
    task: Option<u32>,
}

#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Model {
    /// y = 2x + 10, with noise
    Linear,
    /// Handwritten digits, with a hidden layer
    Mlp,
    /// Handwritten digits, with convolutions
    Cnn,
    /// Ratings of items by users, with an embedding of each
    Embedding,
}

impl Model {
    pub fn name(self) -> &'static str {
        match self {
            Model::Linear => "linear",
            Model::Mlp => "mlp",
            Model::Cnn => "cnn",
            Model::Embedding => "embedding",
        }
    }

    /// Examples of a step, unless told otherwise.
    pub fn batch(self) -> usize {
        match self {
            Model::Linear => 10,
            Model::Mlp | Model::Cnn => 64,
            Model::Embedding => 256,
        }
    }
}

impl Args {
    fn steps(&self) -> i64 {
        self.steps.unwrap_or(match self.model {
            Model::Linear => 2000,
            Model::Mlp => 800,
            Model::Cnn => 400,
            Model::Embedding => 1500,
        })
    }

    fn batch(&self) -> usize {
        self.batch.unwrap_or(self.model.batch())
    }

    fn out(&self) -> PathBuf {
        self.out.clone().unwrap_or_else(|| PathBuf::from("ferroflow-out").join(self.model.name()))
    }
}

pub fn run(args: Args) -> Result<()> {
    let wrong = |text: &str| Err(Error::new(Code::InvalidArgument, text));
    if args.steps() < 1 || args.batch() < 1 {
        return wrong("--steps and --batch must be at least 1");
    }
    if args.workers < 1 || args.ps < 1 {
        return wrong(
            "--ps and --workers must be at least 1; --local trains in this process alone",
        );
    }
    match (&args.cluster, args.local) {
        (Some(_), _) => cluster::work(&args),
        (None, true) => run::local(&args),
        (None, false) => cluster::lead(&args),
    }
}
