//! Errors on the wire: gRPC statuses from and to [`Error`].

use crate::rpc::RpcStatus;
use crate::wire::{derived_details, is_derived};
use ferroflow_core::{Code, Error};

/// The status that tells a peer about `error`.
pub(crate) fn to_status(error: &Error) -> RpcStatus {
    let status = RpcStatus::new(error.code() as i32, error.message());
    if !error.is_derived() {
        return status;
    }
    status.with_details(derived_details())
}

/// The error a peer's status tells about.
pub(crate) fn from_status(status: &RpcStatus) -> Error {
    let error = Error::new(Code::from_number(status.code), status.message.clone());
    if status.details.as_ref().is_some_and(is_derived) { error.derived() } else { error }
}

/// An error that arrived as the status of a call, with where it came from, in the words
/// TensorFlow's users know.
pub(crate) fn said_by(task: &str, address: &str, method: &str, status: &RpcStatus) -> Error {
    let error = from_status(status);
    let said = Error::new(
        error.code(),
        format!(
            "{}{RELAYED}{task} while calling {method}:\n:{{\"address\":\"{address}\",\
             \"grpc_status\":{}}}",
            error.message(),
            error.code() as i32
        ),
    );
    // A call that was merely cancelled is never the cause of anything.
    if error.is_derived() || error.code() == Code::Cancelled { said.derived() } else { said }
}

const RELAYED: &str = "\nAdditional GRPC error information from remote target ";

/// The task that an error came from which another task passes on, if it says so.
pub(crate) fn relayed_from(message: &str) -> Option<&str> {
    let (_, rest) = message.split_once(RELAYED)?;
    rest.split_whitespace().next()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ferroflow_core::err;

    #[test]
    fn derived_errors_stay_derived() {
        let e = err!(Aborted, "gone").derived();
        let back = from_status(&to_status(&e));
        assert_eq!(back, e);
        assert!(back.is_derived());
        assert!(!from_status(&to_status(&err!(Aborted, "gone"))).is_derived());
    }
}
