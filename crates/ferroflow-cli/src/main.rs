//! The `ferroflow` command.
#![forbid(unsafe_code)]

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    ferroflow_cli::main_from(std::env::args_os().collect(), None).into()
}
