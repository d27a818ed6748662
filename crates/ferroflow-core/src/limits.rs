//! The limits of a process: what one client, one session and all of them together may use. Each has
//! a flag of `ferroflow server`. A request over a limit fails with `ResourceExhausted`. The error
//! names the limit, the flag and the client.

use crate::{Error, Result, err};
use parking_lot::RwLock;
use std::fmt::Display;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// One limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// The most that is allowed.
    pub most: usize,
    /// What is counted.
    pub what: &'static str,
    /// The flag that sets it.
    pub flag: &'static str,
}

impl Limit {
    const fn new(most: usize, what: &'static str, flag: &'static str) -> Limit {
        Limit { most, what, flag }
    }

    /// An error if `wanted` is over the limit. `who` asked for it.
    pub fn admit(&self, wanted: usize, who: impl Display) -> Result<()> {
        if wanted <= self.most { Ok(()) } else { Err(self.exceeded(wanted, who)) }
    }

    /// The error of a request for `wanted` by `who`.
    pub fn exceeded(&self, wanted: usize, who: impl Display) -> Error {
        let Limit { most, what, flag } = self;
        err!(ResourceExhausted, "{who} asked for {wanted} {what}; the limit is {most} ({flag})")
    }
}

/// All limits of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of live tensors, strings and received messages of one session.
    pub session_memory: Limit,
    /// Bytes of messages of one connection that are being received or handled, or that its client
    /// has not read.
    pub connection_memory: Limit,
    /// Bytes of messages of all connections that are being received or handled, or that their
    /// clients have not read. At most three quarters of the memory that the process may use.
    pub messages: Limit,
    /// Bytes of one message.
    pub message: Limit,
    /// Open connections of a server.
    pub connections: Limit,
    /// Calls under way on one connection.
    pub calls: Limit,
    /// Open sessions of a task.
    pub sessions: Limit,
    /// Registered graphs and callables of one session.
    pub graphs: Limit,
    /// Nodes of one graph.
    pub nodes: Limit,
    /// Steps of one session that run or wait.
    pub steps: Limit,
    /// Bytes of one string.
    pub string: Limit,
    /// Bytes of one record or line of a file.
    pub record: Limit,
    /// Bytes of one decompressed value.
    pub decompressed: Limit,
    /// Decompressed bytes for each compressed one, from [`Limits::RATIO_FROM`] on.
    pub ratio: Limit,
    /// Pixels of one image, all frames together.
    pub pixels: Limit,
    /// A session without a call or a running step ends after this; never if it is zero.
    pub session_idle: Duration,
}

impl Limits {
    /// Smaller decompressed values may have any ratio.
    pub const RATIO_FROM: usize = 64 << 20;

    /// The limits without any flag.
    pub const DEFAULT: Limits = Limits {
        session_memory: Limit::new(usize::MAX, "bytes of session memory", "--max-session-memory"),
        connection_memory: Limit::new(4 << 30, "bytes of messages", "--max-connection-memory"),
        messages: Limit::new(
            usize::MAX,
            "bytes of messages of all clients",
            "--max-message-memory",
        ),
        message: Limit::new(i32::MAX as usize, "bytes in one message", "--max-message"),
        connections: Limit::new(4096, "connections", "--max-connections"),
        calls: Limit::new(16 << 10, "concurrent calls on one connection", "--max-calls"),
        sessions: Limit::new(1024, "sessions", "--max-sessions"),
        graphs: Limit::new(16 << 10, "graphs of one session", "--max-graphs"),
        nodes: Limit::new(8 << 20, "nodes in one graph", "--max-nodes"),
        steps: Limit::new(16 << 10, "pending steps of one session", "--max-steps"),
        string: Limit::new(2 << 30, "bytes in one string", "--max-string"),
        record: Limit::new(1 << 30, "bytes in one record", "--max-record"),
        decompressed: Limit::new(2 << 30, "decompressed bytes", "--max-decompressed"),
        ratio: Limit::new(250, "decompressed bytes per byte", "--max-compression-ratio"),
        pixels: Limit::new(1 << 28, "pixels in one image", "--max-pixels"),
        session_idle: Duration::from_secs(24 * 3600),
    };

