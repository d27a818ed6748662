//! The user that owns the other end of a TCP connection within this host.

use ferroflow_core::{Result, bail, err};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink, recv, sendto,
    socket_with,
};
use std::net::{IpAddr, SocketAddr};

/// Whether both ends of a connection are on this host.
pub fn is_same_host(local: SocketAddr, peer: SocketAddr) -> bool {
    let (local, peer) = (local.ip().to_canonical(), peer.ip().to_canonical());
    peer.is_loopback() || peer == local
}

/// The user number of this process.
pub(crate) fn own() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// The user that owns the socket at `peer`, which is connected to `local`. Both are on this host.
pub(crate) fn owner(local: SocketAddr, peer: SocketAddr) -> Result<u32> {
    let found = match ask_kernel(local, peer) {
        Ok(found) => found,
        // The kernel or the sandbox lacks this interface.
        Err(_) => look_in_table(local, peer),
    };
    found.ok_or_else(|| {
        err!(
            PermissionDenied,
            "the kernel does not say which user is at {peer}: it has closed the connection, or \
             this sandbox hides it (--any-local-user admits all users of this host)"
        )
    })
}

const REQUEST: u16 = 1;
const SOCK_DIAG_BY_FAMILY: u16 = 20;
const ERROR: u16 = 2;
const HEADER: usize = 16;
/// Family, protocol, extensions, padding, states, then the addresses of the socket.
const QUESTION: usize = HEADER + 8 + 48;
/// The offsets of the user and of the socket's inode in an answer.
const USER: usize = HEADER + 4 + 48 + 12;
const INODE: usize = USER + 4;

/// Queries `NETLINK_SOCK_DIAG`. `None` if there is no such socket, or if no process holds it.
fn ask_kernel(local: SocketAddr, peer: SocketAddr) -> Result<Option<u32>> {
    let failed = |e: rustix::io::Errno| err!(Unavailable, "NETLINK_SOCK_DIAG: {e}");
    let socket = socket_with(
        AddressFamily::NETLINK,
        SocketType::DGRAM,
        SocketFlags::CLOEXEC,
        Some(netlink::SOCK_DIAG),
    )
    .map_err(failed)?;
    // The query takes the peer's side: its own address is the source.
    let question = question(peer, local);
    let kernel = netlink::SocketAddrNetlink::new(0, 0);
    sendto(&socket, &question, SendFlags::empty(), &kernel).map_err(failed)?;
    let mut answer = [0; 1024];
    // The kernel answers within the call above, so this never blocks.
    let (len, _) = recv(&socket, &mut answer[..], RecvFlags::DONTWAIT).map_err(failed)?;
    parse(&answer[..len.min(1024)])
}

fn question(source: SocketAddr, destination: SocketAddr) -> Vec<u8> {
    let (family, source_ip, destination_ip) = match (source.ip(), destination.ip()) {
        (IpAddr::V4(a), IpAddr::V4(b)) => (2u8, a.octets().to_vec(), b.octets().to_vec()),
        (a, b) => (10, in_six(a), in_six(b)),
    };
    let mut bytes = Vec::with_capacity(QUESTION);
    bytes.extend((QUESTION as u32).to_ne_bytes());
    bytes.extend(SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    bytes.extend(REQUEST.to_ne_bytes());
    bytes.extend([0; 8]);
    const TCP: u8 = 6;
    bytes.extend([family, TCP, 0, 0]);
    bytes.extend(u32::MAX.to_ne_bytes());
    bytes.extend(source.port().to_be_bytes());
    bytes.extend(destination.port().to_be_bytes());
    for mut ip in [source_ip, destination_ip] {
        ip.resize(16, 0);
        bytes.extend(ip);
    }
    // Any interface, and no cookie.
    bytes.extend([0; 4]);
    bytes.extend([0xff; 8]);
    bytes
}

fn in_six(ip: IpAddr) -> Vec<u8> {
    match ip {
        IpAddr::V4(ip) => ip.to_ipv6_mapped().octets().to_vec(),
        IpAddr::V6(ip) => ip.octets().to_vec(),
    }
}

fn parse(answer: &[u8]) -> Result<Option<u32>> {
    let number = |at: usize| {
        let bytes = answer.get(at..at + 4)?.try_into().ok()?;
        Some(u32::from_ne_bytes(bytes))
    };
    let kind = answer.get(4..6).and_then(|b| b.try_into().ok()).map(u16::from_ne_bytes);
    const NO_ENTRY: i32 = -2;
    match kind {
        Some(SOCK_DIAG_BY_FAMILY) => {
            let (user, inode) = (number(USER), number(INODE));
            // A socket that its process has closed has no inode, and counts as root's.
            Ok(user.filter(|_| inode.is_some_and(|inode| inode != 0)))
        }
        Some(ERROR) if number(HEADER).map(|e| e as i32) == Some(NO_ENTRY) => Ok(None),
        _ => bail!(Unavailable, "NETLINK_SOCK_DIAG gave an unknown answer"),
    }
}

/// Looks the socket up in `/proc/net/tcp` and `/proc/net/tcp6`.
fn look_in_table(local: SocketAddr, peer: SocketAddr) -> Option<u32> {
    ["/proc/net/tcp", "/proc/net/tcp6"].iter().find_map(|file| {
        let table = std::fs::read_to_string(file).ok()?;
        find_in_table(&table, local, peer)
    })
}

fn find_in_table(table: &str, local: SocketAddr, peer: SocketAddr) -> Option<u32> {
    table.lines().skip(1).find_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let (user, inode) = (fields.get(7)?, fields.get(9)?);
        let is_it = of_table(fields.get(1)?)? == (peer.ip().to_canonical(), peer.port())
            && of_table(fields.get(2)?)? == (local.ip().to_canonical(), local.port());
        if is_it && *inode != "0" { user.parse().ok() } else { None }
    })
}

/// An address of the table: words of 32 bits in the byte order of this machine, then the port.
fn of_table(text: &str) -> Option<(IpAddr, u16)> {
    let (ip, port) = text.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let mut bytes = Vec::new();
    for at in (0..ip.len()).step_by(8) {
        bytes.extend(u32::from_str_radix(ip.get(at..at + 8)?, 16).ok()?.to_ne_bytes());
    }
    let ip = match bytes.len() {
        4 => IpAddr::from(<[u8; 4]>::try_from(bytes).ok()?),
        16 => IpAddr::from(<[u8; 16]>::try_from(bytes).ok()?),
        _ => return None,
    };
    Some((ip.to_canonical(), port))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn the_owner_of_a_connection_is_found_both_ways() {
        for at in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(listener) = TcpListener::bind(at) else { continue };
            let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let (server, peer) = listener.accept().unwrap();
            let local = server.local_addr().unwrap();
            assert_eq!(ask_kernel(local, peer).unwrap(), Some(own()), "{at}");
            assert_eq!(look_in_table(local, peer), Some(own()), "{at}");
            drop(client);
            // The socket still exists in the kernel, without a process. It belongs to no user.
            assert!(owner(local, peer).is_err(), "{at}");
        }
    }

    #[test]
    fn malformed_answers_of_the_kernel_are_errors() {
        for answer in [&[][..], &[0; 15], &[0; 40], &[0xff; 100]] {
            assert!(parse(answer).is_err());
        }
        let mut cut = vec![0; 30];
        cut[4..6].copy_from_slice(&SOCK_DIAG_BY_FAMILY.to_ne_bytes());
        assert_eq!(parse(&cut).unwrap(), None);
    }
}
