//! The sessions that own memory. What one session has freed is zeroed before another gets it, and
//! the bytes that a session holds count against its quota.

use crate::{Limit, Limits, Result, buffer};
use parking_lot::Mutex;
use std::cell::Cell;
use std::hash::{BuildHasher, RandomState};
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicIsize, AtomicU64, AtomicUsize, Ordering};

/// A session, as the owner of the memory that is allocated while its nodes run.
pub struct MemoryOwner {
    /// Never 0, which stands for memory without an owner.
    id: u64,
    name: String,
    limit: Limit,
    account: &'static MemoryAccount,
    /// The container of resources that end with the session.
    container: String,
    /// Files of ops that it has open.
    pub(crate) open_files: AtomicUsize,
}

/// The bytes that an owner holds. Small values refer to it without counting references, so it is
/// never freed. The next owner gets it when nothing refers to it any more.
#[derive(Debug, Default)]
pub(crate) struct MemoryAccount {
    /// May be below zero for a moment: threads report small values in portions.
    live: AtomicIsize,
}

/// Accounts of owners that no longer exist.
static LEFT: Mutex<Vec<&'static MemoryAccount>> = Mutex::new(Vec::new());

impl MemoryAccount {
    fn open() -> &'static MemoryAccount {
        let mut left = LEFT.lock();
        let unused = left.iter().position(|account| account.live.load(Ordering::Relaxed) == 0);
        match unused {
            Some(at) => left.swap_remove(at),
            None => Box::leak(Box::default()),
        }
    }

    pub(crate) fn add(&self, bytes: isize) -> usize {
        let before = self.live.fetch_add(bytes, Ordering::Relaxed);
        usize::try_from(before.saturating_add(bytes)).unwrap_or(0)
    }

    fn live(&self) -> usize {
        usize::try_from(self.live.load(Ordering::Relaxed)).unwrap_or(0)
    }
}

impl Drop for MemoryOwner {
    fn drop(&mut self) {
        LEFT.lock().push(self.account);
    }
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
        // The keys of a `RandomState` come from the operating system's random numbers.
        let secret = RandomState::new().hash_one(id);
        Arc::new(MemoryOwner {
            id,
            name: name.into(),
            limit,
            account: MemoryAccount::open(),
            container: format!("session {id} {secret:016x}"),
            open_files: AtomicUsize::new(0),
        })
    }

    /// The container of resources that belong to this session alone. Other sessions cannot guess
    /// its name. The end of the session clears it.
    pub fn container(&self) -> &str {
        &self.container
    }

    /// An owner without a limit of its own, for work outside of a server's sessions.
    pub fn unlimited() -> Arc<MemoryOwner> {
        let limit = Limit { most: usize::MAX, ..Limits::DEFAULT.session_memory };
        MemoryOwner::new("this process", limit)
    }

    /// Bytes that it holds.
    pub fn live(&self) -> usize {
        self.account.live()
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

    /// Fails if the current owner of this thread, or the process, holds more than it may. New small
    /// values are never refused, so the executor calls this before each node, and a dataset before
    /// each element.
    pub fn check_current() -> Result<()> {
        let owner = CURRENT.get();
        // SAFETY: as in `current`: a pointer that is not null refers to a living owner.
        let live = match unsafe { owner.as_ref() } {
            Some(owner) => {
                let live = owner.live();
                if live > owner.limit.most {
                    return Err(owner.limit.exceeded(live, &owner.name));
                }
                live
            }
            None => 0,
        };
        buffer::check_process(live)
    }

    /// The number of the owner whose work is under way on this thread; 0 if there is none.
    pub fn current_id() -> u64 {
        // SAFETY: as in `current`.
        unsafe { CURRENT.get().as_ref() }.map_or(0, |owner| owner.id)
    }

    /// The account of the owner whose work is under way on this thread.
    pub(crate) fn current_account() -> Option<&'static MemoryAccount> {
        // SAFETY: as in `current`.
        unsafe { CURRENT.get().as_ref() }.map(|owner| owner.account)
    }

    /// A number that no other owner has.
    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    /// Counts `bytes` more. An error if the quota does not allow it.
    pub(crate) fn take(&self, bytes: usize) -> Result<()> {
        let live = self.account.add(bytes as isize);
        if live > self.limit.most {
            self.give_back(bytes);
            return Err(self.limit.exceeded(live, &self.name));
        }
        Ok(())
    }

    pub(crate) fn give_back(&self, bytes: usize) {
        self.account.add(-(bytes as isize));
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
    use crate::{Buffer, Code, Tensor};

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

    #[test]
    fn small_values_and_texts_count_against_the_quota() {
        // Miri takes minutes for a megabyte.
        let most = if cfg!(miri) { 100 << 10 } else { 1 << 20 };
        let greedy = owner(most);
        let number = |i: usize| Tensor::scalar(i as i64);
        let text = |i: usize| Tensor::string(format!("{i:1000}"));
        for make in [&number as &dyn Fn(usize) -> Tensor, &text] {
            let mut held = Vec::new();
            let refused = greedy.run(|| {
                (0..10_000).find_map(|i| {
                    held.push(make(i));
                    MemoryOwner::check_current().err()
                })
            });
            let e = refused.expect("the quota is used up");
            assert_eq!(e.code(), Code::ResourceExhausted);
            assert!(e.message().contains("session 7"), "{e}");
            assert!(owner(most).run(MemoryOwner::check_current).is_ok());
            drop(held);
            // The thread has not reported a small part yet.
            assert!(greedy.live() < 64 << 10, "{}", greedy.live());
            assert!(greedy.run(MemoryOwner::check_current).is_ok());
        }
    }
}
