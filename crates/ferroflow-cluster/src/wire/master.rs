//! MasterService.

use super::config::{SessionConfig, session_options};
use super::device::device_to_proto;
use super::{Decode, Encode, GraphMessage, read, write};
use crate::client::{ConnectOptions, SessionDevice, SessionDevices};
use crate::messages::*;
use crate::rpc::Chunks;
use bytes::Bytes;
use ferroflow_collective::blocks::BlockMemory;
use ferroflow_core::{DeviceInfo, Result};
use ferroflow_graph::GraphDef;
use ferroflow_graph::wire::graph::graph_to_proto;
use ferroflow_graph::wire::step::FULL_TRACE;
use ferroflow_proto::tensorflow as pb;
use ferroflow_runtime::{CallableSpec, RunOptions};
use std::sync::Arc;

/// The request with which a client of ours opens a session.
pub(crate) fn create_session(
    graph: &GraphDef,
    options: &ConnectOptions,
    target: String,
) -> Result<Bytes> {
    Ok(write(pb::CreateSessionRequest {
        graph_def: Some(graph_to_proto(graph)?),
        config: Some(SessionConfig::of_client(options)?),
        target,
    }))
}

impl Decode for CreateSessionRequest {
    fn decode(body: Chunks) -> Result<Self> {
        let p: pb::CreateSessionRequest = read(body)?;
        let config = p.config.unwrap_or_default();
        Ok(CreateSessionRequest {
            graph: GraphMessage(p.graph_def.unwrap_or_default()),
            options: session_options(&config)?,
            config: SessionConfig::new(config),
            target: p.target,
        })
    }
}

impl Encode for CreateSessionResponse {
    fn encode(self) -> Bytes {
        let CreateSessionResponse { session_handle, graph_version } = self;
        write(pb::CreateSessionResponse { session_handle, graph_version })
    }
}

impl Decode for CreateSessionResponse {
    fn decode(body: Chunks) -> Result<Self> {
        let p: pb::CreateSessionResponse = read(body)?;
        let pb::CreateSessionResponse { session_handle, graph_version } = p;
        Ok(CreateSessionResponse { session_handle, graph_version })
    }
}

fn blocks_to_proto(blocks: BlockMemory) -> pb::FerroflowBlocks {
    let BlockMemory { name, len, mark } = blocks;
    pb::FerroflowBlocks { name, len, mark }
}

fn blocks_from_proto(blocks: pb::FerroflowBlocks) -> BlockMemory {
    let pb::FerroflowBlocks { name, len, mark } = blocks;
    BlockMemory { name, len, mark }
}

impl Encode for ShareBlocksRequest {
    fn encode(self) -> Bytes {
        let ShareBlocksRequest { session_handle, blocks } = self;
        let blocks = Some(blocks_to_proto(blocks));
        write(pb::FerroflowShareBlocksRequest { session_handle, blocks })
    }
}

impl Decode for ShareBlocksRequest {
    fn decode(body: Chunks) -> Result<Self> {
        let p: pb::FerroflowShareBlocksRequest = read(body)?;
        let blocks = blocks_from_proto(p.blocks.unwrap_or_default());
        Ok(ShareBlocksRequest { session_handle: p.session_handle, blocks })
    }
}

impl Encode for ShareBlocksResponse {
    fn encode(self) -> Bytes {
        let ShareBlocksResponse { takes_blocks, blocks } = self;
        let blocks = blocks.map(blocks_to_proto);
        write(pb::FerroflowShareBlocksResponse { takes_blocks, blocks })
    }
}

impl Decode for ShareBlocksResponse {
    fn decode(body: Chunks) -> Result<Self> {
        let p: pb::FerroflowShareBlocksResponse = read(body)?;
        let blocks = p.blocks.map(blocks_from_proto);
        Ok(ShareBlocksResponse { takes_blocks: p.takes_blocks, blocks })
    }
}

impl Encode for ExtendSessionRequest {
    fn encode(self) -> Bytes {
        write(pb::ExtendSessionRequest {
            session_handle: self.session_handle,
            graph_def: Some(self.graph.0),
            current_graph_version: self.current_graph_version,
        })
    }
}

impl Decode for ExtendSessionRequest {
    fn decode(body: Chunks) -> Result<Self> {
        let p: pb::ExtendSessionRequest = read(body)?;
        Ok(ExtendSessionRequest {
            session_handle: p.session_handle,
            graph: GraphMessage(p.graph_def.unwrap_or_default()),
            current_graph_version: p.current_graph_version,
        })
    }
}

impl Encode for ExtendSessionResponse {
    fn encode(self) -> Bytes {
        write(pb::ExtendSessionResponse { new_graph_version: self.new_graph_version })
    }
}

