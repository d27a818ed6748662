//! The tests of the public crate, in one binary.
#![allow(clippy::unwrap_used)]

mod async_session;
mod fake_gpus;
mod gradient_rules;
mod gradients;
mod graph_gradients;
mod hvd;
mod kernel_dtypes;
mod op_functions;
mod ops_doc;
mod prelude_examples;
mod saved_model;
mod training;
