//! Running async work of this family's tests on plain threads.

use crate::prelude::*;
use ferroflow_core::Completion;
use parking_lot::{Condvar, Mutex};
use std::time::Duration;

/// Records how a waiting kernel ends, for a test.
#[derive(Default)]
pub(crate) struct Pending {
    result: Mutex<Option<Result<Vec<Tensor>>>>,
    changed: Condvar,
}

impl Pending {
    pub(crate) fn new() -> (Arc<Pending>, Done) {
        let pending = Arc::new(Pending::default());
        let done = Done::new(pending.clone(), 0);
        (pending, done)
    }

    pub(crate) fn is_finished(&self) -> bool {
        self.result.lock().is_some()
    }

    /// Waits for the result; an error after ten seconds.
    pub(crate) fn wait(&self) -> Result<Vec<Tensor>> {
        let mut result = self.result.lock();
        self.changed.wait_while_for(&mut result, |r| r.is_none(), Duration::from_secs(10));
        result.take().unwrap_or_else(|| Err(err!(DeadlineExceeded, "nothing came")))
    }
}

impl Completion for Pending {
    fn complete(self: Arc<Self>, _: u64, result: Result<Outputs>, _: &InlineScope) {
        let tensors = result
            .and_then(|outputs| outputs.into_iter().map(Value::into_tensor).collect::<Result<_>>());
        let before = self.result.lock().replace(tensors);
        assert!(before.is_none(), "finished twice");
        self.changed.notify_all();
    }
}
