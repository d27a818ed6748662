//! Connections that never leave this host.

#[cfg(target_os = "linux")]
use rustix::net::sockopt;
use std::net::SocketAddr;

/// Bytes that wait in a connection at most, on either end. A system that sees them taken slowly lets them become many
/// megabytes, as a network far away would need; here they only leave the caches before they are read, and the memory
/// that the next ones are copied to has left them too.
const WAITING: usize = 512 << 10;

/// Turns off what the kernel does for a network, between two ends on one host. A system whose connections pace what
/// they send (BBR does, by a timer for each packet) moves a fifth less here for it, and one whose connections hold much
/// up to half less. Where the kernel does not let us, it stays as it is.
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
    fn bytes_within_a_host_are_not_paced() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let control = || rustix::net::sockopt::tcp_congestion(&stream).unwrap();
        let elsewhere = Ok("192.0.2.1:80".parse().unwrap());
        let before = control();
        tune(&stream, stream.local_addr(), elsewhere);
        assert_eq!(control(), before, "the network may need it");
        tune(&stream, stream.local_addr(), stream.peer_addr());
        // A kernel without cubic keeps what it has.
        assert!(control() == "cubic" || control() == before);
    }

    #[test]
    fn a_host_may_be_known_by_another_of_its_addresses() {
        let is_one = |a: &str, b: &str| is_one_host(a.parse().unwrap(), b.parse().unwrap());
        assert!(is_one("127.0.0.1:1", "127.0.0.1:2"));
        assert!(is_one("192.0.2.1:1", "192.0.2.1:2"));
        assert!(is_one("[::1]:1", "[::1]:2"));
        assert!(!is_one("192.0.2.1:1", "192.0.2.2:1"));
    }
}
