//! Clients with valid certificates that try to use the state of others, or all resources.

use super::fixture::*;
use ferroflow_cluster::rpc::{BoxIo, Connector, code};
use ferroflow_cluster::{Credentials, DataPath, TlsConnector};
use ferroflow_core::{DType, Limit, Limits, Tensor};
use ferroflow_graph::GraphDef;
use ferroflow_proto::tensorflow as pb;
use ferroflow_testing::graph;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const PS: &str = "/job:ps/replica:0/task:0";
const WORKER: &str = "/job:worker/replica:0/task:0";

/// A value that goes from the worker to the ps and back.
fn there_and_back() -> GraphDef {
    graph()
        .dtype(DType::Float)
        .constant("seven", 7.0f32)
        .device("/job:worker/task:0")
        .op("there", "Neg", &["seven"])
        .t()
        .device("/job:ps/task:0")
        .op("back", "Neg", &["there"])
        .t()
        .device("/job:worker/task:0")
        .build()
}

fn is_denied<T: std::fmt::Debug>(answer: Result<T, ferroflow_cluster::rpc::RpcStatus>) {
    let status = answer.expect_err("it is allowed");
    assert_eq!(status.code, code::PERMISSION_DENIED, "{}", status.message);
}

/// The status of the task at an address.
async fn status(cluster: &SecureCluster, at: &str, client: &Credentials) -> pb::GetStatusResponse {
    let asked = pb::GetStatusRequest::default();
    cluster.call(at, client, "WorkerService/GetStatus", asked).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_cannot_take_values_of_steps_and_collectives() {
    let cluster = SecureCluster::start(DataPath::Auto).await;
    let (mallory, worker) = (cluster.client("mallory"), cluster.client("worker-0"));
    let device = status(&cluster, &cluster.ps, &mallory).await.device_attributes.remove(0);
    let key = format!("{PS}/device:CPU:0;{:016x};{WORKER}/device:CPU:0;x;0:0", device.incarnation);
    let recv = |step_id| pb::RecvTensorRequest {
        step_id,
        rendezvous_key: key.clone(),
        request_id: fastrand::i64(1..),
        ..Default::default()
    };
    let method = "WorkerService/RecvTensor";
    for step in [0, 1, i64::MAX, -1] {
        is_denied::<pb::RecvTensorResponse>(
            cluster.call(&cluster.ps, &mallory, method, recv(step)).await,
        );
    }
    let buffer = pb::RecvBufRequest {
        step_id: 1,
        buf_rendezvous_key: "x".into(),
        src_device: device.name.clone(),
        ..Default::default()
    };
    let method = "WorkerService/RecvBuf";
    is_denied::<pb::RecvBufResponse>(cluster.call(&cluster.ps, &mallory, method, buffer).await);
    let group = pb::CompleteGroupRequest { group_key: 1, group_size: 1, ..Default::default() };
    let method = "WorkerService/CompleteGroup";
    is_denied::<pb::CompleteGroupResponse>(
        cluster.call(&cluster.ps, &mallory, method, group).await,
    );
    let instance = pb::CompleteInstanceRequest::default();
    let method = "WorkerService/CompleteInstance";
    is_denied::<pb::CompleteInstanceResponse>(
        cluster.call(&cluster.ps, &mallory, method, instance).await,
    );
    let steps = pb::GetStepSequenceRequest { graph_key: vec![1] };
    let method = "WorkerService/GetStepSequence";
    is_denied::<pb::GetStepSequenceResponse>(
        cluster.call(&cluster.ps, &mallory, method, steps.clone()).await,
    );
    // A task may.
    let answer: pb::GetStepSequenceResponse =
        cluster.call(&cluster.ps, &worker, method, steps).await.unwrap();
    assert_eq!(answer.step_sequence.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_is_no_task_because_it_describes_a_cluster_with_itself() {
    let cluster = SecureCluster::start(DataPath::Auto).await;
    // A certificate for another job of the same CA.
    let mallory = cluster.client("mallory-0");
    let tasks = [(0, "127.0.0.1:1".to_string())].into();
    let job = vec![pb::JobDef { name: "mallory".into(), tasks }];
    let server = pb::ServerDef {
        cluster: Some(pb::ClusterDef { job }),
        job_name: "mallory".into(),
        ..Default::default()
    };
    let session = pb::CreateWorkerSessionRequest {
        session_handle: "mallory's".into(),
        server_def: Some(server),
        ..Default::default()
    };
    let method = "WorkerService/CreateWorkerSession";
    let made: Result<pb::CreateWorkerSessionResponse, _> =
        cluster.call(&cluster.ps, &mallory, method, session).await;
    made.unwrap();
    let steps = pb::GetStepSequenceRequest { graph_key: vec![1] };
    let method = "WorkerService/GetStepSequence";
    is_denied::<pb::GetStepSequenceResponse>(
        cluster.call(&cluster.ps, &mallory, method, steps).await,
    );
    let task = "/job:mallory/replica:0/task:0";
    let why = link(&cluster, &mallory, task, &[4242]).await.err().unwrap();
    assert!(why.contains("only tasks of the cluster"), "{why}");
}

/// The greeting of a link, with the name and the incarnations that its sender claims.
fn hello(token: &[u8], task: &str, incarnations: &[u64]) -> Vec<u8> {
    let mut body = 6u32.to_le_bytes().to_vec();
    body.push(0);
    body.extend_from_slice(token);
    body.extend_from_slice(&(task.len() as u16).to_le_bytes());
    body.extend_from_slice(task.as_bytes());
    // Neither shared memory nor UCX.
    body.extend_from_slice(&[0; 18 + 10]);
    body.extend_from_slice(&(incarnations.len() as u32).to_le_bytes());
    incarnations.iter().for_each(|i| body.extend_from_slice(&i.to_le_bytes()));
    let mut all = b"FERROFLW".to_vec();
    all.extend_from_slice(&(body.len() as u32).to_le_bytes());
    all.extend(body);
    all
}

/// Tries to open a link to the ps. Returns the stream if it is welcome.
async fn link(
    cluster: &SecureCluster,
    client: &Credentials,
    task: &str,
    incarnations: &[u64],
) -> Result<BoxIo, String> {
    let offer = status(cluster, &cluster.ps, client).await.ferroflow_link.unwrap();
    let mut io = TlsConnector(client.clone()).connect(&cluster.ps).await.unwrap();
    io.write_all(&hello(&offer.token, task, incarnations)).await.unwrap();
    io.flush().await.unwrap();
    let mut head = [0; 13];
    let answer = tokio::time::timeout(FOREVER, io.read_exact(&mut head)).await.unwrap();
    if answer.is_ok() && head[12] == 1 {
        return Ok(io);
    }
    let mut why = Vec::new();
    let _ = tokio::time::timeout(FOREVER, io.read_to_end(&mut why)).await.unwrap();
    Err(String::from_utf8_lossy(&why).into_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_peer_cannot_link_as_another_task() {
    let cluster = SecureCluster::start(DataPath::Tcp).await;
    let ann = cluster.client("ann");
    let session = cluster.session(&ann, &there_and_back()).await.unwrap();
    let run = || async { session.run(vec![], &["back:0"], &[], Some(FOREVER)).await };
    assert_eq!(run().await.unwrap(), [Tensor::scalar(7.0f32)]);
    let worker = status(&cluster, &cluster.worker, &ann).await.device_attributes.remove(0);
    let mallory = cluster.client("mallory");
    // A client is no task, even if it claims the name of a task.
    for task in [WORKER, PS, "", "mallory", "/job:mallory/replica:0/task:0"] {
        let refused = link(&cluster, &mallory, task, &[worker.incarnation]).await;
        assert!(refused.is_err(), "{task}");
        assert_eq!(run().await.unwrap(), [Tensor::scalar(7.0f32)]);
    }
    // A task may not have the devices of another: it could send values in its name, and end its
    // steps by closing the link.
    let ps = cluster.client("ps-0");
    let why = link(&cluster, &ps, PS, &[worker.incarnation]).await.err().unwrap();
    assert!(why.contains("device of another task"), "{why}");
    let why = link(&cluster, &ps, WORKER, &[worker.incarnation]).await.err().unwrap();
    assert!(why.contains("is not for"), "{why}");
    let why = link(&cluster, &ps, PS, &vec![7; 5000]).await.err().unwrap();
    assert!(why.contains("devices"), "{why}");
    assert_eq!(run().await.unwrap(), [Tensor::scalar(7.0f32)]);
    // One with devices of its own is welcome.
    drop(link(&cluster, &ps, PS, &[4242]).await.unwrap());
    assert_eq!(run().await.unwrap(), [Tensor::scalar(7.0f32)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_cannot_send_values_of_another_even_if_it_is_first() {
    let cluster = SecureCluster::start(DataPath::Tcp).await;
    let ps = cluster.client("ps-0");
    let worker = status(&cluster, &cluster.worker, &ps).await.device_attributes.remove(0);
    // No other task has linked yet, so the worker does not know whose device that is.
    for (name, is_kept) in [(PS, true), (WORKER, false)] {
        let mut io = link(&cluster, &ps, PS, &[worker.incarnation]).await.unwrap();
        let device = "device:CPU:0";
        let key = format!("{name}/{device};{:016x};{PS}/{device};x;0:0", worker.incarnation);
        let mut frame = vec![3, 0, 0, 0];
        frame.extend((key.len() as u32).to_le_bytes());
        frame.extend([0; 16]);
        frame.extend(key.as_bytes());
        io.write_all(&frame).await.unwrap();
        io.flush().await.unwrap();
        let mut rest = Vec::new();
        let ended = tokio::time::timeout(Duration::from_millis(500), io.read_to_end(&mut rest));
        assert_eq!(ended.await.is_err(), is_kept, "values of {name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn half_greetings_of_links_keep_no_task_out() {
    let cluster = SecureCluster::start(DataPath::Tcp).await;
    let (mallory, worker) = (cluster.client("mallory"), cluster.client("worker-0"));
    let mut half = Vec::new();
    for _ in 0..600 {
        let mut io = TlsConnector(mallory.clone()).connect(&cluster.ps).await.unwrap();
        io.write_all(b"FERROFLW").await.unwrap();
        io.flush().await.unwrap();
        half.push(io);
    }
    drop(link(&cluster, &worker, WORKER, &[4242]).await.unwrap());
    // The oldest ones were closed to make room.
    let end = tokio::time::timeout(FOREVER, half[0].read(&mut [0])).await.unwrap();
    assert_eq!(end.unwrap_or(0), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn graphs_without_a_session_belong_to_their_caller_too() {
    let cluster = SecureCluster::start(DataPath::Auto).await;
    let (ann, mallory) = (cluster.client("ann"), cluster.client("mallory"));
    let register =
        pb::RegisterGraphRequest { graph_def: Some(pb::GraphDef::default()), ..Default::default() };
    let method = "WorkerService/RegisterGraph";
    let made: pb::RegisterGraphResponse =
        cluster.call(&cluster.ps, &ann, method, register).await.unwrap();
    let drop_it = || pb::DeregisterGraphRequest {
        graph_handle: made.graph_handle.clone(),
        ..Default::default()
    };
    let method = "WorkerService/DeregisterGraph";
    let refused: Result<pb::DeregisterGraphResponse, _> =
        cluster.call(&cluster.ps, &mallory, method, drop_it()).await;
    assert_eq!(refused.unwrap_err().code, code::ABORTED, "the handle is unknown to others");
    let dropped: Result<pb::DeregisterGraphResponse, _> =
        cluster.call(&cluster.ps, &ann, method, drop_it()).await;
    dropped.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_floods_a_server_with_sessions_keeps_no_other_out() {
    let limits =
        Limits { sessions: Limit { most: 3, ..Limits::DEFAULT.sessions }, ..Limits::DEFAULT };
    let cluster = SecureCluster::limited(DataPath::Auto, limits, |trust| trust).await;
    let (mallory, ann) = (cluster.client("mallory"), cluster.client("ann"));
    let mut open = Vec::new();
    for _ in 0..3 {
        open.push(cluster.session(&mallory, &there_and_back()).await.unwrap());
    }
    let e = cluster.session(&mallory, &there_and_back()).await.err().unwrap();
    assert_eq!(e.code(), ferroflow_core::Code::ResourceExhausted, "{e}");
    assert!(e.message().contains("--max-sessions"), "{e}");
    let session = cluster.session(&ann, &there_and_back()).await.unwrap();
    let back = session.run(vec![], &["back:0"], &[], Some(FOREVER)).await.unwrap();
    assert_eq!(back, [Tensor::scalar(7.0f32)]);
    // The same directly at a worker.
    for round in 0..5 {
        let request = pb::CreateWorkerSessionRequest {
            session_handle: format!("mallory {round}"),
            ..Default::default()
        };
        let method = "WorkerService/CreateWorkerSession";
        let made: Result<pb::CreateWorkerSessionResponse, _> =
            cluster.call(&cluster.ps, &mallory, method, request).await;
        match round {
            0..3 => drop(made.unwrap()),
            _ => assert_eq!(made.unwrap_err().code, code::RESOURCE_EXHAUSTED),
        }
    }
    session.run(vec![], &["back:0"], &[], Some(FOREVER)).await.unwrap();
    cluster.session(&ann, &there_and_back()).await.unwrap();
}

/// The headers of a call, after which its message should follow.
fn half_a_call() -> Vec<u8> {
    let path = b"/tensorflow.WorkerService/GetStatus";
    // `:method: POST`, `:scheme: https`, `:path`, `content-type`.
    let mut headers = vec![0x83, 0x87, 0x04, path.len() as u8];
    headers.extend(path);
    headers.extend(b"\x0f\x10\x10application/grpc");
    let mut frame = vec![0, 0, headers.len() as u8, 1, 4, 0, 0, 0, 1];
    frame.extend(headers);
    frame
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_opens_connections_without_end_keeps_no_other_out() {
    let limits =
        Limits { connections: Limit { most: 8, ..Limits::DEFAULT.connections }, ..Limits::DEFAULT };
    let cluster = SecureCluster::limited(DataPath::Auto, limits, |trust| trust).await;
    let (mallory, ann) = (cluster.client("mallory"), cluster.client("ann"));
    let session = cluster.session(&ann, &there_and_back()).await.unwrap();
    // HTTP/2 connections with settings: first without a call, then with the headers of one.
    let settings = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
    for opening in [settings.to_vec(), [&settings[..], &half_a_call()].concat()] {
        let mut held = Vec::new();
        for _ in 0..40 {
            let mut io = TlsConnector(mallory.clone()).connect(&cluster.worker).await.unwrap();
            io.write_all(&opening).await.unwrap();
            io.flush().await.unwrap();
            held.push(io);
        }
        let back = session.run(vec![], &["back:0"], &[], Some(FOREVER)).await.unwrap();
        assert_eq!(back, [Tensor::scalar(7.0f32)]);
        cluster.session(&ann, &there_and_back()).await.unwrap();
        drop(held);
    }
}
