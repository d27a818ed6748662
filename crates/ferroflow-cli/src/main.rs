//! The `ferroflow` command.
#![forbid(unsafe_code)]

mod inspect;
mod server;
mod train;

use clap::{Parser, Subcommand};
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
    Train(train::Args),
}

fn main() -> ExitCode {
    let result = match Cli::parse().verb {
        Verb::Inspect(args) => inspect::run(args),
        Verb::Server(args) => server::run(args),
        Verb::Train(args) => train::run(args),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("ferroflow: {}", e.message());
            ExitCode::FAILURE
        }
    }
}
