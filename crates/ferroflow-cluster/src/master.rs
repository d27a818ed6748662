//! The master of a task: the sessions clients open on it, and the steps they run, on its own task
//! or on several.

mod discover;
mod graph_view;
mod members;
mod outcome;
mod partial_run;
mod peer;
mod session;
mod shared_step;
mod slow;
mod step;
mod step_run;
#[cfg(test)]
mod tests;

use crate::channels::Channels;
use crate::client_blocks::{SharedBlocks, not_mapped};
use crate::dedup::RecentIds;
use crate::drain::leaving;
use crate::identity_quotas::IdentityQuotas;
use crate::link::Links;
use crate::listen::AUDIT;
use crate::messages::{
    CreateSessionRequest, ExtendSessionRequest, MakeCallableRequest, PartialRunSetupRequest,
    ReleaseCallableRequest, ShareBlocksRequest, ShareBlocksResponse,
};
use crate::spec::ClusterSpec;
use crate::threads::off_network;
use crate::wire;
use crate::worker::Worker;
use discover::{Asked, discover};
use ferroflow_core::inline::may_convert_inline;
use ferroflow_core::{
    CancelToken, DeviceInfo, Error, HashMap, Limits, Result, Tensor, ensure, err,
};
use ferroflow_graph::RunMetadata;
use ferroflow_graph::wire::step::{
    FULL_TRACE, RunCallableRequest, RunCallableResponse, RunStepRequest, RunStepResponse,
};
use ferroflow_identity::PeerIdentity;
use ferroflow_metrics::{StepEnd, TaskMetrics};
use ferroflow_runtime::{Placement, RunOptions, RunOutput, RunRequest, Task, TaskSession};
use futures_util::future::join_all;
use members::Members;
use parking_lot::{Mutex, RwLock};
use peer::Peer;
use session::MasterSession;
use shared_step::SharedStep;
use std::mem::take;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Semaphore, oneshot};

type Devices = Vec<Arc<DeviceInfo>>;

/// How long listing the devices of a cluster waits for tasks that do not answer.
const LIST_LIMIT: Duration = Duration::from_secs(10);

/// The most sessions that share memory with their clients at a time.
const MOST_SHARING: usize = 64;

/// A little longer than an offer of shared memory stands.
const OFFER_STANDS: Duration = Duration::from_secs(61);

/// The master.
pub(crate) struct Master {
    task: Arc<Task>,
    worker: Arc<Worker>,
    /// The cluster it was started in.
    own: Members,
    channels: Arc<Channels>,
    links: Arc<Links>,
    options: MasterOptions,
    sessions: RwLock<HashMap<String, Arc<MasterSession>>>,
    open_sessions: IdentityQuotas,
    recent_steps: RecentIds,
    blocks_places: Arc<Semaphore>,
    metrics: Arc<TaskMetrics>,
}

/// Options of a master.
#[derive(Clone, Debug)]
pub(crate) struct MasterOptions {
    /// How long opening a session waits for its tasks.
    pub session_timeout: Duration,
    /// The limits of clients.
    pub limits: Limits,
    /// How nodes are placed in sessions that ask for nothing else.
    pub placement: Placement,
}

impl Master {
    /// The master of `task`, which is task `index` of `job` in `cluster`, beside its `worker`.
    pub fn new(
        task: Arc<Task>,
        worker: Arc<Worker>,
        cluster: ClusterSpec,
        job: String,
        index: u32,
        channels: Arc<Channels>,
        links: Arc<Links>,
        options: MasterOptions,
        metrics: Arc<TaskMetrics>,
    ) -> Master {
        Master {
            open_sessions: IdentityQuotas::new(options.limits.sessions),
            task,
            worker,
            own: Members { cluster, job, index, described: None },
            channels,
            links,
            options,
            sessions: RwLock::default(),
            recent_steps: RecentIds::new(10_000),
            blocks_places: Arc::new(Semaphore::new(MOST_SHARING)),
            metrics,
        }
    }

