//! Links between ranks: byte streams from every rank to every other, and waiting for them.

mod in_process;
mod patience;
#[cfg(target_os = "linux")]
pub(crate) mod shared;
mod tcp;

pub use in_process::{MeshFaults, in_process};
pub(crate) use tcp::{Tcp, poll_until};

use ferroflow_core::Result;
use std::time::Instant;

/// One rank's ends of the byte streams between all ranks of a group. A stream keeps order and loses
/// nothing; a peer that is gone is an error that names it.
pub trait Mesh: Send {
    /// What kind of link it is, for people.
    fn name(&self) -> &'static str;

    /// Gives bytes of `head` and then of `body` to the stream to rank `to`; how many were taken,
    /// which is 0 when there is no room now.
    fn send(&mut self, to: usize, head: &[u8], body: &[u8]) -> Result<usize>;

    /// Takes bytes from the stream of rank `from`; how many, which is 0 when none are there now.
    fn recv(&mut self, from: usize, into: &mut [u8]) -> Result<usize>;

    /// Returns when one of the streams might make progress, or at `until`; it may return early.
    /// Fails when the group has failed.
    fn wait(&mut self, sending: &[usize], receiving: &[usize], until: Instant) -> Result<()>;

    /// Passes a short time after so many looks in vain, without sleeping; false if that does not pay any
    /// more, and [`Mesh::wait`] is due.
    fn pause(&self, looks: u32) -> bool;
}
