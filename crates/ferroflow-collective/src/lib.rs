//! All-reduce and its family on plain buffers, for training with many processes.
//!
//! A [`Group`] is a set of ranks that can reach each other, over shared memory on one host and over
//! TCP between hosts. Its methods are collectives: every rank calls the same ones in the same order,
//! and they work in place on the caller's buffers. What a collective does is a schedule, chosen by a
//! [`LinkCostModel`] of the links; whatever goes wrong on one rank is an error on all, naming the culprit.
//!
//! An [`Engine`] runs a group's collectives for callers that submit named tensors in whatever order
//! they become ready: a coordinator on rank 0 agrees on what to do, fuses, cuts and orders it.
//!
//! This crate knows nothing of graphs and tensors of graphs.

pub mod bench;
#[cfg(target_os = "linux")]
pub mod blocks;
#[cfg(test)]
mod chaos;
mod compress;
mod control;
pub mod elastic;
mod engine;
mod environment;
mod executor;
mod failure;
#[cfg(test)]
mod fault_proxy;
mod group;
mod link_cost;
pub mod loopback;
mod mesh;
mod number;
mod processors;
mod reduce;
mod rendezvous;
mod schedule;
mod signature;
pub mod simulate;
mod wire;

pub use compress::WireCompression;
pub use engine::{
    Collective, CollectiveHandle, Engine, EngineOptions, EngineStats, JoinHandle, SetHandle,
    SubmitOptions, TensorDone,
};
pub use group::{Group, GroupOptions, SetId};
pub use link_cost::{Algorithm, LinkCostModel};
pub use mesh::{Mesh, MeshFaults, in_process};
pub use number::{NUMBERS, Number, bytes_of, bytes_of_mut};
pub use reduce::ReduceOp;
pub use rendezvous::{Membership, TransportChoice};
pub use schedule::{Schedule, ScheduleAction, ScheduleStep};
pub use signature::OperationKind;

/// An operating-system error, with what it was about.
pub(crate) fn io_error(what: &str, e: &std::io::Error) -> ferroflow_core::Error {
    ferroflow_core::err!(Unavailable, "{what}: {e}")
}
