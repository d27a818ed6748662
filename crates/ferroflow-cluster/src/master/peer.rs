//! A task as its master sees it: the calls of WorkerService, in process for the master's own task,
//! over a link or by gRPC for the others.

use crate::error::said_by;
use crate::link::{LinkCall, LinkSlot, Links};
use crate::liveness::Liveness;
use crate::messages::{
    CleanupAllRequest, CleanupGraphRequest, CreateWorkerSessionRequest, DeleteWorkerSessionRequest,
    DeregisterGraphRequest, GetStatusRequest, GetStatusResponse, RegisterGraphRequest,
    RegisterGraphResponse,
};
use crate::part::{PartOutput, PartRequest};
use crate::poll_inline::poll_inline;
use crate::rpc::{CallOptions, Channel, Chunks, RpcStatus, code};
use crate::service::CLIENT;
use crate::wire::{Decode, DeviceMessage, Encode, GraphMessage, SessionConfig};
use crate::worker::{SessionState, Worker, renamed};
use bytes::Bytes;
use ferroflow_core::{
    CancelToken, Code, DeviceInfo, DeviceName, Error, InlineScope, RendezvousKey, Result, Tensor,
    bail, err,
};
use ferroflow_graph::GraphDef;
use ferroflow_graph::wire::MessageReader;
use ferroflow_graph::wire::step::{RunGraphRequest, RunGraphResponse};
use ferroflow_identity::PeerIdentity;
use futures_util::future::{AbortHandle, abortable};
use http::{HeaderName, HeaderValue};
use std::borrow::Borrow;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::time::Instant;

/// How long the calls at the end of a step or session may take.
const CLEANUP_TIMEOUT: Duration = Duration::from_secs(10);

const RUN_GRAPH: &str = "/tensorflow.WorkerService/RunGraph";

/// A task.
pub(super) struct Peer {
    /// `/job:ps/replica:0/task:0`.
    pub name: DeviceName,
    /// The same as text.
    pub task: String,
    way: Way,
    liveness: Liveness,
}

enum Way {
    Here(Arc<Worker>),
    There(Channel, Shortcut),
}

/// A part that runs on a task.
pub(super) enum RunningPart {
    Here(CancelToken),
    /// Dropping the call stops it.
    Link(LinkCall),
    Grpc(AbortHandle),
}

impl RunningPart {
    /// Abandons the part: its step has ended without it.
    pub fn stop(self) {
        match self {
            RunningPart::Here(cancel) => {
                cancel.cancel(err!(Cancelled, "The step was cancelled").derived());
            }
            RunningPart::Link(call) => drop(call),
            RunningPart::Grpc(call) => call.abort(),
        }
    }
}

/// The link to a task, if there is one, for the calls that it can carry.
struct Shortcut {
    links: Arc<Links>,
    slot: Arc<LinkSlot>,
}

impl Peer {
    pub fn here(name: DeviceName, worker: Arc<Worker>) -> Peer {
        Peer::new(name, Way::Here(worker))
    }

    pub fn there(name: DeviceName, channel: Channel, links: Arc<Links>) -> Peer {
        let slot = links.slot(channel.address());
        Peer::new(name, Way::There(channel, Shortcut { links, slot }))
    }

    fn new(name: DeviceName, way: Way) -> Peer {
        Peer { task: name.to_string(), name, way, liveness: Liveness::default() }
    }

    pub fn is_here(&self) -> bool {
        matches!(self.way, Way::Here(_))
    }

    /// Its address, for messages.
    pub fn address(&self) -> &str {
        match &self.way {
            Way::Here(_) => "this process",
            Way::There(channel, _) => channel.address(),
        }
    }

    /// The devices of the task, under the names that it has for them. With `measures` the task
    /// measures them first, unless it has done so.
    pub async fn status(
        &self,
        measures_devices: bool,
        options: CallOptions,
    ) -> Result<Vec<DeviceMessage>> {
        match &self.way {
            Way::Here(worker) => {
                if measures_devices {
                    worker.measure_devices().await?;
                }
                Ok(worker.devices().iter().map(|d| DeviceMessage::of(d)).collect())
            }
            Way::There(channel, _) => {
                let request = GetStatusRequest { measures_devices };
                let answer: GetStatusResponse =
                    self.call(channel, "GetStatus", request, options).await?;
                Ok(answer.devices)
            }
        }
    }

    /// The devices in an answer to [`Peer::status`], as this task's.
    pub fn devices(&self, said: &[DeviceMessage]) -> Result<Vec<Arc<DeviceInfo>>> {
        said.iter().map(|d| Ok(renamed(&Arc::new(d.info()?), &self.name))).collect()
    }

    /// Opens the worker's half of a session for `owner`. `state` is for the master's own task.
    pub async fn create_session(
        &self,
        request: CreateWorkerSessionRequest,
        state: &SessionState,
        owner: &PeerIdentity,
    ) -> Result<()> {
        match &self.way {
            Way::Here(worker) => {
                worker.create_session(request, Some(state.clone()), &worker.owners().here, None)
            }
            Way::There(channel, _) => {
                let options = CallOptions { metadata: client(owner), ..CallOptions::default() };
                let create = self.call(channel, "CreateWorkerSession", request, options);
                self.watched(channel, create).await
            }
        }
    }

