//! What the tasks of a step recorded of it.

use crate::passes::MeasuredCosts;
use crate::wire::metadata;
use bytes::Bytes;
use ferroflow_core::Result;

/// The records of the tasks for one step. Empty unless the client asked for a trace, costs or
/// graphs.
///
/// It stays serialized until it is read, because most traces are only passed on or written to a
/// file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunMetadata {
    encoded: Bytes,
}

/// When a node ran.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeTiming {
    /// The node's name.
    pub name: String,
    /// `name = Op(input, input)`.
    pub label: String,
    /// The full name of the device it ran on.
    pub device: String,
    /// The number of the thread it ran on.
    pub thread: u32,
    /// When it started, in microseconds since 1970.
    pub start_micros: i64,
    /// How long it ran.
    pub micros: i64,
}

impl RunMetadata {
    /// Takes a serialized `RunMetadata`. It is checked when it is read.
    pub fn from_bytes(encoded: impl Into<Bytes>) -> RunMetadata {
        RunMetadata { encoded: encoded.into() }
    }

    /// The serialized `RunMetadata`, which TensorFlow's tools open.
    pub fn bytes(&self) -> &Bytes {
        &self.encoded
    }

    /// Whether nothing was recorded.
    pub fn is_empty(&self) -> bool {
        self.encoded.is_empty()
    }

    /// Which nodes ran where, when, and for how long.
    pub fn nodes(&self) -> Result<Vec<NodeTiming>> {
        metadata::node_timings(self.encoded.clone())
    }

    /// The mean time and the output bytes of each node.
    pub fn measured(&self) -> Result<MeasuredCosts> {
        metadata::measured(self.encoded.clone())
    }

    /// The step as JSON that `chrome://tracing` and Perfetto open: a row for each device and
    /// thread.
    pub fn timeline(&self) -> Result<String> {
        let nodes = self.nodes()?;
        let mut devices: Vec<&str> = nodes.iter().map(|n| n.device.as_str()).collect();
        devices.sort_unstable();
        devices.dedup();
        let mut events = Vec::with_capacity(nodes.len() + devices.len());
        for (pid, device) in devices.iter().enumerate() {
            events.push(format!(
                "{{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":{pid},\"args\":{{\"name\":{}}}}}",
                json(device)
            ));
        }
        for n in &nodes {
            let pid = devices.iter().position(|d| *d == n.device).unwrap_or(0);
            events.push(format!(
                "{{\"ph\":\"X\",\"cat\":\"Op\",\"name\":{},\"pid\":{pid},\"tid\":{},\"ts\":{},\"dur\":{},\
                 \"args\":{{\"op\":{}}}}}",
                json(&n.name),
                n.thread,
                n.start_micros,
                n.micros,
                json(&n.label)
            ));
        }
        Ok(format!("{{\"traceEvents\":[\n{}\n]}}\n", events.join(",\n")))
    }
}

/// A text as JSON writes it.
fn json(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
