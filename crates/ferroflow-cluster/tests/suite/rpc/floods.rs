//! Peers that keep to HTTP/2's syntax and abuse it. Other clients go on, and memory stays small.

use super::fixture::{Fixture, call, short_messages};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const PRIORITY: u8 = 2;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const WINDOW_UPDATE: u8 = 8;
const CONTINUATION: u8 = 9;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut all = (payload.len() as u32).to_be_bytes()[1..].to_vec();
    all.extend_from_slice(&[kind, flags]);
    all.extend_from_slice(&stream.to_be_bytes());
    all.extend_from_slice(payload);
    all
}

/// A literal header that is not indexed.
fn header(name: &str, value: &str) -> Vec<u8> {
    let mut all = vec![0, name.len() as u8];
    all.extend_from_slice(name.as_bytes());
    all.push(value.len() as u8);
    all.extend_from_slice(value.as_bytes());
    all
}

/// The headers of a call of `path`.
fn request(path: &str) -> Vec<u8> {
    let all = [
        (":method", "POST"),
        (":scheme", "http"),
        (":authority", "x"),
        (":path", path),
        ("content-type", "application/grpc"),
    ];
    all.iter().flat_map(|(name, value)| header(name, value)).collect()
}

fn resident_bytes() -> usize {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
    pages.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4096
}

/// Sends `frames` after a greeting until the server ends the connection or has read all.
async fn flood(name: &str, frames: impl Iterator<Item = Vec<u8>>) {
    let server = Fixture::start_with(short_messages()).await;
    let before = resident_bytes();
    let mut hostile = TcpStream::connect(&server.address).await.unwrap();
    hostile.write_all(&[PREFACE, &frame(SETTINGS, 0, 0, &[])].concat()).await.unwrap();
    let (mut answers, mut to) = hostile.into_split();
    let reading = tokio::spawn(async move {
        let mut rest = vec![0; 1 << 16];
        while matches!(answers.read(&mut rest).await, Ok(1..)) {}
    });
    let sending = async {
        let mut batch = Vec::new();
        for frame in frames {
            batch.extend(frame);
            if batch.len() > 1 << 16 && to.write_all(&std::mem::take(&mut batch)).await.is_err() {
                return;
            }
        }
        let _ = to.write_all(&batch).await;
    };
    // A server that stops reading has refused the rest.
    let _ = tokio::time::timeout(Duration::from_secs(20), sending).await;
    let answer = call(&server.channel(), "/t/Echo", b"still here".to_vec()).await.unwrap();
    assert_eq!(answer.len(), 10, "{name}");
    let grown = resident_bytes().saturating_sub(before);
    assert!(grown < 300 << 20, "{name}: {grown} bytes");
    drop(to);
    reading.abort();
}

fn streams() -> impl Iterator<Item = u32> {
    (0..).map(|i| 2 * i + 1)
}

#[tokio::test(flavor = "multi_thread")]
async fn streams_that_are_reset_at_once() {
    for path in ["/t/Echo", "/t/Park", "/none"] {
        let head = request(path);
        let pairs = streams().take(30_000).map(|stream| {
            let reset = frame(RST_STREAM, 0, stream, &8u32.to_be_bytes());
            [frame(HEADERS, END_HEADERS, stream, &head), reset].concat()
        });
        flood(path, pairs).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_that_never_end() {
    let head = request("/t/Park");
    let message = [0, 0, 0, 0, 1, b'x'];
    let calls = streams().take(50_000).map(|stream| {
        let open = frame(HEADERS, END_HEADERS, stream, &head);
        [open, frame(DATA, END_STREAM, stream, &message)].concat()
    });
    flood("parked calls", calls).await;
    // Headers without a message.
    let open = streams().take(50_000).map(|stream| frame(HEADERS, END_HEADERS, stream, &head));
    flood("open streams", open).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn frames_that_want_an_answer() {
    let settings = frame(SETTINGS, 0, 0, &[0, 3, 0, 0, 0, 100]);
    flood("settings", std::iter::repeat_n(settings, 100_000)).await;
    let table = (0..100_000u32)
        .map(|i| frame(SETTINGS, 0, 0, &[&[0, 1][..], &(i << 12).to_be_bytes()].concat()));
    flood("table sizes", table).await;
    flood("pings", std::iter::repeat_n(frame(PING, 0, 0, &[7; 8]), 100_000)).await;
    let window = frame(WINDOW_UPDATE, 0, 0, &1u32.to_be_bytes());
    flood("windows", std::iter::repeat_n(window, 100_000)).await;
    let priority = streams().take(100_000).map(|s| frame(PRIORITY, 0, s, &[0, 0, 0, 0, 1]));
    flood("priorities", priority).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn headers_without_end() {
    let first = frame(HEADERS, 0, 1, &request("/t/Echo"));
    let more = frame(CONTINUATION, 0, 1, &header("a", &"b".repeat(100)).repeat(100));
    flood("continuations", std::iter::once(first.clone()).chain(std::iter::repeat_n(more, 20_000)))
        .await;
    let empty = frame(CONTINUATION, 0, 1, &[]);
    flood("empty continuations", std::iter::once(first).chain(std::iter::repeat_n(empty, 200_000)))
        .await;
    let large: Vec<u8> = request("/t/Echo")
        .into_iter()
        .chain(header("a", &"b".repeat(120)).repeat(10_000))
        .collect();
    let calls = streams().take(200).map(|stream| {
        let pieces: Vec<&[u8]> = large.chunks(16_000).collect();
        let last = pieces.len() - 1;
        let piece = |(at, bytes): (usize, &&[u8])| {
            let kind = if at == 0 { HEADERS } else { CONTINUATION };
            frame(kind, if at == last { END_HEADERS } else { 0 }, stream, bytes)
        };
        pieces.iter().enumerate().flat_map(piece).collect()
    });
    flood("large headers", calls).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn data_that_says_nothing() {
    let open = frame(HEADERS, END_HEADERS, 1, &request("/t/Echo"));
    let empty = frame(DATA, 0, 1, &[]);
    flood("empty data", std::iter::once(open.clone()).chain(std::iter::repeat_n(empty, 200_000)))
        .await;
    // Padding counts against the window and is not part of a message.
    let padded = frame(DATA, 8, 1, &[&[255u8][..], &[0; 255]].concat());
    flood("padding", std::iter::once(open).chain(std::iter::repeat_n(padded, 20_000))).await;
    // A message of four gigabytes that never comes.
    let open = streams().take(1000).map(|stream| {
        let head = frame(HEADERS, END_HEADERS, stream, &request("/t/Echo"));
        [head, frame(DATA, 0, stream, &[0, 255, 255, 255, 255, 1])].concat()
    });
    flood("long messages", open).await;
}
