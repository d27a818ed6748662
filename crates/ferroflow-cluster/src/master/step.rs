//! A step over several tasks: its parts are registered once, then run together.

use super::direct::DirectRun;
use super::outcome::StepOutcome;
use super::parts::MasterPartialRun;
use super::peer::Peer;
use super::slow::SlowSteps;
use crate::link::gathering;
use crate::poll_inline::poll_inline;
use crate::wire::SessionConfig;
use ferroflow_core::{CancelToken, DeviceInfo, RendezvousKey, Result, Tensor, err};
use ferroflow_graph::passes::{self, CostModel, Pruned};
use ferroflow_graph::wire::metadata::measure;
use ferroflow_graph::wire::step::{ExecOptions, RunGraphRequest, RunGraphResponse};
use ferroflow_graph::{Catalog, GraphDef, RunMetadata};
use ferroflow_runtime::{
    Distribute, DistributedPartialRun, DistributedStep, RunOptions, RunOutput, SessionDone,
};
use futures_util::StreamExt;
use futures_util::future::join_all;
use futures_util::stream::FuturesUnordered;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::{OnceCell, oneshot};

/// The tasks of a session, and what its steps need to know of it.
pub(super) struct Tasks {
    pub handle: String,
    pub config: SessionConfig,
    pub catalog: Arc<Catalog>,
    /// The master's own first.
    pub peers: Vec<Arc<Peer>>,
    /// Of all tasks; where feeds enter and fetches leave comes first.
    pub devices: Vec<Arc<DeviceInfo>>,
    /// The session is closed: its tasks forget its graphs without being told of each.
    pub is_closed: AtomicBool,
    pub slow: Arc<SlowSteps>,
    pub io: Handle,
}

impl Tasks {
    /// What decides which receives can wait: an estimate where the client asks for that, else only
    /// what is beyond doubt.
    fn recv_model(&self) -> CostModel {
        match self.config.enable_recv_scheduling {
            true => CostModel::default(),
            false => CostModel::cautious(),
        }
    }
}

/// Prepares the steps of a session.
pub(super) struct StepPartitioner(pub Arc<Tasks>);

impl Distribute for StepPartitioner {
    fn prepare(
        &self,
        step: Pruned,
        feeds: &[String],
        fetches: &[String],
    ) -> Result<Arc<dyn DistributedStep>> {
        let tasks = &self.0;
        let (device, catalog) = (&tasks.devices[0], &tasks.catalog);
        let graph = passes::transfer_ends(step, feeds, fetches, device, catalog)?;
        let mut parts = Vec::new();
        for part in passes::partition(graph, &tasks.devices, catalog, &tasks.recv_model())? {
            let peer = tasks.peers.iter().find(|p| p.task == part.task);
            let peer = peer.ok_or_else(|| err!(Internal, "no task {}", part.task))?.clone();
            parts.push(StepPart { peer, graph: Arc::new(part.graph) });
        }
        // What goes over the wire is sent before this thread sets out to compute.
        parts.sort_by_key(|part| part.peer.is_here());
        let key = |name: &String| {
            RendezvousKey::new(&device.text, device.incarnation, &device.text, name, (0, 0))
        };
        Ok(Arc::new(PartitionedStep {
            feeds: feeds.iter().map(key).collect(),
            fetches: fetches.iter().map(key).collect::<Vec<_>>().into(),
            parts,
            tasks: tasks.clone(),
            registered: OnceCell::new(),
        }))
    }
}

/// A step that spans tasks.
pub(super) struct PartitionedStep {
    pub tasks: Arc<Tasks>,
    pub parts: Vec<StepPart>,
    /// In order.
    pub feeds: Vec<RendezvousKey>,
    pub fetches: Arc<[RendezvousKey]>,
    /// The handle of each part.
    registered: OnceCell<Vec<String>>,
}

/// What one task runs.
pub(super) struct StepPart {
    pub peer: Arc<Peer>,
    graph: Arc<GraphDef>,
}

