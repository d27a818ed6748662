//! The `ferroflow` command.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use ferroflow_core::{CountedHeap, Mimalloc};

#[global_allocator]
static ALLOCATOR: CountedHeap<Mimalloc> = CountedHeap(Mimalloc);

fn main() -> ExitCode {
    ferroflow_command::main_from(std::env::args_os().collect(), None).into()
}
