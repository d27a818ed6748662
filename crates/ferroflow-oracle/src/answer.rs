//! Runs cases in Ferroflow.

use crate::record::Case;
use ferroflow::{SessionOptions, default_catalog};
use ferroflow_core::{Result, Tensor};
use ferroflow_runtime::{RunOptions, RunRequest, Session, Task};
use std::sync::Arc;
use std::time::Duration;

/// TensorFlow had the same time.
const TIMEOUT: Duration = Duration::from_secs(5);

/// One task whose sessions share no state: each case finds it new.
pub struct Ours {
    task: Arc<Task>,
}

impl Default for Ours {
    fn default() -> Ours {
        Ours { task: Task::local(default_catalog()) }
    }
}

impl Ours {
    /// The values fetched, in order.
    pub fn answer(&self, case: &Case) -> Result<Vec<Tensor>> {
        let options = SessionOptions {
            isolate_state: true,
            allow_soft_placement: true,
            ..SessionOptions::default()
        };
        let session = Session::new(self.task.clone(), &case.graph, options)?;
        let request = RunRequest {
            feeds: case
                .feeds
                .iter()
                .map(|(name, value)| (format!("{name}:0"), value.clone()))
                .collect(),
            fetches: case.fetches.clone(),
            targets: case.targets.clone(),
            options: RunOptions { timeout: Some(TIMEOUT), ..RunOptions::default() },
        };
        Ok(session.run_blocking(request)?.tensors)
    }
}
