//! The gRPC services of a task: decodes requests, calls the master or the worker, encodes answers.

use crate::drain::{Drain, leaving};
use crate::error::to_status;
use crate::examine::EXAMINE;
use crate::link::{DataPath, Identity, VERSION};
use crate::master::Master;
use crate::messages::{
    CleanupAllRequest, CleanupGraphRequest, CloseSessionRequest, CreateSessionRequest,
    CreateSessionResponse, DeleteWorkerSessionRequest, ExtendSessionResponse, GetStatusResponse,
    GetStepSequenceRequest, GetStepSequenceResponse, LinkOffer, ListDevicesRequest,
    ListDevicesResponse, MakeCallableResponse, PartialRunSetupResponse, RegisterGraphResponse,
    ResetRequest,
};
use crate::rpc::{BoxFuture, Chunks, RpcRequest, RpcService, RpcStatus, code};
use crate::wire::{Decode, DeviceMessage, Encode};
use crate::worker::Worker;
use ferroflow_core::Error;
use ferroflow_core::inline::may_decode_inline;
use ferroflow_graph::wire::step::{RunCallableRequest, RunGraphRequest, RunStepRequest};
use ferroflow_graph::wire::{MessageReader, Segments};
use ferroflow_identity::PeerIdentity;
use ferroflow_metrics::TaskMetrics;
use ferroflow_runtime::Task;
use std::sync::Arc;

/// The metadata in which a master says for which client it calls.
pub(crate) const CLIENT: &str = "ferroflow-client";

/// What the leader of collectives refuses to clients.
const FORM_GROUPS: &str = "take part in collectives";

/// MasterService and WorkerService of one task.
pub(crate) struct TaskService {
    pub task: Arc<Task>,
    pub master: Master,
    pub worker: Arc<Worker>,
    /// Counts running steps, so that the server can drain them.
    pub drain: Drain,
    /// This task, as other Ferroflow tasks that open links see it.
    pub identity: Arc<Identity>,
    pub metrics: Arc<TaskMetrics>,
}

impl RpcService for Arc<TaskService> {
    fn call(&self, request: RpcRequest) -> BoxFuture<Result<Chunks, RpcStatus>> {
        let me = self.clone();
        Box::pin(async move {
            let path = request.path().to_string();
            let caller = request.caller.clone();
            let client = request.metadata(CLIENT).map(str::to_string);
            if path == EXAMINE {
                return Ok(crate::examine::answer(request.body.len()));
            }
            let received = request.body.len();
            let names = path.strip_prefix("/tensorflow.").and_then(|name| name.split_once('/'));
            let timer = me.metrics.begin_rpc(names.map_or("", |(_, method)| method));
            let answer = match names {
                Some(("MasterService", method)) => {
                    me.call_master(method, &path, request.body, &caller).await
                }
                Some(("WorkerService", method)) => {
                    me.call_worker(method, &path, request.body, &caller, client.as_deref()).await
                }
                _ => Err(RpcStatus::unknown_method(&path)),
            };
            let (code, sent) = match &answer {
                Ok(reply) => (0, reply.len()),
                Err(status) => (u32::try_from(status.code).unwrap_or(u32::MAX), 0),
            };
            me.metrics.end_rpc(&timer, code, received, sent);
            answer
        })
    }
}

impl TaskService {
    pub async fn call_master(
        self: &Arc<Self>,
        method: &str,
        path: &str,
        body: Chunks,
        caller: &Arc<PeerIdentity>,
    ) -> Result<Chunks, RpcStatus> {
        let master = &self.master;
        match method {
            "RunStep" => {
                let _inside = self.drain.enter().map_err(status)?;
                let request = RunStepRequest::decode(reader(body)).map_err(status)?;
                let response = master.run_step(request, caller).await.map_err(status)?;
                segments(response.encode())
            }
            "RunCallable" => {
                let _inside = self.drain.enter().map_err(status)?;
                let request = RunCallableRequest::decode(reader(body)).map_err(status)?;
                let response = master.run_callable(request, caller).await.map_err(status)?;
                segments(response.encode())
            }
            "CreateSession" => {
                let request: CreateSessionRequest =
                    self.graph_work(body, |_, body| decode(body)).await?;
                let created = tokio::select! {
                    biased;
                    () = self.drain.closed() => Err(leaving()),
                    created = master.create_session(request, caller) => created,
                };
                let session_handle = created.map_err(status)?;
                encode(CreateSessionResponse { session_handle, graph_version: 0 })
            }
            "ExtendSession" => {
                let owner = caller.clone();
                let new_graph_version = self
                    .graph_work(body, move |master, body| {
                        master.extend_session(decode(body)?, &owner).map_err(status)
                    })
                    .await?;
                encode(ExtendSessionResponse { new_graph_version })
            }
            "PartialRunSetup" => {
                let request = decode(body)?;
                let partial_run_handle =
                    master.partial_run_setup(request, caller).map_err(status)?;
                encode(PartialRunSetupResponse { partial_run_handle })
            }
            "MakeCallable" => {
                let handle = master.make_callable(decode(body)?, caller).map_err(status)?;
                encode(MakeCallableResponse { handle })
            }
            "ReleaseCallable" => {
                master.release_callable(&decode(body)?, caller).map_err(status)?;
                encode(())
            }
            "CloseSession" => {
                let request: CloseSessionRequest = decode(body)?;
                master.close_session(&request.session_handle, caller).await.map_err(status)?;
                encode(())
            }
            "Reset" => {
                let request: ResetRequest = decode(body)?;
                let (containers, filters) = (&request.containers, &request.device_filters);
                master.reset(containers, filters, caller).await.map_err(status)?;
                encode(())
            }
            "ListDevices" => {
                let request: ListDevicesRequest = decode(body)?;
                let found =
                    master.devices(&request.session_handle, caller).await.map_err(status)?;
                let (local, remote) = found;
                encode(ListDevicesResponse { local, remote })
            }
            _ => Err(RpcStatus::unknown_method(path)),
        }
    }

