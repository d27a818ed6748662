//! One run of a step over several tasks, as a state machine. Each part is started on its task and
//! reports how it ended. No thread blocks: the thread that delivers the last part's result
//! completes the step.
//!
//! The run does not know how a task is reached. [`Peer::start`] picks the task's own worker, a link
//! or gRPC.

use super::outcome::StepOutcome;
use super::peer::RunningPart;
use super::step::{PartitionedStep, RunCleanup};
use crate::link::LinkPart;
use crate::liveness;
use crate::part::{PartOutput, PartRequest, PartialCall};
use ferroflow_core::{CancelToken, InlineScope, OnCancel, RendezvousKey, Result, Tensor};
use ferroflow_graph::RunMetadata;
use ferroflow_graph::wire::metadata::{TaskRecord, measure};
use ferroflow_graph::wire::step::ExecOptions;
use ferroflow_runtime::{RunOutput, SessionDone};
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::AbortHandle;
use tokio::time::Instant;

/// The inputs and options of a run.
pub(super) struct StepRequest {
    pub step_id: i64,
    pub feeds: Feeds,
    pub fetches: Arc<[RendezvousKey]>,
    pub exec: ExecOptions,
    pub partial: Option<PartialCall>,
}

/// Values for the feeds of a step.
pub(super) enum Feeds {
    /// For all, in order.
    All(Vec<Tensor>),
    /// For some, by key.
    Some(Vec<(RendezvousKey, Tensor)>),
}

pub(super) struct StepRun {
    step: Arc<PartitionedStep>,
    /// `None` when the run is over.
    state: Mutex<Option<RunState>>,
}

struct RunState {
    done: SessionDone,
    on_cancel: Option<OnCancel>,
    /// Present while the parts are being registered.
    registering: Option<AbortHandle>,
    /// Notifies the tasks that the run is over. A partial run does that after its last call.
    cleanup: Option<RunCleanup>,
    /// As many as the step has.
    parts: Vec<PartState>,
    /// Parts that have not ended.
    left: usize,
    outcome: StepOutcome,
    fetched: Vec<Tensor>,
    records: Vec<(usize, Box<TaskRecord>)>,
    /// Whether a part has failed. The others have some time to report the cause.
    is_in_grace: bool,
}

enum PartState {
    Starting,
    Running(RunningPart),
    Ended,
}

impl StepRun {
    /// Runs a step. Its parts are registered first if they are not yet.
    pub fn start(
        step: Arc<PartitionedStep>,
        request: StepRequest,
        cancel: &CancelToken,
        scope: &InlineScope,
        done: SessionDone,
    ) {
        let count = step.parts.len();
        let state = RunState {
            done,
            on_cancel: None,
            registering: None,
            cleanup: None,
            parts: std::iter::repeat_with(|| PartState::Starting).take(count).collect(),
            left: count,
            outcome: StepOutcome::default(),
            fetched: Vec::new(),
            records: Vec::new(),
            is_in_grace: false,
        };
        let run = Arc::new(StepRun { step, state: Mutex::new(Some(state)) });
        let to = run.clone();
        let on_cancel = cancel.on_cancel(move |why| to.finish(Err(why.clone())));
        match &mut *run.state.lock() {
            Some(state) => state.on_cancel = Some(on_cancel),
            None => return,
        }
        match run.step.registered() {
            Some(graphs) => run.start_parts(graphs, request, scope),
            None => run.register(request),
        }
    }

    fn register(self: &Arc<Self>, request: StepRequest) {
        let run = self.clone();
        let registering = self.step.tasks.io.spawn(async move {
            match run.step.register().await {
                Ok(graphs) => {
                    InlineScope::network(|scope| run.start_parts(graphs, request, scope));
                }
                Err(e) => run.finish(Err(e)),
            }
        });
        match &mut *self.state.lock() {
            Some(state) => state.registering = Some(registering.abort_handle()),
            None => registering.abort(),
        }
    }

    /// Starts the parts, whose handles are `graphs`. The calls of other tasks are written with the
    /// first values for them, at the end of `scope`.
    fn start_parts(self: &Arc<Self>, graphs: &[String], request: StepRequest, scope: &InlineScope) {
        let StepRequest { step_id, feeds, fetches, exec, partial } = request;
        match &mut *self.state.lock() {
            Some(state) => {
                state.registering = None;
                state.cleanup = partial.is_none().then(|| RunCleanup::new(&self.step, step_id));
            }
            None => return,
        }
        self.step.tasks.slow.insert(self);
        let mut feeds = Some(feeds);
        for (at, (part, graph)) in self.step.parts.iter().zip(graphs).enumerate() {
            let (is_here, run) = (part.peer.is_here(), self.clone());
            let handles = LinkPart { step_id, session: &self.step.tasks.handle, graph };
            let fetches = if is_here { fetches.clone() } else { Arc::default() };
            let request = PartRequest { part: handles, fetches, exec, partial };
            let done = move |result, _: &InlineScope| run.ended(at, result);
            let io = &self.step.tasks.io;
            let started = match feeds.take_if(|_| is_here) {
                None => part.peer.start_remote(io, request, scope, done),
                Some(Feeds::Some(fed)) => part.peer.start(io, request, fed, scope, done),
                Some(Feeds::All(fed)) => {
                    let fed = self.step.feeds.iter().zip(fed);
                    part.peer.start(io, request, fed, scope, done)
                }
            };
            self.has_started(at, started);
        }
    }

