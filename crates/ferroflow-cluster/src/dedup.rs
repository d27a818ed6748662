//! Deduplicates requests: a client that lost the answer to a call retries it, and a step must not
//! run twice.

use foldhash::fast::RandomState;
use parking_lot::Mutex;
use std::hash::BuildHasher;
use std::sync::atomic::{AtomicBool, Ordering};

/// The last ids of one kind of request.
///
/// Each step notes several ids, so this is one table in which an id touches one line of memory. It
/// is divided into buckets, each with its last ids.
pub(crate) struct RecentIds {
    buckets: Mutex<Box<[Bucket]>>,
    /// The number of the last bucket. There are a power of two.
    mask: usize,
    /// Callers choose ids, but cannot know their bucket.
    hasher: RandomState,
    /// Whether an id was ever inserted. Some tables stay empty, and each step would fetch a line of
    /// them to find nothing.
    is_used: AtomicBool,
}

/// Ids, the newest first. Zero is a free place.
type Bucket = [i64; 8];

/// How many of the last ids share a bucket, on average.
const SHARE: usize = 4;

impl RecentIds {
    /// Remembers about the last `capacity` ids. At most one in twenty of the oldest of these is
    /// forgotten, and one in 100,000 of those a quarter as old.
    pub fn new(capacity: usize) -> RecentIds {
        let count = capacity.div_ceil(SHARE).next_power_of_two();
        let buckets = Mutex::new(vec![[0; _]; count].into());
        let is_used = AtomicBool::new(false);
        RecentIds { buckets, mask: count - 1, hasher: RandomState::default(), is_used }
    }

    /// Inserts an id; false if it is known. Zero means "no id" and is never known.
    pub fn insert(&self, id: i64) -> bool {
        if id == 0 {
            return true;
        }
        let bucket = &mut self.buckets.lock()[self.place(id)];
        let is_new = !bucket.contains(&id);
        if is_new {
            if !self.is_used.load(Ordering::Relaxed) {
                self.is_used.store(true, Ordering::Relaxed);
            }
            bucket.rotate_right(1);
            bucket[0] = id;
        }
        is_new
    }

    /// Forgets an id.
    pub fn remove(&self, id: i64) {
        if !self.is_used.load(Ordering::Relaxed) {
            return;
        }
        let bucket = &mut self.buckets.lock()[self.place(id)];
        if let Some(at) = bucket.iter().position(|known| *known == id) {
            bucket[at..].rotate_left(1);
            bucket[bucket.len() - 1] = 0;
        }
    }

    /// Whether an id is known.
    pub fn contains(&self, id: i64) -> bool {
        id != 0
            && self.is_used.load(Ordering::Relaxed)
            && self.buckets.lock()[self.place(id)].contains(&id)
    }

    /// The number of the bucket of an id.
    fn place(&self, id: i64) -> usize {
        self.hasher.hash_one(id) as usize & self.mask
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_known_until_it_is_removed() {
        let ids = RecentIds::new(2);
        assert!(ids.insert(0) && ids.insert(0));
        assert!(ids.insert(1) && !ids.insert(1));
        assert!(ids.contains(1) && !ids.contains(0));
        assert!(ids.insert(2) && ids.insert(3));
        ids.remove(3);
        ids.remove(3);
        assert!(!ids.contains(3) && ids.contains(1) && ids.contains(2));
        assert!(ids.insert(3) && !ids.insert(1));
    }

    #[test]
    fn old_ids_are_forgotten_and_recent_ones_are_not() {
        let ids = RecentIds::new(1000);
        let count = 100_000;
        assert!((1..=count).all(|id| ids.insert(id)));
        let known =
            |ages: std::ops::Range<i64>| ages.filter(|age| ids.contains(count - age)).count();
        assert_eq!(known(0..100), 100);
        assert!(known(0..1000) > 950);
        assert_eq!(known(20_000..100_000), 0);
    }
}
