//! The halves of a Unix socket between tasks of one host. Each half is registered for its own
//! direction.
//!
//! A Unix socket becomes writable whenever its peer reads. Tokio registers a socket for both
//! directions, so it would wake the process for every message that the peer reads.

use rustix::io::Errno;
use rustix::net::{SendAncillaryBuffer, SendFlags, send, sendmsg};
use std::io::{self, IoSlice, Read};
use std::net::Shutdown;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, ready};
use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::runtime::Handle;

/// Splits a stream. Must be called inside a tokio runtime, which does its I/O.
pub(super) fn split(stream: tokio::net::UnixStream) -> io::Result<(ReadHalf, WriteHalf)> {
    let reading = Arc::new(stream.into_std()?);
    let writing = Arc::new(reading.try_clone()?);
    let reading = registered(reading, Interest::READABLE)?;
    Ok((ReadHalf(reading), WriteHalf { stream: writing, waiting: None, io: Handle::current() }))
}

#[expect(
    deprecated,
    reason = "what replaces it is unsafe, for types that do not keep their descriptor"
)]
fn registered<T: AsRawFd>(stream: T, interest: Interest) -> io::Result<AsyncFd<T>> {
    AsyncFd::with_interest(stream, interest)
}

pub(super) struct ReadHalf(AsyncFd<Arc<UnixStream>>);

impl ReadHalf {
    /// The socket, as long as it is read.
    pub(super) fn socket(&self) -> Weak<UnixStream> {
        Arc::downgrade(self.0.get_ref())
    }
}

impl AsyncRead for ReadHalf {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        to: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            let mut ready = ready!(self.0.poll_read_ready(cx))?;
            let free = to.initialize_unfilled();
            let len = free.len();
            match ready.try_io(|stream| (&**stream.get_ref()).read(free)) {
                Ok(Ok(read)) => {
                    // The socket is drained: wait for the next event before another attempt.
                    if 0 < read && read < len {
                        ready.clear_ready();
                    }
                    to.advance(read);
                    return Poll::Ready(Ok(()));
                }
                Ok(Err(e)) => return Poll::Ready(Err(e)),
                Err(_would_block) => {}
            }
        }
    }
}

/// The writing half. Any thread can write. Dropping it ends the stream for the peer.
pub(super) struct WriteHalf {
    stream: Arc<UnixStream>,
    /// Registered only while the socket is full.
    waiting: Option<AsyncFd<Arc<UnixStream>>>,
    io: Handle,
}

impl WriteHalf {
    fn poll_with(
        &mut self,
        cx: &mut Context<'_>,
        mut write: impl FnMut(&UnixStream) -> rustix::io::Result<usize>,
    ) -> Poll<io::Result<usize>> {
        loop {
            match write(&self.stream) {
                Err(Errno::AGAIN) => {}
                Err(Errno::INTR) => continue,
                done => {
                    self.waiting = None;
                    return Poll::Ready(done.map_err(io::Error::from));
                }
            }
            let waiting = match &mut self.waiting {
                Some(waiting) => waiting,
                none => {
                    let _io = self.io.enter();
                    let stream = self.stream.clone();
                    none.insert(registered(stream, Interest::WRITABLE)?)
                }
            };
            ready!(waiting.poll_write_ready(cx))?.clear_ready();
        }
    }
}

impl AsyncWrite for WriteHalf {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_with(cx, |stream| send(stream, bytes, SendFlags::NOSIGNAL))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        // `send` and `sendmsg` take less time than `write` and `writev`, which are for files too.
        if let [bytes] = slices {
            return self.poll_write(cx, bytes);
        }
        self.poll_with(cx, |stream| {
            sendmsg(stream, slices, &mut SendAncillaryBuffer::default(), SendFlags::NOSIGNAL)
        })
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(self.stream.shutdown(Shutdown::Write))
    }
}

impl Drop for WriteHalf {
    fn drop(&mut self) {
        // Fails only if the peer is gone.
        let _ = self.stream.shutdown(Shutdown::Write);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    #[tokio::test(flavor = "multi_thread")]
    async fn a_full_socket_continues_when_there_is_room_and_the_end_is_seen() {
        let (near, far) = tokio::net::UnixStream::pair().unwrap();
        let (_near_read, mut write) = split(near).unwrap();
        let (mut read, _far_write) = split(far).unwrap();
        let sent: Vec<u8> = (0..5_000_000u32).map(|i| i as u8).collect();
        let writing = tokio::spawn({
            let sent = sent.clone();
            async move {
                write.write_all(&sent).await.unwrap();
                assert!(write.waiting.is_none(), "it waits no more");
            }
        });
        let mut got = Vec::new();
        read.read_to_end(&mut got).await.unwrap();
        writing.await.unwrap();
        assert!(got == sent);
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_thread_outside_the_runtime_can_write() {
        let (near, far) = tokio::net::UnixStream::pair().unwrap();
        let (_near_read, mut write) = split(near).unwrap();
        let (mut read, _far_write) = split(far).unwrap();
        let writer = std::thread::spawn(move || {
            let mut cx = Context::from_waker(std::task::Waker::noop());
            // Until the socket is full and a writer waits.
            let mut total = 0;
            while let Poll::Ready(written) = Pin::new(&mut write).poll_write(&mut cx, &[7; 4096]) {
                total += written.unwrap();
            }
            assert!(write.waiting.is_some());
            total
        });
        let total = tokio::task::spawn_blocking(|| writer.join().unwrap()).await.unwrap();
        let mut got = Vec::new();
        read.read_to_end(&mut got).await.unwrap();
        assert_eq!(got.len(), total);
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn writing_to_a_closed_peer_is_an_error() {
        let (near, far) = tokio::net::UnixStream::pair().unwrap();
        let (_near_read, mut write) = split(near).unwrap();
        drop(far);
        assert!(write.write_all(&[1]).await.is_err());
    }
}