    /// A part may end before its start is noted.
    fn has_started(&self, at: usize, part: RunningPart) {
        let mut state = self.state.lock();
        match state.as_mut().map(|state| &mut state.parts[at]) {
            Some(known @ PartState::Starting) => *known = PartState::Running(part),
            Some(_) => {}
            None => {
                drop(state);
                part.stop();
            }
        }
    }

    /// Notes that a part has ended, or that its task does not answer.
    fn ended(self: &Arc<Self>, at: usize, result: Result<PartOutput>) {
        let part;
        let grace = {
            let mut state = self.state.lock();
            let Some(state) = &mut *state else { return };
            part = std::mem::replace(&mut state.parts[at], PartState::Ended);
            if matches!(part, PartState::Ended) {
                return;
            }
            state.left -= 1;
            match result {
                Ok(output) => {
                    state.fetched.extend(output.tensors);
                    state.records.extend(output.record.map(|record| (at, record)));
                }
                Err(e) => {
                    let tasks = self.step.parts.iter().map(|part| part.peer.task.as_str());
                    state.outcome.failed(&self.step.parts[at].peer.task, e, tasks);
                }
            }
            match state.outcome.grace() {
                _ if state.left == 0 => Duration::ZERO,
                None => return,
                Some(grace) if grace.is_zero() => grace,
                Some(_) if state.is_in_grace => return,
                Some(grace) => {
                    state.is_in_grace = true;
                    grace
                }
            }
        };
        drop(part);
        if grace.is_zero() {
            return self.finish(Ok(()));
        }
        let run = self.clone();
        self.step.tasks.io.spawn(async move {
            tokio::time::sleep(grace).await;
            run.finish(Ok(()));
        });
    }

    /// Completes the step with the outcome of its parts, or with another error.
    fn finish(&self, why: Result<()>) {
        let Some(state) = self.state.lock().take() else { return };
        let RunState { done, on_cancel, registering, cleanup, parts, outcome, .. } = state;
        let (fetched, records) = (state.fetched, state.records);
        self.step.tasks.slow.remove(self);
        if let Some(registering) = registering {
            registering.abort();
        }
        drop(on_cancel);
        for part in parts {
            if let PartState::Running(part) = part {
                part.stop();
            }
        }
        // The tasks may forget the step.
        drop(cleanup);
        let result = why.and_then(|()| outcome.into_error().map_or(Ok(()), Err));
        done(result.and_then(|()| output(fetched, records)));
    }

    /// Probes the tasks of parts that have not ended, until the run is over. They have been silent
    /// `since` this time.
    pub fn watch(self: &Arc<Self>, mut since: Instant) {
        for (at, part) in self.step.parts.iter().enumerate().filter(|(_, p)| !p.peer.is_here()) {
            let (peer, run) = (part.peer.clone(), Arc::downgrade(self));
            self.step.tasks.io.spawn(async move {
                while let Some(run) = run.upgrade().filter(|run| run.waits_for(at)) {
                    if let Err(silence) = peer.is_alive(since).await {
                        return run.ended(at, Err(silence));
                    }
                    drop(run);
                    since = Instant::now();
                    tokio::time::sleep(liveness::INTERVAL).await;
                }
            });
        }
    }

    fn waits_for(&self, at: usize) -> bool {
        let state = self.state.lock();
        state.as_ref().is_some_and(|state| !matches!(state.parts[at], PartState::Ended))
    }
}

/// The output of a step, from what its parts fetched and recorded.
fn output(tensors: Vec<Tensor>, mut records: Vec<(usize, Box<TaskRecord>)>) -> Result<RunOutput> {
    let mut output = RunOutput { tensors, ..RunOutput::default() };
    if records.is_empty() {
        return Ok(output);
    }
    records.sort_by_key(|(at, _)| *at);
    let records: Vec<TaskRecord> = records.into_iter().map(|(_, record)| *record).collect();
    for stats in records.iter().filter_map(|record| record.step_stats.as_ref()) {
        measure(stats, &mut output.measured)?;
    }
    output.metadata = RunMetadata::of_tasks(&records);
    Ok(output)
}
