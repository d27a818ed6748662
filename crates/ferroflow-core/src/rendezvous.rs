//! The rendezvous: passes values from Send to Recv nodes.

use crate::{CancelToken, Error, InlineScope, Result, Tensor};
use std::fmt;
use std::sync::Arc;

/// The name of a transfer in TensorFlow's text form: source device and incarnation, destination,
/// tensor name, frame and iteration.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct RendezvousKey(pub Arc<str>);

impl RendezvousKey {
    /// `<send_device>;<16 hex digits>;<recv_device>;<tensor_name>;<frame>:<iteration>`.
    pub fn new(
        send_device: &str,
        send_incarnation: u64,
        recv_device: &str,
        tensor_name: &str,
        (frame, iteration): (u64, u64),
    ) -> RendezvousKey {
        RendezvousKey(
            format!(
                "{send_device};{send_incarnation:016x};{recv_device};{tensor_name};{frame}:{iteration}"
            )
            .into(),
        )
    }
}

impl fmt::Debug for RendezvousKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What a Recv gets.
#[derive(Clone, Debug)]
pub enum Received {
    /// The tensor.
    Live(Tensor),
    /// The value is dead: the sender was in a branch that was not taken.
    Dead,
}

/// Receives the value, exactly once.
pub type RecvDone = Box<dyn FnOnce(Result<Received>, &InlineScope) + Send>;

/// Holds sent values until they are received, and receivers until their value is sent, within one
/// step.
pub trait Rendezvous: Send + Sync {
    /// Publishes a value. Only one receiver gets it.
    fn send(&self, key: &RendezvousKey, value: Received, scope: &InlineScope) -> Result<()>;

    /// Asks for a value. `done` runs when the value arrives, when `cancel` fires, or when the step
    /// is aborted.
    fn recv(&self, key: &RendezvousKey, cancel: &CancelToken, done: RecvDone);

    /// Fails all present and future receivers with `error`.
    fn abort(&self, error: Error);
}
