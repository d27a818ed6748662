//! `ferroflow train`: the main job, with nothing to set up.

mod cluster;
mod data;
mod images;
mod loss_chart;
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
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    steps: Option<i64>,
    /// Examples of a worker's step
    #[arg(long, value_name = "B")]
    batch: Option<usize>,
    /// How far a step goes; what suits the model, if not given
    #[arg(long, value_name = "RATE", visible_alias = "lr", allow_negative_numbers = true)]
    learning_rate: Option<f32>,
    /// Images for mlp and cnn: a directory with the files of MNIST (idx), CIFAR-10 (binary) or SVHN (32x32
    /// .mat); without it, the handwritten digits that come with this command
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Where checkpoint, events and picture go; ferroflow-out/MODEL if not given
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Report in JSON, one object per line
    #[arg(long)]
    json: bool,
    /// Seed of data and initial values
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    seed: i64,
    /// Global steps between checkpoints; a tenth of all, if not given
    #[arg(long, value_name = "N")]
    save_steps: Option<i64>,
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

    /// How far a step goes, unless told otherwise.
    pub fn learning_rate(self) -> f32 {
        match self {
            Model::Linear => 0.01,
            Model::Mlp | Model::Cnn => 0.002,
            Model::Embedding => 0.5,
        }
    }
}

impl Args {
    fn steps(&self) -> i64 {
        self.steps.unwrap_or(match self.model {
            Model::Linear => 2000,
            Model::Mlp => 800,
            Model::Cnn => 600,
            Model::Embedding => 1500,
        })
    }

    fn batch(&self) -> usize {
        self.batch.unwrap_or(self.model.batch())
    }

    fn learning_rate(&self) -> f32 {
        self.learning_rate.unwrap_or(self.model.learning_rate())
    }

    /// Often enough that losing a server costs little.
    fn save_steps(&self) -> i64 {
        self.save_steps.unwrap_or((self.steps() / 10).max(50)).max(1)
    }

    fn out(&self) -> PathBuf {
        self.out.clone().unwrap_or_else(|| {
            // Models of other data are other models.
            let data = self.data.as_ref().and_then(|d| d.file_name());
            let data = data.map(|d| format!("-{}", d.to_string_lossy())).unwrap_or_default();
            PathBuf::from("ferroflow-out").join(format!("{}{data}", self.model.name()))
        })
    }

    /// The model and its data, for people.
    fn what(&self) -> String {
        match &self.data {
            Some(data) => format!("{} on the images in {}", self.model.name(), data.display()),
            None => self.model.name().into(),
        }
    }

    /// What the model reaches on data it was not trained on, with nothing but defaults.
    fn goal(&self) -> Option<(&'static str, &'static str)> {
        let is_default = self.steps.is_none()
            && self.batch.is_none()
            && self.learning_rate.is_none()
            && self.data.is_none();
        is_default.then_some(match self.model {
            Model::Linear => ("W and b within", "0.05 of 2 and 10"),
            Model::Mlp => ("test accuracy at least", "0.9"),
            Model::Cnn => ("test accuracy at least", "0.9"),
            Model::Embedding => ("test loss at most", "0.1"),
        })
    }
}

pub fn run(args: Args) -> Result<()> {
    let wrong = |text: &str| Err(Error::new(Code::InvalidArgument, text));
    if args.steps() < 1 || args.batch() < 1 {
        return wrong("--steps and --batch must be at least 1");
    }
    if !args.learning_rate().is_finite() || args.learning_rate() <= 0.0 {
        return wrong("--learning-rate must be a number above 0");
    }
    if args.workers < 1 || args.ps < 1 {
        return wrong(
            "--ps and --workers must be at least 1; --local trains in this process alone",
        );
    }
    if args.data.is_some() && !matches!(args.model, Model::Mlp | Model::Cnn) {
        let name = args.model.name();
        return wrong(&format!("--data is for mlp and cnn: {name} makes up its own data"));
    }
    if args.out().exists() && !args.out().is_dir() {
        return wrong(&format!("--out {}: not a directory", args.out().display()));
    }
    if args.data.is_some() && args.cluster.is_none() {
        // Here rather than in every worker.
        images::ImageSet::load(args.data.as_deref())?;
    }
    match (&args.cluster, args.local) {
        (Some(_), _) => cluster::work(&args),
        (None, true) => run::local(&args),
        (None, false) => cluster::lead(&args),
    }
}
