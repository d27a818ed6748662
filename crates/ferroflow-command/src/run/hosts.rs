//! Hosts and their slots.

use ferroflow::{Code, Error, Result};
use std::net::{IpAddr, Ipv6Addr};

/// A host and its number of process slots.
#[derive(Clone, Debug, PartialEq)]
pub struct Host {
    /// A name, or an address without brackets.
    pub name: String,
    /// The remote user, if it differs from the local one.
    pub user: Option<String>,
    pub slots: usize,
}

impl Host {
    pub fn new(name: &str, slots: usize) -> Host {
        Host { name: name.into(), user: None, slots }
    }

    pub fn is_here(&self) -> bool {
        self.is_loopback() || self.name == own_name()
    }

    /// Whether its name is a loopback name, which means another host on each host.
    pub fn is_loopback(&self) -> bool {
        let address = self.name.parse::<IpAddr>();
        self.name == "localhost" || address.is_ok_and(|address| address.is_loopback())
    }

    /// The login for the remote shell; `None` if its processes start locally.
    pub fn login(&self) -> Option<String> {
        match &self.user {
            Some(user) => Some(format!("{user}@{}", self.name)),
            None if self.is_here() => None,
            None => Some(self.name.clone()),
        }
    }
}

/// The form in a list of hosts: `user@host:2`, `[::1]:2`.
impl std::fmt::Display for Host {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let user = self.user.as_ref().map(|user| format!("{user}@")).unwrap_or_default();
        write!(f, "{user}{}:{}", in_address(&self.name), self.slots)
    }
}

/// The name of this host.
pub fn own_name() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    name.trim().to_string()
}

/// A host formatted for use before a port.
pub fn in_address(host: &str) -> String {
    if host.contains(':') { format!("[{host}]") } else { host.to_string() }
}

pub fn invalid(text: String) -> Error {
    Error::new(Code::InvalidArgument, text)
}

/// The hosts of the list given with `flag`, or this host with as many slots as needed. Fails if
/// there are too few slots.
pub fn hosts(flag: &str, list: Option<&str>, needed: usize) -> Result<Vec<Host>> {
    let mut hosts = match list {
        Some(list) => parse(list)?,
        None => vec![Host::new("localhost", needed)],
    };
    let slots = slots(&hosts);
    if needed <= slots {
        return Ok(hosts);
    }
    if let Some(last) = hosts.last_mut() {
        last.slots += needed - slots;
    }
    let enough: Vec<String> = hosts.iter().map(Host::to_string).collect();
    let s = if slots == 1 { "" } else { "s" };
    let enough = enough.join(",");
    Err(invalid(format!(
        "{needed} processes for {slots} slot{s}: add slots, such as {flag} {enough}"
    )))
}

pub fn slots(hosts: &[Host]) -> usize {
    hosts.iter().map(|h| h.slots).fold(0, usize::saturating_add)
}

/// Host index and slot of each of `count` processes, filled host by host.
pub fn places(hosts: &[Host], count: usize) -> Vec<(usize, usize)> {
    let slots = hosts.iter().enumerate();
    let all = slots.flat_map(|(h, host)| (0..host.slots).map(move |local| (h, local)));
    all.take(count).collect()
}

/// Parses `hosta:2,user@hostb,[::1]:2`. Repeated hosts add up their slots.
pub fn parse(list: &str) -> Result<Vec<Host>> {
    let mut hosts: Vec<Host> = Vec::new();
    for part in list.split(',') {
        let host = parse_one(part.trim())?;
        match hosts.iter_mut().find(|known| known.login() == host.login()) {
            Some(known) => known.slots = known.slots.saturating_add(host.slots),
            None => hosts.push(host),
        }
    }
    Ok(hosts)
}

fn parse_one(part: &str) -> Result<Host> {
    let odd = || invalid(format!("{part:?} is not a host: write hosts as hosta:2,hostb:2"));
    let (user, place) = match part.rsplit_once('@') {
        Some((user, place)) => (Some(user), place),
        None => (None, part),
    };
    if place.parse::<Ipv6Addr>().is_ok() {
        let text = format!("{place}: which part is the host? Write it as [{place}]:SLOTS");
        return Err(invalid(text));
    }
    let (name, slots) = match place.strip_prefix('[').map(|rest| rest.split_once(']')) {
        Some(Some((name, slots))) => {
            (name, slots.strip_prefix(':').or(slots.is_empty().then_some("1")))
        }
        Some(None) => return Err(odd()),
        None => {
            place.rsplit_once(':').map_or((place, Some("1")), |(name, slots)| (name, Some(slots)))
        }
    };
    let slots = slots.and_then(|s| s.parse().ok()).filter(|&s| s > 0).ok_or_else(odd)?;
    // The remote shell would parse such a name as an option.
    let is_word = |word: &str| !word.is_empty() && !word.starts_with('-');
    if !is_word(name) || !user.is_none_or(is_word) {
        return Err(odd());
    }
    Ok(Host { name: name.into(), user: user.map(Into::into), slots })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_filled_host_by_host() {
        let all = hosts("-H", Some("a:2,b,c:2"), 4).unwrap();
        assert_eq!(places(&all, 4), [(0, 0), (0, 1), (1, 0), (2, 0)]);
    }

    #[test]
    fn a_host_that_comes_again_has_more_slots() {
        assert_eq!(parse("a:2,b,a").unwrap(), [Host::new("a", 3), Host::new("b", 1)]);
        let here = parse("localhost:1,127.0.0.1:2,[::1]").unwrap();
        assert_eq!(here, [Host::new("localhost", 4)], "names of this host");
        assert_eq!(parse("me@a,a").unwrap().len(), 2, "different people");
    }

    #[test]
    fn a_user_is_for_the_remote_shell_alone() {
        let all = parse("me@a:2,me@localhost").unwrap();
        assert_eq!((all[0].name.as_str(), all[0].slots), ("a", 2));
        assert_eq!(all[0].login().as_deref(), Some("me@a"));
        // Another user on this host also needs the remote shell.
        assert!(all[1].is_here());
        assert_eq!(all[1].login().as_deref(), Some("me@localhost"));
        assert_eq!(parse("localhost").unwrap()[0].login(), None);
    }

    #[test]
    fn addresses_with_colons_have_brackets() {
        let all = parse("[::1]:2,me@[fd00::2]").unwrap();
        assert!(all[0].is_here() && all[0].slots == 2);
        assert_eq!((all[1].login().as_deref(), all[1].slots), (Some("me@fd00::2"), 1));
        assert_eq!(all[1].to_string(), "me@[fd00::2]:1");
        for bare in ["::1", "fd00::2:3"] {
            let e = parse(bare).unwrap_err();
            assert!(e.message().contains(&format!("[{bare}]:SLOTS")), "{e}");
        }
    }

    #[test]
    fn too_many_processes_and_odd_hosts_are_refused() {
        let e = hosts("-H", Some("a:2,b"), 5).unwrap_err();
        assert_eq!(e.message(), "5 processes for 3 slots: add slots, such as -H a:2,b:3");
        for odd in [
            "a:x",
            ":2",
            "a:0",
            "-oProxyCommand=x:1",
            "-oX@a:1",
            "@a",
            "a@",
            "[::1",
            "[::1]2",
            "[]:1",
        ] {
            assert!(hosts("-H", Some(odd), 1).is_err(), "{odd}");
        }
    }
}
