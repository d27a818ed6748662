//! The rendezvous of a step within one process.

use ferroflow_core::{
    CancelToken, Error, HashMap, InlineScope, OnCancel, Received, RecvDone, Rendezvous,
    RendezvousKey, Result, err,
};
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;

/// Values waiting for receivers, or receivers waiting for values, by key.
#[derive(Default)]
pub struct LocalRendezvous {
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    table: HashMap<RendezvousKey, Entry>,
    aborted: Option<Error>,
    next_waiter: u64,
}

enum Entry {
    Values(VecDeque<Received>),
    Waiters(VecDeque<Waiter>),
}

struct Waiter {
    id: u64,
    done: RecvDone,
    /// Set right after the waiter is in the table. Dropping it removes the callback.
    cancel: Option<OnCancel>,
}

impl LocalRendezvous {
    pub fn new() -> LocalRendezvous {
        LocalRendezvous::default()
    }

    /// Takes a value that was sent and not received yet.
    pub fn take(&self, key: &RendezvousKey) -> Result<Option<Received>> {
        let mut state = self.state.lock();
        match &state.aborted {
            Some(error) => Err(error.clone()),
            None => Ok(state.take(key)),
        }
    }
}

impl State {
    fn take(&mut self, key: &RendezvousKey) -> Option<Received> {
        let Some(Entry::Values(values)) = self.table.get_mut(key) else { return None };
        let value = values.pop_front();
        if values.is_empty() {
            self.table.remove(key);
        }
        value
    }
}

impl Rendezvous for LocalRendezvous {
    fn send(&self, key: &RendezvousKey, value: Received, scope: &InlineScope) -> Result<()> {
        let waiter = {
            let mut state = self.state.lock();
            if let Some(error) = &state.aborted {
                return Err(error.clone());
            }
            match state.table.get_mut(key) {
                Some(Entry::Waiters(waiters)) => {
                    let first = waiters.pop_front();
                    if waiters.is_empty() {
                        state.table.remove(key);
                    }
                    first
                }
                Some(Entry::Values(values)) => {
                    values.push_back(value);
                    return Ok(());
                }
                None => {
                    state.table.insert(key.clone(), Entry::Values([value].into()));
                    return Ok(());
                }
            }
        };
        if let Some(waiter) = waiter {
            drop(waiter.cancel);
            (waiter.done)(Ok(value), scope);
        }
        Ok(())
    }

    fn recv(&self, key: &RendezvousKey, cancel: &CancelToken, done: RecvDone) {
        let id = {
            let mut state = self.state.lock();
            if let Some(error) = state.aborted.clone() {
                drop(state);
                return done(Err(error), &InlineScope::unknown());
            }
            if let Some(value) = state.take(key) {
                drop(state);
                return done(Ok(value), &InlineScope::unknown());
            }
            let id = state.next_waiter;
            state.next_waiter += 1;
            let waiter = Waiter { id, done, cancel: None };
            match state.table.entry(key.clone()).or_insert_with(|| Entry::Waiters([].into())) {
                Entry::Waiters(waiters) => waiters.push_back(waiter),
                Entry::Values(_) => unreachable!("handled above, under the same lock"),
            }
            id
        };
        // Registered outside the lock: the token may be cancelled already and call back at once.
        let (table, to) = (self.state.clone(), key.clone());
        let registration = cancel.on_cancel(move |_| {
            if let Some(waiter) = take_waiter(&table, &to, id) {
                let error = err!(Cancelled, "RecvAsync is cancelled.").derived();
                (waiter.done)(Err(error), &InlineScope::unknown());
            }
        });
        let mut state = self.state.lock();
        if let Some(Entry::Waiters(waiters)) = state.table.get_mut(key)
            && let Some(waiter) = waiters.iter_mut().find(|w| w.id == id)
        {
            waiter.cancel = Some(registration);
        } else {
            drop(state);
            drop(registration);
        }
    }

    fn abort(&self, error: Error) {
        let dropped = {
            let mut state = self.state.lock();
            if state.aborted.is_some() {
                return;
            }
            state.aborted = Some(error.clone());
            std::mem::take(&mut state.table)
        };
        for entry in dropped.into_values() {
            if let Entry::Waiters(waiters) = entry {
                for waiter in waiters {
                    drop(waiter.cancel);
                    (waiter.done)(Err(error.clone()), &InlineScope::unknown());
                }
            }
        }
    }
}

fn take_waiter(state: &Mutex<State>, key: &RendezvousKey, id: u64) -> Option<Waiter> {
    let mut state = state.lock();
    let Some(Entry::Waiters(waiters)) = state.table.get_mut(key) else { return None };
    let at = waiters.iter().position(|w| w.id == id)?;
    let waiter = waiters.remove(at);
    if waiters.is_empty() {
        state.table.remove(key);
    }
    waiter
}

#[cfg(test)]
mod tests {
    use super::*;
    use ferroflow_core::{Code, Tensor};
    use std::sync::mpsc::channel;

    fn key(name: &str) -> RendezvousKey {
        RendezvousKey(name.into())
    }

    fn receive(r: &LocalRendezvous, name: &str, cancel: &CancelToken) -> impl Fn() -> Result<i32> {
        let (tx, rx) = channel();
        r.recv(&key(name), cancel, Box::new(move |v, _: &InlineScope| tx.send(v).unwrap()));
        move || match rx.try_recv().expect("nothing received yet")? {
            Received::Live(t) => t.scalar_value(),
            Received::Dead => Ok(-1),
        }
    }

    fn send(r: &LocalRendezvous, name: &str, value: Received) -> Result<()> {
        r.send(&key(name), value, &InlineScope::unknown())
    }

    #[test]
    fn values_and_receivers_meet_in_order() {
        let (r, c) = (LocalRendezvous::new(), CancelToken::new());
        let first = receive(&r, "a", &c);
        send(&r, "a", Received::Live(Tensor::scalar(1i32))).unwrap();
        send(&r, "a", Received::Live(Tensor::scalar(2i32))).unwrap();
        send(&r, "a", Received::Dead).unwrap();
        assert_eq!(first().unwrap(), 1);
        assert_eq!(receive(&r, "a", &c)().unwrap(), 2);
        assert_eq!(receive(&r, "a", &c)().unwrap(), -1);
    }

    #[test]
    fn cancelling_and_aborting_end_the_wait() {
        let (r, c) = (LocalRendezvous::new(), CancelToken::new());
        let waiting = receive(&r, "a", &c);
        c.cancel(err!(Cancelled, "stop"));
        assert_eq!(waiting().unwrap_err().code(), Code::Cancelled);
        assert_eq!(receive(&r, "late", &c)().unwrap_err().code(), Code::Cancelled);

        let c = CancelToken::new();
        let waiting = receive(&r, "b", &c);
        r.abort(err!(Aborted, "gone"));
        assert_eq!(waiting().unwrap_err().message(), "gone");
        assert_eq!(receive(&r, "c", &c)().unwrap_err().code(), Code::Aborted);
        assert!(send(&r, "b", Received::Dead).is_err());
    }
}
