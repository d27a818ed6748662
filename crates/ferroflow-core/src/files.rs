//! Files that ops, checkpoints and summaries read and write. Every access goes through this module,
//! so that the roots of [`confine_to`] hold for all of them.
//!
//! With roots, a path must lie in one of them. The kernel resolves the rest of the path beneath the
//! root, so that neither `..` nor a symbolic link can leave it.
//!
//! A file can be a FIFO or lie on a dead mount, so an access may block for any time. Compute and
//! network threads must not call this module; debug builds check that.
//!
//! Open files are counted. Half of the process's descriptors stay free for connections. A session
//! with many open files is refused before others.

mod open_file;

pub use open_file::OpenFile;

use crate::{Result, err};
use rustix::fs::{CWD, Dir, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::fs::{File, Metadata};
use std::io::{self, ErrorKind};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

static ROOTS: OnceLock<FileRoots> = OnceLock::new();
static IS_DURABLE: AtomicBool = AtomicBool::new(true);

/// Confines every access of this process to these folders. An error if a folder cannot be opened,
/// if the kernel cannot resolve paths beneath a folder, or if the process has other roots already.
pub fn confine_to(folders: &[PathBuf]) -> Result<()> {
    let roots = FileRoots::open(folders)?;
    ROOTS.set(roots).map_err(|_| err!(FailedPrecondition, "the file roots are set already"))
}

/// Whether [`sync_file`] and [`sync_folder`] force data to the disk. They do by default.
pub fn set_durable(is_durable: bool) {
    IS_DURABLE.store(is_durable, Ordering::Relaxed);
}

/// The path of a file name, which may be a `file://` address.
pub fn local(name: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(name.strip_prefix(b"file://").unwrap_or(name)))
}

/// Opens a file for reading.
pub fn open(path: &Path) -> io::Result<OpenFile> {
    OpenFile::new(|| roots().open_with(path, OFlags::RDONLY))
}

/// Opens a file for writing. An existing file is emptied.
pub fn create(path: &Path) -> io::Result<OpenFile> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC;
    OpenFile::new(|| roots().open_with(path, flags))
}

/// Opens a new file for writing. An existing file is an error.
pub fn create_new(path: &Path) -> io::Result<OpenFile> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
    OpenFile::new(|| roots().open_with(path, flags))
}

/// Opens a file to write at its end. It is created if it does not exist.
pub fn append(path: &Path) -> io::Result<OpenFile> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::APPEND;
    OpenFile::new(|| roots().open_with(path, flags))
}

/// Kind and size of a file.
pub fn metadata(path: &Path) -> io::Result<Metadata> {
    roots().metadata(path)
}

/// Whether a file or folder exists at this path.
pub fn exists(path: &Path) -> bool {
    metadata(path).is_ok()
}

/// Whether there is a folder at this path.
pub fn is_dir(path: &Path) -> bool {
    metadata(path).is_ok_and(|m| m.is_dir())
}

/// The names of the entries of a folder.
pub fn read_dir(path: &Path) -> io::Result<Vec<OsString>> {
    roots().read_dir(path)
}

/// Renames a file. A file with the new name is replaced.
pub fn rename(from: &Path, to: &Path) -> io::Result<()> {
    roots().rename(from, to)
}

/// Removes a file.
pub fn remove_file(path: &Path) -> io::Result<()> {
    roots().remove(path, rustix::fs::AtFlags::empty())
}

/// Removes an empty folder.
pub fn remove_dir(path: &Path) -> io::Result<()> {
    roots().remove(path, rustix::fs::AtFlags::REMOVEDIR)
}

/// Makes a folder, whose parent must exist.
pub fn create_dir(path: &Path) -> io::Result<()> {
    roots().create_dir(path)
}

/// Makes a folder and its parents, if they do not exist.
pub fn create_dir_all(path: &Path) -> io::Result<()> {
    roots().create_dir_all(path)
}

/// Forces the contents of a file to the disk, unless [`set_durable`] says otherwise.
pub fn sync_file(file: &File) -> io::Result<()> {
    match IS_DURABLE.load(Ordering::Relaxed) {
        true => file.sync_all(),
        false => Ok(()),
    }
}

/// Forces the entry of a file in its folder to the disk, unless [`set_durable`] says otherwise.
pub fn sync_folder(of: &Path) -> io::Result<()> {
    if !IS_DURABLE.load(Ordering::Relaxed) {
        return Ok(());
    }
    let (folder, _) = parent(of)?;
    let folder = roots().open_with(folder, OFlags::RDONLY | OFlags::DIRECTORY)?;
    match rustix::fs::fsync(&folder) {
        // Some file systems cannot do this for folders, and need not.
        Ok(()) | Err(Errno::INVAL | Errno::ROFS) => Ok(()),
        Err(e) => Err(e.into()),
    }
}

/// Runs `work`, which accesses files: on this thread if it may block, else on a new thread. Values
/// that are dropped on any thread use it.
pub fn soon(work: impl FnOnce() + Send + 'static) {
    if !must_not_block() {
        return work();
    }
    // If no thread can be started, the work is skipped: a temporary file remains.
    let _ = std::thread::Builder::new().name("ff-blocking-file".into()).spawn(work);
}