    pub async fn create_session(
        &self,
        request: CreateSessionRequest,
        caller: &Arc<PeerIdentity>,
    ) -> Result<String> {
        let filters: Vec<String> = request
            .config
            .device_filters
            .iter()
            .map(|f| format!(" device_filters: {f:?}"))
            .collect();
        let (handle, session) = MasterSession::open(self, request, caller).await?;
        // Log only a part of the handle: with all of it, a reader of the log could use the session.
        let shown: String = handle.chars().take(8).collect();
        tracing::info!("Start master session {shown} with config:{}", filters.concat());
        let number = session.open.number;
        tracing::info!(target: AUDIT, session = number, identity = %caller, "session opened");
        self.sessions.write().insert(handle.clone(), session);
        Ok(handle)
    }

    /// The tasks of a cluster that `filters` let through, this one first.
    fn peers(&self, members: &Members, filters: &[String]) -> Result<Vec<Arc<Peer>>> {
        let mut peers = vec![Arc::new(Peer::here(members.own(), self.worker.clone()))];
        for (name, address) in members.others(filters)? {
            peers.push(Arc::new(Peer::there(
                name,
                self.channels.get(address)?,
                self.links.clone(),
            )));
        }
        Ok(peers)
    }

    pub fn extend_session(
        &self,
        request: ExtendSessionRequest,
        caller: &Arc<PeerIdentity>,
    ) -> Result<i64> {
        let session = self.session(&request.session_handle, caller)?;
        let graph = request.graph.read()?;
        self.worker.owners().note_containers(&graph, caller, None)?;
        session.extend(&graph, Some(request.current_graph_version))
    }

    pub async fn partial_run_setup(
        &self,
        request: PartialRunSetupRequest,
        caller: &Arc<PeerIdentity>,
    ) -> Result<String> {
        self.ensure_new(request.request_id, "PartialRunSetup (Master)")?;
        let session = self.session(&request.session_handle, caller)?;
        let is_quick = session.is_quick_to_compile();
        let PartialRunSetupRequest { feeds, fetches, targets, .. } = request;
        off_network(is_quick, move || session.partial_run_setup(feeds, fetches, targets)).await
    }

    /// Shares memory with the client of a session, if it is a process of this host and user.
    pub async fn share_blocks(
        &self,
        request: ShareBlocksRequest,
        caller: &Arc<PeerIdentity>,
    ) -> Result<ShareBlocksResponse> {
        let session = self.opened(&request.session_handle, caller)?;
        // Each of them takes descriptors, and threads while memory is handed over. Other sessions
        // use the connection.
        let place = self.blocks_places.clone().try_acquire_owned();
        let (Ok(place), None) = (place, session.blocks()) else {
            return Ok(ShareBlocksResponse::default());
        };
        let place = Arc::new(place);
        let held = place.clone();
        let shared = tokio::task::spawn_blocking(move || {
            let accepted = SharedBlocks::accept(&request);
            drop(held);
            accepted
        });
        let Ok(Some((blocks, answer))) = shared.await else {
            return Ok(ShareBlocksResponse::default());
        };
        // The offer stands for a while, whether the session does or not.
        let held = place.clone();
        tokio::spawn(async move {
            tokio::time::sleep(OFFER_STANDS).await;
            drop(held);
        });
        match session.share_blocks(blocks, place) {
            true => Ok(answer),
            false => Ok(ShareBlocksResponse::default()),
        }
    }

    /// [`Master::run_step`] for a client in another process, which may have put feeds into shared
    /// memory.
    pub async fn run_client_step(
        &self,
        mut request: RunStepRequest,
        caller: &Arc<PeerIdentity>,
    ) -> Result<RunStepResponse> {
        if request.block_feeds.is_empty() && !request.takes_blocks {
            return self.run_step(&mut request, caller).await;
        }
        Box::pin(self.run_step_with_blocks(request, caller)).await
    }

    /// The same for a client that shares memory with the task.
    async fn run_step_with_blocks(
        &self,
        mut request: RunStepRequest,
        caller: &Arc<PeerIdentity>,
    ) -> Result<RunStepResponse> {
        let session = self.opened(&request.session_handle, caller)?;
        let blocks = session.blocks().ok_or_else(not_mapped)?;
        let bytes = request.block_feeds.iter().map(|t| t.len).fold(0, usize::saturating_add);
        let of = blocks.clone();
        let read = move || {
            of.take(take(&mut request.block_feeds), &mut request.feeds)?;
            Ok(request)
        };
        let mut request = off_network(may_convert_inline(0, bytes), read).await?;
        let takes_blocks = request.takes_blocks;
        let mut response = self.run_step(&mut request, caller).await?;
        if !takes_blocks {
            return Ok(response);
        }
        let bytes = response.tensors.iter().map(|(_, t)| t.byte_len()).sum();
        let put = move || {
            let put = || blocks.put(&mut response.tensors);
            response.block_tensors = session.memory.run(put);
            Ok(response)
        };
        off_network(may_convert_inline(0, bytes), put).await
    }

