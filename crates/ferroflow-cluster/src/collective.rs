//! TensorFlow's collectives between tasks.
//!
//! The devices of a group find each other through its leader, a task that all members know. Each
//! device joins the group with CompleteGroup, which is answered when all have joined. Values then
//! go from task to task: the sender keeps a value until the receiver asks for it with RecvBuf. Keys
//! and order are TensorFlow's, so that TensorFlow tasks can be members too.

mod buffers;
mod leader;
mod ring;

use crate::channels::Channels;
use crate::dedup::RecentIds;
use crate::error::said_by;
use crate::messages::{
    CompleteGroupRequest, CompleteInstanceRequest, GetStepSequenceRequest, GetStepSequenceResponse,
    RecvBufRequest, RecvBufResponse,
};
use crate::rpc::CallOptions;
use crate::wire::{Decode, DeviceMessage, Encode, SessionConfig};
use crate::worker::View;
use buffers::Buffers;
use bytes::Bytes;
use ferroflow_core::{
    CollectiveCall, CollectiveDone, CollectiveKind, Collectives, DeviceInfo, IncomingTensor,
    Result, StepCtx, Tensor, bail, ensure, err, single_device_result,
};
use leader::Leader;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::oneshot;

/// The timeout of a RecvBuf.
const RECV_LIMIT: Duration = Duration::from_secs(600);

/// TensorFlow's numbers of the kinds of collectives.
const REDUCTION: i32 = 0;
const BROADCAST: i32 = 1;
const GATHER: i32 = 2;
const ALL_TO_ALL: i32 = 4;

/// The collectives of a task, for all sessions.
pub(crate) struct TaskCollectives {
    channels: Arc<Channels>,
    pub leader: Leader,
    buffers: Buffers,
    io: Handle,
}

impl TaskCollectives {
    /// `over` are the last steps of the task that have ended. Must be called inside a tokio
    /// runtime.
    pub fn new(channels: Arc<Channels>, over: Arc<RecentIds>) -> Arc<TaskCollectives> {
        Arc::new(TaskCollectives {
            channels,
            leader: Leader::default(),
            buffers: Buffers::new(over),
            io: Handle::current(),
        })
    }

    /// The collectives of a session whose view of the cluster is `view`. `config` may name the
    /// leader.
    pub fn of_session(
        self: &Arc<Self>,
        view: &Arc<View>,
        config: Option<&SessionConfig>,
    ) -> Arc<dyn Collectives> {
        Arc::new(SessionCollectives {
            task: self.clone(),
            view: view.clone(),
            leader: leader_of(view, config),
            known: Arc::default(),
        })
    }

    /// The number of the next step of a graph that several masters run together. The leader assigns
    /// it.
    pub async fn next_step(&self, view: &View, leader: &str, graph_key: i64) -> Result<i64> {
        let next = self.find_next_step(view, leader, graph_key).await?;
        self.begin(next);
        Ok(next)
    }

    /// Notes that a step starts on this task.
    pub fn begin(&self, step_id: i64) {
        self.buffers.begin(step_id);
    }

    async fn find_next_step(&self, view: &View, leader: &str, graph_key: i64) -> Result<i64> {
        let own = leader == view.name;
        if let Some(next) = self.leader.known_step(graph_key).filter(|_| !own) {
            return Ok(next);
        }
        let sequences = match own {
            true => self.leader.step_sequences(&[graph_key])?,
            false => {
                let request = GetStepSequenceRequest { graph_keys: vec![graph_key] };
                let answer: GetStepSequenceResponse =
                    ask(&self.channels, view, leader, "GetStepSequence", request).await?;
                answer.next_steps
            }
        };
        let found = sequences.into_iter().find(|(key, _)| *key == graph_key);
        let (_, next) = found.ok_or_else(|| {
            err!(Internal, "{leader} did not return the next step of graph {graph_key}")
        })?;
        self.leader.set_step(graph_key, next)?;
        Ok(next)
    }

