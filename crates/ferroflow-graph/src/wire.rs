//! Converts TensorFlow's messages from and to our own types. Protobuf types are used only in `wire`
//! modules, of this crate and of others.
//!
//! [`tensor`] and [`graph`] convert whole messages. [`step`] handles the calls that carry tensors.
//! It reads them from the [`chunks`] that a connection delivers, and writes them as [`segments`].
//! So a large tensor is copied at most once when it is received, and never when it is sent.
//!
//! The bytes are not trusted. A malformed message is `InvalidArgument` and a tensor beyond the
//! memory limit `ResourceExhausted`. A length is checked against the bytes that are there before
//! memory is allocated for it.

pub mod chunks;
pub mod graph;
pub mod metadata;
pub mod segments;
pub mod step;
pub mod tensor;

pub use chunks::MessageReader;
pub use segments::{SegmentWriter, Segments};
pub use tensor::OpaqueVariant;

use ferroflow_core::{Error, err};

/// The error for a message that does not parse.
fn malformed(e: prost::DecodeError) -> Error {
    err!(InvalidArgument, "malformed message: {e}")
}
