//! The error type of the whole product, with TensorFlow's (and gRPC's) codes.

use std::sync::Arc;
use std::{fmt, io};

/// A result whose error is [`Error`].
///
/// ```
/// use ferroflow_core::{Code, Error, Result};
/// fn half(x: i64) -> Result<i64> {
///     match x % 2 {
///         0 => Ok(x / 2),
///         _ => Err(Error::new(Code::InvalidArgument, format!("{x} is odd"))),
///     }
/// }
/// assert_eq!(half(4)?, 2);
/// # Ok::<(), Error>(())
/// ```
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The kind of failure of an [`Error`]. The numbers are TensorFlow's and gRPC's.
///
/// ```
/// use ferroflow_core::Code;
/// // Failures after which a training program may try again.
/// let is_lost = |code: Code| matches!(code, Code::Unavailable | Code::Aborted);
/// assert!(is_lost(Code::Unavailable) && !is_lost(Code::InvalidArgument));
/// assert_eq!(Code::Unavailable as u8, 14);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Code {
    /// No failure.
    Ok = 0,
    /// The caller, or another part of the step, cancelled the operation.
    Cancelled = 1,
    /// A failure that fits no other code.
    Unknown = 2,
    /// The graph, a value or an argument of the caller is wrong.
    InvalidArgument = 3,
    /// The operation did not finish in time.
    DeadlineExceeded = 4,
    /// A file, node, variable or other named thing does not exist.
    NotFound = 5,
    /// The thing to be created exists already.
    AlreadyExists = 6,
    /// The caller may not do this.
    PermissionDenied = 7,
    /// Memory, disk space or a quota is used up.
    ResourceExhausted = 8,
    /// The state does not allow it, for example an uninitialized variable.
    FailedPrecondition = 9,
    /// The operation was given up, often because another task restarted; a retry may help.
    Aborted = 10,
    /// The input has ended, or an index lies outside of it.
    OutOfRange = 11,
    /// The operation is known but not supported here.
    Unimplemented = 12,
    /// A bug in Ferroflow.
    Internal = 13,
    /// A peer cannot be reached; a retry may help.
    Unavailable = 14,
    /// Data is damaged or missing.
    DataLoss = 15,
    /// The caller did not prove who it is.
    Unauthenticated = 16,
}

impl Code {
    /// The code with this number; anything outside the table is `Unknown`.
    pub fn from_number(number: i32) -> Code {
        use Code::*;
        const TABLE: [Code; 17] = [
            Ok,
            Cancelled,
            Unknown,
            InvalidArgument,
            DeadlineExceeded,
            NotFound,
            AlreadyExists,
            PermissionDenied,
            ResourceExhausted,
            FailedPrecondition,
            Aborted,
            OutOfRange,
            Unimplemented,
            Internal,
            Unavailable,
            DataLoss,
            Unauthenticated,
        ];
        usize::try_from(number).ok().and_then(|n| TABLE.get(n).copied()).unwrap_or(Unknown)
    }

    /// The upper-case name TensorFlow prints, such as `INVALID_ARGUMENT`.
    pub fn name(self) -> &'static str {
        match self {
            Code::Ok => "OK",
            Code::Cancelled => "CANCELLED",
            Code::Unknown => "UNKNOWN",
            Code::InvalidArgument => "INVALID_ARGUMENT",
            Code::DeadlineExceeded => "DEADLINE_EXCEEDED",
            Code::NotFound => "NOT_FOUND",
            Code::AlreadyExists => "ALREADY_EXISTS",
            Code::PermissionDenied => "PERMISSION_DENIED",
            Code::ResourceExhausted => "RESOURCE_EXHAUSTED",
            Code::FailedPrecondition => "FAILED_PRECONDITION",
            Code::Aborted => "ABORTED",
            Code::OutOfRange => "OUT_OF_RANGE",
            Code::Unimplemented => "UNIMPLEMENTED",
            Code::Internal => "INTERNAL",
            Code::Unavailable => "UNAVAILABLE",
            Code::DataLoss => "DATA_LOSS",
            Code::Unauthenticated => "UNAUTHENTICATED",
        }
    }
}

