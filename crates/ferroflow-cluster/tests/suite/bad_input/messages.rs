//! Calls with malformed messages.

use super::fixture::*;
use Code::{Aborted, InvalidArgument};
use bytes::Bytes;
use ferroflow_core::{Code, DType, Tensor};
use ferroflow_graph::wire::step::{RunCallableRequest, RunStepRequest};
use ferroflow_proto::tensorflow as pb;
use prost::Message;
use std::time::{Duration, Instant};

const MASTER: [&str; 10] = [
    "CreateSession",
    "ExtendSession",
    "PartialRunSetup",
    "RunStep",
    "CloseSession",
    "ListDevices",
    "Reset",
    "MakeCallable",
    "RunCallable",
    "ReleaseCallable",
];

const WORKER: [&str; 16] = [
    "GetStatus",
    "CreateWorkerSession",
    "DeleteWorkerSession",
    "RegisterGraph",
    "DeregisterGraph",
    "RunGraph",
    "CleanupGraph",
    "CleanupAll",
    "RecvTensor",
    "Logging",
    "Tracing",
    "RecvBuf",
    "CompleteGroup",
    "CompleteInstance",
    "GetStepSequence",
    "MarkRecvFinished",
];

fn methods() -> impl Iterator<Item = String> {
    let master = MASTER.iter().map(|m| format!("MasterService/{m}"));
    master.chain(WORKER.iter().map(|m| format!("WorkerService/{m}")))
}