    /// Runs a step. A failure goes into the response when the client asked for that.
    pub async fn run_step(
        &self,
        request: &mut RunStepRequest,
        caller: &Arc<PeerIdentity>,
    ) -> Result<RunStepResponse> {
        let in_body = request.store_errors_in_response_body;
        match self.step(request, caller).await {
            Err(e) if in_body => Ok(RunStepResponse {
                metadata: Some(RunMetadata::default()),
                status: Some(e),
                ..RunStepResponse::default()
            }),
            other => other,
        }
    }

    async fn step(
        &self,
        request: &mut RunStepRequest,
        caller: &Arc<PeerIdentity>,
    ) -> Result<RunStepResponse> {
        self.ensure_new(request.request_id, "RunStep (Master)")?;
        let opened = self.opened(&request.session_handle, caller)?;
        let _pending = opened.begin_step()?;
        let timer = opened.open.begin_step();
        let session = opened.session.clone();
        let fetches = request.fetches.clone();
        let shared = match request.options.collective_graph_key {
            0 => None,
            key => Some(SharedStep::begin(self, &request.session_handle, key).await?),
        };
        let step = ClientStep::new();
        let is_partial = !request.partial_run_handle.is_empty();
        let step_id = shared.as_ref().map_or_else(step::new_step_id, |s| s.step_id);
        if request.partial_run_handle.is_empty() {
            ensure_once(request.feeds.iter().map(|(name, _)| name))?;
            let options = RunOptions {
                trace: request.options.trace_level >= FULL_TRACE,
                output_partition_graphs: request.options.output_partition_graphs,
                step_id: Some(step_id),
                ..RunOptions::default()
            };
            let request = RunRequest {
                feeds: take(&mut request.feeds),
                fetches: take(&mut request.fetches),
                targets: take(&mut request.targets),
                options,
            };
            if let Some(run) = session.run_if_quick(request, step.cancel(), step.done()) {
                tokio::task::spawn_blocking(run);
            }
        } else {
            let handle = &request.partial_run_handle;
            let (feeds, fetches) = (take(&mut request.feeds), take(&mut request.fetches));
            session.partial_run(handle, feeds, fetches, step.cancel(), step.done());
        }
        let output = step.wait().await;
        let step_id = Some(step_id).filter(|_| !is_partial);
        timer.end(end_of(&output, opened.open.number, step_id));
        if let Some(shared) = shared {
            shared.end(output.is_ok());
        }
        let (tensors, metadata) = results(output?).await?;
        let tensors = fetches.into_iter().zip(tensors).collect();
        Ok(RunStepResponse { tensors, metadata: Some(metadata), ..RunStepResponse::default() })
    }

    pub async fn make_callable(
        &self,
        request: MakeCallableRequest,
        caller: &Arc<PeerIdentity>,
    ) -> Result<i64> {
        self.ensure_new(request.request_id, "MakeCallable (Master)")?;
        let session = self.session(&request.session_handle, caller)?;
        ensure!(
            !request.names_devices,
            Unimplemented,
            "CallableOptions.feed_devices and fetch_devices are not supported on a remote session"
        );
        let is_quick = session.is_quick_to_compile();
        off_network(is_quick, move || session.make_callable(&request.spec)).await
    }

