//! For everyone's tests: an op checker that runs one kernel, handed the catalog it checks.

mod check;
mod lone_step;

pub use check::{Check, assert_close};
pub use lone_step::lone_step;
