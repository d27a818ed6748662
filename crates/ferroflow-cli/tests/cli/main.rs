//! The command as a user runs it: real processes, their output, their files and their ends.
#![allow(clippy::unwrap_used)]

#[path = "../common/mod.rs"]
mod common;
mod faults;
mod hybrid;
mod inspect;
mod launch;
mod observe;
mod plan;
mod pressure;
mod run;
mod server;
mod train;
mod trust;
