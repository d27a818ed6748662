//! For everyone's tests: an op checker that runs one kernel, and random graphs with steps over them;
//! both are handed the catalog they check.

mod check;
pub mod fuzz;
mod lone_step;

pub use check::{Check, assert_close};
pub use lone_step::lone_step;