impl Decode for ExtendSessionResponse {
    fn decode(body: Chunks) -> Result<Self> {
        let p: pb::ExtendSessionResponse = read(body)?;
        Ok(ExtendSessionResponse { new_graph_version: p.new_graph_version })
    }
}

impl Encode for PartialRunSetupRequest {
    fn encode(self) -> Bytes {
        write(pb::PartialRunSetupRequest {
            session_handle: self.session_handle,
            feed: self.feeds,
            fetch: self.fetches,
            target: self.targets,
            request_id: self.request_id,
        })
    }
}

impl Decode for PartialRunSetupRequest {
    fn decode(body: Chunks) -> Result<Self> {
        let p: pb::PartialRunSetupRequest = read(body)?;
        Ok(PartialRunSetupRequest {
            session_handle: p.session_handle,
            feeds: p.feed,
            fetches: p.fetch,
            targets: p.target,
            request_id: p.request_id,
        })
    }
}

impl Encode for PartialRunSetupResponse {
    fn encode(self) -> Bytes {
        write(pb::PartialRunSetupResponse { partial_run_handle: self.partial_run_handle })
    }
}

impl Decode for PartialRunSetupResponse {
    fn decode(body: Chunks) -> Result<Self> {
        let p: pb::PartialRunSetupResponse = read(body)?;
        Ok(PartialRunSetupResponse { partial_run_handle: p.partial_run_handle })
    }
}

impl Decode for MakeCallableRequest {
    fn decode(body: Chunks) -> Result<Self> {
        let p: pb::MakeCallableRequest = read(body)?;
        let options = p.options.unwrap_or_default();
        let run = options.run_options.unwrap_or_default();
        let connections = options.tensor_connection.into_iter();
        Ok(MakeCallableRequest {
            session_handle: p.session_handle,
            names_devices: !options.feed_devices.is_empty() || !options.fetch_devices.is_empty(),
            spec: CallableSpec {
                feeds: options.feed,
                fetches: options.fetch,
                targets: options.target,
                connections: connections.map(|c| (c.from_tensor, c.to_tensor)).collect(),
                options: RunOptions {
                    trace: run.trace_level >= FULL_TRACE,
                    output_partition_graphs: run.output_partition_graphs,
                    ..RunOptions::default()
                },
            },
            request_id: p.request_id,
        })
    }
}

impl Encode for MakeCallableResponse {
    fn encode(self) -> Bytes {
        write(pb::MakeCallableResponse { handle: self.handle })
    }
}

impl Decode for ReleaseCallableRequest {
    fn decode(body: Chunks) -> Result<Self> {
        let p: pb::ReleaseCallableRequest = read(body)?;
        Ok(ReleaseCallableRequest { session_handle: p.session_handle, handle: p.handle })
    }
}

impl Encode for CloseSessionRequest {
    fn encode(self) -> Bytes {
        write(pb::CloseSessionRequest { session_handle: self.session_handle })
    }
}

impl Decode for CloseSessionRequest {
    fn decode(body: Chunks) -> Result<Self> {
        let p: pb::CloseSessionRequest = read(body)?;
        Ok(CloseSessionRequest { session_handle: p.session_handle })
    }
}

impl Decode for ResetRequest {
    fn decode(body: Chunks) -> Result<Self> {
        let p: pb::ResetRequest = read(body)?;
        Ok(ResetRequest { containers: p.container, device_filters: p.device_filters })
    }
}

impl Encode for ResetRequest {
    fn encode(self) -> Bytes {
        let ResetRequest { containers, device_filters } = self;
        write(pb::ResetRequest { container: containers, device_filters })
    }
}

impl Encode for ListDevicesRequest {
    fn encode(self) -> Bytes {
        write(pb::ListDevicesRequest { session_handle: self.session_handle })
    }
}

impl Decode for SessionDevices {
    fn decode(body: Chunks) -> Result<Self> {
        let p: pb::ListDevicesResponse = read(body)?;
        let one = |d: pb::DeviceAttributes| SessionDevice {
            name: d.name,
            kind: d.device_type,
            memory_limit: d.memory_limit,
            incarnation: d.incarnation,
        };
        let all = p.local_device.into_iter().chain(p.remote_device);
        Ok(SessionDevices(all.map(one).collect()))
    }
}

impl Decode for ListDevicesRequest {
    fn decode(body: Chunks) -> Result<Self> {
        let p: pb::ListDevicesRequest = read(body)?;
        Ok(ListDevicesRequest { session_handle: p.session_handle })
    }
}

impl Encode for ListDevicesResponse {
    fn encode(self) -> Bytes {
        let proto =
            |devices: Vec<Arc<DeviceInfo>>| devices.iter().map(|d| device_to_proto(d)).collect();
        let (local_device, remote_device) = (proto(self.local), proto(self.remote));
        write(pb::ListDevicesResponse { local_device, remote_device })
    }
}
