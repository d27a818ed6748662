//! The services of a task by path: decoding, dispatch, encoding.

use crate::error::to_status;
use crate::gate::{Gate, leaving};
use crate::master::Master;
use crate::rpc::{BoxFuture, Chunks, RpcRequest, RpcService, RpcStatus, code};
use crate::wire::device_to_proto;
use crate::worker::Worker;
use bytes::Bytes;
use ferroflow_core::{DeviceInfo, Error};
use ferroflow_graph::wire::step::{RunCallableRequest, RunGraphRequest, RunStepRequest};
use ferroflow_graph::wire::{MessageReader, Segments};
use ferroflow_proto::tensorflow as pb;
use ferroflow_runtime::Task;
use prost::Message;
use std::sync::Arc;

/// MasterService and WorkerService of one task.
pub(crate) struct TaskService {
    pub task: Arc<Task>,
    pub master: Master,
    pub worker: Arc<Worker>,
    /// Steps go through it.
    pub gate: Gate,
    /// How tasks like this one reach it without gRPC, if they may.
    pub link: Option<pb::FerroflowLink>,
}

impl RpcService for Arc<TaskService> {
    fn call(&self, request: RpcRequest) -> BoxFuture<Result<Chunks, RpcStatus>> {
        let me = self.clone();
        Box::pin(async move {
            let path = request.path().to_string();
            let Some(method) = path.strip_prefix("/tensorflow.") else {
                return Err(RpcStatus::unknown_method(&path));
            };
            match method.split_once('/') {
                Some(("MasterService", method)) => {
                    me.call_master(method, &path, request.body).await
                }
                Some(("WorkerService", method)) => {
                    me.call_worker(method, &path, request.body).await
                }
                _ => Err(RpcStatus::unknown_method(&path)),
            }
        })
    }
}

impl TaskService {
    pub async fn call_master(
        self: &Arc<Self>,
        method: &str,
        path: &str,
        body: Chunks,
    ) -> Result<Chunks, RpcStatus> {
        let master = &self.master;
        match method {
            "RunStep" => {
                let _inside = self.gate.enter().map_err(status)?;
                let request = RunStepRequest::decode(reader(body)).map_err(status)?;
                let response = master.run_step(request).await.map_err(status)?;
                segments(response.encode())
            }
            "RunCallable" => {
                let _inside = self.gate.enter().map_err(status)?;
                let request = RunCallableRequest::decode(reader(body)).map_err(status)?;
                let response = master.run_callable(request).await.map_err(status)?;
                segments(response.encode())
            }
            "CreateSession" => {
                let request = self.graph_work(body, |_, body| decode(body)).await?;
                let created = tokio::select! {
                    biased;
                    () = self.gate.closed() => Err(leaving()),
                    created = master.create_session(request) => created,
                };
                let session_handle = created.map_err(status)?;
                encode(pb::CreateSessionResponse { session_handle, graph_version: 0 })
            }
            "ExtendSession" => {
                let new_graph_version = self
                    .graph_work(body, |master, body| {
                        master.extend_session(decode(body)?).map_err(status)
                    })
                    .await?;
                encode(pb::ExtendSessionResponse { new_graph_version })
            }
            "PartialRunSetup" => {
                let partial_run_handle = master.partial_run_setup(decode(body)?).map_err(status)?;
                encode(pb::PartialRunSetupResponse { partial_run_handle })
            }
            "MakeCallable" => {
                let handle = master.make_callable(decode(body)?).map_err(status)?;
                encode(pb::MakeCallableResponse { handle })
            }
            "ReleaseCallable" => {
                master.release_callable(&decode(body)?).map_err(status)?;
                encode(pb::ReleaseCallableResponse {})
            }
            "CloseSession" => {
                let request: pb::CloseSessionRequest = decode(body)?;
                master.close_session(&request.session_handle).await.map_err(status)?;
                encode(pb::CloseSessionResponse {})
            }
            "Reset" => {
                let request: pb::ResetRequest = decode(body)?;
                let (containers, filters) = (&request.container, &request.device_filters);
                master.reset(containers, filters).await.map_err(status)?;
                encode(pb::ResetResponse {})
            }
            "ListDevices" => {
                let request: pb::ListDevicesRequest = decode(body)?;
                let found = master.devices(&request.session_handle).await.map_err(status)?;
                let proto = |devices: Vec<Arc<DeviceInfo>>| {
                    devices.iter().map(|d| device_to_proto(d)).collect()
                };
                let (local_device, remote_device) = (proto(found.0), proto(found.1));
                encode(pb::ListDevicesResponse { local_device, remote_device })
            }
            _ => Err(RpcStatus::unknown_method(path)),
        }
    }

