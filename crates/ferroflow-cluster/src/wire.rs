//! Protobuf messages of the services from and to our own types. The calls that carry tensors are
//! in `ferroflow_graph::wire::step`.

mod config;
mod device;
mod stats;

pub(crate) use config::session_options;
pub(crate) use device::{device_from_proto, device_to_proto};
pub use stats::run_metadata;
pub(crate) use stats::step_stats;
