//! Starts this task's part of a step. RunGraph, links and the task's own master all call this.

use super::Worker;
use super::graph::RegisteredGraph;
use super::session::WorkerSession;
use super::step::WorkerStep;
use crate::link::LinkPart;
use crate::part::{PartDone, PartOutput, PartRequest};
use crate::wire::step_stats;
use ferroflow_core::{
    CancelToken, Error, InlineScope, Received, Rendezvous, RendezvousKey, Result, StepCtx,
    StepStats, Tensor, err,
};
use ferroflow_graph::wire::metadata::TaskRecord;
use ferroflow_graph::wire::step::ExecOptions;
use ferroflow_identity::PeerIdentity;
use ferroflow_metrics::StepEnd;
use ferroflow_runtime::Task;
use std::borrow::Borrow;
use std::sync::Arc;
use std::time::Instant;

impl Worker {
    /// Starts a part with values for its feeds, and returns. `done` gets the fetched values when
    /// the part has run, maybe before this returns. `cancel` ends it early.
    pub fn start<K: Borrow<RendezvousKey>>(
        &self,
        request: PartRequest<'_>,
        feeds: impl IntoIterator<Item = (K, Tensor)>,
        caller: &Arc<PeerIdentity>,
        cancel: &CancelToken,
        scope: &InlineScope,
        done: PartDone,
    ) {
        let PartRequest { part, fetches, exec, partial } = request;
        let run = match self.prepare(part, caller) {
            Ok(run) => run,
            Err(e) => return done(Err(e), scope),
        };
        let mut feeds = feeds.into_iter();
        let rendezvous = &run.step.rendezvous;
        let fed =
            feeds.try_for_each(|(key, t)| rendezvous.send(key.borrow(), Received::Live(t), scope));
        match partial {
            Some(call) => run.start_partial(call, fed, fetches, exec, cancel, scope, done),
            None => match fed {
                Ok(()) => run.start(fetches, exec, cancel, scope, done),
                Err(e) => done(Err(e), scope),
            },
        }
    }

    fn prepare(&self, part: LinkPart<'_>, caller: &Arc<PeerIdentity>) -> Result<PartRun<'_>> {
        let session = self.sessions.get(part.session, caller)?;
        let graph = session.graph(part.graph)?;
        let step = self.begin_step(part.step_id, &session)?;
        Ok(PartRun { task: &self.task, session, graph, step })
    }
}

/// A part that is about to run.
pub(super) struct PartRun<'w> {
    task: &'w Arc<Task>,
    session: Arc<WorkerSession>,
    pub graph: Arc<RegisteredGraph>,
    pub step: Arc<WorkerStep>,
}

impl PartRun<'_> {
    fn start(
        self,
        fetches: Arc<[RendezvousKey]>,
        exec: ExecOptions,
        cancel: &CancelToken,
        scope: &InlineScope,
        done: PartDone,
    ) {
        let stats = stats_for(exec);
        let (graph, step, recorded) = (self.graph.clone(), self.step.clone(), stats.clone());
        let told = move |ran: Result<()>, scope: &InlineScope| {
            let output = || {
                let fetch = |key| fetched(&step, key);
                let tensors = fetches.iter().map(fetch).collect::<Result<_>>()?;
                Ok(PartOutput { tensors, record: record(&graph, exec, recorded)? })
            };
            done(ran.and_then(|()| output()), scope);
        };
        self.execute(cancel, stats, scope, told);
    }

    /// Runs the graph until `cancel`. Calls `told` with the outcome.
    pub fn execute(
        &self,
        cancel: &CancelToken,
        stats: Option<Arc<StepStats>>,
        scope: &InlineScope,
        told: impl FnOnce(Result<()>, &InlineScope) + Send + 'static,
    ) {
        let guard = match self.step.begin_run(cancel) {
            Ok(guard) => guard,
            Err(e) => return told(Err(e), scope),
        };
        let (started, step) = (Instant::now(), self.step.clone());
        let ended = move |result: Result<Vec<Tensor>>, scope: &InlineScope| {
            drop(guard);
            let end = if result.is_ok() { StepEnd::Ok } else { StepEnd::Failed };
            let (wait, send) = step.rendezvous.times();
            step.rendezvous.metrics().part_ended(step.id, end, started, send, wait);
            drop(step);
            told(result.map(|_| ()), scope);
        };
        let context = self.context(cancel, stats);
        ferroflow_runtime::run(&self.graph.plan, Vec::new(), context, scope, Box::new(ended));
    }

    fn context(&self, cancel: &CancelToken, stats: Option<Arc<StepStats>>) -> Arc<StepCtx> {
        Arc::new(StepCtx {
            step_id: self.step.id,
            rendezvous: self.step.rendezvous.clone(),
            resources: self.session.resources.clone(),
            step_resources: self.step.resources.clone(),
            cancel: cancel.clone(),
            memory: self.session.memory.clone(),
            threads: self.task.threads.clone(),
            collectives: self.graph.collectives.clone(),
            stats,
            depth: 0,
        })
    }
}

/// The recorder for the times and graphs that a run is asked to record.
pub(super) fn stats_for(exec: ExecOptions) -> Option<Arc<StepStats>> {
    (exec.timeline || exec.costs).then(Arc::default)
}

/// The records, serialized.
pub(super) fn record(
    graph: &RegisteredGraph,
    exec: ExecOptions,
    stats: Option<Arc<StepStats>>,
) -> Result<Option<Box<TaskRecord>>> {
    if exec == ExecOptions::default() {
        return Ok(None);
    }
    let costs = stats.as_deref().filter(|_| exec.costs);
    let timeline = stats.as_deref().filter(|_| exec.timeline);
    let partition_graphs = if exec.partition_graphs { graph.partition_graphs()? } else { vec![] };
    Ok(Some(Box::new(TaskRecord {
        step_stats: timeline.map(step_stats),
        cost_graph: costs.map(|stats| graph.cost_graph(stats)),
        partition_graphs,
    })))
}

/// Takes a value that the graph has sent to its master.
fn fetched(step: &WorkerStep, key: &RendezvousKey) -> Result<Tensor> {
    match step.rendezvous.take_local(key)? {
        Some(Received::Live(tensor)) => Ok(tensor),
        Some(Received::Dead) => Err(dead_fetch(step.id, key)),
        None => Err(not_sent(key)),
    }
}

pub(super) fn dead_fetch(step_id: i64, key: &RendezvousKey) -> Error {
    err!(
        Internal,
        "Failed to fetch outputs for step {step_id}. (Original error message: The tensor returned \
         for {key:?} was not valid.)"
    )
}

pub(super) fn not_sent(key: &RendezvousKey) -> Error {
    err!(InvalidArgument, "the graph has run and did not send {key:?}")
}
