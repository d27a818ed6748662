//! The client side of a session on another task's master.

use crate::client_blocks::{BLOCKS_FROM, BlockOffer, SharedBlocks};
use crate::error::from_status;
use crate::liveness::Liveness;
use crate::messages::{
    CloseSessionRequest, CreateSessionResponse, ExtendSessionRequest, ExtendSessionResponse,
    ListDevicesRequest, PartialRunSetupRequest, PartialRunSetupResponse, ResetRequest,
    ShareBlocksResponse,
};
use crate::net::TlsConnector;
use crate::rpc::client::ChannelOptions;
use crate::rpc::{CallOptions, Channel, Chunks};
use crate::service::TaskService;
use crate::spec::ClusterSpec;
use crate::wire::{Decode, Encode, GraphMessage, create_session};
use bytes::Bytes;
use ferroflow_core::{Code, Result, Tensor, bail, err};
use ferroflow_graph::wire::MessageReader;
use ferroflow_graph::wire::step::{
    FULL_TRACE, NamedTensor, RunStepOptions, RunStepRequest, RunStepResponse,
};
use ferroflow_graph::{GraphDef, RunMetadata};
use ferroflow_identity::{Credentials, Trust};
use ferroflow_runtime::Placement;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;
use tokio::sync::OnceCell;
use tokio::task::spawn_blocking;

/// The timeout for agreeing on shared memory.
const SHARE_TIMEOUT: Duration = Duration::from_secs(5);

/// The timeout for closing a session.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(10);

/// How a session is opened on a server.
#[derive(Clone, Debug)]
pub struct ConnectOptions {
    /// How long to wait for the server and for the other tasks of the session.
    pub timeout: Duration,
    /// Only devices that match one of these filters, such as `/job:ps`, belong to the session.
    /// Tasks without such devices need not be running. An empty list matches all. The server's own
    /// task always belongs to the session.
    pub device_filters: Vec<String>,
    /// Variables and queues belong to this session alone, on all tasks, and end with it.
    pub isolate_state: bool,
    /// How nodes without a device are placed. A TensorFlow server ignores this.
    pub placement: Placement,
    /// A serialized `ConfigProto` to send; the options above are added to it.
    pub config: Option<Bytes>,
    /// The cluster of this session, in place of the server's own. The server's own address must be
    /// in it, under another name than the server was started with. Sessions share variables all the
    /// same.
    pub cluster: Option<ClusterSpec>,
    /// For a target `grpcs://HOST:PORT`. By default those of `FERROFLOW_CREDENTIALS`.
    pub credentials: Option<Credentials>,
}

impl Default for ConnectOptions {
    fn default() -> ConnectOptions {
        ConnectOptions {
            timeout: Duration::from_secs(60),
            device_filters: Vec::new(),
            isolate_state: false,
            placement: Placement::First,
            config: None,
            cluster: None,
            credentials: None,
        }
    }
}

/// A device of a session on a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionDevice {
    /// Its full name.
    pub name: String,
    /// `CPU`, `GPU`, ….
    pub kind: String,
    /// The bytes of memory it may use.
    pub memory_limit: i64,
    /// A number that changes when its task restarts.
    pub incarnation: u64,
}

/// The result of a step.
#[derive(Clone, Debug, Default)]
pub struct StepAnswer {
    /// The fetched tensors in the order of the request.
    pub tensors: Vec<Tensor>,
    /// The recorded times and graphs, if the request asked for them.
    pub metadata: RunMetadata,
}

/// A session on a Ferroflow or TensorFlow server.
pub struct RemoteSession {
    master: MasterOf,
    handle: String,
    /// The memory that it shares with its master. Not set before the first large tensor; `None` if
    /// they share none.
    blocks: OnceCell<Option<SharedBlocks>>,
    /// The graph's version on the master.
    version: AtomicI64,
}

/// Where a session's master is.
enum MasterOf {
    Peer(Channel, Liveness),
    /// In this process: tensors are not serialized.
    Here(Arc<TaskService>),
}

