//! The wire: TensorFlow's messages from and to our own types. No protobuf type is used outside
//! this module and the cluster's counterpart of it.
//!
//! [`tensor`] and [`graph`] convert whole messages. Calls that carry tensors go another way:
//! [`step`] reads them from the [`chunks`] a connection delivers and writes them as [`segments`] a
//! connection sends, so that a large tensor is copied at most once on its way in and never on its
//! way out.
//!
//! Everything here takes bytes from strangers: a malformed message is `InvalidArgument`, a tensor
//! beyond the memory limit `ResourceExhausted`; nothing is allocated on the word of a length alone.

pub mod chunks;
pub mod graph;
pub mod segments;
pub mod step;
pub mod tensor;

pub use chunks::MessageReader;
pub use segments::{SegmentWriter, Segments};
pub use tensor::OpaqueVariant;

use ferroflow_core::{Error, err};

/// A message that does not parse.
fn malformed(e: prost::DecodeError) -> Error {
    err!(InvalidArgument, "malformed message: {e}")
}
