//! Counts the memory of calls: their metadata, what has arrived of their messages, and answers that
//! their clients have not read yet.

use ferroflow_core::{Limit, Limits, Quota, QuotaShare, Result, memory_limit};
use http::HeaderMap;
use std::fmt::Display;
use std::sync::Arc;

/// The memory of a call besides its message and its metadata.
const CALL: usize = 1 << 10;
/// The memory of an entry of the metadata besides its name and its value.
const METADATA_ENTRY: usize = 128;

/// The memory of all calls of a server.
#[derive(Clone, Debug)]
pub struct ServerMemory {
    used: Arc<Quota>,
    /// The share that a connection may always use.
    granted: usize,
    of_connection: Limit,
}

impl ServerMemory {
    /// The memory that these limits allow.
    pub fn new(limits: &Limits) -> ServerMemory {
        let memory = memory_limit();
        let most = limits.messages.most.min(memory / 4 * 3);
        ServerMemory {
            used: Quota::new(Limit { most, ..limits.messages }),
            granted: (memory / 8 / limits.connections.most.max(1)).max(4 << 10),
            of_connection: limits.connection_memory,
        }
    }

    /// The memory of the calls of one more connection.
    pub fn connection(&self) -> ConnectionMemory {
        let used = Quota::new(self.of_connection);
        ConnectionMemory(Arc::new(Counted { server: self.clone(), used }))
    }
}

/// The memory of all calls of a connection.
///
/// HTTP/2 moves each answer several times, with its [`CallMemory`], so that is kept small.
#[derive(Clone, Debug)]
pub struct ConnectionMemory(Arc<Counted>);

#[derive(Debug)]
struct Counted {
    server: ServerMemory,
    used: Arc<Quota>,
}

impl ConnectionMemory {
    /// Counts a call with this metadata. An error, which names `who`, if a limit does not allow it.
    pub fn call(&self, metadata: &HeaderMap, who: impl Display) -> Result<CallMemory> {
        let entry = |(name, value): (&http::HeaderName, &http::HeaderValue)| {
            name.as_str().len() + value.len() + METADATA_ENTRY
        };
        self.take(CALL + metadata.iter().map(entry).sum::<usize>(), who)
    }

    /// Counts an answer of so many bytes.
    pub fn answer(&self, bytes: usize, who: impl Display) -> Result<CallMemory> {
        self.take(CALL.saturating_add(bytes), who)
    }

    fn take(&self, bytes: usize, who: impl Display) -> Result<CallMemory> {
        let mut memory = CallMemory {
            of_connection: self.0.used.share(),
            of_server: self.0.server.used.share(),
            connection: self.clone(),
        };
        memory.add(bytes, who)?;
        Ok(memory)
    }
}

/// The memory of a call or of an answer, until this is dropped.
#[derive(Debug)]
pub struct CallMemory {
    connection: ConnectionMemory,
    of_connection: QuotaShare,
    of_server: QuotaShare,
}

impl CallMemory {
    /// Counts `bytes` more. An error, which names `who`, if a limit does not allow it.
    pub fn add(&mut self, bytes: usize, who: impl Display) -> Result<()> {
        self.of_connection.add(bytes, &who)?;
        let Counted { server, used } = &*self.connection.0;
        match self.of_server.add(bytes, who) {
            Err(e) if used.used() > server.granted => Err(e),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_that_holds_little_gets_in_when_others_hold_all() {
        let messages = Limit { most: 1 << 20, ..Limits::DEFAULT.messages };
        let server = ServerMemory::new(&Limits { messages, ..Limits::DEFAULT });
        let (greedy, other) = (server.connection(), server.connection());
        let held = greedy.answer(1_000_000, "greedy").unwrap();
        let e = greedy.answer(100_000, "greedy").unwrap_err();
        let text = e.message();
        assert!(
            text.starts_with("greedy asked") && text.contains("--max-message-memory"),
            "{text}"
        );
        assert!(other.answer(2000, "other").is_ok());
        assert!(other.answer(server.granted + 100_000, "other").is_err());
        drop(held);
        assert!(greedy.answer(1_000_000, "greedy").is_ok());
        assert_eq!(server.used.used(), 0);
    }

    #[test]
    fn many_short_entries_of_metadata_count() {
        let mut metadata = HeaderMap::new();
        for _ in 0..1000 {
            metadata.append("a", http::HeaderValue::from_static("b"));
        }
        let connection = ServerMemory::new(&Limits::DEFAULT).connection();
        let _call = connection.call(&metadata, "client").unwrap();
        assert!(connection.0.used.used() > 100_000);
    }
}
