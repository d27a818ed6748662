//! Unary gRPC straight on HTTP/2, without copying messages.
//!
//! A message is a list of [`Bytes`](bytes::Bytes) segments ([`Chunks`]) in both directions: a tensor's own buffer goes
//! to the socket as it is, and what arrives is handed over in the pieces it arrived in. Encoding and decoding messages,
//! and what the methods mean, is left to the callers. The peers are our own tasks, TensorFlow's grpc-core, and grpcio.
//!
//! Why not tonic: `docs/src/decisions/0001-grpc-on-h2.md`.

mod chunks;
pub mod client;
mod frame;
mod gather;
mod io;
mod keepalive;
pub mod server;
mod status;
mod timeout;

pub use chunks::Chunks;
pub use client::{CallOptions, Channel};
pub(crate) use io::tune;
pub use io::{BoxIo, Connector, IncomingConnections, Io, TcpConnector};
pub use keepalive::Keepalive;
pub use server::{RpcRequest, RpcServer, RpcService};
pub use status::{RpcStatus, code};

/// A future on the heap, as trait objects return it.
pub type BoxFuture<T> = std::pin::Pin<Box<dyn Future<Output = T> + Send>>;

/// TensorFlow lifts gRPC's own 4 MiB limit to what an `i32` holds, on both sides; so do we.
pub const DEFAULT_MAX_MESSAGE: usize = i32::MAX as usize;

/// What either end may send before it hears back, for one stream and for all streams of a connection. The second is
/// larger so that one long message leaves room for the short ones beside it.
const STREAM_WINDOW: u32 = 64 << 20;
const CONNECTION_WINDOW: u32 = 256 << 20;

/// The largest frame we accept.
const MAX_FRAME: u32 = (16 << 20) - 1;

/// Metadata we accept in one call. grpc-core's own limit is 8 to 16 KiB; `authorization` may hold a long token.
const MAX_HEADER_LIST: u32 = 64 << 10;