fn roots() -> &'static FileRoots {
    static ANYWHERE: FileRoots = FileRoots(Vec::new());
    check_thread();
    ROOTS.get().unwrap_or(&ANYWHERE)
}

/// In debug builds, panics on a thread that must not block.
fn check_thread() {
    debug_assert!(
        !must_not_block(),
        "thread {:?} must not block, and accesses a file; declare the op with .does_io()",
        std::thread::current().name()
    );
}

/// Whether this is a network or compute thread.
fn must_not_block() -> bool {
    let thread = std::thread::current();
    let name = thread.name().unwrap_or_default();
    ["ff-net", "ff-node", "ff-compute"].iter().any(|kind| name.starts_with(kind))
}

/// The folders that hold all files of the process. If empty, files can be anywhere.
struct FileRoots(Vec<FileRoot>);

struct FileRoot {
    /// As the user wrote it, made absolute.
    given: PathBuf,
    /// Without symbolic links.
    real: PathBuf,
    folder: OwnedFd,
}

impl FileRoots {
    fn open(folders: &[PathBuf]) -> Result<FileRoots> {
        let open = |given: &PathBuf| -> io::Result<FileRoot> {
            let real = given.canonicalize()?;
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let folder = rustix::fs::open(&real, flags, Mode::empty())?;
            beneath(&folder, Path::new("."), flags)?;
            Ok(FileRoot { given: std::path::absolute(given)?, real, folder })
        };
        let found = folders.iter().map(|given| {
            open(given).map_err(|e| match e.raw_os_error().map(Errno::from_raw_os_error) {
                Some(Errno::NOSYS) => err!(
                    FailedPrecondition,
                    "--file-root needs openat2, which this kernel does not have (Linux 5.6 does)"
                ),
                _ => err!(InvalidArgument, "cannot use file root {}: {e}", given.display()),
            })
        });
        Ok(FileRoots(found.collect::<Result<_>>()?))
    }

    fn open_with(&self, path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
        let flags = flags | OFlags::CLOEXEC;
        if self.0.is_empty() {
            return Ok(rustix::fs::open(path, flags, mode_for(flags))?);
        }
        let path = std::path::absolute(path)?;
        for root in &self.0 {
            for start in [&root.given, &root.real] {
                if let Ok(rest) = path.strip_prefix(start) {
                    let rest = if rest.as_os_str().is_empty() { Path::new(".") } else { rest };
                    return beneath(&root.folder, rest, flags);
                }
            }
        }
        Err(outside())
    }

    fn metadata(&self, path: &Path) -> io::Result<Metadata> {
        File::from(self.open_with(path, OFlags::PATH)?).metadata()
    }

    fn read_dir(&self, path: &Path) -> io::Result<Vec<OsString>> {
        let folder = self.open_with(path, OFlags::RDONLY | OFlags::DIRECTORY)?;
        let mut names = Vec::new();
        for entry in Dir::read_from(&folder)? {
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            if name != b"." && name != b".." {
                names.push(OsStr::from_bytes(name).to_os_string());
            }
        }
        Ok(names)
    }

    /// The folder of a path for a call that changes an entry of it, and the name of the entry.
    fn folder_of<'p>(&self, path: &'p Path) -> io::Result<(OwnedFd, &'p OsStr)> {
        let (folder, name) = parent(path)?;
        Ok((self.open_with(folder, OFlags::PATH | OFlags::DIRECTORY)?, name))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        if self.0.is_empty() {
            return Ok(rustix::fs::renameat(CWD, from, CWD, to)?);
        }
        let ((from, old), (to, new)) = (self.folder_of(from)?, self.folder_of(to)?);
        Ok(rustix::fs::renameat(from, old, to, new)?)
    }

    fn remove(&self, path: &Path, flags: rustix::fs::AtFlags) -> io::Result<()> {
        if self.0.is_empty() {
            return Ok(rustix::fs::unlinkat(CWD, path, flags)?);
        }
        let (folder, name) = self.folder_of(path)?;
        Ok(rustix::fs::unlinkat(folder, name, flags)?)
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        let mode = Mode::from_raw_mode(0o777);
        if self.0.is_empty() {
            return Ok(rustix::fs::mkdirat(CWD, path, mode)?);
        }
        let (folder, name) = self.folder_of(path)?;
        Ok(rustix::fs::mkdirat(folder, name, mode)?)
    }

    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        let is_dir = |path: &Path| self.metadata(path).is_ok_and(|m| m.is_dir());
        if path.as_os_str().is_empty() || is_dir(path) {
            return Ok(());
        }
        match self.create_dir(path) {
            Err(e) if e.kind() == ErrorKind::NotFound => {
                self.create_dir_all(parent(path)?.0)?;
                self.create_dir(path).or_else(|e| if is_dir(path) { Ok(()) } else { Err(e) })
            }
            Err(_) if is_dir(path) => Ok(()),
            done => done,
        }
    }
}

