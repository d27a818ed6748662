//! `cargo xtask gallery`: public programs, with TensorFlow in process and on Ferroflow.

use std::path::PathBuf;
use std::process::Command;

use crate::binary::{self, Profile};
use crate::steps::{self, Result};
use crate::venv;

/// Run public TensorFlow 1.x programs with TensorFlow in process and on Ferroflow, and compare.
///
/// It fetches nothing: CHECKOUTS is a folder with checkouts of the repositories that
/// gallery/programs.py names. Compares the printed results and the times of both runs.
#[derive(clap::Args)]
pub struct Args {
    /// Folder with the checkouts, such as TensorFlow-Examples
    checkouts: PathBuf,

    /// Programs whose names contain this; may be repeated
    #[arg(long, value_name = "TEXT")]
    only: Vec<String>,

    /// Write the table into docs/src/reference/gallery.md
    #[arg(long)]
    page: bool,

    /// The command to test, instead of the release build
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,

    /// Keep the outputs in this folder
    #[arg(long, value_name = "FOLDER")]
    logs: Option<PathBuf>,
}

const PAGE: &str = "docs/src/reference/gallery.md";

pub fn run(args: &Args) -> Result {
    let program = match &args.program {
        Some(program) => program.clone(),
        None => binary::build(Profile::Release)?,
    };
    let mut command = Command::new(venv::python()?);
    command.arg("gallery/run.py").arg(&args.checkouts).arg("--ferroflow").arg(program);
    for text in &args.only {
        command.arg("--only").arg(text);
    }
    if args.page {
        command.args(["--page", PAGE]);
    }
    if let Some(folder) = &args.logs {
        command.arg("--logs").arg(folder);
    }
    steps::run(&mut command)
}
