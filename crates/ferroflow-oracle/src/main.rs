//! The command behind `cargo xtask oracle`.
#![forbid(unsafe_code)]

use clap::{Parser, Subcommand};
use ferroflow::graph::default_catalog;
use ferroflow_core::{GPU_PRELUDE, Gpu, Result, err};
use ferroflow_cuda::{CudaOptions, FoundGpus, find_gpus};
use ferroflow_oracle::answer::FerroflowTask;
use ferroflow_oracle::explained::Explained;
use ferroflow_oracle::gpu::{DeviceCheck, covered};
use ferroflow_oracle::models::TrainedModel;
use ferroflow_oracle::null_gpu::{ListedWork, NullGpu};
use ferroflow_oracle::ranks;
use ferroflow_oracle::record::Records;
use ferroflow_oracle::report::{Report, describe};
use ferroflow_oracle::sample::Sample;
use ferroflow_oracle::tasks;
use flate2::{Compression, write::GzEncoder};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Runs cases that TensorFlow answered, and reports where Ferroflow differs.
#[derive(Parser)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Prints the ops that have CPU kernels
    Ops,
    /// Runs the cases of a file; writes report.txt and report.json beside it
    Check {
        cases: PathBuf,
        /// Prints every difference, not only counts
        #[arg(long)]
        verbose: bool,
    },
    /// Checks ops on this machine's GPU against TensorFlow's answers and the CPU kernels
    GpuCheck {
        cases: PathBuf,
        /// Appends a line of JSON for each op and dtype to this file
        #[arg(long)]
        out: Option<PathBuf>,
    },
    /// Trains a model on this machine's GPU, and prints its losses and its speed
    GpuTrain {
        model: String,
        #[arg(long, default_value_t = 3.0)]
        seconds: f64,
        /// Also trains on the CPU and compares the first losses
        #[arg(long)]
        compare: bool,
        /// Images or sequences in a step
        #[arg(long)]
        batch: Option<usize>,
        /// Measures only what the host does, with a GPU that does nothing
        #[arg(long, conflicts_with = "compare")]
        host_only: bool,
        /// Also lists what a step enqueues, with the time that memory and products take at least
        #[arg(long, requires = "host_only")]
        list: bool,
        /// Writes the texts of all kernels to this folder, for bench/gpu/nvrtc.py
        #[arg(long, requires = "host_only")]
        texts: Option<PathBuf>,
    },
    /// Trains a model and writes its first weights, its data and its losses to a folder, for
    /// bench/gpu/compare_losses.py. Without a GPU it trains on the CPU
    GpuLosses {
        model: String,
        folder: PathBuf,
        #[arg(long, default_value_t = 6)]
        steps: usize,
        /// Images or sequences in a step
        #[arg(long)]
        batch: Option<usize>,
    },
    /// Measures an all-reduce between the GPUs of ranks; run it in each rank of a job
    GpuRanks {
        /// The size of the tensor
        #[arg(long, default_value_t = 100)]
        megabytes: usize,
        /// Trains with one rank instead, with and without an all-reduce
        #[arg(long)]
        train: bool,
    },
    /// Measures a value from a parameter server to a worker that use this machine's GPU
    GpuTasks {
        /// The size of the value
        #[arg(long, default_value_t = 100)]
        megabytes: usize,
        /// Serves the parameter server of this cluster instead, until standard input is closed
        #[arg(long)]
        serve: Option<String>,
    },
    /// Writes some cases of each (op, dtype) to a gzipped file
    Sample {
        cases: PathBuf,
        out: PathBuf,
        #[arg(long, default_value_t = 1)]
        per_pair: usize,
        /// Longest record to keep, in bytes
        #[arg(long, default_value_t = 4096)]
        longest: usize,
    },
}

fn main() -> ExitCode {
    let done = match Cli::parse().command {
        Command::Ops => {
            for op in ops() {
                println!("{op}");
            }
            Ok(true)
        }
        Command::Check { cases, verbose } => check(&cases, verbose),
        Command::GpuCheck { cases, out } => gpu_check(&cases, out.as_deref()),
        Command::GpuTrain { model, seconds, batch, host_only: true, list, texts, .. } => {
            host_train(&model, seconds, batch, list, texts.as_deref())
        }
        Command::GpuTrain { model, seconds, compare, batch, .. } => {
            gpu_train(&model, seconds, compare, batch)
        }
        Command::GpuLosses { model, folder, steps, batch } => {
            gpu_losses(&model, &folder, steps, batch)
        }
        Command::GpuRanks { megabytes, train } => gpu_ranks(megabytes, train),
        Command::GpuTasks { megabytes, serve } => gpu_tasks(megabytes, serve.as_deref()),
        Command::Sample { cases, out, per_pair, longest } => {
            sample(&cases, &out, per_pair, longest)
        }
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(e) => {
            eprintln!("{e}");
            ExitCode::FAILURE
        }
    }
}

