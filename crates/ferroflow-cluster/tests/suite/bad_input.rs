//! A server that gets malformed, hostile and absurd graphs, tensors and calls. It answers with
//! TensorFlow's error code, names the node, and goes on.

mod files;
mod fixture;
mod functions;
mod graphs;
mod memory;
mod messages;
mod sessions;
mod sizes;
mod steps;
