//! Links between ranks: byte streams between all pairs, and waiting for them.

mod in_process;
#[cfg(target_os = "linux")]
pub(crate) mod shared;
mod tcp;
#[cfg(target_os = "linux")]
pub(crate) mod ucx;

pub use in_process::{MeshFaults, in_process};
pub(crate) use tcp::{Tcp, poll_until, spin};

use ferroflow_core::Result;
use std::time::Instant;

/// One rank's ends of the byte streams between all ranks of a group. A stream keeps order and loses
/// nothing. If a peer is gone, calls fail with an error that names it.
pub trait Mesh: Send {
    /// The name of the links, for users.
    fn name(&self) -> &'static str;

    /// Sends bytes of `head` and then of `body` to rank `to`. Returns how many bytes the stream
    /// accepted, 0 if it is full.
    fn send(&mut self, to: usize, head: &[u8], body: &[u8]) -> Result<usize>;

    /// Receives bytes from rank `from`. Returns how many, 0 if none have arrived.
    fn recv(&mut self, from: usize, into: &mut [u8]) -> Result<usize>;

    /// Blocks until a stream may make progress, or until `until`. May return early. Fails if the
    /// group has failed.
    fn wait(&mut self, sending: &[usize], receiving: &[usize], until: Instant) -> Result<()>;

    /// Spins or yields for a short time after `looks` polls without progress. Returns false if the
    /// caller should block with [`Mesh::wait`] instead.
    fn pause(&self, looks: u32) -> bool;

    /// The number of ranks to which connections are open. `None` if the links are not connections.
    fn open_links(&self) -> Option<usize> {
        None
    }
}
