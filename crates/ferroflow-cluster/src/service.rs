//! The gRPC services of a task: decodes requests, calls the master or the worker, encodes answers.

use crate::drain::{Drain, leaving};
use crate::error::to_status;
use crate::examine::EXAMINE;
use crate::link::{DataPath, Identity, VERSION};
use crate::master::Master;
use crate::messages::{
    CleanupAllRequest, CleanupGraphRequest, CloseSessionRequest, CreateSessionRequest,
    CreateSessionResponse, DeleteWorkerSessionRequest, ExtendSessionRequest, ExtendSessionResponse,
    GetStatusRequest, GetStatusResponse, GetStepSequenceRequest, GetStepSequenceResponse,
    LinkOffer, ListDevicesRequest, ListDevicesResponse, MakeCallableResponse,
    PartialRunSetupResponse, RegisterGraphResponse, ResetRequest, ShareBlocksResponse,
};
use crate::rpc::{BoxFuture, Chunks, RpcRequest, RpcService, RpcStatus, code};
use crate::threads::off_network;
use crate::wire::{self, Decode, DeviceMessage, Encode};
use crate::worker::Worker;
use ferroflow_core::inline::may_decode_inline;
use ferroflow_core::{DType, Error, Tensor};
use ferroflow_graph::wire::step::{
    NamedTensor, RunCallableRequest, RunGraphRequest, RunStepRequest,
};
use ferroflow_graph::wire::{MessageReader, Segments};
use ferroflow_identity::PeerIdentity;
use ferroflow_metrics::TaskMetrics;
use ferroflow_runtime::Task;
use std::sync::Arc;

/// The beginnings of the paths of both services.
const MASTER: &str = "/tensorflow.MasterService/";
const WORKER: &str = "/tensorflow.WorkerService/";

/// The metadata in which a master names the client for which it calls.
pub(crate) const CLIENT: &str = "ferroflow-client";