#[tokio::test(flavor = "multi_thread")]
async fn garbage_on_every_path() {
    let f = Fixture::start().await;
    let mut random = fastrand::Rng::with_seed(7);
    // Each call must end with an error or an answer, and the server must survive.
    for method in methods() {
        let mut messages: Vec<Bytes> = vec![
            Bytes::new(),
            Bytes::from_static(b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"),
            Bytes::from_static(b"\x0a\xff\xff\xff\xff\x0f"),
            Bytes::from_static(b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\x7f"),
            Bytes::from_static(b"\x12\x80\x80\x80\x80\x08abc"),
            Bytes::from_static(b"\x0b\x0b\x0b\x0b\x0b\x0b"),
            Bytes::from(b"\x0b".repeat(100_000)),
            Bytes::from(b"\x0a\x00".repeat(1000)),
        ];
        for len in [1, 2, 3, 5, 8, 13, 21, 200, 5000] {
            let mut message = vec![0; len];
            random.fill(&mut message);
            messages.push(message.into());
        }
        for message in messages {
            // RecvTensor of an unknown step waits for the step.
            let limit = std::time::Duration::from_millis(500);
            let _ = f.call_within(&method, message, limit).await;
        }
    }
    f.works().await;
    for path in ["", "/", "MasterService/", "MasterService/Gone", "x.y/z", "MasterService/RunStep/"]
    {
        let e = f.call(path, Bytes::new()).await.expect_err(path);
        expect(&e, Code::Unimplemented, "");
    }
    f.works().await;
}

/// A valid message, truncated at every byte and with every byte changed.
#[tokio::test(flavor = "multi_thread")]
async fn mutated_valid_messages() {
    let f = Fixture::start().await;
    let nodes = vec![scalar("a", 1.0), float_op("x", "Neg", &["a"])];
    let session_handle = f.create(graph(nodes.clone())).await.expect("a session");
    let graph_def = Some(graph(nodes));
    let create = encode(&pb::CreateSessionRequest { graph_def, ..Default::default() });
    let step = RunStepRequest {
        session_handle: session_handle.clone(),
        feeds: vec![("a:0".into(), Tensor::vector(&[1.0f32; 3]))],
        fetches: vec!["x:0".into()],
        ..RunStepRequest::default()
    };
    let step = Bytes::from(step.encode().expect("a message").into_parts().concat());
    for (method, message) in
        [("MasterService/CreateSession", create), ("MasterService/RunStep", step)]
    {
        let spoil = |i: usize, bits: u8| {
            let mut spoilt = message.to_vec();
            spoilt[i] ^= bits;
            Bytes::from(spoilt)
        };
        for i in 0..message.len() {
            for spoilt in [message.slice(..i), spoil(i, 0x80), spoil(i, 1), spoil(i, 0x7f)] {
                if let Ok(answer) = f.call(method, spoilt).await
                    && method.ends_with("CreateSession")
                {
                    let answer = pb::CreateSessionResponse::decode(answer).expect("an answer");
                    f.close(&answer.session_handle).await.expect("it is open");
                }
            }
        }
    }
    f.works().await;
    f.close(&session_handle).await.expect("it is still open");
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_handles() {
    let f = Fixture::start().await;
    for handle in ["", "0", "0123456789abcdef", "\n\0", &"x".repeat(2000)] {
        let e = f.close(handle).await.expect_err("no such session");
        expect(&e, Aborted, "is not found.");
        let request = RunStepRequest {
            session_handle: handle.into(),
            fetches: vec!["x:0".into()],
            ..RunStepRequest::default()
        };
        expect(
            &f.step(request, HANG).await.expect_err("no such session"),
            Aborted,
            "is not found.",
        );
        let request =
            pb::ExtendSessionRequest { session_handle: handle.into(), ..Default::default() };
        let e = f.call("MasterService/ExtendSession", encode(&request)).await;
        expect(&e.expect_err("no such session"), Aborted, "is not found.");
    }
    let session_handle = f.create(graph(vec![scalar("x", 1.0)])).await.expect("a session");
    for handle in [-1, 0, 7, i64::MAX, i64::MIN] {
        let request = RunCallableRequest {
            session_handle: session_handle.clone(),
            handle,
            request_id: 0,
            feeds: vec![],
        };
        let message = request.encode().expect("a message").into_parts();
        let e = f.call("MasterService/RunCallable", message).await.expect_err("no such callable");
        expect(&e, InvalidArgument, "");
    }
    let request = RunStepRequest {
        session_handle: session_handle.clone(),
        partial_run_handle: "unknown".into(),
        ..RunStepRequest::default()
    };
    let e = f.step(request, HANG).await.expect_err("no such partial run");
    expect(&e, InvalidArgument, "Must run PartialRunSetup");
    f.close(&session_handle).await.expect("it is open");
    let request =
        RunStepRequest { session_handle, fetches: vec!["x:0".into()], ..RunStepRequest::default() };
    expect(&f.step(request, HANG).await.expect_err("closed"), Aborted, "is not found.");
    f.works().await;
}

/// Does `work`. Returns also how long other work of this thread had to wait for it at most.
async fn longest_wait<T>(work: impl Future<Output = T>) -> (T, Duration) {
    let mut work = std::pin::pin!(work);
    let (mut longest, mut last) = (Duration::ZERO, Instant::now());
    loop {
        let done = tokio::select! {
            done = &mut work => Some(done),
            () = tokio::time::sleep(Duration::from_millis(1)) => None,
        };
        longest = longest.max(last.elapsed());
        last = Instant::now();
        if let Some(done) = done {
            return (done, longest);
        }
    }
}

// The network has one thread in these tests: what keeps it busy keeps the test waiting.

#[tokio::test]
async fn long_messages_are_decoded_beside_the_network_threads() {
    let server = Fixture::start().await;
    let placeholder = node("x", "Placeholder", &[]).attr("dtype", DType::Int64);
    let shape = node("shape", "Shape", &["x"]).attr("T", DType::Int64);
    let session_handle = server.create(graph(vec![placeholder, shape])).await.unwrap();
    let count = 10_000_000;
    let values =
        pb::TensorProto { int64_val: vec![1; count], ..tensor(DType::Int64, &[count as i64]) };
    let feed = pb::NamedTensorProto { name: "x:0".into(), tensor: Some(values) };
    let request = pb::RunStepRequest {
        session_handle,
        feed: vec![feed],
        fetch: vec!["shape:0".into()],
        ..Default::default()
    };
    let message = encode(&request);
    let began = Instant::now();
    drop(pb::RunStepRequest::decode(message.clone()).unwrap());
    let decoding = began.elapsed();
    let (done, longest) = longest_wait(server.call("MasterService/RunStep", message)).await;
    done.unwrap();
    assert!(longest < decoding / 2, "{longest:?} of {decoding:?}");
    // Many unknown fields take long to skip, in any message.
    let junk = Bytes::from([0xf8, 0x07, 0x01].repeat(3_000_000));
    let began = Instant::now();
    pb::CleanupGraphRequest::decode(junk.clone()).unwrap();
    let decoding = began.elapsed();
    let (done, longest) = longest_wait(server.call("WorkerService/CleanupGraph", junk)).await;
    done.unwrap();
    assert!(longest < decoding / 2, "{longest:?} of {decoding:?}");
}

#[tokio::test]
async fn a_large_graph_is_compiled_beside_the_network_threads() {
    let server = Fixture::start().await;
    let mut nodes = vec![node("n0", "Placeholder", &[]).attr("dtype", DType::Float)];
    for i in 1..20_000 {
        nodes.push(float_op(&format!("n{i}"), "Neg", &[&format!("n{}", i - 1)]));
    }
    let session_handle = server.create(graph(nodes)).await.unwrap();
    let (feed, fetch) = (vec!["n0:0".to_string()], vec!["n19999:0".to_string()]);
    let setup = pb::PartialRunSetupRequest {
        session_handle: session_handle.clone(),
        feed: feed.clone(),
        fetch: fetch.clone(),
        ..Default::default()
    };
    let options = pb::CallableOptions { feed, fetch, ..Default::default() };
    let callable =
        pb::MakeCallableRequest { session_handle, options: Some(options), ..Default::default() };
    let calls = [("PartialRunSetup", encode(&setup)), ("MakeCallable", encode(&callable))];
    for (method, message) in calls {
        let began = Instant::now();
        let path = format!("MasterService/{method}");
        let (done, longest) = longest_wait(server.call(&path, message)).await;
        done.unwrap();
        let all = began.elapsed();
        assert!(longest < all / 2, "{method}: {longest:?} of {all:?}");
    }
}
