//! Unary gRPC on HTTP/2 without copies of messages.
//!
//! A message is a list of [`Bytes`](bytes::Bytes) segments ([`Chunks`]) in both directions. The
//! buffer of a tensor goes to the socket without a copy, and a received message is delivered in the
//! pieces in which it arrived. Callers encode and decode messages. The peers are our own tasks,
//! TensorFlow's grpc-core, and grpcio.
//!
//! Why not tonic: `docs/src/decisions/0001-grpc-on-h2.md`.

mod call_memory;
mod chunks;
pub mod client;
mod frame;
mod gather;
mod io;
mod keepalive;
pub mod server;
mod status;
mod timeout;

pub use crate::threads::off_network;
pub use crate::wire::decode_tensors;
pub use call_memory::{CallMemory, ConnectionMemory, ServerMemory};
pub use chunks::Chunks;
pub use client::{CallOptions, Channel};
pub(crate) use io::tune;
pub use io::{BoxIo, Connector, IncomingConnections, Io, TcpConnector};
pub use keepalive::Keepalive;
pub use server::{Activity, Caller, OpenConnections, RpcRequest, RpcServer, RpcService};
pub use status::{RpcStatus, code};

/// A boxed future.
pub type BoxFuture<T> = std::pin::Pin<Box<dyn Future<Output = T> + Send>>;

/// The default limit of a message. TensorFlow raises gRPC's limit of 4 MiB to the same value.
pub const DEFAULT_MAX_MESSAGE: usize = i32::MAX as usize;

/// Flow-control windows of one stream and of a whole connection. The second is larger, so that one
/// long message leaves room for short ones.
const STREAM_WINDOW: u32 = 64 << 20;
const CONNECTION_WINDOW: u32 = 256 << 20;

/// The largest frame we accept.
const MAX_FRAME: u32 = (16 << 20) - 1;

/// The limit of the metadata of one call. grpc-core's limit is 8 to 16 KiB; `authorization` may
/// hold a long token.
const MAX_HEADER_LIST: u32 = 64 << 10;
