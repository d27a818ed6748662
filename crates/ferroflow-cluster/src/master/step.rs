//! A step over several tasks: registers its parts once, then runs them together.

use super::graph_view::{REPEATED, note_placement};
use super::outcome::StepOutcome;
use super::partial_run::MasterPartialRun;
use super::peer::Peer;
use super::slow::SlowSteps;
use super::step_run::{Feeds, StepRequest, StepRun};
use crate::wire::SessionConfig;
use ferroflow_core::{CancelToken, DeviceInfo, InlineScope, RendezvousKey, Result, Tensor, err};
use ferroflow_graph::passes::{self, CostModel, Pruned};
use ferroflow_graph::wire::step::ExecOptions;
use ferroflow_graph::{Catalog, GraphDef};
use ferroflow_metrics::TaskMetrics;
use ferroflow_runtime::{
    Distribute, DistributedPartialRun, DistributedStep, RunOptions, SessionDone,
};
use futures_util::future::join_all;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};
use tokio::runtime::Handle;
use tokio::sync::OnceCell;

/// The tasks of a session, and state that its steps share.
pub(super) struct Tasks {
    pub handle: String,
    pub config: SessionConfig,
    pub catalog: Arc<Catalog>,
    /// The master's own task first.
    pub peers: Vec<Arc<Peer>>,
    /// The devices of all tasks. The first one is the place of feeds and fetches.
    pub devices: Vec<Arc<DeviceInfo>>,
    /// The session is closed, and its graphs with it: they need not be deregistered.
    pub is_closed: AtomicBool,
    pub slow: Arc<SlowSteps>,
    pub io: Handle,
    pub metrics: Arc<TaskMetrics>,
}

impl Tasks {
    /// Decides which receives can wait: estimates costs where the client asks for that, else delays
    /// only the certain ones.
    fn recv_model(&self) -> CostModel {
        match self.config.enable_recv_scheduling {
            true => CostModel::default(),
            false => CostModel::cautious(),
        }
    }
}

/// Prepares the steps of a session.
pub(super) struct StepPartitioner(pub Arc<Tasks>);

impl Distribute for StepPartitioner {
    fn prepare(
        &self,
        step: Pruned,
        feeds: &[String],
        fetches: &[String],
    ) -> Result<Arc<dyn DistributedStep>> {
        let tasks = &self.0;
        let (device, catalog) = (&tasks.devices[0], &tasks.catalog);
        let graph = passes::transfer_ends(step, feeds, fetches, device, catalog)?;
        let mut parts = Vec::new();
        for part in passes::partition(graph, &tasks.devices, catalog, &tasks.recv_model())? {
            let peer = tasks.peers.iter().find(|p| p.task == part.task);
            let peer = peer.ok_or_else(|| err!(Internal, "no task {}", part.task))?.clone();
            parts.push(StepPart { peer, graph: Arc::new(part.graph) });
        }
        let placed = parts.iter().map(|part| (part.peer.task.as_str(), &*part.graph));
        note_placement(&tasks.metrics, placed, false);
        // Remote parts first: their calls are on the wire while this thread computes its own part.
        parts.sort_by_key(|part| part.peer.is_here());
        let key = |name: &String| {
            RendezvousKey::new(&device.text, device.incarnation, &device.text, name, (0, 0))
        };
        Ok(Arc::new(PartitionedStep {
            feeds: feeds.iter().map(key).collect(),
            fetches: fetches.iter().map(key).collect::<Vec<_>>().into(),
            parts,
            tasks: tasks.clone(),
            registered: OnceCell::new(),
            runs: AtomicU32::new(0),
        }))
    }
}

/// A step that spans tasks.
pub(super) struct PartitionedStep {
    pub tasks: Arc<Tasks>,
    pub parts: Vec<StepPart>,
    /// In order.
    pub feeds: Vec<RendezvousKey>,
    pub fetches: Arc<[RendezvousKey]>,
    /// The handle of each part.
    registered: OnceCell<Vec<String>>,
    /// How often it was run, up to the number that the dashboard asks for.
    runs: AtomicU32,
}

/// The part of one task.
pub(super) struct StepPart {
    pub peer: Arc<Peer>,
    graph: Arc<GraphDef>,
}

