//! The master's half of a session: opens it on all its tasks, and closes it on all of them.

use super::Master;
use super::discover::{Asked, discover};
use super::graph_view;
use super::members::Members;
use super::slow::SlowSteps;
use super::step::{StepPartitioner, Tasks};
use crate::client_blocks::SharedBlocks;
use crate::listen::AUDIT;
use crate::messages::{CreateSessionRequest, CreateWorkerSessionRequest, DescribedCluster};
use crate::session_use::SessionUse;
use crate::wire::SessionConfig;
use crate::worker::SessionState;
use ferroflow_core::inline::may_read_nodes_inline;
use ferroflow_core::{DeviceInfo, Error, MemoryOwner, QuotaShare, Result, err};
use ferroflow_identity::{JobToken, PeerIdentity};
use ferroflow_metrics::CountedSession;
use ferroflow_runtime::{Placement, SessionScope, Task, TaskSession};
use futures_util::future::{join_all, try_join_all};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, oneshot};

/// How long closing a session waits for the other tasks. A task that does not answer by then may
/// still get the call later.
const CLOSE_LIMIT: Duration = Duration::from_secs(2);

/// How long ending a session waits for its steps, since a kernel may ignore cancellation. Shorter
/// than the time that a server usually gets to stop.
const STEP_LIMIT: Duration = Duration::from_secs(20);

/// The place of a session among those that share memory with their clients.
pub(crate) type BlocksPlace = Arc<OwnedSemaphorePermit>;

/// An open session.
pub(crate) struct MasterSession {
    pub session: Arc<TaskSession>,
    /// The client that opened it.
    pub owner: Arc<PeerIdentity>,
    /// The task that orders its collectives.
    pub leader: String,
    /// The tasks on which it was opened; `None` if it runs on the master's own task alone.
    tasks: Option<Arc<Tasks>>,
    /// Of all tasks, the master's own first.
    pub devices: Vec<Arc<DeviceInfo>>,
    pub uses: SessionUse,
    /// Counts it as open.
    pub open: CountedSession,
    pub memory: Arc<MemoryOwner>,
    /// The memory that it shares with its client, if they are on one host.
    blocks: OnceLock<(Arc<SharedBlocks>, BlocksPlace)>,
    _counted: QuotaShare,
}

impl MasterSession {
    /// Writes the end of the session to the audit log.
    pub fn note_end(&self, how: &str) {
        let (session, identity) = (self.open.number, &self.owner);
        tracing::info!(target: AUDIT, session, %identity, "session {how}");
    }

    /// Finds the tasks, places the graph, then opens the session on each task.
    pub async fn open(
        master: &Master,
        request: CreateSessionRequest,
        caller: &Arc<PeerIdentity>,
    ) -> Result<(String, Arc<MasterSession>)> {
        let CreateSessionRequest { graph, config, mut options, target } = request;
        if matches!(options.placement, Placement::First) {
            options.placement = master.options.placement.clone();
        }
        let counted = master.open_sessions.take(1, caller, "the client")?;
        master.options.limits.nodes.admit(graph.nodes(), "the client")?;
        let members = Members::of(&master.own, &config, &target)?;
        let peers = master.peers(&members, &config.device_filters)?;
        let is_described = members.described.is_some();
        let has_choice = peers.len() > 1 || master.task.devices.len() > 1;
        let how = Asked {
            by_any_name: is_described,
            measures_devices: has_choice && options.placement.measures_devices(),
        };
        let mut found = discover(&peers, master.options.session_timeout, how).await?;
        let others: Vec<Arc<DeviceInfo>> = found.split_off(1).into_iter().flatten().collect();
        let own = found.into_iter().flatten().map(|device| with_gpu(device, &master.task));
        let own: Vec<Arc<DeviceInfo>> = own.collect();
        let devices: Vec<Arc<DeviceInfo>> = own.iter().chain(&others).cloned().collect();

        let is_isolated = options.isolate_state || (is_described && !config.shares_described_state);
        // Unpredictable, so that no other client can guess it.
        let handle = JobToken::random()?.reveal().to_string();
        let state = SessionState::new(&master.task, &handle, is_isolated);
        let tasks = (peers.len() > 1).then(|| {
            Arc::new(Tasks {
                handle: handle.clone(),
                config: config.clone(),
                catalog: master.task.catalog.clone(),
                peers,
                devices: devices.clone(),
                is_closed: AtomicBool::new(false),
                slow: SlowSteps::new(Handle::current()),
                io: Handle::current(),
                metrics: master.metrics.clone(),
            })
        });
        let distribute = tasks.clone().map(|tasks| {
            Arc::new(StepPartitioner(tasks)) as Arc<dyn ferroflow_runtime::Distribute>
        });
        let scope = SessionScope {
            own,
            others,
            distribute,
            resources: state.resources.clone(),
            memory: state.memory.clone(),
            kernels: state.kernels.clone(),
            collectives: master.worker.own_collectives(&config),
        };
        let task = master.task.clone();
        let is_small = may_read_nodes_inline(graph.nodes());
        let (worker, owner) = (master.worker.clone(), caller.clone());
        let metrics = master.metrics.clone();
        let make = move || {
            let graph = graph.read()?;
            worker.owners().note_containers(&graph, &owner, None)?;
            graph_view::note_graph(&metrics, &graph);
            TaskSession::within(task, scope, &graph, options)
        };
        let session = if is_small {
            make()?
        } else {
            let made = tokio::task::spawn_blocking(make).await;
            made.unwrap_or_else(|e| Err(err!(Internal, "the handler panicked: {e}")))?
        };
        let limit = master.options.limits.steps;
        let opened = Arc::new(MasterSession {
            uses: SessionUse::new(format!("session {handle}"), limit),
            _counted: counted,
            open: master.metrics.open_session(),
            memory: state.memory.clone(),
            blocks: OnceLock::new(),
            session: Arc::new(session),
            owner: caller.clone(),
            leader: master.worker.leader_of(&config),
            tasks,
            devices,
        });
        if let Err(e) = opened.create_on_tasks(&members, &config, &state).await {
            opened.close().await;
            return Err(e);
        }
        Ok((handle, opened))
    }

