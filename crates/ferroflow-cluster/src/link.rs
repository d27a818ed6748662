//! Links: how Ferroflow tasks talk to each other without gRPC. A task that makes a value for another
//! one pushes it the moment it exists; masters have parts of steps run, and cleaned up, the same way.
//!
//! A task opens a link to each task that it sends to, once it has learnt from that task's GetStatus
//! that it takes links, and with which token. Tasks that do not, TensorFlow's among them, are called
//! with RunGraph and RecvTensor as ever, and so is everybody when a link cannot be made.
//!
//! A link is a connection for calls and small values and one for large values; tasks of one host use
//! sockets that no other host reaches, and hand large values over in shared memory. What a value is,
//! and what becomes of it, is left to the [`Receiver`].

mod frame;
mod hello;
mod incoming;
mod links;
mod outbox;
mod outgoing;
mod reader;
#[cfg(test)]
mod tests;

pub(crate) use frame::LinkPart;
pub(crate) use hello::{MAGIC, Token, VERSION};
pub(crate) use incoming::serve;
pub(crate) use links::{LinkSlot, Links};
pub(crate) use outbox::gathering;
pub(crate) use outgoing::{Link, LinkCall};

use crate::rpc::BoxFuture;
use ferroflow_core::{CancelToken, Error, Received, Result, bail};
use std::sync::Arc;

/// How values travel between Ferroflow tasks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DataPath {
    /// The best there is: shared memory on one host, links over TCP between hosts.
    #[default]
    Auto,
    /// Links over TCP, on one host too.
    Tcp,
    /// No links: gRPC, as with TensorFlow's tasks.
    Grpc,
}

impl std::str::FromStr for DataPath {
    type Err = Error;

    fn from_str(text: &str) -> Result<DataPath> {
        match text {
            "auto" => Ok(DataPath::Auto),
            "tcp" => Ok(DataPath::Tcp),
            "grpc" => Ok(DataPath::Grpc),
            _ => bail!(InvalidArgument, "{text:?} is no data path: auto, tcp or grpc"),
        }
    }
}

/// Who a task is to the others.
pub(crate) struct Identity {
    /// `/job:ps/replica:0/task:0`.
    pub task: String,
    /// Of its devices.
    pub incarnations: Vec<u64>,
    pub token: Token,
    pub path: DataPath,
    /// Where tasks of this host find it, if they can.
    pub local_name: String,
}

/// A task that sends to this one.
#[derive(Debug)]
pub(crate) struct LinkSource {
    pub task: String,
    pub incarnations: Vec<u64>,
}

/// Told how a call ended, exactly once.
pub(crate) type RunDone = Box<dyn FnOnce(Result<()>) + Send>;

/// What becomes of what comes over links. Called on the tasks that read them, so nothing here blocks.
pub(crate) trait Receiver: Send + Sync + 'static {
    /// From now on `from` pushes what it makes for this task.
    fn connected(&self, from: &Arc<LinkSource>);

    /// The link from there is gone, and what was on its way with it.
    fn lost(&self, from: &Arc<LinkSource>, why: &Error);

    /// A value, or why it could not be taken.
    fn arrived(&self, step_id: i64, key: &str, value: Result<Received>);

    /// Ready when a large value of a step may be taken in; none if that is now.
    fn room(&self, step_id: i64) -> Option<BoxFuture<()>>;

    /// The link to the task that `from` is: what answers its calls need not wake it a second time beside
    /// the values that they made.
    fn way_back(&self, from: &LinkSource) -> Option<Arc<Link>>;

    /// Runs a part of a step until `cancel`.
    fn run(&self, part: LinkPart<'_>, cancel: CancelToken, done: RunDone);

    /// The master of a step will not hear of it any more.
    fn abandon(&self, step_id: i64);

    /// A step is over.
    fn clean_up(&self, step_id: i64);

    /// A link of this task to the task `to` is gone, with what was on its way.
    fn link_lost(&self, link: u64, to: &str, why: &Error);
}
