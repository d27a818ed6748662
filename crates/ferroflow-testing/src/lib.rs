//! Shared code of all tests. An op checker runs one kernel of a catalog. [`child`] runs tests with
//! child processes, and [`trials`] runs tests that may be skipped with a reason. There are random
//! graphs with steps over them, graphs and functions written node by node, and small ops for such
//! graphs.
#![forbid(unsafe_code)]

mod check;
pub mod child;
mod evaluate;
mod finite_differences;
pub mod fuzz;
mod fuzz_bytes;
mod graph;
pub mod needs;
mod on_device;
mod op_checker;
mod recorded;
mod standalone_step;
mod test_ops;
pub mod trials;

pub use check::{Check, assert_close};
pub use evaluate::evaluate;
pub use fuzz_bytes::fuzz_bytes;
pub use graph::{GraphBuilder, Literal, func, function, graph};
pub use op_checker::OpChecker;
pub use standalone_step::standalone_step;
pub use test_ops::{mix, register_blocking_op, register_test_ops};
