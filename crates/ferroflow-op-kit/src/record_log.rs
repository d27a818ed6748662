//! A file to which records are appended. After a failed write, such as on a full disk, the file
//! ends with its last whole record, and the next write repeats the missing records.

use crate::file::file_error;
use crate::tfrecord::write_record;
use ferroflow_core::Result;
use ferroflow_core::files::OpenFile;
use std::io::{Seek, SeekFrom, Write};

/// Records beyond this many bytes that cannot be written are dropped.
const KEPT: usize = 1 << 20;

/// A file of records, as TFRecord files hold them.
pub struct RecordLog {
    name: String,
    file: OpenFile,
    /// The length of the whole records in the file.
    intact: u64,
    pending: Vec<u8>,
}

impl RecordLog {
    /// Adds to `file`, which is empty. Errors call it `name`.
    pub fn new(name: impl Into<String>, file: OpenFile) -> RecordLog {
        RecordLog { name: name.into(), file, intact: 0, pending: Vec::new() }
    }

    /// Adds a record, which [`RecordLog::flush`] writes.
    pub fn add(&mut self, record: &[u8]) {
        write_record(&mut self.pending, record).expect("memory takes any record");
    }

    /// Bytes that are not written yet.
    pub fn pending(&self) -> usize {
        self.pending.len()
    }

    /// Writes the pending records. After an error the file has only whole records.
    pub fn flush(&mut self) -> Result<()> {
        match self.file.write_all(&self.pending) {
            Ok(()) => {
                self.intact += self.pending.len() as u64;
                self.pending.clear();
                Ok(())
            }
            Err(e) => {
                // These can only fail on a file that is not on a disk, which has no length.
                let _ = self.file.set_len(self.intact);
                let _ = self.file.seek(SeekFrom::Start(self.intact));
                if self.pending.len() > KEPT {
                    self.pending.clear();
                }
                Err(file_error(&self.name, &e))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ferroflow_core::{Code, files};
    use std::path::Path;

    #[test]
    fn a_full_disk_is_an_error_that_names_the_file() {
        let full = files::create(Path::new("/dev/full")).unwrap();
        let mut log = RecordLog::new("events", full);
        log.add(b"one");
        let e = log.flush().unwrap_err();
        assert_eq!(e.code(), Code::ResourceExhausted);
        assert!(e.message().starts_with("events; No space left"), "{e}");
        assert_eq!(log.pending(), 19, "it is tried again");
        log.add(&vec![0; KEPT]);
        assert!(log.flush().is_err());
        assert_eq!(log.pending(), 0, "too much to keep");
    }

    #[test]
    fn a_partial_write_leaves_whole_records_and_is_repeated() {
        let path = std::env::temp_dir().join(format!("ferroflow-log-{}", std::process::id()));
        let mut log = RecordLog::new("log", files::create(&path).unwrap());
        log.add(b"one");
        log.flush().unwrap();
        let whole = std::fs::read(&path).unwrap();
        // As a full disk leaves it: a part of the next record, and an error.
        log.add(b"two");
        let part = log.pending[..7].to_vec();
        log.file.write_all(&part).unwrap();
        let read_only = files::open(&path).unwrap();
        let writable = std::mem::replace(&mut log.file, read_only);
        assert!(log.flush().is_err());
        log.file = writable;
        log.file.set_len(log.intact).unwrap();
        log.file.seek(SeekFrom::Start(log.intact)).unwrap();
        log.flush().unwrap();
        let mut expected = whole.clone();
        write_record(&mut expected, b"two").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), expected);
        std::fs::remove_file(&path).unwrap();
    }
}
