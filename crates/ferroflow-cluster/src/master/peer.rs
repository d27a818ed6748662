//! A task as a master sees it: the calls of WorkerService, in process for the master's own task,
//! over the wire for the others.

use crate::error::said_by;
use crate::link::{Link, LinkPart, LinkSlot, Links};
use crate::liveness::Liveness;
use crate::messages::{
    CleanupAllRequest, CleanupGraphRequest, CreateWorkerSessionRequest, DeleteWorkerSessionRequest,
    DeregisterGraphRequest, GetStatusRequest, GetStatusResponse, RegisterGraphRequest,
    RegisterGraphResponse,
};
use crate::rpc::{CallOptions, Channel, Chunks, RpcStatus, code};
use crate::wire::{Decode, DeviceMessage, Encode, GraphMessage, SessionConfig};
use crate::worker::{SessionState, Worker, renamed};
use bytes::Bytes;
use ferroflow_core::{DeviceInfo, DeviceName, Error, Result, err};
use ferroflow_graph::GraphDef;
use ferroflow_graph::wire::MessageReader;
use ferroflow_graph::wire::step::{ExecOptions, RunGraphRequest, RunGraphResponse};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// What a task is told at the end of a step or session is not worth more of a wait than this.
const FAREWELL_TIMEOUT: Duration = Duration::from_secs(10);

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

/// The shortest way to have a part run.
pub(super) enum Direct {
    Here(Arc<Worker>),
    There(Arc<Link>),
}

