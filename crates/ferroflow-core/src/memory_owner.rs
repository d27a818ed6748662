//! The sessions that own memory. What one session has freed is zeroed before another gets it, and
//! the bytes that a session holds count against its quota.

use crate::{Limit, Limits, Result};
use std::cell::Cell;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// A session, as the owner of the memory that is allocated while its nodes run.
pub struct MemoryOwner {
    /// Never 0, which stands for memory without an owner.
    id: u64,
    name: String,
    limit: Limit,
    live: AtomicUsize,
}

thread_local! {
    /// The owner whose work is under way on this thread; null if there is none. It is valid while
    /// the call of `MemoryOwner::run` that set it is on the stack.
    static CURRENT: Cell<*const MemoryOwner> = const { Cell::new(ptr::null()) };
}

impl MemoryOwner {
    /// An owner that may hold as much as `limit` allows. Errors call it `name`.
    pub fn new(name: impl Into<String>, limit: Limit) -> Arc<MemoryOwner> {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        Arc::new(MemoryOwner { id, name: name.into(), limit, live: AtomicUsize::new(0) })
    }

    /// An owner without a limit of its own, for work outside of a server's sessions.
    pub fn unlimited() -> Arc<MemoryOwner> {
        let limit = Limit { most: usize::MAX, ..Limits::DEFAULT.session_memory };
        MemoryOwner::new("this process", limit)
    }

    /// Bytes that it holds.
    pub fn live(&self) -> usize {
        self.live.load(Ordering::Relaxed)
    }

    /// Does `work`. What it allocates on this thread belongs to this owner.
    pub fn run<R>(self: &Arc<Self>, work: impl FnOnce() -> R) -> R {
        within(Arc::as_ptr(self), work)
    }

    /// Does `work`, whose allocations belong to no session.
    pub fn run_outside<R>(work: impl FnOnce() -> R) -> R {
        within(ptr::null(), work)
    }

    /// The owner whose work is under way on this thread.
    pub fn current() -> Option<Arc<MemoryOwner>> {
        let owner = CURRENT.get();
        if owner.is_null() {
            return None;
        }
        // SAFETY: the pointer came from `Arc::as_ptr` in `run`, whose borrow of the `Arc` is still
        // on this thread's stack, so the owner is alive. The increment gives the new `Arc` its own
        // count.
        unsafe {
            Arc::increment_strong_count(owner);
            Some(Arc::from_raw(owner))
        }
    }

    /// A number that no other owner has.
    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    /// Counts `bytes` more. An error if the quota does not allow it.
    pub(crate) fn take(&self, bytes: usize) -> Result<()> {
        let live = self.live.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes);
        if live > self.limit.most {
            self.give_back(bytes);
            return Err(self.limit.exceeded(live, &self.name));
        }
        Ok(())
    }

    pub(crate) fn give_back(&self, bytes: usize) {
        self.live.fetch_sub(bytes, Ordering::Relaxed);
    }
}

fn within<R>(owner: *const MemoryOwner, work: impl FnOnce() -> R) -> R {
    struct Restore(*const MemoryOwner);
    impl Drop for Restore {
        fn drop(&mut self) {
            CURRENT.set(self.0);
        }
    }
    let _restore = Restore(CURRENT.replace(owner));
    work()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Buffer, Code};

    fn owner(most: usize) -> Arc<MemoryOwner> {
        MemoryOwner::new("session 7", Limit { most, ..Limits::DEFAULT.session_memory })
    }

    #[test]
    fn owners_nest_and_end_with_their_work() {
        let (a, b) = (owner(1), owner(1));
        let current = || MemoryOwner::current().map(|owner| owner.id());
        assert_eq!(current(), None);
        a.run(|| {
            b.run(|| assert_eq!(current(), Some(b.id())));
            assert_eq!(current(), Some(a.id()));
            MemoryOwner::run_outside(|| assert_eq!(current(), None));
            let panicked = std::panic::catch_unwind(|| b.run(|| panic!("in a kernel")));
            assert!(panicked.is_err());
            assert_eq!(current(), Some(a.id()));
        });
        assert_eq!(current(), None);
    }

    #[test]
    fn a_session_over_its_quota_is_out_of_memory_and_others_are_not() {
        let (greedy, other) = (owner(100_000), owner(100_000));
        let held = greedy.run(|| Buffer::alloc(60_000)).unwrap();
        let e = greedy.run(|| Buffer::alloc(60_000)).err().unwrap();
        assert_eq!(e.code(), Code::ResourceExhausted);
        let text = e.message();
        assert!(text.contains("session 7") && text.contains("--max-session-memory"), "{text}");
        assert!(other.run(|| Buffer::alloc(60_000)).is_ok());
        drop(held);
        assert_eq!(greedy.live(), 0);
        assert!(greedy.run(|| Buffer::alloc(60_000)).is_ok());
    }
}
