//! Functions that a kernel can call within a step.

use crate::{InlineScope, Result, StepCtx, Tensor};
use std::sync::Arc;

/// Receives the results of a call, exactly once.
pub type CallDone = Box<dyn FnOnce(Result<Vec<Tensor>>, &InlineScope) + Send>;

/// A function with its graph compiled, ready to be called.
pub trait InstantiatedFunction: Send + Sync {
    /// Starts a call and returns. `done` may run before this returns, or later on another thread.
    fn call(&self, args: Vec<Tensor>, step: &Arc<StepCtx>, scope: &InlineScope, done: CallDone);

    /// Calls and blocks until the result is there. A kernel's `compute` must not call it, because
    /// it must not block.
    fn call_blocking(&self, args: Vec<Tensor>, step: &Arc<StepCtx>) -> Result<Vec<Tensor>>;
}
