//! The worker of a task: runs the parts of steps that masters register, and sends values to the
//! other tasks of those steps.

mod arrivals;
mod graph;
mod grpc;
mod links;
mod owners;
mod partial;
mod recv;
mod rendezvous;
mod run;
mod session;
mod step;
#[cfg(test)]
mod testing;
mod transport;
mod view;

pub(crate) use owners::Owners;
pub(crate) use session::SessionState;
#[cfg(test)]
pub(crate) use testing::unlinked;
pub(crate) use view::{View, renamed, task_of};

use crate::channels::Channels;
use crate::collective::{TaskCollectives, leader_of};
use crate::dedup::RecentIds;
use crate::drain::leaving;
use crate::link::{Links, Receiver};
use crate::messages::{
    CreateWorkerSessionRequest, DeregisterGraphRequest, RecvBufRequest, RecvBufResponse,
    RegisterGraphRequest,
};
use crate::spec::ClusterSpec;
use crate::wire::SessionConfig;
use ferroflow_core::{Collectives, DeviceInfo, Limits, Result, bail, count_heap, ensure, err};
use ferroflow_graph::GraphDef;
use ferroflow_graph::passes::Rewrites;
use ferroflow_identity::{PeerIdentity, Trust};
use ferroflow_metrics::TaskMetrics;
use ferroflow_runtime::Task;
use graph::RegisteredGraph;
use session::{Sessions, WorkerSession};
use std::borrow::Borrow;
use std::sync::Arc;
use std::time::Duration;
use step::{WorkerStep, WorkerSteps};
use tokio::runtime::Handle;
use transport::Native;

/// The number of request ids that are remembered.
const RECENT: usize = 100_000;

/// The worker.
pub(crate) struct Worker {
    task: Arc<Task>,
    sessions: Sessions,
    steps: Arc<WorkerSteps>,
    transport: Arc<Native>,
    recent_runs: RecentIds,
    recent_recvs: RecentIds,
    pub collectives: Arc<TaskCollectives>,
}

impl Worker {
    /// The worker of `task`, which is task `index` of `job` in `cluster`. Must be made inside a
    /// tokio runtime, which does its I/O.
    pub fn new(
        task: Arc<Task>,
        cluster: &ClusterSpec,
        job: &str,
        index: u32,
        channels: Arc<Channels>,
        links: &Arc<Links>,
        limits: Limits,
        trust: &Trust,
        metrics: Arc<TaskMetrics>,
    ) -> Arc<Worker> {
        let steps = WorkerSteps::new(Handle::current(), metrics);
        let collectives = TaskCollectives::new(channels.clone(), steps.cleaned());
        let transport = Arc::new(Native::new(channels, links.clone()));
        let view = View::new(cluster, job, index, &task.devices, transport.clone());
        let worker = Arc::new(Worker {
            sessions: Sessions::new(task.clone(), view, limits, trust.clone()),
            task,
            steps,
            transport,
            recent_runs: RecentIds::new(RECENT),
            recent_recvs: RecentIds::new(RECENT),
            collectives,
        });
        let receiver: Arc<dyn Receiver> = worker.clone();
        links.report_to(Arc::downgrade(&receiver));
        worker
    }

    /// The owners of sessions and containers, which decide what a caller may change.
    pub fn owners(&self) -> &Owners {
        &self.sessions.owners
    }

    /// Bytes of tensors that its sessions hold.
    pub fn session_memory(&self) -> u64 {
        self.sessions.memory()
    }

    pub fn devices(&self) -> &[Arc<DeviceInfo>] {
        &self.task.devices
    }

    /// Measures the devices of this task, unless that has been done.
    pub async fn measure_devices(&self) -> Result<()> {
        let task = self.task.clone();
        let measured = tokio::task::spawn_blocking(move || task.measure_devices()).await;
        measured.map_err(|e| err!(Internal, "measuring the devices failed: {e}"))
    }

    /// Opens a session; `state` is where this task's own master keeps it. A master names in `says`
    /// the client for which it calls.
    pub fn create_session(
        &self,
        request: CreateWorkerSessionRequest,
        state: Option<SessionState>,
        caller: &Arc<PeerIdentity>,
        says: Option<&str>,
    ) -> Result<()> {
        // In a cluster that a client describes, tasks have other names.
        if request.described.is_none() {
            self.sessions.ensure_role(caller, &request.master_task)?;
        }
        let client = self.sessions.client_of(caller, says);
        for session in self.sessions.create(request, state, caller, client)? {
            self.steps.end_those_of(&session);
        }
        Ok(())
    }

    /// Closes a session; it need not exist.
    pub fn delete_session(&self, handle: &str, caller: &Arc<PeerIdentity>) -> Result<()> {
        if let Some(session) = self.sessions.delete(handle, caller)? {
            self.steps.end_those_of(&session);
        }
        Ok(())
    }

    /// Closes the sessions that no master has used for `idle`.
    pub fn end_idle(&self, idle: Duration) {
        for session in self.sessions.end_idle(idle) {
            self.steps.end_those_of(&session);
        }
    }

    /// Compiles a part and returns its handle.
    pub async fn register_graph(
        self: &Arc<Self>,
        request: RegisterGraphRequest,
        caller: &Arc<PeerIdentity>,
    ) -> Result<String> {
        let called = request.create_worker_session_called;
        let session = self.sessions.get(named(&request.session_handle, called), caller)?;
        let collectives = self.collectives.of_session(&session.view, request.config.as_ref());
        let (graph, me, caller) = (request.graph, self.clone(), caller.clone());
        let client = session.client.clone();
        let read = move || {
            let graph = graph.read()?;
            me.owners().note_containers(&graph, &caller, client.as_deref())?;
            Ok(graph)
        };
        self.compile(session, read, request.rewrites, collectives).await
    }

