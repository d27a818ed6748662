//! Runs cases in Ferroflow.

use crate::record::RecordedCase;
use bytes::Bytes;
use ferroflow::graph::{SessionOptions, default_catalog};
use ferroflow_core::{Gpu, Result, Tensor, err};
use ferroflow_runtime::{RunOptions, RunRequest, Task, TaskSession};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The time limit of a case, the same as for TensorFlow.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Stands for a folder in the file names of cases.
const FOLDER: &[u8] = b"$ORACLE";

/// The fetched values, and the op and the device of each node that ran.
pub type TracedAnswer = (Vec<Tensor>, Vec<(String, String)>);

/// A task whose sessions share no state, so that each case starts fresh.
pub struct FerroflowTask {
    task: Arc<Task>,
    folder: PathBuf,
    timeout: Duration,
}

impl Default for FerroflowTask {
    fn default() -> FerroflowTask {
        FerroflowTask::with_gpus(&[])
    }
}

impl FerroflowTask {
    /// A task with these GPUs.
    pub fn with_gpus(gpus: &[Arc<dyn Gpu>]) -> FerroflowTask {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let unique = (std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let folder =
            std::env::temp_dir().join(format!("ferroflow-oracle-{}-{}", unique.0, unique.1));
        let task = Task::with_gpus(default_catalog(), "localhost", 0, 1, gpus);
        FerroflowTask { task, folder, timeout: TIMEOUT }
    }

    /// Cancels a case after `timeout`.
    pub fn with_timeout(mut self, timeout: Duration) -> FerroflowTask {
        self.timeout = timeout;
        self
    }

    /// Runs a case and returns the fetched values in order.
    pub fn answer(&self, case: &RecordedCase) -> Result<Vec<Tensor>> {
        Ok(self.answer_with(case, false)?.0)
    }

    /// Runs a case, and also returns the op and the device of each node that ran.
    pub fn answer_traced(&self, case: &RecordedCase) -> Result<TracedAnswer> {
        self.answer_with(case, true)
    }

    fn answer_with(&self, case: &RecordedCase, trace: bool) -> Result<TracedAnswer> {
        let options = SessionOptions {
            isolate_state: true,
            allow_soft_placement: true,
            ..SessionOptions::default()
        };
        let session = TaskSession::new(self.task.clone(), &case.graph, options)?;
        let folder = self.folder.to_string_lossy().into_owned();
        let mut feeds = Vec::new();
        let mut has_files = false;
        for (name, value) in &case.feeds {
            let value = replaced(value, FOLDER, folder.as_bytes())?;
            has_files |= value.is_some();
            feeds.push((format!("{name}:0"), value));
        }
        if has_files {
            self.clear();
            std::fs::create_dir_all(&self.folder).map_err(|e| err!(Unknown, "{folder}: {e}"))?;
        }
        let feeds = feeds.into_iter().zip(&case.feeds);
        let request = RunRequest {
            feeds: feeds
                .map(|((name, new), (_, old))| (name, new.unwrap_or_else(|| old.clone())))
                .collect(),
            fetches: case.fetches.clone(),
            targets: case.targets.clone(),
            options: RunOptions { timeout: Some(self.timeout), trace, ..RunOptions::default() },
        };
        let output = session.run_blocking(request)?;
        let mut tensors = output.tensors;
        let stats = output.stats.iter().flat_map(|s| s.nodes.lock().clone());
        let ran = stats.map(|node| (node.op, node.device)).collect();
        if has_files {
            for t in &mut tensors {
                if let Some(shown) = replaced(t, folder.as_bytes(), FOLDER)? {
                    *t = shown;
                }
            }
        }
        Ok((tensors, ran))
    }

    fn clear(&self) {
        // The folder may not exist.
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

impl Drop for FerroflowTask {
    fn drop(&mut self) {
        self.clear();
    }
}

/// Replaces `old` by `new` in the strings of `tensor`. `None` if no string contains `old`.
fn replaced(tensor: &Tensor, old: &[u8], new: &[u8]) -> Result<Option<Tensor>> {
    let Ok(strings) = tensor.strings() else { return Ok(None) };
    let at = |s: &[u8]| s.windows(old.len()).position(|w| w == old);
    if strings.iter().all(|s| at(s).is_none()) {
        return Ok(None);
    }
    let replace = |s: &Bytes| match at(s) {
        Some(i) => Bytes::from([&s[..i], new, &s[i + old.len()..]].concat()),
        None => s.clone(),
    };
    Tensor::from_strings(tensor.shape().clone(), strings.iter().map(replace).collect()).map(Some)
}
