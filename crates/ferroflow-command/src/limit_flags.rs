//! The flags for the limits of a server, for its files, and for the durability of its writes.

use crate::units::parse_bytes;
use ferroflow::Result;
use ferroflow::cluster::limits::{Limits, files, set_limits, set_memory_limit};
use std::path::PathBuf;
use std::time::Duration;

const DEFAULT: Limits = Limits::DEFAULT;

/// What clients of a server may use. A number of bytes may end with KB, MB, GB, KiB, MiB or GiB.
#[derive(clap::Args)]
#[command(next_help_heading = "Limits")]
pub struct LimitFlags {
    /// Memory for tensors, strings and messages of all sessions [default: nine tenths of what the
    /// machine or the control group has]
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    max_memory: Option<usize>,
    /// Memory of one session on this task [default: as much as all sessions]
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    max_session_memory: Option<usize>,
    /// Bytes of messages of one connection that are being received or handled, or that its client
    /// has not read
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes, default_value = "4GiB")]
    max_connection_memory: usize,
    /// The same for all connections together [default: three quarters of --max-memory]
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    max_message_memory: Option<usize>,
    /// Bytes of one message
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes,
          default_value_t = DEFAULT.message.most)]
    max_message: usize,
    /// Open connections
    #[arg(long, value_name = "N", default_value_t = DEFAULT.connections.most)]
    max_connections: usize,
    /// Concurrent calls on one connection
    #[arg(long, value_name = "N", default_value_t = DEFAULT.calls.most)]
    max_calls: usize,
    /// Open sessions
    #[arg(long, value_name = "N", default_value_t = DEFAULT.sessions.most)]
    max_sessions: usize,
    /// Graphs, callables and kinds of steps of one session
    #[arg(long, value_name = "N", default_value_t = DEFAULT.graphs.most)]
    max_graphs: usize,
    /// Nodes of one graph
    #[arg(long, value_name = "N", default_value_t = DEFAULT.nodes.most)]
    max_nodes: usize,
    /// Steps of one session that run or wait
    #[arg(long, value_name = "N", default_value_t = DEFAULT.steps.most)]
    max_steps: usize,
    /// Bytes of one string
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes, default_value = "2GiB")]
    max_string: usize,
    /// Bytes of one record or line of a file
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes, default_value = "1GiB")]
    max_record: usize,
    /// Bytes of one decompressed value
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes, default_value = "2GiB")]
    max_decompressed: usize,
    /// Decompressed bytes for each compressed one, in values of more than 64 MiB
    #[arg(long, value_name = "N", default_value_t = DEFAULT.ratio.most)]
    max_compression_ratio: usize,
    /// Pixels of one image, all frames together
    #[arg(long, value_name = "N", default_value_t = DEFAULT.pixels.most)]
    max_pixels: usize,
    /// Seconds after which a session without a call or a running step ends; 0 for never
    #[arg(long, value_name = "S", default_value_t = DEFAULT.session_idle.as_secs())]
    session_idle: u64,
    /// Folder that ops, checkpoints and summaries may use; may be repeated [default: any]
    #[arg(long, value_name = "DIR")]
    file_root: Vec<PathBuf>,
    /// Do not wait for the disk when checkpoints are written; a power failure may lose them
    #[arg(long)]
    no_fsync: bool,
}

impl LimitFlags {
    /// Sets the limits of this process.
    pub fn apply(&self) -> Result<()> {
        if let Some(bytes) = self.max_memory {
            set_memory_limit(bytes);
        }
        if !self.file_root.is_empty() {
            files::confine_to(&self.file_root)?;
        }
        files::set_durable(!self.no_fsync);
        set_limits(self.limits());
        Ok(())
    }

    /// Whether ops are confined to some folders.
    pub fn confines_files(&self) -> bool {
        !self.file_root.is_empty()
    }

    fn limits(&self) -> Limits {
        let mut limits = DEFAULT;
        limits.session_memory.most = self.max_session_memory.unwrap_or(usize::MAX);
        limits.connection_memory.most = self.max_connection_memory;
        limits.messages.most = self.max_message_memory.unwrap_or(usize::MAX);
        limits.message.most = self.max_message;
        limits.connections.most = self.max_connections;
        limits.calls.most = self.max_calls;
        limits.sessions.most = self.max_sessions;
        limits.graphs.most = self.max_graphs;
        limits.nodes.most = self.max_nodes;
        limits.steps.most = self.max_steps;
        limits.string.most = self.max_string;
        limits.record.most = self.max_record;
        limits.decompressed.most = self.max_decompressed;
        limits.ratio.most = self.max_compression_ratio;
        limits.pixels.most = self.max_pixels;
        limits.session_idle = Duration::from_secs(self.session_idle);
        limits
    }
}
