//! The calls that carry tensors: RunStep, RunCallable, RunGraph and RecvTensor. They are read from
//! chunks and written as segments. Prost handles the other calls, which are small.
//!
//! If a message holds a tensor field twice, the later one counts; prost would merge the two. No
//! peer writes such messages.

use super::chunks::{FieldKey, MessageReader};
use super::metadata::TaskRecord;
use super::segments::{SegmentWriter, Segments};
use crate::run_metadata::RunMetadata;
use bytes::Bytes;
use ferroflow_core::{Code, DType, Error, Result, Shape, Tensor, ensure};
use ferroflow_proto::tensorflow as pb;
use prost::Message;

/// A tensor and its name, which is an endpoint or a rendezvous key.
pub type NamedTensor = (String, Tensor);

/// A tensor of a message that is not in the message but in a block of shared memory.
#[derive(Clone, Debug, PartialEq)]
pub struct BlockTensor {
    /// Its place among all tensors of the message.
    pub position: usize,
    /// An endpoint.
    pub name: String,
    /// Its dtype, which is plain.
    pub dtype: DType,
    /// Its shape.
    pub shape: Shape,
    /// The offset of its bytes in the memory.
    pub offset: u64,
    /// The number of its bytes.
    pub len: usize,
    /// The number of the block.
    pub block: u32,
}

/// Asks a master to run a step.
#[derive(Clone, Debug, Default)]
pub struct RunStepRequest {
    /// The session.
    pub session_handle: String,
    /// Values that replace tensors.
    pub feeds: Vec<NamedTensor>,
    /// The tensors to return.
    pub fetches: Vec<String>,
    /// The nodes to run without returning their values.
    pub targets: Vec<String>,
    /// How to run the step.
    pub options: RunStepOptions,
    /// The partial run that this is a part of; empty if it is a whole step.
    pub partial_run_handle: String,
    /// Whether a failure is reported in the response instead of failing the call.
    pub store_errors_in_response_body: bool,
    /// Not 0, so that a repeated request is noticed.
    pub request_id: i64,
    /// Feeds in shared memory. TensorFlow has no such feeds.
    pub block_feeds: Vec<BlockTensor>,
    /// Whether the client reads large fetches in shared memory.
    pub takes_blocks: bool,
}

/// The trace level at which a client asks for everything that software can record.
pub const FULL_TRACE: i32 = 3;

/// How a step is run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunStepOptions {
    /// From 0, nothing, to 3, everything.
    pub trace_level: i32,
    /// The timeout in milliseconds; 0 means none.
    pub timeout_ms: i64,
    /// The thread pool of the session to use.
    pub inter_op_thread_pool: i32,
    /// Whether to return the graphs as they ran.
    pub output_partition_graphs: bool,
    /// Whether to list allocations if memory runs out.
    pub report_tensor_allocations_upon_oom: bool,
    /// The key of a graph that runs collectives; otherwise 0.
    pub collective_graph_key: i64,
}

/// The result of a step.
#[derive(Clone, Debug, Default)]
pub struct RunStepResponse {
    /// The fetched tensors under the names of the request.
    pub tensors: Vec<NamedTensor>,
    /// The records of the step.
    pub metadata: Option<RunMetadata>,
    /// The failure, if the request asked for it to be reported here.
    pub status: Option<Error>,
    /// Fetches in shared memory, if the request allows that.
    pub block_tensors: Vec<BlockTensor>,
}

/// Asks a master to run a callable, a step that was described before.
#[derive(Clone, Debug, Default)]
pub struct RunCallableRequest {
    /// The session.
    pub session_handle: String,
    /// The callable.
    pub handle: i64,
    /// Its feeds, in order.
    pub feeds: Vec<Tensor>,
    /// Not 0, so that a repeated request is noticed.
    pub request_id: i64,
}

/// The result of a callable.
#[derive(Clone, Debug, Default)]
pub struct RunCallableResponse {
    /// Its fetches, in order.
    pub fetches: Vec<Tensor>,
    /// The records of the step.
    pub metadata: Option<RunMetadata>,
}

