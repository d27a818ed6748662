//! Values between tasks, in both directions.

use crate::worker::fixture::*;
use ferroflow_cluster::rpc::{self, RpcRequest, RpcStatus, code};
use ferroflow_core::{Code, DType, Tensor};
use ferroflow_graph::Attrs;
use ferroflow_graph::wire::step::RecvTensorResponse;
use ferroflow_proto::tensorflow as pb;
use prost::Message;
use std::sync::Arc;
use tokio::sync::mpsc;

#[tokio::test]
async fn a_peer_may_ask_before_the_step_starts() {
    let ps = Ps::start().await;
    let big = Tensor::from_slice([300_000], &vec![1.5f32; 300_000]).unwrap();
    let nodes = vec![
        constant("one", Tensor::scalar(1f32)),
        ps.send("early", "one", DType::Float),
        ps.send("late", "one", DType::Float),
        constant("big", big),
        ps.send("big", "big", DType::Float),
    ];
    let graph = ps.with_graph(nodes).await;
    let early = ps.start_recv(7, &ps.key("early")).await;
    assert!(!early.is_finished());
    assert_eq!(ps.run(run_of(&graph, 7)).await.unwrap().status, None);
    let early = early.await.unwrap().unwrap();
    assert_eq!((scalar(&early), early.is_dead), (1.0, false));
    assert!(early.send_start_micros > 0);
    assert_eq!(scalar(&ps.recv(7, &ps.key("late")).await.unwrap()), 1.0);
    let big = ps.recv(7, &ps.key("big")).await.unwrap().tensor.unwrap();
    assert!(big.as_slice::<f32>().unwrap().iter().all(|x| *x == 1.5));
    ps.cleanup(7).await;
}

#[tokio::test]
async fn dead_values_are_transferred() {
    let ps = Ps::start().await;
    let nodes = vec![
        constant("one", Tensor::scalar(1f32)),
        constant("yes", Tensor::scalar(true)),
        node("switch", "Switch", &["one", "yes"], Attrs::new().with("T", DType::Float)),
        ps.send("no", "switch:0", DType::Float),
        ps.send("yes", "switch:1", DType::Float),
    ];
    let graph = ps.with_graph(nodes).await;
    assert_eq!(ps.run(run_of(&graph, 7)).await.unwrap().status, None);
    assert!(ps.recv(7, &ps.key("no")).await.unwrap().is_dead);
    assert_eq!(scalar(&ps.recv(7, &ps.key("yes")).await.unwrap()), 1.0);
}

#[tokio::test]
async fn wrong_keys_are_refused() {
    let ps = Ps::start().await;
    let refused = ps.recv(1, "nonsense").await.unwrap_err();
    assert_eq!(
        (refused.code, &*refused.message),
        (code::INVALID_ARGUMENT, "Invalid  rendezvous key: nonsense")
    );
    let stale = format!("{PS};000000000000002a;{WORKER};x;0:0");
    let restarted = ps.recv(1, &stale).await.unwrap_err();
    assert_eq!(restarted.code, code::ABORTED);
    assert_eq!(
        restarted.message,
        format!(
            "RecvTensor expects a different device incarnation: 42 vs. {}. Your worker job \
             (\"/job:ps/replica:0/task:0\") was probably restarted. Check your worker job for the \
             reason why it was restarted.",
            ps.incarnation
        )
    );
    let gpu = ps.key("x").replacen("CPU:0", "GPU:0", 1);
    assert_eq!(ps.recv(1, &gpu).await.unwrap_err().code, code::INVALID_ARGUMENT);

    let graph = ps.with_graph(vec![constant("one", Tensor::scalar(1f32))]).await;
    ps.run(run_of(&graph, 1)).await.unwrap();
    let other = format!("{WORKER};{:016x};{WORKER};x;0:0", ps.incarnation);
    let refused = ps.recv(1, &other).await.unwrap_err();
    let text = format!("Invalid rendezvous key (src): {other} @ /job:ps/replica:0/task:0");
    assert_eq!((refused.code, refused.message), (code::INVALID_ARGUMENT, text));

    let waiting = ps.start_recv(1, &ps.key("x")).await;
    ps.recv_as(5, 2, "nonsense").await.unwrap_err();
    let twice = ps.recv_as(5, 2, &ps.key("x")).await.unwrap_err();
    assert_eq!(twice.code, code::ABORTED);
    assert!(
        twice.message.starts_with("The same RecvTensor (GrpcWorker) request was received twice. "),
        "{twice:?}"
    );
    ps.cleanup(1).await;
    assert_eq!(waiting.await.unwrap().unwrap_err().code, code::CANCELLED);
}

#[tokio::test]
async fn cleaning_up_fails_waiting_receivers() {
    let ps = Ps::start().await;
    let parked = ps.start_recv(7, &ps.key("never")).await;
    ps.cleanup(7).await;
    let ended = parked.await.unwrap().unwrap_err();
    assert_eq!(ended.code, code::CANCELLED);
    assert!(ended.details.is_some(), "a consequence says that it is one");
    // The worker knows that the step is over.
    assert_eq!(ps.recv(7, &ps.key("never")).await.unwrap_err().code, code::CANCELLED);
}

