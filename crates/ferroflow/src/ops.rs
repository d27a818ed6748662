//! Ops as functions. [`Output`](crate::Output) has the common ones as methods.

pub use ferroflow_train::ops::*;
