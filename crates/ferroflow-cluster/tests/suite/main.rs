//! Integration tests of the cluster crate, in one binary.
#![allow(clippy::unwrap_used)]

mod bad_input;
mod master;
mod rpc;
mod trust;
mod worker;