    pub async fn run_callable(
        &self,
        request: RunCallableRequest,
        caller: &Arc<PeerIdentity>,
    ) -> Result<RunCallableResponse> {
        self.ensure_new(request.request_id, "RunCallable (Master)")?;
        let opened = self.opened(&request.session_handle, caller)?;
        let _pending = opened.begin_step()?;
        let timer = opened.open.begin_step();
        let session = opened.session.clone();
        let (step, step_id) = (ClientStep::new(), Some(step::new_step_id()));
        session.run_callable(request.handle, step_id, request.feeds, step.cancel(), step.done());
        let output = step.wait().await;
        timer.end(end_of(&output, opened.open.number, step_id));
        let (fetches, metadata) = results(output?).await?;
        Ok(RunCallableResponse { fetches, metadata: Some(metadata) })
    }

    pub fn release_callable(
        &self,
        request: &ReleaseCallableRequest,
        caller: &Arc<PeerIdentity>,
    ) -> Result<()> {
        self.session(&request.session_handle, caller)?.release_callable(request.handle)
    }

    pub async fn close_session(&self, handle: &str, caller: &Arc<PeerIdentity>) -> Result<()> {
        let session = self.take_session(handle, caller)?;
        session.note_end("closed");
        session.close().await;
        Ok(())
    }

    fn take_session(&self, handle: &str, caller: &Arc<PeerIdentity>) -> Result<Arc<MasterSession>> {
        let gone =
            || err!(Aborted, "Session {handle} is not found. Possibly, this master has restarted.");
        let mut sessions = self.sessions.write();
        self.ensure_owner(handle, sessions.get(handle).ok_or_else(gone)?, caller)?;
        sessions.remove(handle).ok_or_else(gone)
    }

    /// Removes the sessions that the caller may end, clears the containers on all tasks, then ends
    /// the sessions.
    pub async fn reset(
        &self,
        containers: &[String],
        filters: &[String],
        caller: &Arc<PeerIdentity>,
    ) -> Result<()> {
        let peers = self.peers(&self.own, filters)?;
        // Check on this task first: it knows the client's identity itself.
        peers[0].clean_up_all(containers, caller).await?;
        let owners = self.worker.owners();
        let sessions: Vec<Arc<MasterSession>> = self
            .sessions
            .write()
            .extract_if(|_, session| owners.may(&session.owner, caller))
            .map(|(_, session)| session)
            .collect();
        sessions.iter().for_each(|session| session.note_end("closed by a reset"));
        let others = peers[1..].iter().map(|peer| peer.clean_up_all(containers, caller));
        let cleared = join_all(others).await;
        join_all(sessions.iter().map(|session| session.close())).await;
        cleared.into_iter().collect()
    }

    fn ensure_owner(
        &self,
        handle: &str,
        session: &MasterSession,
        caller: &Arc<PeerIdentity>,
    ) -> Result<()> {
        self.worker.owners().ensure(&session.owner, caller, || format!("session {handle}"))
    }

    /// The devices of a session, or of the whole cluster if no session is named: those of this
    /// task, and those of others.
    pub async fn devices(
        &self,
        handle: &str,
        caller: &Arc<PeerIdentity>,
    ) -> Result<(Devices, Devices)> {
        if handle.is_empty() {
            let peers = self.peers(&self.own, &[])?;
            let how = Asked { by_any_name: true, ..Asked::default() };
            let mut found = discover(&peers, LIST_LIMIT, how).await?;
            let others = found.split_off(1).into_iter().flatten().collect();
            return Ok((found.into_iter().flatten().collect(), others));
        }
        let sessions = self.sessions.read();
        let session = sessions.get(handle).ok_or_else(|| {
            err!(
                InvalidArgument,
                "Session {handle} is not found. Possibly, this master has restarted."
            )
        })?;
        self.ensure_owner(handle, session, caller)?;
        Ok((session.devices.clone(), Vec::new()))
    }

    /// Ends all sessions, before the process does.
    pub async fn drain(&self) {
        let sessions = std::mem::take(&mut *self.sessions.write());
        sessions.values().for_each(|session| session.note_end("ended: the server stops"));
        join_all(sessions.values().map(|session| session.end(leaving()))).await;
    }

    /// Bytes of tensors of sessions that run on this task alone, which its worker does not know.
    pub fn session_memory(&self) -> u64 {
        self.sessions.read().values().map(|session| session.memory_of_master()).sum()
    }

    fn leader(&self, handle: &str) -> Result<String> {
        let sessions = self.sessions.read();
        let found = sessions.get(handle).map(|s| s.leader.clone());
        found.ok_or_else(|| err!(Aborted, "Session {handle} is not found."))
    }

