//! The chief's aggregation thread: aggregates step after step until the session ends.

use super::SyncTraining;
use crate::session::Session;
use ferroflow_core::{Error, Result, err};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

/// The aggregation thread.
pub(crate) struct Chief {
    thread: JoinHandle<()>,
    failure: Arc<Mutex<Option<Error>>>,
}

impl Chief {
    pub fn start(session: &Session, sync: &SyncTraining) -> Result<Chief> {
        let (session, sync) = (session.clone(), sync.clone());
        let failure = Arc::new(Mutex::new(None));
        let told = failure.clone();
        let body = move || {
            *told.lock() = aggregate(&session, &sync).err();
            // No more tokens will come: end the step that waits for one, with the cause.
            let _ = session.close();
        };
        let thread = Builder::new().name("ff-sync".into()).spawn(body).map_err(no_thread)?;
        Ok(Chief { thread, failure })
    }

    /// The error that ended it, if any.
    pub fn failure(&self) -> Option<Error> {
        self.failure.lock().take()
    }

    /// Waits for its end; closing the session ends it.
    pub fn join(self) {
        let _ = self.thread.join();
    }
}

fn no_thread(e: std::io::Error) -> Error {
    err!(ResourceExhausted, "cannot start a thread: {e}")
}

/// Consecutive failures of the watch before it gives up.
const BLIND: usize = 5;

/// Runs iterations until one fails, with a watch that resolves stalled steps.
fn aggregate(session: &Session, sync: &SyncTraining) -> Result<()> {
    let turns = &Turns::default();
    let (is_over, over) = channel::<()>();
    let watch = move || {
        let mut watch = sync.watch();
        let (mut seen, mut failed) = (0, 0);
        while over.recv_timeout(watch.interval()) == Err(RecvTimeoutError::Timeout) {
            let done = turns.done.load(Ordering::Relaxed);
            if std::mem::replace(&mut seen, done) != done {
                continue;
            }
            match watch.look(session, turns.usual(watch.interval())) {
                Ok(()) => failed = 0,
                Err(e) => {
                    tracing::warn!("cannot look after synchronous training: {e}");
                    failed += 1;
                }
            }
            if failed == BLIND {
                // Without the watch, a stall would go unnoticed.
                let _ = session.close();
            }
        }
    };
    std::thread::scope(|scope| {
        Builder::new().name("ff-watch".into()).spawn_scoped(scope, watch).map_err(no_thread)?;
        let error = loop {
            let began = Instant::now();
            match sync.turn(session) {
                Ok(()) => turns.count(began.elapsed()),
                Err(e) => break e,
            }
        };
        drop(is_over);
        Err(error)
    })
}

/// State that the chief shares with its watch.
#[derive(Default)]
struct Turns {
    done: AtomicU64,
    last_ms: AtomicU64,
}

impl Turns {
    fn count(&self, time: Duration) {
        self.last_ms.store(time.as_millis() as u64, Ordering::Relaxed);
        self.done.fetch_add(1, Ordering::Relaxed);
    }

    /// Duration of a step; unknown before the first one, which takes longer than others.
    fn usual(&self, interval: Duration) -> Duration {
        match self.done.load(Ordering::Relaxed) {
            0 => interval.saturating_mul(8),
            _ => Duration::from_millis(self.last_ms.load(Ordering::Relaxed)),
        }
    }
}
