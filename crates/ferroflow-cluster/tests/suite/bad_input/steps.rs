//! Steps with unknown names, and steps that never end.

use super::fixture::*;
use Code::{DeadlineExceeded, InvalidArgument, NotFound};
use ferroflow_core::{Code, DType, Tensor};
use ferroflow_graph::wire::step::RunStepRequest;
use ferroflow_proto::tensorflow as pb;
use std::time::Duration;

struct Asked {
    feeds: Vec<(&'static str, Tensor)>,
    fetches: Vec<&'static str>,
    targets: Vec<&'static str>,
}

fn fetch(name: &'static str) -> Asked {
    Asked { feeds: vec![], fetches: vec![name], targets: vec![] }
}

fn target(name: &'static str) -> Asked {
    Asked { feeds: vec![], fetches: vec![], targets: vec![name] }
}

fn feed(feeds: Vec<(&'static str, Tensor)>) -> Asked {
    Asked { feeds, fetches: vec!["q:0"], targets: vec![] }
}

#[tokio::test(flavor = "multi_thread")]
async fn missing_feeds_fetches_and_targets() {
    let f = Fixture::start().await;
    let p = node("p", "Placeholder", &[]).attr("dtype", DType::Float).attr("shape", shape(&[2]));
    let nodes = vec![scalar("c", 1.0), p, float_op("q", "Neg", &["p"]), node("n", "NoOp", &[])];
    let session_handle = f.create(graph(nodes)).await.expect("a session");
    let float = || Tensor::scalar(1.0f32);
    let cases = [
        (fetch("gone:0"), NotFound, "FetchOutputs node gone:0: not found"),
        (fetch(""), NotFound, "not found"),
        (fetch("c:5"), InvalidArgument, "FetchOutputs c:5: output index too large, must be < 1"),
        (fetch("c:99999999999999999"), InvalidArgument, "output index too large"),
        (fetch("c:-1"), NotFound, "not found"),
        (fetch("n:0"), InvalidArgument, "n:0"),
        (fetch("p:0"), InvalidArgument, "You must feed a value for placeholder tensor 'p'"),
        (fetch("q:0"), InvalidArgument, "{{node p}}"),
        (target("gone"), NotFound, "gone"),
        (target(""), NotFound, ""),
        (feed(vec![("gone:0", float())]), NotFound, "unable to find feed output gone:0"),
        (feed(vec![("p:3", float())]), InvalidArgument, "p:3 should have output index < 1"),
        (feed(vec![("p:0", float()), ("p:0", float())]), InvalidArgument, "p:0"),
        (feed(vec![("q:0", float())]), InvalidArgument, "q:0 is both fed and fetched"),
        (feed(vec![("p:0", Tensor::scalar(1i32))]), InvalidArgument, "p:0"),
        (
            Asked { feeds: vec![], fetches: vec![], targets: vec![] },
            InvalidArgument,
            "Must specify at least one target to fetch or execute.",
        ),
    ];
    for (asked, code, text) in cases {
        let names = |list: &[&str]| list.iter().map(|s| s.to_string()).collect::<Vec<_>>();
        let request = RunStepRequest {
            session_handle: session_handle.clone(),
            feeds: asked.feeds.iter().map(|(n, t)| (n.to_string(), t.clone())).collect(),
            fetches: names(&asked.fetches),
            targets: names(&asked.targets),
            ..RunStepRequest::default()
        };
        let e = f.step(request, HANG).await.expect_err(text);
        expect(&e, code, text);
    }
    // The session still works.
    let request = RunStepRequest {
        session_handle,
        feeds: vec![("p:0".into(), Tensor::vector(&[1.0f32, 2.0]))],
        fetches: vec!["q:0".into()],
        ..RunStepRequest::default()
    };
    assert_eq!(f.step(request, HANG).await.expect("q"), [Tensor::vector(&[-1.0f32, -2.0])]);
}

/// `while (true) {}` in the primitives of control flow.
fn endless(parallel_iterations: i64) -> Vec<pb::NodeDef> {
    let always = pb::TensorProto { bool_val: vec![true], ..tensor(DType::Bool, &[]) };
    let mut always = constant("always", always);
    always.input.push("^m".into());
    vec![
        scalar("a", 1.0),
        float_op("e", "Enter", &["a"])
            .attr("frame_name", "f")
            .attr("parallel_iterations", parallel_iterations),
        float_op("m", "Merge", &["e", "n"]).attr("N", 2i64),
        always,
        node("c", "LoopCond", &["always"]),
        float_op("s", "Switch", &["m", "c"]),
        float_op("i", "Neg", &["s:1"]),
        float_op("n", "NextIteration", &["i"]),
        float_op("x", "Exit", &["s"]),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn endless_loops_end_at_the_deadline() {
    let f = Fixture::start().await;
    for parallel_iterations in [1, 10, 1 << 40, i64::MAX] {
        let session_handle =
            f.create(graph(endless(parallel_iterations))).await.expect("a session");
        let request = RunStepRequest {
            session_handle: session_handle.clone(),
            fetches: vec!["x:0".into()],
            ..RunStepRequest::default()
        };
        let e = f.step(request, Duration::from_millis(100)).await.expect_err("no end");
        expect(&e, DeadlineExceeded, "");
        // Closing waits for the step, which has ended.
        f.close(&session_handle).await.expect("it was open");
        f.works().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn waiting_steps_end_at_the_deadline() {
    let f = Fixture::start().await;
    let queue = node("q", "FIFOQueueV2", &[]).attr("component_types", vec![DType::Float]);
    let x = node("x", "QueueDequeueV2", &["q"]).attr("component_types", vec![DType::Float]);
    let session_handle = f.create(graph(vec![queue, x])).await.expect("a session");
    let request = RunStepRequest {
        session_handle: session_handle.clone(),
        fetches: vec!["x:0".into()],
        ..RunStepRequest::default()
    };
    let e = f.step(request, Duration::from_millis(100)).await.expect_err("an empty queue");
    expect(&e, DeadlineExceeded, "");
    f.close(&session_handle).await.expect("it was open");
    f.works().await;
}

/// A loop whose Exit is alive in every iteration. The nodes after it run only once.
#[tokio::test(flavor = "multi_thread")]
async fn an_exit_that_fires_repeatedly() {
    let f = Fixture::start().await;
    let mut nodes = endless(10);
    let limit = pb::TensorProto { float_val: vec![10.0], ..tensor(DType::Float, &[]) };
    let mut limit = constant("limit", limit);
    limit.input.push("^m".into());
    let mut one = scalar("one", 1.0);
    one.input.push("^m".into());
    nodes[3] = limit;
    nodes[4] = node("c", "LoopCond", &["less"]);
    nodes[6] = float_op("i", "AddV2", &["s:1", "one"]);
    nodes[8] = float_op("exit", "Exit", &["m"]);
    nodes.extend([one, float_op("less", "Less", &["m", "limit"]), float_op("x", "Neg", &["exit"])]);
    let _ = f.fetch(graph(nodes), "x:0").await;
    f.works().await;
}