    /// Ends a step whose number came from [`TaskCollectives::next_step`]. After a failure the next
    /// number comes from the leader again.
    pub fn end_step(&self, graph_key: i64, step_id: i64, is_leader: bool, failed: bool) {
        self.leader.end_step(graph_key, step_id, failed && !is_leader);
    }

    /// Drops the values of a step.
    pub fn clean_up(&self, step_id: i64) {
        self.buffers.forget(step_id);
    }

    /// Answers a task that asks for a value of this task.
    pub async fn recv_buf(
        &self,
        request: RecvBufRequest,
        devices: &[Arc<DeviceInfo>],
    ) -> Result<RecvBufResponse> {
        let key = request.key;
        let name = ferroflow_core::DeviceName::parse(&request.source_device)?;
        let device = devices.iter().find(|d| d.name.kind == name.kind && d.name.id == name.id);
        if let Some(device) = device.filter(|_| request.source_incarnation != 0) {
            ensure!(
                device.incarnation == request.source_incarnation,
                FailedPrecondition,
                "RecvBuf of {key}: {} was restarted",
                request.source_device
            );
        }
        let taken = self.buffers.take(request.step_id, &key);
        let Ok(bytes) = tokio::time::timeout(RECV_LIMIT, taken).await else {
            bail!(
                Aborted,
                "{key} of step {} did not arrive within {RECV_LIMIT:?}",
                request.step_id
            );
        };
        let bytes = bytes?;
        ensure!(
            bytes.len() as i64 == request.num_bytes,
            Internal,
            "{key} of step {} has {} bytes, but {} were requested",
            request.step_id,
            bytes.len(),
            request.num_bytes
        );
        Ok(RecvBufResponse { chunks: vec![bytes] })
    }
}

/// The leader of a session's collectives.
pub(crate) fn leader_of(view: &View, config: Option<&SessionConfig>) -> String {
    let named = config.and_then(|c| c.collective_leader.clone());
    named.unwrap_or_else(|| view.first_task())
}

/// A device of a group.
struct GroupMember {
    device: DeviceInfo,
    task: String,
    /// Where an all-to-all stores the values of this member: the requested place, or its index.
    place: usize,
}

/// The devices of a group in rank order.
struct ResolvedGroup(Vec<GroupMember>);

/// Known groups by key.
type Groups = Arc<Mutex<HashMap<i32, Arc<ResolvedGroup>>>>;

/// The collectives of one session on this task.
struct SessionCollectives {
    task: Arc<TaskCollectives>,
    view: Arc<View>,
    /// `/job:worker/replica:0/task:0`.
    leader: String,
    known: Groups,
}

impl Collectives for SessionCollectives {
    fn start(&self, step: &Arc<StepCtx>, call: CollectiveCall, done: CollectiveDone) {
        if let Some(result) = single_device_result(&call) {
            return done(result);
        }
        let part = CollectivePart {
            task: self.task.clone(),
            view: self.view.clone(),
            leader: self.leader.clone(),
            known: self.known.clone(),
            step_id: step.step_id,
            call,
        };
        let (stop, stopped) = oneshot::channel::<()>();
        let stop = Mutex::new(Some(stop));
        let listening = step.cancel.on_cancel(move |_| drop(stop.lock().take()));
        let (task, step_id) = (self.task.clone(), step.step_id);
        self.task.io.spawn(async move {
            let name = part.call.name.clone();
            let limit = part.call.timeout;
            let run = async move {
                match limit {
                    None => part.run().await,
                    Some(limit) => {
                        tokio::time::timeout(limit, part.run()).await.unwrap_or_else(|_| {
                            Err(err!(
                                DeadlineExceeded,
                                "{name}: Collective has timed out during execution."
                            ))
                        })
                    }
                }
            };
            let result = tokio::select! {
                biased;
                _ = stopped => Err(err!(Cancelled, "the step was cancelled").derived()),
                result = run => result,
            };
            drop(listening);
            if result.is_err() {
                // The step has failed, so its values are no longer needed.
                task.clean_up(step_id);
            }
            done(result);
        });
    }
}

/// One device's part in a collective.
struct CollectivePart {
    task: Arc<TaskCollectives>,
    view: Arc<View>,
    leader: String,
    known: Groups,
    step_id: i64,
    call: CollectiveCall,
}