    pub async fn delete_session(&self, handle: &str) {
        match &self.way {
            Way::Here(worker) => self.note(worker.delete_session(handle, &worker.owners().here)),
            Way::There(channel, _) => {
                let request = DeleteWorkerSessionRequest { session_handle: handle.into() };
                let options = CallOptions::timeout(CLEANUP_TIMEOUT);
                self.note(self.call(channel, "DeleteWorkerSession", request, options).await);
            }
        }
    }

    /// Registers its part of a step and returns the handle.
    pub async fn register(
        &self,
        session: &str,
        graph: &Arc<GraphDef>,
        config: &SessionConfig,
    ) -> Result<String> {
        match &self.way {
            Way::Here(worker) => {
                worker.register_own(session, graph.clone(), config.rewrites, config).await
            }
            Way::There(channel, shortcut) => {
                let request = RegisterGraphRequest {
                    session_handle: session.into(),
                    create_worker_session_called: true,
                    graph: GraphMessage::of(graph)?,
                    rewrites: config.rewrites,
                    config: Some(config.clone()),
                };
                let options = CallOptions::default();
                let register = self.call(channel, "RegisterGraph", request, options);
                let call = self.watched(channel, register);
                // Makes a link for its runs.
                let (response, ()) = tokio::join!(call, shortcut.links.want(&shortcut.slot));
                let response: RegisterGraphResponse = response?;
                Ok(response.graph_handle)
            }
        }
    }

    /// Deregisters a part that will not run again.
    pub async fn deregister(&self, session: &str, graph: &str) {
        let request = DeregisterGraphRequest {
            session_handle: session.into(),
            graph_handle: graph.into(),
            create_worker_session_called: true,
        };
        let done = match &self.way {
            Way::Here(worker) => worker.deregister_graph(&request, &worker.owners().here),
            Way::There(channel, _) => {
                let options = CallOptions::timeout(CLEANUP_TIMEOUT);
                self.call(channel, "DeregisterGraph", request, options).await
            }
        };
        self.note(done);
    }

    /// Starts a part on this task. `values` has its feeds if this is the master's own task. Calls
    /// `done` with the outcome, maybe before this returns.
    pub fn start<K: Borrow<RendezvousKey>>(
        self: &Arc<Self>,
        io: &Handle,
        request: PartRequest<'_>,
        feeds: impl IntoIterator<Item = (K, Tensor)>,
        scope: &InlineScope,
        done: impl FnOnce(Result<PartOutput>, &InlineScope) + Send + 'static,
    ) -> RunningPart {
        let Way::Here(worker) = &self.way else {
            return self.start_remote(io, request, scope, done);
        };
        let cancel = CancelToken::new();
        worker.start(request, feeds, &worker.owners().here, &cancel, scope, Box::new(done));
        RunningPart::Here(cancel)
    }

    /// Starts a part on another task: over the link if there is one that can carry the request,
    /// else by gRPC.
    pub fn start_remote(
        self: &Arc<Self>,
        io: &Handle,
        request: PartRequest<'_>,
        scope: &InlineScope,
        done: impl FnOnce(Result<PartOutput>, &InlineScope) + Send + 'static,
    ) -> RunningPart {
        let peer = self.clone();
        if let Way::There(_, shortcut) = &self.way
            && request.is_plain()
            && let Some(link) = shortcut.slot.link()
        {
            let answered = move |answer: Result<Result<()>>| {
                let ran = answer.unwrap_or_else(|e| Err(peer.lost(&e)));
                done(ran.map(|()| PartOutput::default()), &InlineScope::unknown());
            };
            return RunningPart::Link(link.call(&request.part, scope, Box::new(answered)));
        }
        let (exec, partial) = (request.exec, request.partial);
        let request = RunGraphRequest {
            graph_handle: request.part.graph.to_string(),
            step_id: request.part.step_id,
            session_handle: request.part.session.to_string(),
            store_errors_in_response_body: true,
            create_worker_session_called: true,
            request_id: fastrand::i64(1..),
            exec,
            is_partial: partial.is_some(),
            is_last_partial_run: partial.is_some_and(|call| call.is_last),
            ..RunGraphRequest::default()
        };
        let (call, abort) = abortable(async move { peer.run_graph(request).await });
        poll_inline(io, async move {
            // A cancelled call has no outcome.
            if let Ok(ran) = call.await {
                done(ran, &InlineScope::unknown());
            }
        });
        RunningPart::Grpc(abort)
    }

