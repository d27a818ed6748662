//! Deduplicates requests: a client that lost the answer to a call retries it, and a step must not
//! run twice.

use ferroflow_core::HashSet;
use parking_lot::Mutex;
use std::collections::VecDeque;

/// The last ids of one kind of request.
pub(crate) struct RecentIds {
    capacity: usize,
    seen: Mutex<(HashSet<i64>, VecDeque<i64>)>,
}

impl RecentIds {
    pub fn new(capacity: usize) -> RecentIds {
        RecentIds { capacity, seen: Mutex::default() }
    }

    /// Inserts an id; false if it is known. Zero means "no id" and is never known.
    pub fn insert(&self, id: i64) -> bool {
        if id == 0 {
            return true;
        }
        let (set, order) = &mut *self.seen.lock();
        if !set.insert(id) {
            return false;
        }
        order.push_back(id);
        if order.len() > self.capacity
            && let Some(old) = order.pop_front()
        {
            set.remove(&old);
        }
        true
    }

    /// Forgets an id.
    pub fn remove(&self, id: i64) {
        let (set, order) = &mut *self.seen.lock();
        if set.remove(&id) {
            order.retain(|known| *known != id);
        }
    }

    /// Whether an id is known.
    pub fn contains(&self, id: i64) -> bool {
        self.seen.lock().0.contains(&id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_recent_ids_are_known() {
        let ids = RecentIds::new(2);
        assert!(ids.insert(0) && ids.insert(0));
        assert!(ids.insert(1) && !ids.insert(1));
        assert!(ids.contains(1) && !ids.contains(0));
        assert!(ids.insert(2) && ids.insert(3));
        assert!(ids.insert(1), "1 is old enough to be forgotten");
        ids.remove(3);
        assert!(ids.insert(3) && !ids.insert(1));
    }
}
