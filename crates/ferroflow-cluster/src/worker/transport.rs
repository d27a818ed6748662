//! Carries values from the task that makes them to the task that needs them. Another way to carry
//! them is another implementation of [`Transport`]. The rest of a step does not change.

use crate::channels::Channels;
use crate::error::said_by;
use crate::link::{LinkSource, Links, Refused};
use crate::messages::RecvTensorRequest;
use crate::rpc::{BoxFuture, CallOptions};
use crate::wire::{Encode, decode_tensors};
use ferroflow_core::{HashMap, InlineScope, Received, Result, Tensor, ensure, err};
use ferroflow_graph::wire::step::RecvTensorResponse;
use ferroflow_identity::PeerIdentity;
use futures_util::future::join_all;
use parking_lot::RwLock;
use std::sync::Arc;

/// The most devices of one task.
const MOST_DEVICES: usize = 1024;

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

    /// Lends a tensor in the memory of a GPU to another task that uses the same GPU. Returns false
    /// if it does not. Calls `over` like `send`, and `refused` if the other task does not take it.
    fn lend(
        &self,
        to: Remote<'_>,
        step_id: i64,
        key: &str,
        tensor: &Tensor,
        over: &dyn Fn(u64),
        refused: Refused,
    ) -> bool {
        let _ = (to, step_id, key, tensor, over, refused);
        false
    }

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

/// The devices of tasks that push, by incarnation.
#[derive(Default)]
struct Sources(RwLock<HashMap<u64, LinkedDevice>>);

/// A device of a task that pushes.
struct LinkedDevice {
    /// The number of links from the task.
    links: usize,
    task: String,
    identity: Arc<PeerIdentity>,
}

impl Native {
    pub fn new(channels: Arc<Channels>, links: Arc<Links>) -> Native {
        Native { channels, links, sources: Sources::default() }
    }

    pub fn links(&self) -> &Links {
        &self.links
    }

    /// Fails if `from` claims a device that belongs to another task. With `is_one_user` identities
    /// do not matter.
    pub fn admit(&self, from: &LinkSource, is_one_user: bool) -> Result<()> {
        self.admit_among(&self.sources.0.read(), from, is_one_user)
    }

    fn admit_among(
        &self,
        sources: &HashMap<u64, LinkedDevice>,
        from: &LinkSource,
        is_one_user: bool,
    ) -> Result<()> {
        ensure!(
            from.incarnations.len() <= MOST_DEVICES,
            ResourceExhausted,
            "{} has more than {MOST_DEVICES} devices",
            from.task
        );
        for incarnation in &from.incarnations {
            // This task has authenticated the tasks to which it has connected itself.
            let linked = self.links.to_device(*incarnation);
            let is_other = match sources.get(incarnation) {
                Some(known) => {
                    known.task != from.task || !(is_one_user || known.identity == from.identity)
                }
                None => linked.is_some_and(|link| link.task != from.task),
            };
            ensure!(
                !is_other,
                PermissionDenied,
                "{} says that it is {}, with a device of another task",
                from.identity,
                from.task
            );
        }
        Ok(())
    }

    /// Adds a link from a task that pushes, or fails like `admit`.
    pub fn connected(&self, from: &LinkSource, is_one_user: bool) -> Result<()> {
        let mut sources = self.sources.0.write();
        self.admit_among(&sources, from, is_one_user)?;
        for incarnation in &from.incarnations {
            let device = sources.entry(*incarnation).or_insert_with(|| LinkedDevice {
                links: 0,
                task: from.task.clone(),
                identity: from.identity.clone(),
            });
            device.links += 1;
        }
        Ok(())
    }

    /// Removes a link. The task pushes as long as it has another.
    pub fn lost(&self, from: &LinkSource) {
        let mut sources = self.sources.0.write();
        for incarnation in &from.incarnations {
            if let Some(device) = sources.get_mut(incarnation) {
                device.links -= 1;
                if device.links == 0 {
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

    fn lend(
        &self,
        to: Remote<'_>,
        step_id: i64,
        key: &str,
        tensor: &Tensor,
        over: &dyn Fn(u64),
        refused: Refused,
    ) -> bool {
        let Some(link) = self.links.slot(to.address).link() else { return false };
        over(link.id);
        link.lend(step_id, key, tensor, refused)
    }

    fn pushes(&self, incarnation: u64) -> bool {
        self.sources.0.read().contains_key(&incarnation)
    }

    fn recv(&self, from: Remote<'_>, step_id: i64, key: &str) -> BoxFuture<Result<Received>> {
        let channel = self.channels.get(from.address);
        let liveness = self.channels.liveness(from.address);
        let (task, key) = (from.task.to_string(), key.to_string());
        let slot = self.links.slot(from.address);
        Box::pin(async move {
            let channel = channel?;
            let request = RecvTensorRequest {
                step_id,
                rendezvous_key: key.clone(),
                // Never zero, which would mean "no id".
                request_id: fastrand::u64(1..) as i64,
            };
            // Probe here too: the master may reach both tasks while they cannot reach each other.
            let call = channel.call(RECV_TENSOR, request.encode(), CallOptions::default());
            let answer = liveness.watch(&channel, call).await.map_err(|silence| {
                slot.give_up();
                let (address, silence) = (channel.address(), silence.message);
                err!(Unavailable, "{task} at {address} does not answer: {silence}")
            })?;
            let answer =
                answer.map_err(|status| said_by(&task, channel.address(), RECV_TENSOR, &status))?;
            let path = RecvTensorResponse::TENSORS;
            let response = decode_tensors(answer, path, RecvTensorResponse::decode)
                .await
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
