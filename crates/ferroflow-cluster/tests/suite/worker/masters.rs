//! The calls of a master: sessions, graphs, whole and partial runs.

use crate::worker::fixture::*;
use ferroflow_cluster::rpc::code;
use ferroflow_core::{Code, DType, Tensor};
use ferroflow_graph::wire::step::{ExecOptions, RunGraphRequest};
use ferroflow_graph::{AttrList, Attrs, NodeDef};
use ferroflow_proto::tensorflow as pb;
use prost::Message;

fn float() -> Attrs {
    Attrs::new().with("T", DType::Float)
}

#[tokio::test]
async fn a_task_measures_its_devices_when_a_master_asks_for_it() {
    let ps = Ps::start().await;
    let status = |ferroflow_measures_devices| {
        let request = pb::GetStatusRequest { ferroflow_measures_devices };
        ps.call::<pb::GetStatusResponse>("GetStatus", request)
    };
    let speed = |status: pb::GetStatusResponse| status.device_attributes[0].ferroflow_speed;
    assert_eq!(speed(status(false).await.unwrap()), None);
    let measured = speed(status(true).await.unwrap()).unwrap();
    assert!(measured.flops > 1e6 && measured.bandwidth > 1e6, "{measured:?}");
    assert!(measured.memory > 0, "{measured:?}");
    // From now on every master learns it.
    assert_eq!(speed(status(false).await.unwrap()), Some(measured));
}

#[tokio::test]
async fn a_master_feeds_runs_fetches_and_leaves() {
    let ps = Ps::start().await;
    // Consumers first, as masters send them.
    let nodes = vec![
        ps.fetch("y", "y", DType::Float),
        node("y", "Identity", &["_recv_x"], float()),
        ps.feed("x", DType::Float),
    ];
    let graph = ps.with_graph(nodes).await;
    for step in 1..4 {
        let mut request = run_of(&graph, step);
        request.sends = vec![(ps.client_key("x"), Tensor::scalar(step as f32))];
        request.recv_keys = vec![ps.client_key("y")];
        request.exec = ExecOptions { timeline: true, partition_graphs: true, ..request.exec };
        let response = ps.run(request).await.unwrap();
        assert_eq!(response.status, None);
        assert_eq!(response.recvs[0].0, ps.client_key("y"));
        assert_eq!(response.recvs[0].1.scalar_value::<f32>().unwrap(), step as f32);
        let stats = pb::StepStats::decode(response.record.step_stats.unwrap()).unwrap();
        assert!(stats.dev_stats[0].node_stats.iter().any(|n| n.node_name == "y"));
        let partition = pb::GraphDef::decode(response.record.partition_graphs[0].clone()).unwrap();
        assert_eq!(partition.node.len(), 3);
        ps.cleanup(step).await;
    }
    for _ in 0..2 {
        let request = pb::DeleteWorkerSessionRequest { session_handle: "S1".into() };
        let _: pb::DeleteWorkerSessionResponse =
            ps.call("DeleteWorkerSession", request).await.unwrap();
    }
    let late = ps.run(run_of(&graph, 9)).await.unwrap().status.unwrap();
    assert_eq!(late.code(), Code::Aborted);
    assert_eq!(
        late.message(),
        "Session handle is not found: S1. Possibly this worker (\"/job:ps/replica:0/task:0\") \
         just restarted."
    );
}

#[tokio::test]
async fn unknown_handles_are_aborted() {
    let ps = Ps::start().await;
    let error = ps.register("S1", vec![]).await.unwrap_err();
    assert_eq!(error.code, code::ABORTED);
    assert!(error.message.starts_with("Session handle is not found: S1."), "{error:?}");
    ps.create_session("S1", 1).await;
    let unknown = ps.run(run_of("nope", 1)).await.unwrap().status.unwrap();
    assert_eq!(unknown.message(), "Graph handle is not found: nope");
    // With the failure as the status of the call instead of in the answer.
    let mut request = run_of("nope", 1);
    request.store_errors_in_response_body = false;
    assert_eq!(ps.run(request).await.unwrap_err().code, code::ABORTED);
    let request = pb::DeregisterGraphRequest {
        graph_handle: "nope".into(),
        session_handle: "S1".into(),
        create_worker_session_called: true,
    };
    let gone = ps.call::<pb::DeregisterGraphResponse>("DeregisterGraph", request).await;
    assert_eq!(
        gone.unwrap_err().message,
        "Graph handle is not found: nope. Possibly, this worker just restarted."
    );
    let empty = pb::CreateWorkerSessionRequest::default();
    let refused = ps.call::<pb::CreateWorkerSessionResponse>("CreateWorkerSession", empty).await;
    assert_eq!(refused.unwrap_err().message, "Session must be non-empty.");
}

