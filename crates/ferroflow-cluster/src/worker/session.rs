//! The worker's half of a session: the graphs that a master registered, and the state of their
//! kernels.

use super::graph::RegisteredGraph;
use super::owners::Owners;
use super::transport::Transport;
use super::view::View;
use crate::messages::{ClusterDescription, CreateWorkerSessionRequest};
use crate::session_use::SessionUse;
use crate::spec::ClusterSpec;
use ferroflow_core::{
    HashMap, Limit, Limits, MemoryOwner, Quota, QuotaShare, Resources, Result, bail, ensure, err,
    limits,
};
use ferroflow_identity::{PeerIdentity, Trust};
use ferroflow_runtime::{KernelCache, Task};
use parking_lot::RwLock;
use std::collections::hash_map::Entry;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// One session of one master on this task.
pub(crate) struct WorkerSession {
    pub view: Arc<View>,
    pub resources: Arc<Resources>,
    /// Shared by the session's graphs: a queue that occurs in several is the same queue.
    pub kernels: Arc<KernelCache>,
    pub memory: Arc<MemoryOwner>,
    /// Whether `resources` are the session's own.
    is_isolated: bool,
    /// The identity that opened it.
    pub owner: Arc<PeerIdentity>,
    master: Master,
    /// Notes use; steps are counted by their master.
    pub uses: SessionUse,
    limit: Limit,
    _counted: Option<QuotaShare>,
    graphs: RwLock<HashMap<String, Arc<RegisteredGraph>>>,
    next_graph: AtomicU64,
}

/// The state of a session on one task. A master shares it with its own steps.
#[derive(Clone)]
pub(crate) struct SessionState {
    pub resources: Arc<Resources>,
    pub kernels: Arc<KernelCache>,
    pub memory: Arc<MemoryOwner>,
}

impl SessionState {
    /// The state of the session `handle`, with memory up to the limit for sessions.
    pub fn new(task: &Task, handle: &str, is_isolated: bool) -> SessionState {
        let resources = if is_isolated { Arc::default() } else { task.resources.clone() };
        let memory = MemoryOwner::new(format!("session {handle}"), limits().session_memory);
        SessionState { resources, kernels: Arc::default(), memory }
    }
}

/// The master that opened a session. A master with the same name and another incarnation has
/// restarted and lost its sessions.
#[derive(Clone, Debug, Default, PartialEq)]
struct Master {
    task: String,
    incarnation: i64,
}

impl WorkerSession {
    fn new(
        view: Arc<View>,
        state: SessionState,
        is_isolated: bool,
        owner: Arc<PeerIdentity>,
        master: Master,
        limits: &Limits,
        counted: Option<QuotaShare>,
    ) -> Arc<Self> {
        Arc::new(WorkerSession {
            owner,
            uses: SessionUse::new("a session".into(), limits.steps),
            limit: limits.graphs,
            _counted: counted,
            view,
            resources: state.resources,
            kernels: state.kernels,
            memory: state.memory,
            is_isolated,
            master,
            graphs: RwLock::default(),
            next_graph: AtomicU64::new(0),
        })
    }

    /// Adds a graph and returns its handle. An error if the session has too many.
    pub fn add_graph(&self, graph: RegisteredGraph) -> Result<String> {
        let handle = format!("{:016x}", self.next_graph.fetch_add(1, Ordering::Relaxed));
        let mut graphs = self.graphs.write();
        self.limit.admit(graphs.len() + 1, format_args!("master {}", self.master.task))?;
        graphs.insert(handle.clone(), Arc::new(graph));
        Ok(handle)
    }

    pub fn graph(&self, handle: &str) -> Result<Arc<RegisteredGraph>> {
        let graphs = self.graphs.read();
        let found = graphs.get(handle).cloned();
        found.ok_or_else(|| err!(Aborted, "Graph handle is not found: {handle}"))
    }

    pub fn remove_graph(&self, handle: &str) -> Result<()> {
        let removed = self.graphs.write().remove(handle);
        ensure!(
            removed.is_some(),
            Aborted,
            "Graph handle is not found: {handle}. Possibly, this worker just restarted."
        );
        Ok(())
    }

    /// Drops the graphs, and the state that only they could reach.
    fn end(&self) {
        let graphs = std::mem::take(&mut *self.graphs.write());
        drop(graphs);
        self.kernels.clear();
        if self.is_isolated {
            self.resources.clear();
        }
    }
}

/// All sessions of a worker, by handle.
pub(super) struct Sessions {
    task: Arc<Task>,
    pub owners: Owners,
    table: RwLock<HashMap<String, Arc<WorkerSession>>>,
    /// The session of masters that open none.
    legacy: Arc<WorkerSession>,
    transport: Arc<dyn Transport>,
    limits: Limits,
    open: Arc<Quota>,
}

impl Sessions {
    pub fn new(task: Arc<Task>, view: View, limits: Limits, trust: Trust) -> Sessions {
        let (state, transport) = (SessionState::new(&task, "", false), view.transport.clone());
        let job = task.devices[0].name.job.clone().unwrap_or_default();
        let owners = Owners::new(trust, job);
        let (view, owner, none) = (Arc::new(view), owners.here.clone(), Master::default());
        let legacy = WorkerSession::new(view, state, false, owner, none, &limits, None);
        let open = Quota::new(limits.sessions);
        Sessions { task, owners, table: RwLock::default(), legacy, transport, limits, open }
    }

