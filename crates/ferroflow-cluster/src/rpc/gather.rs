//! Combines the small writes of a connection into one system call.
//!
//! h2 flushes after every DATA frame of 256 bytes or more. The trailers behind it would be a
//! separate write, and usually a separate packet and wake-up of the peer. Here flushes wait until
//! h2 has nothing more to do. This also combines the messages of calls that start or end together.

use super::BoxIo;
use bytes::{Buf, BytesMut};
use parking_lot::Mutex;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Longer writes are not copied: the copy would cost more than the system call.
const MOST_GATHERED: usize = 16 << 10;

/// The stream for h2. Both handles belong to one task, so the lock never blocks.
pub(super) struct Gathered(Arc<Mutex<Gather>>);

/// Flushes the gathered bytes.
pub(super) struct Release(Arc<Mutex<Gather>>);

struct Gather {
    io: BoxIo,
    waiting: BytesMut,
}

pub(super) fn gather(io: BoxIo) -> (Gathered, Release) {
    let shared =
        Arc::new(Mutex::new(Gather { io, waiting: BytesMut::with_capacity(MOST_GATHERED) }));
    (Gathered(shared.clone()), Release(shared))
}

impl Release {
    /// Writes the gathered bytes. Must be called after h2 was polled, because its own flushes do
    /// nothing.
    pub fn poll(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.lock().poll_flush(cx)
    }
}

impl Gather {
    fn poll_write_out(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.waiting.is_empty() {
            match ready!(Pin::new(&mut self.io).poll_write(cx, &self.waiting))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                written => self.waiting.advance(written),
            }
        }
        // Reclaim the front of the buffer instead of growing it.
        self.waiting.clear();
        Poll::Ready(Ok(()))
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_write_out(cx))?;
        Pin::new(&mut self.io).poll_flush(cx)
    }
}

impl AsyncRead for Gathered {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0.lock().io).poll_read(cx, buf)
    }
}

impl AsyncWrite for Gathered {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(cx, &[IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let mut gather = self.0.lock();
        let total: usize = slices.iter().map(|slice| slice.len()).sum();
        if gather.waiting.len() + total <= MOST_GATHERED {
            slices.iter().for_each(|slice| gather.waiting.extend_from_slice(slice));
            return Poll::Ready(Ok(total));
        }
        ready!(gather.poll_write_out(cx))?;
        Pin::new(&mut gather.io).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.0.lock().io.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut gather = self.0.lock();
        ready!(gather.poll_flush(cx))?;
        Pin::new(&mut gather.io).poll_shutdown(cx)
    }
}