/// Asks a worker to run its part of a step.
#[derive(Clone, Debug, Default)]
pub struct RunGraphRequest {
    /// The registered graph.
    pub graph_handle: String,
    /// The number of the step, the same on all tasks.
    pub step_id: i64,
    /// Feeds by rendezvous key.
    pub sends: Vec<NamedTensor>,
    /// Fetches by rendezvous key.
    pub recv_keys: Vec<String>,
    /// What to record.
    pub exec: ExecOptions,
    /// Whether this is a part of a partial run.
    pub is_partial: bool,
    /// Whether it is the last part.
    pub is_last_partial_run: bool,
    /// The session.
    pub session_handle: String,
    /// Whether a failure is reported in the response instead of failing the call.
    pub store_errors_in_response_body: bool,
    /// Whether the master opened the session on this worker.
    pub create_worker_session_called: bool,
    /// Not 0, so that a repeated request is noticed.
    pub request_id: i64,
}

/// What a worker records of a step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExecOptions {
    /// The costs of nodes.
    pub costs: bool,
    /// When each node ran.
    pub timeline: bool,
    /// The graph as it ran.
    pub partition_graphs: bool,
    /// Allocations if memory runs out.
    pub allocations_upon_oom: bool,
}

/// The result of a worker's part of a step.
#[derive(Clone, Debug, Default)]
pub struct RunGraphResponse {
    /// The fetched tensors by rendezvous key.
    pub recvs: Vec<NamedTensor>,
    /// What the task recorded of its part.
    pub record: TaskRecord,
    /// The failure, if the request asked for it to be reported here.
    pub status: Option<Error>,
}

/// The value that another task asked for.
#[derive(Clone, Debug, Default)]
pub struct RecvTensorResponse {
    /// Ignored if dead, and may be missing then.
    pub tensor: Option<Tensor>,
    /// Whether the value is dead.
    pub is_dead: bool,
    /// Microseconds since 1970.
    pub send_start_micros: i64,
    /// A serialized `Any`.
    pub transport_options: Option<Bytes>,
    /// Whether the sender wants an acknowledgement.
    pub require_ack: bool,
}

impl RunStepRequest {
    /// The fields that lead to its tensors.
    pub const TENSORS: &[u32] = &[2, 2];

    /// Reads the message.
    pub fn decode(message: impl Into<MessageReader>) -> Result<RunStepRequest> {
        let mut m = RunStepRequest::default();
        fields(message.into(), |r, key| {
            match key.field {
                1 => m.session_handle = r.string(key)?,
                2 => m.feeds.push(r.named_tensor(key)?),
                3 => m.fetches.push(r.string(key)?),
                4 => m.targets.push(r.string(key)?),
                5 => m.options = RunStepOptions::read(r, key)?,
                6 => m.partial_run_handle = r.string(key)?,
                7 => m.store_errors_in_response_body = r.bool(key)?,
                8 => m.request_id = r.int(key)?,
                BLOCK_TENSORS => m.block_feeds.push(BlockTensor::read(r, key)?),
                TAKES_BLOCKS => m.takes_blocks = r.bool(key)?,
                _ => r.skip(key)?,
            }
            Ok(())
        })?;
        Ok(m)
    }

    /// Writes the message.
    pub fn encode(&self) -> Result<Segments> {
        let mut w = SegmentWriter::new();
        w.string(1, &self.session_handle);
        named_tensors(&mut w, 2, &self.feeds)?;
        self.fetches.iter().for_each(|name| w.item(3, name));
        self.targets.iter().for_each(|name| w.item(4, name));
        w.bytes(5, self.options.to_proto().encode_to_vec().into());
        w.string(6, &self.partial_run_handle);
        w.bool(7, self.store_errors_in_response_body);
        w.int(8, self.request_id);
        self.block_feeds.iter().for_each(|feed| feed.write(&mut w));
        w.bool(TAKES_BLOCKS, self.takes_blocks);
        Ok(w.finish())
    }
}