/// A failure: a code, a message, and whether it is a consequence of another failure.
///
/// It is one word wide and cheap to clone, because a failed step passes it to every waiter.
/// The `?` operator turns an [`io::Error`] into one, with the code of its kind.
///
/// ```
/// use ferroflow_core::{Code, Error};
/// let error = Error::new(Code::NotFound, "there is no variable 'w'");
/// let error = error.context("restoring out/model");
/// assert_eq!(error.code(), Code::NotFound);
/// assert_eq!(error.message(), "restoring out/model: there is no variable 'w'");
/// ```
#[derive(Clone)]
pub struct Error(Arc<Inner>);

#[derive(Clone)]
struct Inner {
    code: Code,
    message: String,
    derived: bool,
}

impl Error {
    /// An error with this code and message.
    pub fn new(code: Code, message: impl Into<String>) -> Error {
        Error(Arc::new(Inner { code, message: message.into(), derived: false }))
    }

    /// What `err!` makes. Not inlined: kernels of many types have thousands of such places.
    #[cold]
    #[inline(never)]
    #[doc(hidden)]
    pub fn formatted(code: Code, message: std::fmt::Arguments<'_>) -> Error {
        Error::new(code, message.to_string())
    }

    /// The kind of failure.
    pub fn code(&self) -> Code {
        self.0.code
    }

    /// The message with all its context, without the code.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// Whether this error is only a consequence of another one in the same step.
    pub fn is_derived(&self) -> bool {
        self.0.derived
    }

    /// The same error, marked as a consequence of another one.
    pub fn derived(self) -> Error {
        self.edit(|inner| inner.derived = true)
    }

    /// The same error with `context: ` in front of its message.
    pub fn context(self, context: impl fmt::Display) -> Error {
        self.edit(|inner| inner.message = format!("{context}: {}", inner.message))
    }

    /// The same error with the name of the failed node, in the form that TensorFlow's client reads.
    /// Leaves an error unchanged that already names a node.
    pub fn at_node(self, name: &str) -> Error {
        if self.0.message.contains("[[{{node ") {
            return self;
        }
        self.edit(|inner| inner.message.push_str(&format!("\n\t [[{{{{node {name}}}}}]]")))
    }

    fn edit(self, change: impl FnOnce(&mut Inner)) -> Error {
        let mut inner = Arc::unwrap_or_clone(self.0);
        change(&mut inner);
        Error(Arc::new(inner))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.0.code.name(), self.0.message)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}{}", if self.0.derived { " (derived)" } else { "" })
    }
}

impl std::error::Error for Error {}

/// The code that TensorFlow gives to an operating-system error of this kind. A broken connection,
/// or one that cannot be made, is `Unavailable`.
impl From<io::ErrorKind> for Code {
    fn from(kind: io::ErrorKind) -> Code {
        use io::ErrorKind::*;
        match kind {
            NotFound => Code::NotFound,
            PermissionDenied | ReadOnlyFilesystem => Code::PermissionDenied,
            AlreadyExists => Code::AlreadyExists,
            InvalidInput | InvalidFilename => Code::InvalidArgument,
            InvalidData => Code::DataLoss,
            IsADirectory | NotADirectory | DirectoryNotEmpty | AddrInUse | ResourceBusy
            | ExecutableFileBusy => Code::FailedPrecondition,
            StorageFull | QuotaExceeded | TooManyLinks | OutOfMemory => Code::ResourceExhausted,
            FileTooLarge | UnexpectedEof => Code::OutOfRange,
            Unsupported => Code::Unimplemented,
            TimedOut => Code::DeadlineExceeded,
            Deadlock | CrossesDevices => Code::Aborted,
            ConnectionRefused | ConnectionReset | ConnectionAborted | NotConnected | BrokenPipe
            | HostUnreachable | NetworkUnreachable | NetworkDown | AddrNotAvailable
            | WouldBlock | Interrupted => Code::Unavailable,
            _ => Code::Unknown,
        }
    }
}

