//! How values get from the task that makes them to the task that waits for them. Whoever carries them
//! in another way implements [`Transport`]; nothing else of a step knows.

use crate::channels::Channels;
use crate::error::said_by;
use crate::rpc::{BoxFuture, CallOptions, Chunks};
use bytes::Bytes;
use ferroflow_core::{Received, RendezvousKey, Result, err};
use ferroflow_graph::wire::Reader;
use ferroflow_graph::wire::step::RecvTensorResponse;
use ferroflow_proto::tensorflow as pb;
use prost::Message;
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
    /// A value of this task was made. Comes back if it is to be kept here until it is asked for.
    fn send(&self, step_id: i64, key: &RendezvousKey, value: Received) -> Option<Received>;

    /// The value that `from` has, or will have, under `key` in a step. Dropping the future tells it
    /// to forget that.
    fn recv(&self, from: Remote<'_>, step_id: i64, key: &str) -> BoxFuture<Result<Received>>;
}

/// Values are kept where they were made, and asked for with RecvTensor: what every task understands.
#[derive(Default)]
pub(crate) struct Pull {
    channels: Arc<Channels>,
}

impl Pull {
    pub fn new(channels: Arc<Channels>) -> Pull {
        Pull { channels }
    }
}

impl Transport for Pull {
    fn send(&self, _step_id: i64, _key: &RendezvousKey, value: Received) -> Option<Received> {
        Some(value)
    }

    fn recv(&self, from: Remote<'_>, step_id: i64, key: &str) -> BoxFuture<Result<Received>> {
        let channel = self.channels.get(from.address);
        let (task, key) = (from.task.to_string(), key.to_string());
        Box::pin(async move {
            let channel = channel?;
            let request = pb::RecvTensorRequest {
                step_id,
                rendezvous_key: key.clone(),
                // Never zero, which would mean "no id".
                request_id: fastrand::u64(1..) as i64,
                ..Default::default()
            };
            let message = Chunks::from(Bytes::from(request.encode_to_vec()));
            let answer = channel
                .call(RECV_TENSOR, message, CallOptions::default())
                .await
                .map_err(|status| said_by(&task, channel.address(), RECV_TENSOR, &status))?;
            let chunks: Vec<Bytes> = answer.segments().cloned().collect();
            let response = RecvTensorResponse::decode(Reader::new(chunks))
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
