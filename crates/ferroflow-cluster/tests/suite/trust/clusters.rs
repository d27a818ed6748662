//! Clusters whose tasks and clients use TLS.

use super::fixture::*;
use ferroflow_cluster::{DataPath, JobAuthority, PeerIdentity, Trust};
use ferroflow_core::{DType, PartialShape, Tensor};
use ferroflow_graph::GraphDef;
use ferroflow_testing::graph;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// A value goes from the worker to the ps and back.
fn round_trip(len: usize) -> GraphDef {
    graph()
        .dtype(DType::Float)
        .op("v", "VariableV2", &[])
        .attr("dtype", DType::Float)
        .attr("shape", PartialShape::new([Some(len)]))
        .attr("shared_name", format!("v{len}").as_str())
        .device("/job:ps/task:0")
        .placeholder("start")
        .device("/job:worker/task:0")
        .op("set", "Assign", &["v", "start"])
        .t()
        .device("/job:ps/task:0")
        .op("back", "Neg", &["v"])
        .t()
        .device("/job:worker/task:0")
        .build()
}

#[tokio::test(flavor = "multi_thread")]
async fn values_travel_between_tasks_over_tls_on_every_path() {
    for path in [DataPath::Auto, DataPath::Tcp, DataPath::Grpc] {
        let cluster = SecureCluster::start(path).await;
        let client = cluster.client("someone");
        for len in [3, 1_000_000] {
            let session = cluster.session(&client, &round_trip(len)).await.unwrap();
            for round in 0..3 {
                let values: Vec<f32> = (0..len).map(|i| (i * (round + 1)) as f32).collect();
                let feed = vec![("start:0".to_string(), Tensor::vector(&values))];
                session.run(feed, &[], &["set"], Some(FOREVER)).await.unwrap();
                let back = session.run(vec![], &["back:0"], &[], Some(FOREVER)).await.unwrap();
                let expected: Vec<f32> = values.iter().map(|v| -v).collect();
                assert_eq!(back[0], Tensor::vector(&expected), "{path:?}");
            }
            session.close().await.unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_without_the_right_credentials_are_refused() {
    let cluster = SecureCluster::start(DataPath::Auto).await;
    let (secure, plain) =
        (format!("grpcs://{}", cluster.worker), format!("grpc://{}", cluster.worker));
    let g = round_trip(1);
    assert!(session(&secure, Some(&cluster.client("x")), &g).await.is_ok());
    assert!(try_session(&plain, None, &g).await.is_err(), "no TLS");
    let stranger = credentials(&JobAuthority::new().unwrap(), &["x"]);
    assert!(try_session(&secure, Some(&stranger), &g).await.is_err(), "another CA");
    let e = try_session(&secure, None, &g).await.err().unwrap();
    assert!(e.message().contains("FERROFLOW_CREDENTIALS"), "{e}");
}

#[tokio::test(flavor = "multi_thread")]
async fn bytes_that_are_no_tls_do_not_disturb_a_server() {
    let cluster = SecureCluster::start(DataPath::Auto).await;
    for bytes in
        [&b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"[..], b"FERROFLW\0\0\0\0", b"\x16\x03\x01\xff\xff"]
    {
        let mut tcp = tokio::net::TcpStream::connect(&cluster.worker).await.unwrap();
        tcp.write_all(bytes).await.unwrap();
        tcp.shutdown().await.unwrap();
        let mut answer = Vec::new();
        // At most an alert, and never an HTTP/2 or link greeting.
        let _ = tcp.read_to_end(&mut answer).await;
        assert!(answer.len() < 16, "{answer:?}");
    }
    let client = cluster.client("x");
    cluster.session(&client, &round_trip(1)).await.unwrap();
}

/// More silent connections than may greet at a time.
#[tokio::test(flavor = "multi_thread")]
async fn silent_connections_do_not_keep_clients_out() {
    let cluster = SecureCluster::start(DataPath::Auto).await;
    let mut silent = Vec::new();
    for _ in 0..600 {
        silent.push(tokio::net::TcpStream::connect(&cluster.worker).await.unwrap());
    }
    let client = cluster.client("x");
    cluster.session(&client, &round_trip(1)).await.unwrap();
    // The oldest ones were closed to make room.
    let mut first = [0];
    assert_eq!(silent[0].read(&mut first).await.unwrap_or(0), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_that_opens_silent_connections_closes_its_own() {
    let cluster = SecureCluster::start(DataPath::Auto).await;
    let mut slow = tokio::net::TcpStream::connect(&cluster.worker).await.unwrap();
    let mut flood = Vec::new();
    for _ in 0..600 {
        let socket = tokio::net::TcpSocket::new_v4().unwrap();
        socket.bind("127.0.0.2:0".parse().unwrap()).unwrap();
        flood.push(socket.connect(cluster.worker.parse().unwrap()).await.unwrap());
    }
    let mut byte = [0];
    assert_eq!(flood[0].read(&mut byte).await.unwrap_or(0), 0, "the flood has closed it");
    let waiting = tokio::time::timeout(Duration::from_millis(100), slow.read(&mut byte)).await;
    assert!(waiting.is_err(), "another host's connection is still open");
}

#[tokio::test(flavor = "multi_thread")]
async fn listed_peers_need_no_tls() {
    let local = vec!["127.0.0.0/8".parse().unwrap()];
    let listed = |trust| Trust { insecure_peers: local.clone(), ..trust };
    let cluster = SecureCluster::with(DataPath::Auto, listed).await;
    let g = round_trip(1);
    session(&format!("grpc://{}", cluster.worker), None, &g).await.unwrap();
    cluster.session(&cluster.client("x"), &g).await.unwrap();
}

#[test]
fn identities_print_without_secrets() {
    assert_eq!(PeerIdentity::User(7).to_string(), "user 7 of this host");
}
