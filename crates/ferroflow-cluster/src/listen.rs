//! Listeners that authenticate their peers. The listener of a task serves gRPC and links: the first
//! byte tells the protocols apart.

use crate::link::{self, GreetedLink, Identity, MAGIC, Receiver};
use crate::net::{self, NetListener, NetStream, Rewound};
use crate::rpc::{BoxIo, Caller, IncomingConnections};
use ferroflow_core::{HashMap, Result, err, limits};
use ferroflow_identity::Trust;
use ferroflow_metrics::{OpenConnection, TaskMetrics};
use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::AsyncReadExt;
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};

/// The timeout of the handshake and the first byte.
const GREETING: Duration = Duration::from_secs(20);
/// The most connections in their handshake at a time. One more closes the oldest of the host that
/// has the most. A peer of the job needs milliseconds, so the old ones are silent, and a host that
/// opens many closes its own.
const MOST_GREETING: usize = 512;
/// The number of connections in the queue.
const BACKLOG: usize = 128;

/// The target of log lines about connections and sessions.
pub(crate) const AUDIT: &str = "audit";

/// The gRPC connections among the accepted ones.
pub(crate) struct Handed(mpsc::Receiver<(BoxIo, Caller)>);

impl Handed {
    pub fn channel() -> (mpsc::Sender<(BoxIo, Caller)>, Handed) {
        let (to, from) = mpsc::channel(BACKLOG);
        (to, Handed(from))
    }
}

impl IncomingConnections for Handed {
    async fn accept(&mut self) -> io::Result<(BoxIo, Caller)> {
        match self.0.recv().await {
            Some(accepted) => Ok(accepted),
            // All listeners have ended.
            None => std::future::pending().await,
        }
    }
}

/// A connection with an authenticated peer.
struct Greeted {
    caller: Caller,
    protocol: Protocol,
}

enum Protocol {
    Grpc(NetStream),
    Link(Box<GreetedLink>),
}

/// Accepts connections until it is dropped. Serves links and passes gRPC connections on. Dropping
/// it closes the links.
pub(crate) async fn listen(
    mut listener: Box<dyn NetListener>,
    grpc: mpsc::Sender<(BoxIo, Caller)>,
    own: Arc<Identity>,
    receiver: Arc<dyn Receiver>,
    trust: Trust,
    metrics: Arc<TaskMetrics>,
) {
    let serve = move |greeted| serve(greeted, grpc.clone(), own.clone(), receiver.clone());
    greet_all(&mut *listener, trust, metrics, serve).await;
}

