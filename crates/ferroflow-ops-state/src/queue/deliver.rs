//! Delivers results to the kernels that waited for them.

use crate::prelude::*;
use ferroflow_core::OnCancel;

/// The result of a waiting kernel.
pub enum Outcome {
    Ready(Result<Vec<Tensor>>),
    /// Work that remains, such as assembling a batch.
    Later(Box<dyn FnOnce() -> Result<Vec<Tensor>> + Send>),
}

impl Outcome {
    pub(crate) fn later(work: impl FnOnce() -> Result<Vec<Tensor>> + Send + 'static) -> Outcome {
        Outcome::Later(Box::new(work))
    }
}

/// A kernel that is ready to finish.
pub(crate) struct Finished {
    pub(crate) done: Done,
    pub(crate) outcome: Outcome,
    /// Disarmed when the kernel is finished.
    pub(crate) cancel: Option<OnCancel>,
}

/// Finishes kernels, in order. The caller holds no lock. Finishing a kernel may make others ready:
/// those are finished after it in the same scope, not deeper on the stack.
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
