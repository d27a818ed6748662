//! A small client of both interfaces.

use super::fixtures::DEADLINE;
use bytes::Bytes;
use ferroflow_cluster::rpc::client::ChannelOptions;
use ferroflow_cluster::rpc::{CallOptions, Channel, RpcStatus};
use ferroflow_core::Tensor;
use ferroflow_graph::wire::{MessageReader, SegmentWriter};
use std::net::SocketAddr;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

pub const PREDICTION: &str = "/tensorflow.serving.PredictionService/";
pub const MODEL: &str = "/tensorflow.serving.ModelService/";

/// The parts of a ModelSpec.
#[derive(Clone, Copy, Default)]
pub struct Spec<'a> {
    pub name: &'a str,
    pub version: Option<i64>,
    pub label: Option<&'a str>,
    pub signature: &'a str,
}

impl Spec<'_> {
    pub fn encode(&self) -> Bytes {
        let mut message = SegmentWriter::new();
        message.string(1, self.name);
        if let Some(version) = self.version {
            let mut value = SegmentWriter::new();
            value.int(1, version);
            message.bytes(2, value.finish().to_bytes());
        }
        message.string(3, self.signature);
        if let Some(label) = self.label {
            message.item(4, label);
        }
        message.finish().to_bytes()
    }
}

pub fn of(name: &str) -> Spec<'_> {
    Spec { name, ..Spec::default() }
}

pub fn channel(to: SocketAddr) -> Channel {
    Channel::connect(&to.to_string(), ChannelOptions::default()).unwrap()
}

pub async fn call(channel: &Channel, path: &str, body: Bytes) -> Result<Bytes, RpcStatus> {
    let answer = channel.call(path, body, CallOptions::timeout(DEADLINE)).await?;
    Ok(answer.into_bytes())
}

/// The version and the outputs of a Predict.
pub async fn predict(
    channel: &Channel,
    spec: Spec<'_>,
    inputs: &[(&str, Tensor)],
    outputs: &[&str],
) -> Result<(i64, Vec<(String, Tensor)>), RpcStatus> {
    let answer =
        call(channel, &format!("{PREDICTION}Predict"), request(spec, inputs, outputs)).await?;
    let mut reader = MessageReader::new([answer]);
    let (mut version, mut values) = (0, Vec::new());
    while let Some(key) = reader.key().unwrap() {
        match key.field {
            1 => values.push(reader.named_tensor(key).unwrap()),
            2 => version = spec_version(reader.bytes(key).unwrap()),
            _ => reader.skip(key).unwrap(),
        }
    }
    Ok((version, values))
}

/// A PredictRequest.
pub fn request(spec: Spec<'_>, inputs: &[(&str, Tensor)], outputs: &[&str]) -> Bytes {
    let mut message = SegmentWriter::new();
    message.bytes(1, spec.encode());
    for (name, value) in inputs {
        message.named_tensor(2, name, value).unwrap();
    }
    outputs.iter().for_each(|name| message.item(3, name));
    message.finish().to_bytes()
}

fn spec_version(spec: Bytes) -> i64 {
    let version = field(spec, 2).into_iter().next().unwrap_or_default();
    let mut reader = MessageReader::new([version]);
    match reader.key().unwrap() {
        Some(key) => reader.int(key).unwrap(),
        None => 0,
    }
}

/// The values of a length-delimited field. The message has no fields of other kinds before it.
pub fn field(message: Bytes, number: u32) -> Vec<Bytes> {
    let mut reader = MessageReader::new([message]);
    let mut found = Vec::new();
    while let Some(key) = reader.key().unwrap() {
        match key.field == number {
            true => found.push(reader.bytes(key).unwrap()),
            false => reader.skip(key).unwrap(),
        }
    }
    found
}

/// A ClassificationRequest or RegressionRequest.
pub fn examples(spec: Spec<'_>, examples: &[Vec<u8>], context: Option<Vec<u8>>) -> Bytes {
    let mut list = SegmentWriter::new();
    examples.iter().for_each(|example| list.bytes(1, example.clone().into()));
    let kind = match context {
        Some(context) => {
            list.bytes(2, context.into());
            2
        }
        None => 1,
    };
    let mut input = SegmentWriter::new();
    input.bytes(kind, list.finish().to_bytes());
    let mut message = SegmentWriter::new();
    message.bytes(1, spec.encode());
    message.bytes(2, input.finish().to_bytes());
    message.finish().to_bytes()
}

/// The status and the body of an HTTP request.
pub async fn http(to: SocketAddr, method: &str, path: &str, body: &str) -> (u16, String, String) {
    http_with(to, &format!("Host: {to}"), method, path, body).await
}

/// The same with additional headers.
pub async fn http_with(
    to: SocketAddr,
    headers: &str,
    method: &str,
    path: &str,
    body: &str,
) -> (u16, String, String) {
    let work = async {
        let mut stream = tokio::net::TcpStream::connect(to).await.unwrap();
        let request = format!(
            "{method} {path} HTTP/1.1\r\n{headers}\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    };
    let answer = tokio::time::timeout(DEADLINE, work).await.unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, head.to_ascii_lowercase(), body.to_string())
}

pub async fn json(
    to: SocketAddr,
    method: &str,
    path: &str,
    body: &str,
) -> (u16, serde_json::Value) {
    let (status, _, body) = http(to, method, path, body).await;
    (status, serde_json::from_str(&body).unwrap_or_else(|e| panic!("{e}: {body}")))
}