    async fn call_worker(
        &self,
        method: &str,
        path: &str,
        body: Chunks,
        caller: &Arc<PeerIdentity>,
        client: Option<&str>,
    ) -> Result<Chunks, RpcStatus> {
        let worker = &self.worker;
        match method {
            "RunGraph" => {
                let _inside = self.drain.enter().map_err(status)?;
                let request = RunGraphRequest::decode(reader(body)).map_err(status)?;
                let response = worker.run_graph(request, caller).await.map_err(status)?;
                segments(response.encode())
            }
            "RecvTensor" => {
                let response = worker.recv_tensor(decode(body)?, caller).await.map_err(status)?;
                segments(response.encode())
            }
            "CleanupGraph" => {
                let request: CleanupGraphRequest = decode(body)?;
                worker.cleanup_graph(request.step_id, caller);
                encode(())
            }
            "GetStatus" => {
                let devices = &self.task.devices;
                let devices = devices.iter().map(|d| DeviceMessage::of(d)).collect();
                encode(GetStatusResponse { devices, link: self.link_offer(caller) })
            }
            "CreateWorkerSession" => {
                worker.create_session(decode(body)?, None, caller, client).map_err(status)?;
                encode(())
            }
            "DeleteWorkerSession" => {
                let request: DeleteWorkerSessionRequest = decode(body)?;
                worker.delete_session(&request.session_handle, caller).map_err(status)?;
                encode(())
            }
            "RegisterGraph" => {
                let request = decode(body)?;
                let graph_handle = worker.register_graph(request, caller).await.map_err(status)?;
                encode(RegisterGraphResponse { graph_handle })
            }
            "DeregisterGraph" => {
                worker.deregister_graph(&decode(body)?, caller).map_err(status)?;
                encode(())
            }
            "CleanupAll" => {
                let request: CleanupAllRequest = decode(body)?;
                worker.cleanup_all(&request.containers, caller, client).map_err(status)?;
                encode(())
            }
            // Transfers are not recorded. A timeline shows everything else.
            "Logging" => encode(()),
            // Our values never ask for an acknowledgement.
            "MarkRecvFinished" => encode(()),
            "Tracing" => Err(RpcStatus::new(code::UNIMPLEMENTED, "Tracing")),
            "RecvBuf" => encode(worker.recv_buf(decode(body)?, caller).await.map_err(status)?),
            "CompleteGroup" => {
                worker.ensure_task(caller, FORM_GROUPS).map_err(status)?;
                let leader = &worker.collectives.leader;
                encode(leader.complete_group(decode(body)?).await.map_err(status)?)
            }
            "CompleteInstance" => {
                worker.ensure_task(caller, FORM_GROUPS).map_err(status)?;
                let leader = &worker.collectives.leader;
                encode(leader.complete_instance(decode(body)?).await.map_err(status)?)
            }
            "GetStepSequence" => {
                worker.ensure_task(caller, FORM_GROUPS).map_err(status)?;
                let request: GetStepSequenceRequest = decode(body)?;
                let leader = &worker.collectives.leader;
                let next_steps = leader.step_sequences(&request.graph_keys).map_err(status)?;
                encode(GetStepSequenceResponse { next_steps })
            }
            _ => Err(RpcStatus::unknown_method(path)),
        }
    }
}

impl TaskService {
    /// How the task of `caller` opens links to this one, if it can.
    fn link_offer(&self, caller: &Arc<PeerIdentity>) -> Option<LinkOffer> {
        let Identity { tickets, path, local_name, .. } = &*self.identity;
        (*path != DataPath::Grpc).then(|| LinkOffer {
            version: VERSION,
            token: tickets.ticket(caller),
            local_name: local_name.clone(),
        })
    }

    /// Works on the graph in `body`: inline if it is small, otherwise on a blocking thread.
    async fn graph_work<T: Send + 'static>(
        self: &Arc<Self>,
        body: Chunks,
        work: impl FnOnce(&Master, Chunks) -> Result<T, RpcStatus> + Send + 'static,
    ) -> Result<T, RpcStatus> {
        if may_decode_inline(body.len()) {
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

fn decode<M: Decode>(body: Chunks) -> Result<M, RpcStatus> {
    M::decode(body).map_err(status)
}

fn encode(message: impl Encode) -> Result<Chunks, RpcStatus> {
    Ok(message.encode().into())
}

fn segments(encoded: Result<Segments, Error>) -> Result<Chunks, RpcStatus> {
    Ok(encoded.map_err(status)?.into_parts().into())
}

fn status(error: Error) -> RpcStatus {
    to_status(&error)
}
