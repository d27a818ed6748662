//! Traffic between this task and each of the others.

use foldhash::fast::RandomState;
use parking_lot::RwLock;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Most peers that are counted one by one. The rest share one entry.
const MOST: usize = 4096;
/// Most bytes of the name of a task.
const LONGEST: usize = 200;
const OTHERS: &str = "others";

/// Values that were exchanged with one task.
#[derive(Debug, Default)]
pub struct PeerCounters {
    pub(crate) sent_bytes: AtomicU64,
    pub(crate) sent_values: AtomicU64,
    pub(crate) received_bytes: AtomicU64,
    pub(crate) received_values: AtomicU64,
    pub(crate) waited_micros: AtomicU64,
}

impl PeerCounters {
    /// Counts a value that was sent to the task.
    pub fn sent(&self, bytes: usize) {
        self.sent_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        self.sent_values.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a value of the task.
    pub fn received(&self, bytes: usize) {
        self.received_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        self.received_values.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts time that a receiver waited for a value of the task.
    pub fn waited(&self, time: Duration) {
        self.waited_micros.fetch_add(time.as_micros() as u64, Ordering::Relaxed);
    }
}

#[derive(Debug, Default)]
pub(crate) struct PeerTable(RwLock<ByTask>);

/// Hashed fast, since each value that is sent looks up its task, and with a seed, since names come
/// from peers.
type ByTask = HashMap<String, Arc<PeerCounters>, RandomState>;

impl PeerTable {
    /// Counts a value that was sent to a task.
    pub fn sent(&self, task: &str, bytes: usize) {
        if let Some(found) = self.0.read().get(task) {
            return found.sent(bytes);
        }
        self.get(task).sent(bytes);
    }

    /// The counters of a task.
    pub fn get(&self, task: &str) -> Arc<PeerCounters> {
        if let Some(found) = self.0.read().get(task) {
            return found.clone();
        }
        let mut table = self.0.write();
        // Names come from peers.
        let is_known = table.len() < MOST && task.len() <= LONGEST;
        let name = if is_known { task } else { OTHERS };
        table.entry(name.to_string()).or_default().clone()
    }

    pub fn all(&self) -> Vec<(String, Arc<PeerCounters>)> {
        let mut all: Vec<_> = self.0.read().iter().map(|(k, v)| (k.clone(), v.clone())).collect();
        all.sort_by(|a, b| a.0.cmp(&b.0));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_peers_is_bounded() {
        let table = PeerTable::default();
        (0..MOST + 9).for_each(|i| table.get(&format!("task {i}")).sent(1));
        table.get(&"x".repeat(LONGEST + 1)).sent(1);
        let all = table.all();
        assert_eq!(all.len(), MOST + 1);
        let others = all.iter().find(|(name, _)| name == OTHERS).unwrap();
        assert_eq!(others.1.sent_values.load(Ordering::Relaxed), 10);
    }
}
