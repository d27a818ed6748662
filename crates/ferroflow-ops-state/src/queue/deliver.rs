//! Handing results to the kernels that waited for them.

use crate::prelude::*;
use ferroflow_core::OnCancel;

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

/// Finishes kernels, in order. The caller holds no lock. Finishing one may start others that in
/// turn finish some: those are finished after it in the same scope, not deeper on the stack.
pub(crate) fn deliver(finished: impl IntoIterator<Item = Finished>, scope: &InlineScope) {
    for Finished { done, outcome, cancel } in finished {
        scope.in_order(move |scope| {
            drop(cancel);
            let result = match outcome {
                Outcome::Ready(result) => result,
                Outcome::Later(work) => work(),
            };
            done.finish_tensors_in(scope, result);
        });
    }
}
