//! See the crate README line in ARCHITECTURE.md.
#![forbid(unsafe_code)]

pub mod rpc;
