//! The mailbox of the engine's thread.

use super::collective::Collective;
use super::payload::Payload;
use super::request::{Decision, TensorRequest};
use super::timeline::Timeline;
use ferroflow_core::{Error, Result, err, panic_text};
use parking_lot::{Condvar, Mutex};
use std::any::Any;
use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::Instant;

/// Submissions and decisions for the engine's thread. Callers and the control connection fill it.
pub(super) struct Mailbox {
    pub state: Mutex<MailboxState>,
    pub changed: Condvar,
}

#[derive(Default)]
pub(super) struct MailboxState {
    pub submitted: Vec<Pending>,
    /// Decisions of the coordinator, with the time of arrival.
    pub decisions: Vec<(Instant, Decision)>,
    pub joins: Vec<Sender<Result<u32>>>,
    /// The ranks of the process sets.
    pub sets: Vec<Arc<[u32]>>,
    /// The new timeline, and a sender that is dropped once the timeline is in use.
    pub timeline: Option<(Option<Timeline>, Sender<()>)>,
    /// Names in flight. Submitting one of them again is an error.
    pub names: HashSet<(u16, String)>,
    pub leaving: bool,
    /// Why the engine takes no more submissions.
    pub ended: Option<Error>,
    pub failed: bool,
}

impl Mailbox {
    pub fn deliver(&self, decisions: Vec<Decision>) {
        let now = Instant::now();
        self.state.lock().decisions.extend(decisions.into_iter().map(|v| (now, v)));
        self.changed.notify_all();
    }
}

/// The values of a completed tensor and, for gathers, how many came from each rank.
pub(super) type TensorOutcome = Result<(Box<dyn Any + Send>, Vec<usize>)>;
/// Receives the outcome on the engine's thread. It must not block.
pub(super) type OnOutcome = Box<dyn FnOnce(TensorOutcome) + Send>;

/// A submission that is not complete yet.
pub(super) struct Pending {
    pub request: TensorRequest,
    pub payload: Box<dyn Payload>,
    /// For all-to-all: how many values go to each rank.
    pub splits: Vec<usize>,
    /// Elements that are not processed yet.
    pub left: u64,
    pub since: Instant,
    pub done: OnOutcome,
}

impl Pending {
    pub fn new(
        request: TensorRequest,
        payload: Box<dyn Payload>,
        what: Collective,
        done: OnOutcome,
    ) -> Pending {
        let splits = match what {
            Collective::AllToAll { splits } => splits,
            _ => Vec::new(),
        };
        let left = request.count();
        Pending { request, payload, splits, left, since: Instant::now(), done }
    }

    /// Returns the tensor to the caller. A panic in the caller's callback is logged and does not
    /// end the engine.
    pub fn end(self, result: Result<Vec<usize>>) {
        let Pending { request, payload, done, .. } = self;
        let outcome = result.map(|counts| (payload.into_any(), counts));
        if let Err(payload) = catch_unwind(AssertUnwindSafe(|| done(outcome))) {
            let who = format!("the callback of tensor {:?}", request.name);
            tracing::error!("{}", panicked(&who, &*payload));
        }
    }
}

/// The error for all waiters after a panic of the engine.
pub(super) fn panicked(who: &str, payload: &(dyn Any + Send)) -> Error {
    err!(Internal, "{who} panicked: {}", panic_text(payload))
}
