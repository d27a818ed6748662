//! How a session sees the cluster: what this task is called in it, and where the others are.

use crate::error::from_status;
use crate::rpc::client::Options;
use crate::rpc::{CallOptions, Channel, Chunks};
use crate::spec::ClusterSpec;
use bytes::Bytes;
use ferroflow_core::{Code, DeviceInfo, DeviceName, Error, Received, Result, bail, err};
use ferroflow_graph::wire::Reader;
use ferroflow_graph::wire::step::RecvTensorResponse;
use ferroflow_proto::tensorflow as pb;
use parking_lot::Mutex;
use prost::Message;
use std::collections::HashMap;
use std::sync::Arc;

const RECV_TENSOR: &str = "/tensorflow.WorkerService/RecvTensor";

/// A task's name, its devices under that name, and its peers' addresses.
pub(crate) struct View {
    /// `/job:ps/replica:0/task:0`.
    pub name: String,
    pub devices: Vec<Arc<DeviceInfo>>,
    /// By task name.
    addresses: HashMap<String, String>,
    channels: Arc<Channels>,
}

impl View {
    /// Task `index` of `job` in `cluster`, with `devices`, which are renamed if they are another's.
    pub fn new(
        cluster: &ClusterSpec,
        job: &str,
        index: u32,
        devices: &[Arc<DeviceInfo>],
        channels: Arc<Channels>,
    ) -> View {
        let task = |job: &str, task: u32| DeviceName {
            job: Some(job.to_string()),
            replica: Some(0),
            task: Some(task),
            ..DeviceName::default()
        };
        let own = task(job, index);
        let name = own.to_string();
        let renamed = |device: &Arc<DeviceInfo>| {
            if device.name.task_name() == name {
                return device.clone();
            }
            let (kind, id) = (device.name.kind.clone(), device.name.id);
            let mut info =
                DeviceInfo::new(DeviceName { kind, id, ..own.clone() }, device.incarnation);
            info.memory_limit = device.memory_limit;
            Arc::new(info)
        };
        let devices = devices.iter().map(renamed).collect();
        let addresses = cluster
            .tasks()
            .map(|(job, index, address)| (task(job, index).to_string(), address.to_string()))
            .collect();
        View { name, devices, addresses, channels }
    }

    /// Whether a device, by its full name, is one of this task's.
    pub fn is_local(&self, device: &str) -> bool {
        device.strip_prefix(self.name.as_str()).is_some_and(|rest| rest.starts_with('/'))
    }

    /// Asks the task of `source` for a value of a step. Dropping the future tells it to forget
    /// that.
    pub async fn recv_tensor(&self, source: &str, step_id: i64, key: &str) -> Result<Received> {
        let task = DeviceName::parse(source)?.task_name();
        let Some(address) = self.addresses.get(&task) else {
            bail!(Internal, "No worker known as {task}");
        };
        let channel = self.channels.get(address)?;
        let request = pb::RecvTensorRequest {
            step_id,
            rendezvous_key: key.to_string(),
            request_id: new_request_id(),
            ..Default::default()
        };
        let message = Chunks::from(Bytes::from(request.encode_to_vec()));
        let answer = channel
            .call(RECV_TENSOR, message, CallOptions::default())
            .await
            .map_err(|status| said_by(&task, address, from_status(&status)))?;
        let chunks: Vec<Bytes> = answer.segments().cloned().collect();
        let response = RecvTensorResponse::decode(Reader::new(chunks))
            .map_err(|e| e.context(format!("the answer of {task} to RecvTensor of {key}")))?;
        if response.is_dead {
            return Ok(Received::Dead);
        }
        let tensor = response
            .tensor
            .ok_or_else(|| err!(Internal, "{task} answered RecvTensor of {key} with nothing"))?;
        Ok(Received::Live(tensor))
    }
}

/// Connections to other tasks, one for each address, made when first needed.
#[derive(Default)]
pub(crate) struct Channels {
    by_address: Mutex<HashMap<String, Channel>>,
}

impl Channels {
    fn get(&self, address: &str) -> Result<Channel> {
        let mut known = self.by_address.lock();
        if let Some(channel) = known.get(address) {
            return Ok(channel.clone());
        }
        let channel = Channel::connect(address, Options::default()).map_err(|s| from_status(&s))?;
        known.insert(address.to_string(), channel.clone());
        Ok(channel)
    }
}

/// Never zero, which would mean "no id".
fn new_request_id() -> i64 {
    fastrand::u64(1..) as i64
}

/// An error that arrived as a status, with where it came from, in the words TensorFlow's users know.
fn said_by(task: &str, address: &str, error: Error) -> Error {
    let said = Error::new(
        error.code(),
        format!(
            "{}\nAdditional GRPC error information from remote target {task} while calling \
             {RECV_TENSOR}:\n:{{\"address\":\"{address}\",\"grpc_status\":{}}}",
            error.message(),
            error.code() as i32
        ),
    );
    // A call that was merely cancelled is never the cause of anything.
    if error.is_derived() || error.code() == Code::Cancelled { said.derived() } else { said }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_may_know_the_task_by_another_name() {
        let devices = [Arc::new(DeviceInfo::cpu("ps", 0, 0, 7))];
        let cluster = ClusterSpec::parse("other=a:1,b:2").unwrap();
        let view = View::new(&cluster, "other", 1, &devices, Arc::default());
        assert_eq!(view.devices[0].text, "/job:other/replica:0/task:1/device:CPU:0");
        assert_eq!(view.devices[0].incarnation, 7);
        assert!(view.is_local("/job:other/replica:0/task:1/device:CPU:0"));
        assert!(!view.is_local("/job:other/replica:0/task:12/device:CPU:0"));
        assert!(!view.is_local("/job:ps/replica:0/task:0/device:CPU:0"));
    }
}