    async fn run_graph(&self, request: RunGraphRequest) -> Result<PartOutput> {
        let Way::There(channel, _) = &self.way else {
            bail!(Internal, "the master's own task is not called by gRPC");
        };
        let message = Chunks::from(request.encode()?.into_parts());
        let answer = channel
            .call(RUN_GRAPH, message, CallOptions::default())
            .await
            .map_err(|status| said_by(&self.task, channel.address(), RUN_GRAPH, &status))?;
        let chunks: Vec<Bytes> = answer.segments().cloned().collect();
        let answer = RunGraphResponse::decode(MessageReader::new(chunks))
            .map_err(|e| e.context(format!("the answer of {} to RunGraph", self.task)))?;
        if let Some(error) = answer.status {
            return Err(error);
        }
        Ok(PartOutput {
            tensors: answer.recvs.into_iter().map(|(_, tensor)| tensor).collect(),
            record: Some(Box::new(answer.record)),
        })
    }

    /// The error of a part whose link was lost.
    pub fn lost(&self, why: &Error) -> Error {
        let status = RpcStatus::new(code::UNAVAILABLE, why.message());
        said_by(&self.task, self.address(), RUN_GRAPH, &status)
    }

    /// Probes a task that has been silent `since` this time.
    pub async fn is_alive(&self, since: Instant) -> Result<()> {
        match &self.way {
            Way::Here(_) => Ok(()),
            Way::There(channel, _) => {
                let heard = self.liveness.ask(channel, since).await;
                heard.map_err(|silence| self.silent(channel, &silence))
            }
        }
    }

    /// Cleans up a step with the next frame to the task; false if [`Peer::clean_up`] has to.
    pub fn clean_up_in_passing(&self, step_id: i64) -> bool {
        match &self.way {
            Way::Here(worker) => {
                worker.cleanup_graph(step_id, &worker.owners().here);
                true
            }
            Way::There(_, shortcut) => shortcut.links.clean_up_later(&shortcut.slot, step_id),
        }
    }

    /// Cleans up a step.
    pub async fn clean_up(&self, step_id: i64) {
        match &self.way {
            Way::Here(worker) => worker.cleanup_graph(step_id, &worker.owners().here),
            Way::There(channel, _) => {
                let request = CleanupGraphRequest { step_id };
                let options = CallOptions::timeout(CLEANUP_TIMEOUT);
                self.note(self.call(channel, "CleanupGraph", request, options).await);
            }
        }
    }

    /// Clears containers of variables and queues for `caller`; the default one if none is named.
    /// Fails if the task does not allow it. A task that is gone has no containers.
    pub async fn clean_up_all(
        &self,
        containers: &[String],
        caller: &Arc<PeerIdentity>,
    ) -> Result<()> {
        match &self.way {
            Way::Here(worker) => worker.cleanup_all(containers, caller, None),
            Way::There(channel, _) => {
                let request = CleanupAllRequest { containers: containers.to_vec() };
                let options = CallOptions {
                    metadata: client(caller),
                    ..CallOptions::timeout(CLEANUP_TIMEOUT)
                };
                match self.call(channel, "CleanupAll", request, options).await {
                    Err(e) if e.code() == Code::PermissionDenied => Err(e),
                    other => {
                        self.note(other);
                        Ok(())
                    }
                }
            }
        }
    }

    /// Waits for a call. Fails when the task becomes silent: it may hang, or be cut off.
    async fn watched<T>(
        &self,
        channel: &Channel,
        call: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        let watched = self.liveness.watch(channel, call).await;
        watched.unwrap_or_else(|silence| Err(self.silent(channel, &silence)))
    }

    /// Closes the connections to the task, which does not answer. The next call looks the name of
    /// its host up again.
    pub fn give_up(&self) {
        if let Way::There(channel, shortcut) = &self.way {
            channel.give_up_connection();
            shortcut.slot.give_up();
        }
    }

    fn silent(&self, channel: &Channel, silence: &RpcStatus) -> Error {
        self.give_up();
        let (task, address) = (&self.task, channel.address());
        err!(Unavailable, "{task} at {address} does not answer: {}", silence.message)
    }

    async fn call<A: Decode>(
        &self,
        channel: &Channel,
        method: &str,
        request: impl Encode,
        options: CallOptions,
    ) -> Result<A> {
        let path = format!("/tensorflow.WorkerService/{method}");
        let answer = channel
            .call(&path, request.encode(), options)
            .await
            .map_err(|status| said_by(&self.task, channel.address(), &path, &status))?;
        A::decode(answer).map_err(|e| {
            err!(Internal, "{} gave a malformed answer to {method}: {}", self.task, e.message())
        })
    }

    /// Logs a cleanup that failed. The task is gone, and so is its state.
    fn note(&self, done: Result<(), Error>) {
        if let Err(e) = done {
            tracing::debug!(task = self.task, "{e}");
        }
    }
}

/// The metadata that names the client of a call.
fn client(identity: &PeerIdentity) -> Vec<(HeaderName, HeaderValue)> {
    let value = HeaderValue::from_str(&identity.to_string()).ok();
    value.map(|value| (HeaderName::from_static(CLIENT), value)).into_iter().collect()
}
