//! The worker of a task: runs the partitions that masters register, and hands values to the other
//! tasks of their steps.

mod arrivals;
mod graph;
mod pushed;
mod recv;
mod rendezvous;
mod run;
mod session;
mod step;
#[cfg(test)]
mod testing;
mod transport;
mod view;

pub(crate) use session::SessionState;
#[cfg(test)]
pub(crate) use testing::unlinked;
pub(crate) use view::{View, renamed};

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
use ferroflow_core::{Collectives, DeviceInfo, Result, bail, err};
use ferroflow_graph::GraphDef;
use ferroflow_graph::wire::step::{RunGraphRequest, RunGraphResponse};
use ferroflow_runtime::Task;
use graph::RegisteredGraph;
use run::Run;
use session::{Sessions, WorkerSession};
use std::borrow::Borrow;
use std::sync::Arc;
use step::{WorkerStep, WorkerSteps};
use tokio::runtime::Handle;
use transport::Native;

/// Request ids that are remembered.
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
    ) -> Arc<Worker> {
        let collectives = TaskCollectives::new(channels.clone());
        let transport = Arc::new(Native::new(channels, links.clone()));
        let view = View::new(cluster, job, index, &task.devices, transport.clone());
        let worker = Arc::new(Worker {
            sessions: Sessions::new(task.clone(), view),
            task,
            steps: WorkerSteps::new(Handle::current()),
            transport,
            recent_runs: RecentIds::new(RECENT),
            recent_recvs: RecentIds::new(RECENT),
            collectives,
        });
        let receiver: Arc<dyn Receiver> = worker.clone();
        links.report_to(Arc::downgrade(&receiver));
        worker
    }

    pub fn devices(&self) -> &[Arc<DeviceInfo>] {
        &self.task.devices
    }

    /// Opens a session; `state` is where this task's own master keeps it.
    pub fn create_session(
        &self,
        request: CreateWorkerSessionRequest,
        state: Option<SessionState>,
    ) -> Result<()> {
        for session in self.sessions.create(request, state)? {
            self.steps.end_those_of(&session);
        }
        Ok(())
    }

    /// Closes a session; it need not exist.
    pub fn delete_session(&self, handle: &str) {
        if let Some(session) = self.sessions.delete(handle) {
            self.steps.end_those_of(&session);
        }
    }

    /// Compiles a partition and returns its handle.
    pub async fn register_graph(&self, request: RegisterGraphRequest) -> Result<String> {
        let called = request.create_worker_session_called;
        let session = self.sessions.get(&request.session_handle, called)?;
        let collectives = self.collectives.of_session(&session.view, request.config.as_ref());
        let graph = request.graph;
        self.compile(session, move || graph.read(), request.optimize, collectives).await
    }

    /// The same for this task's own master, in its session `handle`.
    pub async fn register_own(
        &self,
        handle: &str,
        graph: Arc<GraphDef>,
        optimize: bool,
        config: &SessionConfig,
    ) -> Result<String> {
        let session = self.sessions.get(handle, true)?;
        let collectives = self.collectives.of_session(&session.view, Some(config));
        self.compile(session, move || Ok(graph), optimize, collectives).await
    }

    async fn compile<G: Borrow<GraphDef>>(
        &self,
        session: Arc<WorkerSession>,
        graph: impl FnOnce() -> Result<G> + Send + 'static,
        optimize: bool,
        collectives: Arc<dyn Collectives>,
    ) -> Result<String> {
        let task = self.task.clone();
        let view = session.view.clone();
        let compile = move || {
            let graph = graph()?;
            let compiled =
                RegisteredGraph::new(graph.borrow(), &task, &session, optimize, collectives)?;
            let destinations = compiled.destinations.clone();
            Ok((session.add_graph(compiled), destinations))
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

    pub fn deregister_graph(&self, request: &DeregisterGraphRequest) -> Result<()> {
        let called = request.create_worker_session_called;
        self.sessions.get(&request.session_handle, called)?.remove_graph(&request.graph_handle)
    }

    /// How many graphs are registered, in all sessions.
    #[cfg(test)]
    pub fn graphs(&self) -> usize {
        self.sessions.graphs()
    }

    /// Runs a registered graph. A failure goes into the response when the master asked for that.
    pub async fn run_graph(&self, request: RunGraphRequest) -> Result<RunGraphResponse> {
        let in_body = request.store_errors_in_response_body;
        match self.run(request).await {
            Err(e) if in_body => Ok(RunGraphResponse { status: Some(e), ..Default::default() }),
            other => other,
        }
    }

    async fn run(&self, request: RunGraphRequest) -> Result<RunGraphResponse> {
        let (id, handle) = (request.request_id, &request.graph_handle);
        ensure_new(&self.recent_runs, id, || {
            let step = request.step_id;
            format!(
                "RunGraph request was received twice. graph_handle: \"{handle}\" step_id: {step} \
                 request_id: {id}"
            )
        })?;
        let called = request.create_worker_session_called;
        let session = self.sessions.get(&request.session_handle, called)?;
        let graph = session.graph(handle)?;
        let step = self.start(request.step_id, &session)?;
        let run = Run { task: self.task.clone(), steps: self.steps.clone(), session, graph, step };
        run.run(request).await
    }

    fn start(&self, step_id: i64, session: &Arc<WorkerSession>) -> Result<Arc<WorkerStep>> {
        self.collectives.begin(step_id);
        self.steps.start(step_id, session)
    }

    /// The master is done with a step, which need not exist.
    pub fn cleanup_graph(&self, step_id: i64) {
        self.steps.clean_up(step_id);
        self.collectives.clean_up(step_id);
    }

    /// Another task asks for values of a collective.
    pub async fn recv_buf(&self, request: RecvBufRequest) -> Result<RecvBufResponse> {
        self.collectives.recv_buf(request, &self.task.devices).await
    }

    /// The number of the next step of a graph whose parts several masters run, as `leader` counts them.
    pub async fn next_step(&self, leader: &str, graph_key: i64) -> Result<i64> {
        self.collectives.next_step(self.sessions.own_view(), leader, graph_key).await
    }

    /// Such a step is over.
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
    pub fn cleanup_all(&self, containers: &[String]) {
        if containers.is_empty() {
            let job = self.task.devices[0].name.job.as_deref().unwrap_or_default();
            self.task.resources.clear_container(job);
        }
        for container in containers {
            self.task.resources.clear_container(container);
        }
    }

    /// Ends all steps and sessions: the process is about to.
    pub fn drain(&self) {
        self.steps.clear(&leaving());
        self.sessions.clear();
    }
}

/// Refuses a request that was seen before; `what` says which.
fn ensure_new(recent: &RecentIds, id: i64, what: impl FnOnce() -> String) -> Result<()> {
    if !recent.insert(id) {
        bail!(Aborted, "The same {}", what());
    }
    Ok(())
}
