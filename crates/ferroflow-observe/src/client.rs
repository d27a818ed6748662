//! Reads the state of tasks from their HTTP ports.

use crate::body::AnswerBody;
use ferroflow_cluster::connect_http;
use ferroflow_core::{Error, Result, err};
use ferroflow_identity::Trust;
use http::{Request, StatusCode, header};
use hyper::body::{Body, Incoming};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use std::io;
use std::pin::Pin;
use std::time::Duration;

/// The most bytes of an answer.
const MOST_ANSWER: usize = 4 << 20;
/// How long a request may take.
const DEADLINE: Duration = Duration::from_secs(5);

/// A client of one task. It keeps its connection.
#[derive(Debug)]
pub struct HttpClient {
    address: String,
    trust: Trust,
    sender: Option<SendRequest<AnswerBody>>,
}

impl HttpClient {
    /// A client of the task at `HOST:PORT`. It connects when it is used.
    pub fn new(address: impl Into<String>, trust: Trust) -> HttpClient {
        HttpClient { address: address.into(), trust, sender: None }
    }

    /// Fetches JSON. Connects again if the connection was lost.
    pub async fn json(&mut self, path: &str) -> Result<serde_json::Value> {
        let address = self.address.clone();
        let lost = |e: &dyn std::fmt::Display| -> Error {
            err!(Unavailable, "no answer from http://{address}{path}: {e}")
        };
        let fetched = tokio::time::timeout(DEADLINE, self.fetch(path)).await;
        let bytes = fetched.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
        let bytes = bytes.inspect_err(|_| self.sender = None).map_err(|e| lost(&e))?;
        serde_json::from_slice(&bytes).map_err(|e| lost(&e))
    }

    async fn fetch(&mut self, path: &str) -> io::Result<Vec<u8>> {
        let mut sender = match self.sender.take().filter(|sender| !sender.is_closed()) {
            Some(sender) => sender,
            None => {
                let io = connect_http(&self.address, &self.trust).await?;
                let (sender, connection) =
                    handshake(TokioIo::new(io)).await.map_err(io::Error::other)?;
                tokio::spawn(connection);
                sender
            }
        };
        sender.ready().await.map_err(io::Error::other)?;
        let request = Request::get(path).header(header::HOST, self.address.as_str());
        let request = request.body(AnswerBody::Whole(None)).map_err(io::Error::other)?;
        let response = sender.send_request(request).await.map_err(io::Error::other)?;
        let status = response.status();
        let bytes = whole(response.into_body()).await?;
        self.sender = Some(sender);
        match status {
            StatusCode::OK => Ok(bytes),
            status => Err(io::Error::other(status.to_string())),
        }
    }
}

/// All bytes of a body that is not too long.
async fn whole(mut body: Incoming) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let next = |body: &mut Incoming, cx: &mut std::task::Context<'_>| Pin::new(body).poll_frame(cx);
    while let Some(frame) = std::future::poll_fn(|cx| next(&mut body, cx)).await {
        let frame = frame.map_err(io::Error::other)?;
        if let Ok(data) = frame.into_data() {
            bytes.extend_from_slice(&data);
        }
        if bytes.len() > MOST_ANSWER {
            return Err(io::Error::other("the answer is too long"));
        }
    }
    Ok(bytes)
}