fn ops() -> BTreeSet<String> {
    let catalog = default_catalog();
    catalog.iter().filter(|op| op.cpu.is_some()).map(|op| op.name.clone()).collect()
}

fn check(cases: &Path, verbose: bool) -> Result<bool> {
    let ours = FerroflowTask::default();
    let mut report = Report::new(Explained::load()?);
    let (mut done, began, mut shown) = (0, Instant::now(), Instant::now());
    for case in Records::open(cases)? {
        let case = case?;
        let answer = ours.answer(&case);
        if let Some(found) = report.add(&case, &answer)
            && verbose
        {
            println!(
                "{} {} #{}: {}: {}\n  {}",
                case.op,
                case.dtype,
                case.index,
                found.kind,
                found.text,
                describe(&case)
            );
        }
        done += 1;
        if shown.elapsed() > Duration::from_secs(5) {
            shown = Instant::now();
            println!("  {done} cases, {} s: {}", began.elapsed().as_secs(), case.op);
        }
    }
    let text = report.text(&ops());
    let json = report.json().to_string();
    for (name, text) in [("report.txt", &text), ("report.json", &json)] {
        let path = cases.with_file_name(name);
        std::fs::write(&path, text).map_err(|e| err!(Unknown, "{}: {e}", path.display()))?;
    }
    println!("{}", text.split("\n\n").next().unwrap_or_default());
    println!("{}", cases.with_file_name("report.txt").display());
    Ok(report.is_clean())
}

/// The first GPU, with exact or with fast products.
fn first_gpu(allow_tf32: bool) -> Result<Arc<dyn Gpu>> {
    let options = CudaOptions { allow_tf32, ..CudaOptions::default() };
    let FoundGpus { gpus, why_not } = find_gpus(&options);
    let why = why_not.unwrap_or_default();
    gpus.into_iter().next().ok_or_else(|| err!(Unavailable, "no GPU, because {why}"))
}

fn gpu_check(cases: &Path, out: Option<&Path>) -> Result<bool> {
    let gpu = first_gpu(false)?;
    println!("{}: {}", gpu.name(), gpu.description());
    let (own, either) = covered();
    println!("{own} ops with GPU kernels, {either} that work in either memory");
    let mut check = DeviceCheck::new(gpu.clone());
    for case in Records::open(cases)? {
        check.add(&case?);
    }
    let lines = check.lines();
    let mut text = String::new();
    for line in &lines {
        if line["ok"] != true {
            println!("{line}");
        }
        let mut line = line.clone();
        line["device"] = gpu.description().into();
        text.push_str(&format!("{line}\n"));
    }
    let failed = lines.iter().filter(|line| line["ok"] != true).count();
    println!("{} pairs of op and dtype on the GPU, {failed} failed", lines.len());
    if let Some(out) = out {
        std::fs::write(out, text).map_err(|e| err!(Unknown, "{}: {e}", out.display()))?;
    }
    Ok(failed == 0)
}

/// Measures the host's part of training.
fn host_train(
    name: &str,
    seconds: f64,
    batch: Option<usize>,
    list: bool,
    texts: Option<&Path>,
) -> Result<bool> {
    let nothing = NullGpu::new();
    let gpu: Arc<dyn Gpu> = nothing.clone();
    let model = TrainedModel::with_batch(name, "/gpu:0", batch)?;
    let mut line = model.measure(&gpu, Duration::from_secs_f64(seconds))?;
    let session = model.session(std::slice::from_ref(&gpu))?;
    // The first step is not recorded, so its work is listed piece by piece.
    nothing.begin_list();
    model.losses(&session, 1)?;
    let listed = nothing.end_list();
    model.losses(&session, 4)?;
    let before = nothing.launches();
    model.losses(&session, 10)?;
    line["launches"] = ((nothing.launches() - before) as f64 / 10.0).into();
    line["recorded_mb"] = (gpu.recorded_memory() >> 20).into();
    line["model"] = name.into();
    if list {
        print_list(&listed);
    }
    if let Some(folder) = texts {
        std::fs::create_dir_all(folder).map_err(|e| err!(Unknown, "{}: {e}", folder.display()))?;
        for (i, text) in nothing.texts().iter().enumerate() {
            let path = folder.join(format!("{name}-{i}.cu"));
            std::fs::write(&path, format!("{GPU_PRELUDE}\n{text}"))
                .map_err(|e| err!(Unknown, "{}: {e}", path.display()))?;
        }
    }
    println!("{line}");
    Ok(true)
}

