//! The steps of a session that are under way. Closing the session cancels them and waits for them.

use ferroflow_core::{CancelToken, Error, HashMap, Result, bail};
use parking_lot::Mutex;
use std::sync::Arc;

/// Steps under way.
#[derive(Default)]
pub(crate) struct Running {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    steps: HashMap<u64, CancelToken>,
    next: u64,
    /// Why the session ended, once it has.
    closed: Option<Error>,
    on_idle: Vec<Box<dyn FnOnce() + Send>>,
}

/// One step under way.
pub(crate) struct StepGuard {
    running: Arc<Running>,
    id: u64,
}

impl Running {
    pub fn begin(self: &Arc<Self>, cancel: &CancelToken) -> Result<StepGuard> {
        let mut state = self.state.lock();
        if state.closed.is_some() {
            bail!(FailedPrecondition, "Session is closed.");
        }
        let id = state.next;
        state.next += 1;
        state.steps.insert(id, cancel.clone());
        Ok(StepGuard { running: self.clone(), id })
    }

    pub fn is_closed(&self) -> bool {
        self.state.lock().closed.is_some()
    }

    /// Cancels all steps with `why`; `idle` runs when the last has ended.
    pub fn close(&self, why: Error, idle: Box<dyn FnOnce() + Send>) {
        let tokens: Vec<CancelToken> = {
            let mut state = self.state.lock();
            state.closed.get_or_insert(why.clone());
            if state.steps.is_empty() {
                drop(state);
                return idle();
            }
            state.on_idle.push(idle);
            state.steps.values().cloned().collect()
        };
        for token in tokens {
            token.cancel(why.clone());
        }
    }
}

impl StepGuard {
    /// The result of the step. If the session was closed meanwhile, the error is that of the close.
    pub fn reason<T>(&self, result: Result<T>) -> Result<T> {
        match result {
            Ok(value) => Ok(value),
            Err(e) => Err(self.running.state.lock().closed.clone().unwrap_or(e)),
        }
    }
}

impl Drop for StepGuard {
    fn drop(&mut self) {
        let idle = {
            let mut state = self.running.state.lock();
            state.steps.remove(&self.id);
            if state.steps.is_empty() { std::mem::take(&mut state.on_idle) } else { Vec::new() }
        };
        idle.into_iter().for_each(|tell| tell());
    }
}
