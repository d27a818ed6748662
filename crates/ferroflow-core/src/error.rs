//! The one error type, with TensorFlow's (and gRPC's) codes.

use std::fmt;
use std::sync::Arc;

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

/// What kind of failure an [`Error`] is; numbered as in TensorFlow and gRPC.
///
/// ```
/// use ferroflow_core::Code;
/// // What a training program may try again.
/// let is_lost = |code: Code| matches!(code, Code::Unavailable | Code::Aborted);
/// assert!(is_lost(Code::Unavailable) && !is_lost(Code::InvalidArgument));
/// assert_eq!(Code::Unavailable as u8, 14);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Code {
    Ok = 0,
    Cancelled = 1,
    Unknown = 2,
    InvalidArgument = 3,
    DeadlineExceeded = 4,
    NotFound = 5,
    AlreadyExists = 6,
    PermissionDenied = 7,
    ResourceExhausted = 8,
    FailedPrecondition = 9,
    Aborted = 10,
    OutOfRange = 11,
    Unimplemented = 12,
    Internal = 13,
    Unavailable = 14,
    DataLoss = 15,
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
/// One word wide and cheap to clone, since a failed step tells every waiter.
///
/// ```
/// use ferroflow_core::{Code, Error};
/// let error = Error::new(Code::NotFound, "there is no variable 'w'").context("restoring out/model");
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
    pub fn new(code: Code, message: impl Into<String>) -> Error {
        Error(Arc::new(Inner { code, message: message.into(), derived: false }))
    }

    pub fn code(&self) -> Code {
        self.0.code
    }

    /// The whole text, context included.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// Whether this error merely follows from another one of the same step.
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

    /// The same error naming the node it arose in, in the form TensorFlow's client looks for.
    /// An error that already names one is left alone.
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

impl PartialEq for Error {
    fn eq(&self, other: &Error) -> bool {
        self.0.code == other.0.code && self.0.message == other.0.message
    }
}

/// Adds context to the error of a `Result`.
pub trait Within<T> {
    /// Prefixes the error's message with `context()`; the closure runs only on failure.
    fn within<C: fmt::Display>(self, context: impl FnOnce() -> C) -> Result<T>;
}

impl<T> Within<T> for Result<T> {
    fn within<C: fmt::Display>(self, context: impl FnOnce() -> C) -> Result<T> {
        self.map_err(|e| e.context(context()))
    }
}

/// Makes an [`Error`]: `err!(InvalidArgument, "axis {axis} is out of range")`.
#[macro_export]
macro_rules! err {
    ($code:ident, $($message:tt)+) => {
        $crate::Error::new($crate::Code::$code, format!($($message)+))
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
    fn node_is_named_once() {
        let e = err!(InvalidArgument, "bad").at_node("a/b").at_node("c");
        assert_eq!(e.message(), "bad\n\t [[{{node a/b}}]]");
    }

    #[test]
    fn context_goes_in_front() {
        let r: Result<()> = Err(err!(NotFound, "no kernel"));
        let e = r.within(|| "node x").unwrap_err();
        assert_eq!(e.to_string(), "NOT_FOUND: node x: no kernel");
    }

    #[test]
    fn unknown_numbers_are_unknown() {
        assert_eq!(Code::from_number(10), Code::Aborted);
        assert_eq!(Code::from_number(-1), Code::Unknown);
        assert_eq!(Code::from_number(99), Code::Unknown);
    }
}