/// Prints the work of a step, what takes longest first.
fn print_list(listed: &[ListedWork]) {
    let mut kinds: BTreeMap<(&str, u64), (usize, f64)> = BTreeMap::new();
    for work in listed {
        let kind = kinds.entry((&work.label, work.bytes)).or_default();
        kind.0 += 1;
        kind.1 += work.least_seconds();
    }
    let mut kinds: Vec<_> = kinds.into_iter().collect();
    kinds.sort_by(|a, b| b.1.1.total_cmp(&a.1.1));
    println!("{:>8} {:>5} {:>10}  work", "us", "times", "MB each");
    for ((label, bytes), (times, seconds)) in &kinds {
        let label: String = label.chars().take(160).collect();
        println!("{:8.1} {times:5} {:10.2}  {label}", seconds * 1e6, *bytes as f64 / 1e6);
    }
    let bytes: u64 = listed.iter().map(|work| work.bytes).sum();
    let seconds: f64 = listed.iter().map(ListedWork::least_seconds).sum();
    println!("{:8.1} {:5} {:10.2}  in all", seconds * 1e6, listed.len(), bytes as f64 / 1e6);
}

fn gpu_train(name: &str, seconds: f64, compare: bool, batch: Option<usize>) -> Result<bool> {
    if compare {
        let gpu = first_gpu(false)?;
        let model = TrainedModel::with_batch(name, "/gpu:0", batch)?;
        let on_gpu = model.losses(&model.session(&[gpu])?, 10)?;
        let on_cpu = model.losses(&model.session(&[])?, 10)?;
        println!("losses on the GPU: {on_gpu:?}\nlosses on the CPU: {on_cpu:?}");
        let near = |(a, b): (&f32, &f32)| (a - b).abs() <= 1e-3 * b.abs().max(1e-3);
        if !on_gpu.iter().zip(&on_cpu).all(near) {
            println!("the losses differ");
            return Ok(false);
        }
    }
    let gpu = first_gpu(true)?;
    let model = TrainedModel::with_batch(name, "/gpu:0", batch)?;
    let mut line = model.measure(&gpu, Duration::from_secs_f64(seconds))?;
    line["model"] = name.into();
    line["device"] = gpu.description().into();
    println!("{line}");
    Ok(true)
}

fn gpu_losses(name: &str, folder: &Path, steps: usize, batch: Option<usize>) -> Result<bool> {
    let gpus: Vec<Arc<dyn Gpu>> = first_gpu(true).into_iter().collect();
    let model = TrainedModel::with_batch(name, "/gpu:0", batch)?;
    let mut line = model.export(&model.session(&gpus)?, folder, steps)?;
    line["device"] = gpus.first().map_or("the CPU".into(), |gpu| gpu.description()).into();
    println!("{line}");
    Ok(true)
}

fn gpu_ranks(megabytes: usize, train: bool) -> Result<bool> {
    let gpu = first_gpu(true)?;
    let mut line = match train {
        true => ranks::cost_of_one_rank(&gpu)?,
        false => ranks::measure(&gpu, megabytes)?,
    };
    line["device"] = gpu.description().into();
    println!("{line}");
    Ok(line["bit_equal"] != false)
}

fn gpu_tasks(megabytes: usize, serve: Option<&str>) -> Result<bool> {
    let gpu = first_gpu(true)?;
    if let Some(cluster) = serve {
        tasks::serve(&gpu, cluster)?;
        return Ok(true);
    }
    let mut line = tasks::measure(&gpu, megabytes)?;
    line["device"] = gpu.description().into();
    println!("{line}");
    Ok(line["right"] == true)
}

fn sample(cases: &Path, out: &Path, per_pair: usize, longest: usize) -> Result<bool> {
    let mut sample = Sample::new(per_pair, longest);
    for case in Records::open(cases)? {
        sample.offer(&case?);
    }
    let broken = |e| err!(Unknown, "{}: {e}", out.display());
    let file = std::fs::File::create(out).map_err(broken)?;
    let mut zip = GzEncoder::new(file, Compression::best());
    zip.write_all(&sample.bytes).map_err(broken)?;
    zip.finish().map_err(broken)?;
    println!("{} cases in {}", sample.cases, out.display());
    Ok(true)
}
