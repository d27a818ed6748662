//! A part that is fed and fetched in several calls. Its graph starts with the first call and runs
//! on between them.

use super::run::{PartRun, dead_fetch, not_sent, record, stats_for};
use crate::part::{PartDone, PartOutput, PartialCall};
use ferroflow_core::{
    CancelToken, Code, Error, InlineScope, Received, RendezvousKey, Result, Tensor, err,
};
use ferroflow_graph::wire::step::ExecOptions;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

/// A graph that runs while calls feed and fetch it.
#[derive(Default)]
pub(super) struct PartialExecution {
    cancel: CancelToken,
    state: Mutex<ExecutionState>,
}

#[derive(Default)]
struct ExecutionState {
    ended: Option<Result<()>>,
    /// Calls that wait for the end of the graph.
    calls: Vec<OpenCall>,
}

enum OpenCall {
    /// Waits for the end.
    Last(Arc<Fetching>),
    /// Waits for its fetches; gone when it is answered.
    Other(Weak<Fetching>),
}

impl OpenCall {
    fn new(call: &Arc<Fetching>) -> OpenCall {
        match call.is_last {
            true => OpenCall::Last(call.clone()),
            false => OpenCall::Other(Arc::downgrade(call)),
        }
    }

    fn fetching(self) -> Option<Arc<Fetching>> {
        match self {
            OpenCall::Last(call) => Some(call),
            OpenCall::Other(call) => call.upgrade(),
        }
    }

    fn is_answered(&self) -> bool {
        matches!(self, OpenCall::Other(call) if call.strong_count() == 0)
    }
}

impl PartialExecution {
    fn end(&self, result: Result<()>) {
        let calls = {
            let mut state = self.state.lock();
            state.ended = Some(result);
            std::mem::take(&mut state.calls)
        };
        calls.into_iter().filter_map(OpenCall::fetching).for_each(|call| call.graph_has_run());
    }

    /// Notifies `call` when the graph has ended, maybe now.
    fn tell_end(&self, call: &Arc<Fetching>) {
        let mut state = self.state.lock();
        if state.ended.is_none() {
            let calls = &mut state.calls;
            if calls.len() == calls.capacity() {
                // A master may make any number of calls.
                calls.retain(|call| !call.is_answered());
            }
            return calls.push(OpenCall::new(call));
        }
        drop(state);
        call.graph_has_run();
    }

    /// The error that the graph ended with, if it has.
    fn error(&self) -> Option<Error> {
        self.state.lock().ended.as_ref().and_then(|end| end.as_ref().err().cloned())
    }
}

impl PartRun<'_> {
    /// One call of a partial run. `fed` is the outcome of its feeds.
    pub fn start_partial(
        self,
        call: PartialCall,
        fed: Result<()>,
        fetches: Arc<[RendezvousKey]>,
        exec: ExecOptions,
        cancel: &CancelToken,
        scope: &InlineScope,
        done: PartDone,
    ) {
        let (execution, is_new) = self.step.partial();
        let stats = stats_for(exec);
        match (&fed, is_new) {
            (Ok(()), true) => {
                let to = execution.clone();
                let ended = move |result, _: &InlineScope| to.end(result);
                self.execute(&execution.cancel, stats.clone(), scope, ended);
            }
            (Err(e), true) => execution.end(Err(e.clone())),
            (_, false) => {}
        }
        // A dropped call cancels the run, because no later call could complete it.
        let whole = execution.cancel.clone();
        let on_cancel = cancel.on_cancel(move |e| whole.cancel(e.clone()));
        let (graph, step_id) = (self.graph.clone(), self.step.id);
        let keys = if fed.is_ok() { fetches } else { Arc::default() };
        let fetching = Arc::new(Fetching {
            execution: execution.clone(),
            is_last: call.is_last,
            // One for each fetch, one for the end, and one until all have been asked for.
            missing: AtomicUsize::new(keys.len() + 1 + usize::from(call.is_last)),
            receivers: CancelToken::new(),
            state: Mutex::new(FetchState {
                values: vec![None; keys.len()],
                error: fed.err(),
                finish: Some(Box::new(move |fetched: Result<Vec<Tensor>>| {
                    drop(on_cancel);
                    let record = || record(&graph, exec, stats);
                    let output =
                        fetched.and_then(|tensors| Ok(PartOutput { tensors, record: record()? }));
                    done(output, &InlineScope::unknown());
                })),
            }),
        });
        for (i, key) in keys.iter().enumerate() {
            let (to, of) = (fetching.clone(), key.clone());
            let received = Box::new(move |received, _: &InlineScope| {
                to.received(i, &of, step_id, received);
            });
            self.step.rendezvous.recv_local(key, &fetching.receivers, received);
        }
        execution.tell_end(&fetching);
        fetching.count_down();
    }
}

/// The fetches of one call.
struct Fetching {
    execution: Arc<PartialExecution>,
    is_last: bool,
    missing: AtomicUsize,
    /// Ends those that still wait when the graph has run.
    receivers: CancelToken,
    state: Mutex<FetchState>,
}

struct FetchState {
    values: Vec<Option<Tensor>>,
    error: Option<Error>,
    finish: Option<Box<dyn FnOnce(Result<Vec<Tensor>>) + Send>>,
}

impl Fetching {
    fn graph_has_run(&self) {
        // Values that were not sent by now will never be sent.
        self.receivers.cancel(err!(Cancelled, "the graph has run"));
        if self.is_last {
            self.count_down();
        }
    }

    fn received(&self, i: usize, key: &RendezvousKey, step_id: i64, received: Result<Received>) {
        let value = match received {
            Ok(Received::Live(tensor)) => Ok(tensor),
            Ok(Received::Dead) => Err(dead_fetch(step_id, key)),
            Err(e) if e.code() == Code::Cancelled && self.receivers.is_cancelled() => {
                Err(not_sent(key))
            }
            Err(e) => Err(e),
        };
        let mut state = self.state.lock();
        match value {
            Ok(tensor) => state.values[i] = Some(tensor),
            Err(e) => {
                state.error.get_or_insert(e);
            }
        }
        drop(state);
        self.count_down();
    }

    fn count_down(&self) {
        if self.missing.fetch_sub(1, Ordering::AcqRel) != 1 {
            return;
        }
        let mut state = self.state.lock();
        let (values, error) = (std::mem::take(&mut state.values), state.error.take());
        let Some(finish) = state.finish.take() else { return };
        drop(state);
        // The graph's own error explains why a fetch failed.
        let matters = self.is_last || error.is_some();
        let ended = if matters { self.execution.error() } else { None };
        finish(match ended.or(error) {
            Some(e) => Err(e),
            None => Ok(values.into_iter().flatten().collect()),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_forgets_calls_that_were_answered() {
        let execution = Arc::new(PartialExecution::default());
        let call = |is_last| {
            Arc::new(Fetching {
                execution: execution.clone(),
                is_last,
                missing: AtomicUsize::new(1),
                receivers: CancelToken::new(),
                state: Mutex::new(FetchState { values: vec![], error: None, finish: None }),
            })
        };
        let waiting = call(false);
        execution.tell_end(&waiting);
        execution.tell_end(&call(true));
        (0..10_000).for_each(|_| execution.tell_end(&call(false)));
        let calls = execution.state.lock().calls.len();
        assert!(calls < 100, "{calls} calls are kept");
        execution.end(Ok(()));
        assert!(waiting.receivers.is_cancelled(), "a receiver that waits is cancelled");
    }
}
