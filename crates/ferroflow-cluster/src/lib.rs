//! Tasks that talk to each other: the gRPC layer, the master and worker services of a task, the
//! server that hosts them, and the client side of a session.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod begun;
mod channels;
mod client;
mod collective;
mod departure;
mod error;
mod gate;
mod key;
mod link;
mod listen;
mod master;
mod messages;
mod net;
mod patience;
mod patient;
mod pulse;
mod recent;
pub mod rpc;
mod server;
mod service;
mod spec;
mod tf_config;
mod threads;
mod wire;
mod worker;

pub use client::{ConnectOptions, InProcessMaster, RemoteSession, StepAnswer};
pub use departure::workers_done;
pub use link::DataPath;
pub use net::{NetListener, NetStream, SystemNetwork, TaskNetwork};
pub use patient::Patience;
pub use server::{Server, ServerOptions};
pub use spec::ClusterSpec;
pub use tf_config::TfConfig;
pub use threads::network_threads;
pub use wire::run_metadata;
