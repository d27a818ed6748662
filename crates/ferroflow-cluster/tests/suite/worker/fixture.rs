//! A task, a master that makes raw calls, and small graphs.

use bytes::Bytes;
use ferroflow_cluster::rpc::client::ChannelOptions;
use ferroflow_cluster::rpc::{CallOptions, Channel, Chunks, RpcStatus};
use ferroflow_cluster::{ClusterSpec, Server, ServerOptions};
use ferroflow_core::{DType, Tensor};
use ferroflow_graph::wire::MessageReader;
use ferroflow_graph::wire::graph::graph_to_proto;
use ferroflow_graph::wire::step::{RecvTensorResponse, RunGraphRequest, RunGraphResponse};
use ferroflow_graph::{AttrList, Attrs, Catalog, GraphDef, NodeDef};
use ferroflow_proto::tensorflow as pb;
use prost::Message;
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

pub const PS: &str = "/job:ps/replica:0/task:0/device:CPU:0";
pub const WORKER: &str = "/job:worker/replica:0/task:0/device:CPU:0";

/// A running `/job:ps/task:0` and a channel to it.
#[derive(Clone)]
pub struct Ps {
    pub channel: Channel,
    pub incarnation: u64,
    _server: Arc<Stop>,
}

struct Stop(JoinHandle<()>);

impl Drop for Stop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Ps {
    pub async fn start() -> Ps {
        Ps::start_beside("127.0.0.1:1").await
    }

    /// With `/job:worker/task:0` at `worker`.
    pub async fn start_beside(worker: &str) -> Ps {
        let spec = format!("ps=127.0.0.1:0;worker={worker}");
        let mut catalog = Catalog::new();
        ferroflow_ops::register(&mut catalog);
        let options = ServerOptions::new(ClusterSpec::parse(&spec).unwrap(), "ps", 0);
        let server = Server::bind(options, Arc::new(catalog)).await.unwrap();
        let address = server.target().strip_prefix("grpc://").unwrap().to_string();
        let serving = tokio::spawn(server.serve(std::future::pending()));
        let channel = Channel::connect(&address, ChannelOptions::default()).unwrap();
        let mut ps = Ps { channel, incarnation: 0, _server: Arc::new(Stop(serving)) };
        let status: pb::GetStatusResponse =
            ps.call("GetStatus", pb::GetStatusRequest::default()).await.unwrap();
        let device = &status.device_attributes[0];
        assert_eq!(device.name, PS);
        ps.incarnation = device.incarnation;
        ps
    }

    pub async fn call<A: Message + Default>(
        &self,
        method: &str,
        request: impl Message,
    ) -> Result<A, RpcStatus> {
        let message = Bytes::from(request.encode_to_vec());
        Ok(A::decode(self.raw(method, message.into()).await?).unwrap())
    }

    async fn raw(&self, method: &str, message: Chunks) -> Result<Chunks, RpcStatus> {
        let path = format!("/tensorflow.WorkerService/{method}");
        self.channel.call(&path, message, CallOptions::default()).await
    }

    pub async fn create_session(&self, handle: &str, master_incarnation: i64) {
        let request = pb::CreateWorkerSessionRequest {
            session_handle: handle.into(),
            master_task: "/job:worker/replica:0/task:0".into(),
            master_incarnation,
            ..Default::default()
        };
        let _: pb::CreateWorkerSessionResponse =
            self.call("CreateWorkerSession", request).await.unwrap();
    }

    pub async fn register(&self, session: &str, nodes: Vec<NodeDef>) -> Result<String, RpcStatus> {
        let graph = GraphDef { nodes, ..GraphDef::default() };
        let request = pb::RegisterGraphRequest {
            session_handle: session.into(),
            graph_def: Some(graph_to_proto(&graph).unwrap()),
            create_worker_session_called: true,
            ..Default::default()
        };
        let response: pb::RegisterGraphResponse = self.call("RegisterGraph", request).await?;
        Ok(response.graph_handle)
    }

    /// Opens session `S1` and registers a graph in it.
    pub async fn with_graph(&self, nodes: Vec<NodeDef>) -> String {
        self.create_session("S1", 1).await;
        self.register("S1", nodes).await.unwrap()
    }

    pub async fn run(&self, request: RunGraphRequest) -> Result<RunGraphResponse, RpcStatus> {
        let message = Chunks::from(request.encode().unwrap().into_parts());
        let answer = self.raw("RunGraph", message).await?;
        let chunks: Vec<Bytes> = answer.segments().cloned().collect();
        Ok(RunGraphResponse::decode(MessageReader::new(chunks)).unwrap())
    }

    pub async fn recv(&self, step_id: i64, key: &str) -> Result<RecvTensorResponse, RpcStatus> {
        self.recv_as(fastrand::i64(1..), step_id, key).await
    }

