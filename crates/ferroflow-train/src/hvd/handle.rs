//! Values that are under way.

use ferroflow_core::{Result, Tensor, err};
use std::sync::mpsc::Receiver;

/// A value that is being communicated, while this process does something else.
pub struct Handle<T = Tensor> {
    result: Receiver<Result<T>>,
    there: Option<Result<T>>,
}

impl<T> Handle<T> {
    pub(super) fn new(result: Receiver<Result<T>>) -> Handle<T> {
        Handle { result, there: None }
    }

    /// Whether it is there, or has failed: [`Handle::wait`] does not wait.
    pub fn is_done(&mut self) -> bool {
        if self.there.is_none() {
            self.there = self.result.try_recv().ok();
        }
        self.there.is_some()
    }

    /// Waits for it. The other ranks end the wait, or the engine's deadline does.
    pub fn wait(self) -> Result<T> {
        let ended = || Err(err!(Cancelled, "the engine has ended"));
        self.there.unwrap_or_else(|| self.result.recv().unwrap_or_else(|_| ended()))
    }
}
