//! Queries of SQLite databases. The library of the system is loaded when the first query runs.
//!
//! A database is read into memory as a whole, through [`crate::file`], which confines it to the
//! roots of the server. The library itself opens no file: statements other than SELECT, which could
//! open or write others, are refused.

use crate::file::read_file;
use crate::prelude::*;
use ferroflow_core::CancelToken;
use libloading::Library;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr::{null, null_mut};
use std::sync::OnceLock;

/// Names of the library; the first that loads is used.
const LIBRARIES: [&str; 2] = ["libsqlite3.so.0", "libsqlite3.so"];

const OK: c_int = 0;
const ROW: c_int = 100;
const DONE: c_int = 101;
const INTERRUPTED: c_int = 9;
const OPEN_READ_WRITE: c_int = 2;
const DESERIALIZE_READ_ONLY: u32 = 4;
const DENY: c_int = 1;
/// What a query may do: SELECT, READ, FUNCTION and RECURSIVE.
const ALLOWED: [c_int; 4] = [21, 20, 31, 33];
/// Instructions of the library between two checks whether the query was cancelled.
const INSTRUCTIONS: c_int = 10_000;

type Pointer = *mut c_void;
type Authorizer = extern "C" fn(
    Pointer,
    c_int,
    *const c_char,
    *const c_char,
    *const c_char,
    *const c_char,
) -> c_int;

/// Functions of the library, under their names there.
struct Functions {
    open: unsafe extern "C" fn(*const c_char, *mut Pointer, c_int, *const c_char) -> c_int,
    deserialize: unsafe extern "C" fn(Pointer, *const c_char, *mut u8, i64, i64, u32) -> c_int,
    exec: unsafe extern "C" fn(Pointer, *const c_char, Pointer, Pointer, Pointer) -> c_int,
    set_authorizer: unsafe extern "C" fn(Pointer, Authorizer, Pointer) -> c_int,
    progress_handler:
        unsafe extern "C" fn(Pointer, c_int, extern "C" fn(Pointer) -> c_int, Pointer),
    prepare: unsafe extern "C" fn(
        Pointer,
        *const c_char,
        c_int,
        *mut Pointer,
        *mut *const c_char,
    ) -> c_int,
    step: unsafe extern "C" fn(Pointer) -> c_int,
    column_count: unsafe extern "C" fn(Pointer) -> c_int,
    column_int64: unsafe extern "C" fn(Pointer, c_int) -> i64,
    column_double: unsafe extern "C" fn(Pointer, c_int) -> f64,
    column_blob: unsafe extern "C" fn(Pointer, c_int) -> *const u8,
    column_bytes: unsafe extern "C" fn(Pointer, c_int) -> c_int,
    finalize: unsafe extern "C" fn(Pointer) -> c_int,
    close: unsafe extern "C" fn(Pointer) -> c_int,
    message: unsafe extern "C" fn(Pointer) -> *const c_char,
}

/// The functions, and the library that they are in.
static LIBRARY: OnceLock<std::result::Result<(Functions, Library), String>> = OnceLock::new();

fn functions() -> Result<&'static Functions> {
    match LIBRARY.get_or_init(load) {
        Ok((functions, _)) => Ok(functions),
        Err(e) => Err(err!(
            FailedPrecondition,
            "cannot load SQLite ({e}); install libsqlite3 3.36 or newer on the host of this task"
        )),
    }
}

fn load() -> std::result::Result<(Functions, Library), String> {
    let mut errors = Vec::new();
    for name in LIBRARIES {
        // SAFETY: SQLite's library has no code that runs when it is loaded.
        match unsafe { Library::new(name) } {
            Ok(library) => return bind(library),
            Err(e) => errors.push(e.to_string()),
        }
    }
    Err(errors.join("; "))
}

fn bind(library: Library) -> std::result::Result<(Functions, Library), String> {
    macro_rules! bound {
        ($($field:ident: $name:literal),* $(,)?) => {
            Functions {$(
                // SAFETY: the types are those of SQLite's header.
                $field: *unsafe { library.get($name) }.map_err(|e| e.to_string())?,
            )*}
        };
    }
    let functions = bound! {
        open: b"sqlite3_open_v2\0",
        deserialize: b"sqlite3_deserialize\0",
        exec: b"sqlite3_exec\0",
        set_authorizer: b"sqlite3_set_authorizer\0",
        progress_handler: b"sqlite3_progress_handler\0",
        prepare: b"sqlite3_prepare_v2\0",
        step: b"sqlite3_step\0",
        column_count: b"sqlite3_column_count\0",
        column_int64: b"sqlite3_column_int64\0",
        column_double: b"sqlite3_column_double\0",
        column_blob: b"sqlite3_column_blob\0",
        column_bytes: b"sqlite3_column_bytes\0",
        finalize: b"sqlite3_finalize\0",
        close: b"sqlite3_close_v2\0",
        message: b"sqlite3_errmsg\0",
    };
    Ok((functions, library))
}

extern "C" fn authorize(
    _: Pointer,
    action: c_int,
    _: *const c_char,
    _: *const c_char,
    _: *const c_char,
    _: *const c_char,
) -> c_int {
    if ALLOWED.contains(&action) { OK } else { DENY }
}

extern "C" fn is_cancelled(cancel: Pointer) -> c_int {
    // SAFETY: the handler is registered with the token of the query, which outlives the statement.
    let cancel = unsafe { &*cancel.cast::<CancelToken>() };
    c_int::from(cancel.check().is_err())
}

/// A query of a database, and the position in its rows.
pub struct SqliteQuery {
    functions: &'static Functions,
    database: Pointer,
    statement: Pointer,
    /// The file. The library reads it as long as the database is open.
    _bytes: Vec<u8>,
    cancel: Box<CancelToken>,
    columns: usize,
}

