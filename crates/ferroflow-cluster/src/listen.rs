//! One listener, two kinds of callers: what each connection begins with tells gRPC from links.

use crate::link::{self, Identity, MAGIC, Receiver};
use crate::net::{NetListener, NetStream, Rewound};
use crate::rpc::{BoxIo, IncomingConnections};
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::AsyncReadExt;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

/// A caller that connects and says nothing is dropped after this.
const FIRST_WORD: Duration = Duration::from_secs(20);
/// Connections that wait to be served.
const BACKLOG: usize = 128;

/// Connections of gRPC clients, from whoever tells them apart.
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
            // Nobody listens any more.
            None => std::future::pending().await,
        }
    }
}

/// Accepts until dropped: serves links, and hands the others over. Ends what it serves when dropped.
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
                    // Out of descriptors, most likely: asking again at once would spin.
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

/// The first byte of a stream, which is still in it afterwards.
async fn first_byte(stream: NetStream) -> io::Result<(u8, NetStream)> {
    let mut first = [0];
    match stream {
        NetStream::Tcp(tcp) => {
            if tcp.peek(&mut first).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            Ok((first[0], NetStream::Tcp(tcp)))
        }
        // Its name is told to tasks that speak of links only.
        NetStream::Unix(unix) => Ok((MAGIC[0], NetStream::Unix(unix))),
        NetStream::Other(mut io) => {
            io.read_exact(&mut first).await?;
            let rewound = Rewound { read: first.to_vec(), io };
            Ok((first[0], NetStream::Other(Box::new(rewound))))
        }
    }
}
