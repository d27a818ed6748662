//! Finds the address by which all processes of a job reach a host.

use super::hosts::{Host, invalid};
use ferroflow::Result;
use std::net::{IpAddr, ToSocketAddrs, UdpSocket};

/// An address of `host` that is valid on all hosts of the job. In a job of several hosts it is
/// never a loopback name.
pub fn address_of(host: &Host, job: &[&Host]) -> Result<String> {
    if job.iter().all(|h| h.is_here()) {
        return Ok("127.0.0.1".into());
    }
    if !host.is_loopback() && !is_found_here(host) {
        return Ok(host.name.clone());
    }
    if !job.iter().any(|h| is_elsewhere(h)) {
        return Ok("127.0.0.1".into());
    }
    match own_address(job.iter().copied()) {
        Some(address) => Ok(address.to_string()),
        // Other hosts may resolve this name to a reachable address.
        None if !host.is_loopback() && host.is_here() => Ok(host.name.clone()),
        None => Err(invalid(format!(
            "{:?} means another host on each of them; name this host by an address that the others can reach",
            host.name
        ))),
    }
}

/// This host's address on the route to the first remote host of `hosts`.
pub fn own_address<'a>(hosts: impl IntoIterator<Item = &'a Host>) -> Option<IpAddr> {
    hosts.into_iter().filter(|h| is_elsewhere(h)).find_map(seen_from)
}

fn is_elsewhere(host: &Host) -> bool {
    !host.is_here() && !is_found_here(host)
}

/// Whether its name resolves to loopback here.
fn is_found_here(host: &Host) -> bool {
    let found = (host.name.as_str(), 0).to_socket_addrs();
    found.is_ok_and(|mut all| all.next().is_some_and(|first| first.ip().is_loopback()))
}

/// This host's source address on the route to another host. Sends nothing.
fn seen_from(host: &Host) -> Option<IpAddr> {
    let to = (host.name.as_str(), 9).to_socket_addrs().ok()?;
    let own = |to: std::net::SocketAddr| {
        let any = if to.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
        let socket = UdpSocket::bind(any).ok()?;
        socket.connect(to).ok()?;
        socket.local_addr().ok().map(|own| own.ip())
    };
    to.into_iter().filter_map(own).find(|own| !own.is_loopback() && !own.is_unspecified())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(host: &Host, others: &[&Host]) -> Result<String> {
        address_of(host, &[&[host], others].concat())
    }

    #[test]
    fn other_hosts_are_never_sent_to_themselves() {
        let (here, other) = (Host::new("localhost", 1), Host::new("192.0.2.7", 1));
        assert_eq!(address(&here, &[&Host::new("127.0.0.2", 1)]).unwrap(), "127.0.0.1");
        assert_eq!(address(&other, &[&here]).unwrap(), "192.0.2.7");
        // A route to that network exists on some machines only.
        match address(&here, &[&other]) {
            Ok(own) => assert!(!own.parse::<IpAddr>().unwrap().is_loopback(), "{own}"),
            Err(e) => assert!(e.message().contains("name this host by an address"), "{e}"),
        }
        let e = address(&here, &[&Host::new("no-such-host.invalid", 1)]).unwrap_err();
        assert!(e.message().contains("\"localhost\" means another host"), "{e}");
    }
}
