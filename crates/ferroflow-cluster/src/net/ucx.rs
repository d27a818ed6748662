//! Streams over UCX for the large values of links.

use crate::link::DataPath;
use ferroflow_collective::ucx::{UcxPipe, UcxPort, has_device};
use ferroflow_identity::Trust;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The port of a task that uses UCX. A task uses UCX if an option requests it, or if the host has a
/// device for it and values may travel without encryption.
pub(crate) fn ucx_port(path: DataPath, trust: &Trust) -> Option<UcxPort> {
    let is_wanted = match path {
        DataPath::Ucx => true,
        DataPath::Auto => has_device() && trust.credentials.is_none(),
        DataPath::Tcp | DataPath::Grpc => false,
    };
    let opened = is_wanted.then(UcxPort::open)?;
    let port = opened.inspect_err(|e| {
        tracing::warn!("no UCX, so values go over TCP: {}", e.message());
    });
    if port.is_ok() && trust.credentials.is_some() {
        tracing::warn!("UCX carries large values between tasks without encryption");
    }
    port.ok()
}

/// A stream over UCX.
pub(crate) struct UcxStream(pub UcxPipe);

impl AsyncRead for UcxStream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let read = ready!(self.0.poll_read(cx, buf.initialize_unfilled()))?;
        buf.advance(read);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for UcxStream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.0.poll_write(cx, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    /// Dropping it closes it.
    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