impl DistributedStep for PartitionedStep {
    fn run(
        self: Arc<Self>,
        feeds: Vec<Tensor>,
        options: &RunOptions,
        cancel: CancelToken,
        done: SessionDone,
    ) {
        let exec = ExecOptions {
            costs: options.costs,
            timeline: options.trace,
            partition_graphs: options.output_partition_graphs,
            ..ExecOptions::default()
        };
        let id = options.step_id;
        if let (true, Some(graphs)) = (exec == ExecOptions::default(), self.registered.get())
            && let Some(ways) = self.parts.iter().map(|part| part.peer.direct()).collect()
        {
            let run = RunId::new(&self, id);
            // The calls of other tasks go with the first values for them.
            return gathering(|| {
                DirectRun::begin(self.clone(), graphs, ways, feeds, run, &cancel, done);
            });
        }
        let io = self.tasks.io.clone();
        unless_cancelled(&io, cancel, done, async move { self.step(feeds, exec, id).await });
    }

    fn begin(self: Arc<Self>, cancel: CancelToken) -> Arc<dyn DistributedPartialRun> {
        MasterPartialRun::begin(self, cancel)
    }
}

impl PartitionedStep {
    async fn step(
        &self,
        feeds: Vec<Tensor>,
        exec: ExecOptions,
        step_id: Option<i64>,
    ) -> Result<RunOutput> {
        let graphs = self.register().await?;
        let run = RunId::new(self, step_id);
        let keys = self.feeds.iter().map(|key| key.0.to_string());
        let mut sends = keys.zip(feeds).collect::<Vec<_>>();
        let requests = self.parts.iter().zip(graphs).map(|(part, graph)| {
            let is_here = part.peer.is_here();
            RunGraphRequest {
                sends: if is_here { std::mem::take(&mut sends) } else { Vec::new() },
                recv_keys: if is_here { self.fetch_keys() } else { Vec::new() },
                exec,
                ..run.request(graph)
            }
        });
        let answers = self.run_parts(requests.collect()).await?;
        self.output(answers)
    }

    fn fetch_keys(&self) -> Vec<String> {
        self.fetches.iter().map(|key| key.0.to_string()).collect()
    }

    /// Registers the parts, the first time. A failure is not remembered: tasks come back.
    pub async fn register(&self) -> Result<&[String]> {
        let register = || async {
            let tasks = &self.tasks;
            let all = self.parts.iter().map(|part| async move {
                let registered = part.peer.register(&tasks.handle, &part.graph, &tasks.config);
                registered.await
            });
            let results = join_all(all).await;
            if results.iter().all(Result::is_ok) {
                return results.into_iter().collect();
            }
            let mut outcome = StepOutcome::default();
            for (part, result) in self.parts.iter().zip(results) {
                match result {
                    Ok(graph) => {
                        let (peer, handle) = (part.peer.clone(), tasks.handle.clone());
                        tasks.io.spawn(async move { peer.deregister(&handle, &graph).await });
                    }
                    Err(e) => outcome.failed(&part.peer.task, e, std::iter::empty()),
                }
            }
            Err(outcome.into_error().unwrap_or_else(|| err!(Internal, "no graph was registered")))
        };
        Ok(self.registered.get_or_try_init(register).await?)
    }

    /// Runs one request on each part, all at the same time. The first cause of a failure ends it.
    pub async fn run_parts(&self, requests: Vec<RunGraphRequest>) -> Result<Vec<RunGraphResponse>> {
        let mut answers: Vec<RunGraphResponse> = Vec::new();
        answers.resize_with(requests.len(), RunGraphResponse::default);
        let mut running: FuturesUnordered<_> = requests
            .into_iter()
            .zip(&self.parts)
            .enumerate()
            .map(|(i, (request, part))| async move { (i, part.peer.run(request).await) })
            .collect();
        let mut outcome = StepOutcome::default();
        loop {
            let next = match outcome.patience() {
                None => running.next().await,
                Some(Duration::ZERO) => break,
                Some(patience) => {
                    tokio::time::timeout(patience, running.next()).await.unwrap_or_default()
                }
            };
            match next {
                Some((i, Ok(answer))) => answers[i] = answer,
                Some((i, Err(e))) => {
                    let tasks = self.parts.iter().map(|part| part.peer.task.as_str());
                    outcome.failed(&self.parts[i].peer.task, e, tasks);
                }
                None => break,
            }
        }
        outcome.into_error().map_or(Ok(answers), Err)
    }

