//! Large feeds and fetches between a client and a server on one host.

use crate::master::fixture::FOREVER;
use ferroflow_cluster::{ClusterSpec, RemoteSession, Server, ServerOptions};
use ferroflow_core::{DType, Tensor};
use ferroflow_graph::{Catalog, GraphDef};
use ferroflow_metrics::{MetricsFormat, TaskMetrics};
use ferroflow_testing::graph;
use std::sync::Arc;
use tokio::net::TcpListener;

const ELEMENTS: usize = 1 << 20;

/// A server of the calling runtime: its address and what it counts.
async fn server() -> (String, Arc<TaskMetrics>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let cluster = ClusterSpec::from_tasks([("worker", 0, address.as_str())]).unwrap();
    let metrics = TaskMetrics::new("worker", 0);
    let options =
        ServerOptions { metrics: metrics.clone(), ..ServerOptions::new(cluster, "worker", 0) };
    let mut catalog = Catalog::new();
    ferroflow_ops::register(&mut catalog);
    let server = Server::listening(listener, options, Arc::new(catalog)).unwrap();
    tokio::spawn(async move { server.serve(std::future::pending()).await });
    (address, metrics)
}

/// Bytes over gRPC connections so far, in one direction.
fn grpc_bytes(metrics: &TaskMetrics, direction: &str) -> f64 {
    let text = metrics.encode(MetricsFormat::Text);
    let name = format!("ferroflow_{direction}_bytes_total");
    let lines = text.lines().filter(|l| l.starts_with(&name) && l.contains("\"grpc\""));
    lines.filter_map(|l| l.rsplit(' ').next()?.parse::<f64>().ok()).sum()
}

/// Sums of a large and a small feed.
fn sums() -> GraphDef {
    graph()
        .dtype(DType::Float)
        .placeholder("x")
        .placeholder("small")
        .op("y", "AddV2", &["x", "x"])
        .t()
        .op("z", "AddV2", &["x", "small"])
        .t()
        .op("neg", "Neg", &["small"])
        .t()
        .build()
}

#[tokio::test(flavor = "multi_thread")]
async fn large_feeds_and_fetches_do_not_go_through_the_connection() {
    let (address, metrics) = server().await;
    let target = format!("grpc://{address}");
    let session = RemoteSession::connect(&target, &sums(), FOREVER).await.unwrap();
    let before = [grpc_bytes(&metrics, "received"), grpc_bytes(&metrics, "sent")];
    // More than there is room for, if blocks were not used again.
    for i in 0..300 {
        let values: Vec<f32> = (0..ELEMENTS).map(|k| (i + k % 7) as f32).collect();
        let x = Tensor::from_slice([ELEMENTS], &values).unwrap();
        let feeds = vec![("small".to_string(), Tensor::scalar(i as f32)), ("x".to_string(), x)];
        let found = session.run(feeds, &["y", "neg", "z"], &[], Some(FOREVER)).await.unwrap();
        let [y, neg, z] = &found[..] else { panic!("three fetches") };
        let (y, z) = (y.as_slice::<f32>().unwrap(), z.as_slice::<f32>().unwrap());
        for k in [0, 1, ELEMENTS - 1] {
            assert_eq!((y[k], z[k]), (2.0 * values[k], values[k] + i as f32));
        }
        assert_eq!(neg.scalar_value::<f32>().unwrap(), -(i as f32));
    }
    let through = |direction: &str, before: f64| grpc_bytes(&metrics, direction) - before;
    let (received, sent) = (through("received", before[0]), through("sent", before[1]));
    assert!(received < 1e6 && sent < 1e6, "{received} bytes received, {sent} sent");
    session.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_variable_keeps_its_value_when_its_feed_was_in_shared_memory() {
    let (address, _) = server().await;
    let def = graph()
        .dtype(DType::Float)
        .op("v", "VariableV2", &[])
        .attr("dtype", DType::Float)
        .attr("shape", ferroflow_core::PartialShape::from([ELEMENTS]))
        .placeholder("x")
        .op("set", "Assign", &["v", "x"])
        .t()
        .op("read", "Identity", &["v"])
        .t()
        .op("y", "Neg", &["x"])
        .t()
        .build();
    let target = format!("grpc://{address}");
    let session = RemoteSession::connect(&target, &def, FOREVER).await.unwrap();
    let filled = |x: f32| {
        vec![("x".to_string(), Tensor::from_slice([ELEMENTS], &vec![x; ELEMENTS]).unwrap())]
    };
    session.run(filled(7.0), &[], &["set"], Some(FOREVER)).await.unwrap();
    for x in 0..5 {
        session.run(filled(x as f32), &["y"], &[], Some(FOREVER)).await.unwrap();
    }
    let v = session.run(vec![], &["read"], &[], Some(FOREVER)).await.unwrap();
    assert!(v[0].as_slice::<f32>().unwrap().iter().all(|v| *v == 7.0));
}