impl MasterOf {
    /// Makes a call with a small answer.
    async fn unary<A: Decode>(
        &self,
        method: &str,
        message: Bytes,
        options: CallOptions,
    ) -> Result<A> {
        let path = format!("/tensorflow.MasterService/{method}");
        let answer = match self {
            MasterOf::Peer(channel, _) if options.wait_ready => {
                channel.call(&path, message, options).await
            }
            MasterOf::Peer(channel, liveness) => {
                watched(channel, liveness, channel.call(&path, message, options)).await?
            }
            MasterOf::Here(service) => {
                let call = service.call_master(
                    method,
                    &path,
                    message.into(),
                    &service.worker.owners().here,
                );
                match options.timeout {
                    None => call.await,
                    Some(timeout) => match tokio::time::timeout(timeout, call).await {
                        Ok(answer) => answer,
                        Err(_) => bail!(DeadlineExceeded, "{method} took longer than {timeout:?}"),
                    },
                }
            }
        };
        let answer = answer.map_err(|s| from_status(&s))?;
        A::decode(answer).map_err(|e| {
            err!(Internal, "the server gave a malformed answer to {method}: {}", e.message())
        })
    }

    async fn run_step(
        &self,
        mut request: RunStepRequest,
        timeout: Option<Duration>,
    ) -> Result<RunStepResponse> {
        match self {
            MasterOf::Peer(channel, liveness) => {
                let message = Chunks::from(request.encode()?.into_parts());
                let options = CallOptions { timeout, ..CallOptions::default() };
                let call = channel.call("/tensorflow.MasterService/RunStep", message, options);
                let answer =
                    watched(channel, liveness, call).await?.map_err(|s| from_status(&s))?;
                let chunks: Vec<Bytes> = answer.segments().cloned().collect();
                RunStepResponse::decode(MessageReader::new(chunks))
            }
            MasterOf::Here(service) => {
                let _inside = service.drain.enter()?;
                let owner = &service.worker.owners().here;
                let call = service.master.run_step(&mut request, owner);
                match timeout {
                    None => call.await,
                    // Dropping the call cancels its step.
                    Some(timeout) => match tokio::time::timeout(timeout, call).await {
                        Ok(answer) => answer,
                        Err(_) => {
                            bail!(DeadlineExceeded, "the step took longer than {timeout:?}")
                        }
                    },
                }
            }
        }
    }
}

/// The answer to ListDevices.
pub(crate) struct SessionDevices(pub Vec<SessionDevice>);

/// The master of the server at `target`.
fn peer(target: &str, credentials: Option<&Credentials>) -> Result<MasterOf> {
    let channel_options = ChannelOptions::default();
    let channel = match target.split_once("://") {
        Some(("grpc", address)) => Channel::connect(address, channel_options),
        Some(("grpcs", address)) => {
            let credentials = match credentials {
                Some(given) => Some(given.clone()),
                None => Trust::from_env()?.credentials,
            };
            let Some(credentials) = credentials else {
                bail!(
                    FailedPrecondition,
                    "{target} needs credentials: set FERROFLOW_CREDENTIALS to a folder that \
                     `ferroflow certs` has made"
                );
            };
            Channel::connect_with(address, channel_options, TlsConnector(credentials))
        }
        _ => bail!(
            InvalidArgument,
            "target {target:?} should be grpc://HOST:PORT or grpcs://HOST:PORT"
        ),
    };
    let channel = channel.map_err(|s| from_status(&s))?;
    Ok(MasterOf::Peer(channel, Liveness::default()))
}

/// Waits for a call. Fails with `Unavailable` if the server does not answer probes: it may hang, or
/// the network may be down.
async fn watched<T>(
    channel: &Channel,
    liveness: &Liveness,
    call: impl Future<Output = T>,
) -> Result<T> {
    liveness.watch(channel, async { Ok(call.await) }).await.unwrap_or_else(|silence| {
        let address = channel.address();
        Err(err!(Unavailable, "the server at {address} does not answer: {}", silence.message))
    })
}

/// The master of a server in this process.
#[derive(Clone)]
pub struct InProcessMaster(pub(crate) Arc<TaskService>);

impl RemoteSession {
    /// Opens a session on a server in this process, without the network in between. Its futures
    /// must run on the tokio runtime of the server.
    pub async fn within(
        master: &InProcessMaster,
        graph: &GraphDef,
        options: &ConnectOptions,
    ) -> Result<Self> {
        RemoteSession::open(MasterOf::Here(master.0.clone()), String::new(), graph, options).await
    }

