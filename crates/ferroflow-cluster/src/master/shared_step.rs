//! Steps that several masters run together: their clients ask for that with a collective graph key.

use super::Master;
use crate::worker::Worker;
use ferroflow_core::Result;
use std::sync::Arc;

/// A step of a graph whose parts several masters run under one step id.
pub(super) struct SharedStep {
    worker: Arc<Worker>,
    leader: String,
    graph_key: i64,
    pub step_id: i64,
    succeeded: bool,
}

impl SharedStep {
    /// Asks the leader of the session for the next step id.
    pub async fn begin(master: &Master, session: &str, graph_key: i64) -> Result<SharedStep> {
        let (worker, leader) = (master.worker.clone(), master.leader(session)?);
        let step_id = worker.next_step(&leader, graph_key).await?;
        Ok(SharedStep { worker, leader, graph_key, step_id, succeeded: false })
    }

    pub fn end(mut self, succeeded: bool) {
        self.succeeded = succeeded;
    }
}

/// Runs also when the caller drops the step.
impl Drop for SharedStep {
    fn drop(&mut self) {
        let SharedStep { leader, graph_key, step_id, .. } = self;
        self.worker.end_step(leader, *graph_key, *step_id, !self.succeeded);
    }
}
