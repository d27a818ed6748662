//! The rendezvous: where the two halves of a Send/Recv pair meet.

use crate::{CancelToken, Error, Result, Tensor};
use std::fmt;
use std::sync::Arc;

/// Names a transfer: source device and incarnation, destination, tensor name, frame and iteration,
/// in TensorFlow's text form.
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

/// What a Recv gets: a tensor, or word that the value is dead.
#[derive(Clone, Debug)]
pub enum Received {
    Live(Tensor),
    Dead,
}

/// Told the received value, exactly once.
pub type RecvDone = Box<dyn FnOnce(Result<Received>) + Send>;

/// Where sent values wait for receivers and receivers for values, within one step.
pub trait Rendezvous: Send + Sync {
    /// Publishes a value. Each value is received once.
    fn send(&self, key: &RendezvousKey, value: Received) -> Result<()>;

    /// Asks for a value; `done` runs when it is there, on cancellation, or when the step is aborted.
    fn recv(&self, key: &RendezvousKey, cancel: &CancelToken, done: RecvDone);

    /// Fails every present and future receiver with `error`.
    fn abort(&self, error: Error);
}