/// Fields of our own, which TensorFlow skips.
const BLOCK_TENSORS: u32 = 7001;
const TAKES_BLOCKS: u32 = 7002;

impl BlockTensor {
    fn read(r: &mut MessageReader, key: FieldKey) -> Result<BlockTensor> {
        let mut p = pb::FerroflowBlockTensor::default();
        r.merge(key, &mut p)?;
        let dtype = DType::from_number(p.dtype)?;
        ensure!(dtype.size().is_some(), InvalidArgument, "a {dtype} tensor has no plain bytes");
        Ok(BlockTensor {
            position: p.position as usize,
            name: p.name,
            dtype,
            shape: Shape::from_dims(&p.dim)?,
            offset: p.offset,
            len: usize::try_from(p.len).unwrap_or(usize::MAX),
            block: p.block,
        })
    }

    fn write(&self, w: &mut SegmentWriter) {
        let p = pb::FerroflowBlockTensor {
            position: self.position as u32,
            name: self.name.clone(),
            dtype: self.dtype.number(),
            dim: self.shape.iter().map(|d| *d as i64).collect(),
            offset: self.offset,
            len: self.len as u64,
            block: self.block,
        };
        w.bytes(BLOCK_TENSORS, p.encode_to_vec().into());
    }
}

impl RunStepOptions {
    /// Converts from a `RunOptions` message.
    pub fn from_proto(p: &pb::RunOptions) -> RunStepOptions {
        RunStepOptions {
            trace_level: p.trace_level,
            timeout_ms: p.timeout_in_ms,
            inter_op_thread_pool: p.inter_op_thread_pool,
            output_partition_graphs: p.output_partition_graphs,
            report_tensor_allocations_upon_oom: p.report_tensor_allocations_upon_oom,
            collective_graph_key: p.experimental.as_ref().map_or(0, |e| e.collective_graph_key),
        }
    }

    /// Converts to a `RunOptions` message.
    pub fn to_proto(&self) -> pb::RunOptions {
        let experimental = pb::run_options::Experimental {
            collective_graph_key: self.collective_graph_key,
            ..Default::default()
        };
        pb::RunOptions {
            trace_level: self.trace_level,
            timeout_in_ms: self.timeout_ms,
            inter_op_thread_pool: self.inter_op_thread_pool,
            output_partition_graphs: self.output_partition_graphs,
            report_tensor_allocations_upon_oom: self.report_tensor_allocations_upon_oom,
            experimental: Some(experimental).filter(|e| e.collective_graph_key != 0),
            ..Default::default()
        }
    }

    fn read(r: &mut MessageReader, key: FieldKey) -> Result<RunStepOptions> {
        let mut p = pb::RunOptions::default();
        r.merge(key, &mut p)?;
        Ok(RunStepOptions::from_proto(&p))
    }
}

impl RunStepResponse {
    /// Reads the message.
    pub fn decode(message: impl Into<MessageReader>) -> Result<RunStepResponse> {
        let mut m = RunStepResponse::default();
        let mut status = Status::default();
        fields(message.into(), |r, key| {
            match key.field {
                1 => m.tensors.push(r.named_tensor(key)?),
                2 => m.metadata = Some(RunMetadata::from_bytes(r.bytes(key)?)),
                3 => status.code = r.int(key)?,
                4 => status.message = r.string(key)?,
                BLOCK_TENSORS => m.block_tensors.push(BlockTensor::read(r, key)?),
                _ => r.skip(key)?,
            }
            Ok(())
        })?;
        m.status = status.into_error();
        Ok(m)
    }

    /// Writes the message.
    pub fn encode(&self) -> Result<Segments> {
        let mut w = SegmentWriter::new();
        named_tensors(&mut w, 1, &self.tensors)?;
        self.block_tensors.iter().for_each(|tensor| tensor.write(&mut w));
        self.metadata.iter().for_each(|m| w.bytes(2, m.bytes().clone()));
        write_status(&mut w, 3, &self.status);
        Ok(w.finish())
    }
}

