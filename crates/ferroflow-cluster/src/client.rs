//! The client side of a session: a graph on somebody else's master.

use crate::error::from_status;
use crate::pulse::Pulse;
use crate::rpc::client::Options;
use crate::rpc::{CallOptions, Channel, Chunks};
use crate::wire::placement_options;
use bytes::Bytes;
use ferroflow_core::{Code, Result, Tensor, bail, err};
use ferroflow_graph::GraphDef;
use ferroflow_graph::wire::Reader;
use ferroflow_graph::wire::graph::graph_to_proto;
use ferroflow_graph::wire::step::{RunOptions, RunStepRequest, RunStepResponse};
use ferroflow_proto::tensorflow as pb;
use ferroflow_runtime::Placement;
use prost::Message;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

/// How long closing may take before it is given up.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(10);

/// How a session is opened on a server.
#[derive(Clone, Debug)]
pub struct ConnectOptions {
    /// How long to wait for the server, and for it to have found the other tasks.
    pub timeout: Duration,
    /// Only devices that one of these matches belong to the session, such as `/job:ps`: other tasks
    /// need not be there. None lets all in. The server's own task is always in.
    pub device_filters: Vec<String>,
    /// Variables and queues are the session's own, on all tasks, and end with it.
    pub isolate_state: bool,
    /// How nodes get a device that leave it open; a TensorFlow server does it its own way.
    pub placement: Placement,
}

impl Default for ConnectOptions {
    fn default() -> ConnectOptions {
        ConnectOptions {
            timeout: Duration::from_secs(60),
            device_filters: Vec::new(),
            isolate_state: false,
            placement: Placement::First,
        }
    }
}

/// A session on a server, Ferroflow's or TensorFlow's.
pub struct RemoteSession {
    channel: Channel,
    pulse: Pulse,
    handle: String,
    /// The graph's version, as the master counts.
    version: AtomicI64,
}

impl RemoteSession {
    /// Opens a session on `target` (`grpc://host:port`) with an initial graph. Waits for the server
    /// to be there, up to `timeout`.
    pub async fn connect(target: &str, graph: &GraphDef, timeout: Duration) -> Result<Self> {
        let options = ConnectOptions { timeout, ..ConnectOptions::default() };
        RemoteSession::connect_with(target, graph, &options).await
    }

    /// [`RemoteSession::connect`] with more to say.
    pub async fn connect_with(
        target: &str,
        graph: &GraphDef,
        options: &ConnectOptions,
    ) -> Result<Self> {
        let Some(address) = target.strip_prefix("grpc://") else {
            bail!(InvalidArgument, "target {target:?} should be grpc://HOST:PORT");
        };
        let channel = Channel::connect(address, Options::default()).map_err(|s| from_status(&s))?;
        let request = pb::CreateSessionRequest {
            graph_def: Some(graph_to_proto(graph)?),
            config: Some(pb::ConfigProto {
                allow_soft_placement: true,
                device_filters: options.device_filters.clone(),
                isolate_session_state: options.isolate_state,
                graph_options: placement_options(&options.placement),
                ..Default::default()
            }),
            target: target.to_string(),
        };
        let timeout = Some(options.timeout);
        let options = CallOptions { timeout, wait_ready: true, ..CallOptions::default() };
        let response: pb::CreateSessionResponse =
            unary(&channel, "CreateSession", &request, options).await?;
        let version = AtomicI64::new(response.graph_version);
        let handle = response.session_handle;
        Ok(RemoteSession { channel, pulse: Pulse::default(), handle, version })
    }

    /// Adds nodes and functions to the graph. Of two extensions at a time the master refuses one.
    pub async fn extend(&self, graph: &GraphDef) -> Result<()> {
        let request = pb::ExtendSessionRequest {
            session_handle: self.handle.clone(),
            graph_def: Some(graph_to_proto(graph)?),
            current_graph_version: self.version.load(Ordering::Acquire),
        };
        let extend = unary(&self.channel, "ExtendSession", &request, CallOptions::default());
        let response: pb::ExtendSessionResponse = self.watched(extend).await?;
        self.version.store(response.new_graph_version, Ordering::Release);
        Ok(())
    }

    /// Runs a step: feeds by tensor name, fetches in the order asked for.
    pub async fn run(
        &self,
        feeds: Vec<(String, Tensor)>,
        fetches: &[&str],
        targets: &[&str],
        timeout: Option<Duration>,
    ) -> Result<Vec<Tensor>> {
        let names = |list: &[&str]| list.iter().map(|s| s.to_string()).collect::<Vec<_>>();
        let request = RunStepRequest {
            session_handle: self.handle.clone(),
            feeds,
            fetches: names(fetches),
            targets: names(targets),
            options: RunOptions {
                timeout_ms: timeout.map_or(0, |t| t.as_millis() as i64),
                ..RunOptions::default()
            },
            partial_run_handle: String::new(),
            store_errors_in_response_body: true,
            request_id: fastrand::i64(1..),
        };
        let message = Chunks::from(request.encode()?.into_parts());
        let options = CallOptions { timeout, ..CallOptions::default() };
        let call = self.channel.call("/tensorflow.MasterService/RunStep", message, options);
        let answer = self.watched(async { call.await.map_err(|s| from_status(&s)) }).await?;
        let chunks: Vec<Bytes> = answer.segments().cloned().collect();
        let response = RunStepResponse::decode(Reader::new(chunks))?;
        if let Some(error) = response.status {
            return Err(error);
        }
        let mut by_name: std::collections::HashMap<String, Tensor> =
            response.tensors.into_iter().collect();
        fetches
            .iter()
            .map(|name| {
                by_name
                    .remove(*name)
                    .ok_or_else(|| err!(Internal, "the server did not return {name}"))
            })
            .collect()
    }

    /// A call, given up with `Unavailable` when the server goes silent: it may have hung, or be cut off.
    async fn watched<T>(&self, call: impl Future<Output = Result<T>>) -> Result<T> {
        self.pulse.watch(&self.channel, call).await.unwrap_or_else(|silence| {
            let address = self.channel.address();
            Err(err!(Unavailable, "the server at {address} does not answer: {}", silence.message))
        })
    }

    /// Ends the session; running steps are cancelled.
    pub async fn close(&self) -> Result<()> {
        let request = pb::CloseSessionRequest { session_handle: self.handle.clone() };
        let options = CallOptions::timeout(CLOSE_TIMEOUT);
        let closed: Result<pb::CloseSessionResponse> =
            unary(&self.channel, "CloseSession", &request, options).await;
        match closed {
            // A master that restarted has forgotten the session: it is closed all the same.
            Err(e) if e.code() == Code::Aborted => Ok(()),
            other => other.map(|_| ()),
        }
    }
}

async fn unary<A: Message + Default>(
    channel: &Channel,
    method: &str,
    request: &impl Message,
    options: CallOptions,
) -> Result<A> {
    let path = format!("/tensorflow.MasterService/{method}");
    let message = Bytes::from(request.encode_to_vec());
    let answer = channel.call(&path, message, options).await.map_err(|s| from_status(&s))?;
    A::decode(answer).map_err(|e| err!(Internal, "{method}: malformed answer: {e}"))
}
