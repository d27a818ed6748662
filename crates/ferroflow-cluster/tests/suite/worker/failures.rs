//! Steps that fail or are abandoned.

use crate::worker::fixture::*;
use ferroflow_cluster::rpc::code;
use ferroflow_core::{Code, DType, Tensor};
use ferroflow_graph::Attrs;

#[tokio::test]
async fn the_cause_reaches_all_waiters() {
    let ps = Ps::start().await;
    let mut nodes = blocked("take");
    nodes.push(ps.send("x", "take", DType::Float));
    nodes.push(ps.feed("go", DType::Float));
    // A placeholder that was not fed fails.
    let attrs = Attrs::new().with("dtype", DType::Float);
    nodes.push(node("check", "Placeholder", &["^_recv_go"], attrs));
    let graph = ps.with_graph(nodes).await;
    let waiting = ps.start_recv(7, &ps.key("x")).await;
    let mut request = run_of(&graph, 7);
    request.sends = vec![(ps.client_key("go"), Tensor::scalar(1f32))];
    let failed = ps.run(request).await.unwrap().status.unwrap();
    assert_eq!(failed.code(), Code::InvalidArgument, "{failed}");
    assert!(failed.message().ends_with("\n\t [[{{node check}}]]"), "{failed}");
    let told = waiting.await.unwrap().unwrap_err();
    assert_eq!((told.code, told.message.as_str()), (code::INVALID_ARGUMENT, failed.message()));
    assert_eq!(told.details, None);
    // Later receivers get the error too.
    assert_eq!(ps.recv(7, &ps.key("y")).await.unwrap_err().code, code::INVALID_ARGUMENT);
    ps.cleanup(7).await;
}

#[tokio::test]
async fn a_step_ends_when_its_master_drops_the_call() {
    let ps = Ps::start().await;
    let mut nodes = blocked("take");
    nodes.push(ps.send("x", "take", DType::Float));
    let graph = ps.with_graph(nodes).await;
    let waiting = ps.start_recv(7, &ps.key("x")).await;
    let running = ps.start_run(run_of(&graph, 7)).await;
    running.abort();
    let ended = waiting.await.unwrap().unwrap_err();
    assert_eq!(
        (ended.code, &*ended.message),
        (code::ABORTED, "Step 7 cancelled.  Cancelling rendezvous.")
    );
    assert!(ended.details.is_some(), "a consequence says that it is one");
}

#[tokio::test]
async fn a_lost_peer_ends_the_step() {
    let ps = Ps::start().await;
    let mut nodes = blocked("take");
    nodes.push(ps.send("x", "take", DType::Float));
    nodes.push(ps.feed("never", DType::Float));
    let graph = ps.with_graph(nodes).await;
    let running = ps.start_run(run_of(&graph, 7)).await;
    let waiting = ps.start_recv(7, &ps.key("x")).await;
    waiting.abort();
    let ended = running.await.unwrap().unwrap().status.unwrap();
    assert_eq!(ended.code(), Code::Aborted);
    assert!(ended.message().starts_with("Step 7 cancelled.  Cancelling rendezvous."), "{ended}");
}

#[tokio::test]
async fn cleaning_up_cancels_running_steps() {
    let ps = Ps::start().await;
    let graph = ps.with_graph(blocked("take")).await;
    let running = ps.start_run(run_of(&graph, 7)).await;
    ps.cleanup(7).await;
    let ended = running.await.unwrap().unwrap().status.unwrap();
    assert_eq!(ended.code(), Code::Cancelled, "{ended}");
}
