//! RunGraph: this task's part of a step, in one call or, for a partial run, in several.

use super::graph::RegisteredGraph;
use super::session::WorkerSession;
use super::step::{WorkerStep, WorkerSteps};
use crate::wire::step_stats;
use ferroflow_core::{
    CancelToken, Code, Error, Received, Rendezvous, RendezvousKey, Result, StepCtx, StepStats,
    Tensor, err,
};
use ferroflow_graph::wire::metadata::TaskRecord;
use ferroflow_graph::wire::step::{NamedTensor, RunGraphRequest, RunGraphResponse};
use ferroflow_runtime::Task;
use futures_util::future::join_all;
use std::sync::Arc;
use tokio::sync::{oneshot, watch};

/// One RunGraph.
pub(super) struct Run {
    pub task: Arc<Task>,
    pub steps: Arc<WorkerSteps>,
    pub session: Arc<WorkerSession>,
    pub graph: Arc<RegisteredGraph>,
    pub step: Arc<WorkerStep>,
}

/// A graph that runs: what ends it, and how it ended.
#[derive(Default)]
pub(super) struct Execution {
    cancel: CancelToken,
    ended: watch::Sender<Option<Result<()>>>,
}

impl Execution {
    async fn end(&self) -> Result<()> {
        let mut ended = self.ended.subscribe();
        let end = ended.wait_for(Option::is_some).await;
        end.ok().and_then(|end| end.clone()).unwrap_or_else(|| Err(gone()))
    }

    /// The error it ended with, if it has.
    fn error(&self) -> Option<Error> {
        self.ended.borrow().as_ref().and_then(|end| end.as_ref().err().cloned())
    }
}

impl Run {
    /// Feeds, runs, fetches. Dropping the future cancels the step.
    pub async fn run(self, request: RunGraphRequest) -> Result<RunGraphResponse> {
        let (execution, is_new) =
            if request.is_partial { self.step.partial() } else { (Arc::default(), true) };
        let mut caller = Caller::of(&self, &execution);
        let exec = request.exec;
        let stats = (exec.timeline || exec.costs).then(Arc::<StepStats>::default);
        let mut begun = self.feed(request.sends);
        if is_new && begun.is_ok() {
            begun = self.start(&execution, stats.clone());
        }
        if let (Err(e), true) = (&begun, is_new) {
            execution.ended.send_replace(Some(Err(e.clone())));
        }
        let fetched = match begun {
            Ok(()) => self.fetch(request.recv_keys, &execution).await,
            Err(e) => Err(e),
        };
        if !request.is_partial || request.is_last_partial_run {
            let ended = execution.end().await;
            caller.got_answer();
            ended?;
        }
        caller.got_answer();
        let recvs = fetched.map_err(|e| execution.error().unwrap_or(e))?;
        let partition_graphs =
            if request.exec.partition_graphs { self.graph.partition_graphs()? } else { vec![] };
        let cost_graph = stats.as_deref().filter(|_| exec.costs);
        let cost_graph = cost_graph.map(|stats| self.graph.cost_graph(stats));
        let timeline = stats.filter(|_| exec.timeline);
        let step_stats = timeline.map(|stats| step_stats(&stats));
        let status = None;
        let record = TaskRecord { step_stats, cost_graph, partition_graphs };
        Ok(RunGraphResponse { recvs, record, status })
    }

    /// Runs without feeds and fetches, until `cancel`. `done` hears the end on whichever thread that
    /// comes about.
    pub fn run_plain(self, cancel: &CancelToken, done: crate::link::PartDone) {
        let guard = match self.step.begin_run(cancel) {
            Ok(guard) => guard,
            Err(e) => return done(Err(e)),
        };
        let ctx = self.context(cancel, None);
        ferroflow_runtime::run(
            &self.graph.plan,
            Vec::new(),
            ctx,
            Box::new(move |result| {
                drop(guard);
                done(result.map(|_| ()));
            }),
        );
    }

    /// The same with feeds and fetches of this task's own master.
    pub fn run_own<'f>(
        self,
        mut feeds: impl Iterator<Item = (&'f RendezvousKey, Tensor)>,
        fetches: Arc<[RendezvousKey]>,
        cancel: &CancelToken,
        done: Box<dyn FnOnce(Result<Vec<Tensor>>) + Send>,
    ) {
        let step = self.step.clone();
        let fed = feeds.try_for_each(|(key, t)| step.rendezvous.send(key, Received::Live(t)));
        if let Err(e) = fed {
            return done(Err(e));
        }
        let fetched = move |ran: Result<()>| {
            let fetch = |key| step.fetched(key);
            done(ran.and_then(|()| fetches.iter().map(fetch).collect()));
        };
        self.run_plain(cancel, Box::new(fetched));
    }