    /// What the client gets, out of the answers of all parts.
    pub fn output(&self, answers: Vec<RunGraphResponse>) -> Result<RunOutput> {
        let mut output = RunOutput::default();
        let mut records = Vec::with_capacity(answers.len());
        for answer in answers {
            output.tensors.extend(answer.recvs.into_iter().map(|(_, tensor)| tensor));
            if let Some(stats) = &answer.record.step_stats {
                measure(stats, &mut output.measured)?;
            }
            records.push(answer.record);
        }
        output.metadata = RunMetadata::of_tasks(&records);
        Ok(output)
    }
}

impl Drop for PartitionedStep {
    /// Nobody will run it again: it was placed anew, released, or fed to its end.
    fn drop(&mut self) {
        let Some(graphs) = self.registered.take() else { return };
        if self.tasks.is_closed.load(Ordering::Acquire) {
            return;
        }
        let (parts, tasks) = (std::mem::take(&mut self.parts), self.tasks.clone());
        self.tasks.io.spawn(async move {
            let forget = |(part, graph): (&StepPart, &String)| {
                let (peer, session, graph) =
                    (part.peer.clone(), tasks.handle.clone(), graph.clone());
                async move { peer.deregister(&session, &graph).await }
            };
            join_all(parts.iter().zip(&graphs).map(forget)).await;
        });
    }
}

/// One run of a step; when it is dropped, the tasks are told that it is over.
pub(super) struct RunId {
    pub step_id: i64,
    tasks: Arc<Tasks>,
    peers: Vec<Arc<Peer>>,
}

impl RunId {
    pub fn new(step: &PartitionedStep, step_id: Option<i64>) -> RunId {
        RunId {
            // Unique across all masters that share workers, hence random. TensorFlow's range.
            step_id: step_id.unwrap_or_else(|| fastrand::i64(0..1 << 57)),
            tasks: step.tasks.clone(),
            peers: step.parts.iter().map(|part| part.peer.clone()).collect(),
        }
    }

    /// Asks a task to run `graph` in this step.
    pub fn request(&self, graph: &str) -> RunGraphRequest {
        RunGraphRequest {
            graph_handle: graph.to_string(),
            step_id: self.step_id,
            session_handle: self.tasks.handle.clone(),
            store_errors_in_response_body: true,
            create_worker_session_called: true,
            request_id: fastrand::i64(1..),
            ..RunGraphRequest::default()
        }
    }
}

impl Drop for RunId {
    fn drop(&mut self) {
        let (mut peers, id) = (std::mem::take(&mut self.peers), self.step_id);
        peers.retain(|peer| !peer.clean_up_in_passing(id));
        if peers.is_empty() {
            return;
        }
        self.tasks.io.spawn(async move {
            join_all(peers.iter().map(|peer| peer.clean_up(id))).await;
        });
    }
}

/// Runs `work` until it is done or cancelled.
pub(super) fn unless_cancelled(
    io: &Handle,
    cancel: CancelToken,
    done: SessionDone,
    work: impl Future<Output = Result<RunOutput>> + Send + 'static,
) {
    let (stop, stopped) = oneshot::channel();
    let on_cancel = cancel.on_cancel(move |e| drop(stop.send(e.clone())));
    let working = async move {
        let result = tokio::select! {
            biased;
            Ok(error) = stopped => Err(error),
            result = work => result,
        };
        drop(on_cancel);
        done(result);
    };
    // The calls of other tasks go with the first values for them.
    gathering(|| poll_inline(io, working));
}
