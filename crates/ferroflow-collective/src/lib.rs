//! Collectives on plain buffers (all-reduce, all-gather, broadcast and so on) for training with
//! many processes.
//!
//! A [`Group`] is a set of connected ranks. Ranks on one host use shared memory, ranks on different
//! hosts use TCP. The methods of a group are collectives: every rank calls the same methods in the
//! same order, and they work in place on the caller's buffers. A [`LinkCostModel`] of the links
//! selects the schedule of each collective. A failure on one rank is an error on all ranks, and the
//! error names the rank that failed.
//!
//! An [`Engine`] runs a group's collectives for callers that submit named tensors in any order. A
//! coordinator on rank 0 decides what runs next. It fuses small tensors, cuts large ones, and
//! orders them.
//!
//! This crate does not know about graphs.
#![warn(missing_docs)]

pub mod bench;
#[cfg(target_os = "linux")]
pub mod blocks;
#[cfg(test)]
mod chaos;
mod compress;
mod control;
mod descriptors;
pub mod elastic;
mod engine;
mod environment;
mod exchange;
mod executor;
pub mod explain;
mod failure;
#[cfg(test)]
mod fault_proxy;
mod foreign;
#[doc(hidden)]
pub mod fuzzing;
mod group;
mod group_thread;
mod link_cost;
pub mod loopback;
mod mesh;
mod messages;
mod number;
mod processors;
mod reduce;
mod rendezvous;
mod schedule;
mod signature;
pub mod simulate;
#[cfg(target_os = "linux")]
pub mod ucx;
mod wire;

pub use compress::WireCompression;
pub use engine::{
    Collective, CollectiveHandle, Engine, EngineOptions, EngineStats, ForeignDone, JoinHandle,
    SetHandle, SubmitOptions, TensorDone,
};
pub use exchange::LauncherStore;
pub use foreign::ForeignTensor;
pub use group::{Group, GroupOptions, ReduceAlgorithm, SetId};
pub use group_thread::{GroupAbort, GroupThread};
pub use link_cost::{Algorithm, LinkCostModel};
pub use mesh::{Mesh, MeshFaults, in_process};
pub use messages::{MessageDone, MessageLinks};
pub use number::{NUMBERS, Number, bytes_of, bytes_of_mut};
pub use reduce::{ReduceOp, scale};
pub use rendezvous::{Membership, TransportChoice};
pub use schedule::{Schedule, ScheduleAction, ScheduleStep};
pub use signature::OperationKind;

/// An `Unavailable` error from an operating-system error. `what` is the operation that failed.
pub(crate) fn io_error(what: &str, e: &std::io::Error) -> ferroflow_core::Error {
    ferroflow_core::err!(Unavailable, "{what}: {e}")
}