    fn feed(&self, sends: Vec<NamedTensor>) -> Result<()> {
        for (key, tensor) in sends {
            self.step.rendezvous.send(&RendezvousKey(key.into()), Received::Live(tensor))?;
        }
        Ok(())
    }

    fn start(&self, execution: &Arc<Execution>, stats: Option<Arc<StepStats>>) -> Result<()> {
        let guard = self.step.begin_run(&execution.cancel)?;
        let ctx = self.context(&execution.cancel, stats);
        let execution = execution.clone();
        ferroflow_runtime::run(
            &self.graph.plan,
            Vec::new(),
            ctx,
            Box::new(move |result| {
                drop(guard);
                execution.ended.send_replace(Some(result.map(|_| ())));
            }),
        );
        Ok(())
    }

    fn context(&self, cancel: &CancelToken, stats: Option<Arc<StepStats>>) -> Arc<StepCtx> {
        Arc::new(StepCtx {
            step_id: self.step.id,
            rendezvous: self.step.rendezvous.clone(),
            resources: self.session.resources.clone(),
            step_resources: self.step.resources.clone(),
            cancel: cancel.clone(),
            threads: self.task.threads.clone(),
            collectives: self.graph.collectives.clone(),
            stats,
            depth: 0,
        })
    }

    /// Takes values out of the rendezvous as they come. A value that is not there when the graph
    /// has run will never be.
    async fn fetch(&self, keys: Vec<String>, execution: &Execution) -> Result<Vec<NamedTensor>> {
        if keys.is_empty() {
            return Ok(Vec::new());
        }
        let cancel = CancelToken::new();
        let waiting = keys.iter().map(|key| {
            let (tell, told) = oneshot::channel();
            let done = Box::new(move |received| drop(tell.send(received)));
            self.step.rendezvous.recv_local(&RendezvousKey(key.as_str().into()), &cancel, done);
            told
        });
        let mut waiting = join_all(waiting.collect::<Vec<_>>());
        let mut has_run = false;
        let received = tokio::select! {
            biased;
            all = &mut waiting => all,
            _ = execution.end() => {
                has_run = true;
                cancel.cancel(err!(Cancelled, "the graph has run"));
                waiting.await
            }
        };
        let tensor_of = |key: String, received: Result<Result<Received>, _>| match received
            .unwrap_or_else(|_| Err(gone()))
        {
            Ok(Received::Live(tensor)) => Ok((key, tensor)),
            Ok(Received::Dead) => Err(dead_fetch(self.step.id, &key)),
            Err(e) if has_run && e.code() == Code::Cancelled => Err(not_sent(&key)),
            Err(e) => Err(e),
        };
        keys.into_iter().zip(received).map(|(key, received)| tensor_of(key, received)).collect()
    }
}

impl WorkerStep {
    /// A value that the graph has sent to its master.
    fn fetched(&self, key: &RendezvousKey) -> Result<Tensor> {
        match self.rendezvous.take_local(key)? {
            Some(Received::Live(tensor)) => Ok(tensor),
            Some(Received::Dead) => Err(dead_fetch(self.id, &key.0)),
            None => Err(not_sent(&key.0)),
        }
    }
}

/// Whoever waits for the answer. When it goes away (the master gave up on the step, or died), so
/// does the step.
struct Caller {
    steps: Arc<WorkerSteps>,
    step: Arc<WorkerStep>,
    cancel: CancelToken,
    is_answered: bool,
}

impl Caller {
    fn of(run: &Run, execution: &Execution) -> Caller {
        Caller {
            steps: run.steps.clone(),
            step: run.step.clone(),
            cancel: execution.cancel.clone(),
            is_answered: false,
        }
    }

    fn got_answer(&mut self) {
        self.is_answered = true;
    }
}

impl Drop for Caller {
    fn drop(&mut self) {
        if self.is_answered {
            return;
        }
        self.cancel.cancel(err!(Cancelled, "Step {} was cancelled", self.step.id).derived());
        self.steps.abandon(&self.step);
    }
}

fn dead_fetch(step_id: i64, key: &str) -> Error {
    err!(
        Internal,
        "Failed to fetch outputs for step {step_id}. (Original error message: The tensor returned \
         for {key} was not valid.)"
    )
}

fn not_sent(key: &str) -> Error {
    err!(InvalidArgument, "the graph has run and did not send {key}")
}

fn gone() -> Error {
    err!(Internal, "a step ended without a result")
}
