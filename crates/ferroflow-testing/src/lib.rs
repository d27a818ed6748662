//! For everyone's tests: an op checker that runs one kernel, handed the catalog it checks; random
//! graphs with steps over them; graphs and functions written down node by node; and small ops to
//! fill them with.

mod check;
mod evaluate;
mod finite_differences;
pub mod fuzz;
mod graph;
mod standalone_step;
mod test_ops;

pub use check::{Check, assert_close};
pub use evaluate::evaluate;
pub use graph::{GraphBuilder, Literal, func, function, graph};
pub use standalone_step::standalone_step;
pub use test_ops::{mix, register_blocking_op, register_test_ops};