    /// The same for this task's own master, in its session `handle`.
    pub async fn register_own(
        &self,
        handle: &str,
        graph: Arc<GraphDef>,
        rewrites: Rewrites,
        config: &SessionConfig,
    ) -> Result<String> {
        let session = self.sessions.get(handle, &self.owners().here)?;
        let collectives = self.collectives.of_session(&session.view, Some(config));
        self.compile(session, move || Ok(graph), rewrites, collectives).await
    }

    async fn compile<G: Borrow<GraphDef>>(
        &self,
        session: Arc<WorkerSession>,
        graph: impl FnOnce() -> Result<G> + Send + 'static,
        rewrites: Rewrites,
        collectives: Arc<dyn Collectives>,
    ) -> Result<String> {
        let task = self.task.clone();
        let view = session.view.clone();
        let compile = move || {
            let graph = graph()?;
            let work =
                || RegisteredGraph::new(graph.borrow(), &task, &session, rewrites, collectives);
            let (mut compiled, memory) = session.memory.run(|| count_heap(work))?;
            compiled.memory = memory;
            let destinations = compiled.destinations.clone();
            Ok((session.add_graph(compiled)?, destinations))
        };
        let compiled = tokio::task::spawn_blocking(compile).await;
        let (handle, destinations) = compiled
            .unwrap_or_else(|e| Err(err!(Internal, "registering the graph failed: {e}")))?;
        let remote = destinations.iter().filter(|device| !view.is_local(device));
        let mut addresses: Vec<String> =
            remote.filter_map(|d| Some(view.remote(d).ok()?.address.to_string())).collect();
        addresses.dedup();
        view.transport.prepare(addresses).await;
        Ok(handle)
    }

    pub fn deregister_graph(
        &self,
        request: &DeregisterGraphRequest,
        caller: &Arc<PeerIdentity>,
    ) -> Result<()> {
        let session = named(&request.session_handle, request.create_worker_session_called);
        self.sessions.get(session, caller)?.remove_graph(&request.graph_handle)
    }

    /// How many graphs are registered, in all sessions.
    #[cfg(test)]
    pub fn graphs(&self) -> usize {
        self.sessions.graphs()
    }

    fn begin_step(&self, step_id: i64, session: &Arc<WorkerSession>) -> Result<Arc<WorkerStep>> {
        self.collectives.begin(step_id);
        self.steps.start(step_id, session, self.owners())
    }

    /// Cleans up a step that its master is done with. The step need not exist.
    pub fn cleanup_graph(&self, step_id: i64, caller: &Arc<PeerIdentity>) {
        if self.steps.clean_up(step_id, |session| self.owners().may(&session.owner, caller)) {
            self.collectives.clean_up(step_id);
        }
    }

    /// Abandons a step whose master is gone.
    fn abandon(&self, step_id: i64, caller: &Arc<PeerIdentity>) {
        self.steps.abandon_by_id(step_id, |session| self.owners().may(&session.owner, caller));
    }

    /// Fails unless `caller` may be a task. `what` names the action, which only tasks may do.
    pub fn ensure_task(&self, caller: &PeerIdentity, what: &str) -> Result<()> {
        ensure!(
            self.sessions.may_be_task(caller),
            PermissionDenied,
            "only tasks of the cluster may {what}, and {caller} is none"
        );
        Ok(())
    }

    /// Answers another task that asks for values of a collective.
    pub async fn recv_buf(
        &self,
        request: RecvBufRequest,
        caller: &PeerIdentity,
    ) -> Result<RecvBufResponse> {
        self.ensure_task(caller, "ask for values of collectives")?;
        self.collectives.recv_buf(request, &self.task.devices).await
    }

    /// The id of the next step of a graph whose parts several masters run; `leader` counts them.
    pub async fn next_step(&self, leader: &str, graph_key: i64) -> Result<i64> {
        self.collectives.next_step(self.sessions.own_view(), leader, graph_key).await
    }

    /// Ends such a step.
    pub fn end_step(&self, leader: &str, graph_key: i64, step_id: i64, failed: bool) {
        let is_leader = leader == self.sessions.own_view().name;
        self.collectives.end_step(graph_key, step_id, is_leader, failed);
    }

    /// The task that orders the collectives of a session.
    pub fn leader_of(&self, config: &SessionConfig) -> String {
        leader_of(self.sessions.own_view(), Some(config))
    }

    /// The collectives of a session of this task's own master, for steps that it runs by itself.
    pub fn own_collectives(&self, config: &SessionConfig) -> Arc<dyn Collectives> {
        self.collectives.of_session(self.sessions.own_view(), Some(config))
    }

    /// Clears containers; the default one if none is named.
    pub fn cleanup_all(
        &self,
        containers: &[String],
        caller: &Arc<PeerIdentity>,
        says: Option<&str>,
    ) -> Result<()> {
        let client = self.sessions.client_of(caller, says);
        for container in self.owners().clear(containers, caller, client)? {
            self.task.resources.clear_container(&container);
        }
        Ok(())
    }

    /// Ends all steps and sessions, before the process does.
    pub fn drain(&self) {
        self.steps.clear(&leaving());
        self.sessions.clear();
    }
}

/// Refuses a request that was seen before; `what` describes it.
fn ensure_new(recent: &RecentIds, id: i64, what: impl FnOnce() -> String) -> Result<()> {
    if !recent.insert(id) {
        bail!(Aborted, "The same {}", what());
    }
    Ok(())
}

/// The session that a request names; none if its master has not opened one.
fn named(handle: &str, create_called: bool) -> &str {
    if create_called { handle } else { "" }
}