#[tokio::test]
async fn graphs_for_other_tasks_are_refused() {
    let ps = Ps::start().await;
    ps.create_session("S1", 1).await;
    let mut nowhere = constant("a", Tensor::scalar(1f32));
    nowhere.device.clear();
    let error = ps.register("S1", vec![nowhere]).await.unwrap_err();
    assert_eq!(error.message, "Node 'a' is missing a device specification");
    let mut elsewhere = constant("a", Tensor::scalar(1f32));
    elsewhere.device = WORKER.into();
    let error = ps.register("S1", vec![elsewhere]).await.unwrap_err();
    assert_eq!(error.code, code::INVALID_ARGUMENT);
    let error = ps.register("S1", vec![node("a", "NoSuchOp", &[], Attrs::new())]).await;
    assert_eq!(error.unwrap_err().code, code::NOT_FOUND);
}

#[tokio::test]
async fn requests_without_a_session_use_the_default_session() {
    let ps = Ps::start().await;
    let graph = ferroflow_graph::GraphDef {
        nodes: vec![constant("one", Tensor::scalar(1f32)), ps.fetch("y", "one", DType::Float)],
        ..Default::default()
    };
    let request = pb::RegisterGraphRequest {
        graph_def: Some(ferroflow_graph::wire::graph::graph_to_proto(&graph).unwrap()),
        ..Default::default()
    };
    let response: pb::RegisterGraphResponse = ps.call("RegisterGraph", request).await.unwrap();
    let mut request = run_of(&response.graph_handle, 1);
    request.session_handle.clear();
    request.create_worker_session_called = false;
    request.recv_keys = vec![ps.client_key("y")];
    let response = ps.run(request).await.unwrap();
    assert_eq!(response.recvs[0].1.scalar_value::<f32>().unwrap(), 1.0);
}

#[tokio::test]
async fn a_request_runs_once() {
    let ps = Ps::start().await;
    let graph = ps.with_graph(vec![constant("one", Tensor::scalar(1f32))]).await;
    let request = run_of(&graph, 1);
    assert_eq!(ps.run(request.clone()).await.unwrap().status, None);
    let twice = ps.run(request.clone()).await.unwrap().status.unwrap();
    assert_eq!(twice.code(), Code::Aborted);
    assert!(twice.message().starts_with("The same RunGraph request was received twice. "));
    // Requests without an id may be repeated.
    for _ in 0..2 {
        let again = ps.run(RunGraphRequest { request_id: 0, ..request.clone() }).await.unwrap();
        assert_eq!(again.status, None);
    }
}

#[tokio::test]
async fn partial_runs_feed_and_fetch_in_parts() {
    let ps = Ps::start().await;
    let nodes = vec![
        ps.feed("a", DType::Float),
        ps.feed("b", DType::Float),
        ps.fetch("x", "_recv_a", DType::Float),
        ps.fetch("y", "_recv_b", DType::Float),
    ];
    let graph = ps.with_graph(nodes).await;
    let part = |feed: &str, fetch: &str, value: f32, is_last| RunGraphRequest {
        sends: vec![(ps.client_key(feed), Tensor::scalar(value))],
        recv_keys: vec![ps.client_key(fetch)],
        is_partial: true,
        is_last_partial_run: is_last,
        ..run_of(&graph, 5)
    };
    let first = ps.run(part("a", "x", 1.0, false)).await.unwrap();
    assert_eq!(first.status, None);
    assert_eq!(first.recvs[0].1.scalar_value::<f32>().unwrap(), 1.0);
    let last = ps.run(part("b", "y", 2.0, true)).await.unwrap();
    assert_eq!(last.status, None);
    assert_eq!(last.recvs[0].1.scalar_value::<f32>().unwrap(), 2.0);
    ps.cleanup(5).await;
}

#[tokio::test]
async fn fetches_that_never_arrive_are_errors() {
    let ps = Ps::start().await;
    let nodes = vec![
        constant("one", Tensor::scalar(1f32)),
        constant("no", Tensor::scalar(false)),
        node("switch", "Switch", &["one", "no"], float()),
        ps.fetch("dead", "switch:1", DType::Float),
    ];
    let graph = ps.with_graph(nodes).await;
    let mut request = run_of(&graph, 5);
    request.recv_keys = vec![ps.client_key("dead")];
    let dead = ps.run(request).await.unwrap().status.unwrap();
    let text = format!(
        "Failed to fetch outputs for step 5. (Original error message: The tensor returned for {} \
         was not valid.)",
        ps.client_key("dead")
    );
    assert_eq!((dead.code(), dead.message()), (Code::Internal, text.as_str()));
    let mut request = run_of(&graph, 6);
    request.recv_keys = vec![ps.client_key("unheard")];
    let missing = ps.run(request).await.unwrap().status.unwrap();
    assert_eq!(missing.code(), Code::InvalidArgument);
}

#[tokio::test]
async fn old_sessions_of_a_restarted_master_are_closed() {
    let ps = Ps::start().await;
    let graph = ps.with_graph(blocked("take")).await;
    let running = ps.start_run(run_of(&graph, 1)).await;
    ps.create_session("same life", 1).await;
    assert!(!running.is_finished());
    ps.create_session("S2", 2).await;
    let ended = running.await.unwrap().unwrap().status.unwrap();
    assert!(matches!(ended.code(), Code::Aborted | Code::Cancelled), "{ended}");
    let late = ps.run(run_of(&graph, 2)).await.unwrap().status.unwrap();
    assert!(late.message().starts_with("Session handle is not found: S1."), "{late}");
    assert!(ps.register("S2", vec![]).await.is_ok());
}

