//! A monitor: state that one kernel at a time changes, and that kernels wait for. Queues, staging
//! areas, barriers, accumulators and mutexes are monitors over different states.
//!
//! A kernel makes an [`Attempt`]. If the attempt cannot finish at once, the kernel joins a lane. It
//! is tried again whenever the state has changed: no thread waits. Lanes are first come, first
//! served, or let all waiters retry. Cancelling the step ends the wait.

use super::deliver::{Finished, Outcome, deliver};
use crate::prelude::*;
use ferroflow_core::{CancelToken, OnCancel};
use parking_lot::Mutex;
use std::collections::VecDeque;

/// An operation of a kernel on the state `S`.
pub trait Attempt<S>: Send + 'static {
    /// Does as much as possible now. Called with the monitor's lock held.
    fn advance(&mut self, state: &mut S) -> Progress;

    /// Returns everything taken so far, because the kernel will not finish.
    fn abandon(&mut self, _state: &mut S) {}

    /// The error of a kernel whose step is cancelled.
    fn cancelled(&self) -> Error;
}

pub enum Progress {
    /// Nothing could be done.
    Stuck,
    /// The state has changed, but there is more to do.
    Moved,
    Done(Outcome),
}

impl Progress {
    pub fn fail(error: Error) -> Progress {
        Progress::Done(Outcome::Ready(Err(error)))
    }

    pub fn finish(outputs: Vec<Tensor>) -> Progress {
        Progress::Done(Outcome::Ready(Ok(outputs)))
    }
}

/// In which order the kernels of a lane are served.
#[derive(Clone, Copy, PartialEq)]
pub enum Order {
    /// Waiters are served in order of arrival.
    FirstCome,
    /// Completes all waiters that can finish.
    Any,
}

pub struct Monitor<S>(Arc<Mutex<Inner<S>>>);

struct Inner<S> {
    state: S,
    lanes: Vec<Lane<S>>,
    next_id: u64,
}

struct Lane<S> {
    order: Order,
    waiting: VecDeque<Waiter<S>>,
}

struct Waiter<S> {
    id: u64,
    attempt: Box<dyn Attempt<S>>,
    done: Done,
    cancel: Option<OnCancel>,
}

impl<S: Send + 'static> Monitor<S> {
    pub fn new(state: S, lanes: &[Order]) -> Monitor<S> {
        let lanes = lanes.iter().map(|&order| Lane { order, waiting: VecDeque::new() }).collect();
        Monitor(Arc::new(Mutex::new(Inner { state, lanes, next_id: 0 })))
    }

    /// Reads the state.
    pub fn read<R>(&self, look: impl FnOnce(&S) -> R) -> R {
        look(&self.0.lock().state)
    }

    /// Changes the state at once. Kernels that can continue then do so.
    pub fn change<R>(&self, scope: &InlineScope, change: impl FnOnce(&mut S) -> R) -> R {
        let mut finished = Vec::new();
        let mut inner = self.0.lock();
        let result = change(&mut inner.state);
        inner.settle(&mut finished);
        drop(inner);
        deliver(finished, scope);
        result
    }

    /// How many kernels wait in a lane.
    #[cfg(test)]
    pub fn waiting(&self, lane: usize) -> usize {
        self.0.lock().lanes[lane].waiting.len()
    }

    /// Makes an attempt for a kernel, which is finished now or later.
    pub fn start(
        &self,
        cancel: &CancelToken,
        lane: usize,
        mut attempt: impl Attempt<S>,
        scope: &InlineScope,
        done: Done,
    ) {
        if cancel.is_cancelled() {
            return done.fail(attempt.cancelled());
        }
        let mut finished = Vec::new();
        let mut inner = self.0.lock();
        let its_turn =
            inner.lanes[lane].waiting.is_empty() || inner.lanes[lane].order == Order::Any;
        let progress = if its_turn { attempt.advance(&mut inner.state) } else { Progress::Stuck };
        if let Progress::Done(outcome) = progress {
            finished.push(Finished { done, outcome, cancel: None });
            inner.settle(&mut finished);
            drop(inner);
            return deliver(finished, scope);
        }
        let id = inner.next_id;
        inner.next_id += 1;
        let attempt = Box::new(attempt);
        inner.lanes[lane].waiting.push_back(Waiter { id, attempt, done, cancel: None });
        if matches!(progress, Progress::Moved) {
            inner.settle(&mut finished);
        }
        drop(inner);
        deliver(finished, scope);
        self.watch(cancel, lane, id);
    }

    /// Ends the wait of kernel `id` when `cancel` fires.
    fn watch(&self, cancel: &CancelToken, lane: usize, id: u64) {
        let to = Arc::downgrade(&self.0);
        let on_cancel = cancel.on_cancel(move |_| {
            if let Some(inner) = to.upgrade() {
                Monitor(inner).cancel(lane, id);
            }
        });
        let mut inner = self.0.lock();
        let unused = match inner.find(lane, id) {
            Some(at) => inner.lanes[lane].waiting[at].cancel.replace(on_cancel),
            None => Some(on_cancel),
        };
        drop(inner);
        drop(unused);
    }

    fn cancel(&self, lane: usize, id: u64) {
        let mut finished = Vec::new();
        let mut inner = self.0.lock();
        if let Some(at) = inner.find(lane, id) {
            let waiter = inner.lanes[lane].waiting.remove(at).expect("it was found there");
            let error = waiter.attempt.cancelled();
            inner.give_up(waiter, error, &mut finished);
            inner.settle(&mut finished);
        }
        drop(inner);
        deliver(finished, &InlineScope::unknown());
    }

    /// Changes the state and fails all waiters in `lanes`, atomically.
    pub fn close(&self, lanes: &[usize], change: impl FnOnce(&mut S)) {
        let mut finished = Vec::new();
        let mut inner = self.0.lock();
        for &lane in lanes {
            for waiter in std::mem::take(&mut inner.lanes[lane].waiting) {
                let error = waiter.attempt.cancelled();
                inner.give_up(waiter, error, &mut finished);
            }
        }
        change(&mut inner.state);
        inner.settle(&mut finished);
        drop(inner);
        deliver(finished, &InlineScope::unknown());
    }
}

impl<S: 'static> Inner<S> {
    /// Serves waiters until none can proceed.
    fn settle(&mut self, finished: &mut Vec<Finished>) {
        loop {
            let mut moved = false;
            for lane in &mut self.lanes {
                let mut at = 0;
                while let Some(waiter) = lane.waiting.get_mut(at) {
                    match waiter.attempt.advance(&mut self.state) {
                        Progress::Done(outcome) => {
                            let waiter = lane.waiting.remove(at).expect("it is there");
                            let Waiter { done, cancel, .. } = waiter;
                            finished.push(Finished { done, outcome, cancel });
                            moved = true;
                            continue;
                        }
                        Progress::Moved => moved = true,
                        Progress::Stuck => {}
                    }
                    if lane.order == Order::FirstCome {
                        break;
                    }
                    at += 1;
                }
            }
            if !moved {
                return;
            }
        }
    }

    fn give_up(&mut self, mut waiter: Waiter<S>, error: Error, finished: &mut Vec<Finished>) {
        waiter.attempt.abandon(&mut self.state);
        let Waiter { done, cancel, .. } = waiter;
        finished.push(Finished { done, outcome: Outcome::Ready(Err(error)), cancel });
    }

    /// Ids grow along a lane.
    fn find(&self, lane: usize, id: u64) -> Option<usize> {
        self.lanes[lane].waiting.binary_search_by_key(&id, |w| w.id).ok()
    }
}
