//! `ferroflow train`: trains a model without any set-up.

mod cluster;
mod compare;
mod data;
mod images;
mod in_graph;
mod loss_chart;
mod measure;
mod model;
mod progress;
mod run;

pub use measure::measured;

use crate::gpus;
use clap::ValueEnum;
use ferroflow::cluster::TfConfig;
use ferroflow::gpu::Gpu;
use ferroflow::{Code, Error, Result};
use std::path::PathBuf;
use std::sync::Arc;

/// Train a model, without any set-up
///
/// Without flags: linear regression of y = 2x + 10 by one parameter server and two workers, which
/// are processes on this machine and train synchronously. Writes a checkpoint, TensorBoard events
/// and a loss chart to --out. The same command resumes from the checkpoint. Ctrl-C and SIGTERM
/// write a checkpoint first.
///
/// If TF_CONFIG names a task, this process is that task: so `ferroflow run`, Kubernetes and others
/// spread the job over hosts. --out must then be a folder that the chief has whenever it starts.
#[derive(clap::Args, Clone, Debug)]
#[command(
    after_help = "Examples:\n  ferroflow train\n  ferroflow train mlp --local\n  ferroflow train cnn --workers 2 --async\n  \
    ferroflow run --ps 1 --workers 2 -H hosta:2,hostb:1 -- ferroflow train mlp --out /shared/mlp"
)]
pub struct Args {
    /// What to train
    #[arg(value_enum, default_value_t = Model::Linear)]
    model: Model,
    /// Train in this process alone
    #[arg(long, conflicts_with_all = ["ps", "workers", "sync", "asynchronous"])]
    local: bool,
    /// One client and one graph for all workers, which are servers: in-graph replication. By
    /// default each worker has its own client and graph
    #[arg(long, conflicts_with_all = ["local", "backup"])]
    in_graph: bool,
    /// Train on the same examples with one worker and with --workers, synchronously and
    /// asynchronously, between-graph and in-graph, each worker on a core of its own. Prints the
    /// examples per second and draws the losses by time
    #[arg(long, conflicts_with_all = ["local", "in_graph", "sync", "asynchronous", "backup", "dashboard"])]
    compare: bool,
    /// Run each worker on one core of its own
    #[arg(long)]
    pin: bool,
    /// Where to compute. gpu trains in this process alone, on its first GPU
    #[arg(long, value_enum, default_value_t = ComputeDevice::Cpu)]
    device: ComputeDevice,
    /// Compute with this type on the GPU where that is fast and safe. Variables stay 32 bits wide;
    /// f16 scales the loss
    #[arg(long, value_enum, value_name = "TYPE")]
    mixed_precision: Option<NarrowFloat>,
    /// Use a GPU that runs on the processor
    #[arg(long, hide = true)]
    simulate_gpu: bool,
    /// Parameter servers
    #[arg(long, value_name = "P", default_value_t = 1)]
    ps: usize,
    /// Workers
    #[arg(long, value_name = "W", default_value_t = 2)]
    workers: usize,
    /// Synchronous: each global step applies the mean of all workers' gradients (the default)
    #[arg(long, conflicts_with = "asynchronous")]
    sync: bool,
    /// Asynchronous: each worker applies its own gradients at once
    #[arg(long = "async")]
    asynchronous: bool,
    /// Synchronous, with N of the workers as backup: a step applies the gradients of the first
    /// W - N workers and drops those of the others
    #[arg(long, value_name = "N", conflicts_with_all = ["asynchronous", "local"], default_value_t = 0)]
    backup: usize,
    /// Global steps to train
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    steps: Option<i64>,
    /// Examples per worker and step
    #[arg(long, value_name = "B")]
    batch: Option<usize>,
    /// Learning rate [default: depends on the model]
    #[arg(long, value_name = "RATE", visible_alias = "lr", allow_negative_numbers = true)]
    learning_rate: Option<f32>,
    /// Directory with MNIST (idx), CIFAR-10 (binary) or SVHN (32x32 .mat) files for mlp and cnn
    /// [default: the handwritten digits inside this command]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Train mlp and cnn on made-up images of the shape of SVHN's, 32 by 32 pixels in colour
    #[arg(long, conflicts_with = "data")]
    synthetic: bool,
    /// Directory for checkpoint, events and loss chart [default: ferroflow-out/MODEL]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Report in JSON, one object per line
    #[arg(long)]
    json: bool,
    /// Seed of data and initial values
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    seed: i64,
    /// Global steps between checkpoints [default: a tenth of --steps]
    #[arg(long, value_name = "N")]
    save_steps: Option<i64>,
    /// Show the job as a page in the browser, at this address [default address: a free port of
    /// loopback]
    #[arg(long, value_name = "ADDR", num_args = 0..=1, require_equals = true,
        default_missing_value = "127.0.0.1:0")]
    dashboard: Option<String>,
    /// The cluster this process is a worker of
    #[arg(long, hide = true, requires = "task")]
    cluster: Option<String>,
    /// Which worker of the cluster this process is
    #[arg(long, hide = true)]
    task: Option<u32>,
    /// The core that this process runs on
    #[arg(long, hide = true)]
    core: Option<usize>,
}

