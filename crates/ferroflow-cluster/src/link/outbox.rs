//! The sending half of a connection. A thread that sends writes to the socket itself, at once or at
//! the end of its scope. Only bytes that the socket does not take are left to the connection's
//! writer.

use super::frame::LinkFrame;
use crate::net::BoxWrite;
use bytes::{Buf, Bytes};
use ferroflow_core::{Flush, InlineScope};
use parking_lot::{Mutex, MutexGuard};
use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};
use tokio::io::AsyncWrite;

/// Buffers that one system call writes.
const MOST_PIECES: usize = 16;

/// With this much to send, a thread writes before the end of its scope.
const MOST_GATHERED: usize = 64 << 10;

#[derive(Clone)]
pub(super) struct Outbox(Arc<Shared>);

struct Shared(Mutex<State>);

struct State {
    io: BoxWrite,
    /// Whether sending threads may write.
    is_direct: bool,
    waiting: VecDeque<Bytes>,
    waiting_bytes: usize,
    /// Frames that can wait: they are sent with the next urgent frame.
    later: Vec<u8>,
    writer: Option<Waker>,
    is_closed: bool,
}

impl Outbox {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.0.lock()
    }

    /// `is_direct` lets senders write on their own threads.
    pub fn new(io: BoxWrite, is_direct: bool) -> Outbox {
        Outbox(Arc::new(Shared(Mutex::new(State {
            io,
            is_direct,
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            later: Vec::new(),
            writer: None,
            is_closed: false,
        }))))
    }

    /// Sends a frame; false if the connection is closed. Bytes that cannot be written now are kept,
    /// so callers check [`Outbox::waiting_bytes`] first.
    pub fn send(&self, frame: LinkFrame, scope: &InlineScope) -> bool {
        let mut state = self.lock();
        if state.is_closed {
            return false;
        }
        // The writer, or a thread at the end of its scope, writes bytes that wait already.
        let was_idle = state.waiting.is_empty();
        let head = state.with_later(frame.head);
        state.push(head);
        state.push(frame.payload);
        let is_much = state.waiting_bytes >= MOST_GATHERED;
        if was_idle && (is_much || !scope.flush_later(|| self.0.clone())) {
            state.go();
        }
        true
    }

    /// Sends a frame with the next one, or when [`Outbox::flush`] is called.
    pub fn send_later(&self, frame: &LinkFrame) {
        let mut state = self.lock();
        if !state.is_closed {
            state.later.extend_from_slice(&frame.head);
            state.later.extend_from_slice(&frame.payload);
        }
    }

    /// Sends the frames that can wait; false if there are none.
    pub fn flush(&self) -> bool {
        let mut state = self.lock();
        if state.is_closed || state.later.is_empty() {
            return false;
        }
        let was_idle = state.waiting.is_empty();
        let later = state.with_later(Bytes::new());
        state.push(later);
        if was_idle {
            state.go();
        }
        true
    }

    /// Bytes that the socket has not taken.
    pub fn waiting_bytes(&self) -> usize {
        self.lock().waiting_bytes
    }

    pub fn is_closed(&self) -> bool {
        self.lock().is_closed
    }

    /// Closes the connection and ends the writer.
    pub fn close(&self) {
        let mut state = self.lock();
        state.is_closed = true;
        // Drops the socket: the other side sees the end of the stream.
        state.io = Box::new(tokio::io::sink());
        state.waiting.clear();
        state.waiting_bytes = 0;
        if let Some(writer) = state.writer.take() {
            writer.wake();
        }
    }

    /// The writer: writes the bytes that wait, until the connection is closed or lost.
    pub async fn write_out(&self) -> io::Result<()> {
        std::future::poll_fn(|cx| {
            let mut state = self.lock();
            if state.is_closed {
                return Poll::Ready(Ok(()));
            }
            state.writer = Some(cx.waker().clone());
            match state.poll_write(cx) {
                Poll::Ready(Err(e)) => Poll::Ready(Err(e)),
                _ => Poll::Pending,
            }
        })
        .await
    }
}

impl Flush for Shared {
    fn flush(&self) {
        self.0.lock().go();
    }
}

impl State {
    fn push(&mut self, bytes: Bytes) {
        if !bytes.is_empty() {
            self.waiting_bytes += bytes.len();
            self.waiting.push_back(bytes);
        }
    }

