//! Clients that use more than they may. They get RESOURCE_EXHAUSTED, and others go on.

use super::fixture::{Fixture, HANG, call, with_limits};
use bytes::Bytes;
use ferroflow_cluster::rpc::{CallOptions, code};
use ferroflow_core::{Limit, Limits};
use tokio::net::TcpStream;

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

#[tokio::test]
async fn answers_that_a_client_does_not_read_count_until_it_does() {
    let messages = Limit { most: 1 << 20, ..Limits::DEFAULT.messages };
    let server = Fixture::start_with(with_limits(Limits { messages, ..Limits::DEFAULT })).await;
    let tcp = TcpStream::connect(&server.address).await.expect("a server");
    let mut client = h2::client::Builder::new();
    let (mut send, connection) =
        client.initial_window_size(0).handshake::<_, Bytes>(tcp).await.expect("HTTP/2");
    tokio::spawn(connection);
    let mut call = async || {
        let request = http::Request::post(format!("http://{}/t/Echo", server.address));
        let request = request.header("content-type", "application/grpc").body(());
        let mut ready = send.clone().ready().await.expect("a connection");
        let (answer, mut body) =
            ready.send_request(request.expect("a request"), false).expect("a stream");
        let length = 200_000u32;
        let message = [&[0], &length.to_be_bytes()[..], &vec![0; length as usize]].concat();
        body.send_data(message.into(), true).expect("a message");
        send = ready;
        let answer = answer.await.expect("an answer");
        let is_refused = answer.headers().contains_key("grpc-status");
        (is_refused, answer.into_body())
    };
    let mut unread = Vec::new();
    let refused = loop {
        let (is_refused, body) = call().await;
        if is_refused {
            break unread.len();
        }
        unread.push(body);
        assert!(unread.len() < 100, "all answers are kept");
    };
    assert!((2..6).contains(&refused), "{refused}");
    super::fixture::call(&server.channel(), "/t/Echo", vec![0; 2000])
        .await
        .expect("another client");
    // A client that gives its calls up gets new ones answered.
    unread.clear();
    while call().await.0 {
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn the_metadata_of_calls_that_wait_counts() {
    let messages = Limit { most: 10 << 20, ..Limits::DEFAULT.messages };
    let mut server = Fixture::start_with(with_limits(Limits { messages, ..Limits::DEFAULT })).await;
    let channel = server.channel();
    let mut parked = Vec::new();
    let refused = loop {
        let mut options = CallOptions::timeout(HANG);
        let entry = |i: usize| {
            let name = http::HeaderName::try_from(format!("x-{i}")).expect("a name");
            (name, http::HeaderValue::from_static("b"))
        };
        options.metadata = (0..1000).map(entry).collect();
        let channel = channel.clone();
        let mut call =
            tokio::spawn(async move { channel.call("/t/Park", Bytes::new(), options).await });
        tokio::select! {
            _ = server.events.recv() => {}
            ended = &mut call => break ended.expect("no panic").expect_err("refused"),
        }
        parked.push(call);
        assert!(parked.len() < 200, "{} calls wait", parked.len());
    };
    assert_eq!(refused.code, code::RESOURCE_EXHAUSTED, "{refused}");
    assert!(refused.message.contains("--max-message-memory"), "{refused}");
    call(&server.channel(), "/t/Echo", Bytes::from_static(b"x")).await.expect("another client");
}