/// The link to a task, if there is one: what it can do goes over it, all else by gRPC.
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

    /// Where it is, for messages.
    pub fn address(&self) -> &str {
        match &self.way {
            Way::Here(_) => "this process",
            Way::There(channel, _) => channel.address(),
        }
    }

    /// What the task says of its devices; names as it knows them.
    pub async fn status(&self, options: CallOptions) -> Result<Vec<DeviceMessage>> {
        match &self.way {
            Way::Here(worker) => {
                Ok(worker.devices().iter().map(|d| DeviceMessage::of(d)).collect())
            }
            Way::There(channel, _) => {
                let answer: GetStatusResponse =
                    self.call(channel, "GetStatus", GetStatusRequest, options).await?;
                Ok(answer.devices)
            }
        }
    }

    /// The devices in an answer to [`Peer::status`], as this task's.
    pub fn devices(&self, said: &[DeviceMessage]) -> Result<Vec<Arc<DeviceInfo>>> {
        said.iter().map(|d| Ok(renamed(&Arc::new(d.info()?), &self.name))).collect()
    }

    /// Opens the worker's half of a session. `state` is for the master's own task.
    pub async fn create_session(
        &self,
        request: CreateWorkerSessionRequest,
        state: &SessionState,
    ) -> Result<()> {
        match &self.way {
            Way::Here(worker) => worker.create_session(request, Some(state.clone())),
            Way::There(channel, _) => {
                let options = CallOptions::default();
                let create = self.call(channel, "CreateWorkerSession", request, options);
                self.watched(channel, create).await
            }
        }
    }

    pub async fn delete_session(&self, handle: &str) {
        match &self.way {
            Way::Here(worker) => worker.delete_session(handle),
            Way::There(channel, _) => {
                let request = DeleteWorkerSessionRequest { session_handle: handle.into() };
                let options = CallOptions::timeout(FAREWELL_TIMEOUT);
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
                let optimize = !config.disable_optimizer;
                worker.register_own(session, graph.clone(), optimize, config).await
            }
            Way::There(channel, shortcut) => {
                let request = RegisterGraphRequest {
                    session_handle: session.into(),
                    create_worker_session_called: true,
                    graph: GraphMessage::of(graph)?,
                    optimize: !config.disable_optimizer,
                    config: Some(config.clone()),
                };
                let options = CallOptions::default();
                let register = self.call(channel, "RegisterGraph", request, options);
                let call = self.watched(channel, register);
                // Its runs are to go over a link.
                let (response, ()) = tokio::join!(call, shortcut.links.want(&shortcut.slot));
                let response: RegisterGraphResponse = response?;
                Ok(response.graph_handle)
            }
        }
    }

    /// Forgets a part that will not be run.
    pub async fn deregister(&self, session: &str, graph: &str) {
        let request = DeregisterGraphRequest {
            session_handle: session.into(),
            graph_handle: graph.into(),
            create_worker_session_called: true,
        };
        let done = match &self.way {
            Way::Here(worker) => worker.deregister_graph(&request),
            Way::There(channel, _) => {
                let options = CallOptions::timeout(FAREWELL_TIMEOUT);
                self.call(channel, "DeregisterGraph", request, options).await
            }
        };
        self.note(done);
    }

    /// Runs its part of a step. Dropping the future cancels that. Fails when the task goes silent.
    pub async fn run(&self, request: RunGraphRequest) -> Result<RunGraphResponse> {
        let answer = match &self.way {
            Way::Here(worker) => worker.run_graph(request).await?,
            Way::There(channel, shortcut) => {
                if let Some(link) = shortcut.slot.link()
                    && is_plain(&request)
                {
                    return self.watched(channel, self.run_over(&link, request)).await?;
                }
                self.watched(channel, self.run_there(channel, request)).await?
            }
        };
        match answer.status {
            Some(error) => Err(error),
            None => Ok(answer),
        }
    }

    /// Runs a part over a link: how that ended, or why that is not known.
    async fn run_over(
        &self,
        link: &Arc<Link>,
        request: RunGraphRequest,
    ) -> Result<Result<RunGraphResponse>> {
        let RunGraphRequest { step_id, session_handle: session, graph_handle: graph, .. } = request;
        let part = LinkPart { step_id, session: &session, graph: &graph };
        let ran = link.run(&part).await.map_err(|e| self.lost(&e))?;
        Ok(ran.map(|()| RunGraphResponse::default()))
    }

    /// The link to it was lost during a run.
    pub fn lost(&self, why: &Error) -> Error {
        let status = RpcStatus::new(code::UNAVAILABLE, why.message());
        said_by(&self.task, self.address(), RUN_GRAPH, &status)
    }

    /// What runs its parts without anybody to wait for them, if there is that.
    pub fn direct(&self) -> Option<Direct> {
        match &self.way {
            Way::Here(worker) => Some(Direct::Here(worker.clone())),
            Way::There(_, shortcut) => shortcut.slot.link().map(Direct::There),
        }
    }

    /// Asks for a sign of life of a task that is waited for `since` then.
    pub async fn is_alive(&self, since: Instant) -> Result<()> {
        match &self.way {
            Way::Here(_) => Ok(()),
            Way::There(channel, _) => {
                let heard = self.liveness.ask(channel, since).await;
                heard.map_err(|silence| self.silent(channel, &silence))
            }
        }
    }

    async fn run_there(
        &self,
        channel: &Channel,
        request: RunGraphRequest,
    ) -> Result<RunGraphResponse> {
        let message = Chunks::from(request.encode()?.into_parts());
        let answer = channel
            .call(RUN_GRAPH, message, CallOptions::default())
            .await
            .map_err(|status| said_by(&self.task, channel.address(), RUN_GRAPH, &status))?;
        let chunks: Vec<Bytes> = answer.segments().cloned().collect();
        RunGraphResponse::decode(MessageReader::new(chunks))
            .map_err(|e| e.context(format!("the answer of {} to RunGraph", self.task)))
    }

    /// The step is over, if the task can be told so in passing; false if [`Peer::clean_up`] has to.
    pub fn clean_up_in_passing(&self, step_id: i64) -> bool {
        match &self.way {
            Way::Here(worker) => {
                worker.cleanup_graph(step_id);
                true
            }
            Way::There(_, shortcut) => shortcut.links.clean_up_later(&shortcut.slot, step_id),
        }
    }

    /// The step is over.
    pub async fn clean_up(&self, step_id: i64) {
        match &self.way {
            Way::Here(worker) => worker.cleanup_graph(step_id),
            Way::There(channel, _) => {
                let request = CleanupGraphRequest { step_id };
                let options = CallOptions::timeout(FAREWELL_TIMEOUT);
                self.note(self.call(channel, "CleanupGraph", request, options).await);
            }
        }
    }

    /// Clears containers of variables and queues; the default one if none is named.
    pub async fn clean_up_all(&self, containers: &[String]) {
        match &self.way {
            Way::Here(worker) => worker.cleanup_all(containers),
            Way::There(channel, _) => {
                let request = CleanupAllRequest { containers: containers.to_vec() };
                let options = CallOptions::timeout(FAREWELL_TIMEOUT);
                self.note(self.call(channel, "CleanupAll", request, options).await);
            }
        }
    }

    /// A call, given up when the task goes silent: it may have hung, or be cut off.
    async fn watched<T>(
        &self,
        channel: &Channel,
        call: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        let watched = self.liveness.watch(channel, call).await;
        watched.unwrap_or_else(|silence| Err(self.silent(channel, &silence)))
    }

    fn silent(&self, channel: &Channel, silence: &RpcStatus) -> Error {
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

    /// A farewell that did not arrive: the task is gone, and what it kept with it.
    fn note(&self, done: Result<(), Error>) {
        if let Err(e) = done {
            tracing::debug!(task = self.task, "{e}");
        }
    }
}

/// Whether all that is asked for is to run.
fn is_plain(request: &RunGraphRequest) -> bool {
    request.sends.is_empty()
        && request.recv_keys.is_empty()
        && request.exec == ExecOptions::default()
        && !request.is_partial
        && request.create_worker_session_called
}
