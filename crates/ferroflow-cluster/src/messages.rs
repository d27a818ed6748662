//! The requests and answers of the master and worker services, as our own types. The `wire` module
//! reads and writes them. Requests and answers that carry tensors are in
//! `ferroflow_graph::wire::step`.

use crate::link::Token;
use crate::wire::{DeviceMessage, GraphMessage, SessionConfig};
use bytes::Bytes;
use ferroflow_collective::blocks::BlockMemory;
use ferroflow_core::DeviceInfo;
use ferroflow_graph::passes::Rewrites;
use ferroflow_runtime::{CallableSpec, SessionOptions};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Opens a session on a master.
pub(crate) struct CreateSessionRequest {
    pub graph: GraphMessage,
    pub config: SessionConfig,
    /// The options of steps, from the configuration.
    pub options: SessionOptions,
    /// The address by which the client knows the master.
    pub target: String,
}

#[derive(Default)]
pub(crate) struct CreateSessionResponse {
    pub session_handle: String,
    pub graph_version: i64,
}

/// Offers shared memory for the feeds of a session.
#[derive(Clone)]
pub(crate) struct ShareBlocksRequest {
    pub session_handle: String,
    pub blocks: BlockMemory,
}

#[derive(Default)]
pub(crate) struct ShareBlocksResponse {
    /// Whether the server has mapped the memory.
    pub takes_blocks: bool,
    /// The server's own memory, for fetches.
    pub blocks: Option<BlockMemory>,
}

/// Adds nodes and functions to the graph of a session.
pub(crate) struct ExtendSessionRequest {
    pub session_handle: String,
    pub graph: GraphMessage,
    /// The version that the client extends.
    pub current_graph_version: i64,
}

pub(crate) struct ExtendSessionResponse {
    pub new_graph_version: i64,
}

/// Announces a step that is fed and fetched in parts.
pub(crate) struct PartialRunSetupRequest {
    pub session_handle: String,
    pub feeds: Vec<String>,
    pub fetches: Vec<String>,
    pub targets: Vec<String>,
    pub request_id: i64,
}

pub(crate) struct PartialRunSetupResponse {
    pub partial_run_handle: String,
}

/// Describes a step that is run more than once.
pub(crate) struct MakeCallableRequest {
    pub session_handle: String,
    pub spec: CallableSpec,
    /// Whether it names devices for feeds or fetches.
    pub names_devices: bool,
    pub request_id: i64,
}

pub(crate) struct MakeCallableResponse {
    pub handle: i64,
}

pub(crate) struct ReleaseCallableRequest {
    pub session_handle: String,
    pub handle: i64,
}

pub(crate) struct CloseSessionRequest {
    pub session_handle: String,
}

/// Clears containers on all tasks that the filters let through, and closes all sessions.
pub(crate) struct ResetRequest {
    pub containers: Vec<String>,
    pub device_filters: Vec<String>,
}

/// Asks for the devices of a session, or of the whole cluster without one.
pub(crate) struct ListDevicesRequest {
    pub session_handle: String,
}

pub(crate) struct ListDevicesResponse {
    pub local: Vec<Arc<DeviceInfo>>,
    pub remote: Vec<Arc<DeviceInfo>>,
}

/// Asks a task for its devices and whether it takes links.
#[derive(Default)]
pub(crate) struct GetStatusRequest {
    /// The task measures its devices first. TensorFlow skips this field.
    pub measures_devices: bool,
}

pub(crate) struct GetStatusResponse {
    pub devices: Vec<DeviceMessage>,
    /// TensorFlow skips this field.
    pub link: Option<LinkOffer>,
}

/// How other tasks open links to a task.
#[derive(Clone, Debug)]
pub(crate) struct LinkOffer {
    /// The version of the link protocol.
    pub version: u32,
    pub token: Token,
    /// The name under which tasks on the same host find it; empty if they cannot.
    pub local_name: String,
}

/// A cluster as a client describes it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ClusterDescription {
    pub jobs: Vec<JobDescription>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct JobDescription {
    pub name: String,
    /// Addresses by task index.
    pub tasks: BTreeMap<i32, String>,
}

