//! The open connections of a server. If there are too many, the server closes an idle one.

use ferroflow_core::HashMap;
use ferroflow_identity::PeerIdentity;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Instant;
use tokio::task::AbortHandle;

/// The use of one connection. Only complete requests count: a client that sends half a request does
/// not use its connection.
pub struct Activity {
    /// Requests that have arrived and are not answered yet.
    running: AtomicUsize,
    opened: Instant,
    /// Milliseconds from `opened` to the last answer.
    last: AtomicU64,
}

impl Default for Activity {
    fn default() -> Activity {
        Activity { running: AtomicUsize::new(0), opened: Instant::now(), last: AtomicU64::new(0) }
    }
}

impl Activity {
    /// Counts a complete request until the result is dropped.
    pub fn request(&self) -> RunningRequest<'_> {
        self.running.fetch_add(1, Ordering::Relaxed);
        RunningRequest(self)
    }

    /// When its last request was answered, if none is running.
    fn idle_since(&self) -> Option<Instant> {
        let last = std::time::Duration::from_millis(self.last.load(Ordering::Relaxed));
        (self.running.load(Ordering::Relaxed) == 0).then(|| self.opened + last)
    }
}

/// A request that is being answered.
pub struct RunningRequest<'a>(&'a Activity);

impl Drop for RunningRequest<'_> {
    fn drop(&mut self) {
        let passed = self.0.opened.elapsed().as_millis() as u64;
        self.0.last.store(passed, Ordering::Relaxed);
        self.0.running.fetch_sub(1, Ordering::Relaxed);
    }
}

struct OpenConnection {
    identity: Arc<PeerIdentity>,
    activity: Arc<Activity>,
    handle: AbortHandle,
}

/// All open connections.
#[derive(Default)]
pub struct OpenConnections(Vec<OpenConnection>);

impl OpenConnections {
    /// Adds a connection, which the task of `handle` serves.
    pub fn add(
        &mut self,
        identity: Arc<PeerIdentity>,
        activity: Arc<Activity>,
        handle: AbortHandle,
    ) {
        self.0.push(OpenConnection { identity, activity, handle });
    }

    /// Whether one more may be opened, where `most` are allowed. If there are too many, this closes
    /// one without a complete request: that of the identity with the most connections that has been
    /// idle for longest. A client opens it again with its next request.
    pub fn has_room(&mut self, most: usize) -> bool {
        if self.0.len() < most {
            return true;
        }
        self.0.retain(|open| !open.handle.is_finished());
        if self.0.len() < most {
            return true;
        }
        let mut counts: HashMap<&PeerIdentity, usize> = HashMap::default();
        self.0.iter().for_each(|open| *counts.entry(&open.identity).or_default() += 1);
        let largest = counts.values().max().copied().unwrap_or_default();
        let idle = |open: &OpenConnection| {
            open.activity.idle_since().filter(|_| counts[&*open.identity] == largest)
        };
        let idle = self.0.iter().enumerate().filter_map(|(at, open)| Some((idle(open)?, at)));
        let Some((_, at)) = idle.min() else { return false };
        self.0.swap_remove(at).handle.abort();
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn add(open: &mut OpenConnections, user: u32, requests: usize) -> AbortHandle {
        let activity = Arc::<Activity>::default();
        (0..requests).for_each(|_| std::mem::forget(activity.request()));
        let handle = tokio::spawn(std::future::pending::<()>()).abort_handle();
        open.add(Arc::new(PeerIdentity::User(user)), activity, handle.clone());
        handle
    }

    #[tokio::test]
    async fn the_identity_with_most_connections_makes_room() {
        let mut open = OpenConnections::default();
        let quiet = add(&mut open, 1, 0);
        let [first, second] = [0, 0].map(|requests| add(&mut open, 2, requests));
        let busy = add(&mut open, 2, 1);
        assert!(open.has_room(5));
        assert!(open.has_room(4), "one of user 2 makes room");
        tokio::task::yield_now().await;
        assert!(first.is_finished() != second.is_finished());
        assert!(!quiet.is_finished() && !busy.is_finished());
        let [one, two] = [1, 1].map(|requests| add(&mut open, 3, requests));
        assert!(!open.has_room(5) || !quiet.is_finished(), "user 3 has none to close");
        assert!(!one.is_finished() && !two.is_finished());
    }
}
