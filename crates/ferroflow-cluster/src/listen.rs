//! One listener for gRPC and links: the first byte of a connection tells them apart.

use crate::link::{self, Identity, MAGIC, Receiver};
use crate::net::{NetListener, NetStream, Rewound};
use crate::rpc::{BoxIo, IncomingConnections};
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::AsyncReadExt;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

/// A connection that sends nothing is closed after this.
const FIRST_WORD: Duration = Duration::from_secs(20);
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
    loop {
        tokio::select! {
            biased;
            Some(_) = connections.join_next() => {}
            accepted = listener.accept() => match accepted {
                Ok((stream, peer)) => {
                    let (grpc, own, receiver) = (grpc.clone(), own.clone(), receiver.clone());
                    connections.spawn(sort(stream, peer, grpc, own, receiver));
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

async fn sort(
    stream: NetStream,
    peer: String,
    grpc: mpsc::Sender<(BoxIo, String)>,
    own: Arc<Identity>,
    receiver: Arc<dyn Receiver>,
) {
    let Ok(Ok((first, stream))) = tokio::time::timeout(FIRST_WORD, first_byte(stream)).await else {
        return;
    };
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
