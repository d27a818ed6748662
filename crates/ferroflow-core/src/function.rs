//! Functions as kernels see them: something to call within a step.

use crate::{Result, StepCtx, Tensor};
use std::sync::Arc;

/// Told the results of a call, exactly once.
pub type CallDone = Box<dyn FnOnce(Result<Vec<Tensor>>) + Send>;

/// An instantiated function.
pub trait InstantiatedFunction: Send + Sync {
    /// Starts a call and returns; `done` may run before this returns, or later on another thread.
    fn call(&self, args: Vec<Tensor>, step: &Arc<StepCtx>, done: CallDone);

    /// Calls and waits. Only for threads that may block: never from a kernel's `compute`.
    fn call_blocking(&self, args: Vec<Tensor>, step: &Arc<StepCtx>) -> Result<Vec<Tensor>>;
}
