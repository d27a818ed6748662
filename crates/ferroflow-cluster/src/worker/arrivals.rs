//! Values of other tasks for a step of this one. A value waits here for its receiver, or a receiver
//! for its value. Each key has one value and one receiver.

use super::view::task_of;
use crate::key::source_of;
use ferroflow_core::{
    CancelToken, Error, HashMap, InlineScope, OnCancel, Received, RecvDone, RendezvousKey, Result,
    err,
};
use ferroflow_metrics::{PeerCounters, TaskMetrics};
use parking_lot::Mutex;
use std::collections::hash_map::Entry;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// The most values and receivers of one step that wait for each other.
const MOST_KEPT: usize = 1 << 17;

pub(super) struct Arrivals {
    state: Arc<Mutex<State>>,
    metrics: Arc<TaskMetrics>,
}

#[derive(Default)]
struct State {
    slots: HashMap<Arc<str>, Slot>,
    aborted: Option<Error>,
    /// Receivers that wait, and since when at least one does.
    waiting: usize,
    since: Option<Instant>,
    /// How long at least one receiver waited, until all had their values.
    waited: Duration,
}

impl State {
    /// Takes what a receiver of `key` gets at once, if it need not wait.
    fn take_ready(&mut self, key: &RendezvousKey) -> Option<Result<Received>> {
        if let Some(error) = &self.aborted {
            return Some(Err(error.clone()));
        }
        if self.slots.is_empty() {
            return None;
        }
        match self.slots.remove(&*key.0)? {
            Slot::Value(value) => Some(value),
            waiting => {
                self.slots.insert(key.0.clone(), waiting);
                Some(Err(err!(Internal, "{} is received twice", key.0)))
            }
        }
    }

    fn begin_wait(&mut self, now: Instant) {
        self.waiting += 1;
        self.since.get_or_insert(now);
    }

    fn end_waits(&mut self, count: usize, now: Instant) {
        self.waiting = self.waiting.saturating_sub(count);
        if let Some(since) = self.since.take_if(|_| self.waiting == 0) {
            self.waited += now - since;
        }
    }
}

enum Slot {
    Value(Result<Received>),
    Waiting(Waiter),
}

struct Waiter {
    done: RecvDone,
    cancel: CancelToken,
    /// Dropping it deregisters the callback.
    on_cancel: OnCancel,
    since: Instant,
    /// Whether a RecvTensor asks for the value.
    is_asked: bool,
}

impl Arrivals {
    pub fn new(metrics: Arc<TaskMetrics>) -> Arrivals {
        Arrivals { state: Arc::default(), metrics }
    }

    /// How long receivers have waited so far. Waits at the same time count once.
    pub fn waited(&self) -> Duration {
        let state = self.state.lock();
        state.waited + state.since.map_or(Duration::ZERO, |since| since.elapsed())
    }

    /// Hands a value to its receiver, or keeps it for one. A second value for a key is dropped.
    pub fn arrived(
        &self,
        from: &PeerCounters,
        key: &str,
        value: Result<Received>,
        scope: &InlineScope,
    ) {
        let mut state = self.state.lock();
        if state.aborted.is_some() {
            return;
        }
        match state.slots.remove_entry(key) {
            Some((_, Slot::Waiting(waiter))) => {
                let now = Instant::now();
                state.end_waits(1, now);
                drop(state);
                self.metrics.waited_for(from, now - waiter.since);
                waiter.finish(value, scope);
            }
            Some((key, first)) => drop(state.slots.insert(key, first)),
            None if state.slots.len() >= MOST_KEPT => {
                drop(state);
                self.abort(err!(
                    ResourceExhausted,
                    "{MOST_KEPT} values that no receiver takes were sent to one step"
                ));
            }
            None => drop(state.slots.insert(key.into(), Slot::Value(value))),
        }
    }

    /// Hands the answer of a RecvTensor to the receiver, unless the value was pushed meanwhile.
    pub fn answered(&self, key: &str, value: Result<Received>, scope: &InlineScope) {
        if let Some(waiter) = take_waiter(&self.state, key) {
            let from = self.metrics.peer(task_of(source_of(key)));
            self.metrics.waited_for(&from, waiter.since.elapsed());
            waiter.finish(value, scope);
        }
    }