    fn session(&self, handle: &str, caller: &Arc<PeerIdentity>) -> Result<Arc<TaskSession>> {
        self.opened(handle, caller).map(|opened| opened.session.clone())
    }

    fn opened(&self, handle: &str, caller: &Arc<PeerIdentity>) -> Result<Arc<MasterSession>> {
        let sessions = self.sessions.read();
        let found = sessions.get(handle).cloned();
        let found = found.ok_or_else(|| err!(Aborted, "Session {handle} is not found."))?;
        self.ensure_owner(handle, &found, caller)?;
        found.uses.touch();
        Ok(found)
    }

    /// Ends the sessions that had no call and no step for `idle`.
    pub async fn end_idle(&self, idle: Duration) {
        let is_idle = |session: &MasterSession| session.uses.is_idle(idle);
        let ended: Vec<_> =
            self.sessions.write().extract_if(|_, session| is_idle(session)).collect();
        join_all(ended.iter().map(|(handle, session)| {
            tracing::info!(
                session = session.open.number,
                "ending a session that was idle for {idle:?}"
            );
            session.note_end("ended: it was idle");
            session.end(err!(Aborted, "session {handle} was idle for {idle:?} (--session-idle)"))
        }))
        .await;
    }

    fn ensure_new(&self, request_id: i64, what: &str) -> Result<()> {
        ensure!(
            self.recent_steps.insert(request_id),
            Aborted,
            "The same {what} request was received twice. request_id: {request_id}"
        );
        Ok(())
    }
}

/// The fetched tensors of a step, and its recorded times and graphs as a message.
async fn results(output: RunOutput) -> Result<(Vec<Tensor>, RunMetadata)> {
    let RunOutput { stats, partition_graphs, costs, .. } = &output;
    if stats.is_none() && partition_graphs.is_empty() && costs.is_none() {
        return Ok((output.tensors, output.metadata));
    }
    let encode = move || {
        let metadata = wire::run_metadata(&output)?;
        Ok((output.tensors, metadata))
    };
    Box::pin(off_network(false, encode)).await
}

/// Counts the end of a step of a session in the metrics, and logs a failure. The calls of a partial
/// run have no number of their own.
fn end_of(output: &Result<RunOutput>, session: u64, step: Option<i64>) -> StepEnd {
    match output {
        Ok(_) => StepEnd::Ok,
        Err(error) => {
            tracing::debug!(session, step, %error, "a step failed");
            StepEnd::Failed
        }
    }
}

fn ensure_once<'a>(names: impl Iterator<Item = &'a String>) -> Result<()> {
    let mut seen = std::collections::HashSet::new();
    for name in names {
        ensure!(seen.insert(name), InvalidArgument, "Duplicated feeds: {name}");
    }
    Ok(())
}

/// A step that a call waits for. Dropping this cancels the step: the client hung up, or its
/// deadline passed.
struct ClientStep {
    cancel: CancelToken,
    tell: Mutex<Option<oneshot::Sender<Result<RunOutput>>>>,
    /// `None` when the step has ended.
    told: Option<oneshot::Receiver<Result<RunOutput>>>,
}

impl ClientStep {
    fn new() -> ClientStep {
        let (tell, told) = oneshot::channel();
        ClientStep { cancel: CancelToken::new(), tell: Mutex::new(Some(tell)), told: Some(told) }
    }

    fn cancel(&self) -> CancelToken {
        self.cancel.clone()
    }

    fn done(&self) -> ferroflow_runtime::SessionDone {
        let tell = self.tell.lock().take();
        Box::new(move |result| {
            if let Some(tell) = tell {
                let _ = tell.send(result);
            }
        })
    }

    async fn wait(mut self) -> Result<RunOutput> {
        let Some(told) = &mut self.told else { return Err(gone()) };
        let output = told.await.unwrap_or_else(|_| Err(gone()));
        self.told = None;
        output
    }
}

impl Drop for ClientStep {
    fn drop(&mut self) {
        if self.told.is_some() {
            self.cancel.cancel(err!(Cancelled, "the client went away"));
        }
    }
}

fn gone() -> Error {
    err!(Internal, "a step ended without a result")
}
