//! The tasks, the state and the lifetime of sessions.

use crate::master::fixture::*;
use ferroflow_cluster::{ClusterSpec, ConnectOptions, workers_done};
use ferroflow_core::{Code, DType, PartialShape};
use ferroflow_graph::GraphDef;
use ferroflow_testing::graph;
use std::time::Duration;

const WORKER3: &str = "/job:worker/task:3";
const WORKER7: &str = "/job:worker/task:7";

/// A counter on each of two tasks. `bump` adds one to both; `sum` is their sum.
fn counters(a: &str, b: &str) -> GraphDef {
    let variable = |g: ferroflow_testing::GraphBuilder, name: &str, device: &str| {
        let (set, add) = (format!("{name}/set"), format!("{name}/add"));
        g.op(name, "VariableV2", &[])
            .attr("dtype", DType::Float)
            .attr("shape", PartialShape::scalar())
            .device(device)
            .op(set, "Assign", &[name, "zero"])
            .t()
            .op(add, "AssignAdd", &[name, "one"])
            .t()
    };
    graph()
        .dtype(DType::Float)
        .constant("zero", 0f32)
        .constant("one", 1f32)
        .with(|g| variable(g, "a", a))
        .with(|g| variable(g, "b", b))
        .op("set", "NoOp", &["^a/set", "^b/set"])
        .op("bump", "NoOp", &["^a/add", "^b/add"])
        .op("sum", "AddV2", &["a", "b"])
        .t()
        .build()
}

#[tokio::test(flavor = "multi_thread")]
async fn task_indices_of_a_job_may_be_sparse() {
    let cluster = Cluster::of(&[PS, WORKER3, WORKER7], &[], FOREVER);
    let session = cluster.session(WORKER7, &counters(WORKER3, PS)).await;
    session.run(vec![], &[], &["set"], Some(FOREVER)).await.unwrap();
    session.run(vec![], &[], &["bump"], Some(FOREVER)).await.unwrap();
    assert_eq!(floats(&session, &["sum"]).await.unwrap(), [2.0]);
    let absent = graph().constant("c", 1f32).device(WORKER0).build();
    let e = cluster.try_session(WORKER7, &absent).await.err().unwrap();
    assert_eq!(e.code(), Code::InvalidArgument, "{e}");
}

#[tokio::test(flavor = "multi_thread")]
async fn isolated_state_belongs_to_one_session_on_all_tasks() {
    let cluster = Cluster::start();
    // On the master's own task, and on two others.
    for (a, b) in [(WORKER0, PS), (PS, WORKER1)] {
        let def = counters(a, b);
        let isolated = || async {
            let config = ConnectOptions { isolate_state: true, ..ConnectOptions::default() };
            cluster.session_with(WORKER0, &def, config).await.unwrap()
        };
        let (shared, one, two) =
            (cluster.session(WORKER0, &def).await, isolated().await, isolated().await);
        for session in [&shared, &one] {
            session.run(vec![], &[], &["set"], Some(FOREVER)).await.unwrap();
        }
        one.run(vec![], &[], &["bump"], Some(FOREVER)).await.unwrap();
        assert_eq!(floats(&one, &["sum"]).await.unwrap(), [2.0]);
        assert_eq!(floats(&shared, &["sum"]).await.unwrap(), [0.0]);
        let e = floats(&two, &["sum"]).await.unwrap_err();
        assert_eq!(e.code(), Code::FailedPrecondition, "{e}");
        // Shared state stays when a session closes.
        one.close().await.unwrap();
        assert_eq!(floats(&shared, &["sum"]).await.unwrap(), [0.0]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_does_not_wait_for_filtered_tasks() {
    let timeout = Duration::from_secs(1);
    let cluster = Cluster::of(&[PS, WORKER0, WORKER1], &[WORKER1], timeout);
    let device_filters = vec!["/job:ps".into(), WORKER0.into()];
    let config = ConnectOptions { device_filters, ..ConnectOptions::default() };
    let session = cluster.session_with(WORKER0, &counters(WORKER0, PS), config).await.unwrap();
    session.run(vec![], &[], &["set"], Some(FOREVER)).await.unwrap();
    assert_eq!(floats(&session, &["sum"]).await.unwrap(), [0.0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_waiting_session_logs_the_task_its_address_and_the_cause() {
    let timeout = Duration::from_millis(300);
    let mut cluster = Cluster::of(&[PS, WORKER0, WORKER1], &[PS, WORKER1], timeout);
    // Another task listens at the address of the ps.
    cluster.serve_as(WORKER1, PS);
    let e = cluster.try_session(WORKER0, &GraphDef::default()).await.err().unwrap();
    assert_eq!(e.code(), Code::DeadlineExceeded, "{e}");
    let (ps, worker) = (cluster.address(PS), cluster.address(WORKER1));
    for says in [
        format!("/job:ps/replica:0/task:0 at {ps}: that is another task, with /job:worker"),
        format!("/job:worker/replica:0/task:1 at {worker}: "),
        "Connection refused".into(),
        "gave up after 0.3 s".into(),
    ] {
        assert!(e.message().contains(&says), "{says}: {e}");
    }
}

#[tokio::test]
async fn workers_done_returns_at_once_without_workers() {
    let none = ClusterSpec::parse("ps=127.0.0.1:1").unwrap();
    assert_eq!(workers_done(&none, FOREVER).await.unwrap_err().code(), Code::InvalidArgument);
}
