//! A step over several tasks that is fed and fetched in parts.

use super::step::{PartitionedStep, RunId, unless_cancelled};
use ferroflow_core::{CancelToken, OnCancel, RendezvousKey, Result, Tensor, err};
use ferroflow_graph::wire::step::RunGraphRequest;
use ferroflow_runtime::{DistributedPartialRun, RunOutput, SessionDone};
use parking_lot::Mutex;
use std::sync::Arc;

/// A partial run under way.
pub(super) struct MasterPartialRun {
    step: Arc<PartitionedStep>,
    /// Gone when the run is over.
    run: Mutex<Option<Arc<RunId>>>,
    /// Ends whatever part is under way.
    cancel: CancelToken,
}

impl MasterPartialRun {
    pub fn begin(step: Arc<PartitionedStep>, cancel: CancelToken) -> Arc<MasterPartialRun> {
        let run = Mutex::new(Some(Arc::new(RunId::new(&step, None))));
        Arc::new(MasterPartialRun { step, run, cancel })
    }

    /// The key of a feed or fetch, out of all keys of that kind.
    fn key(keys: &[RendezvousKey], name: &str) -> Result<String> {
        let is_its = |key: &&RendezvousKey| {
            let mut parts = key.0.rsplit(';').skip(1);
            parts.next() == Some(name)
        };
        let found = keys.iter().find(is_its).map(|key| key.0.to_string());
        found.ok_or_else(|| err!(Internal, "no key for {name}"))
    }

    async fn run(
        &self,
        feeds: Vec<(String, Tensor)>,
        fetches: Vec<String>,
        is_last: bool,
    ) -> Result<RunOutput> {
        let run = self.run.lock().clone();
        let run = run.ok_or_else(|| err!(Aborted, "the partial run is over"))?;
        let graphs = self.step.register().await?;
        let sends = feeds
            .into_iter()
            .map(|(name, t)| Ok((MasterPartialRun::key(&self.step.feeds, &name)?, t)));
        let mut sends = sends.collect::<Result<Vec<_>>>()?;
        let keys = fetches.iter().map(|name| MasterPartialRun::key(&self.step.fetches, name));
        let mut keys = keys.collect::<Result<Vec<_>>>()?;
        let requests = self.step.parts.iter().zip(graphs).map(|(part, graph)| {
            let is_here = part.peer.is_here();
            RunGraphRequest {
                sends: if is_here { std::mem::take(&mut sends) } else { Vec::new() },
                recv_keys: if is_here { std::mem::take(&mut keys) } else { Vec::new() },
                is_partial: true,
                is_last_partial_run: is_last,
                ..run.request(graph)
            }
        });
        let answers = self.step.run_parts(requests.collect()).await?;
        self.step.output(answers)
    }
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
        let to = cancel.clone();
        let with_all: OnCancel = self.cancel.on_cancel(move |e| to.cancel(e.clone()));
        let io = self.step.tasks.io.clone();
        let me = self.clone();
        let told = Box::new(move |result: Result<RunOutput>| {
            drop(with_all);
            if is_last || result.is_err() {
                drop(me.run.lock().take());
            }
            done(result);
        });
        unless_cancelled(&io, cancel, told, async move { self.run(feeds, fetches, is_last).await });
    }
}