/// Takes the code of the error's kind and its text, without the number of the operating system.
impl From<io::Error> for Error {
    fn from(e: io::Error) -> Error {
        let text = e.to_string();
        let text = text.split(" (os error ").next().unwrap_or_default();
        Error::new(Code::from(e.kind()), text)
    }
}

impl PartialEq for Error {
    fn eq(&self, other: &Error) -> bool {
        self.0.code == other.0.code && self.0.message == other.0.message
    }
}

/// Adds context to the error of a `Result`.
///
/// ```
/// use ferroflow_core::{Result, Within};
/// fn load(path: &str) -> Result<Vec<u8>> {
///     std::fs::read(path).within(|| format!("cannot read the labels {path}"))
/// }
/// let e = load("/nowhere/labels").unwrap_err();
/// assert_eq!(
///     e.to_string(),
///     "NOT_FOUND: cannot read the labels /nowhere/labels: No such file or directory"
/// );
/// ```
pub trait Within<T> {
    /// Prefixes the error's message with `context()`; the closure runs only on failure.
    fn within<C: fmt::Display>(self, context: impl FnOnce() -> C) -> Result<T>;
}

impl<T> Within<T> for Result<T> {
    fn within<C: fmt::Display>(self, context: impl FnOnce() -> C) -> Result<T> {
        self.map_err(|e| e.context(context()))
    }
}

impl<T> Within<T> for io::Result<T> {
    fn within<C: fmt::Display>(self, context: impl FnOnce() -> C) -> Result<T> {
        self.map_err(|e| Error::from(e).context(context()))
    }
}

/// Makes an [`Error`]: `err!(InvalidArgument, "axis {axis} is out of range")`.
#[macro_export]
macro_rules! err {
    ($code:ident, $($message:tt)+) => {
        $crate::Error::formatted($crate::Code::$code, format_args!($($message)+))
    };
}

/// Returns early with an [`Error`]: `bail!(NotFound, "no node {name:?}")`.
#[macro_export]
macro_rules! bail {
    ($code:ident, $($message:tt)+) => {
        return Err($crate::err!($code, $($message)+))
    };
}

/// Returns early with an [`Error`] unless the condition holds.
#[macro_export]
macro_rules! ensure {
    ($condition:expr, $code:ident, $($message:tt)+) => {
        if !$condition {
            $crate::bail!($code, $($message)+);
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_names_the_first_node_only() {
        let e = err!(InvalidArgument, "bad").at_node("a/b").at_node("c");
        assert_eq!(e.message(), "bad\n\t [[{{node a/b}}]]");
    }

    #[test]
    fn within_puts_the_context_before_the_message() {
        let r: Result<()> = Err(err!(NotFound, "no kernel"));
        let e = r.within(|| "node x").unwrap_err();
        assert_eq!(e.to_string(), "NOT_FOUND: node x: no kernel");
    }

    #[test]
    fn numbers_outside_the_table_become_unknown() {
        assert_eq!(Code::from_number(10), Code::Aborted);
        assert_eq!(Code::from_number(-1), Code::Unknown);
        assert_eq!(Code::from_number(99), Code::Unknown);
    }

    #[test]
    fn an_io_error_keeps_its_text_and_gets_the_code_of_its_kind() {
        let missing = std::fs::read("/nowhere/at/all").unwrap_err();
        let e = Error::from(missing);
        assert_eq!(e.to_string(), "NOT_FOUND: No such file or directory");
        let code = |kind: io::ErrorKind| Error::from(io::Error::from(kind)).code();
        assert_eq!(code(io::ErrorKind::PermissionDenied), Code::PermissionDenied);
        assert_eq!(code(io::ErrorKind::ConnectionReset), Code::Unavailable);
        assert_eq!(code(io::ErrorKind::TimedOut), Code::DeadlineExceeded);
        assert_eq!(code(io::ErrorKind::Other), Code::Unknown);
    }

    #[test]
    fn the_question_mark_operator_converts_io_errors() {
        fn read() -> Result<Vec<u8>> {
            Ok(std::fs::read("/")?)
        }
        assert_eq!(read().unwrap_err().code(), Code::FailedPrecondition);
    }
}
