//! One listener for gRPC and links: the first byte of a connection tells them apart.

use crate::link::{self, Identity, MAGIC, Receiver};
use crate::net::{NetListener, NetStream, Rewound};
use crate::rpc::{BoxIo, IncomingConnections};
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::io::AsyncReadExt;
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};

/// A connection that sends nothing is closed after this.
const FIRST_WORD: Duration = Duration::from_secs(20);
/// The most connections that have sent nothing.
const MOST_SILENT: usize = 512;
/// The number of connections in the queue.
const BACKLOG: usize = 128;

/// The gRPC connections among the accepted ones.
pub(crate) struct Handed(mpsc::Receiver<(BoxIo, String)>);

impl Handed {
    pub fn channel() -> (mpsc::Sender<(BoxIo, String)>, Handed) {
        let (to, from) = mpsc::channel(BACKLOG);
        (to, Handed(from))
    }
}

impl IncomingConnections for Handed {
    async fn accept(&mut self) -> io::Result<(BoxIo, String)> {
        match self.0.recv().await {
            Some(accepted) => Ok(accepted),
            // All listeners have ended.
            None => std::future::pending().await,
        }
    }
}

/// Accepts connections until it is dropped. Serves links and passes gRPC connections on. Dropping
/// it closes the links.
pub(crate) async fn listen(
    mut listener: Box<dyn NetListener>,
    grpc: mpsc::Sender<(BoxIo, String)>,
    own: Arc<Identity>,
    receiver: Arc<dyn Receiver>,
) {
    let mut connections = JoinSet::new();
    let mut silent = SilentConnections::default();
    loop {
        tokio::select! {
            biased;
            Some(_) = connections.join_next() => {}
            accepted = listener.accept() => match accepted {
                Ok((stream, peer)) => {
                    let (grpc, own, receiver) = (grpc.clone(), own.clone(), receiver.clone());
                    let has_spoken = Arc::new(AtomicBool::new(false));
                    let sorting = sort(stream, peer, has_spoken.clone(), grpc, own, receiver);
                    silent.add(connections.spawn(sorting), has_spoken);
                }
                Err(error) => {
                    // Probably out of file descriptors: an immediate retry would spin.
                    tracing::warn!(%error, "cannot accept a connection");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            },
        }
    }
}

/// Connections that have sent nothing, the oldest first. There may be so many that no descriptor is
/// left for clients, so the oldest are closed.
#[derive(Default)]
struct SilentConnections(VecDeque<(AbortHandle, Arc<AtomicBool>)>);

impl SilentConnections {
    fn add(&mut self, connection: AbortHandle, has_spoken: Arc<AtomicBool>) {
        self.0.push_back((connection, has_spoken));
        let most = descriptors() / 4;
        if self.0.len() <= MOST_SILENT.min(most) {
            return;
        }
        self.0.retain(|(connection, has_spoken)| {
            !connection.is_finished() && !has_spoken.load(Ordering::Relaxed)
        });
        while self.0.len() > MOST_SILENT.min(most) {
            if let Some((oldest, _)) = self.0.pop_front() {
                oldest.abort();
            }
        }
    }
}

/// How many descriptors the process may have.
pub(crate) fn descriptors() -> usize {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX)
}

async fn sort(
    stream: NetStream,
    peer: String,
    has_spoken: Arc<AtomicBool>,
    grpc: mpsc::Sender<(BoxIo, String)>,
    own: Arc<Identity>,
    receiver: Arc<dyn Receiver>,
) {
    let Ok(Ok((first, stream))) = tokio::time::timeout(FIRST_WORD, first_byte(stream)).await else {
        return;
    };
    has_spoken.store(true, Ordering::Relaxed);
    if first == MAGIC[0] {
        if let Err(e) = link::serve(stream, &peer, &own, receiver).await {
            tracing::debug!(peer, "link ended: {e}");
        }
        return;
    }
    // An error means that the server is shutting down.
    let _ = grpc.send((stream.boxed(), peer)).await;
}

/// Reads the first byte of a stream without consuming it.
async fn first_byte(stream: NetStream) -> io::Result<(u8, NetStream)> {
    let mut first = [0];
    match stream {
        NetStream::Tcp(tcp) => {
            if tcp.peek(&mut first).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            Ok((first[0], NetStream::Tcp(tcp)))
        }
        // Only tasks that use links know the name of the socket.
        NetStream::Unix(unix) => Ok((MAGIC[0], NetStream::Unix(unix))),
        NetStream::Other(mut io) => {
            io.read_exact(&mut first).await?;
            let rewound = Rewound { read: first.to_vec(), io };
            Ok((first[0], NetStream::Other(Box::new(rewound))))
        }
    }
}
