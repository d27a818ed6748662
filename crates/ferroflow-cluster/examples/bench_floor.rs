//! A server that answers TensorFlow's client with prepared bytes. It measures the cost of a null
//! step without any server work. `bench/README.md` has the contract.
//!
//!     bench_floor PORT

use bytes::Bytes;
use ferroflow_cluster::rpc::{Chunks, RpcRequest, RpcServer, RpcStatus};
use ferroflow_core::Tensor;
use ferroflow_graph::wire::step::{RunStepRequest, RunStepResponse};
use ferroflow_proto::tensorflow as pb;
use parking_lot::Mutex;
use prost::Message;
use std::collections::HashMap;
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let port = std::env::args().nth(1).ok_or("usage: bench_floor PORT")?.parse::<u16>()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let listener = TcpListener::bind(("127.0.0.1", port)).await?;
        println!("ready grpc://127.0.0.1:{port}");
        let mut stop = signal(SignalKind::terminate())?;
        let service = Arc::new(replies()?);
        RpcServer::default()
            .serve(listener, service, async move {
                stop.recv().await;
            })
            .await;
        Ok(())
    })
}

type Reply = std::future::Ready<Result<Chunks, RpcStatus>>;

/// The service: prepared bytes for each method, and for a step by its fetches.
fn replies() -> Result<impl Fn(RpcRequest) -> Reply + Send + Sync, ferroflow_core::Error> {
    let session_handle = "0000000000000001".to_string();
    let created = pb::CreateSessionResponse { session_handle, graph_version: 0 };
    let created = Bytes::from(created.encode_to_vec());
    let steps = Steps::default();
    Ok(move |request: RpcRequest| {
        std::future::ready(match request.path() {
            "/tensorflow.MasterService/CreateSession" => Ok(created.clone().into()),
            "/tensorflow.MasterService/RunStep" => steps.reply(request.body),
            "/tensorflow.MasterService/CloseSession" => Ok(Bytes::new().into()),
            other => Err(RpcStatus::unknown_method(other)),
        })
    })
}

/// Answers to steps by their fetches, each made once.
#[derive(Default)]
struct Steps(Mutex<HashMap<Vec<String>, Chunks>>);

impl Steps {
    fn reply(&self, body: Chunks) -> Result<Chunks, RpcStatus> {
        let request = RunStepRequest::decode(body.segments().cloned().collect::<Vec<_>>());
        let fetches = request.map_err(status)?.fetches;
        let mut made = self.0.lock();
        if let Some(reply) = made.get(&fetches) {
            return Ok(reply.clone());
        }
        let tensors = fetches.iter().map(|name| Ok((name.clone(), value(name)?)));
        let tensors = tensors.collect::<Result<_, ferroflow_core::Error>>();
        let reply = tensors
            .and_then(|tensors| RunStepResponse { tensors, ..RunStepResponse::default() }.encode())
            .map_err(status)?;
        let reply = Chunks::from(reply.into_parts());
        made.insert(fetches, reply.clone());
        Ok(reply)
    }
}

/// Floats that fill N bytes for `bytes_N:0`, else one float.
fn value(fetch: &str) -> Result<Tensor, ferroflow_core::Error> {
    let bytes = fetch.strip_prefix("bytes_").and_then(|rest| rest.strip_suffix(":0"));
    match bytes.and_then(|n| n.parse::<usize>().ok()) {
        Some(bytes) => Ok(Tensor::vector(&vec![1.0f32; bytes / 4])),
        None => Ok(Tensor::scalar(2.0f32)),
    }
}

fn status(error: ferroflow_core::Error) -> RpcStatus {
    RpcStatus::new(error.code() as i32, error.message())
}
