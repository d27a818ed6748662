//! Protobuf messages of the services from and to our own types. The calls that carry tensors are
//! in `ferroflow_graph::wire::step`.

mod config;
mod costs;
mod device;
mod stats;

pub(crate) use config::{placement_options, session_options};
pub(crate) use costs::cost_graph;
pub(crate) use device::{device_from_proto, device_to_proto};
pub(crate) use stats::{measure, step_stats};
pub use stats::{measured, run_metadata};
