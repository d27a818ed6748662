//! The services of a task by path: decoding, dispatch, encoding.

use crate::error::to_status;
use crate::master::Master;
use crate::rpc::{BoxFuture, Chunks, Request, Service, Status, code};
use crate::wire::device_to_proto;
use bytes::Bytes;
use ferroflow_core::Error;
use ferroflow_graph::wire::step::{RunCallableRequest, RunStepRequest};
use ferroflow_graph::wire::{Reader, Segments};
use ferroflow_proto::tensorflow as pb;
use ferroflow_runtime::Task;
use prost::Message;
use std::sync::Arc;

/// MasterService and WorkerService of one task.
pub(crate) struct TaskService {
    pub task: Arc<Task>,
    pub master: Master,
}

impl Service for Arc<TaskService> {
    fn call(&self, request: Request) -> BoxFuture<Result<Chunks, Status>> {
        let me = self.clone();
        Box::pin(async move {
            let path = request.path().to_string();
            let Some(method) = path.strip_prefix("/tensorflow.") else {
                return Err(Status::unknown_method(&path));
            };
            me.dispatch(method, &path, request.body).await
        })
    }
}

impl TaskService {
    async fn dispatch(&self, method: &str, path: &str, body: Chunks) -> Result<Chunks, Status> {
        let master = &self.master;
        match method {
            "MasterService/RunStep" => {
                let request = RunStepRequest::decode(reader(body)).map_err(status)?;
                let response = master.run_step(request).await.map_err(status)?;
                segments(response.encode())
            }
            "MasterService/RunCallable" => {
                let request = RunCallableRequest::decode(reader(body)).map_err(status)?;
                let response = master.run_callable(request).await.map_err(status)?;
                segments(response.encode())
            }
            "MasterService/CreateSession" => {
                let session_handle = master.create_session(decode(body)?).map_err(status)?;
                encode(pb::CreateSessionResponse { session_handle, graph_version: 0 })
            }
            "MasterService/ExtendSession" => {
                let new_graph_version = master.extend_session(decode(body)?).map_err(status)?;
                encode(pb::ExtendSessionResponse { new_graph_version })
            }
            "MasterService/PartialRunSetup" => {
                let partial_run_handle = master.partial_run_setup(decode(body)?).map_err(status)?;
                encode(pb::PartialRunSetupResponse { partial_run_handle })
            }
            "MasterService/MakeCallable" => {
                let handle = master.make_callable(decode(body)?).map_err(status)?;
                encode(pb::MakeCallableResponse { handle })
            }
            "MasterService/ReleaseCallable" => {
                master.release_callable(&decode(body)?).map_err(status)?;
                encode(pb::ReleaseCallableResponse {})
            }
            "MasterService/CloseSession" => {
                let request: pb::CloseSessionRequest = decode(body)?;
                master.close_session(&request.session_handle).await.map_err(status)?;
                encode(pb::CloseSessionResponse {})
            }
            "MasterService/Reset" => {
                let request: pb::ResetRequest = decode(body)?;
                master.reset(&request.container).await;
                encode(pb::ResetResponse {})
            }
            "MasterService/ListDevices" => {
                let request: pb::ListDevicesRequest = decode(body)?;
                let devices = master.devices(&request.session_handle).map_err(status)?;
                let local_device = devices.iter().map(|d| device_to_proto(d)).collect();
                encode(pb::ListDevicesResponse { local_device, remote_device: vec![] })
            }
            "WorkerService/GetStatus" => {
                let devices = &self.task.devices;
                let device_attributes = devices.iter().map(|d| device_to_proto(d)).collect();
                encode(pb::GetStatusResponse { device_attributes })
            }
            _ => Err(Status::unknown_method(path)),
        }
    }
}

fn reader(body: Chunks) -> Reader {
    Reader::new(body.segments().cloned().collect::<Vec<_>>())
}

fn decode<M: Message + Default>(body: Chunks) -> Result<M, Status> {
    M::decode(body)
        .map_err(|e| Status::new(code::INVALID_ARGUMENT, format!("malformed message: {e}")))
}

fn encode(message: impl Message) -> Result<Chunks, Status> {
    Ok(Bytes::from(message.encode_to_vec()).into())
}

fn segments(encoded: Result<Segments, Error>) -> Result<Chunks, Status> {
    Ok(encoded.map_err(status)?.into_parts().into())
}

fn status(error: Error) -> Status {
    to_status(&error)
}