impl CollectivePart {
    async fn run(mut self) -> Result<Tensor> {
        let group = self.group().await?;
        let rank = group.0.iter().position(|m| m.device.text == self.call.device.text);
        let Some(rank) = rank else {
            bail!(Internal, "{} is not in group {}", self.call.device.text, self.call.group_key);
        };
        let tensor = self.call.tensor.take();
        if self.call.kind == CollectiveKind::Meet {
            return tensor
                .ok_or_else(|| err!(Internal, "a member joined a collective without a tensor"));
        }
        let bytes = tensor.as_ref().map(|t| t.bytes().map(<[u8]>::to_vec)).transpose()?;
        let source = match self.call.kind {
            CollectiveKind::Broadcast { is_source } => self.source(is_source).await?,
            _ => 0,
        };
        let ring = ring::Ring { part: &self, group: &group, rank, provided: Mutex::default() };
        let out = match (self.call.kind, bytes) {
            (CollectiveKind::Reduce { merge, is_mean }, Some(bytes)) => {
                ring.reduce(bytes, merge, is_mean).await?
            }
            (CollectiveKind::Gather, Some(bytes)) => ring.gather(bytes).await?,
            (CollectiveKind::AllToAll, Some(bytes)) => ring.all_to_all(bytes).await?,
            (CollectiveKind::Broadcast { .. }, bytes) => ring.broadcast(bytes, source).await?,
            (kind, _) => bail!(Internal, "{kind:?} has no value to exchange"),
        };
        ring.all_taken().await?;
        let mut result = IncomingTensor::new(self.call.dtype, self.call.shape.clone())?;
        ensure!(
            result.missing() == out.len(),
            Internal,
            "{}: received {} bytes for a tensor of {}",
            self.call.name,
            out.len(),
            result.missing()
        );
        let mut out = &out[..];
        while let Some(piece) = result.next_piece()? {
            let (now, later) = out.split_at(piece.len());
            piece.copy_from_slice(now);
            out = later;
        }
        result.finish()
    }

    fn is_leader(&self) -> bool {
        self.leader == self.view.name
    }

    async fn group(&self) -> Result<Arc<ResolvedGroup>> {
        let call = &self.call;
        let known = self.known.lock().get(&call.group_key).cloned();
        if let Some(known) = known.filter(|g| g.0.len() == call.group_size) {
            return Ok(known);
        }
        let request = CompleteGroupRequest {
            group_key: call.group_key,
            group_size: call.group_size as i32,
            device_type: call.device.kind().to_string(),
            collective_type: match call.kind {
                CollectiveKind::Reduce { .. } => REDUCTION,
                CollectiveKind::Broadcast { .. } => BROADCAST,
                CollectiveKind::Gather => GATHER,
                CollectiveKind::AllToAll => ALL_TO_ALL,
                // The leader ignores the type.
                CollectiveKind::Meet => REDUCTION,
            },
            device: Some(DeviceMessage::of(&call.device)),
            rank: call.rank,
        };
        let response = match self.is_leader() {
            true => self.task.leader.complete_group(request).await?,
            false => self.ask_leader("CompleteGroup", request).await?,
        };
        ensure!(
            response.devices.len() == call.group_size,
            Internal,
            "group {} has {} members, not {}",
            call.group_key,
            response.devices.len(),
            call.group_size
        );
        let places = leader::places(&response.ranks, call.group_size)?;
        let members = response.devices.iter().zip(places).map(|(device, place)| {
            let device = device.info()?;
            Ok(GroupMember { task: device.name.task_name(), device, place })
        });
        let group = Arc::new(ResolvedGroup(members.collect::<Result<Vec<_>>>()?));
        self.known.lock().insert(call.group_key, group.clone());
        Ok(group)
    }

