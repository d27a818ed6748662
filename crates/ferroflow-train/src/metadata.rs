//! What was recorded of a step.

use crate::wire;
use bytes::Bytes;
use ferroflow_core::Result;

/// What was recorded of a step that was asked to be traced; empty otherwise.
#[derive(Clone, Debug, Default)]
pub struct RunMetadata {
    bytes: Bytes,
}

/// When a node ran.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeTiming {
    pub name: String,
    /// `name = Op(input, input)`.
    pub label: String,
    pub device: String,
    pub thread: u32,
    /// Microseconds since 1970.
    pub start_micros: i64,
    pub micros: i64,
}

impl RunMetadata {
    pub(crate) fn new(bytes: Bytes) -> RunMetadata {
        RunMetadata { bytes }
    }

    /// The serialized `RunMetadata`.
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// Whether nothing was recorded.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// What ran where, and for how long.
    pub fn nodes(&self) -> Result<Vec<NodeTiming>> {
        wire::node_timings(self.bytes.clone())
    }

    /// The step as a picture: JSON that `chrome://tracing` and Perfetto open, a row for each device
    /// and thread.
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
