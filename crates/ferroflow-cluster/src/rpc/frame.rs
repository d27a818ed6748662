//! gRPC's framing inside an HTTP/2 stream: five bytes (flag, length), then the message.

use super::call_memory::CallMemory;
use super::{Chunks, RpcStatus, code};
use bytes::{Buf, Bytes};
use futures_util::FutureExt;
use h2::{RecvStream, SendStream};
use http::{HeaderMap, HeaderName, HeaderValue};
use std::io::IoSlice;
use std::pin::pin;
use std::time::Duration;

pub(super) const CONTENT_TYPE: HeaderValue = HeaderValue::from_static("application/grpc");
const GRPC_ENCODING: HeaderName = HeaderName::from_static("grpc-encoding");

const HEAD: usize = 5;

/// The largest buffer that is queued: HTTP/2 windows have 31 bits.
const MOST_QUEUED: usize = 1 << 30;

/// The content of DATA frames: the five bytes, then the segments of the message. h2 splits it by
/// the peer's frame size and window, so head and message share a frame if they fit.
#[derive(Debug)]
pub(super) struct Framed {
    head: [u8; HEAD],
    /// How many bytes of the head are sent.
    sent: usize,
    message: Chunks,
    /// Counts the message until the peer has taken all of it. In the last part of the message.
    _memory: Option<CallMemory>,
}

impl Buf for Framed {
    fn remaining(&self) -> usize {
        HEAD - self.sent + self.message.remaining()
    }

    fn chunk(&self) -> &[u8] {
        match self.head.get(self.sent..) {
            Some(head) if !head.is_empty() => head,
            _ => self.message.chunk(),
        }
    }

    fn chunks_vectored<'a>(&'a self, slices: &mut [IoSlice<'a>]) -> usize {
        match (self.head.get(self.sent..), slices.split_first_mut()) {
            (Some(head), Some((first, others))) if !head.is_empty() => {
                *first = IoSlice::new(head);
                1 + self.message.chunks_vectored(others)
            }
            _ => self.message.chunks_vectored(slices),
        }
    }

    fn advance(&mut self, count: usize) {
        let of_head = count.min(HEAD - self.sent);
        self.sent += of_head;
        self.message.advance(count - of_head);
    }
}

/// Checks that a message of this length can be framed.
pub(super) fn check_length(message: &Chunks) -> Result<(), RpcStatus> {
    let length = message.len();
    if u32::try_from(length).is_ok() {
        return Ok(());
    }
    Err(RpcStatus::new(
        code::RESOURCE_EXHAUSTED,
        format!("a message of {length} bytes does not fit gRPC's 32-bit length"),
    ))
}

/// Queues a message that passed [`check_length`]. h2 keeps its segments until the peer's window
/// allows sending them; nothing is copied. `memory` counts it until then. An error means that the
/// stream is closed.
pub(super) fn send(
    stream: &mut SendStream<Framed>,
    message: Chunks,
    end: bool,
    mut memory: Option<CallMemory>,
) -> Result<(), h2::Error> {
    let length = u32::try_from(message.len()).expect("the length was checked");
    let [a, b, c, d] = length.to_be_bytes();
    let mut rest = message.join_small();
    let (mut head, mut sent) = ([0, a, b, c, d], 0);
    loop {
        let message = rest.split_to(rest.len().min(MOST_QUEUED));
        let last = rest.is_empty();
        let memory = if last { memory.take() } else { None };
        stream.send_data(Framed { head, sent, message, _memory: memory }, end && last)?;
        if last {
            return Ok(());
        }
        (head, sent) = ([0; HEAD], HEAD);
    }
}

/// Why no message was received.
pub(super) enum ReceiveError {
    /// The data is not one acceptable message.
    Message(RpcStatus),
    /// The stream ended early.
    Stream(h2::Error),
    /// The stream ended normally, without a message.
    Nothing,
}

/// Limits received messages.
pub(super) trait Receiving {
    /// Checks the length that the head of a message announces.
    fn announced(&mut self, length: usize) -> Result<(), RpcStatus>;
    /// Counts bytes that have arrived.
    fn arrived(&mut self, bytes: usize) -> Result<(), RpcStatus>;
    /// A message of which nothing arrives for this long is given up.
    fn stalled_after(&self) -> Option<Duration>;
}

