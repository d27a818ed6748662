//! `cargo xtask conformance`: programs of an unmodified TensorFlow client against our servers.
//!
//! `conformance/run.py` starts servers and programs. This module gives it an interpreter and the
//! command of a server.

use std::num::NonZero;
use std::path::PathBuf;
use std::process::Command;
use std::thread;

use clap::ValueEnum;

use crate::binary::{self, Profile};
use crate::linted;
use crate::paths;
use crate::python;
use crate::steps::{self, Failure, Result};
use crate::venv;

/// The tiers that `cargo xtask check` runs.
const CHECKED_TIERS: &[u32] = &[1, 2, 3];

/// The largest cluster among the programs that `cargo xtask check` runs.
const CHECKED_MAX_TASKS: Option<u32> = None;

/// The programs that `cargo xtask check` runs on simulated GPUs, too: placement, traces, variables,
/// control flow and training. All of them run with `cargo xtask conformance --simulate-gpus 1`.
const CHECKED_ON_GPUS: &[&str] = &[
    "t1_cond",
    "t1_control_deps",
    "t1_devices",
    "t1_variables_ref",
    "t1_variables_resource",
    "t1_while",
    "t2_trace",
    "t3_linreg_async",
    "t3_towers",
];

/// Seconds for a program on simulated GPUs: g++ compiles the kernels that it needs first.
const GPU_TIMEOUT: u32 = 300;

/// Run programs of an unmodified TensorFlow client against `ferroflow server`.
///
/// Without --tier, --only or --max-tasks: those that `cargo xtask check` runs. The first time, a
/// virtual environment is made under .venv/ (see `cargo xtask venv`). See conformance/README.md.
#[derive(clap::Args)]
pub struct Args {
    /// Programs of this tier (1 runtime, 2 training, 3 distributed); may be repeated
    #[arg(long, value_name = "N")]
    tier: Vec<u32>,

    /// This program, or all whose names contain this; may be repeated
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,

    /// Programs whose cluster has at most this many tasks
    #[arg(long, value_name = "N")]
    max_tasks: Option<u32>,

    /// Run the whole selection this many times
    #[arg(long, value_name = "K", default_value_t = NonZero::<u32>::MIN)]
    times: NonZero<u32>,

    /// Programs run at the same time [default: one a core, at most 4]
    #[arg(long, value_name = "N")]
    jobs: Option<NonZero<usize>>,

    /// The servers: `ferroflow server`, or real TensorFlow (to check a program itself)
    #[arg(long, value_enum, default_value_t = Servers::Ferroflow)]
    servers: Servers,

    /// The client: TensorFlow 2.15.1, or the newest release on PyPI
    #[arg(long, value_enum, default_value_t = Client::Pinned)]
    client: Client,

    /// Build the servers with the release profile, not with that of the tests
    #[arg(long)]
    release: bool,

    /// Give each server so many simulated GPUs, which compute most of the steps
    #[arg(long, value_name = "N", conflicts_with = "interop")]
    simulate_gpus: Option<u32>,

    /// Show the programs instead of running them
    #[arg(long)]
    list: bool,

