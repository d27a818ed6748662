//! Reading files by the names that ops are given, with TensorFlow's errors.

use crate::prelude::*;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// A whole file.
pub fn read_file(name: &str) -> Result<Vec<u8>> {
    let path = local(name.as_bytes());
    std::fs::read(path).map_err(|e| file_error(name, &e))
}

/// The path of a file name, which may be a `file://` address.
pub fn local(name: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(name.strip_prefix(b"file://").unwrap_or(name)))
}

/// An I/O error with the code and text TensorFlow gives it.
pub fn file_error(name: &str, e: &io::Error) -> Error {
    use io::ErrorKind::*;
    let code = match e.kind() {
        NotFound => Code::NotFound,
        PermissionDenied | ReadOnlyFilesystem => Code::PermissionDenied,
        AlreadyExists => Code::AlreadyExists,
        IsADirectory | NotADirectory | DirectoryNotEmpty => Code::FailedPrecondition,
        InvalidInput | InvalidFilename => Code::InvalidArgument,
        StorageFull | QuotaExceeded | FileTooLarge => Code::ResourceExhausted,
        UnexpectedEof => Code::OutOfRange,
        _ => Code::Unknown,
    };
    let text = e.to_string();
    let text = text.split(" (os error").next().unwrap_or_default();
    Error::new(code, format!("{name}; {text}"))
}
