//! Converts the protobuf messages of the services from and to our own types
//! ([`crate::messages`]). The calls that carry tensors are in `ferroflow_graph::wire::step`.

mod collective;
mod config;
mod costs;
mod device;
mod gpu_options;
mod graph;
mod master;
mod stats;
mod status;
mod worker;

use crate::rpc::Chunks;
use bytes::Bytes;
pub(crate) use config::SessionConfig;
pub(crate) use costs::cost_graph;
pub(crate) use device::DeviceMessage;
use ferroflow_core::{Result, err};
pub use gpu_options::gpu_choice;
pub(crate) use graph::GraphMessage;
pub(crate) use master::create_session;
use prost::Message;
pub use stats::run_metadata;
pub(crate) use stats::step_stats;
pub(crate) use status::{derived_details, is_derived};

/// A request or an answer that can be sent.
pub(crate) trait Encode {
    fn encode(self) -> Bytes;
}

/// A request or an answer that can be received.
pub(crate) trait Decode: Sized {
    fn decode(body: Chunks) -> Result<Self>;
}

/// An answer that says nothing but that the call succeeded.
impl Encode for () {
    fn encode(self) -> Bytes {
        Bytes::new()
    }
}

impl Decode for () {
    fn decode(_: Chunks) -> Result<()> {
        Ok(())
    }
}

fn read<M: Message + Default>(body: Chunks) -> Result<M> {
    M::decode(body).map_err(|e| err!(InvalidArgument, "malformed message: {e}"))
}

fn write(message: impl Message) -> Bytes {
    message.encode_to_vec().into()
}
