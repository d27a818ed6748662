//! Values that members of a collective provide for each other, by step and key.

use crate::dedup::RecentIds;
use bytes::Bytes;
use ferroflow_core::{Error, HashMap, Result, ensure, err};
use parking_lot::Mutex;
use std::sync::Arc;
use tokio::sync::oneshot;

/// The limit for provided values and for waiting receivers.
const MOST: usize = 1 << 16;

enum Slot {
    /// A value, and the sender of the notice that it was taken.
    Value(Bytes, oneshot::Sender<()>),
    Waiter(oneshot::Sender<Bytes>),
}

pub(super) struct Buffers {
    slots: Mutex<HashMap<(i64, String), Slot>>,
    /// The last steps that have ended: receivers of their values fail at once.
    over: Arc<RecentIds>,
}

impl Buffers {
    /// `over` are the last steps of the task that have ended. Each step uses this table for other
    /// ends too, so that it fetches one line of memory.
    pub fn new(over: Arc<RecentIds>) -> Buffers {
        Buffers { slots: Mutex::default(), over }
    }

    /// Notes that a step starts. Its number may have been used before, if an attempt failed on this
    /// task and not at the leader, which assigns the numbers.
    pub fn begin(&self, step_id: i64) {
        self.over.remove(step_id);
    }

    /// Keeps a value until it is taken once. The returned receiver reports that it was taken, or
    /// that it was dropped.
    pub fn provide(
        &self,
        step_id: i64,
        key: String,
        value: Bytes,
    ) -> Result<oneshot::Receiver<()>> {
        let (tell, taken) = oneshot::channel();
        let mut slots = self.slots.lock();
        let full = (step_id, key);
        match slots.remove(&full) {
            Some(Slot::Waiter(waiter)) => {
                match waiter.send(value) {
                    // The receiver has gone; it may ask again.
                    Err(value) => drop(slots.insert(full, Slot::Value(value, tell))),
                    Ok(()) => drop(tell.send(())),
                }
            }
            Some(first) => {
                let twice = err!(Internal, "{} of step {step_id} was provided twice", full.1);
                slots.insert(full, first);
                return Err(twice);
            }
            None => {
                if self.over.contains(step_id) {
                    return Err(over(step_id));
                }
                ensure!(
                    slots.len() < MOST,
                    ResourceExhausted,
                    "too many values of collectives are waiting"
                );
                slots.insert(full, Slot::Value(value, tell));
            }
        }
        Ok(taken)
    }

    /// Takes a value, or waits for it.
    pub async fn take(&self, step_id: i64, key: &str) -> Result<Bytes> {
        let mut waiting = {
            let mut slots = self.slots.lock();
            let full = (step_id, key.to_string());
            match slots.remove(&full) {
                Some(Slot::Value(value, tell)) => {
                    let _ = tell.send(());
                    return Ok(value);
                }
                Some(Slot::Waiter(waiter)) if !waiter.is_closed() => {
                    slots.insert(full, Slot::Waiter(waiter));
                    return Err(err!(Internal, "{key} of step {step_id} was requested twice"));
                }
                _ => {}
            }
            if self.over.contains(step_id) {
                return Err(over(step_id));
            }
            ensure!(
                slots.len() < MOST,
                ResourceExhausted,
                "too many receivers of collectives are waiting"
            );
            let (tell, told) = oneshot::channel();
            slots.insert(full.clone(), Slot::Waiter(tell));
            Waiting { buffers: self, full, told }
        };
        (&mut waiting.told).await.map_err(|_| over(step_id))
    }

    /// Drops the values of a step. Current and later receivers of them fail.
    pub fn forget(&self, step_id: i64) {
        let mut slots = self.slots.lock();
        self.over.insert(step_id);
        slots.retain(|(step, _), _| *step != step_id);
    }
}

/// A waiting receiver. It removes its entry when it is dropped.
struct Waiting<'a> {
    buffers: &'a Buffers,
    full: (i64, String),
    told: oneshot::Receiver<Bytes>,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.told.close();
        let mut slots = self.buffers.slots.lock();
        // The entry may belong to another receiver by now.
        if matches!(slots.get(&self.full), Some(Slot::Waiter(waiter)) if waiter.is_closed()) {
            slots.remove(&self.full);
        }
    }
}

fn over(step_id: i64) -> Error {
    err!(Aborted, "step {step_id} is over").derived()
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;

    fn buffers() -> Buffers {
        Buffers::new(Arc::new(RecentIds::new(100)))
    }

    #[tokio::test]
    async fn values_are_taken_once_in_any_order() {
        let buffers = buffers();
        let taken = buffers.provide(1, "a".into(), Bytes::from_static(b"x")).unwrap();
        assert!(buffers.provide(1, "a".into(), Bytes::new()).is_err());
        assert_eq!(buffers.take(1, "a").await.unwrap(), "x");
        taken.await.unwrap();
        let late = async {
            tokio::task::yield_now().await;
            buffers.provide(1, "a".into(), Bytes::from_static(b"y")).unwrap().await.unwrap();
        };
        let (taken, ()) = tokio::join!(buffers.take(1, "a"), late);
        assert_eq!(taken.unwrap(), "y");
        let end = async {
            tokio::task::yield_now().await;
            assert!(buffers.take(2, "b").await.is_err(), "somebody else waits for it");
            buffers.forget(2);
        };
        let (taken, ()) = tokio::join!(buffers.take(2, "b"), end);
        assert!(taken.unwrap_err().is_derived());
        assert!(buffers.slots.lock().is_empty());
    }

    #[tokio::test]
    async fn receivers_of_an_ended_step_fail() {
        let buffers = buffers();
        buffers.forget(1);
        assert!(buffers.take(1, "a").await.unwrap_err().is_derived());
        assert!(buffers.provide(1, "a".into(), Bytes::new()).unwrap_err().is_derived());
        // The leader assigns the same number to the retry.
        buffers.begin(1);
        drop(buffers.provide(1, "a".into(), Bytes::from_static(b"x")).unwrap());
        assert_eq!(buffers.take(1, "a").await.unwrap(), "x");
    }

    #[tokio::test]
    async fn a_dropped_receiver_removes_its_entry() {
        let buffers = buffers();
        assert!(buffers.take(1, "a").now_or_never().is_none());
        assert!(buffers.slots.lock().is_empty());
    }
}
