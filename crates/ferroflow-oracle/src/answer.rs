//! Runs cases in Ferroflow.

use crate::record::Case;
use bytes::Bytes;
use ferroflow::{SessionOptions, default_catalog};
use ferroflow_core::{Result, Tensor, err};
use ferroflow_runtime::{RunOptions, RunRequest, Session, Task};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// TensorFlow had the same time.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Stands for a folder in the names of files that cases write and read.
const FOLDER: &[u8] = b"$ORACLE";

/// One task whose sessions share no state: each case finds it new.
pub struct Ours {
    task: Arc<Task>,
    folder: PathBuf,
}

impl Default for Ours {
    fn default() -> Ours {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let unique = (std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let folder =
            std::env::temp_dir().join(format!("ferroflow-oracle-{}-{}", unique.0, unique.1));
        Ours { task: Task::local(default_catalog()), folder }
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
            options: RunOptions { timeout: Some(TIMEOUT), ..RunOptions::default() },
        };
        let mut tensors = session.run_blocking(request)?.tensors;
        if has_files {
            for t in &mut tensors {
                if let Some(shown) = replaced(t, folder.as_bytes(), FOLDER)? {
                    *t = shown;
                }
            }
        }
        Ok(tensors)
    }

    fn clear(&self) {
        // It may not be there.
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

impl Drop for Ours {
    fn drop(&mut self) {
        self.clear();
    }
}

/// `tensor` with `new` for `old` in its strings, if any has `old`.
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
