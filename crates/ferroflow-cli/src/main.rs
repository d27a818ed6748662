//! The `ferroflow` command.
#![forbid(unsafe_code)]

mod bench;
mod elastic;
mod inspect;
mod launch;
mod plan;
mod run;
mod server;
mod train;
mod units;

use clap::{Parser, Subcommand};
use std::ffi::OsString;
use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Distributed TensorFlow, re-founded in Rust.
#[derive(Parser)]
#[command(name = "ferroflow", version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    Inspect(inspect::Args),
    Server(server::Args),
    Run(run::Args),
    Plan(plan::Args),
    Bench(bench::Args),
    Train(train::Args),
    #[command(hide = true)]
    ReduceServer(run::ReduceServer),
}

/// The command line, in which `-np`, as other launchers spell it, means `--np`.
fn arguments() -> impl Iterator<Item = OsString> {
    let mut ours = true;
    std::env::args_os().map(move |word| {
        // What follows `--` belongs to the program that is run.
        ours &= word != "--";
        if ours && word == "-np" { "--np".into() } else { word }
    })
}

fn main() -> ExitCode {
    let result = match Cli::parse_from(arguments()).verb {
        Verb::Inspect(args) => inspect::run(args),
        Verb::Server(args) => server::run(args),
        Verb::Train(args) => train::run(args),
        Verb::Run(args) => run::run(args),
        Verb::ReduceServer(_) => run::reduce_server(),
        Verb::Plan(args) => plan::run(args),
        Verb::Bench(args) => bench::run(args),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("ferroflow: {}", e.message());
            ExitCode::FAILURE
        }
    }
}
