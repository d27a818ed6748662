//! Links: the protocol between Ferroflow tasks without gRPC. A task pushes a value to the task that
//! needs it as soon as the value exists. Masters run and clean up parts of steps over links too.
//!
//! A task opens a link to each task that it sends to. The answer to GetStatus says whether the
//! other task accepts links, and holds a ticket. Tasks that do not, such as TensorFlow's, are
//! called with RunGraph and RecvTensor. The same happens if a link cannot be opened.
//!
//! A link consists of two connections: one for calls and small values, one for large values. Tasks
//! on one host use Unix sockets, and shared memory for large values. If they use the same GPU,
//! values in its memory stay there (`loans.rs`). If both tasks have a port of
//! UCX, the greeting on the first connection agrees on a stream over UCX in place of the second.
//! The [`Receiver`] handles the values and calls that arrive.

mod frame;
mod hello;
mod incoming;
mod links;
mod loans;
mod outbox;
mod outgoing;
mod reader;
#[cfg(test)]
mod tests;
mod tickets;

pub(crate) use frame::LinkPart;
pub(crate) use hello::{MAGIC, Token, VERSION};
pub(crate) use incoming::{GreetedLink, fuzz, samples, serve};
pub(crate) use links::{LinkSlot, Links};
pub(crate) use loans::Refused;
pub(crate) use outgoing::{Link, LinkCall};
pub(crate) use tickets::LinkTickets;

use crate::part::PartDone;
use crate::rpc::BoxFuture;
use ferroflow_collective::ucx::UcxPort;
use ferroflow_core::{CancelToken, Error, Gpu, InlineScope, Received, Result, bail};
use ferroflow_identity::PeerIdentity;
use ferroflow_metrics::PeerCounters;
use std::sync::Arc;

/// How values travel between Ferroflow tasks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DataPath {
    /// Shared memory on one host, links over TCP between hosts, over UCX where both hosts have a
    /// device for remote direct memory access and the tasks have no credentials.
    #[default]
    Auto,
    /// Links over TCP, also on one host.
    Tcp,
    /// Links over TCP whose large values go over UCX, which uses InfiniBand and RoCE.
    Ucx,
    /// No links: gRPC, as with TensorFlow tasks.
    Grpc,
}

impl std::str::FromStr for DataPath {
    type Err = Error;

    fn from_str(text: &str) -> Result<DataPath> {
        match text {
            "auto" => Ok(DataPath::Auto),
            "tcp" => Ok(DataPath::Tcp),
            "ucx" => Ok(DataPath::Ucx),
            "grpc" => Ok(DataPath::Grpc),
            _ => bail!(
                InvalidArgument,
                "invalid data path {text:?}: expected auto, tcp, ucx or grpc"
            ),
        }
    }
}

/// How a task presents itself to others.
pub(crate) struct Identity {
    /// `/job:ps/replica:0/task:0`.
    pub task: String,
    /// The incarnations of its devices.
    pub incarnations: Vec<u64>,
    pub tickets: LinkTickets,
    pub path: DataPath,
    /// The name of its socket for tasks on the same host; empty if it has none.
    pub local_name: String,
    /// The port for large values over UCX.
    pub ucx: Option<UcxPort>,
    /// Its GPUs, by number.
    pub gpus: Vec<Arc<dyn Gpu>>,
}

/// A task that sends to this one.
#[derive(Debug)]
pub(crate) struct LinkSource {
    pub task: String,
    pub incarnations: Vec<u64>,
    pub identity: Arc<PeerIdentity>,
}

/// Handles values and calls that arrive over links. It is called on the tokio tasks that read the
/// connections, so it must not block.
pub(crate) trait Receiver: Send + Sync + 'static {
    /// Fails unless `from` is a task that may have the incarnations that it names.
    fn admit(&self, from: &LinkSource) -> Result<()>;

    /// From now on `from` pushes values to this task. An error if it may not, as with `admit`.
    fn connected(&self, from: &Arc<LinkSource>) -> Result<()>;

    /// The link from `from` was lost, with the values that were in flight.
    fn lost(&self, from: &Arc<LinkSource>, why: &Error);

    /// Whether `from` may send values of the devices of a task with this name. In the cluster that
    /// a session describes it may have another name than its own.
    fn may_send_as(&self, from: &LinkSource, task: &str) -> bool;

    /// The counters of a task that sends values.
    fn peer(&self, task: &str) -> Arc<PeerCounters>;

    /// A value of `from` arrived, or an error if it could not be read.
    fn arrived(
        &self,
        from: &PeerCounters,
        step_id: i64,
        key: &str,
        value: Result<Received>,
        scope: &InlineScope,
    );

    /// Backpressure: ready when a large value of a step can be read; `None` if it can be read now.
    fn room(&self, step_id: i64) -> Option<BoxFuture<()>>;

    /// The link back to the task `from`. Answers to its calls go over that link, together with
    /// values, so that they do not wake the task a second time.
    fn way_back(&self, from: &LinkSource) -> Option<Arc<Link>>;

    /// Runs a part of a step until `cancel`.
    fn run(
        &self,
        from: &LinkSource,
        part: LinkPart<'_>,
        cancel: CancelToken,
        scope: &InlineScope,
        done: PartDone,
    );

    /// The connection to the master `from` of a step was lost.
    fn abandon(&self, from: &LinkSource, step_id: i64);

    /// A step of the master `from` is over.
    fn clean_up(&self, from: &LinkSource, step_id: i64);

    /// The link from this task to the task `to` was lost, with the values that were in flight.
    fn link_lost(&self, link: u64, to: &str, why: &Error);
}
