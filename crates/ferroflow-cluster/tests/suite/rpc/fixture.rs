//! A server with one method for each outcome of a call.

use bytes::Bytes;
use ferroflow_cluster::rpc::{
    BoxFuture, CallOptions, Channel, Chunks, RpcRequest, RpcServer, RpcService, RpcStatus, client,
    code,
};
use ferroflow_core::{Limit, Limits};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

/// A timeout that only a hang reaches.
pub const HANG: Duration = Duration::from_secs(30);

pub struct Fixture {
    pub address: String,
    /// Reports of the `Park` method: "parked" when it starts, "dropped" when its future is dropped.
    pub events: mpsc::UnboundedReceiver<&'static str>,
    pub stop: Option<oneshot::Sender<()>>,
    pub served: JoinHandle<()>,
}

/// A server that takes messages of up to 1000 bytes.
pub fn short_messages() -> RpcServer {
    let message = Limit { most: 1000, ..Limits::DEFAULT.message };
    with_limits(Limits { message, ..Limits::DEFAULT })
}

pub fn with_limits(limits: Limits) -> RpcServer {
    RpcServer { limits, ..RpcServer::default() }
}

impl Fixture {
    pub async fn start() -> Self {
        Self::start_with(RpcServer::default()).await
    }

    pub async fn start_with(server: RpcServer) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        Self::start_on(listener, server)
    }

    pub fn start_on(listener: TcpListener, server: RpcServer) -> Self {
        let address = listener.local_addr().expect("bound").to_string();
        let (tell, events) = mpsc::unbounded_channel();
        let (stop, stopped) = oneshot::channel::<()>();
        let service: Arc<dyn RpcService> = Arc::new(Methods { tell });
        let served = tokio::spawn(server.serve(listener, service, async {
            let _ = stopped.await;
        }));
        Fixture { address, events, stop: Some(stop), served }
    }

    pub fn channel(&self) -> Channel {
        Channel::connect(&self.address, client::ChannelOptions::default()).expect("an address")
    }

    pub async fn event(&mut self) -> &'static str {
        tokio::time::timeout(HANG, self.events.recv())
            .await
            .expect("an event in time")
            .expect("a server")
    }
}

/// Calls with a timeout that only a hang reaches.
pub async fn call(
    channel: &Channel,
    path: &str,
    message: impl Into<Chunks>,
) -> Result<Chunks, RpcStatus> {
    channel.call(path, message, CallOptions::timeout(HANG)).await
}

struct Methods {
    tell: mpsc::UnboundedSender<&'static str>,
}

struct TellDrop(mpsc::UnboundedSender<&'static str>);

impl Drop for TellDrop {
    fn drop(&mut self) {
        let _ = self.0.send("dropped");
    }
}

impl RpcService for Methods {
    fn call(&self, request: RpcRequest) -> BoxFuture<Result<Chunks, RpcStatus>> {
        let tell = self.tell.clone();
        Box::pin(async move {
            match request.path() {
                "/t/Echo" => Ok(request.body),
                "/t/Pieces" => Ok(request.body.segments().count().to_string().into_bytes().into()),
                "/t/Segments" => {
                    Ok(vec![Bytes::from_static(b"a"), Bytes::from(vec![b'b'; 5000])].into())
                }
                "/t/Token" => Ok(request
                    .metadata("authorization")
                    .unwrap_or("none")
                    .to_string()
                    .into_bytes()
                    .into()),
                "/t/Deadline" => Ok(format!("{}", request.deadline.is_some()).into_bytes().into()),
                "/t/Elsewhere" => {
                    tokio::task::yield_now().await;
                    Ok(request.body)
                }
                "/t/Park" => {
                    let drop = TellDrop(tell.clone());
                    let _ = tell.send("parked");
                    std::future::pending::<()>().await;
                    std::mem::drop(drop);
                    Ok(Chunks::new())
                }
                "/t/Slow" => {
                    let _ = tell.send("parked");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    Ok(request.body)
                }
                "/t/Restless" => {
                    let _ = tell.send("parked");
                    std::future::poll_fn::<(), _>(|cx| {
                        cx.waker().wake_by_ref();
                        Poll::Pending
                    })
                    .await;
                    Ok(Chunks::new())
                }
                "/t/Panic" => panic!("on purpose {}", 1),
                "/t/Fail" => Err(RpcStatus::new(code::NOT_FOUND, "größe\n\t [[{{node a}}]] 100%")
                    .with_details(Bytes::from_static(b"\x00details"))),
                "/t/FailLong" => Err(RpcStatus::new(code::INTERNAL, "x".repeat(10_000))),
                path => Err(RpcStatus::unknown_method(path)),
            }
        })
    }
}
