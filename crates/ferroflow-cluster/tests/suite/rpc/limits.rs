//! Clients that use more than they may. They get RESOURCE_EXHAUSTED, and others go on.

use super::fixture::{Fixture, HANG, call, with_limits};
use bytes::Bytes;
use ferroflow_cluster::rpc::{CallOptions, code};
use ferroflow_core::{Limit, Limits};

#[tokio::test]
async fn a_connection_over_its_memory_is_refused_and_others_go_on() {
    let connection_memory = Limit { most: 1 << 20, ..Limits::DEFAULT.connection_memory };
    let limits = Limits { connection_memory, ..Limits::DEFAULT };
    let server = Fixture::start_with(with_limits(limits)).await;
    let (greedy, other) = (server.channel(), server.channel());
    let status = call(&greedy, "/t/Echo", Bytes::from(vec![0; 2 << 20])).await.expect_err("much");
    assert_eq!(status.code, code::RESOURCE_EXHAUSTED, "{status}");
    assert!(status.message.contains("--max-connection-memory"), "{status}");
    for channel in [&other, &greedy] {
        call(channel, "/t/Echo", Bytes::from(vec![0; 900_000])).await.expect("fits");
    }
}

#[tokio::test]
async fn calls_that_wait_hold_their_messages_against_the_limit() {
    let connection_memory = Limit { most: 1 << 20, ..Limits::DEFAULT.connection_memory };
    let limits = Limits { connection_memory, ..Limits::DEFAULT };
    let mut server = Fixture::start_with(with_limits(limits)).await;
    let channel = server.channel();
    let mut parked = Vec::new();
    for _ in 0..3 {
        let channel = channel.clone();
        let message = Bytes::from(vec![0; 300_000]);
        let call =
            async move { channel.call("/t/Park", message, CallOptions::timeout(HANG)).await };
        parked.push(tokio::spawn(call));
        assert_eq!(server.event().await, "parked");
    }
    let fourth = call(&channel, "/t/Echo", Bytes::from(vec![0; 300_000])).await;
    assert_eq!(fourth.expect_err("full").code, code::RESOURCE_EXHAUSTED);
    parked.remove(0).abort();
    assert_eq!(server.event().await, "dropped");
    call(&channel, "/t/Echo", Bytes::from(vec![0; 300_000])).await.expect("there is room again");
}

#[tokio::test]
async fn too_many_calls_are_refused() {
    let limits = Limits { calls: Limit { most: 2, ..Limits::DEFAULT.calls }, ..Limits::DEFAULT };
    let mut server = Fixture::start_with(with_limits(limits)).await;
    let channel = server.channel();
    let mut parked = Vec::new();
    for _ in 0..2 {
        let channel = channel.clone();
        parked.push(tokio::spawn(async move {
            channel.call("/t/Park", Bytes::new(), CallOptions::timeout(HANG)).await
        }));
        assert_eq!(server.event().await, "parked");
    }
    let status = call(&channel, "/t/Echo", Bytes::from_static(b"x")).await.expect_err("a third");
    assert_eq!(status.code, code::RESOURCE_EXHAUSTED, "{status}");
    assert!(status.message.contains("--max-calls"), "{status}");
    parked.remove(0).abort();
    assert_eq!(server.event().await, "dropped");
    call(&channel, "/t/Echo", Bytes::from_static(b"x")).await.expect("a call has ended");
}
