//! How values get from the task that makes them to the task that needs them. Another way to carry
//! them is another implementation of [`Transport`]: the rest of a step does not change.

use crate::channels::Channels;
use crate::error::said_by;
use crate::link::{LinkSource, Links};
use crate::messages::RecvTensorRequest;
use crate::rpc::{BoxFuture, CallOptions};
use crate::wire::Encode;
use bytes::Bytes;
use ferroflow_core::{HashMap, InlineScope, Received, Result, err};
use ferroflow_graph::wire::MessageReader;
use ferroflow_graph::wire::step::RecvTensorResponse;
use futures_util::future::join_all;
use parking_lot::RwLock;
use std::sync::Arc;

const RECV_TENSOR: &str = "/tensorflow.WorkerService/RecvTensor";

/// Another task.
#[derive(Clone, Copy)]
pub(crate) struct Remote<'a> {
    /// `/job:ps/replica:0/task:0`.
    pub task: &'a str,
    /// `host:port`.
    pub address: &'a str,
}

/// Carries the values of steps between this task and others.
pub(crate) trait Transport: Send + Sync + 'static {
    /// Prepares to send values to the tasks at these addresses. Completes also if that fails.
    fn prepare(&self, to: Vec<String>) -> BoxFuture<()>;

    /// Pushes a value to another task. Returns false if it cannot: the value then waits until the
    /// other task calls `recv`. Calls `over` with the id of the link before it sends anything, so
    /// that the step fails if this link is lost.
    fn send(
        &self,
        to: Remote<'_>,
        step_id: i64,
        key: &str,
        value: &Received,
        scope: &InlineScope,
        over: &dyn Fn(u64),
    ) -> bool;

    /// Whether the task that has the device of this incarnation pushes its values to this task.
    fn pushes(&self, incarnation: u64) -> bool;

    /// Asks `from` for the value under `key` of a step, and waits for it. Dropping the future
    /// cancels the request.
    fn recv(&self, from: Remote<'_>, step_id: i64, key: &str) -> BoxFuture<Result<Received>>;
}

/// Pushes values over links. Tasks without a link get their values with RecvTensor, which every
/// task understands.
pub(crate) struct Native {
    channels: Arc<Channels>,
    links: Arc<Links>,
    sources: Sources,
}

/// The devices of tasks that push, with the number of links from each.
#[derive(Default)]
struct Sources(RwLock<HashMap<u64, usize>>);

impl Native {
    pub fn new(channels: Arc<Channels>, links: Arc<Links>) -> Native {
        Native { channels, links, sources: Sources::default() }
    }

    pub fn links(&self) -> &Links {
        &self.links
    }

    /// Adds a link from a task that pushes.
    pub fn connected(&self, from: &LinkSource) {
        let mut sources = self.sources.0.write();
        from.incarnations.iter().for_each(|i| *sources.entry(*i).or_default() += 1);
    }

    /// Removes a link. The task pushes as long as it has another.
    pub fn lost(&self, from: &LinkSource) {
        let mut sources = self.sources.0.write();
        for incarnation in &from.incarnations {
            if let Some(count) = sources.get_mut(incarnation) {
                *count -= 1;
                if *count == 0 {
                    sources.remove(incarnation);
                }
            }
        }
    }
}

impl Transport for Native {
    fn prepare(&self, to: Vec<String>) -> BoxFuture<()> {
        let links = self.links.clone();
        Box::pin(async move {
            let slots: Vec<_> = to.iter().map(|address| links.slot(address)).collect();
            join_all(slots.iter().map(|slot| links.want(slot))).await;
        })
    }

    fn send(
        &self,
        to: Remote<'_>,
        step_id: i64,
        key: &str,
        value: &Received,
        scope: &InlineScope,
        over: &dyn Fn(u64),
    ) -> bool {
        let Some(link) = self.links.slot(to.address).link() else { return false };
        over(link.id);
        link.push(step_id, key, value, scope)
    }

    fn pushes(&self, incarnation: u64) -> bool {
        self.sources.0.read().contains_key(&incarnation)
    }

    fn recv(&self, from: Remote<'_>, step_id: i64, key: &str) -> BoxFuture<Result<Received>> {
        let channel = self.channels.get(from.address);
        let liveness = self.channels.liveness(from.address);
        let (task, key) = (from.task.to_string(), key.to_string());
        Box::pin(async move {
            let channel = channel?;
            let request = RecvTensorRequest {
                step_id,
                rendezvous_key: key.clone(),
                // Never zero, which would mean "no id".
                request_id: fastrand::u64(1..) as i64,
            };
            // Watched here too: the master may reach both tasks while they cannot reach each other.
            let call = channel.call(RECV_TENSOR, request.encode(), CallOptions::default());
            let answer = liveness.watch(&channel, call).await.map_err(|silence| {
                let (address, silence) = (channel.address(), silence.message);
                err!(Unavailable, "{task} at {address} does not answer: {silence}")
            })?;
            let answer =
                answer.map_err(|status| said_by(&task, channel.address(), RECV_TENSOR, &status))?;
            let chunks: Vec<Bytes> = answer.segments().cloned().collect();
            let response = RecvTensorResponse::decode(MessageReader::new(chunks))
                .map_err(|e| e.context(format!("the answer of {task} to RecvTensor of {key}")))?;
            if response.is_dead {
                return Ok(Received::Dead);
            }
            let tensor = response.tensor.ok_or_else(|| {
                err!(Internal, "{task} answered RecvTensor of {key} with nothing")
            })?;
            Ok(Received::Live(tensor))
        })
    }
}