    /// Bytes of its tensors, if its task's worker does not count them.
    pub fn memory_of_master(&self) -> u64 {
        if self.tasks.is_none() { self.memory.live() as u64 } else { 0 }
    }

    /// Sets the memory that it shares with its client. False if there is some already.
    pub fn share_blocks(&self, blocks: SharedBlocks, place: BlocksPlace) -> bool {
        self.blocks.set((Arc::new(blocks), place)).is_ok()
    }

    /// The memory that it shares with its client.
    pub fn blocks(&self) -> Option<Arc<SharedBlocks>> {
        self.blocks.get().map(|(blocks, _)| blocks.clone())
    }

    /// Counts a step until the result is dropped. An error if too many are pending.
    pub fn begin_step(&self) -> Result<QuotaShare> {
        self.uses.begin_step()
    }

    async fn create_on_tasks(
        &self,
        members: &Members,
        config: &SessionConfig,
        state: &SessionState,
    ) -> Result<()> {
        let own = self.devices.first().map_or(0, |d| d.incarnation);
        let Some(tasks) = &self.tasks else { return Ok(()) };
        try_join_all(tasks.peers.iter().map(|peer| {
            let described = members.described.clone();
            let request = CreateWorkerSessionRequest {
                session_handle: tasks.handle.clone(),
                described: described
                    .map(|cluster| DescribedCluster { cluster, config: config.clone() }),
                job: peer.name.job.clone().unwrap_or_default(),
                task_index: peer.name.task.unwrap_or(0) as i32,
                isolate_state: config.isolate_state,
                master_task: members.own().to_string(),
                master_incarnation: own as i64,
            };
            peer.create_session(request, state, &self.owner)
        }))
        .await
        .map(|_| ())
    }

    /// Closes it, as its client asked.
    pub async fn close(self: &Arc<Self>) {
        self.end(TaskSession::closed_by_client()).await;
    }

    /// Ends its steps with this error, waits for that, then closes it on its tasks.
    pub async fn end(self: &Arc<Self>, why: Error) {
        let me = self.clone();
        // Spawned: the session must end on all tasks even if the caller goes away.
        let ending = tokio::spawn(async move { me.end_everywhere(why).await });
        let _ = ending.await;
    }

    async fn end_everywhere(&self, why: Error) {
        let (tell, told) = oneshot::channel();
        let done = Box::new(move || {
            let _ = tell.send(());
        });
        self.session.end(why, done);
        // Completes when the last cancelled step has ended. A dropped sender means the same.
        if tokio::time::timeout(STEP_LIMIT, told).await.is_err() {
            tracing::warn!("a step still runs {STEP_LIMIT:?} after its session was closed");
        }
        let Some(tasks) = self.tasks.clone() else { return };
        tasks.is_closed.store(true, Ordering::Release);
        let telling = tokio::spawn(async move {
            join_all(tasks.peers.iter().map(|peer| peer.delete_session(&tasks.handle))).await;
        });
        let _ = tokio::time::timeout(CLOSE_LIMIT, telling).await;
    }
}

/// A device of this task, as it described itself, with the GPU that it stands for.
fn with_gpu(device: Arc<DeviceInfo>, task: &Task) -> Arc<DeviceInfo> {
    let own = task.devices.iter().find(|own| own.incarnation == device.incarnation);
    match own.and_then(|own| own.gpu.clone()) {
        Some(gpu) => Arc::new(DeviceInfo { gpu: Some(gpu), ..DeviceInfo::clone(&device) }),
        None => device,
    }
}