#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
enum ComputeDevice {
    Cpu,
    Gpu,
}

/// The types of mixed precision.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum NarrowFloat {
    F16,
    Bf16,
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

    /// Default number of examples per step.
    pub fn batch(self) -> usize {
        match self {
            Model::Linear => 10,
            Model::Mlp | Model::Cnn => 64,
            Model::Embedding => 256,
        }
    }

    /// Default learning rate.
    pub fn learning_rate(self) -> f32 {
        match self {
            Model::Linear => 0.01,
            Model::Mlp | Model::Cnn => 0.002,
            Model::Embedding => 0.5,
        }
    }
}

impl Args {
    /// The GPU to train on, if one is asked for.
    fn gpus(&self) -> Result<Vec<Arc<dyn Gpu>>> {
        if self.device == ComputeDevice::Cpu {
            return Ok(Vec::new());
        }
        gpus::for_training(self.simulate_gpu)
    }

    /// Fails if no worker of `workers` would be left for a step to wait for.
    fn check_backup(&self, workers: usize) -> Result<()> {
        if self.backup == 0 || self.backup < workers {
            return Ok(());
        }
        let text = format!("--backup {} of {workers} workers: a step needs one", self.backup);
        Err(Error::new(Code::InvalidArgument, text))
    }

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

    /// The default is frequent enough that a lost server costs little work.
    fn save_steps(&self) -> i64 {
        self.save_steps.unwrap_or((self.steps() / 10).max(50)).max(1)
    }

    fn out(&self) -> PathBuf {
        self.out.clone().unwrap_or_else(|| {
            // Another data set needs another model.
            let data = self.data.as_ref().and_then(|d| d.file_name());
            let synthetic = self.synthetic.then(|| "-synthetic".to_string());
            let data = data.map(|d| format!("-{}", d.to_string_lossy())).or(synthetic);
            let data = data.unwrap_or_default();
            PathBuf::from("ferroflow-out").join(format!("{}{data}", self.model.name()))
        })
    }

    /// The model and its data, for messages.
    fn what(&self) -> String {
        match &self.data {
            Some(data) => format!("{} on the images in {}", self.model.name(), data.display()),
            None if self.synthetic => format!("{} on made-up images", self.model.name()),
            None => self.model.name().into(),
        }
    }

    /// The score that default settings reach on test data.
    fn goal(&self) -> Option<(&'static str, &'static str)> {
        let is_default = self.steps.is_none()
            && self.batch.is_none()
            && self.learning_rate.is_none()
            && self.data.is_none()
            && !self.synthetic;
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
    if args.mixed_precision.is_some() && args.device == ComputeDevice::Cpu {
        return wrong("--mixed-precision is for GPUs: add --device gpu");
    }
    let has_images = matches!(args.model, Model::Mlp | Model::Cnn);
    if (args.data.is_some() || args.synthetic) && !has_images {
        let (name, flag) = (args.model.name(), if args.synthetic { "synthetic" } else { "data" });
        return wrong(&format!("--{flag} is for mlp and cnn: {name} makes up its own data"));
    }
    if args.out().exists() && !args.out().is_dir() {
        return wrong(&format!("--out {}: not a directory", args.out().display()));
    }
    if args.data.is_some() && args.cluster.is_none() {
        // Fail once here instead of in every worker.
        images::ImageSet::load(args.data.as_deref())?;
    }
    if let Some(core) = args.core.or((args.pin && args.local).then_some(0)) {
        crate::cores::run_on_core(core)?;
    }
    if args.compare {
        return compare::run(&args);
    }
    let local = args.local || args.device == ComputeDevice::Gpu;
    if args.cluster.is_none()
        && !local
        && let Some(config) = TfConfig::from_env()?
    {
        return cluster::take_part(&args, &config);
    }
    if args.cluster.is_none() {
        // The same: fail once here.
        let out = args.out();
        std::fs::create_dir_all(&out).map_err(|e| {
            let text =
                format!("cannot make the folder {}: {e}; choose another --out", out.display());
            Error::new(Code::InvalidArgument, text)
        })?;
    }
    match (&args.cluster, local) {
        (Some(_), _) => cluster::work(&args),
        (None, true) => run::local(&args),
        (None, false) if args.in_graph => in_graph::lead(&args),
        (None, false) => cluster::lead(&args),
    }
}