impl DistributedStep for PartitionedStep {
    fn run(
        self: Arc<Self>,
        feeds: Vec<Tensor>,
        options: &RunOptions,
        cancel: CancelToken,
        scope: &InlineScope,
        done: SessionDone,
    ) {
        self.count_run();
        let request = StepRequest {
            step_id: options.step_id.unwrap_or_else(new_step_id),
            feeds: Feeds::All(feeds),
            fetches: self.fetches.clone(),
            exec: ExecOptions {
                costs: options.costs,
                timeline: options.trace,
                partition_graphs: options.output_partition_graphs,
                ..ExecOptions::default()
            },
            partial: None,
        };
        StepRun::start(self, request, &cancel, scope, done);
    }

    fn begin(self: Arc<Self>, cancel: CancelToken) -> Arc<dyn DistributedPartialRun> {
        MasterPartialRun::begin(self, cancel)
    }
}

impl PartitionedStep {
    /// Shows the step on the dashboard when it is run often.
    fn count_run(&self) {
        if self.runs.load(Ordering::Relaxed) < REPEATED
            && self.runs.fetch_add(1, Ordering::Relaxed) + 1 == REPEATED
        {
            let parts = self.parts.iter().map(|part| (part.peer.task.as_str(), &*part.graph));
            note_placement(&self.tasks.metrics, parts, true);
        }
    }

    /// The handles of the parts, if they are registered.
    pub fn registered(&self) -> Option<&[String]> {
        self.registered.get().map(Vec::as_slice)
    }

    /// Registers the parts, the first time. After a failure the next run tries again.
    pub async fn register(&self) -> Result<&[String]> {
        let register = || async {
            let tasks = &self.tasks;
            let all = self.parts.iter().map(|part| async move {
                let registered = part.peer.register(&tasks.handle, &part.graph, &tasks.config);
                registered.await
            });
            let results = join_all(all).await;
            if results.iter().all(Result::is_ok) {
                return results.into_iter().collect();
            }
            let mut outcome = StepOutcome::default();
            for (part, result) in self.parts.iter().zip(results) {
                match result {
                    Ok(graph) => {
                        let (peer, handle) = (part.peer.clone(), tasks.handle.clone());
                        tasks.io.spawn(async move { peer.deregister(&handle, &graph).await });
                    }
                    Err(e) => outcome.failed(&part.peer.task, e, std::iter::empty()),
                }
            }
            Err(outcome.into_error().unwrap_or_else(|| err!(Internal, "no graph was registered")))
        };
        Ok(self.registered.get_or_try_init(register).await?)
    }
}

impl Drop for PartitionedStep {
    /// Deregisters the parts: the step was placed anew, released, or was a partial run that is
    /// over.
    fn drop(&mut self) {
        let Some(graphs) = self.registered.take() else { return };
        if self.tasks.is_closed.load(Ordering::Acquire) {
            return;
        }
        let (parts, tasks) = (std::mem::take(&mut self.parts), self.tasks.clone());
        self.tasks.io.spawn(async move {
            let forget = |(part, graph): (&StepPart, &String)| {
                let (peer, session, graph) =
                    (part.peer.clone(), tasks.handle.clone(), graph.clone());
                async move { peer.deregister(&session, &graph).await }
            };
            join_all(parts.iter().zip(&graphs).map(forget)).await;
        });
    }
}

/// A step id: random, in TensorFlow's range, since it must be unique across all masters that share
/// workers. A client cannot guess those of others: SipHash with a secret key makes them.
pub(super) fn new_step_id() -> i64 {
    static KEY: LazyLock<RandomState> = LazyLock::new(RandomState::new);
    static NEXT: AtomicU64 = AtomicU64::new(0);
    (KEY.hash_one(NEXT.fetch_add(1, Ordering::Relaxed)) >> 7) as i64
}

/// Notifies the tasks of a run that it is over, when this is dropped.
pub(super) struct RunCleanup {
    pub step_id: i64,
    tasks: Arc<Tasks>,
    peers: Vec<Arc<Peer>>,
}

impl RunCleanup {
    pub fn new(step: &PartitionedStep, step_id: i64) -> RunCleanup {
        let peers = step.parts.iter().map(|part| part.peer.clone()).collect();
        RunCleanup { step_id, tasks: step.tasks.clone(), peers }
    }
}

impl Drop for RunCleanup {
    fn drop(&mut self) {
        let (mut peers, id) = (std::mem::take(&mut self.peers), self.step_id);
        peers.retain(|peer| !peer.clean_up_in_passing(id));
        if peers.is_empty() {
            return;
        }
        self.tasks.io.spawn(async move {
            join_all(peers.iter().map(|peer| peer.clean_up(id))).await;
        });
    }
}