impl RunCallableRequest {
    /// The fields that lead to its tensors.
    pub const TENSORS: &[u32] = &[3];

    /// Reads the message.
    pub fn decode(message: impl Into<MessageReader>) -> Result<RunCallableRequest> {
        let mut m = RunCallableRequest::default();
        fields(message.into(), |r, key| {
            match key.field {
                1 => m.session_handle = r.string(key)?,
                2 => m.handle = r.int(key)?,
                3 => m.feeds.push(r.tensor(key)?),
                4 => m.request_id = r.int(key)?,
                _ => r.skip(key)?,
            }
            Ok(())
        })?;
        Ok(m)
    }

    /// Writes the message.
    pub fn encode(&self) -> Result<Segments> {
        let mut w = SegmentWriter::new();
        w.string(1, &self.session_handle);
        w.int(2, self.handle);
        self.feeds.iter().try_for_each(|t| w.tensor(3, t))?;
        w.int(4, self.request_id);
        Ok(w.finish())
    }
}

impl RunCallableResponse {
    /// Reads the message.
    pub fn decode(message: impl Into<MessageReader>) -> Result<RunCallableResponse> {
        let mut m = RunCallableResponse::default();
        fields(message.into(), |r, key| {
            match key.field {
                1 => m.fetches.push(r.tensor(key)?),
                2 => m.metadata = Some(RunMetadata::from_bytes(r.bytes(key)?)),
                _ => r.skip(key)?,
            }
            Ok(())
        })?;
        Ok(m)
    }

    /// Writes the message.
    pub fn encode(&self) -> Result<Segments> {
        let mut w = SegmentWriter::new();
        self.fetches.iter().try_for_each(|t| w.tensor(1, t))?;
        self.metadata.iter().for_each(|m| w.bytes(2, m.bytes().clone()));
        Ok(w.finish())
    }
}

impl RunGraphRequest {
    /// The fields that lead to its tensors.
    pub const TENSORS: &[u32] = &[3, 2];

    /// Reads the message.
    pub fn decode(message: impl Into<MessageReader>) -> Result<RunGraphRequest> {
        let mut m = RunGraphRequest::default();
        fields(message.into(), |r, key| {
            match key.field {
                1 => m.graph_handle = r.string(key)?,
                2 => m.step_id = r.int(key)?,
                3 => m.sends.push(r.named_tensor(key)?),
                4 => m.recv_keys.push(r.string(key)?),
                5 => m.exec = ExecOptions::read(r, key)?,
                6 => m.is_partial = r.bool(key)?,
                7 => m.is_last_partial_run = r.bool(key)?,
                8 => m.session_handle = r.string(key)?,
                9 => m.store_errors_in_response_body = r.bool(key)?,
                10 => m.create_worker_session_called = r.bool(key)?,
                11 => m.request_id = r.int(key)?,
                _ => r.skip(key)?,
            }
            Ok(())
        })?;
        Ok(m)
    }

    /// Writes the message.
    pub fn encode(&self) -> Result<Segments> {
        let mut w = SegmentWriter::new();
        w.string(1, &self.graph_handle);
        w.int(2, self.step_id);
        named_tensors(&mut w, 3, &self.sends)?;
        self.recv_keys.iter().for_each(|key| w.item(4, key));
        w.bytes(5, self.exec.to_proto().encode_to_vec().into());
        w.bool(6, self.is_partial);
        w.bool(7, self.is_last_partial_run);
        w.string(8, &self.session_handle);
        w.bool(9, self.store_errors_in_response_body);
        w.bool(10, self.create_worker_session_called);
        w.int(11, self.request_id);
        Ok(w.finish())
    }
}

impl ExecOptions {
    fn to_proto(self) -> pb::ExecutorOpts {
        pb::ExecutorOpts {
            record_costs: self.costs,
            record_timeline: self.timeline,
            record_partition_graphs: self.partition_graphs,
            report_tensor_allocations_upon_oom: self.allocations_upon_oom,
        }
    }

