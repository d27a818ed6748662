//! Tuning of TCP connections within a host.

#[cfg(target_os = "linux")]
use rustix::net::sockopt;
use std::net::SocketAddr;

/// Most bytes in the buffers of a connection, at either end. With a slow reader, the kernel grows
/// the buffers to many megabytes, as a distant network needs. Within a host this only moves the
/// bytes out of the caches before they are read.
const WAITING: usize = 512 << 10;

/// Turns off network features of the kernel for a connection within one host. Paced connections (as
/// with BBR, which uses a timer for each packet) are a fifth slower here, and large buffers are up
/// to half slower. Does nothing if the kernel refuses.
#[cfg(target_os = "linux")]
pub fn tune<S: std::os::fd::AsFd>(
    stream: &S,
    local: std::io::Result<SocketAddr>,
    peer: std::io::Result<SocketAddr>,
) {
    if let (Ok(local), Ok(peer)) = (local, peer)
        && is_one_host(local, peer)
    {
        let _ = sockopt::set_tcp_congestion(stream, "cubic");
        let _ = sockopt::set_socket_send_buffer_size(stream, WAITING);
        let _ = sockopt::set_socket_recv_buffer_size(stream, WAITING);
    }
}

/// Does nothing on this platform.
#[cfg(not(target_os = "linux"))]
pub fn tune<S>(
    _stream: &S,
    _local: std::io::Result<SocketAddr>,
    _peer: std::io::Result<SocketAddr>,
) {
}

#[cfg(target_os = "linux")]
fn is_one_host(local: SocketAddr, peer: SocketAddr) -> bool {
    peer.ip().is_loopback() || peer.ip() == local.ip()
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn tuned_connections_use_cubic_and_small_buffers() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let control = || rustix::net::sockopt::tcp_congestion(&stream).unwrap();
        let elsewhere = Ok("192.0.2.1:80".parse().unwrap());
        let before = control();
        tune(&stream, stream.local_addr(), elsewhere);
        assert_eq!(control(), before, "the network may need it");
        tune(&stream, stream.local_addr(), stream.peer_addr());
        // A kernel without cubic keeps its default.
        assert!(control() == "cubic" || control() == before);
    }

    #[test]
    fn two_ends_with_the_same_address_are_on_one_host() {
        let is_one = |a: &str, b: &str| is_one_host(a.parse().unwrap(), b.parse().unwrap());
        assert!(is_one("127.0.0.1:1", "127.0.0.1:2"));
        assert!(is_one("192.0.2.1:1", "192.0.2.1:2"));
        assert!(is_one("[::1]:1", "[::1]:2"));
        assert!(!is_one("192.0.2.1:1", "192.0.2.2:1"));
    }
}
