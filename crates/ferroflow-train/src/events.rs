//! Event files for TensorBoard.

use crate::graph::Graph;
use crate::wire::{self, Event, EventBody};
use ferroflow_core::{Error, Result, Tensor, ensure, err, files};
use ferroflow_graph::RunMetadata;
use ferroflow_op_kit::record_log::RecordLog;
use ferroflow_op_kit::tfrecord::masked_crc;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// Writes one event file.
///
/// ```
/// let dir = std::env::temp_dir().join(format!("ferroflow-events-{}", std::process::id()));
/// let mut writer = ferroflow_train::EventWriter::create(&dir)?;
/// writer.scalar("loss", 0.5, 1)?;
/// writer.flush()?;
/// let events = ferroflow_train::read_events(writer.path())?;
/// assert_eq!(events.len(), 2);
/// # std::fs::remove_dir_all(&dir).unwrap();
/// # Ok::<(), ferroflow_core::Error>(())
/// ```
pub struct EventWriter {
    path: PathBuf,
    log: RecordLog,
    /// Whether the last write failed, which was logged.
    is_failing: bool,
}

/// Events are written when there are this many bytes of them.
const WRITE_FROM: usize = 8 << 10;

fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |d| d.as_secs_f64())
}

impl EventWriter {
    /// Creates an event file in `dir`, and `dir` if it does not exist.
    pub fn create(dir: impl AsRef<Path>) -> Result<EventWriter> {
        let dir = dir.as_ref();
        files::create_dir_all(dir).map_err(|e| file_error(dir, &e))?;
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        let host = host.trim();
        let host = if host.is_empty() { "localhost" } else { host };
        // A number in the name: two writers may start in the same second.
        let (seconds, salt) = (now() as u64, fastrand::u32(..));
        let name =
            format!("events.out.tfevents.{seconds:010}.{host}.{}.{salt}", std::process::id());
        let path = dir.join(name);
        let file = files::create_new(&path).map_err(|e| file_error(&path, &e))?;
        let log = RecordLog::new(path.display().to_string(), file);
        let mut writer = EventWriter { path, log, is_failing: false };
        writer.add(0, EventBody::Version)?;
        writer.flush()?;
        Ok(writer)
    }

    /// The path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes a number.
    pub fn scalar(&mut self, tag: &str, value: f32, step: i64) -> Result<()> {
        self.add(step, EventBody::Scalar(tag, value))
    }

    /// Writes the output of a summary op.
    pub fn summary(&mut self, summary: &Tensor, step: i64) -> Result<()> {
        self.add(step, EventBody::Summary(summary.scalar_string()?))
    }

    /// Writes a text, which TensorBoard shows as Markdown.
    pub fn text(&mut self, tag: &str, text: &str, step: i64) -> Result<()> {
        self.add(step, EventBody::Text(tag, text))
    }

    /// Writes the trace of a step, which TensorBoard shows in the graph.
    pub fn trace(&mut self, tag: &str, metadata: &RunMetadata, step: i64) -> Result<()> {
        self.add(step, EventBody::Trace(tag, metadata.bytes().clone()))
    }

    /// Writes the graph.
    pub fn graph(&mut self, graph: &Graph) -> Result<()> {
        self.add(0, EventBody::Graph(graph.to_graph_def_bytes()?))
    }

    /// Writes that training starts at this step. TensorBoard drops what an earlier run wrote for
    /// later steps.
    pub fn started(&mut self, step: i64) -> Result<()> {
        self.add(step, EventBody::Started)
    }

    /// Writes that a checkpoint was saved.
    pub fn checkpoint(&mut self, path: &str, step: i64) -> Result<()> {
        self.add(step, EventBody::Checkpoint(path))
    }

    /// Flushes all events to the file. After an error, such as a full disk, the file has only whole
    /// events, and the others are tried again with the next ones.
    pub fn flush(&mut self) -> Result<()> {
        self.log.flush()
    }

    /// Adds an event. A full disk does not fail it: training is worth more than its events.
    fn add(&mut self, step: i64, body: EventBody<'_>) -> Result<()> {
        self.log.add(&wire::encode_event(now(), step, body)?);
        if self.log.pending() < WRITE_FROM {
            return Ok(());
        }
        let flushed = self.log.flush();
        if let Err(e) = &flushed
            && !self.is_failing
        {
            tracing::warn!("cannot write events: {}", e.message());
        }
        self.is_failing = flushed.is_err();
        Ok(())
    }
}

impl Drop for EventWriter {
    fn drop(&mut self) {
        // Reported before, if it failed then too.
        let _ = self.log.flush();
    }
}

/// All events of a file. A truncated event, as a killed writer leaves it, ends the list.
pub fn read_events(path: impl AsRef<Path>) -> Result<Vec<Event>> {
    let path = path.as_ref();
    let mut bytes = Vec::new();
    let mut file = files::open(path).map_err(|e| file_error(path, &e))?;
    file.read_to_end(&mut bytes).map_err(|e| file_error(path, &e))?;
    parse_events(path, &bytes)
}

/// The events in the bytes of a file.
pub(crate) fn parse_events(path: &Path, bytes: &[u8]) -> Result<Vec<Event>> {
    let mut events = Vec::new();
    let mut rest = bytes;
    while let Some((header, tail)) = rest.split_first_chunk::<12>() {
        let (length, sum) = header.split_at(8);
        let sum = u32::from_le_bytes(sum.try_into().unwrap_or_default());
        ensure!(masked_crc(length) == sum, DataLoss, "{}: a record is corrupted", path.display());
        let length = u64::from_le_bytes(length.try_into().unwrap_or_default());
        let Ok(length) = usize::try_from(length) else { break };
        let Some((record, tail)) = tail.split_at_checked(length) else { break };
        let Some((sum, tail)) = tail.split_first_chunk::<4>() else { break };
        ensure!(
            masked_crc(record) == u32::from_le_bytes(*sum),
            DataLoss,
            "{}: a record is corrupted",
            path.display()
        );
        events.push(wire::decode_event(record)?);
        rest = tail;
    }
    Ok(events)
}

pub(crate) fn file_error(path: &Path, error: &std::io::Error) -> Error {
    match error.kind() {
        std::io::ErrorKind::NotFound => err!(NotFound, "{}: {error}", path.display()),
        std::io::ErrorKind::AlreadyExists => err!(AlreadyExists, "{}: {error}", path.display()),
        std::io::ErrorKind::PermissionDenied => {
            err!(PermissionDenied, "{}: {error}", path.display())
        }
        _ => err!(Internal, "{}: {error}", path.display()),
    }
}
