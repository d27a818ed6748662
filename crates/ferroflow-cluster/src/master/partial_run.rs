//! A step over several tasks that is fed and fetched in several calls.

use super::step::{PartitionedStep, RunCleanup, new_step_id};
use super::step_run::{Feeds, StepRequest, StepRun};
use crate::part::PartialCall;
use ferroflow_core::{CancelToken, InlineScope, OnCancel, RendezvousKey, Result, Tensor, err};
use ferroflow_graph::wire::step::ExecOptions;
use ferroflow_runtime::{DistributedPartialRun, RunOutput, SessionDone};
use parking_lot::Mutex;
use std::sync::Arc;

/// A running partial run.
pub(super) struct MasterPartialRun {
    step: Arc<PartitionedStep>,
    step_id: i64,
    /// Dropped when the run is over.
    cleanup: Mutex<Option<RunCleanup>>,
    /// Ends the running call.
    cancel: CancelToken,
}

impl MasterPartialRun {
    pub fn begin(step: Arc<PartitionedStep>, cancel: CancelToken) -> Arc<MasterPartialRun> {
        let step_id = new_step_id();
        let cleanup = Mutex::new(Some(RunCleanup::new(&step, step_id)));
        Arc::new(MasterPartialRun { step, step_id, cleanup, cancel })
    }

    fn request(
        &self,
        feeds: Vec<(String, Tensor)>,
        fetches: &[String],
        is_last: bool,
    ) -> Result<StepRequest> {
        if self.cleanup.lock().is_none() {
            return Err(err!(Aborted, "the partial run is over"));
        }
        let feeds = feeds.into_iter().map(|(name, t)| Ok((key(&self.step.feeds, &name)?, t)));
        let fetches = fetches.iter().map(|name| key(&self.step.fetches, name));
        Ok(StepRequest {
            step_id: self.step_id,
            feeds: Feeds::Some(feeds.collect::<Result<_>>()?),
            fetches: fetches.collect::<Result<_>>()?,
            exec: ExecOptions::default(),
            partial: Some(PartialCall { is_last }),
        })
    }
}

/// The key of a feed or fetch, out of all keys of that kind.
fn key(keys: &[RendezvousKey], name: &str) -> Result<RendezvousKey> {
    let is_its = |key: &&RendezvousKey| {
        let mut parts = key.0.rsplit(';').skip(1);
        parts.next() == Some(name)
    };
    keys.iter().find(is_its).cloned().ok_or_else(|| err!(Internal, "no key for {name}"))
}

impl DistributedPartialRun for MasterPartialRun {
    fn part(
        self: Arc<Self>,
        feeds: Vec<(String, Tensor)>,
        fetches: Vec<String>,
        is_last: bool,
        cancel: CancelToken,
        done: SessionDone,
    ) {
        let request = match self.request(feeds, &fetches, is_last) {
            Ok(request) => request,
            Err(e) => return done(Err(e)),
        };
        let to = cancel.clone();
        let with_all: OnCancel = self.cancel.on_cancel(move |e| to.cancel(e.clone()));
        let step = self.step.clone();
        let told = Box::new(move |result: Result<RunOutput>| {
            drop(with_all);
            if is_last || result.is_err() {
                drop(self.cleanup.lock().take());
            }
            done(result);
        });
        InlineScope::network(|scope| StepRun::start(step, request, &cancel, scope, told));
    }
}
