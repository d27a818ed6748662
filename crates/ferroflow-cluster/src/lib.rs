//! Tasks that talk to each other: the gRPC layer, the master and worker services of a task, the
//! server that hosts them, and the client side of a session.
#![forbid(unsafe_code)]

mod channels;
mod client;
mod collective;
mod error;
mod master;
mod recent;
pub mod rpc;
mod server;
mod service;
mod spec;
mod wire;
mod worker;

pub use client::RemoteSession;
pub use server::{Server, ServerOptions};
pub use spec::ClusterSpec;
