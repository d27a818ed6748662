//! Links between ranks: byte streams from every rank to every other, and waiting for them.

mod in_process;
#[cfg(target_os = "linux")]
pub(crate) mod shared;
mod tcp;

pub use in_process::{Faults, in_process};
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

    /// How often to look again before waiting, which is dear. A mesh whose ranks have to share
    /// processors gives them away from the first look on, or waits at once.
    fn patience(&self) -> Patience;
}

/// How a rank passes a short time.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// Looks before the rank waits in the kernel.
    pub looks: u32,
    /// The first looks, between which the processor is kept; none when ranks exceed processors. Between
    /// the others it is given away, because the peer may have been put on the same one: ranks that
    /// spin there, or sleep and are woken there, stay together and lose all that time at every step.
    pub spins: u32,
}

impl Patience {
    /// Passes the time after so many looks.
    pub(crate) fn pause(self, looks: u32) {
        if looks > self.spins {
            std::thread::yield_now();
        } else {
            std::hint::spin_loop();
        }
    }
}
