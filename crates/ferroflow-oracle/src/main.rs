//! The command behind `cargo xtask oracle`.
#![forbid(unsafe_code)]

use clap::{Parser, Subcommand};
use ferroflow::graph::default_catalog;
use ferroflow_core::{Result, err};
use ferroflow_oracle::answer::FerroflowTask;
use ferroflow_oracle::explained::Explained;
use ferroflow_oracle::record::Records;
use ferroflow_oracle::report::{Report, describe};
use ferroflow_oracle::sample::Sample;
use flate2::{Compression, write::GzEncoder};
use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
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
