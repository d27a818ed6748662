//! A server that gets well-formed calls.

use super::fixture::{Fixture, HANG, call, short_messages};
use bytes::{Buf, Bytes};
use ferroflow_cluster::rpc::{CallOptions, Channel, Keepalive, RpcServer, client, code};
use std::time::Duration;

#[tokio::test]
async fn echoes_messages_of_many_sizes() {
    let server = Fixture::start().await;
    let channel = server.channel();
    for size in [0, 1, 250, 251, 256, 1000, 16_379, 16_384, 70_000, 1 << 20, (16 << 20) + 7] {
        let sent: Bytes = (0..size).map(|i| (i % 251) as u8).collect::<Vec<_>>().into();
        let reply = call(&channel, "/t/Echo", sent.clone()).await.expect("echo");
        assert!(reply.into_bytes() == sent, "{size} bytes");
    }
}

#[tokio::test]
async fn a_hundred_megabytes_go_both_ways() {
    let server = Fixture::start().await;
    let sent: Vec<Bytes> = (0..10u8).map(|i| Bytes::from(vec![i; 10_000_000])).collect();
    let mut reply = call(&server.channel(), "/t/Echo", sent.clone()).await.expect("echo");
    assert_eq!(reply.len(), 100_000_000);
    for segment in sent {
        assert!(reply.copy_to_bytes(segment.len()) == segment);
    }
}

#[tokio::test]
async fn a_message_in_one_frame_arrives_in_one_piece() {
    let server = Fixture::start().await;
    let channel = server.channel();
    // The first call also waits for the frame size that the server announces.
    call(&channel, "/t/Echo", Bytes::new()).await.expect("echo");
    let reply = call(&channel, "/t/Pieces", Bytes::from(vec![1; 10 << 20])).await.expect("count");
    assert_eq!(reply.into_bytes(), "1");
}

#[tokio::test]
async fn segments_of_an_answer_are_one_message() {
    let server = Fixture::start().await;
    let reply = call(&server.channel(), "/t/Segments", Bytes::new()).await.expect("answer");
    assert_eq!(reply.len(), 5001);
    assert_eq!(reply.segments().count(), 1);
}

#[tokio::test]
async fn a_thousand_calls_share_a_connection() {
    let mut server = Fixture::start().await;
    let channel = server.channel();
    // Parked calls must not prevent others from starting.
    let parked: Vec<_> = (0..500)
        .map(|_| {
            let channel = channel.clone();
            tokio::spawn(async move { call(&channel, "/t/Park", Bytes::new()).await })
        })
        .collect();
    for _ in 0..500 {
        assert_eq!(server.event().await, "parked");
    }
    let mut calls = tokio::task::JoinSet::new();
    for i in 0..1000u32 {
        let channel = channel.clone();
        calls.spawn(async move {
            let sent = Bytes::from(vec![i as u8; i as usize * 7]);
            let reply = call(&channel, "/t/Elsewhere", sent.clone()).await.expect("echo");
            assert!(reply.into_bytes() == sent);
        });
    }
    while let Some(done) = calls.join_next().await {
        done.expect("call");
    }
    parked.iter().for_each(|call| call.abort());
    for _ in 0..500 {
        assert_eq!(server.event().await, "dropped");
    }
}

#[tokio::test]
async fn a_status_arrives_with_message_and_details() {
    let server = Fixture::start().await;
    let status = call(&server.channel(), "/t/Fail", Bytes::new()).await.expect_err("failure");
    assert_eq!(status.code, code::NOT_FOUND);
    assert_eq!(status.message, "größe\n\t [[{{node a}}]] 100%");
    assert_eq!(status.details.as_deref(), Some(&b"\x00details"[..]));
    let status = call(&server.channel(), "/t/FailLong", Bytes::new()).await.expect_err("failure");
    assert_eq!(status.message, format!("{} ... [truncated]", "x".repeat(3072)));
}

#[tokio::test]
async fn an_unknown_path_is_unimplemented() {
    let server = Fixture::start().await;
    let status = call(&server.channel(), "/t/None", Bytes::new()).await.expect_err("failure");
    assert_eq!((status.code, &*status.message), (code::UNIMPLEMENTED, "unknown method /t/None"));
}

#[tokio::test]
async fn metadata_and_deadline_reach_the_handler() {
    let server = Fixture::start().await;
    let channel = server.channel();
    let token = (http::header::AUTHORIZATION, http::HeaderValue::from_static("Bearer x"));
    let options = CallOptions { metadata: vec![token], ..Default::default() };
    let reply = channel.call("/t/Token", Bytes::new(), options).await.expect("token");
    assert_eq!(reply.into_bytes(), "Bearer x");
    for (options, expected) in
        [(CallOptions::default(), "false"), (CallOptions::timeout(HANG), "true")]
    {
        let reply = channel.call("/t/Deadline", Bytes::new(), options).await.expect("deadline");
        assert_eq!(reply.into_bytes(), expected);
    }
}

#[tokio::test]
async fn a_passed_deadline_drops_the_handler() {
    let mut server = Fixture::start().await;
    let options = CallOptions::timeout(Duration::from_millis(50));
    let status =
        server.channel().call("/t/Park", Bytes::new(), options).await.expect_err("deadline");
    assert_eq!(status.code, code::DEADLINE_EXCEEDED, "{status}");
    assert_eq!(server.event().await, "parked");
    assert_eq!(server.event().await, "dropped");
}