impl ClusterDescription {
    /// The job, the index and the address of each task.
    pub fn tasks(&self) -> impl Iterator<Item = (&str, i32, &str)> {
        self.jobs.iter().flat_map(|job| {
            job.tasks.iter().map(|(index, address)| (job.name.as_str(), *index, address.as_str()))
        })
    }
}

/// Opens the worker's half of a session.
pub(crate) struct CreateWorkerSessionRequest {
    pub session_handle: String,
    /// The cluster that the client describes, if it describes one.
    pub described: Option<DescribedCluster>,
    /// The name of the task in the session's cluster.
    pub job: String,
    pub task_index: i32,
    pub isolate_state: bool,
    /// The master that opens it: its task, and the incarnation of its first device.
    pub master_task: String,
    pub master_incarnation: i64,
}

/// A cluster that a client describes, and the client's session configuration.
pub(crate) struct DescribedCluster {
    pub cluster: ClusterDescription,
    pub config: SessionConfig,
}

pub(crate) struct DeleteWorkerSessionRequest {
    pub session_handle: String,
}

/// Registers a worker's part of a step.
pub(crate) struct RegisterGraphRequest {
    pub session_handle: String,
    pub create_worker_session_called: bool,
    pub graph: GraphMessage,
    /// How the worker makes the graph cheaper.
    pub rewrites: Rewrites,
    pub config: Option<SessionConfig>,
}

pub(crate) struct RegisterGraphResponse {
    pub graph_handle: String,
}

pub(crate) struct DeregisterGraphRequest {
    pub session_handle: String,
    pub create_worker_session_called: bool,
    pub graph_handle: String,
}

/// Reports that a step is over.
pub(crate) struct CleanupGraphRequest {
    pub step_id: i64,
}

/// Clears containers of variables and queues.
pub(crate) struct CleanupAllRequest {
    pub containers: Vec<String>,
}

/// Asks for a value of a step.
pub(crate) struct RecvTensorRequest {
    pub step_id: i64,
    pub rendezvous_key: String,
    /// Not 0, so that a retry is recognized.
    pub request_id: i64,
}

/// Asks for values of a collective.
pub(crate) struct RecvBufRequest {
    pub step_id: i64,
    pub key: String,
    pub num_bytes: i64,
    pub source_device: String,
    pub source_incarnation: u64,
    pub destination_device: String,
    pub request_id: i64,
}

pub(crate) struct RecvBufResponse {
    /// The values, in one or more pieces.
    pub chunks: Vec<Bytes>,
}

/// Joins a device to a collective group. Answered when all members have joined.
#[derive(Clone)]
pub(crate) struct CompleteGroupRequest {
    pub group_key: i32,
    pub group_size: i32,
    pub device_type: String,
    /// TensorFlow's number of the kind of collective.
    pub collective_type: i32,
    pub device: Option<DeviceMessage>,
    /// The rank that the client chose for it, if it did.
    pub rank: Option<i32>,
}

#[derive(Debug)]
pub(crate) struct CompleteGroupResponse {
    pub group_key: i32,
    pub group_size: i32,
    pub device_type: String,
    pub num_tasks: i32,
    /// The members, sorted by device.
    pub devices: Vec<DeviceMessage>,
    /// Their ranks; empty if the clients chose none.
    pub ranks: Vec<i32>,
}

/// Asks which member of a broadcast sends.
#[derive(Clone, Default)]
pub(crate) struct CompleteInstanceRequest {
    pub name: String,
    /// TensorFlow's number of the kind of collective.
    pub collective_type: i32,
    /// TensorFlow's number of the dtype.
    pub data_type: i32,
    pub group_key: i32,
    pub group_size: i32,
    pub instance_key: i32,
    pub device_type: String,
    pub device: String,
    pub is_source: bool,
    pub step_id: i64,
}

#[derive(Debug)]
pub(crate) struct CompleteInstanceResponse {
    pub instance_key: i32,
    /// -1 if there is no source.
    pub source_rank: i32,
}

/// Asks for the next step of graphs that several masters run together.
pub(crate) struct GetStepSequenceRequest {
    pub graph_keys: Vec<i64>,
}

pub(crate) struct GetStepSequenceResponse {
    /// Graph keys and their next steps.
    pub next_steps: Vec<(i64, i64)>,
}