#[tokio::test]
async fn unsupported_methods_are_unimplemented() {
    let ps = Ps::start().await;
    let tracing = ps.call::<pb::TracingResponse>("Tracing", pb::TracingRequest::default()).await;
    let tracing = tracing.unwrap_err();
    assert_eq!((tracing.code, &*tracing.message), (code::UNIMPLEMENTED, "Tracing"));
    let logging: pb::LoggingResponse =
        ps.call("Logging", pb::LoggingRequest::default()).await.unwrap();
    assert!(logging.step.is_empty());
    let ack = pb::MarkRecvFinishedRequest { request_id: 1 };
    assert!(ps.call::<pb::MarkRecvFinishedResponse>("MarkRecvFinished", ack).await.is_ok());
}

/// Adds an element to the queue `q`, which is shared by name, and fetches its size.
fn count_up(ps: &Ps) -> Vec<NodeDef> {
    let types = || AttrList::Types(vec![DType::Float]);
    let queue = Attrs::new().with("component_types", types()).with("shared_name", "q");
    vec![
        node("q", "FIFOQueueV2", &[], queue),
        constant("one", Tensor::scalar(1f32)),
        node("put", "QueueEnqueueV2", &["q", "one"], Attrs::new().with("Tcomponents", types())),
        node("size", "QueueSizeV2", &["q", "^put"], Attrs::new()),
        ps.fetch("n", "size", DType::Int32),
    ]
}

async fn counted(ps: &Ps, request: pb::CreateWorkerSessionRequest, step_id: i64) -> i32 {
    let session = request.session_handle.clone();
    let _: pb::CreateWorkerSessionResponse = ps.call("CreateWorkerSession", request).await.unwrap();
    let graph = ps.register(&session, count_up(ps)).await.unwrap();
    let mut request = run_of(&graph, step_id);
    request.session_handle = session;
    request.recv_keys = vec![ps.client_key("n")];
    let response = ps.run(request).await.unwrap();
    assert_eq!(response.status, None);
    response.recvs[0].1.scalar_value().unwrap()
}

#[tokio::test]
async fn state_is_shared_unless_a_session_keeps_its_own() {
    let ps = Ps::start().await;
    let session = |handle: &str, isolate_session_state| pb::CreateWorkerSessionRequest {
        session_handle: handle.into(),
        isolate_session_state,
        ..Default::default()
    };
    assert_eq!(counted(&ps, session("S1", false), 1).await, 1);
    assert_eq!(counted(&ps, session("S2", false), 2).await, 2);
    assert_eq!(counted(&ps, session("alone", true), 3).await, 1);
    let other = pb::CleanupAllRequest { container: vec!["other".into()] };
    let _: pb::CleanupAllResponse = ps.call("CleanupAll", other).await.unwrap();
    assert_eq!(counted(&ps, session("S3", false), 4).await, 3);
    let all = pb::CleanupAllRequest::default();
    let _: pb::CleanupAllResponse = ps.call("CleanupAll", all).await.unwrap();
    assert_eq!(counted(&ps, session("S4", false), 5).await, 1);
}

#[tokio::test]
async fn a_client_may_give_the_task_another_name() {
    let ps = Ps::start().await;
    let task = |name: &str, index: i32, address: &str| pb::JobDef {
        name: name.into(),
        tasks: [(index, address.to_string())].into_iter().collect(),
    };
    let job = vec![task("other", 3, "127.0.0.1:1"), task("worker", 0, "127.0.0.1:2")];
    let request = pb::CreateWorkerSessionRequest {
        session_handle: "S1".into(),
        server_def: Some(pb::ServerDef {
            cluster: Some(pb::ClusterDef { job }),
            job_name: "other".into(),
            task_index: 3,
            ..Default::default()
        }),
        ..Default::default()
    };
    let _: pb::CreateWorkerSessionResponse = ps.call("CreateWorkerSession", request).await.unwrap();
    let name = "/job:other/replica:0/task:3/device:CPU:0";
    let mut send = ps.send("x", "one", DType::Float);
    send.attrs = send.attrs.with("send_device", name);
    let mut nodes = vec![constant("one", Tensor::scalar(1f32)), send];
    assert_eq!(ps.register("S1", nodes.clone()).await.unwrap_err().code, code::INVALID_ARGUMENT);
    nodes.iter_mut().for_each(|node| node.device = name.into());
    let graph = ps.register("S1", nodes).await.unwrap();
    assert_eq!(ps.run(run_of(&graph, 7)).await.unwrap().status, None);
    let key = ps.key("x").replacen(PS, name, 1);
    assert_eq!(scalar(&ps.recv(7, &key).await.unwrap()), 1.0);
    // This session does not know it by its own name.
    assert_eq!(ps.recv(7, &ps.key("x")).await.unwrap_err().code, code::INVALID_ARGUMENT);
}
