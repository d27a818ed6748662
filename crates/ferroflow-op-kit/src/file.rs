//! Reading files by the names that ops are given, with TensorFlow's errors.

use crate::prelude::*;
use ferroflow_core::{Reservation, files, limits};
use std::io::{self, BufRead, Read};

pub use ferroflow_core::files::local;

/// Bytes that are read at a time.
const READ_BLOCK: usize = 1 << 20;

/// Reads a whole file. Counts its bytes during the read, so that a file without an end is an error
/// too.
pub fn read_file(name: &str) -> Result<Vec<u8>> {
    let failed = |e: io::Error| file_error(name, &e);
    let mut file = files::open(local(name.as_bytes())).map_err(failed)?;
    let most = limits().string;
    let (mut bytes, mut counted) = (Vec::new(), Reservation::default());
    loop {
        let read = file.by_ref().take(READ_BLOCK as u64).read_to_end(&mut bytes).map_err(failed)?;
        most.admit(bytes.len(), format_args!("the reader of {name}"))?;
        counted.grow(read)?;
        if read == 0 {
            return Ok(bytes);
        }
    }
}

/// The next line of the file `name`, without its end; `None` behind the last one. Its bytes are
/// added to `counted` as they are read, so that a line without an end is an error too.
pub fn read_line(
    name: &str,
    from: &mut impl BufRead,
    counted: &mut Reservation,
) -> Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    loop {
        let read = from.by_ref().take(READ_BLOCK as u64).read_until(b'\n', &mut line);
        let read = read.map_err(|e| err!(DataLoss, "{name}; {e}"))?;
        limits().record.admit(line.len(), format_args!("the reader of {name}"))?;
        counted.grow(read)?;
        if line.last() == Some(&b'\n') {
            line.pop();
            return Ok(Some(line));
        }
        if read == 0 {
            return Ok((!line.is_empty()).then_some(line));
        }
    }
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
