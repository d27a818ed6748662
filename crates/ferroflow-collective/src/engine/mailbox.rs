//! Where callers, the control connection and the engine's thread meet.

use super::collective::Collective;
use super::payload::Payload;
use super::request::{Decision, TensorRequest};
use super::timeline::Timeline;
use ferroflow_core::{Error, Result, err};
use parking_lot::{Condvar, Mutex};
use std::any::Any;
use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::Instant;

/// What callers, the control connection and the engine's thread share.
pub(super) struct Mailbox {
    pub state: Mutex<MailboxState>,
    pub changed: Condvar,
}

#[derive(Default)]
pub(super) struct MailboxState {
    pub submitted: Vec<Pending>,
    /// When each arrived, and what it is.
    pub decisions: Vec<(Instant, Decision)>,
    pub joins: Vec<Sender<Result<u32>>>,
    /// The ranks of the process sets.
    pub sets: Vec<Arc<[u32]>>,
    /// What is to be written to from now on, and who waits for that.
    pub timeline: Option<(Option<Timeline>, Sender<()>)>,
    /// Names in flight, so that one is not submitted twice.
    pub names: HashSet<(u16, String)>,
    pub leaving: bool,
    /// Why nothing is taken any more.
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

/// What a tensor has become: its values, and for gathers how many came from each rank.
pub(super) type TensorOutcome = Result<(Box<dyn Any + Send>, Vec<usize>)>;
/// Takes the outcome, on the engine's thread; it must not wait.
pub(super) type OnOutcome = Box<dyn FnOnce(TensorOutcome) + Send>;

/// A submission under way.
pub(super) struct Pending {
    pub request: TensorRequest,
    pub payload: Box<dyn Payload>,
    /// For all-to-all: how many values go to each rank.
    pub splits: Vec<usize>,
    /// Elements still to be done.
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

    /// Gives the tensor back. A caller that panics over it does so for itself.
    pub fn end(self, result: Result<Vec<usize>>) {
        let Pending { request, payload, done, .. } = self;
        let outcome = result.map(|counts| (payload.into_any(), counts));
        if let Err(payload) = catch_unwind(AssertUnwindSafe(|| done(outcome))) {
            let who = format!("whoever took tensor {:?}", request.name);
            tracing::error!("{}", panicked(&who, &*payload));
        }
    }
}

/// What a panic of ours is to everybody who waits: an error.
pub(super) fn panicked(who: &str, payload: &(dyn Any + Send)) -> Error {
    let text = payload.downcast_ref::<&str>().copied();
    let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    err!(Internal, "{who} panicked: {}", text.unwrap_or("without a word"))
}
