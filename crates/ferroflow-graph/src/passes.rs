//! Passes over the graph of one step. Each works on what [`prune`] leaves of the whole graph for
//! one set of feeds, fetches and targets, and never changes a fetched value, a stateful op, or an
//! error the user would have seen.

mod prune;

pub use prune::{Pruned, prune};
