//! Shared code of the op crates: the prelude of an op's file, the choice of a kernel by dtype,
//! arithmetic over all number types, loops over slices, handles of resources, random streams, and
//! the formats that more than one family reads or writes.

pub mod dispatch;
pub mod farmhash;
pub mod file;
pub mod gpu;
mod gradient;
pub mod handle;
pub mod handle_form;
pub mod newer_attrs;
pub mod num;
pub mod pack;
pub mod parallel;
pub mod philox;
pub mod prelude;
pub mod protobuf;
pub mod record_log;
pub mod siphash;
pub mod sqlite;
pub mod tensor_arithmetic;
pub mod tensor_proto;
pub mod tfrecord;
pub mod vector;