    /// Bytes of tensors that the sessions hold.
    pub fn memory(&self) -> u64 {
        let table = self.table.read();
        table.values().chain([&self.legacy]).map(|session| session.memory.live() as u64).sum()
    }

    /// The task as its own cluster spec has it.
    pub fn own_view(&self) -> &Arc<View> {
        &self.legacy.view
    }

    /// Opens a session, unless it is open already. Returns the sessions that an earlier incarnation
    /// of this master left behind. This task's own master shares its `state`.
    #[must_use = "the steps of sessions left behind must end"]
    pub fn create(
        &self,
        request: CreateWorkerSessionRequest,
        state: Option<SessionState>,
        caller: &Arc<PeerIdentity>,
    ) -> Result<Vec<Arc<WorkerSession>>> {
        ensure!(!request.session_handle.is_empty(), InvalidArgument, "Session must be non-empty.");
        let (view, is_isolated) = match &request.described {
            None => (self.legacy.view.clone(), request.isolate_state),
            Some(described) => {
                let view = self.view_in(&described.cluster, &request.job, request.task_index)?;
                let shares = described.config.shares_described_state;
                (Arc::new(view), request.isolate_state || !shares)
            }
        };
        let master = Master { task: request.master_task, incarnation: request.master_incarnation };
        let state = state
            .unwrap_or_else(|| SessionState::new(&self.task, &request.session_handle, is_isolated));
        let mut table = self.table.write();
        if let Some(open) = table.get(&request.session_handle) {
            let name = || format!("session {}", request.session_handle);
            self.owners.ensure(&open.owner, caller, name)?;
        }
        // A caller that says it is another's master ends nothing of the other.
        let left_behind = fence(&mut table, &master, |owner| self.owners.may(owner, caller));
        if let Entry::Vacant(place) = table.entry(request.session_handle) {
            let counted = Some(self.open.take(1, format_args!("master {}", master.task))?);
            let (limits, owner) = (&self.limits, caller.clone());
            place.insert(WorkerSession::new(
                view,
                state,
                is_isolated,
                owner,
                master,
                limits,
                counted,
            ));
        }
        drop(table);
        left_behind.iter().for_each(|session| session.end());
        Ok(left_behind)
    }

    /// The cluster as a client describes it, in which this task may have another name.
    fn view_in(&self, cluster: &ClusterDescription, job: &str, index: i32) -> Result<View> {
        let spec = ClusterSpec::from_tasks(cluster.tasks())?;
        let Ok(index) = u32::try_from(index) else {
            bail!(InvalidArgument, "{index} is not the index of a task");
        };
        Ok(View::new(&spec, job, index, &self.task.devices, self.transport.clone()))
    }

    /// Closes a session; it need not exist.
    pub fn delete(
        &self,
        handle: &str,
        caller: &Arc<PeerIdentity>,
    ) -> Result<Option<Arc<WorkerSession>>> {
        let mut table = self.table.write();
        if let Some(open) = table.get(handle) {
            self.owners.ensure(&open.owner, caller, || format!("session {handle}"))?;
        }
        let session = table.remove(handle);
        drop(table);
        if let Some(session) = &session {
            session.end();
        }
        Ok(session)
    }

    /// The session with this handle. Without a handle: that of masters that open none.
    pub fn get(&self, handle: &str, caller: &Arc<PeerIdentity>) -> Result<Arc<WorkerSession>> {
        if handle.is_empty() {
            return Ok(self.legacy.clone());
        }
        let table = self.table.read();
        let found = table.get(handle).cloned();
        drop(table);
        let found = found.ok_or_else(|| {
            err!(
                Aborted,
                "Session handle is not found: {handle}. Possibly this worker (\"{}\") just \
                 restarted.",
                self.legacy.view.name
            )
        })?;
        self.owners.ensure(&found.owner, caller, || format!("session {handle}"))?;
        found.uses.touch();
        Ok(found)
    }

    /// Closes the sessions that no master has used for `idle`, and returns them.
    #[must_use = "the steps of closed sessions must end"]
    pub fn end_idle(&self, idle: Duration) -> Vec<Arc<WorkerSession>> {
        let mut table = self.table.write();
        let ended: Vec<_> =
            table.extract_if(|_, session| session.uses.is_idle(idle)).map(|(_, s)| s).collect();
        drop(table);
        ended.iter().for_each(|session| session.end());
        ended
    }

    /// How many graphs all sessions have.
    #[cfg(test)]
    pub fn graphs(&self) -> usize {
        self.table.read().values().map(|session| session.graphs.read().len()).sum()
    }

    /// Closes all.
    pub fn clear(&self) {
        let sessions = std::mem::take(&mut *self.table.write());
        sessions.values().for_each(|session| session.end());
    }
}

/// Removes the sessions that an earlier incarnation of `master` opened, if the caller may end those
/// of their owner.
fn fence(
    table: &mut HashMap<String, Arc<WorkerSession>>,
    master: &Master,
    may_end: impl Fn(&Arc<PeerIdentity>) -> bool,
) -> Vec<Arc<WorkerSession>> {
    if master.task.is_empty() {
        return Vec::new();
    }
    let is_stale = |s: &WorkerSession| {
        s.master.task == master.task
            && s.master.incarnation != master.incarnation
            && may_end(&s.owner)
    };
    table.extract_if(|_, session| is_stale(session)).map(|(_, session)| session).collect()
}