    /// Hands the value under `key` to `done`, now or when it arrives. `is_asked` says that a
    /// RecvTensor asks for it.
    pub fn expect(
        &self,
        key: &RendezvousKey,
        cancel: &CancelToken,
        is_asked: bool,
        done: RecvDone,
    ) {
        let ready = self.state.lock().take_ready(key);
        if let Some(value) = ready {
            return done(value, &InlineScope::unknown());
        }
        // Registered outside the lock: the token may be cancelled already and call back at once.
        let (slots, to) = (self.state.clone(), key.0.clone());
        let on_cancel = cancel.on_cancel(move |_| cancel_waiter(&slots, &to));
        let mut guard = self.state.lock();
        let state = &mut *guard;
        let is_aborted = state.aborted.is_some();
        let ready = match state.slots.entry(key.0.clone()) {
            Entry::Vacant(place) if !is_aborted => {
                let since = Instant::now();
                let cancel = cancel.clone();
                place.insert(Slot::Waiting(Waiter { done, cancel, on_cancel, since, is_asked }));
                state.begin_wait(since);
                None
            }
            entry => {
                drop(entry);
                state.take_ready(key).map(|value| (value, done))
            }
        };
        drop(guard);
        if let Some((value, done)) = ready {
            return done(value, &InlineScope::unknown());
        }
        // The callback may have run before there was a waiter.
        if cancel.is_cancelled() {
            cancel_waiter(&self.state, &key.0);
        }
    }

    /// Receivers that have waited for `age` without a RecvTensor, with their cancellation, and
    /// whether younger ones wait. The caller sends a RecvTensor for each.
    pub fn overdue(&self, age: Duration) -> (Vec<(RendezvousKey, CancelToken)>, bool) {
        let mut state = self.state.lock();
        let (mut overdue, mut any) = (Vec::new(), false);
        for (key, slot) in &mut state.slots {
            let Slot::Waiting(waiter) = slot else { continue };
            if waiter.is_asked {
                continue;
            }
            if waiter.since.elapsed() >= age {
                waiter.is_asked = true;
                overdue.push((RendezvousKey(key.clone()), waiter.cancel.clone()));
            } else {
                any = true;
            }
        }
        (overdue, any)
    }

    /// Fails the receivers of values that are lost.
    pub fn fail_if(&self, is_lost: impl Fn(&str) -> bool, error: &Error) {
        let lost: Vec<Waiter> = {
            let mut state = self.state.lock();
            let waits =
                |key: &Arc<str>, slot: &mut Slot| matches!(slot, Slot::Waiting(_)) && is_lost(key);
            let taken = state.slots.extract_if(|key, slot| waits(key, slot));
            let waiter = |(_, slot)| match slot {
                Slot::Waiting(waiter) => Some(waiter),
                Slot::Value(_) => None,
            };
            let lost: Vec<Waiter> = taken.filter_map(waiter).collect();
            state.end_waits(lost.len(), Instant::now());
            lost
        };
        lost.into_iter().for_each(|waiter| waiter.fail(error.clone()));
    }

    /// Fails every present and future receiver.
    pub fn abort(&self, error: Error) {
        let slots = {
            let mut state = self.state.lock();
            if state.aborted.is_some() {
                return;
            }
            state.aborted = Some(error.clone());
            let waiting = state.waiting;
            if waiting > 0 {
                state.end_waits(waiting, Instant::now());
            }
            std::mem::take(&mut state.slots)
        };
        for slot in slots.into_values() {
            if let Slot::Waiting(waiter) = slot {
                waiter.fail(error.clone());
            }
        }
    }
}

impl Waiter {
    fn finish(self, value: Result<Received>, scope: &InlineScope) {
        drop(self.on_cancel);
        (self.done)(value, scope);
    }

    fn fail(self, error: Error) {
        self.finish(Err(error), &InlineScope::unknown());
    }
}

fn cancel_waiter(state: &Mutex<State>, key: &str) {
    if let Some(waiter) = take_waiter(state, key) {
        waiter.fail(err!(Cancelled, "RecvAsync is cancelled.").derived());
    }
}

