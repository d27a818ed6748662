//! Queues and other state that kernels wait for: barriers, staging areas, accumulators, mutexes.

use crate::prelude::*;

mod accumulator;
mod barrier;
mod deliver;
mod items;
mod map_stage;
mod monitor;
mod mutex;
mod ops;
mod padding;
mod stage;
mod store;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

pub use monitor::{Attempt, Monitor, Order, Progress};
pub use store::Queue;

pub(crate) fn register(c: &mut Catalog) {
    accumulator::register(c);
    barrier::register(c);
    map_stage::register(c);
    mutex::register(c);
    ops::register(c);
    stage::register(c);
}
