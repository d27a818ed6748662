//! A proxy that can stop forwarding without closing connections, like a task that hangs or is cut
//! off.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

pub struct Proxy {
    listener: TcpListener,
    frozen: watch::Sender<bool>,
}

impl Proxy {
    pub async fn bind() -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        Proxy { listener, frozen: watch::Sender::new(false) }
    }

    pub fn address(&self) -> String {
        self.listener.local_addr().unwrap().to_string()
    }

    /// Starts forwarding to `address`. The returned handle can freeze it.
    pub fn forward_to(self, address: String) -> watch::Sender<bool> {
        let Proxy { listener, frozen } = self;
        let gate = frozen.subscribe();
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let Ok(server) = TcpStream::connect(&address).await else { continue };
                let (client, server) = (client.into_split(), server.into_split());
                tokio::spawn(copy(client.0, server.1, gate.clone()));
                tokio::spawn(copy(server.0, client.1, gate.clone()));
            }
        });
        frozen
    }
}

async fn copy(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, mut gate: watch::Receiver<bool>) {
    let mut buffer = vec![0; 1 << 16];
    loop {
        let Ok(n @ 1..) = from.read(&mut buffer).await else { return };
        if gate.wait_for(|frozen| !frozen).await.is_err()
            || to.write_all(&buffer[..n]).await.is_err()
        {
            return;
        }
    }
}
