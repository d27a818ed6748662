//! The details that TensorFlow attaches to the gRPC status of an error.

use bytes::Bytes;
use ferroflow_proto::tensorflow::distributed_runtime::GrpcPayloadContainer;
use prost::Message;

/// Marks an error that is a consequence of another one. TensorFlow's peers rank it lower.
const DERIVED: &str = "type.googleapis.com/tensorflow.DerivedStatus";

/// The details of a derived error.
pub(crate) fn derived_details() -> Bytes {
    let payloads = [(DERIVED.to_string(), Bytes::new())].into_iter().collect();
    GrpcPayloadContainer { payloads }.encode_to_vec().into()
}

/// Whether a status with these details is a derived error.
pub(crate) fn is_derived(details: &Bytes) -> bool {
    GrpcPayloadContainer::decode(details.clone())
        .is_ok_and(|container| container.payloads.contains_key(DERIVED))
}