    /// Opens a session on `target` (`grpc://host:port`, or `grpcs://host:port` with TLS) with an
    /// initial graph. Waits up to `timeout` for the server.
    pub async fn connect(target: &str, graph: &GraphDef, timeout: Duration) -> Result<Self> {
        let options = ConnectOptions { timeout, ..ConnectOptions::default() };
        RemoteSession::connect_with(target, graph, &options).await
    }

    /// [`RemoteSession::connect`] with all options.
    pub async fn connect_with(
        target: &str,
        graph: &GraphDef,
        options: &ConnectOptions,
    ) -> Result<Self> {
        let master = peer(target, options.credentials.as_ref())?;
        RemoteSession::open(master, target.to_string(), graph, options).await
    }

    async fn open(
        master: MasterOf,
        target: String,
        graph: &GraphDef,
        options: &ConnectOptions,
    ) -> Result<Self> {
        let request = create_session(graph, options, target)?;
        let options = CallOptions {
            timeout: Some(options.timeout),
            wait_ready: true,
            ..CallOptions::default()
        };
        let response: CreateSessionResponse =
            master.unary("CreateSession", request, options).await?;
        let version = AtomicI64::new(response.graph_version);
        let (handle, blocks) = (response.session_handle, OnceCell::new());
        Ok(RemoteSession { master, handle, blocks, version })
    }

    /// Adds nodes and functions to the graph. The master refuses one of two concurrent extensions.
    pub async fn extend(&self, graph: &GraphDef) -> Result<()> {
        let request = ExtendSessionRequest {
            session_handle: self.handle.clone(),
            graph: GraphMessage::of(graph)?,
            current_graph_version: self.version.load(Ordering::Acquire),
        };
        let options = CallOptions::default();
        let response: ExtendSessionResponse =
            self.master.unary("ExtendSession", request.encode(), options).await?;
        self.version.store(response.new_graph_version, Ordering::Release);
        Ok(())
    }

    /// Runs a step. Feeds are given by tensor name; fetches are returned in the order of the
    /// request.
    pub async fn run(
        &self,
        feeds: Vec<(String, Tensor)>,
        fetches: &[&str],
        targets: &[&str],
        timeout: Option<Duration>,
    ) -> Result<Vec<Tensor>> {
        let names = |list: &[&str]| list.iter().map(|s| s.to_string()).collect::<Vec<_>>();
        let options = ferroflow_runtime::RunOptions { timeout, ..Default::default() };
        let (fetches, targets) = (names(fetches), names(targets));
        let request = ferroflow_runtime::RunRequest { feeds, fetches, targets, options };
        Ok(self.run_step(request).await?.tensors)
    }

    /// Runs a step and records what its options ask for.
    pub async fn run_step(&self, request: ferroflow_runtime::RunRequest) -> Result<StepAnswer> {
        self.call_step(request, String::new()).await
    }

    /// Announces a step that is fed and fetched in parts. Returns the handle for
    /// [`RemoteSession::partial_run`].
    pub async fn partial_run_setup(
        &self,
        feeds: Vec<String>,
        fetches: Vec<String>,
        targets: Vec<String>,
    ) -> Result<String> {
        let request = PartialRunSetupRequest {
            session_handle: self.handle.clone(),
            feeds,
            fetches,
            targets,
            request_id: fastrand::i64(1..),
        };
        let options = CallOptions::default();
        let response: PartialRunSetupResponse =
            self.master.unary("PartialRunSetup", request.encode(), options).await?;
        Ok(response.partial_run_handle)
    }

    /// Feeds and fetches a part of an announced step.
    pub async fn partial_run(
        &self,
        handle: &str,
        feeds: Vec<(String, Tensor)>,
        fetches: Vec<String>,
        timeout: Option<Duration>,
    ) -> Result<Vec<Tensor>> {
        let options = ferroflow_runtime::RunOptions { timeout, ..Default::default() };
        let targets = Vec::new();
        let request = ferroflow_runtime::RunRequest { feeds, fetches, targets, options };
        Ok(self.call_step(request, handle.to_string()).await?.tensors)
    }

