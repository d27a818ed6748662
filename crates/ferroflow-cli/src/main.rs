//! The `ferroflow` command.
#![forbid(unsafe_code)]

mod bench;
#[cfg(test)]
mod command_doc;
mod inspect;
mod launch;
mod place;
mod plan;
mod run;
mod say;
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
    Place(place::Args),
    Bench(bench::Args),
    Train(train::Args),
    /// End the processes of a job whose launcher was killed
    #[command(hide = true)]
    Guard(launch::guard::Args),
    /// Print free ports; `run -H` calls this on other hosts
    #[command(hide = true)]
    Ports(run::ports::Args),
    #[command(hide = true)]
    ReduceServer(run::summing::Args),
}

/// The command line, with `-np` (the spelling of other launchers) replaced by `--np`.
fn arguments() -> impl Iterator<Item = OsString> {
    let mut ours = true;
    std::env::args_os().map(move |word| {
        // Words after `--` belong to the user's program.
        ours &= word != "--";
        if ours && word == "-np" { "--np".into() } else { word }
    })
}

fn parsed() -> Cli {
    let words: Vec<OsString> = arguments().collect();
    let is_run = words.get(1).is_some_and(|w| w == "run");
    Cli::try_parse_from(words).unwrap_or_else(|e| if is_run { run::explained(e) } else { e }.exit())
}

fn main() -> ExitCode {
    let result = match parsed().verb {
        Verb::Inspect(args) => inspect::run(args),
        Verb::Server(args) => server::run(args),
        Verb::Train(args) => train::run(args),
        Verb::Run(args) => run::run(args),
        Verb::ReduceServer(_) => run::summing::serve(),
        Verb::Plan(args) => plan::run(args),
        Verb::Place(args) => place::run(args),
        Verb::Bench(args) => bench::run(args),
        Verb::Ports(args) => run::ports::run(args),
        Verb::Guard(args) => launch::guard::run(args),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("ferroflow: {}", e.message());
            ExitCode::FAILURE
        }
    }
}
