//! Errors on the wire: gRPC statuses from and to [`Error`].

use crate::rpc::Status;
use bytes::Bytes;
use ferroflow_core::{Code, Error};
use ferroflow_proto::tensorflow::distributed_runtime::GrpcPayloadContainer;
use prost::Message;

/// Says that an error is a consequence of another one; TensorFlow's peers rank it so.
const DERIVED: &str = "type.googleapis.com/tensorflow.DerivedStatus";

/// The status that tells a peer about `error`.
pub(crate) fn to_status(error: &Error) -> Status {
    let status = Status::new(error.code() as i32, error.message());
    if !error.is_derived() {
        return status;
    }
    let payloads = [(DERIVED.to_string(), Bytes::new())].into_iter().collect();
    status.with_details(Bytes::from(GrpcPayloadContainer { payloads }.encode_to_vec()))
}

/// The error a peer's status tells about.
pub(crate) fn from_status(status: &Status) -> Error {
    let error = Error::new(Code::from_number(status.code), status.message.clone());
    let is_derived = status.details.as_ref().is_some_and(|details| {
        GrpcPayloadContainer::decode(details.clone())
            .is_ok_and(|container| container.payloads.contains_key(DERIVED))
    });
    if is_derived { error.derived() } else { error }
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
