//! Ops that build, cut and rearrange tensors ([`mod@array`]), and that reduce them ([`reduce`]).
#![forbid(unsafe_code)]

pub mod array;
pub mod reduce;
#[cfg(test)]
mod testing;

use ferroflow_graph::Catalog;
use ferroflow_op_kit::prelude;

/// Adds the ops of this crate to a catalog.
pub fn register(c: &mut Catalog) {
    array::register(c);
    reduce::register(c);
}
