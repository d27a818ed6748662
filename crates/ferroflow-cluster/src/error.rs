//! Converts gRPC statuses from and to [`Error`].

use crate::rpc::RpcStatus;
use crate::wire::{derived_details, is_derived};
use ferroflow_core::{Code, Error};

/// The status for `error`.
pub(crate) fn to_status(error: &Error) -> RpcStatus {
    let status = RpcStatus::new(error.code() as i32, error.message());
    if !error.is_derived() {
        return status;
    }
    status.with_details(derived_details())
}

/// The error of a peer's status.
pub(crate) fn from_status(status: &RpcStatus) -> Error {
    let error = Error::new(Code::from_number(status.code), status.message.clone());
    if status.details.as_ref().is_some_and(is_derived) { error.derived() } else { error }
}

/// The error of a failed call, with its origin in TensorFlow's words.
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
    // A cancelled call is never the root cause.
    if error.is_derived() || error.code() == Code::Cancelled { said.derived() } else { said }
}

const RELAYED: &str = "\nAdditional GRPC error information from remote target ";

/// The task where an error happened that another task relayed, if the message names it.
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
