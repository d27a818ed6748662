//! Handing results to the kernels that waited for them.

use crate::prelude::*;
use ferroflow_core::OnCancel;
use std::cell::RefCell;
use std::collections::VecDeque;

/// What a waiting kernel is to be given.
pub enum Outcome {
    Ready(Result<Vec<Tensor>>),
    /// Work that is left to do, such as putting a batch together.
    Later(Box<dyn FnOnce() -> Result<Vec<Tensor>> + Send>),
}

impl Outcome {
    pub(crate) fn later(work: impl FnOnce() -> Result<Vec<Tensor>> + Send + 'static) -> Outcome {
        Outcome::Later(Box::new(work))
    }
}

/// A kernel that need not wait any more.
pub(crate) struct Finished {
    pub(crate) done: Done,
    pub(crate) outcome: Outcome,
    /// Taken back when the kernel is finished.
    pub(crate) cancel: Option<OnCancel>,
}

thread_local! {
    /// What this thread has yet to deliver, while it is delivering.
    static PENDING: RefCell<Option<VecDeque<Finished>>> = const { RefCell::new(None) };
}

/// Finishes kernels, in order. The caller holds no lock. Finishing one may start others that in
/// turn finish some: those are delivered after it by the same loop, not deeper on the stack.
pub(crate) fn deliver(finished: impl IntoIterator<Item = Finished>) {
    let mut finished = finished.into_iter().peekable();
    if finished.peek().is_none() {
        return;
    }
    let nested = PENDING.with_borrow_mut(|pending| match pending {
        Some(pending) => {
            pending.extend(&mut finished);
            true
        }
        None => {
            *pending = Some((&mut finished).collect());
            false
        }
    });
    if nested {
        return;
    }
    let _guard = Guard;
    while let Some(next) = PENDING.with_borrow_mut(|p| p.as_mut().and_then(VecDeque::pop_front)) {
        drop(next.cancel);
        let result = match next.outcome {
            Outcome::Ready(result) => result,
            Outcome::Later(work) => work(),
        };
        next.done.finish_tensors(result);
    }
}

/// Ends delivery, also when finishing a kernel panics.
struct Guard;

impl Drop for Guard {
    fn drop(&mut self) {
        let rest = PENDING.take();
        // Unfinished kernels fail as they are dropped.
        drop(rest);
    }
}
