//! Tasks that talk to each other: the gRPC layer, the master and worker services of a task, the
//! server that hosts them, and the client side of a session.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod channels;
mod client;
mod client_blocks;
mod collective;
mod crowd;
mod dedup;
mod departure;
mod drain;
mod error;
mod examine;
#[doc(hidden)]
pub mod fuzzing;
mod health;
mod identity_quotas;
mod key;
mod link;
mod listen;
mod liveness;
mod master;
mod messages;
mod net;
mod part;
mod poll_inline;
mod proxy;
pub mod rpc;
mod server;
mod service;
mod session_use;
mod shutdown;
mod spec;
mod spin;
mod tf_config;
mod threads;
mod watchdog;
mod wire;
mod worker;

pub use client::{ConnectOptions, InProcessMaster, RemoteSession, SessionDevice, StepAnswer};
pub use crowd::{ConnectionCrowd, FirstRequest};
pub use departure::{workers_done, workers_done_with};
pub use examine::{EXAMINE, TaskReport, examine};
pub use ferroflow_identity::{Credentials, IpRange, JobAuthority, PeerIdentity, Trust};
pub use ferroflow_metrics::{MetricsFormat, TaskMetrics};
pub use link::DataPath;
pub use listen::{TrustedListener, descriptors};
pub use net::{
    NetListener, NetStream, SystemNetwork, TaskNetwork, TlsConnector, TlsStream, accept_http,
    connect_http,
};
pub use proxy::TlsProxy;
pub use server::{Server, ServerOptions};
pub use shutdown::{FirstSignal, exit_within};
pub use spec::ClusterSpec;
pub use spin::StepSpin;
pub use tf_config::TfConfig;
pub use threads::network_threads;
pub use wire::{gpu_choice, run_metadata};