// SAFETY: the library is compiled for threads (it opens databases with a lock of their own), and
// `&mut self` is needed for everything that uses the statement.
unsafe impl Send for SqliteQuery {}

impl SqliteQuery {
    /// Reads a database and prepares a query of it, which ends with an error when `cancel` fires.
    pub fn open(file: &str, query: &str, cancel: CancelToken) -> Result<SqliteQuery> {
        let functions = functions()?;
        let mut bytes = read_file(file)?;
        let log = format!("{file}-wal");
        let path = ferroflow_core::files::local(log.as_bytes());
        ensure!(
            !ferroflow_core::files::exists(path) || read_file(&log)?.is_empty(),
            FailedPrecondition,
            "{file} has a write-ahead log; run PRAGMA wal_checkpoint(TRUNCATE) and close the \
             database before it is read here"
        );
        // Without its log, a database in that mode is like any other.
        for version in bytes.iter_mut().take(20).skip(18) {
            *version = 1;
        }
        let mut made = SqliteQuery {
            functions,
            database: null_mut(),
            statement: null_mut(),
            _bytes: Vec::new(),
            cancel: Box::new(cancel),
            columns: 0,
        };
        let size = bytes.len() as i64;
        // SAFETY: all pointers are valid during the calls. The bytes are kept until the database is
        // closed, and the library only reads them. The token is boxed and dropped after that, too.
        unsafe {
            let opened =
                (functions.open)(c":memory:".as_ptr(), &mut made.database, OPEN_READ_WRITE, null());
            made.check(opened, file)?;
            let (name, flags) = (c"main".as_ptr(), DESERIALIZE_READ_ONLY);
            if size > 0 {
                let data = bytes.as_mut_ptr();
                let read = (functions.deserialize)(made.database, name, data, size, size, flags);
                made.check(read, file)?;
            }
            made._bytes = bytes;
            let statement = c"PRAGMA temp_store = MEMORY".as_ptr();
            let none = null_mut();
            let set = (functions.exec)(made.database, statement, none, none, none);
            made.check(set, file)?;
            let guarded = (functions.set_authorizer)(made.database, authorize, none);
            made.check(guarded, file)?;
            let token: *mut CancelToken = &mut *made.cancel;
            (functions.progress_handler)(made.database, INSTRUCTIONS, is_cancelled, token.cast());
        }
        let Ok(text) = CString::new(query) else {
            bail!(InvalidArgument, "the query has a zero byte");
        };
        // SAFETY: as above.
        unsafe {
            let statement = &mut made.statement;
            let prepared =
                (functions.prepare)(made.database, text.as_ptr(), -1, statement, null_mut());
            made.check(prepared, query)?;
            ensure!(!made.statement.is_null(), InvalidArgument, "the query is empty");
            made.columns = Ord::max((functions.column_count)(made.statement), 0) as usize;
        }
        Ok(made)
    }

    /// The number of columns of the result.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Goes to the next row; false behind the last one.
    pub fn advance(&mut self) -> Result<bool> {
        // SAFETY: the statement was prepared and is used by one thread.
        match unsafe { (self.functions.step)(self.statement) } {
            ROW => Ok(true),
            DONE => Ok(false),
            INTERRUPTED => {
                self.cancel.check()?;
                bail!(Cancelled, "the query was interrupted")
            }
            code => {
                self.check(code, "the query")?;
                bail!(Internal, "SQLite answered {code}")
            }
        }
    }

    /// Column `i` of the current row as an integer; 0 for NULL.
    pub fn int(&mut self, i: usize) -> i64 {
        // SAFETY: the statement is valid; the library takes any column and gives 0 for others.
        unsafe { (self.functions.column_int64)(self.statement, i as c_int) }
    }

    /// Column `i` of the current row as a float; 0 for NULL.
    pub fn double(&mut self, i: usize) -> f64 {
        // SAFETY: as in `int`.
        unsafe { (self.functions.column_double)(self.statement, i as c_int) }
    }

    /// Column `i` of the current row as bytes; none for NULL.
    pub fn bytes(&mut self, i: usize) -> Vec<u8> {
        // SAFETY: as in `int`. The bytes stay valid until the next call with this column, and are
        // as many as the library says.
        unsafe {
            let data = (self.functions.column_blob)(self.statement, i as c_int);
            let len = (self.functions.column_bytes)(self.statement, i as c_int);
            match (data.is_null(), usize::try_from(len)) {
                (false, Ok(len)) => std::slice::from_raw_parts(data, len).to_vec(),
                _ => Vec::new(),
            }
        }
    }

    /// The error behind a code of the library.
    fn check(&self, code: c_int, what: &str) -> Result<()> {
        if code == OK {
            return Ok(());
        }
        let message = if self.database.is_null() {
            format!("code {code}")
        } else {
            // SAFETY: the library gives a text for each database, which stays until the next call.
            let text = unsafe { CStr::from_ptr((self.functions.message)(self.database)) };
            text.to_string_lossy().into_owned()
        };
        let kind = match code & 0xff {
            // A mistake of the query, or a statement that is not allowed.
            1 | 21 | 23 | 25 => Code::InvalidArgument,
            7 => Code::ResourceExhausted,
            11 | 26 => Code::DataLoss,
            8 => Code::PermissionDenied,
            _ => Code::Unknown,
        };
        Err(Error::new(kind, format!("{message}: {what}")))
    }
}

impl Drop for SqliteQuery {
    fn drop(&mut self) {
        // SAFETY: both are null or valid, and are not used again.
        unsafe {
            if !self.statement.is_null() {
                (self.functions.finalize)(self.statement);
            }
            if !self.database.is_null() {
                (self.functions.close)(self.database);
            }
        }
    }
}
