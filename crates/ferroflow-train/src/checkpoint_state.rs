//! The file `checkpoint`, which lists the checkpoints of a directory in TensorFlow's text format.

use crate::events::file_error;
use ferroflow_core::{Result, bail, files};
use std::io::Write;
use std::path::Path;

/// The checkpoints of a directory, oldest first.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct CheckpointState {
    /// Paths, and the times they were written.
    all: Vec<(String, f64)>,
}

/// The name of the file.
const STATE_FILE: &str = "checkpoint";

impl CheckpointState {
    pub fn latest(&self) -> Option<&str> {
        self.all.last().map(|(path, _)| path.as_str())
    }

    pub fn newest_first(&self) -> impl Iterator<Item = &str> {
        self.all.iter().rev().map(|(path, _)| path.as_str())
    }

    /// Adds the latest checkpoint. Returns the oldest ones beyond `keep`; 0 keeps all.
    pub fn add(&mut self, path: &str, time: f64, keep: usize) -> Vec<String> {
        self.all.retain(|(known, _)| known != path);
        self.all.push((path.to_string(), time));
        if keep == 0 || self.all.len() <= keep {
            return Vec::new();
        }
        let extra = self.all.len() - keep;
        self.all.drain(..extra).map(|(path, _)| path).collect()
    }

    pub fn write(&self, dir: &Path) -> Result<()> {
        let Some((latest, _)) = self.all.last() else {
            bail!(Internal, "the list of checkpoints is empty");
        };
        let mut text = format!("model_checkpoint_path: {}\n", quoted(dir, latest));
        for (path, _) in &self.all {
            text += &format!("all_model_checkpoint_paths: {}\n", quoted(dir, path));
        }
        for (_, time) in &self.all {
            text += &format!("all_model_checkpoint_timestamps: {time}\n");
        }
        write_whole(&dir.join(STATE_FILE), text.as_bytes())
    }

    pub fn read(dir: &Path) -> Result<CheckpointState> {
        let path = dir.join(STATE_FILE);
        let text = std::fs::read_to_string(&path).map_err(|e| file_error(&path, &e))?;
        let (mut latest, mut paths, mut times) = (None, Vec::new(), Vec::new());
        for line in text.lines() {
            let Some((key, value)) = line.split_once(':') else { continue };
            match key.trim() {
                "model_checkpoint_path" => latest = Some(unquoted(dir, value)),
                "all_model_checkpoint_paths" => paths.push(unquoted(dir, value)),
                "all_model_checkpoint_timestamps" => {
                    times.push(value.trim().parse().unwrap_or(0.0))
                }
                _ => {}
            }
        }
        let Some(latest) = latest else {
            bail!(
                DataLoss,
                "{} names no checkpoint; remove it to start from the beginning",
                path.display()
            );
        };
        paths.retain(|p| *p != latest);
        paths.push(latest);
        let all = paths.into_iter().enumerate();
        let all = all.map(|(i, path)| (path, times.get(i).copied().unwrap_or(0.0))).collect();
        Ok(CheckpointState { all })
    }
}

/// A path relative to the directory of the file, so that the directory can be moved.
fn quoted(dir: &Path, path: &str) -> String {
    let relative = Path::new(path).strip_prefix(dir).unwrap_or(Path::new(path));
    let text = relative.display().to_string();
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

fn unquoted(dir: &Path, text: &str) -> String {
    let text = text.trim().trim_matches('"').replace("\\\"", "\"").replace("\\\\", "\\");
    dir.join(text).display().to_string()
}

/// Writes a file atomically: under another name first, then by a rename. Both reach the disk.
pub(crate) fn write_whole(path: &Path, bytes: &[u8]) -> Result<()> {
    let temporary = path.with_extension(format!("tmp{}", fastrand::u64(..)));
    let write = || {
        let mut file = files::create(&temporary)?;
        file.write_all(bytes)?;
        files::sync_file(&file)?;
        files::rename(&temporary, path)?;
        files::sync_folder(path)
    };
    write().map_err(|e| {
        let _ = files::remove_file(&temporary);
        file_error(path, &e)
    })
}

/// Removes the files of a checkpoint. Missing files are no error.
pub(crate) fn remove_checkpoint(path: &str) {
    let path = Path::new(path);
    let (Some(dir), Some(name)) = (path.parent(), path.file_name()) else { return };
    let name = name.to_string_lossy();
    let mine = |file: &str| {
        file.strip_prefix(&*name)
            .is_some_and(|rest| rest == ".index" || rest == ".meta" || rest.starts_with(".data-"))
    };
    let dir = if dir.as_os_str().is_empty() { Path::new(".") } else { dir };
    let Ok(entries) = std::fs::read_dir(dir) else { return };
    for entry in entries.flatten() {
        if mine(&entry.file_name().to_string_lossy()) {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::temporary;

    #[test]
    fn a_written_list_reads_back_equal() {
        let dir = temporary("state");
        std::fs::create_dir_all(&dir).unwrap();
        let mut state = CheckpointState::default();
        let path = |i: u32| dir.join(format!("model-{i}")).display().to_string();
        assert!(state.add(&path(1), 1.0, 2).is_empty());
        assert!(state.add(&path(2), 2.0, 2).is_empty());
        assert_eq!(state.add(&path(3), 3.5, 2), [path(1)]);
        state.write(&dir).unwrap();
        assert_eq!(CheckpointState::read(&dir).unwrap(), state);
        let text = std::fs::read_to_string(dir.join("checkpoint")).unwrap();
        assert!(text.starts_with("model_checkpoint_path: \"model-3\"\n"), "{text}");
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
