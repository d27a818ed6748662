//! The calls of WorkerService by which TensorFlow's collectives meet and exchange values.

use super::device::DeviceMessage;
use super::{Decode, Encode, read, write};
use crate::messages::*;
use crate::rpc::Chunks;
use bytes::Bytes;
use ferroflow_core::{Result, err};
use ferroflow_proto::google::protobuf::Any;
use ferroflow_proto::tensorflow as pb;
use prost::Message;

const RESPONSE_EXTRA: &str = "type.googleapis.com/tensorflow.RecvBufRespExtra";

impl Encode for RecvBufRequest {
    fn encode(self) -> Bytes {
        write(pb::RecvBufRequest {
            step_id: self.step_id,
            buf_rendezvous_key: self.key,
            num_bytes: self.num_bytes,
            src_device: self.source_device,
            dst_device: self.destination_device,
            request_id: self.request_id,
            src_incarnation: self.source_incarnation,
            ..Default::default()
        })
    }
}

impl Decode for RecvBufRequest {
    fn decode(body: Chunks) -> Result<Self> {
        let p: pb::RecvBufRequest = read(body)?;
        Ok(RecvBufRequest {
            step_id: p.step_id,
            key: p.buf_rendezvous_key,
            num_bytes: p.num_bytes,
            source_device: p.src_device,
            source_incarnation: p.src_incarnation,
            destination_device: p.dst_device,
            request_id: p.request_id,
        })
    }
}

impl Encode for RecvBufResponse {
    fn encode(self) -> Bytes {
        let num_bytes = self.chunks.iter().map(Bytes::len).sum::<usize>() as i64;
        let extra = pb::RecvBufRespExtra { tensor_content: self.chunks };
        write(pb::RecvBufResponse {
            num_bytes,
            transport_options: Some(Any { type_url: RESPONSE_EXTRA.into(), value: write(extra) }),
            ..Default::default()
        })
    }
}

impl Decode for RecvBufResponse {
    fn decode(body: Chunks) -> Result<Self> {
        let p: pb::RecvBufResponse = read(body)?;
        let extra = p.transport_options.unwrap_or_default();
        let extra = pb::RecvBufRespExtra::decode(extra.value)
            .map_err(|e| err!(InvalidArgument, "malformed message: {e}"))?;
        Ok(RecvBufResponse { chunks: extra.tensor_content })
    }
}

impl Encode for CompleteGroupRequest {
    fn encode(self) -> Bytes {
        write(pb::CompleteGroupRequest {
            group_key: self.group_key,
            group_size: self.group_size,
            device_type: self.device_type,
            collective_type: self.collective_type,
            device_attributes: self.device.map(|d| d.0),
            // One more than the rank, because 0 means that there is none.
            ferroflow_rank: self.rank.map_or(0, |rank| rank.saturating_add(1)),
        })
    }
}

impl Decode for CompleteGroupRequest {
    fn decode(body: Chunks) -> Result<Self> {
        let p: pb::CompleteGroupRequest = read(body)?;
        Ok(CompleteGroupRequest {
            group_key: p.group_key,
            group_size: p.group_size,
            device_type: p.device_type,
            collective_type: p.collective_type,
            device: p.device_attributes.map(DeviceMessage),
            rank: (p.ferroflow_rank > 0).then(|| p.ferroflow_rank - 1),
        })
    }
}

impl Encode for CompleteGroupResponse {
    fn encode(self) -> Bytes {
        write(pb::CompleteGroupResponse {
            group_key: self.group_key,
            group_size: self.group_size,
            device_type: self.device_type,
            num_tasks: self.num_tasks,
            device_attributes: self.devices.into_iter().map(|d| d.0).collect(),
            ferroflow_ranks: self.ranks,
            ..Default::default()
        })
    }
}

impl Decode for CompleteGroupResponse {
    fn decode(body: Chunks) -> Result<Self> {
        let p: pb::CompleteGroupResponse = read(body)?;
        Ok(CompleteGroupResponse {
            group_key: p.group_key,
            group_size: p.group_size,
            device_type: p.device_type,
            num_tasks: p.num_tasks,
            devices: p.device_attributes.into_iter().map(DeviceMessage).collect(),
            ranks: p.ferroflow_ranks,
        })
    }
}

impl Encode for CompleteInstanceRequest {
    fn encode(self) -> Bytes {
        write(pb::CompleteInstanceRequest {
            name: self.name,
            r#type: self.collective_type,
            data_type: self.data_type,
            group_key: self.group_key,
            group_size: self.group_size,
            instance_key: self.instance_key,
            device_type: self.device_type,
            device: self.device,
            is_source: self.is_source,
            step_id: self.step_id,
            ..Default::default()
        })
    }
}

impl Decode for CompleteInstanceRequest {
    fn decode(body: Chunks) -> Result<Self> {
        let p: pb::CompleteInstanceRequest = read(body)?;
        Ok(CompleteInstanceRequest {
            name: p.name,
            collective_type: p.r#type,
            data_type: p.data_type,
            group_key: p.group_key,
            group_size: p.group_size,
            instance_key: p.instance_key,
            device_type: p.device_type,
            device: p.device,
            is_source: p.is_source,
            step_id: p.step_id,
        })
    }
}

impl Encode for CompleteInstanceResponse {
    fn encode(self) -> Bytes {
        let CompleteInstanceResponse { instance_key, source_rank } = self;
        write(pb::CompleteInstanceResponse { instance_key, source_rank })
    }
}

impl Decode for CompleteInstanceResponse {
    fn decode(body: Chunks) -> Result<Self> {
        let p: pb::CompleteInstanceResponse = read(body)?;
        let pb::CompleteInstanceResponse { instance_key, source_rank } = p;
        Ok(CompleteInstanceResponse { instance_key, source_rank })
    }
}

impl Encode for GetStepSequenceRequest {
    fn encode(self) -> Bytes {
        write(pb::GetStepSequenceRequest { graph_key: self.graph_keys })
    }
}

impl Decode for GetStepSequenceRequest {
    fn decode(body: Chunks) -> Result<Self> {
        let p: pb::GetStepSequenceRequest = read(body)?;
        Ok(GetStepSequenceRequest { graph_keys: p.graph_key })
    }
}

impl Encode for GetStepSequenceResponse {
    fn encode(self) -> Bytes {
        let next = |(graph_key, next_step_id)| pb::StepSequence { graph_key, next_step_id };
        let step_sequence = self.next_steps.into_iter().map(next).collect();
        write(pb::GetStepSequenceResponse { step_sequence })
    }
}

impl Decode for GetStepSequenceResponse {
    fn decode(body: Chunks) -> Result<Self> {
        let p: pb::GetStepSequenceResponse = read(body)?;
        let next = |s: pb::StepSequence| (s.graph_key, s.next_step_id);
        Ok(GetStepSequenceResponse { next_steps: p.step_sequence.into_iter().map(next).collect() })
    }
}
