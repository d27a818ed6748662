//! Thousands of sessions, and graphs of many nodes. One client does not affect others, and memory
//! stays bounded.

use super::fixture::*;
use ferroflow_core::{Code, DType, Tensor};
use ferroflow_graph::wire::step::RunStepRequest;

/// Resident memory of this process.
fn resident_bytes() -> usize {
    let text = std::fs::read_to_string("/proc/self/statm").expect("linux");
    let pages: usize = text.split(' ').nth(1).expect("a number").parse().expect("a number");
    pages * 4096
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_session_does_not_affect_another() {
    let f = Fixture::start().await;
    let sound = f.create(graph(vec![scalar("a", 1.0), float_op("x", "Neg", &["a"])])).await;
    let sound = sound.expect("a session");
    let bad = vec![
        scalar("a", 1.0),
        int64s("dims", &[1 << 60]),
        float_op("x", "Fill", &["dims", "a"]).attr("index_type", DType::Int64),
    ];
    let bad = f.create(graph(bad)).await.expect("a session");
    let step = |session_handle: &str| RunStepRequest {
        session_handle: session_handle.to_string(),
        fetches: vec!["x:0".into()],
        ..RunStepRequest::default()
    };
    for _ in 0..100 {
        let (good, failed) = tokio::join!(f.step(step(&sound), HANG), f.step(step(&bad), HANG));
        assert_eq!(good.expect("nothing is wrong here"), [Tensor::scalar(-1.0f32)]);
        expect(&failed.expect_err("too large"), Code::ResourceExhausted, "{{node x}}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn thousands_of_sessions() {
    let f = Fixture::start().await;
    let queue = |i: usize| {
        vec![
            scalar("a", i as f32),
            float_op("x", "Neg", &["a"]),
            node("q", "FIFOQueueV2", &[]).attr("component_types", vec![DType::Float]),
            constant("big", tensor(DType::Float, &[1 << 16])),
            float_op("y", "Neg", &["big"]),
        ]
    };
    let mut before = 0;
    for i in 0..1500 {
        if i == 500 {
            before = resident_bytes();
        }
        let x = f.fetch(graph(queue(i)), "y:0").await.expect("a step");
        assert_eq!(x.elements(), 1 << 16);
    }
    // 1000 sessions of 512 kB each, if they leaked. Other tests of this process may run too.
    let grown = resident_bytes().saturating_sub(before);
    assert!(grown < 300 << 20, "{grown} bytes more");
}

/// `FERROFLOW_CHAIN=1000000` makes it longer.
#[tokio::test(flavor = "multi_thread")]
async fn a_long_chain() {
    let count = std::env::var("FERROFLOW_CHAIN").ok().and_then(|n| n.parse().ok());
    let length: usize = count.unwrap_or(100_000);
    let f = Fixture::start().await;
    let mut nodes = vec![node("n0", "Placeholder", &[]).attr("dtype", DType::Float)];
    for i in 1..=length {
        nodes.push(float_op(&format!("n{i}"), "Neg", &[&format!("n{}", i - 1)]));
    }
    let session_handle = f.create(graph(nodes)).await.expect("a session");
    let request = RunStepRequest {
        session_handle: session_handle.clone(),
        feeds: vec![("n0:0".into(), Tensor::scalar(5.0f32))],
        fetches: vec![format!("n{length}:0")],
        ..RunStepRequest::default()
    };
    let got = f.step(request, HANG).await.expect("a step");
    assert_eq!(got, [Tensor::scalar(5.0f32)]);
    f.close(&session_handle).await.expect("it was open");
    f.works().await;
}
