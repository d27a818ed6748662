//! Handles of asynchronous collectives.

use ferroflow_core::{Result, Tensor, err};
use std::sync::mpsc::Receiver;

/// The pending result of an asynchronous collective.
pub struct Handle<T = Tensor> {
    result: Receiver<Result<T>>,
    there: Option<Result<T>>,
}

impl<T> Handle<T> {
    pub(super) fn new(result: Receiver<Result<T>>) -> Handle<T> {
        Handle { result, there: None }
    }

    /// Whether it has completed or failed, so that [`Handle::wait`] returns at once.
    pub fn is_done(&mut self) -> bool {
        if self.there.is_none() {
            self.there = self.result.try_recv().ok();
        }
        self.there.is_some()
    }

    /// Waits for the result. The wait ends with the other ranks' contributions or the engine's
    /// deadline.
    pub fn wait(self) -> Result<T> {
        let ended = || Err(err!(Cancelled, "the engine has ended"));
        self.there.unwrap_or_else(|| self.result.recv().unwrap_or_else(|_| ended()))
    }
}