    pub async fn recv_as(
        &self,
        request_id: i64,
        step_id: i64,
        key: &str,
    ) -> Result<RecvTensorResponse, RpcStatus> {
        let request = pb::RecvTensorRequest {
            step_id,
            rendezvous_key: key.into(),
            request_id,
            ..Default::default()
        };
        let message = Bytes::from(request.encode_to_vec());
        let answer = self.raw("RecvTensor", message.into()).await?;
        let chunks: Vec<Bytes> = answer.segments().cloned().collect();
        Ok(RecvTensorResponse::decode(MessageReader::new(chunks)).unwrap())
    }

    /// The same, but the call has started when this returns.
    pub async fn start_recv(
        &self,
        step_id: i64,
        key: &str,
    ) -> JoinHandle<Result<RecvTensorResponse, RpcStatus>> {
        let (ps, key) = (self.clone(), key.to_string());
        let call = tokio::spawn(async move { ps.recv(step_id, &key).await });
        self.settle().await;
        call
    }

    pub async fn start_run(
        &self,
        request: RunGraphRequest,
    ) -> JoinHandle<Result<RunGraphResponse, RpcStatus>> {
        let ps = self.clone();
        let call = tokio::spawn(async move { ps.run(request).await });
        self.settle().await;
        call
    }

    /// Waits until started calls have arrived. Calls of one connection arrive in order.
    pub async fn settle(&self) {
        for _ in 0..3 {
            let _: pb::GetStatusResponse =
                self.call("GetStatus", pb::GetStatusRequest::default()).await.unwrap();
        }
    }

    pub async fn cleanup(&self, step_id: i64) {
        let request = pb::CleanupGraphRequest { step_id };
        let _: pb::CleanupGraphResponse = self.call("CleanupGraph", request).await.unwrap();
    }

    /// The key of a value that the ps sends to the worker.
    pub fn key(&self, tensor: &str) -> String {
        format!("{PS};{:016x};{WORKER};{tensor};0:0", self.incarnation)
    }

    /// The key of a feed or fetch.
    pub fn client_key(&self, tensor: &str) -> String {
        format!("{PS};{:016x};{PS};{tensor};0:0", self.incarnation)
    }

    pub fn send(&self, tensor: &str, input: &str, dtype: DType) -> NodeDef {
        let attrs = transfer(PS, self.incarnation, WORKER, tensor).with("T", dtype);
        node(&format!("send_{tensor}"), "_Send", &[input], attrs)
    }

    pub fn fetch(&self, tensor: &str, input: &str, dtype: DType) -> NodeDef {
        let attrs = transfer(PS, self.incarnation, PS, tensor).with("T", dtype);
        let attrs = attrs.with("client_terminated", true);
        node(&format!("_send_{tensor}"), "_Send", &[input], attrs)
    }

    pub fn feed(&self, tensor: &str, dtype: DType) -> NodeDef {
        let attrs = transfer(PS, self.incarnation, PS, tensor).with("tensor_type", dtype);
        let attrs = attrs.with("client_terminated", true);
        node(&format!("_recv_{tensor}"), "_Recv", &[], attrs)
    }
}

/// A RunGraph of session `S1`, with errors in the answer.
pub fn run_of(graph: &str, step_id: i64) -> RunGraphRequest {
    RunGraphRequest {
        graph_handle: graph.into(),
        step_id,
        session_handle: "S1".into(),
        store_errors_in_response_body: true,
        create_worker_session_called: true,
        request_id: fastrand::i64(1..),
        ..Default::default()
    }
}

/// A value that the worker sends to the ps.
pub fn recv_from_worker(tensor: &str, dtype: DType) -> NodeDef {
    let attrs = transfer(WORKER, 77, PS, tensor).with("tensor_type", dtype);
    node(&format!("recv_{tensor}"), "_Recv", &[], attrs)
}

fn transfer(from: &str, incarnation: u64, to: &str, tensor: &str) -> Attrs {
    Attrs::new()
        .with("tensor_name", tensor)
        .with("send_device", from)
        .with("send_device_incarnation", incarnation as i64)
        .with("recv_device", to)
}

pub fn node(name: &str, op: &str, inputs: &[&str], attrs: Attrs) -> NodeDef {
    NodeDef {
        name: name.into(),
        op: op.into(),
        inputs: inputs.iter().map(|s| s.to_string()).collect(),
        device: PS.into(),
        attrs,
        ..NodeDef::default()
    }
}

pub fn constant(name: &str, value: Tensor) -> NodeDef {
    node(name, "Const", &[], Attrs::new().with("dtype", value.dtype()).with("value", value))
}

/// A queue that stays empty, and a node that waits for an element of it.
pub fn blocked(name: &str) -> Vec<NodeDef> {
    let types = || AttrList::Types(vec![DType::Float]);
    vec![
        node("q", "FIFOQueueV2", &[], Attrs::new().with("component_types", types())),
        node(name, "QueueDequeueV2", &["q"], Attrs::new().with("component_types", types())),
    ]
}

/// A free port of this host and its address.
pub async fn listener() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    (listener, address)
}

pub fn scalar(response: &RecvTensorResponse) -> f32 {
    response.tensor.as_ref().unwrap().scalar_value().unwrap()
}
