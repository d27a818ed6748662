//! The run of a step whose other tasks all have a link. Nobody waits for it: whoever brings the last word
//! of its parts ends it, on its own thread.

use super::outcome::StepOutcome;
use super::peer::Direct;
use super::step::{PartitionedStep, RunId};
use crate::link::{LinkCall, LinkPart};
use crate::liveness;
use ferroflow_core::{CancelToken, Error, OnCancel, Result, Tensor, err};
use ferroflow_runtime::{RunOutput, SessionDone};
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

pub(super) struct DirectRun {
    step: Arc<PartitionedStep>,
    pub step_id: i64,
    /// None when it is over.
    state: Mutex<Option<State>>,
}

struct State {
    done: SessionDone,
    on_cancel: Option<OnCancel>,
    run: RunId,
    /// As many as the step has.
    parts: Vec<PartState>,
    /// Parts that have not ended.
    left: usize,
    outcome: StepOutcome,
    fetched: Vec<Tensor>,
    /// The others are given some time to explain a failure.
    is_ending: bool,
}

enum PartState {
    Begins,
    /// Dropping this stops it.
    There(#[expect(dead_code, reason = "held for its end")] LinkCall),
    Here(CancelToken),
    Ended,
}

impl DirectRun {
    /// Runs the parts of `step`, whose handles are `graphs`, in these ways.
    pub fn begin(
        step: Arc<PartitionedStep>,
        graphs: &[String],
        ways: Vec<Direct>,
        feeds: Vec<Tensor>,
        run: RunId,
        cancel: &CancelToken,
        done: SessionDone,
    ) {
        let begins = || PartState::Begins;
        let state = State {
            done,
            on_cancel: None,
            parts: std::iter::repeat_with(begins).take(ways.len()).collect(),
            left: ways.len(),
            outcome: StepOutcome::default(),
            fetched: Vec::new(),
            is_ending: false,
            run,
        };
        let step_id = state.run.step_id;
        let run = Arc::new(DirectRun { step, step_id, state: Mutex::new(Some(state)) });
        run.step.tasks.slow.note(&run);
        let to = run.clone();
        let on_cancel = cancel.on_cancel(move |why| to.finish(Err(why.clone())));
        match &mut *run.state.lock() {
            Some(state) => state.on_cancel = Some(on_cancel),
            None => return,
        }
        let mut feeds = Some(feeds);
        for (at, (way, graph)) in ways.into_iter().zip(graphs).enumerate() {
            let part = LinkPart { step_id, session: &run.step.tasks.handle, graph };
            let (to, peer) = (run.clone(), run.step.parts[at].peer.clone());
            let begun = match way {
                Direct::There(link) => {
                    let done = move |answer: Result<Result<()>>| {
                        to.ended(at, answer.unwrap_or_else(|e| Err(peer.lost(&e))));
                    };
                    PartState::There(link.call(&part, Box::new(done)))
                }
                Direct::Here(worker) => {
                    let cancel = CancelToken::new();
                    let feeds = run.step.feeds.iter().zip(feeds.take().unwrap_or_default());
                    let done = Box::new(move |fetched| to.ended_here(at, fetched));
                    worker.run_own(part, feeds, run.step.fetches.clone(), &cancel, done);
                    PartState::Here(cancel)
                }
            };
            run.has_begun(at, begun);
        }
    }

    /// It may have ended before its beginning was noted.
    fn has_begun(&self, at: usize, begun: PartState) {
        let mut state = self.state.lock();
        match state.as_mut().map(|state| &mut state.parts[at]) {
            Some(part @ PartState::Begins) => *part = begun,
            Some(_) => {}
            None => {
                drop(state);
                begun.stop();
            }
        }
    }

    fn ended_here(self: &Arc<Self>, at: usize, fetched: Result<Vec<Tensor>>) {
        let ended = fetched.map(|fetched| {
            if let Some(state) = &mut *self.state.lock() {
                state.fetched = fetched;
            }
        });
        self.ended(at, ended);
    }

    /// A part has ended, or there is no hope for it.
    fn ended(self: &Arc<Self>, at: usize, result: Result<()>) {
        let part;
        let patience = {
            let mut state = self.state.lock();
            let Some(state) = &mut *state else { return };
            part = std::mem::replace(&mut state.parts[at], PartState::Ended);
            if matches!(part, PartState::Ended) {
                return;
            }
            state.left -= 1;
            if let Err(e) = result {
                let tasks = self.step.parts.iter().map(|part| part.peer.task.as_str());
                state.outcome.failed(&self.step.parts[at].peer.task, e, tasks);
            }
            match state.outcome.patience() {
                _ if state.left == 0 => Duration::ZERO,
                None => return,
                Some(patience) if patience.is_zero() => patience,
                Some(_) if state.is_ending => return,
                Some(patience) => {
                    state.is_ending = true;
                    patience
                }
            }
        };
        drop(part);
        if patience.is_zero() {
            return self.finish(Ok(()));
        }
        let run = self.clone();
        self.step.tasks.io.spawn(async move {
            tokio::time::sleep(patience).await;
            run.finish(Ok(()));
        });
    }

    /// Ends it as its parts did, or for another reason.
    fn finish(&self, why: Result<()>) {
        let Some(state) = self.state.lock().take() else { return };
        let State { done, on_cancel, run, parts, outcome, fetched, .. } = state;
        self.step.tasks.slow.forget(self.step_id);
        drop(on_cancel);
        parts.into_iter().for_each(PartState::stop);
        // The tasks may forget the step.
        drop(run);
        let result = why.and_then(|()| outcome.into_error().map_or(Ok(()), Err));
        done(result.map(|()| RunOutput { tensors: fetched, ..RunOutput::default() }));
    }

    /// Has the tasks that it waits for, `since` then, asked for signs of life, until it is over.
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

impl PartState {
    fn stop(self) {
        if let PartState::Here(cancel) = self {
            cancel.cancel(given_up());
        }
    }
}

fn given_up() -> Error {
    err!(Cancelled, "The step was cancelled").derived()
}