/// A message of at most this length, for a client that trusts its server.
pub(super) struct UpTo(pub usize);

impl Receiving for UpTo {
    fn announced(&mut self, length: usize) -> Result<(), RpcStatus> {
        if length <= self.0 { Ok(()) } else { Err(too_long(length, self.0)) }
    }

    fn arrived(&mut self, _: usize) -> Result<(), RpcStatus> {
        Ok(())
    }

    /// The caller has a deadline if it wants one.
    fn stalled_after(&self) -> Option<Duration> {
        None
    }
}

pub(super) fn too_long(length: usize, most: usize) -> RpcStatus {
    let text = format!("received message larger than max ({length} vs. {most})");
    RpcStatus::new(code::RESOURCE_EXHAUSTED, text)
}

/// Receives the one message of a unary call, up to the end of the stream's data.
///
/// The flow-control window is released as pieces arrive. `limits` may refuse the message when its
/// head or a piece of it arrives.
pub(super) async fn receive(
    stream: &mut RecvStream,
    headers: &HeaderMap,
    limits: &mut impl Receiving,
) -> Result<Chunks, ReceiveError> {
    let refuse = |code, text| Err(ReceiveError::Message(RpcStatus::new(code, text)));
    let mut message = Chunks::new();
    let mut length = None;
    while let Some(piece) = next_piece(stream, limits.stalled_after()).await? {
        limits.arrived(piece.len()).map_err(ReceiveError::Message)?;
        // An error means that the stream was reset; the next read reports it.
        let _ = stream.flow_control().release_capacity(piece.len());
        message.push(piece);
        if length.is_none() && message.len() >= HEAD {
            let compressed = message.get_u8();
            if compressed != 0 {
                let encoding = headers
                    .get(GRPC_ENCODING)
                    .and_then(|e| e.to_str().ok())
                    .unwrap_or("an unnamed encoding");
                let text = format!(
                    "message compressed with {encoding:?}; only \"identity\" is understood"
                );
                return refuse(code::UNIMPLEMENTED, text);
            }
            let announced = message.get_u32() as usize;
            limits.announced(announced).map_err(ReceiveError::Message)?;
            length = Some(announced);
        }
        if length.is_some_and(|length| message.len() > length) {
            return refuse(code::INTERNAL, "more than one message in a unary call".to_string());
        }
    }
    match length {
        Some(length) if length == message.len() => Ok(message),
        Some(length) => {
            let text = format!("message of {length} bytes ended after {}", message.len());
            refuse(code::INTERNAL, text)
        }
        None if message.is_empty() => Err(ReceiveError::Nothing),
        None => refuse(
            code::INTERNAL,
            format!("stream ended after {} bytes of a message head", message.len()),
        ),
    }
}

/// The next piece of a message. An error if the peer stops sending in the middle of it.
async fn next_piece(
    stream: &mut RecvStream,
    limit: Option<Duration>,
) -> Result<Option<Bytes>, ReceiveError> {
    let Some(limit) = limit else {
        return stream.data().await.transpose().map_err(ReceiveError::Stream);
    };
    let mut piece = pin!(stream.data());
    // Most pieces are there already, and need no timer.
    let piece = match piece.as_mut().now_or_never() {
        Some(piece) => Ok(piece),
        None => tokio::time::timeout(limit, piece).await,
    };
    match piece {
        Ok(piece) => piece.transpose().map_err(ReceiveError::Stream),
        Err(_) => {
            let text = format!("no part of the message has arrived for {} s", limit.as_secs());
            Err(ReceiveError::Message(RpcStatus::new(code::DEADLINE_EXCEEDED, text)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn head_and_segments_read_as_one() {
        let message: Chunks = vec![Bytes::from_static(b"ab"), Bytes::from_static(b"cd")].into();
        let mut framed = Framed { head: [0, 0, 0, 0, 4], sent: 0, message, _memory: None };
        let mut slices = [IoSlice::new(&[]); 4];
        assert_eq!(framed.chunks_vectored(&mut slices), 3);
        framed.advance(3);
        assert_eq!((framed.remaining(), framed.chunk()), (6, &[0u8, 4][..]));
        framed.advance(3);
        assert_eq!((framed.remaining(), framed.chunk()), (3, &b"b"[..]));
        assert_eq!(framed.copy_to_bytes(3), "bcd");
    }
}
