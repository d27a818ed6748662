//! The `ferroflow` command.
#![forbid(unsafe_code)]

mod server;

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
    Server(server::Args),
}

fn main() -> ExitCode {
    let result = match Cli::parse().verb {
        Verb::Server(args) => server::run(args),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("ferroflow: {}", e.message());
            ExitCode::FAILURE
        }
    }
}
