//! Integration tests of the graph crate, in one binary.
#![allow(clippy::unwrap_used)]

mod passes;
mod wire_graph;
mod wire_step;
