//! The executor and sessions, on whole graphs.
#![allow(clippy::unwrap_used)]

mod common;
mod control_flow;
mod datasets;
mod flat;
mod functions;
mod fusion;
mod fusion_waits;
mod partial_run;
mod placement;
mod random_graphs;
mod session;
mod slot_protocol;
mod variable_order;
mod xla;
