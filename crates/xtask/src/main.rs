//! Commands for work on this repository: `cargo xtask --help`.
//!
//! Each sub-command is a module. `steps` runs commands with headings and times; `paths` has paths.
#![forbid(unsafe_code)]

mod background;
mod bench;
mod binary;
mod book;
mod check;
mod conformance;
mod dashboard;
mod deny;
mod digits;
mod fuzz;
mod gallery;
mod gpu;
mod linted;
mod oracle;
mod paths;
mod programs;
mod proof;
mod python;
mod skipped;
mod soak;
mod steps;
mod tidy;
mod venv;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Commands for work on the Ferroflow repository.
#[derive(Parser)]
#[command(
    name = "cargo xtask",
    bin_name = "cargo xtask",
    after_help = "\
Most used:
  cargo xtask check                            everything CI checks, in its order
  cargo xtask check --only clippy              one of its steps
  cargo xtask tidy                             the rules that no compiler checks
  cargo xtask conformance --only t1_queues     one program of a TensorFlow client against our server
  cargo xtask bench --quick                    Ferroflow beside TensorFlow, a few minutes
  cargo xtask oracle --only 'Conv.*'           ops compared with TensorFlow's, on random calls
  cargo xtask gpu                              what checks and measures ops on a GPU machine
  cargo xtask digits                           the digits CNN in every mode, while tasks are killed
  cargo xtask dashboard                        the dashboard in a browser, metrics with their parser
  cargo xtask soak --minutes 30                synchronous training while tasks are killed
  cargo xtask python --develop                 the Python package from its sources, built quickly
  cargo xtask python --all                     its tests, with torch, JAX, Keras and TensorFlow too
  cargo xtask python --soak 5                  elastic training in Python while ranks are killed
  cargo xtask gallery CHECKOUTS                public TensorFlow 1.x programs, on TensorFlow and here
  cargo xtask fuzz --minutes 1                 every parser of outside bytes, with a nightly compiler
  cargo xtask book                             the book in docs/

You need Cargo, gcc and Python 3.11; the commands install the rest."
)]
struct Cli {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Subcommand)]
enum Chore {
    Book(book::Args),
    Check(check::Args),
    Conformance(conformance::Args),
    Deny(deny::Args),
    Bench(bench::Args),
    BenchRust(bench::RustArgs),
    Dashboard(dashboard::Args),
    Digits(digits::Args),
    Gallery(gallery::Args),
    Gpu(gpu::Args),
    Fuzz(fuzz::Args),
    Miri(proof::MiriArgs),
    Oracle(oracle::Args),
    Python(python::Args),
    Sanitize(proof::SanitizeArgs),
    Soak(soak::Args),
    Tidy(tidy::Args),
    Venv(venv::Args),
    Wheel(python::WheelArgs),
}

fn main() -> ExitCode {
    let done = match Cli::parse().chore {
        Chore::Book(args) => book::run(&args),
        Chore::Check(args) => check::run(&args),
        Chore::Conformance(args) => conformance::run(&args),
        Chore::Deny(args) => deny::run(&args),
        Chore::Bench(args) => bench::run(&args),
        Chore::BenchRust(args) => bench::run_rust(&args),
        Chore::Dashboard(args) => dashboard::run(&args),
        Chore::Digits(args) => digits::run(&args),
        Chore::Gallery(args) => gallery::run(&args),
        Chore::Gpu(args) => gpu::run(&args),
        Chore::Fuzz(args) => fuzz::run(&args),
        Chore::Miri(args) => proof::miri(&args),
        Chore::Oracle(args) => oracle::run(&args),
        Chore::Python(args) => python::run(&args),
        Chore::Sanitize(args) => proof::sanitize(&args),
        Chore::Soak(args) => soak::run(&args),
        Chore::Tidy(args) => tidy::run(&args),
        Chore::Venv(args) => venv::run(&args),
        Chore::Wheel(args) => python::run_wheel(&args),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("\n{failure}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }
}