    async fn call_worker(
        &self,
        method: &str,
        path: &str,
        body: Chunks,
    ) -> Result<Chunks, RpcStatus> {
        let worker = &self.worker;
        match method {
            "RunGraph" => {
                let _inside = self.gate.enter().map_err(status)?;
                let request = RunGraphRequest::decode(reader(body)).map_err(status)?;
                let response = worker.run_graph(request).await.map_err(status)?;
                segments(response.encode())
            }
            "RecvTensor" => {
                let response = worker.recv_tensor(decode(body)?).await.map_err(status)?;
                segments(response.encode())
            }
            "CleanupGraph" => {
                let request: pb::CleanupGraphRequest = decode(body)?;
                worker.cleanup_graph(request.step_id);
                encode(pb::CleanupGraphResponse {})
            }
            "GetStatus" => {
                let devices = &self.task.devices;
                let device_attributes = devices.iter().map(|d| device_to_proto(d)).collect();
                encode(pb::GetStatusResponse {
                    device_attributes,
                    ferroflow_link: self.link.clone(),
                })
            }
            "CreateWorkerSession" => {
                worker.create_session(decode(body)?, None).map_err(status)?;
                encode(pb::CreateWorkerSessionResponse {})
            }
            "DeleteWorkerSession" => {
                let request: pb::DeleteWorkerSessionRequest = decode(body)?;
                worker.delete_session(&request.session_handle);
                encode(pb::DeleteWorkerSessionResponse {})
            }
            "RegisterGraph" => {
                let graph_handle = worker.register_graph(decode(body)?).await.map_err(status)?;
                encode(pb::RegisterGraphResponse { graph_handle })
            }
            "DeregisterGraph" => {
                worker.deregister_graph(&decode(body)?).map_err(status)?;
                encode(pb::DeregisterGraphResponse {})
            }
            "CleanupAll" => {
                let request: pb::CleanupAllRequest = decode(body)?;
                worker.cleanup_all(&request.container);
                encode(pb::CleanupAllResponse {})
            }
            // Transfers are not recorded; a timeline without them is complete otherwise.
            "Logging" => encode(pb::LoggingResponse::default()),
            // Only values that asked for an acknowledgement are acknowledged, and ours never do.
            "MarkRecvFinished" => encode(pb::MarkRecvFinishedResponse {}),
            "Tracing" => Err(RpcStatus::new(code::UNIMPLEMENTED, "Tracing")),
            "RecvBuf" => encode(worker.recv_buf(decode(body)?).await.map_err(status)?),
            "CompleteGroup" => {
                let leader = &worker.collectives.leader;
                encode(leader.complete_group(decode(body)?).await.map_err(status)?)
            }
            "CompleteInstance" => {
                let leader = &worker.collectives.leader;
                encode(leader.complete_instance(decode(body)?).await.map_err(status)?)
            }
            "GetStepSequence" => {
                let request: pb::GetStepSequenceRequest = decode(body)?;
                let leader = &worker.collectives.leader;
                let step_sequence = leader.step_sequences(&request.graph_key).map_err(status)?;
                encode(pb::GetStepSequenceResponse { step_sequence })
            }
            _ => Err(RpcStatus::unknown_method(path)),
        }
    }
}

/// Graphs of more bytes than this are read on a thread that may take its time.
const LARGE_GRAPH: usize = 64 << 10;

impl TaskService {
    /// Does work on the graph in `body`: here if it is small, else where nobody else waits for it.
    async fn graph_work<T: Send + 'static>(
        self: &Arc<Self>,
        body: Chunks,
        work: impl FnOnce(&Master, Chunks) -> Result<T, RpcStatus> + Send + 'static,
    ) -> Result<T, RpcStatus> {
        if body.len() <= LARGE_GRAPH {
            return work(&self.master, body);
        }
        let me = self.clone();
        let done = tokio::task::spawn_blocking(move || work(&me.master, body)).await;
        done.map_err(|e| RpcStatus::new(code::INTERNAL, format!("the handler panicked: {e}")))?
    }
}

fn reader(body: Chunks) -> MessageReader {
    MessageReader::new(body.segments().cloned().collect::<Vec<_>>())
}

fn decode<M: Message + Default>(body: Chunks) -> Result<M, RpcStatus> {
    M::decode(body)
        .map_err(|e| RpcStatus::new(code::INVALID_ARGUMENT, format!("malformed message: {e}")))
}

fn encode(message: impl Message) -> Result<Chunks, RpcStatus> {
    Ok(Bytes::from(message.encode_to_vec()).into())
}

fn segments(encoded: Result<Segments, Error>) -> Result<Chunks, RpcStatus> {
    Ok(encoded.map_err(status)?.into_parts().into())
}

fn status(error: Error) -> RpcStatus {
    to_status(&error)
}