    /// The frames that can wait and `head` in one piece, which is sent with one system call.
    fn with_later(&mut self, head: Bytes) -> Bytes {
        if self.later.is_empty() {
            return head;
        }
        let together = [&self.later[..], &head].concat().into();
        self.later.clear();
        together
    }

    /// Writes on this thread, or wakes the writer.
    fn go(&mut self) {
        if self.waiting.is_empty() {
            return;
        }
        // A writer that has not started yet finds the bytes when it does.
        let Some(writer) = self.writer.clone() else { return };
        if !self.is_direct {
            return writer.wake();
        }
        // The socket wakes the writer when it can take more.
        if let Poll::Ready(Err(_)) = self.poll_write(&mut Context::from_waker(&writer)) {
            // The writer runs into the same error and reports it.
            writer.wake();
        }
    }

    fn poll_write(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.waiting.is_empty() {
            let mut slices = [IoSlice::new(&[]); MOST_PIECES];
            let count = self.waiting.len().min(MOST_PIECES);
            for (slice, piece) in slices.iter_mut().zip(&self.waiting) {
                *slice = IoSlice::new(piece);
            }
            let io = Pin::new(&mut self.io);
            let mut written = match ready!(io.poll_write_vectored(cx, &slices[..count]))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                written => written,
            };
            self.waiting_bytes -= written;
            while let Some(piece) = self.waiting.front_mut() {
                if written < piece.len() {
                    piece.advance(written);
                    break;
                }
                written -= piece.len();
                self.waiting.pop_front();
            }
        }
        Pin::new(&mut self.io).poll_flush(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::AsyncReadExt;

    fn frame(text: &'static str) -> LinkFrame {
        LinkFrame { head: Bytes::from_static(text.as_bytes()), payload: Bytes::new() }
    }

    #[tokio::test]
    async fn bytes_that_the_stream_does_not_take_at_once_follow_in_order() {
        let (mut far, near) = tokio::io::duplex(4);
        let outbox = Outbox::new(Box::new(near), true);
        let writer = tokio::spawn({
            let outbox = outbox.clone();
            async move { outbox.write_out().await }
        });
        tokio::task::yield_now().await;
        outbox.send_later(&frame("first "));
        assert!(outbox.send(frame("second "), &InlineScope::unknown()));
        assert!(outbox.send(frame("third "), &InlineScope::unknown()));
        assert!(outbox.waiting_bytes() > 0);
        outbox.send_later(&frame("last"));
        assert!(outbox.flush() && !outbox.flush());
        let mut got = [0; 23];
        far.read_exact(&mut got).await.unwrap();
        assert_eq!(&got, b"first second third last");
        assert_eq!(outbox.waiting_bytes(), 0);
        outbox.close();
        writer.await.unwrap().unwrap();
        assert!(!outbox.send(frame("x"), &InlineScope::unknown()));
    }

    #[tokio::test]
    async fn frames_of_one_scope_are_written_together() {
        let (near, far) = tokio::net::UnixStream::pair().unwrap();
        let (_, write) = near.into_split();
        let outbox = Outbox::new(Box::new(write), true);
        let writer = tokio::spawn({
            let outbox = outbox.clone();
            async move { outbox.write_out().await }
        });
        tokio::task::yield_now().await;
        InlineScope::network(|scope| {
            outbox.send(frame("first "), scope);
            outbox.send(frame("second "), scope);
            assert_eq!(outbox.waiting_bytes(), 13, "nothing is written yet");
            outbox.send(frame("third"), scope);
        });
        assert_eq!(outbox.waiting_bytes(), 0);
        let mut got = [0; 100];
        far.readable().await.unwrap();
        assert_eq!(far.try_read(&mut got).unwrap(), 18);
        assert_eq!(&got[..18], b"first second third");
        outbox.close();
        writer.await.unwrap().unwrap();
    }

    #[tokio::test]
    async fn a_lost_connection_ends_the_writer() {
        let (far, near) = tokio::io::duplex(4);
        let outbox = Outbox::new(Box::new(near), true);
        drop(far);
        outbox.send(frame("x"), &InlineScope::unknown());
        assert!(outbox.write_out().await.is_err());
    }
}
