//! An echo that answers TensorFlow's client with ready-made bytes: what a null step costs when the
//! server does nothing. `bench/README.md` has the contract.
//!
//!     bench_floor PORT

use bytes::Bytes;
use ferroflow_cluster::rpc::{Chunks, Request, Server, Status};
use ferroflow_core::Tensor;
use ferroflow_graph::wire::step::RunStepResponse;
use ferroflow_proto::tensorflow as pb;
use prost::Message;
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
        Server::default()
            .serve(listener, service, async move {
                stop.recv().await;
            })
            .await;
        Ok(())
    })
}

type Reply = std::future::Ready<Result<Chunks, Status>>;

/// The service: a canned reply for each method.
fn replies() -> Result<impl Fn(Request) -> Reply + Send + Sync, ferroflow_core::Error> {
    let session_handle = "0000000000000001".to_string();
    let created = pb::CreateSessionResponse { session_handle, graph_version: 0 };
    let created = Bytes::from(created.encode_to_vec());
    let tensors = vec![("null:0".to_string(), Tensor::scalar(2.0f32))];
    let step = RunStepResponse { tensors, ..RunStepResponse::default() }.encode()?.to_bytes();
    Ok(move |request: Request| {
        std::future::ready(match request.path() {
            "/tensorflow.MasterService/CreateSession" => Ok(created.clone().into()),
            "/tensorflow.MasterService/RunStep" => Ok(step.clone().into()),
            "/tensorflow.MasterService/CloseSession" => Ok(Bytes::new().into()),
            other => Err(Status::unknown_method(other)),
        })
    })
}