/// Accepts connections of known peers until it is dropped. Dropping it ends what `serve` does.
async fn greet_all<F: Future<Output = ()> + Send + 'static>(
    listener: &mut dyn NetListener,
    trust: Trust,
    metrics: Arc<TaskMetrics>,
    serve: impl Fn(Greeted) -> F,
) {
    let trust = Arc::new(trust);
    let mut connections = JoinSet::new();
    let mut greeting: JoinSet<Option<Greeted>> = JoinSet::new();
    let mut silent = SilentPeers::default();
    loop {
        tokio::select! {
            biased;
            Some(_) = connections.join_next() => {}
            Some(greeted) = greeting.join_next() => {
                silent.0.retain(|(_, handle)| !handle.is_finished());
                let Ok(Some(greeted)) = greeted else { continue };
                // A task without a link uses gRPC.
                let most = limits().connections.most.min(descriptors() / 2);
                if matches!(greeted.protocol, Protocol::Link(_)) && connections.len() >= most {
                    let peer = greeted.caller.address;
                    tracing::warn!(target: AUDIT, peer, "refused a link: there are too many");
                    continue;
                }
                connections.spawn(serve(greeted));
            }
            accepted = listener.accept() => match accepted {
                Ok((stream, peer)) => {
                    // Clients need descriptors too.
                    silent.make_room(MOST_GREETING.min(descriptors() / 8));
                    let host = peer.rsplit_once(':').map_or(&*peer, |(host, _)| host).to_string();
                    let greet = greet(stream, peer, trust.clone(), metrics.clone());
                    silent.0.push_back((host, greeting.spawn(greet)));
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

/// Connections in their handshake, and their hosts, the oldest first.
#[derive(Default)]
struct SilentPeers(VecDeque<(String, AbortHandle)>);

impl SilentPeers {
    /// Closes connections until there are fewer than `most`.
    fn make_room(&mut self, most: usize) {
        while self.0.len() >= most.max(1) {
            let mut counts: HashMap<&str, usize> = HashMap::default();
            self.0.iter().for_each(|(host, _)| *counts.entry(host).or_default() += 1);
            let largest = counts.values().max().copied();
            let oldest =
                self.0.iter().position(|(host, _)| counts.get(&**host).copied() == largest);
            if let Some((_, handle)) = oldest.and_then(|at| self.0.remove(at)) {
                handle.abort();
            }
        }
    }
}

/// A TCP listener of a service beside the tasks, such as a model server. It lets in the peers that
/// `trust` admits, with TLS where `trust` asks for it.
pub struct TrustedListener {
    handed: Handed,
    address: SocketAddr,
    /// Accepts connections until the listener is dropped.
    _accepting: JoinSet<()>,
}

impl TrustedListener {
    /// Listens on `address`. Refuses an address that other hosts reach without credentials.
    pub async fn bind(address: SocketAddr, trust: &Trust) -> Result<TrustedListener> {
        trust.check_bind(address)?;
        let failed = |e| err!(Unavailable, "cannot listen on {address}: {e}");
        let mut listener = TcpListener::bind(address).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let (to, handed) = Handed::channel();
        let trust = trust.clone();
        let mut accepting = JoinSet::new();
        accepting.spawn(async move {
            let serve = move |greeted| hand_over(greeted, to.clone());
            // The owner of the listener counts its connections.
            let metrics = TaskMetrics::new("service", 0);
            greet_all(&mut listener, trust, metrics, serve).await;
        });
        Ok(TrustedListener { handed, address, _accepting: accepting })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl IncomingConnections for TrustedListener {
    async fn accept(&mut self) -> io::Result<(BoxIo, Caller)> {
        self.handed.accept().await
    }
}

async fn hand_over(greeted: Greeted, to: mpsc::Sender<(BoxIo, Caller)>) {
    // A service beside the tasks has no links.
    let Protocol::Grpc(stream) = greeted.protocol else { return };
    // An error means that the server is shutting down.
    let _ = to.send((stream.boxed(), greeted.caller)).await;
}

/// The number of descriptors that the process may have.
pub fn descriptors() -> usize {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX)
}

/// Authenticates a peer and finds out its protocol. `None` if the peer is refused.
async fn greet(
    stream: NetStream,
    address: String,
    trust: Arc<Trust>,
    metrics: Arc<TaskMetrics>,
) -> Option<Greeted> {
    let peer = address.clone();
    let greeting = async {
        let (stream, identity) = net::accept(stream, &trust).await?;
        let (first, stream) = first_byte(stream).await?;
        let open = Some(Arc::new(OpenConnection::new(metrics.clone())));
        let caller = Caller { address, identity: Arc::new(identity), open };
        let protocol = match first == MAGIC[0] {
            false => Protocol::Grpc(stream),
            // Part of the handshake: a peer that sends half of a greeting still counts as silent.
            true => {
                let greeted = GreetedLink::greet(stream).await;
                Protocol::Link(Box::new(greeted.map_err(|e| io::Error::other(e.to_string()))?))
            }
        };
        io::Result::Ok(Greeted { caller, protocol })
    };
    match tokio::time::timeout(GREETING, greeting).await {
        Ok(Ok(greeted)) => {
            let kind = match greeted.protocol {
                Protocol::Link(_) => {
                    metrics.connected_link();
                    "link"
                }
                Protocol::Grpc(_) => {
                    metrics.connected_grpc();
                    "grpc"
                }
            };
            let identity = &greeted.caller.identity;
            tracing::info!(target: AUDIT, peer, %identity, kind, "connection accepted");
            Some(greeted)
        }
        Ok(Err(error)) => {
            // A peer that closes the connection at once, such as a port scan, gets no line in the
            // log.
            if error.kind() != io::ErrorKind::UnexpectedEof {
                metrics.refused_connection();
                tracing::warn!(target: AUDIT, peer, "refused a connection: {error}");
            }
            None
        }
        Err(_) => {
            metrics.refused_connection();
            tracing::info!(target: AUDIT, peer, "refused a connection that sent nothing");
            None
        }
    }
}

async fn serve(
    greeted: Greeted,
    grpc: mpsc::Sender<(BoxIo, Caller)>,
    own: Arc<Identity>,
    receiver: Arc<dyn Receiver>,
) {
    let Greeted { caller, protocol } = greeted;
    let link = match protocol {
        Protocol::Link(link) => link,
        protocol => return hand_over(Greeted { caller, protocol }, grpc).await,
    };
    if let Err(e) = link::serve(*link, &caller, &own, receiver).await {
        tracing::debug!(peer = caller.address, "link ended: {e}");
    }
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
        NetStream::Tls(mut tls) => Ok((tls.first_byte().await?, NetStream::Tls(tls))),
        // Only tasks that use links know the name of the socket.
        NetStream::Unix(unix) => Ok((MAGIC[0], NetStream::Unix(unix))),
        NetStream::Other(mut io) => {
            io.read_exact(&mut first).await?;
            let rewound = Rewound { read: first.to_vec(), io };
            Ok((first[0], NetStream::Other(Box::new(rewound))))
        }
    }
}
