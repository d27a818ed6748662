//! The sending half of a connection. Whoever has something to send writes it on its own thread, at once or
//! with all else that it sends meanwhile; only what the socket does not take waits for the connection's writer.

use super::frame::LinkFrame;
use crate::net::BoxWrite;
use bytes::{Buf, Bytes, BytesMut};
use parking_lot::Mutex;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};
use tokio::io::AsyncWrite;

/// Pieces given to the kernel in one call.
const MOST_PIECES: usize = 16;

/// With so much to send, it is begun with.
const MOST_GATHERED: usize = 64 << 10;

#[derive(Clone)]
pub(super) struct Outbox(Arc<Mutex<State>>);

thread_local! {
    /// What this thread has sent to and not written yet; none if it writes at once.
    static GATHERED: RefCell<Option<Vec<Outbox>>> = const { RefCell::new(None) };
}

/// Writes what `work` sends when that is done, with one call for each connection.
pub(crate) fn gathering<R>(work: impl FnOnce() -> R) -> R {
    let is_part = GATHERED.with_borrow_mut(|gathered| match gathered {
        Some(_) => true,
        none => {
            *none = Some(Vec::new());
            false
        }
    });
    let _gathering = if is_part { None } else { Some(Gathering) };
    work()
}

/// Ends when this is dropped.
struct Gathering;

impl Drop for Gathering {
    fn drop(&mut self) {
        let gathered = GATHERED.with_borrow_mut(Option::take).unwrap_or_default();
        gathered.iter().for_each(|outbox| outbox.0.lock().go());
    }
}

struct State {
    io: BoxWrite,
    /// Whether threads other than the writer's may write.
    is_direct: bool,
    waiting: VecDeque<Bytes>,
    waiting_bytes: usize,
    /// Frames that are in no hurry: they go with the next that is.
    later: BytesMut,
    writer: Option<Waker>,
    is_closed: bool,
}

impl Outbox {
    /// `is_direct` lets senders write on their own threads.
    pub fn new(io: BoxWrite, is_direct: bool) -> Outbox {
        Outbox(Arc::new(Mutex::new(State {
            io,
            is_direct,
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            later: BytesMut::new(),
            writer: None,
            is_closed: false,
        })))
    }

    /// Sends a frame; false if the connection is no more. What cannot be written now is kept, so the
    /// caller looks at [`Outbox::waiting_bytes`] first.
    pub fn send(&self, frame: LinkFrame) -> bool {
        let mut state = self.0.lock();
        if state.is_closed {
            return false;
        }
        // If something waits already, the writer is at it, or a thread that is not done yet.
        let was_idle = state.waiting.is_empty();
        state.push_later();
        state.push(frame.head);
        state.push(frame.payload);
        let is_much = state.waiting_bytes >= MOST_GATHERED;
        if was_idle && (is_much || !self.gather()) {
            state.go();
        }
        true
    }

    /// Leaves it to the end of what this thread is at to write; false if it is to be done now.
    fn gather(&self) -> bool {
        GATHERED.with_borrow_mut(|gathered| {
            gathered.as_mut().map(|gathered| gathered.push(self.clone())).is_some()
        })
    }

    /// Sends a frame with the next one, or when [`Outbox::flush`] is called.
    pub fn send_later(&self, frame: &LinkFrame) {
        let mut state = self.0.lock();
        if !state.is_closed {
            state.later.extend_from_slice(&frame.head);
            state.later.extend_from_slice(&frame.payload);
        }
    }

    /// Sends what waits for company; false if nothing did.
    pub fn flush(&self) -> bool {
        let mut state = self.0.lock();
        if state.is_closed || state.later.is_empty() {
            return false;
        }
        let was_idle = state.waiting.is_empty();
        state.push_later();
        if was_idle {
            state.go();
        }
        true
    }

    /// Bytes that the socket has not taken yet.
    pub fn waiting_bytes(&self) -> usize {
        self.0.lock().waiting_bytes
    }

    pub fn is_closed(&self) -> bool {
        self.0.lock().is_closed
    }

    /// Nothing is sent any more, and the writer ends.
    pub fn close(&self) {
        let mut state = self.0.lock();
        state.is_closed = true;
        // The other side sees that nothing more comes.
        state.io = Box::new(tokio::io::sink());
        state.waiting.clear();
        state.waiting_bytes = 0;
        if let Some(writer) = state.writer.take() {
            writer.wake();
        }
    }

    /// Writes what waits, until the connection is closed or lost.
    pub async fn write_out(&self) -> io::Result<()> {
        std::future::poll_fn(|cx| {
            let mut state = self.0.lock();
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

impl State {
    fn push(&mut self, bytes: Bytes) {
        if !bytes.is_empty() {
            self.waiting_bytes += bytes.len();
            self.waiting.push_back(bytes);
        }
    }

    fn push_later(&mut self) {
        if !self.later.is_empty() {
            let later = self.later.split().freeze();
            self.push(later);
        }
    }

    /// Writes here, or has the writer do it.
    fn go(&mut self) {
        if self.waiting.is_empty() {
            return;
        }
        // Without a writer yet, it will find what waits when it comes.
        let Some(writer) = self.writer.clone() else { return };
        if !self.is_direct {
            return writer.wake();
        }
        // The socket wakes the writer when it takes more.
        if let Poll::Ready(Err(_)) = self.poll_write(&mut Context::from_waker(&writer)) {
            // The writer runs into the same error, and tells everybody.
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
    async fn what_the_stream_does_not_take_at_once_follows_in_order() {
        let (mut far, near) = tokio::io::duplex(4);
        let outbox = Outbox::new(Box::new(near), true);
        let writer = tokio::spawn({
            let outbox = outbox.clone();
            async move { outbox.write_out().await }
        });
        tokio::task::yield_now().await;
        outbox.send_later(&frame("first "));
        assert!(outbox.send(frame("second ")));
        assert!(outbox.send(frame("third ")));
        assert!(outbox.waiting_bytes() > 0);
        outbox.send_later(&frame("last"));
        assert!(outbox.flush() && !outbox.flush());
        let mut got = [0; 23];
        far.read_exact(&mut got).await.unwrap();
        assert_eq!(&got, b"first second third last");
        assert_eq!(outbox.waiting_bytes(), 0);
        outbox.close();
        writer.await.unwrap().unwrap();
        assert!(!outbox.send(frame("x")));
    }

    #[tokio::test]
    async fn what_is_sent_together_is_written_together() {
        let (near, far) = tokio::net::UnixStream::pair().unwrap();
        let (_, write) = near.into_split();
        let outbox = Outbox::new(Box::new(write), true);
        let writer = tokio::spawn({
            let outbox = outbox.clone();
            async move { outbox.write_out().await }
        });
        tokio::task::yield_now().await;
        gathering(|| {
            outbox.send(frame("first "));
            gathering(|| outbox.send(frame("second ")));
            assert_eq!(outbox.waiting_bytes(), 13, "nothing is written yet");
            outbox.send(frame("third"));
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
        outbox.send(frame("x"));
        assert!(outbox.write_out().await.is_err());
    }
}
