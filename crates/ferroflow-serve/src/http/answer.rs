//! How answers are sent: their memory counts until the client has read them, and a client that
//! reads nothing is closed.

use bytes::Bytes;
use ferroflow_cluster::rpc::{BoxIo, CallMemory};
use hyper::body::{Body, Frame, SizeHint};
use std::convert::Infallible;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

/// The bytes of one frame. HTTP buffers a few frames, which do not count.
const FRAME: usize = 64 << 10;

/// A body that counts until its last frame is sent.
pub(super) struct CountedBody {
    rest: Bytes,
    _memory: Option<CallMemory>,
}

impl CountedBody {
    pub fn new(bytes: Bytes, memory: Option<CallMemory>) -> CountedBody {
        CountedBody { rest: bytes, _memory: memory }
    }
}

impl Body for CountedBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let len = self.rest.len().min(FRAME);
        Poll::Ready((len > 0).then(|| Ok(Frame::data(self.rest.split_to(len)))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.rest.len() as u64)
    }
}

/// A stream whose writes fail when the peer has read nothing for a while.
pub(super) struct StallGuard {
    io: BoxIo,
    after: Duration,
    /// Runs while the peer reads nothing.
    stalled: Option<Pin<Box<Sleep>>>,
}

impl StallGuard {
    pub fn new(io: BoxIo, after: Duration) -> StallGuard {
        StallGuard { io, after, stalled: None }
    }

    fn watch<T>(
        &mut self,
        written: Poll<io::Result<T>>,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.stalled = None;
            return written;
        }
        let stalled = self.stalled.get_or_insert_with(|| Box::pin(sleep(self.after)));
        ready!(stalled.as_mut().poll(cx));
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the client reads nothing")))
    }
}

impl AsyncRead for StallGuard {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_read(cx, into)
    }
}

impl AsyncWrite for StallGuard {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.io).poll_write(cx, bytes);
        self.watch(written, cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.io).poll_write_vectored(cx, slices);
        self.watch(written, cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.io).poll_flush(cx);
        self.watch(flushed, cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let shut = Pin::new(&mut self.io).poll_shutdown(cx);
        self.watch(shut, cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body_util::BodyExt;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    #[tokio::test]
    async fn a_body_is_sent_in_frames() {
        let whole: Bytes = (0..3 * FRAME + 7).map(|i| i as u8).collect();
        let mut body = CountedBody::new(whole.clone(), None);
        assert_eq!(body.size_hint().exact(), Some(whole.len() as u64));
        let mut frames = Vec::new();
        while let Some(frame) = body.frame().await {
            frames.push(frame.expect("no error").into_data().expect("data"));
        }
        assert!(body.is_end_stream());
        assert_eq!(frames.iter().map(Bytes::len).collect::<Vec<_>>(), [FRAME, FRAME, FRAME, 7]);
        assert_eq!(frames.concat(), whole);
    }

    #[tokio::test]
    async fn a_client_that_reads_nothing_is_closed_and_one_that_reads_is_not() {
        let (near, mut far) = tokio::io::duplex(16);
        let mut guarded = StallGuard::new(Box::new(near), Duration::from_millis(1));
        let e = guarded.write_all(&[7; 100]).await.expect_err("nothing is read");
        assert_eq!(e.kind(), io::ErrorKind::TimedOut);
        let mut read = [0; 16];
        far.read_exact(&mut read).await.expect("what fits has arrived");
        guarded.write_all(&[8; 10]).await.expect("there is room again");
    }
}