/// The action that the leader of collectives refuses to clients.
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
    fn call(&self, mut request: RpcRequest) -> BoxFuture<Result<Chunks, RpcStatus>> {
        let me = self.clone();
        Box::pin(async move {
            let body = std::mem::take(&mut request.body);
            let (path, caller, received) = (request.path(), &request.caller, body.len());
            if path == EXAMINE {
                return Ok(crate::examine::answer(received));
            }
            let (master, worker) = (path.strip_prefix(MASTER), path.strip_prefix(WORKER));
            let timer = me.metrics.begin_rpc(master.or(worker).unwrap_or_default());
            let answer = match (master, worker) {
                (Some(method), _) => me.call_master(method, path, body, caller).await,
                (_, Some(method)) => {
                    let client = request.metadata(CLIENT);
                    me.call_worker(method, path, body, caller, client).await
                }
                _ => Err(RpcStatus::unknown_method(path)),
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
    /// Runs a step, or answers another call of MasterService. Those are boxed: each call of a step
    /// would reserve memory for the largest of them.
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
                let request =
                    decode_tensors(body, RunStepRequest::TENSORS, RunStepRequest::decode).await?;
                let response = master.run_client_step(request, caller).await.map_err(status)?;
                let is_quick = is_quick(named(&response.tensors));
                segments(off_network(is_quick, move || response.encode()).await)
            }
            "RunCallable" => {
                let _inside = self.drain.enter().map_err(status)?;
                let request =
                    decode_tensors(body, RunCallableRequest::TENSORS, RunCallableRequest::decode)
                        .await?;
                let response = master.run_callable(request, caller).await.map_err(status)?;
                let is_quick = is_quick(response.fetches.iter());
                segments(off_network(is_quick, move || response.encode()).await)
            }
            _ => Box::pin(self.manage(method, path, body, caller)).await,
        }
    }

    /// The calls of MasterService that run no step.
    async fn manage(
        self: &Arc<Self>,
        method: &str,
        path: &str,
        body: Chunks,
        caller: &Arc<PeerIdentity>,
    ) -> Result<Chunks, RpcStatus> {
        let master = &self.master;
        match method {
            // As between tasks, only the automatic data path has shared memory.
            "ShareBlocks" if self.identity.path != DataPath::Auto => {
                encode(ShareBlocksResponse::default())
            }
            "ShareBlocks" => {
                let answer = master.share_blocks(decode(body).await?, caller).await;
                encode(answer.map_err(status)?)
            }
            "CreateSession" => {
                let request: CreateSessionRequest = decode(body).await?;
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
                let (me, is_quick) = (self.clone(), may_decode_inline(body.len()));
                let extend =
                    move || me.master.extend_session(ExtendSessionRequest::decode(body)?, &owner);
                let new_graph_version = off_network(is_quick, extend).await.map_err(status)?;
                encode(ExtendSessionResponse { new_graph_version })
            }
            "PartialRunSetup" => {
                let request = decode(body).await?;
                let partial_run_handle =
                    master.partial_run_setup(request, caller).await.map_err(status)?;
                encode(PartialRunSetupResponse { partial_run_handle })
            }
            "MakeCallable" => {
                let request = decode(body).await?;
                let handle = master.make_callable(request, caller).await.map_err(status)?;
                encode(MakeCallableResponse { handle })
            }
            "ReleaseCallable" => {
                master.release_callable(&decode(body).await?, caller).map_err(status)?;
                encode(())
            }
            "CloseSession" => {
                let request: CloseSessionRequest = decode(body).await?;
                master.close_session(&request.session_handle, caller).await.map_err(status)?;
                encode(())
            }
            "Reset" => {
                let request: ResetRequest = decode(body).await?;
                let (containers, filters) = (&request.containers, &request.device_filters);
                master.reset(containers, filters, caller).await.map_err(status)?;
                encode(())
            }
            "ListDevices" => {
                let request: ListDevicesRequest = decode(body).await?;
                let found =
                    master.devices(&request.session_handle, caller).await.map_err(status)?;
                let (local, remote) = found;
                encode(ListDevicesResponse { local, remote })
            }
            _ => Err(RpcStatus::unknown_method(path)),
        }
    }

    /// Answers a call of a step, or another call of WorkerService. Those are boxed, as in
    /// [`TaskService::call_master`].
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
                let request =
                    decode_tensors(body, RunGraphRequest::TENSORS, RunGraphRequest::decode).await?;
                let response = worker.run_graph(request, caller).await.map_err(status)?;
                let is_quick = is_quick(named(&response.recvs));
                segments(off_network(is_quick, move || response.encode()).await)
            }
            "RecvTensor" => {
                let request = decode(body).await?;
                let response = worker.recv_tensor(request, caller).await.map_err(status)?;
                let is_quick = is_quick(response.tensor.iter());
                segments(off_network(is_quick, move || response.encode()).await)
            }
            "CleanupGraph" => {
                let request: CleanupGraphRequest = decode(body).await?;
                worker.cleanup_graph(request.step_id, caller);
                encode(())
            }
            _ => Box::pin(self.manage_worker(method, path, body, caller, client)).await,
        }
    }

    /// The calls of WorkerService that belong to no single step.
    async fn manage_worker(
        &self,
        method: &str,
        path: &str,
        body: Chunks,
        caller: &Arc<PeerIdentity>,
        client: Option<&str>,
    ) -> Result<Chunks, RpcStatus> {
        let worker = &self.worker;
        match method {
            "GetStatus" => {
                let request: GetStatusRequest = decode(body).await?;
                if request.measures_devices {
                    worker.measure_devices().await.map_err(status)?;
                }
                let devices = &self.task.devices;
                let devices = devices.iter().map(|d| DeviceMessage::of(d)).collect();
                encode(GetStatusResponse { devices, link: self.link_offer(caller) })
            }
            "CreateWorkerSession" => {
                worker.create_session(decode(body).await?, None, caller, client).map_err(status)?;
                encode(())
            }
            "DeleteWorkerSession" => {
                let request: DeleteWorkerSessionRequest = decode(body).await?;
                worker.delete_session(&request.session_handle, caller).map_err(status)?;
                encode(())
            }
            "RegisterGraph" => {
                let request = decode(body).await?;
                let graph_handle = worker.register_graph(request, caller).await.map_err(status)?;
                encode(RegisterGraphResponse { graph_handle })
            }
            "DeregisterGraph" => {
                worker.deregister_graph(&decode(body).await?, caller).map_err(status)?;
                encode(())
            }
            "CleanupAll" => {
                let request: CleanupAllRequest = decode(body).await?;
                worker.cleanup_all(&request.containers, caller, client).map_err(status)?;
                encode(())
            }
            // Transfers are not recorded. A timeline shows everything else.
            "Logging" => encode(()),
            // Our values never ask for an acknowledgement.
            "MarkRecvFinished" => encode(()),
            "Tracing" => Err(RpcStatus::new(code::UNIMPLEMENTED, "Tracing")),
            "RecvBuf" => {
                encode(worker.recv_buf(decode(body).await?, caller).await.map_err(status)?)
            }
            "CompleteGroup" => {
                worker.ensure_task(caller, FORM_GROUPS).map_err(status)?;
                let leader = &worker.collectives.leader;
                encode(leader.complete_group(decode(body).await?).await.map_err(status)?)
            }
            "CompleteInstance" => {
                worker.ensure_task(caller, FORM_GROUPS).map_err(status)?;
                let leader = &worker.collectives.leader;
                encode(leader.complete_instance(decode(body).await?).await.map_err(status)?)
            }
            "GetStepSequence" => {
                worker.ensure_task(caller, FORM_GROUPS).map_err(status)?;
                let request: GetStepSequenceRequest = decode(body).await?;
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
}

async fn decode<M: Decode + Send + 'static>(body: Chunks) -> Result<M, RpcStatus> {
    let is_quick = may_decode_inline(body.len());
    off_network(is_quick, move || M::decode(body)).await.map_err(status)
}

/// Decodes a message whose fields `path` lead to its tensors.
async fn decode_tensors<M: Send + 'static>(
    body: Chunks,
    path: &[u32],
    read: fn(MessageReader) -> Result<M, Error>,
) -> Result<M, RpcStatus> {
    wire::decode_tensors(body, path, read).await.map_err(status)
}

/// Approximate bytes, as a measure of encoding time, of an element that is not plain.
const ELEMENT: usize = 64;

/// Whether a network thread may encode these tensors itself. Plain ones are not copied.
fn is_quick<'t>(mut tensors: impl Iterator<Item = &'t Tensor>) -> bool {
    tensors.all(|tensor| match tensor.dtype() {
        DType::Variant => false,
        dtype => dtype.is_plain() || may_decode_inline(tensor.elements().saturating_mul(ELEMENT)),
    })
}

fn named(tensors: &[NamedTensor]) -> impl Iterator<Item = &Tensor> {
    tensors.iter().map(|(_, tensor)| tensor)
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