/// Opens a path beneath a folder.
fn beneath(folder: &OwnedFd, path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    loop {
        match rustix::fs::openat2(folder, path, flags, mode_for(flags), resolve) {
            // A folder was renamed meanwhile.
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(Errno::XDEV | Errno::LOOP) => return Err(outside()),
            done => return Ok(done?),
        }
    }
}

fn mode_for(flags: OFlags) -> Mode {
    match flags.contains(OFlags::CREATE) {
        true => Mode::from_raw_mode(0o666),
        false => Mode::empty(),
    }
}

fn outside() -> io::Error {
    io::Error::new(ErrorKind::PermissionDenied, "outside of the folders that --file-root allows")
}

/// The folder of a path and the name in it.
fn parent(path: &Path) -> io::Result<(&Path, &OsStr)> {
    let name = path.file_name().ok_or_else(|| {
        io::Error::new(ErrorKind::InvalidInput, format!("{} names no file", path.display()))
    })?;
    let folder = path.parent().unwrap_or(Path::new(""));
    let is_here = folder.as_os_str().is_empty();
    Ok((if is_here { Path::new(".") } else { folder }, name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::os::unix::fs::symlink;

    struct Scratch(PathBuf);

    impl Scratch {
        fn new(name: &str) -> Scratch {
            let dir = std::env::temp_dir().join(format!("ferroflow-{name}-{}", std::process::id()));
            let _ = std::fs::remove_dir_all(&dir);
            std::fs::create_dir_all(dir.join("root/sub")).unwrap();
            std::fs::write(dir.join("secret"), "secret").unwrap();
            std::fs::write(dir.join("root/mine"), "mine").unwrap();
            Scratch(dir)
        }

        fn roots(&self) -> FileRoots {
            FileRoots::open(&[self.0.join("root")]).unwrap()
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn paths_inside_a_root_work() {
        let scratch = Scratch::new("inside");
        let (roots, root) = (scratch.roots(), scratch.0.join("root"));
        let mut text = String::new();
        let mine = roots.open_with(&root.join("sub/../mine"), OFlags::RDONLY).unwrap();
        File::from(mine).read_to_string(&mut text).unwrap();
        assert_eq!(text, "mine");
        roots.create_dir_all(&root.join("a/b/c")).unwrap();
        roots.create_dir_all(&root.join("a/b/c")).unwrap();
        let new = root.join("a/b/c/new");
        let file = roots.open_with(&new, OFlags::WRONLY | OFlags::CREATE).unwrap();
        File::from(file).write_all(b"x").unwrap();
        roots.rename(&new, &root.join("a/moved")).unwrap();
        assert_eq!(roots.metadata(&root.join("a/moved")).unwrap().len(), 1);
        assert_eq!(roots.read_dir(&root.join("a/b")).unwrap(), ["c"]);
        roots.remove(&root.join("a/moved"), rustix::fs::AtFlags::empty()).unwrap();
        assert!(roots.metadata(&root.join("a/moved")).is_err());
        assert!(roots.metadata(&root).unwrap().is_dir());
    }

    #[test]
    fn no_path_leaves_a_root() {
        let scratch = Scratch::new("outside");
        let (roots, root) = (scratch.roots(), scratch.0.join("root"));
        symlink("../secret", root.join("link")).unwrap();
        symlink(&scratch.0, root.join("dir")).unwrap();
        symlink("/proc/self/root", root.join("magic")).unwrap();
        for path in ["../secret", "sub/../../secret", "link", "dir/secret", "magic/etc/passwd"] {
            let path = root.join(path);
            for flags in [OFlags::RDONLY, OFlags::WRONLY | OFlags::CREATE, OFlags::PATH] {
                let e = roots.open_with(&path, flags).unwrap_err();
                assert_eq!(e.kind(), ErrorKind::PermissionDenied, "{}", path.display());
            }
        }
        let other = scratch.0.join("rooted");
        for path in [Path::new("/etc/passwd"), Path::new("relative"), &other, &scratch.0] {
            assert_eq!(roots.metadata(path).unwrap_err().kind(), ErrorKind::PermissionDenied);
        }
        let (secret, mine) = (root.join("../secret"), root.join("mine"));
        assert!(roots.rename(&secret, &mine).is_err());
        assert!(roots.rename(&mine, &secret).is_err());
        assert!(roots.rename(&mine, &root.join("dir/taken")).is_err());
        assert!(roots.remove(&root.join("dir/secret"), rustix::fs::AtFlags::empty()).is_err());
        assert!(roots.create_dir_all(&root.join("../made")).is_err());
        assert!(roots.read_dir(&root.join("dir")).is_err());
        assert_eq!(std::fs::read(scratch.0.join("secret")).unwrap(), b"secret");
    }

    #[test]
    fn a_missing_root_is_an_error() {
        let e = FileRoots::open(&["/nowhere/at/all".into()]).err().unwrap();
        assert!(e.message().contains("/nowhere/at/all"), "{e}");
    }
}