/// A stand-in for `/job:worker/task:0` that answers RecvTensor with `answer` and reports the keys.
async fn peer(
    answer: impl Fn(&pb::RecvTensorRequest) -> Option<Result<RecvTensorResponse, RpcStatus>>
    + Send
    + Sync
    + 'static,
) -> (String, mpsc::UnboundedReceiver<pb::RecvTensorRequest>) {
    let (listener, address) = listener().await;
    let (tell, told) = mpsc::unbounded_channel();
    let service = move |request: RpcRequest| {
        let is_recv = request.path() == "/tensorflow.WorkerService/RecvTensor";
        let refused = RpcStatus::unknown_method(request.path());
        let answer = is_recv.then(|| {
            let request = pb::RecvTensorRequest::decode(request.body).unwrap();
            let answer = answer(&request);
            tell.send(request).unwrap();
            answer
        });
        async move {
            match answer {
                Some(Some(answer)) => Ok(answer?.encode().unwrap().into_parts().into()),
                Some(None) => std::future::pending().await,
                None => Err(refused),
            }
        }
    };
    tokio::spawn(async move {
        rpc::RpcServer::default().serve(listener, Arc::new(service), std::future::pending()).await;
    });
    (address, told)
}

#[tokio::test]
async fn values_of_other_tasks_are_requested_there() {
    let (address, mut asked) = peer(|request| {
        let is_dead = request.rendezvous_key.contains(";dead;");
        Some(Ok(RecvTensorResponse {
            tensor: Some(Tensor::scalar(3f32)),
            is_dead,
            ..Default::default()
        }))
    })
    .await;
    let ps = Ps::start_beside(&address).await;
    let nodes = vec![
        recv_from_worker("x", DType::Float),
        recv_from_worker("dead", DType::Float),
        ps.fetch("y", "recv_x", DType::Float),
        ps.send("dead", "recv_dead", DType::Float),
    ];
    let graph = ps.with_graph(nodes).await;
    let mut request = run_of(&graph, 7);
    request.recv_keys = vec![ps.client_key("y")];
    let response = ps.run(request).await.unwrap();
    assert_eq!(response.status, None);
    assert_eq!(response.recvs[0].1.scalar_value::<f32>().unwrap(), 3.0);
    assert!(ps.recv(7, &ps.key("dead")).await.unwrap().is_dead);
    let (first, second) = (asked.recv().await.unwrap(), asked.recv().await.unwrap());
    assert_eq!((first.step_id, second.step_id), (7, 7));
    assert!(first.request_id != 0 && first.request_id != second.request_id);
    let mut keys = [first.rendezvous_key, second.rendezvous_key];
    keys.sort();
    let key = |tensor: &str| format!("{WORKER};000000000000004d;{PS};{tensor};0:0");
    assert_eq!(keys, [key("dead"), key("x")]);
}

#[tokio::test]
async fn failures_of_other_tasks_are_failures_of_the_step() {
    let (address, _asked) =
        peer(|_| Some(Err(RpcStatus::new(code::ABORTED, "RecvTensor expects a different …"))))
            .await;
    let ps = Ps::start_beside(&address).await;
    let graph = ps.with_graph(vec![recv_from_worker("x", DType::Float)]).await;
    let failed = ps.run(run_of(&graph, 7)).await.unwrap().status.unwrap();
    assert_eq!(failed.code(), Code::Aborted);
    assert!(failed.message().starts_with("RecvTensor expects a different …\nAdditional GRPC"));
    assert!(failed.message().ends_with("[[{{node recv_x}}]]"), "{failed}");

    // There is no listener at that address.
    let ps = Ps::start().await;
    let graph = ps.with_graph(vec![recv_from_worker("x", DType::Float)]).await;
    let failed = ps.run(run_of(&graph, 7)).await.unwrap().status.unwrap();
    assert_eq!(failed.code(), Code::Unavailable);

    // There is no task with that name.
    let mut stranger = recv_from_worker("x", DType::Float);
    stranger.attrs =
        stranger.attrs.with("send_device", WORKER.replace("task:0", "task:3").as_str());
    let graph = ps.register("S1", vec![stranger]).await.unwrap();
    let failed = ps.run(run_of(&graph, 8)).await.unwrap().status.unwrap();
    assert_eq!(failed.code(), Code::Internal);
    let text = "No worker known as /job:worker/replica:0/task:3";
    assert!(failed.message().starts_with(text), "{failed}");
}

#[tokio::test]
async fn a_step_that_fails_stops_asking() {
    let (address, mut asked) = peer(|_| None).await;
    let ps = Ps::start_beside(&address).await;
    let graph = ps.with_graph(vec![recv_from_worker("x", DType::Float)]).await;
    let running = ps.start_run(run_of(&graph, 7)).await;
    asked.recv().await.unwrap();
    ps.cleanup(7).await;
    let ended = running.await.unwrap().unwrap().status.unwrap();
    assert_eq!(ended.code(), Code::Cancelled, "{ended}");
}
