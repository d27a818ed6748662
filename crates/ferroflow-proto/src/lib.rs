//! The messages that TensorFlow 2.15 sends over the wire and stores in files.
//!
//! `proto/` contains our own definitions, with TensorFlow's names and field numbers. The modules
//! here are generated from them and nested like the packages. The generated files are in the
//! repository, and a test compares them with the definitions. The crates that convert a message
//! check its meaning.
//!
//! - Enums are open: a field holds the plain `i32`, so that unknown values are kept. The getter of
//!   the same name returns the enum's default for an unknown value.
//! - `bytes` fields are [`prost::bytes::Bytes`]. When decoded from a `Bytes`, they share its
//!   buffer.
//! - Maps are sorted, so that equal messages encode to equal bytes.
//! - Tensors and lists in an `AttrValue`, and tensors in a summary, are boxed.
//! - Fields without a definition here are dropped in decoding. Fields that are only passed on (full
//!   types, debug info, the object graph of a SavedModel) are declared as bytes. A submessage and a
//!   byte string look the same on the wire.
//! - Messages nested more than a hundred levels deep cannot be decoded.
//! - Every message knows its type URL through [`prost::Name`].
//! - `proto/` also contains the services. No code is generated for them.

#![forbid(unsafe_code)]

/// Package `tensorflow`: graphs, tensors, services, files.
#[allow(clippy::all, rustdoc::all)]
pub mod tensorflow {
    include!("generated/tensorflow.rs");

    /// Package `tensorflow.error`: status codes.
    pub mod error {
        include!("generated/tensorflow.error.rs");
    }

    /// Package `tensorflow.distributed_runtime`: details of a failed call besides code and message.
    pub mod distributed_runtime {
        include!("generated/tensorflow.distributed_runtime.rs");
    }
}

/// Package `google`.
pub mod google {
    /// Package `google.protobuf`: only `Any`.
    #[allow(clippy::all, rustdoc::all)]
    pub mod protobuf {
        include!("generated/google.protobuf.rs");
    }
}
