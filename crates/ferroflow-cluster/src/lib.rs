//! Tasks that talk to each other: the gRPC layer, the master and worker services of a task, the
//! server that hosts them, and the client side of a session.
#![forbid(unsafe_code)]

mod channels;
mod client;
mod error;
mod master;
mod recent;
pub mod rpc;
mod server;
mod service;
mod spec;
mod tf_config;
mod wire;
mod worker;

pub use client::{ConnectOptions, InProcessMaster, RemoteSession, StepAnswer};
pub use server::{Server, ServerOptions};
pub use spec::ClusterSpec;
pub use tf_config::TfConfig;
pub use wire::run_metadata;
