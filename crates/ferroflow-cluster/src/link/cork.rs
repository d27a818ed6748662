//! What a thread sends in one go leaves in one piece: each write wakes somebody at the other end, who
//! would find a part of what he needs.

use super::outbox::Outbox;
use std::cell::RefCell;

thread_local! {
    /// The outboxes to which this thread owes a push, while it holds back.
    static OWED: RefCell<Option<Vec<Outbox>>> = const { RefCell::new(None) };
}

/// Does `work`, for which this thread takes no longer than to wake another, and sends what comes of it
/// afterwards.
pub(crate) fn in_one_piece<R>(work: impl FnOnce() -> R) -> R {
    let is_outermost = OWED.with_borrow_mut(|owed| {
        let is_outermost = owed.is_none();
        owed.get_or_insert_default();
        is_outermost
    });
    let _push = is_outermost.then(|| Push);
    work()
}

/// Pushes what is owed, however the work ended.
struct Push;

impl Drop for Push {
    fn drop(&mut self) {
        let owed = OWED.with_borrow_mut(Option::take);
        owed.into_iter().flatten().for_each(|outbox| outbox.push());
    }
}

/// Whether `outbox`, which something waits in, is pushed later: this thread holds back.
pub(super) fn holds_back(outbox: &Outbox) -> bool {
    OWED.with_borrow_mut(|owed| match owed {
        Some(owed) => {
            owed.push(outbox.clone());
            true
        }
        None => false,
    })
}