fn take_waiter(state: &Mutex<State>, key: &str) -> Option<Waiter> {
    let mut state = state.lock();
    if !matches!(state.slots.get(key), Some(Slot::Waiting(_))) {
        return None;
    }
    match state.slots.remove(key) {
        Some(Slot::Waiting(waiter)) => {
            state.end_waits(1, Instant::now());
            Some(waiter)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ferroflow_core::{Code, Tensor};
    use std::sync::mpsc::channel;

    fn receive(a: &Arrivals, key: &str, cancel: &CancelToken) -> impl Fn() -> Result<i32> + use<> {
        let (tx, rx) = channel();
        let key = RendezvousKey(key.into());
        a.expect(&key, cancel, false, Box::new(move |v, _: &InlineScope| tx.send(v).unwrap()));
        move || match rx.try_recv().expect("nothing received yet")? {
            Received::Live(t) => t.scalar_value(),
            Received::Dead => Ok(-1),
        }
    }

    fn value(x: i32) -> Result<Received> {
        Ok(Received::Live(Tensor::scalar(x)))
    }

    fn arrive(a: &Arrivals, key: &str, value: Result<Received>) {
        let from = a.metrics.peer(task_of(source_of(key)));
        a.arrived(&from, key, value, &InlineScope::unknown());
    }

    #[tokio::test]
    async fn values_and_receivers_meet_in_any_order() {
        let (a, c) = (Arrivals::new(TaskMetrics::new("worker", 0)), CancelToken::new());
        arrive(&a, "early", value(1));
        assert_eq!(receive(&a, "early", &c)().unwrap(), 1);
        let waiting = receive(&a, "late", &c);
        arrive(&a, "late", Ok(Received::Dead));
        assert_eq!(waiting().unwrap(), -1);
    }

    #[tokio::test]
    async fn a_task_that_sends_values_without_end_fails_the_step() {
        let a = Arrivals::new(TaskMetrics::new("worker", 0));
        for i in 0..=MOST_KEPT {
            arrive(&a, &i.to_string(), Ok(Received::Dead));
        }
        assert!(a.state.lock().slots.is_empty());
        let waiting = receive(&a, "any", &CancelToken::new());
        assert_eq!(waiting().unwrap_err().code(), Code::ResourceExhausted);
    }

    #[tokio::test]
    async fn an_answer_counts_only_while_a_receiver_waits() {
        let (a, c) = (Arrivals::new(TaskMetrics::new("worker", 0)), CancelToken::new());
        a.answered("x", value(1), &InlineScope::unknown());
        let waiting = receive(&a, "x", &c);
        a.answered("x", value(2), &InlineScope::unknown());
        assert_eq!(waiting().unwrap(), 2);
    }

    #[tokio::test]
    async fn a_receiver_is_overdue_once() {
        let (a, c) = (Arrivals::new(TaskMetrics::new("worker", 0)), CancelToken::new());
        let _waiting = receive(&a, "x", &c);
        assert_eq!((a.overdue(Duration::MAX).0.len(), a.overdue(Duration::MAX).1), (0, true));
        assert_eq!((a.overdue(Duration::ZERO).0.len(), a.overdue(Duration::ZERO).1), (1, false));
    }

    #[tokio::test]
    async fn cancelling_losing_and_aborting_end_the_wait() {
        let (a, c) = (Arrivals::new(TaskMetrics::new("worker", 0)), CancelToken::new());
        let waiting = receive(&a, "x", &c);
        c.cancel(err!(Cancelled, "stop"));
        assert_eq!(waiting().unwrap_err().code(), Code::Cancelled);
        let c = CancelToken::new();
        let (lost, kept) = (receive(&a, "lost", &c), receive(&a, "kept", &c));
        a.fail_if(|key| key == "lost", &err!(Unavailable, "gone"));
        assert_eq!(lost().unwrap_err().code(), Code::Unavailable);
        a.abort(err!(Aborted, "over"));
        assert_eq!(kept().unwrap_err().code(), Code::Aborted);
        assert_eq!(receive(&a, "later", &c)().unwrap_err().code(), Code::Aborted);
    }

    #[tokio::test]
    async fn waits_at_the_same_time_count_once() {
        let metrics = TaskMetrics::new("worker", 0);
        let (a, c) = (Arrivals::new(metrics.clone()), CancelToken::new());
        let device = "/job:ps/replica:0/task:0/device:CPU:0";
        let key = |name: &str| format!("{device};1;{device};{name};0:0");
        let (_x, _y) = (receive(&a, &key("x"), &c), receive(&a, &key("y"), &c));
        let began = Instant::now();
        while began.elapsed() < Duration::from_millis(2) {
            std::thread::yield_now();
        }
        arrive(&a, &key("x"), value(1));
        arrive(&a, &key("y"), value(1));
        let waited = a.waited();
        assert!(waited >= Duration::from_millis(2) && waited == a.waited());
        let peer = &metrics.snapshot()["peers"][0];
        assert_eq!(peer["task"], "/job:ps/replica:0/task:0");
        // Each receiver's wait counts for its source.
        assert!(peer["waited"].as_f64().unwrap() >= 0.004, "{peer}");
    }
}