    fn read(r: &mut MessageReader, key: FieldKey) -> Result<ExecOptions> {
        let mut p = pb::ExecutorOpts::default();
        r.merge(key, &mut p)?;
        Ok(ExecOptions {
            costs: p.record_costs,
            timeline: p.record_timeline,
            partition_graphs: p.record_partition_graphs,
            allocations_upon_oom: p.report_tensor_allocations_upon_oom,
        })
    }
}

impl RunGraphResponse {
    /// Reads the message.
    pub fn decode(message: impl Into<MessageReader>) -> Result<RunGraphResponse> {
        let mut m = RunGraphResponse::default();
        let mut status = Status::default();
        fields(message.into(), |r, key| {
            match key.field {
                1 => m.recvs.push(r.named_tensor(key)?),
                2 => m.record.step_stats = Some(r.bytes(key)?),
                3 => m.record.cost_graph = Some(r.bytes(key)?),
                4 => m.record.partition_graphs.push(r.bytes(key)?),
                5 => status.code = r.int(key)?,
                6 => status.message = r.string(key)?,
                _ => r.skip(key)?,
            }
            Ok(())
        })?;
        m.status = status.into_error();
        Ok(m)
    }

    /// Writes the message.
    pub fn encode(&self) -> Result<Segments> {
        let mut w = SegmentWriter::new();
        named_tensors(&mut w, 1, &self.recvs)?;
        self.record.step_stats.iter().for_each(|s| w.bytes(2, s.clone()));
        self.record.cost_graph.iter().for_each(|g| w.bytes(3, g.clone()));
        self.record.partition_graphs.iter().for_each(|g| w.bytes(4, g.clone()));
        write_status(&mut w, 5, &self.status);
        Ok(w.finish())
    }
}

impl RecvTensorResponse {
    /// The field with its tensor.
    pub const TENSORS: &[u32] = &[1];

    /// Reads the message.
    pub fn decode(message: impl Into<MessageReader>) -> Result<RecvTensorResponse> {
        let mut m = RecvTensorResponse::default();
        fields(message.into(), |r, key| {
            match key.field {
                1 => m.tensor = Some(r.tensor(key)?),
                2 => m.is_dead = r.bool(key)?,
                3 => m.send_start_micros = r.int(key)?,
                4 => m.transport_options = Some(r.bytes(key)?),
                5 => m.require_ack = r.bool(key)?,
                _ => r.skip(key)?,
            }
            Ok(())
        })?;
        Ok(m)
    }

    /// Writes the message.
    pub fn encode(&self) -> Result<Segments> {
        let mut w = SegmentWriter::new();
        self.tensor.iter().try_for_each(|t| w.tensor(1, t))?;
        w.bool(2, self.is_dead);
        w.int(3, self.send_start_micros);
        self.transport_options.iter().for_each(|o| w.bytes(4, o.clone()));
        w.bool(5, self.require_ack);
        Ok(w.finish())
    }
}

fn fields(
    mut reader: MessageReader,
    mut read: impl FnMut(&mut MessageReader, FieldKey) -> Result<()>,
) -> Result<()> {
    while let Some(key) = reader.key()? {
        read(&mut reader, key)?;
    }
    Ok(())
}

fn named_tensors(w: &mut SegmentWriter, field: u32, tensors: &[NamedTensor]) -> Result<()> {
    tensors.iter().try_for_each(|(name, tensor)| w.named_tensor(field, name, tensor))
}

#[derive(Default)]
struct Status {
    code: i64,
    message: String,
}

impl Status {
    fn into_error(self) -> Option<Error> {
        let code = Code::from_number(i32::try_from(self.code).unwrap_or(-1));
        (code != Code::Ok).then(|| Error::new(code, self.message))
    }
}

/// Writes an error: its code in field `field`, its message in the next one.
fn write_status(w: &mut SegmentWriter, field: u32, status: &Option<Error>) {
    if let Some(e) = status {
        w.int(field, e.code() as i64);
        w.string(field + 1, e.message());
    }
}
