//! The messages TensorFlow 2.15 exchanges over the wire and keeps in files.
//!
//! `proto/` holds our own definitions of them, with TensorFlow's names and field numbers; the
//! modules here are generated from those and nested as the packages are. What a message means, and
//! whether it makes sense, is left to the crates that convert it.
//!
//! - Enums are open: a field holds the plain `i32`, so that a value we have no name for survives;
//!   the getter of the same name answers with the enum's default for such a value.
//! - `bytes` fields are [`prost::bytes::Bytes`]; decoded from a `Bytes`, they share its buffer.
//! - Maps are sorted, so that equal messages encode to equal bytes.
//! - Tensors and lists in an `AttrValue`, and tensors in a summary, are boxed.
//! - A field without a definition here is dropped in decoding. Those we only hand on (full types,
//!   debug info, the object graph of a SavedModel) are declared as bytes: a submessage and a byte
//!   string look the same on the wire.
//! - Messages nested more than a hundred deep are an error to decode.
//! - Every message knows its type URL, by [`prost::Name`].
//! - Of the services there is only the text in `proto/`; no code is generated for them.

#![forbid(unsafe_code)]

/// Package `tensorflow`: graphs, tensors, services, files.
#[allow(clippy::all, rustdoc::all)]
pub mod tensorflow {
    include!(concat!(env!("OUT_DIR"), "/tensorflow.rs"));

    /// Package `tensorflow.error`: status codes.
    pub mod error {
        include!(concat!(env!("OUT_DIR"), "/tensorflow.error.rs"));
    }

    /// Package `tensorflow.distributed_runtime`: what a failed call tells besides code and message.
    pub mod distributed_runtime {
        include!(concat!(env!("OUT_DIR"), "/tensorflow.distributed_runtime.rs"));
    }
}

/// Package `google`.
pub mod google {
    /// Package `google.protobuf`: only `Any`.
    #[allow(clippy::all, rustdoc::all)]
    pub mod protobuf {
        include!(concat!(env!("OUT_DIR"), "/google.protobuf.rs"));
    }
}
