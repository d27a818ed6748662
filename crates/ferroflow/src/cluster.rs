//! Clusters: the tasks of a job, the server of a task, and how a client connects to it.

pub use ferroflow_cluster::{
    ClusterSpec, ConnectOptions, Credentials, DataPath, EXAMINE, IpRange, JobAuthority,
    PeerIdentity, Server, ServerOptions, TaskReport, TfConfig, TlsProxy, Trust, examine,
    exit_within, network_threads, workers_done, workers_done_with,
};
/// What the clients of a server may use, and where its files are.
pub mod limits {
    pub use ferroflow_core::{Limit, Limits, files, limits, set_limits, set_memory_limit};
}

pub use ferroflow_train::{
    BackgroundServer, DeviceFn, IntoDevice, NodeSpec, PsStrategy, ReplicaDeviceSetter,
    loopback_spec, stop_signal,
};