    async fn call_step(
        &self,
        request: ferroflow_runtime::RunRequest,
        partial_run_handle: String,
    ) -> Result<StepAnswer> {
        let ferroflow_runtime::RunRequest { feeds, fetches, targets, options } = request;
        let request = RunStepRequest {
            session_handle: self.handle.clone(),
            feeds,
            fetches,
            targets,
            options: RunStepOptions {
                trace_level: if options.trace { FULL_TRACE } else { 0 },
                timeout_ms: options.timeout.map_or(0, |t| t.as_millis() as i64),
                output_partition_graphs: options.output_partition_graphs,
                ..RunStepOptions::default()
            },
            partial_run_handle,
            store_errors_in_response_body: true,
            request_id: fastrand::i64(1..),
            ..RunStepRequest::default()
        };
        let fetches = request.fetches.clone();
        let response = self.run_with_blocks(request, options.timeout).await?;
        if let Some(error) = response.status {
            return Err(error);
        }
        let mut by_name: std::collections::HashMap<String, Tensor> =
            response.tensors.into_iter().collect();
        let tensors = fetches.iter().map(|name| {
            by_name.remove(name).ok_or_else(|| err!(Internal, "the server did not return {name}"))
        });
        let tensors = tensors.collect::<Result<_>>()?;
        Ok(StepAnswer { tensors, metadata: response.metadata.unwrap_or_default() })
    }

    /// Runs a step with large feeds and fetches in shared memory, where there is any.
    async fn run_with_blocks(
        &self,
        mut request: RunStepRequest,
        timeout: Option<Duration>,
    ) -> Result<RunStepResponse> {
        let is_large = |tensors: &[NamedTensor]| {
            tensors.iter().any(|(_, tensor)| tensor.byte_len() >= BLOCKS_FROM)
        };
        let has_large_feeds = is_large(&request.feeds);
        let blocks = match has_large_feeds {
            true => self.blocks.get_or_init(|| self.share_blocks()).await.as_ref(),
            false => self.blocks.get().and_then(Option::as_ref),
        };
        let Some(blocks) = blocks else {
            let response = self.master.run_step(request, timeout).await?;
            if is_large(&response.tensors) {
                // The next step uses the memory.
                self.blocks.get_or_init(|| self.share_blocks()).await;
            }
            return Ok(response);
        };
        request.block_feeds = blocks.put(&mut request.feeds);
        request.takes_blocks = true;
        let mut response = self.master.run_step(request, timeout).await?;
        blocks.take(std::mem::take(&mut response.block_tensors), &mut response.tensors)?;
        Ok(response)
    }

    /// Agrees with the master on shared memory. `None` if they are not different processes of one
    /// host and user, or if the master is TensorFlow's.
    async fn share_blocks(&self) -> Option<SharedBlocks> {
        if matches!(self.master, MasterOf::Here(_)) {
            return None;
        }
        let handle = self.handle.clone();
        let offer = spawn_blocking(move || BlockOffer::new(&handle)).await.ok()?;
        let offer = offer.inspect_err(|e| tracing::debug!("no shared memory: {e}")).ok()?;
        let message = offer.request.clone().encode();
        let options = CallOptions::timeout(SHARE_TIMEOUT);
        let answer: Result<ShareBlocksResponse> =
            self.master.unary("ShareBlocks", message, options).await;
        let answer = answer.inspect_err(|e| tracing::debug!("no shared memory: {e}")).ok()?;
        spawn_blocking(move || offer.accepted(&answer)).await.ok()?
    }

    /// The devices on which its nodes can run.
    pub async fn list_devices(&self) -> Result<Vec<SessionDevice>> {
        let request = ListDevicesRequest { session_handle: self.handle.clone() };
        let answer: SessionDevices =
            self.master.unary("ListDevices", request.encode(), CallOptions::default()).await?;
        Ok(answer.0)
    }

    /// Clears containers of the server at `target` and closes all its sessions. Without containers
    /// it clears the default one.
    pub async fn reset(target: &str, containers: Vec<String>) -> Result<()> {
        let request = ResetRequest { containers, device_filters: Vec::new() };
        let options = CallOptions::default();
        peer(target, None)?.unary("Reset", request.encode(), options).await
    }

    /// Closes the session and cancels running steps.
    pub async fn close(&self) -> Result<()> {
        let request = CloseSessionRequest { session_handle: self.handle.clone() };
        let options = CallOptions::timeout(CLOSE_TIMEOUT);
        let closed = self.master.unary("CloseSession", request.encode(), options).await;
        match closed {
            // A restarted master no longer knows the session, so it counts as closed.
            Err(e) if e.code() == Code::Aborted => Ok(()),
            other => other,
        }
    }
}
