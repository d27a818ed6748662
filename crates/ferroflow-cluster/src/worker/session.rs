//! The worker's half of a session: the graphs that a master registered, and the state of their
//! kernels.

use super::graph::RegisteredGraph;
use super::owners::Owners;
use super::transport::Transport;
use super::view::View;
use crate::identity_quotas::IdentityQuotas;
use crate::messages::{ClusterDescription, CreateWorkerSessionRequest};
use crate::session_use::SessionUse;
use crate::spec::{ClusterSpec, ensure_role};
use ferroflow_core::{
    HashMap, Limit, Limits, MemoryOwner, Quota, QuotaShare, Resources, Result, bail, ensure, err,
    limits,
};
use ferroflow_identity::{PeerIdentity, Trust};
use ferroflow_runtime::{KernelCache, Task};
use parking_lot::{Mutex, RwLock};
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
    /// The client of its master, in words, if the master is a task and names it.
    pub client: Option<String>,
    master: Master,
    /// Notes use; steps are counted by their master.
    pub uses: SessionUse,
    /// Counts the steps that its master has not cleaned up.
    pub uncleaned: Arc<Quota>,
    limit: Limit,
    _counted: Option<QuotaShare>,
    graphs: RwLock<HashMap<String, Arc<RegisteredGraph>>>,
    next_graph: AtomicU64,
}

/// Steps that may wait to be cleaned up, as a multiple of the steps that may be pending.
const UNCLEANED: usize = 4;

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
        client: Option<String>,
        master: Master,
        limits: &Limits,
        counted: Option<QuotaShare>,
    ) -> Arc<Self> {
        Arc::new(WorkerSession {
            owner,
            client,
            uses: SessionUse::new("a session".into(), limits.steps),
            uncleaned: Quota::new(times(limits.steps, UNCLEANED)),
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
        match self.is_isolated {
            true => self.resources.clear(),
            false => self.resources.clear_container(self.memory.container()),
        }
    }
}

/// All sessions of a worker, by handle.
pub(super) struct Sessions {
    task: Arc<Task>,
    pub owners: Owners,
    table: RwLock<HashMap<String, Arc<WorkerSession>>>,
    /// The session of masters that open none, where all callers are one user.
    legacy: Arc<WorkerSession>,
    /// Those of other identities.
    legacy_of: Mutex<HashMap<Arc<PeerIdentity>, Arc<WorkerSession>>>,
    transport: Arc<dyn Transport>,
    limits: Limits,
    open: IdentityQuotas,
    open_by_tasks: IdentityQuotas,
}

/// Sessions that a task may open, as a multiple of those of a client. Its master counts those of
/// each client.
const SESSIONS_OF_TASK: usize = 16;

impl Sessions {
    pub fn new(task: Arc<Task>, view: View, limits: Limits, trust: Trust) -> Sessions {
        let (state, transport) = (SessionState::new(&task, "", false), view.transport.clone());
        let job = task.devices[0].name.job.clone().unwrap_or_default();
        let owners = Owners::new(trust, job);
        let (view, owner, none) = (Arc::new(view), owners.here.clone(), Master::default());
        let legacy = WorkerSession::new(view, state, false, owner, None, none, &limits, None);
        let open = IdentityQuotas::new(limits.sessions);
        let open_by_tasks = IdentityQuotas::new(times(limits.sessions, SESSIONS_OF_TASK));
        let (table, legacy_of) = (RwLock::default(), Mutex::default());
        Sessions { task, owners, table, legacy, legacy_of, transport, limits, open, open_by_tasks }
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
        client: Option<&str>,
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
        let is_task = !self.owners.is_open && self.may_be_task(caller);
        let mut table = self.table.write();
        if let Some(open) = table.get(&request.session_handle) {
            let name = || format!("session {}", request.session_handle);
            self.owners.ensure(&open.owner, caller, name)?;
        }
        // A caller that claims to be the master of another identity ends none of its sessions.
        let left_behind = fence(&mut table, &master, |owner| self.owners.may(owner, caller));
        if let Entry::Vacant(place) = table.entry(request.session_handle) {
            // This task's own master has counted it.
            let who = format_args!("master {}", master.task);
            let counted = match &**caller {
                PeerIdentity::ThisProcess => None,
                _ if is_task => Some(self.open_by_tasks.take(1, caller, who)?),
                _ => Some(self.open.take(1, caller, who)?),
            };
            let (limits, owner) = (&self.limits, caller.clone());
            place.insert(WorkerSession::new(
                view,
                state,
                is_isolated,
                owner,
                client.map(str::to_string),
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
            return Ok(self.legacy(caller));
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

    /// The session of masters that open none. Each identity has its own: the handles of its graphs
    /// can be guessed.
    fn legacy(&self, caller: &Arc<PeerIdentity>) -> Arc<WorkerSession> {
        if self.owners.may(&self.legacy.owner, caller) {
            return self.legacy.clone();
        }
        let mut known = self.legacy_of.lock();
        let make = || {
            let (state, none) = (SessionState::new(&self.task, "", false), Master::default());
            let (view, limits) = (self.legacy.view.clone(), &self.limits);
            WorkerSession::new(view, state, false, caller.clone(), None, none, limits, None)
        };
        known.entry(caller.clone()).or_insert_with(make).clone()
    }

    /// The client for which `caller` acts. Only tasks that their certificates name may act for a
    /// client.
    pub fn client_of<'c>(&self, caller: &PeerIdentity, says: Option<&'c str>) -> Option<&'c str> {
        let has_certificate = matches!(caller, PeerIdentity::Certificate { .. });
        says.filter(|_| has_certificate && self.may_be_task(caller))
    }

    /// Whether `caller` may be a task of this cluster. The clusters that sessions describe do not
    /// count: any client can describe one that it belongs to.
    pub fn may_be_task(&self, caller: &PeerIdentity) -> bool {
        self.owners.may_be_task(caller, &self.legacy.view)
    }

    /// Whether `caller` may have values of the steps of `session`. The owner of the session allows
    /// it by describing a cluster with `caller` in it.
    pub fn may_take_values(&self, session: &WorkerSession, caller: &Arc<PeerIdentity>) -> bool {
        self.owners.may(&session.owner, caller) || self.owners.may_be_task(caller, &session.view)
    }

    /// Whether a session describes a cluster with `caller` in it.
    pub fn is_described(&self, caller: &PeerIdentity) -> bool {
        let table = self.table.read();
        table.values().any(|session| self.owners.may_be_task(caller, &session.view))
    }

    /// Whether `caller` may send values as `task`: unless that is another task of this cluster.
    pub fn may_send_as(&self, caller: &PeerIdentity, task: &str) -> bool {
        let address = self.legacy.view.address(task);
        self.owners.is_open || address.is_none() || ensure_role(caller, task, address).is_ok()
    }

    /// Fails unless `caller` may be `task`.
    pub fn ensure_role(&self, caller: &PeerIdentity, task: &str) -> Result<()> {
        ensure_role(caller, task, self.legacy.view.address(task))
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

    /// The number of graphs of all sessions.
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

fn times(limit: Limit, n: usize) -> Limit {
    Limit { most: limit.most.saturating_mul(n), ..limit }
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