    /// The rank that sends the broadcast.
    async fn source(&self, is_source: bool) -> Result<usize> {
        let call = &self.call;
        let request = CompleteInstanceRequest {
            name: call.name.clone(),
            collective_type: BROADCAST,
            data_type: call.dtype.number(),
            group_key: call.group_key,
            group_size: call.group_size as i32,
            instance_key: call.instance_key,
            device_type: call.device.kind().to_string(),
            device: call.device.text.clone(),
            is_source,
            step_id: self.step_id,
        };
        let response = match self.is_leader() {
            true => self.task.leader.complete_instance(request).await?,
            false => self.ask_leader("CompleteInstance", request).await?,
        };
        let rank = usize::try_from(response.source_rank).ok().filter(|&r| r < call.group_size);
        rank.ok_or_else(|| {
            err!(
                Internal,
                "the leader named rank {} as the source of a broadcast",
                response.source_rank
            )
        })
    }

    async fn ask_leader<R: Decode>(&self, method: &str, request: impl Encode) -> Result<R> {
        ask(&self.task.channels, &self.view, &self.leader, method, request).await
    }

    /// Keeps a value until a member asks for it.
    fn provide(&self, key: String, bytes: Bytes) -> Result<oneshot::Receiver<()>> {
        self.task.buffers.provide(self.step_id, key, bytes)
    }

    /// Waits until `by` has taken the value that was provided for it. Fails if the task stops
    /// answering probes: if each task has its own master, no other task probes it.
    async fn taken(&self, by: &GroupMember, taken: oneshot::Receiver<()>) -> Result<()> {
        let taken = if by.task == self.view.name {
            taken.await
        } else {
            let address = self.view.remote(&by.task)?.address;
            watched(&self.task.channels, &by.task, address, taken).await?
        };
        let over =
            |_| err!(Aborted, "the step ended before all members had their values").derived();
        taken.map_err(over)
    }

    /// Fetches the value that a member provides under a key, now or later.
    async fn fetch(&self, from: &GroupMember, key: String, bytes: usize) -> Result<Bytes> {
        if from.task == self.view.name {
            let got = self.task.buffers.take(self.step_id, &key).await?;
            ensure!(
                got.len() == bytes,
                Internal,
                "{key}: received {} bytes instead of {bytes}",
                got.len()
            );
            return Ok(got);
        }
        let request = RecvBufRequest {
            step_id: self.step_id,
            key: key.clone(),
            num_bytes: bytes as i64,
            source_device: from.device.text.clone(),
            source_incarnation: from.device.incarnation,
            destination_device: self.call.device.text.clone(),
            request_id: fastrand::u64(1..) as i64,
        };
        let response: RecvBufResponse =
            ask(&self.task.channels, &self.view, &from.task, "RecvBuf", request).await?;
        let mut got = Vec::with_capacity(bytes.min(1 << 30));
        for chunk in &response.chunks {
            ensure!(got.len() + chunk.len() <= bytes, Internal, "{key}: more than {bytes} bytes");
            got.extend_from_slice(chunk);
        }
        ensure!(
            got.len() == bytes,
            Internal,
            "{key}: received {} bytes instead of {bytes}",
            got.len()
        );
        Ok(got.into())
    }
}

/// Calls another task.
async fn ask<R: Decode>(
    channels: &Channels,
    view: &View,
    task: &str,
    method: &str,
    request: impl Encode,
) -> Result<R> {
    let address = view.remote(task)?.address;
    let channel = channels.get(address)?;
    let path = format!("/tensorflow.WorkerService/{method}");
    let call = channel.call(&path, request.encode(), CallOptions::default());
    let answer = watched(channels, task, address, call).await?;
    let answer = answer.map_err(|status| said_by(task, channel.address(), &path, &status))?;
    R::decode(answer)
        .map_err(|e| err!(Internal, "{task} gave a malformed answer to {method}: {}", e.message()))
}

/// Waits for another task. The wait has no limit as long as the task answers probes.
async fn watched<T>(
    channels: &Channels,
    task: &str,
    address: &str,
    what: impl Future<Output = T>,
) -> Result<T> {
    let (channel, liveness) = (channels.get(address)?, channels.liveness(address));
    liveness.watch(&channel, what).await.map_err(|silence| {
        err!(Unavailable, "{task} at {address} does not answer: {}", silence.message)
    })
}

#[cfg(test)]
mod tests;