    /// An error if `compressed` bytes may not become `decompressed` ones. `who` reads them.
    pub fn admit_decompressed(
        &self,
        compressed: usize,
        decompressed: usize,
        who: impl Display,
    ) -> Result<()> {
        self.decompressed.admit(decompressed, &who)?;
        if decompressed > Limits::RATIO_FROM {
            self.ratio.admit(decompressed / compressed.max(1), &who)?;
        }
        Ok(())
    }
}

impl Default for Limits {
    fn default() -> Limits {
        Limits::DEFAULT
    }
}

static CURRENT: RwLock<Limits> = RwLock::new(Limits::DEFAULT);

/// Sets the limits of this process.
pub fn set_limits(limits: Limits) {
    *CURRENT.write() = limits;
}

/// The limits of this process.
pub fn limits() -> Limits {
    *CURRENT.read()
}

/// Counts what is in use against a limit.
#[derive(Debug)]
pub struct Quota {
    used: AtomicUsize,
    limit: Limit,
}

impl Quota {
    /// Nothing is in use.
    pub fn new(limit: Limit) -> Arc<Quota> {
        Arc::new(Quota { used: AtomicUsize::new(0), limit })
    }

    /// How much is in use.
    pub fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    /// Takes nothing yet. Grows by [`QuotaShare::add`].
    pub fn share(self: &Arc<Quota>) -> QuotaShare {
        QuotaShare { quota: self.clone(), taken: 0 }
    }

    /// Takes `n` until the result is dropped. An error if the limit does not allow it.
    pub fn take(self: &Arc<Quota>, n: usize, who: impl Display) -> Result<QuotaShare> {
        let mut share = self.share();
        share.add(n, who)?;
        Ok(share)
    }
}

/// A part of a quota that is in use until this is dropped.
#[derive(Debug)]
pub struct QuotaShare {
    quota: Arc<Quota>,
    taken: usize,
}

impl QuotaShare {
    /// Takes `n` more. An error if the limit does not allow it; then nothing more is taken.
    pub fn add(&mut self, n: usize, who: impl Display) -> Result<()> {
        let Quota { used, limit } = &*self.quota;
        let before = used.fetch_add(n, Ordering::Relaxed);
        let after = before.saturating_add(n);
        if after > limit.most {
            used.fetch_sub(n, Ordering::Relaxed);
            return Err(limit.exceeded(after, who));
        }
        self.taken += n;
        Ok(())
    }
}

impl Drop for QuotaShare {
    fn drop(&mut self) {
        self.quota.used.fetch_sub(self.taken, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Code;

    #[test]
    fn an_error_names_the_limit_the_flag_and_the_one_who_asked() {
        let quota = Quota::new(Limit { most: 10, ..Limits::DEFAULT.sessions });
        let held = quota.take(8, "a").unwrap();
        let e = quota.take(3, "client 7").unwrap_err();
        assert_eq!(e.code(), Code::ResourceExhausted);
        let text = "client 7 asked for 11 sessions; the limit is 10 (--max-sessions)";
        assert_eq!(e.message(), text);
        assert_eq!(quota.used(), 8);
        drop(held);
        assert!(quota.take(10, "client 7").is_ok());
        assert_eq!(quota.used(), 0);
    }

    #[test]
    fn a_small_value_may_have_any_ratio_and_a_large_one_may_not() {
        let limits = Limits::DEFAULT;
        assert!(limits.admit_decompressed(1, 1 << 20, "x").is_ok());
        assert!(limits.admit_decompressed(10 << 20, 100 << 20, "x").is_ok());
        let e = limits.admit_decompressed(100, 100 << 20, "DecodeCompressed").unwrap_err();
        assert!(e.message().contains("--max-compression-ratio"), "{e}");
        assert!(limits.admit_decompressed(1 << 30, 3 << 30, "x").is_err());
    }
}
