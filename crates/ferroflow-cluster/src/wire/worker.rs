//! WorkerService, but for its collectives.

use super::config::{SessionConfig, cluster_to_proto, described, rewrites_of};
use super::device::DeviceMessage;
use super::{Decode, Encode, GraphMessage, read, write};
use crate::link::Token;
use crate::messages::*;
use crate::rpc::Chunks;
use bytes::Bytes;
use ferroflow_core::Result;
use ferroflow_proto::tensorflow as pb;

impl Encode for GetStatusRequest {
    fn encode(self) -> Bytes {
        write(pb::GetStatusRequest { ferroflow_measures_devices: self.measures_devices })
    }
}

impl Decode for GetStatusRequest {
    fn decode(body: Chunks) -> Result<Self> {
        let p: pb::GetStatusRequest = read(body)?;
        Ok(GetStatusRequest { measures_devices: p.ferroflow_measures_devices })
    }
}

impl Encode for GetStatusResponse {
    fn encode(self) -> Bytes {
        let link = |link: LinkOffer| pb::FerroflowLink {
            version: link.version,
            token: link.token.to_vec().into(),
            local_name: link.local_name,
        };
        write(pb::GetStatusResponse {
            device_attributes: self.devices.into_iter().map(|d| d.0).collect(),
            ferroflow_link: self.link.map(link),
        })
    }
}

impl Decode for GetStatusResponse {
    fn decode(body: Chunks) -> Result<Self> {
        let p: pb::GetStatusResponse = read(body)?;
        let link = |link: pb::FerroflowLink| {
            let token = Token::try_from(&link.token[..]).ok()?;
            Some(LinkOffer { version: link.version, token, local_name: link.local_name })
        };
        Ok(GetStatusResponse {
            devices: p.device_attributes.into_iter().map(DeviceMessage).collect(),
            link: p.ferroflow_link.and_then(link),
        })
    }
}

impl Encode for CreateWorkerSessionRequest {
    fn encode(self) -> Bytes {
        let (cluster, config) = match self.described {
            Some(d) => (Some(cluster_to_proto(d.cluster)), Some(d.config.into_proto())),
            None => (None, None),
        };
        write(pb::CreateWorkerSessionRequest {
            session_handle: self.session_handle,
            server_def: Some(pb::ServerDef {
                cluster,
                job_name: self.job,
                task_index: self.task_index,
                default_session_config: config,
                protocol: "grpc".into(),
                ..Default::default()
            }),
            isolate_session_state: self.isolate_state,
            master_task: self.master_task,
            master_incarnation: self.master_incarnation,
            ..Default::default()
        })
    }
}

impl Decode for CreateWorkerSessionRequest {
    fn decode(body: Chunks) -> Result<Self> {
        let p: pb::CreateWorkerSessionRequest = read(body)?;
        let server = p.server_def.unwrap_or_default();
        let config = server.default_session_config.unwrap_or_default();
        let cluster = server.cluster.as_ref().and_then(described);
        Ok(CreateWorkerSessionRequest {
            session_handle: p.session_handle,
            described: cluster
                .map(|cluster| DescribedCluster { cluster, config: SessionConfig::new(config) }),
            job: server.job_name,
            task_index: server.task_index,
            isolate_state: p.isolate_session_state,
            master_task: p.master_task,
            master_incarnation: p.master_incarnation,
        })
    }
}

impl Encode for DeleteWorkerSessionRequest {
    fn encode(self) -> Bytes {
        write(pb::DeleteWorkerSessionRequest { session_handle: self.session_handle })
    }
}

impl Decode for DeleteWorkerSessionRequest {
    fn decode(body: Chunks) -> Result<Self> {
        let p: pb::DeleteWorkerSessionRequest = read(body)?;
        Ok(DeleteWorkerSessionRequest { session_handle: p.session_handle })
    }
}

impl Encode for RegisterGraphRequest {
    fn encode(self) -> Bytes {
        let config = self.config.map(SessionConfig::into_proto);
        write(pb::RegisterGraphRequest {
            session_handle: self.session_handle,
            graph_def: Some(self.graph.0),
            graph_options: config.as_ref().and_then(|c| c.graph_options.clone()),
            create_worker_session_called: self.create_worker_session_called,
            config_proto: config,
            ..Default::default()
        })
    }
}

impl Decode for RegisterGraphRequest {
    fn decode(body: Chunks) -> Result<Self> {
        let p: pb::RegisterGraphRequest = read(body)?;
        let options = p.config_proto.as_ref().and_then(|c| c.graph_options.as_ref());
        Ok(RegisterGraphRequest {
            session_handle: p.session_handle,
            create_worker_session_called: p.create_worker_session_called,
            graph: GraphMessage(p.graph_def.unwrap_or_default()),
            rewrites: rewrites_of(options.or(p.graph_options.as_ref())),
            config: p.config_proto.map(SessionConfig::new),
        })
    }
}

impl Encode for RegisterGraphResponse {
    fn encode(self) -> Bytes {
        write(pb::RegisterGraphResponse { graph_handle: self.graph_handle })
    }
}

impl Decode for RegisterGraphResponse {
    fn decode(body: Chunks) -> Result<Self> {
        let p: pb::RegisterGraphResponse = read(body)?;
        Ok(RegisterGraphResponse { graph_handle: p.graph_handle })
    }
}

impl Encode for DeregisterGraphRequest {
    fn encode(self) -> Bytes {
        write(pb::DeregisterGraphRequest {
            session_handle: self.session_handle,
            graph_handle: self.graph_handle,
            create_worker_session_called: self.create_worker_session_called,
        })
    }
}

impl Decode for DeregisterGraphRequest {
    fn decode(body: Chunks) -> Result<Self> {
        let p: pb::DeregisterGraphRequest = read(body)?;
        Ok(DeregisterGraphRequest {
            session_handle: p.session_handle,
            create_worker_session_called: p.create_worker_session_called,
            graph_handle: p.graph_handle,
        })
    }
}

impl Encode for CleanupGraphRequest {
    fn encode(self) -> Bytes {
        write(pb::CleanupGraphRequest { step_id: self.step_id })
    }
}

impl Decode for CleanupGraphRequest {
    fn decode(body: Chunks) -> Result<Self> {
        let p: pb::CleanupGraphRequest = read(body)?;
        Ok(CleanupGraphRequest { step_id: p.step_id })
    }
}

impl Encode for CleanupAllRequest {
    fn encode(self) -> Bytes {
        write(pb::CleanupAllRequest { container: self.containers })
    }
}

impl Decode for CleanupAllRequest {
    fn decode(body: Chunks) -> Result<Self> {
        let p: pb::CleanupAllRequest = read(body)?;
        Ok(CleanupAllRequest { containers: p.container })
    }
}

impl Encode for RecvTensorRequest {
    fn encode(self) -> Bytes {
        write(pb::RecvTensorRequest {
            step_id: self.step_id,
            rendezvous_key: self.rendezvous_key,
            request_id: self.request_id,
            ..Default::default()
        })
    }
}

impl Decode for RecvTensorRequest {
    fn decode(body: Chunks) -> Result<Self> {
        let p: pb::RecvTensorRequest = read(body)?;
        Ok(RecvTensorRequest {
            step_id: p.step_id,
            rendezvous_key: p.rendezvous_key,
            request_id: p.request_id,
        })
    }
}
