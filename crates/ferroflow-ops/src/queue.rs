//! Queues and what else kernels wait for: barriers, staging areas, accumulators, mutexes.

use crate::prelude::*;

pub(crate) mod deliver;
mod items;
pub(crate) mod monitor;
mod ops;
mod padding;
mod philox;
mod store;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;

pub(crate) fn register(c: &mut Catalog) {
    ops::register(c);
}
