//! Values that members of collectives keep for each other, by step and key.

use crate::recent::RecentIds;
use bytes::Bytes;
use ferroflow_core::{Error, HashMap, Result, ensure, err};
use parking_lot::Mutex;
use tokio::sync::oneshot;

/// How many values may wait, and how many who wait for them.
const MOST: usize = 1 << 16;

/// Steps that are remembered to be over, so that nobody waits for their values.
const REMEMBERED: usize = 10_000;

enum Slot {
    /// And whom to tell when it is taken.
    Value(Bytes, oneshot::Sender<()>),
    Waiter(oneshot::Sender<Bytes>),
}

pub(super) struct Buffers {
    slots: Mutex<HashMap<(i64, String), Slot>>,
    over: RecentIds,
}

impl Default for Buffers {
    fn default() -> Buffers {
        Buffers { slots: Mutex::default(), over: RecentIds::new(REMEMBERED) }
    }
}

impl Buffers {
    /// A step begins under a number that may have had a try before: one that failed here, and not at the
    /// leader, which counts them.
    pub fn begin(&self, step_id: i64) {
        self.over.remove(step_id);
    }

    /// Keeps a value until it is taken, once, which is told; if it never will be, that is.
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
                    // Who has gone meanwhile may ask again.
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
                    "too many values of collectives wait"
                );
                slots.insert(full, Slot::Value(value, tell));
            }
        }
        Ok(taken)
    }

    /// Takes a value, when it is there.
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
                    return Err(err!(Internal, "{key} of step {step_id} is asked for twice"));
                }
                _ => {}
            }
            if self.over.contains(step_id) {
                return Err(over(step_id));
            }
            ensure!(slots.len() < MOST, ResourceExhausted, "too many wait for collectives");
            let (tell, told) = oneshot::channel();
            slots.insert(full.clone(), Slot::Waiter(tell));
            Waiting { buffers: self, full, told }
        };
        (&mut waiting.told).await.map_err(|_| over(step_id))
    }

    /// Drops the values of a step, and tells those who wait for some, now or later.
    pub fn forget(&self, step_id: i64) {
        let mut slots = self.slots.lock();
        self.over.is_new(step_id);
        slots.retain(|(step, _), _| *step != step_id);
    }
}

/// Somebody who waits for a value; leaves nothing behind on leaving.
struct Waiting<'a> {
    buffers: &'a Buffers,
    full: (i64, String),
    told: oneshot::Receiver<Bytes>,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.told.close();
        let mut slots = self.buffers.slots.lock();
        // Another may wait by now, who is still there.
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

    #[tokio::test]
    async fn values_are_taken_once_in_whatever_order() {
        let buffers = Buffers::default();
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
    async fn nobody_waits_for_a_step_that_is_over() {
        let buffers = Buffers::default();
        buffers.forget(1);
        assert!(buffers.take(1, "a").await.unwrap_err().is_derived());
        assert!(buffers.provide(1, "a".into(), Bytes::new()).unwrap_err().is_derived());
        // It is tried once more, as far as the leader knows.
        buffers.begin(1);
        drop(buffers.provide(1, "a".into(), Bytes::from_static(b"x")).unwrap());
        assert_eq!(buffers.take(1, "a").await.unwrap(), "x");
    }

    #[tokio::test]
    async fn who_leaves_is_waited_for_no_more() {
        let buffers = Buffers::default();
        assert!(buffers.take(1, "a").now_or_never().is_none());
        assert!(buffers.slots.lock().is_empty());
    }
}
