//! Ops with state, and ops that steer a step: variables, lists, queues, tables, control flow,
//! collectives, and XLA's operations that call functions.
#![forbid(unsafe_code)]

mod collective;
mod control;
pub mod list;
pub mod queue;
mod state;
pub mod table;
#[cfg(test)]
mod testing;
mod xla;

use ferroflow_graph::Catalog;
use ferroflow_op_kit::prelude;

/// Adds the ops of this crate to a catalog.
pub fn register(c: &mut Catalog) {
    collective::register(c);
    control::register(c);
    list::register(c);
    queue::register(c);
    state::register(c);
    table::register(c);
    xla::register(c);
}
