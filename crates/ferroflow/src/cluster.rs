//! Clusters: the tasks of a job, the server of a task, and how a client connects to it.

pub use ferroflow_cluster::{
    ClusterSpec, ConnectOptions, DataPath, Server, ServerOptions, TfConfig, network_threads,
    workers_done,
};
pub use ferroflow_train::{
    BackgroundServer, DeviceFn, IntoDevice, NodeSpec, PsStrategy, ReplicaDeviceSetter,
    loopback_spec, stop_signal,
};
