//! Sessions over several tasks. The servers are in one process, each with its own threads, so that
//! a test can kill one.

mod collectives;
mod failures;
mod fixture;
mod paths;
mod placement;
mod proxy;
mod sessions;
mod shared_gpu;
mod shared_memory;
mod steps;
mod variable_order;
