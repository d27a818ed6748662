//! Files that appear whole or not at all.

use crate::prelude::*;
use ferroflow_core::files;
use ferroflow_op_kit::file::{file_error, local};
use std::io::{BufWriter, Write};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

/// Small writes are gathered up to this many bytes; larger ones go straight to the file.
const BUFFER: usize = 256 << 10;

/// A file that appears under its name when it is whole, and not at all otherwise.
pub(super) struct NewFile {
    name: String,
    temporary: PathBuf,
    file: Option<BufWriter<files::OpenFile>>,
}

impl NewFile {
    pub fn create(name: &str) -> Result<NewFile> {
        static COUNTER: AtomicU64 = AtomicU64::new(0);
        crash_point();
        let n = COUNTER.fetch_add(1, Ordering::Relaxed);
        let temporary = format!("{name}.tempstate{}_{n}", std::process::id());
        let temporary = local(temporary.as_bytes()).to_path_buf();
        let file = files::create(&temporary).map_err(|e| file_error(name, &e))?;
        let file = Some(BufWriter::with_capacity(BUFFER, file));
        Ok(NewFile { name: name.into(), temporary, file })
    }

    pub fn write(&mut self, bytes: &[u8]) -> Result<()> {
        crash_point();
        let file = self.file.as_mut().expect("open until it is finished");
        file.write_all(bytes).map_err(|e| file_error(&self.name, &e))
    }

    pub fn finish(mut self) -> Result<()> {
        crash_point();
        let written = self.file.as_mut().map_or(Ok(()), |file| {
            file.flush()?;
            files::sync_file(file.get_ref())
        });
        crash_point();
        let renamed = written.and_then(|()| {
            files::rename(&self.temporary, local(self.name.as_bytes()))?;
            // The file is in place: there is nothing to clean up.
            self.file = None;
            files::sync_folder(local(self.name.as_bytes()))
        });
        renamed.map_err(|e| file_error(&self.name, &e))
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if self.file.take().is_some() {
            let temporary = std::mem::take(&mut self.temporary);
            files::soon(move || drop(files::remove_file(&temporary)));
        }
    }
}

/// Renames a whole file.
pub(super) fn rename(old: &str, new: &str) -> Result<()> {
    crash_point();
    let (from, to) = (local(old.as_bytes()), local(new.as_bytes()));
    let renamed = files::rename(from, to).and_then(|()| files::sync_folder(to));
    renamed.map_err(|e| file_error(old, &e))
}

/// Removes a file. Errors are ignored: no reader opens a leftover file.
pub(super) fn remove(name: &str) {
    crash_point();
    let _ = files::remove_file(local(name.as_bytes()));
}

/// A point at which tests end the process.
fn crash_point() {
    #[cfg(test)]
    crash::point();
}

/// Ends the process at a given file operation.
#[cfg(test)]
pub(super) mod crash {
    use std::sync::atomic::{AtomicI64, Ordering};

    static LEFT: AtomicI64 = AtomicI64::new(i64::MAX);

    /// The number of operations after which the process exits.
    pub fn after(operations: i64) {
        LEFT.store(operations, Ordering::SeqCst);
    }

    pub fn point() {
        if LEFT.fetch_sub(1, Ordering::SeqCst) == 0 {
            std::process::abort();
        }
    }
}
