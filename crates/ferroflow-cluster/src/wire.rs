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
use crate::threads::off_network;
use bytes::Bytes;
pub(crate) use config::SessionConfig;
pub(crate) use costs::cost_graph;
pub(crate) use device::DeviceMessage;
use ferroflow_core::inline::{may_convert_inline, may_decode_inline};
use ferroflow_core::{Result, err};
use ferroflow_graph::wire::MessageReader;
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

/// The empty answer of a call that succeeded.
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

/// Decodes a message whose fields `path` lead to its tensors. A network thread leaves one that
/// takes long to another thread.
pub async fn decode_tensors<M: Send + 'static>(
    body: Chunks,
    path: &[u32],
    read: fn(MessageReader) -> Result<M>,
) -> Result<M> {
    let reader = MessageReader::new(body.segments().cloned().collect::<Vec<_>>());
    let is_quick = may_decode_inline(body.len()) || {
        let parsed = reader.parsed_bytes(path);
        may_convert_inline(parsed, body.len() - parsed)
    };
    off_network(is_quick, move || read(reader)).await
}

fn read<M: Message + Default>(body: Chunks) -> Result<M> {
    M::decode(body).map_err(|e| err!(InvalidArgument, "malformed message: {e}"))
}

fn write(message: impl Message) -> Bytes {
    message.encode_to_vec().into()
}