#[tokio::test]
async fn a_dropped_call_drops_its_handler_and_no_other() {
    let mut server = Fixture::start().await;
    let channel = server.channel();
    let parked = {
        let channel = channel.clone();
        tokio::spawn(async move { call(&channel, "/t/Park", Bytes::new()).await })
    };
    assert_eq!(server.event().await, "parked");
    let slow = {
        let channel = channel.clone();
        tokio::spawn(async move { call(&channel, "/t/Slow", Bytes::from_static(b"x")).await })
    };
    assert_eq!(server.event().await, "parked");
    parked.abort();
    assert_eq!(server.event().await, "dropped");
    assert_eq!(slow.await.expect("task").expect("answer").into_bytes(), "x");
}

#[tokio::test]
async fn a_panic_is_an_internal_error_of_its_call_only() {
    let server = Fixture::start().await;
    let channel = server.channel();
    let status = call(&channel, "/t/Panic", Bytes::new()).await.expect_err("panic");
    assert_eq!(
        (status.code, &*status.message),
        (code::INTERNAL, "the handler panicked: on purpose 1")
    );
    call(&channel, "/t/Echo", Bytes::new()).await.expect("the connection lives on");
}

#[tokio::test]
async fn shutdown_lets_calls_end_and_refuses_new_ones() {
    let mut server = Fixture::start().await;
    let channel = server.channel();
    let slow = {
        let channel = channel.clone();
        tokio::spawn(async move { call(&channel, "/t/Slow", Bytes::from_static(b"x")).await })
    };
    assert_eq!(server.event().await, "parked");
    drop(server.stop.take());
    assert_eq!(slow.await.expect("task").expect("answer").into_bytes(), "x");
    tokio::time::timeout(HANG, server.served).await.expect("ends").expect("no panic");
    let status = call(&channel, "/t/Echo", Bytes::new()).await.expect_err("no listener");
    assert_eq!(status.code, code::UNAVAILABLE, "{status}");
}

#[tokio::test]
async fn shutdown_ends_calls_that_outlast_the_grace_period() {
    let grace = Duration::from_millis(50);
    let mut server = Fixture::start_with(RpcServer { grace, ..Default::default() }).await;
    let channel = server.channel();
    let parked = tokio::spawn(async move { call(&channel, "/t/Park", Bytes::new()).await });
    assert_eq!(server.event().await, "parked");
    drop(server.stop.take());
    assert_eq!(server.event().await, "dropped");
    let status = parked.await.expect("task").expect_err("ended");
    assert_eq!(status.code, code::UNAVAILABLE, "{status}");
    tokio::time::timeout(HANG, server.served).await.expect("ends").expect("no panic");
}

#[tokio::test]
async fn messages_beyond_the_limit_are_refused() {
    let server = Fixture::start_with(short_messages()).await;
    let channel = server.channel();
    call(&channel, "/t/Echo", Bytes::from(vec![0; 1000])).await.expect("just fits");
    let status =
        call(&channel, "/t/Echo", Bytes::from(vec![0; 50_000_000])).await.expect_err("too long");
    assert_eq!(status.code, code::RESOURCE_EXHAUSTED);
    assert_eq!(status.message, "received message larger than max (50000000 vs. 1000)");
    call(&channel, "/t/Echo", Bytes::from(vec![0; 1000])).await.expect("the connection lives on");

    let server = Fixture::start().await;
    let options = client::ChannelOptions { max_message: 1000, ..Default::default() };
    let channel = Channel::connect(&server.address, options).expect("address");
    let status = call(&channel, "/t/Echo", Bytes::from(vec![0; 1001])).await.expect_err("too long");
    assert_eq!(status.code, code::RESOURCE_EXHAUSTED, "{status}");
}

#[tokio::test]
async fn a_client_that_stops_reading_pings_loses_its_calls() {
    let keepalive = Some(Keepalive {
        interval: Duration::from_millis(20),
        timeout: Duration::from_millis(200),
    });
    let mut server = Fixture::start_with(RpcServer { keepalive, ..Default::default() }).await;
    let (hang, hanging) = tokio::sync::oneshot::channel();
    let (end, ended) = std::sync::mpsc::channel::<()>();
    let address = server.address.clone();
    // A separate runtime that blocks once the call has arrived, like a process that hangs.
    let client = std::thread::spawn(move || {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().build().expect("runtime");
        runtime.block_on(async {
            let channel =
                Channel::connect(&address, client::ChannelOptions::default()).expect("address");
            let parked = tokio::spawn(async move { call(&channel, "/t/Park", Bytes::new()).await });
            let _ = hanging.await;
            let _ = ended.recv();
            drop(parked);
        });
    });
    assert_eq!(server.event().await, "parked");
    hang.send(()).expect("a client");
    assert_eq!(server.event().await, "dropped");
    drop(end);
    client.join().expect("client");
}

#[tokio::test]
async fn a_handler_that_wakes_itself_does_not_starve_others() {
    let mut server = Fixture::start().await;
    let channel = server.channel();
    let restless = {
        let channel = channel.clone();
        tokio::spawn(async move { call(&channel, "/t/Restless", Bytes::new()).await })
    };
    assert_eq!(server.event().await, "parked");
    // All on one thread: the client's tasks must run before this answer.
    call(&channel, "/t/Echo", Bytes::new()).await.expect("echo");
    restless.abort();
}
