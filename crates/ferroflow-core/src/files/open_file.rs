//! A file that counts as open.

use crate::MemoryOwner;
use rustix::process::{Resource, getrlimit};
use std::fs::File;
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::ops::Deref;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The number of files that a session may always have open, while the process has descriptors left.
const FEW: usize = 8;

static OPEN: OpenFiles = OpenFiles { all: AtomicUsize::new(0) };

/// An open file. It counts for the process, and for the session whose work opened it.
#[derive(Debug)]
pub struct OpenFile {
    file: File,
    _counted: Counted,
}

impl OpenFile {
    /// Opens a file. Fails if too many are open.
    pub(super) fn new(open: impl FnOnce() -> io::Result<OwnedFd>) -> io::Result<OpenFile> {
        let counted = OPEN.count(MemoryOwner::current(), most())?;
        Ok(OpenFile { file: open()?.into(), _counted: counted })
    }
}

impl Deref for OpenFile {
    type Target = File;
    fn deref(&self) -> &File {
        &self.file
    }
}

impl Read for OpenFile {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        self.file.read(to)
    }

    fn read_to_end(&mut self, to: &mut Vec<u8>) -> io::Result<usize> {
        self.file.read_to_end(to)
    }
}

impl Write for OpenFile {
    fn write(&mut self, from: &[u8]) -> io::Result<usize> {
        self.file.write(from)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Seek for OpenFile {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.file.seek(to)
    }
}

/// Half of the descriptors that the process may have.
fn most() -> usize {
    let limit = getrlimit(Resource::Nofile).current;
    limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX) / 2
}

/// How many files are open.
struct OpenFiles {
    all: AtomicUsize,
}

struct Counted {
    of: &'static OpenFiles,
    session: Option<Arc<MemoryOwner>>,
}

impl OpenFiles {
    /// Counts one more file, of at most `most`. Beyond half of them, serves only sessions with few
    /// files.
    fn count(&'static self, session: Option<Arc<MemoryOwner>>, most: usize) -> io::Result<Counted> {
        let all = self.all.fetch_add(1, Ordering::Relaxed) + 1;
        let own = session.as_ref().map_or(0, |s| s.open_files.fetch_add(1, Ordering::Relaxed) + 1);
        let counted = Counted { of: self, session };
        if all <= most / 2 || (all <= most && own <= FEW) {
            return Ok(counted);
        }
        let text = format!(
            "too many open files: {all}, {own} of them of this session; a process uses half of its \
             descriptors for files, here {most} (raise them with ulimit -n)"
        );
        Err(io::Error::new(ErrorKind::QuotaExceeded, text))
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.of.all.fetch_sub(1, Ordering::Relaxed);
        if let Some(session) = &self.session {
            session.open_files.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl std::fmt::Debug for Counted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Counted")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_with_many_open_files_is_refused_before_one_with_few() {
        static FILES: OpenFiles = OpenFiles { all: AtomicUsize::new(0) };
        let (greedy, modest) = (MemoryOwner::unlimited(), MemoryOwner::unlimited());
        let count = |session: &Arc<MemoryOwner>| FILES.count(Some(session.clone()), 40);
        let mut held: Vec<Counted> = (0..20).map(|_| count(&greedy).unwrap()).collect();
        let e = count(&greedy).err().unwrap();
        assert!(e.kind() == ErrorKind::QuotaExceeded && e.to_string().contains("ulimit"), "{e}");
        held.extend((0..FEW).map(|_| count(&modest).unwrap()));
        assert!(count(&modest).is_err());
        held.truncate(5);
        assert!(count(&greedy).is_ok());
        drop(held);
        assert_eq!(FILES.all.load(Ordering::Relaxed), 0);
        assert_eq!(greedy.open_files.load(Ordering::Relaxed), 0);
    }
}
