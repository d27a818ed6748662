//! What the chief does beside its own training: step after step is aggregated until the session ends.

use super::SyncTraining;
use crate::session::GraphSession;
use ferroflow_core::{Error, Result, err};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread::{Builder, JoinHandle};

/// The thread that aggregates.
pub(crate) struct Chief {
    thread: JoinHandle<()>,
    failure: Arc<Mutex<Option<Error>>>,
}

impl Chief {
    pub fn start(session: &GraphSession, sync: &SyncTraining) -> Result<Chief> {
        let (session, sync) = (session.clone(), sync.clone());
        let failure = Arc::new(Mutex::new(None));
        let told = failure.clone();
        let body = move || {
            *told.lock() = aggregate(&session, &sync).err();
            // Nobody gets a token any more: the step that waits for one ends, and says why.
            let _ = session.close();
        };
        let thread = Builder::new().name("ff-sync".into()).spawn(body).map_err(no_thread)?;
        Ok(Chief { thread, failure })
    }

    /// Why it has ended, if it has.
    pub fn failure(&self) -> Option<Error> {
        self.failure.lock().take()
    }

    /// Waits for its end, which the session's end brings.
    pub fn join(self) {
        let _ = self.thread.join();
    }
}

fn no_thread(e: std::io::Error) -> Error {
    err!(ResourceExhausted, "cannot start a thread: {e}")
}

/// Takes turns until one fails, and watches that none waits for replicas for ever.
fn aggregate(session: &GraphSession, sync: &SyncTraining) -> Result<()> {
    let turns = &AtomicU64::new(0);
    let (is_over, over) = channel::<()>();
    let watch = move || {
        let mut watch = sync.watch();
        let mut seen = 0;
        while over.recv_timeout(watch.interval()) == Err(RecvTimeoutError::Timeout) {
            // A step that cannot be looked at has failed, or will.
            let is_the_same = seen == turns.load(Ordering::Relaxed);
            if is_the_same && let Err(e) = watch.look(session) {
                tracing::debug!("cannot look after synchronous training: {e}");
            }
            seen = turns.load(Ordering::Relaxed);
        }
    };
    std::thread::scope(|scope| {
        Builder::new().name("ff-watch".into()).spawn_scoped(scope, watch).map_err(no_thread)?;
        let error = loop {
            match sync.turn(session) {
                Ok(()) => turns.fetch_add(1, Ordering::Relaxed),
                Err(e) => break e,
            };
        };
        drop(is_over);
        Err(error)
    })
}