    /// Only let TensorFlow open the files of a Rust program: checkpoints, graphs, SavedModels,
    /// events
    #[arg(long, conflicts_with_all = ["tier", "only", "max_tasks", "list"])]
    interop: bool,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum Servers {
    Ferroflow,
    Tf,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum Client {
    #[value(name = "2.15.1")]
    Pinned,
    Newest,
}

impl Client {
    fn python(self) -> Result<PathBuf> {
        match self {
            Client::Pinned => venv::python(),
            Client::Newest => python::newest_tensorflow(),
        }
    }
}

pub fn run(args: &Args) -> Result {
    if args.interop {
        return interop(Profile::Dev);
    }
    let mut options = selection(args);
    if args.list {
        options.push("--list".into());
        return driver(args.client, &options, false);
    }
    options.extend(["--times".into(), args.times.to_string()]);
    options.extend(["--jobs".into(), jobs(args.jobs).to_string()]);
    match args.servers {
        Servers::Tf => options.extend(["--servers".into(), "tf".into()]),
        Servers::Ferroflow => {
            options.extend(ferroflow_servers(Profile::new(args.release), args.simulate_gpus)?);
        }
    }
    judged(args.client, options, args.simulate_gpus.is_some())
}

/// Runs the programs of `cargo xtask check`.
pub fn checked(profile: Profile) -> Result {
    let mut options = checked_selection();
    options.extend(["--jobs".into(), jobs(None).to_string()]);
    options.extend(ferroflow_servers(profile, None)?);
    judged(Client::Pinned, options, false)?;
    on_gpus(profile)?;
    interop(profile)
}

/// Runs some programs on simulated GPUs.
fn on_gpus(profile: Profile) -> Result {
    let only = CHECKED_ON_GPUS.iter().flat_map(|name| ["--only".to_string(), (*name).into()]);
    let mut options: Vec<String> = only.collect();
    options.extend(["--jobs".into(), jobs(None).to_string()]);
    options.extend(ferroflow_servers(profile, Some(1))?);
    judged(Client::Pinned, options, true)
}

/// Lets TensorFlow open files that a Rust program has written.
fn interop(profile: Profile) -> Result {
    let dir = paths::target().join("interop");
    let _ = std::fs::remove_dir_all(&dir);
    // With the features of the workspace, as in tests, so that nearly everything is compiled.
    let mut build = steps::cargo(&["build", "--quiet", "--workspace", "--example", "tf_interop"]);
    if profile == Profile::Checked {
        linted::with_clippy(&mut build)?;
    }
    steps::run(&mut build)?;
    let write = paths::target().join("debug").join("examples").join("tf_interop");
    steps::run(Command::new(write).arg(&dir))?;
    steps::run(Command::new(venv::python()?).arg("conformance/interop.py").arg(&dir))
}

/// Runs the programs. The error after a failure names their logs.
fn judged(client: Client, mut options: Vec<String>, has_gpus: bool) -> Result {
    let logs = paths::target().join("conformance");
    options.extend(["--keep-logs".into(), logs.display().to_string()]);
    driver(client, &options, has_gpus).map_err(|Failure(why)| {
        let logs = paths::shown(&logs);
        Failure(format!(
            "{why}\nLogs: {logs}/PROGRAM/client.log, and one beside it for each server."
        ))
    })
}

/// Runs the driver. `has_gpus` tells the programs to expect float ops on GPUs.
fn driver(client: Client, options: &[String], has_gpus: bool) -> Result {
    let mut command = Command::new(client.python()?);
    command.arg("conformance/run.py").args(options);
    if has_gpus {
        command.env("FFC_GPUS", "1").args(["--timeout", &GPU_TIMEOUT.to_string()]);
    }
    steps::run(&mut command)
}

fn selection(args: &Args) -> Vec<String> {
    if args.tier.is_empty() && args.only.is_empty() && args.max_tasks.is_none() {
        return checked_selection();
    }
    let mut options = selected(&args.tier, args.max_tasks);
    options.extend(args.only.iter().flat_map(|name| ["--only".into(), name.clone()]));
    options
}

fn checked_selection() -> Vec<String> {
    selected(CHECKED_TIERS, CHECKED_MAX_TASKS)
}

fn selected(tiers: &[u32], max_tasks: Option<u32>) -> Vec<String> {
    let tiers = tiers.iter().flat_map(|tier| ["--tier".into(), tier.to_string()]);
    let tasks = max_tasks.into_iter().flat_map(|tasks| ["--max-tasks".into(), tasks.to_string()]);
    tiers.chain(tasks).collect()
}

fn ferroflow_servers(profile: Profile, simulated_gpus: Option<u32>) -> Result<[String; 4]> {
    let mut command = paths::server_command(&binary::build(profile)?);
    if let Some(n) = simulated_gpus {
        command.push_str(&format!(" --simulate-gpus {n}"));
    }
    Ok(["--servers".into(), "cmd".into(), "--server-cmd".into(), command])
}

fn jobs(asked: Option<NonZero<usize>>) -> usize {
    let cores = || thread::available_parallelism().map_or(1, NonZero::get).min(4);
    asked.map_or_else(cores, NonZero::get)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }

    fn selection_of(line: &[&str]) -> Vec<String> {
        selection(&Line::parse_from([&["x"], line].concat()).args)
    }

    #[test]
    fn nothing_asked_selects_what_is_checked() {
        assert_eq!(selection_of(&[]), checked_selection());
    }

    #[test]
    fn a_selection_is_handed_on_as_asked() {
        assert_eq!(selection_of(&["--tier", "2"]), ["--tier", "2"]);
        assert_eq!(selection_of(&["--only", "a", "--only", "b"]), ["--only", "a", "--only", "b"]);
        assert_eq!(
            selection_of(&["--tier", "1", "--max-tasks", "3"]),
            ["--tier", "1", "--max-tasks", "3"]
        );
    }
}
