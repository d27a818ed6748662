//! Hosts and what each takes.

use ferroflow::{Code, Error, Result};

/// A host and the processes that it takes.
#[derive(Clone, Debug, PartialEq)]
pub struct Host {
    pub name: String,
    pub slots: usize,
}

impl Host {
    pub fn is_here(&self) -> bool {
        let own = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        self.is_loopback() || self.name == own.trim()
    }

    /// Whether its name means another host wherever it is said.
    pub fn is_loopback(&self) -> bool {
        matches!(self.name.as_str(), "localhost" | "127.0.0.1" | "::1")
    }
}

pub fn invalid(text: String) -> Error {
    Error::new(Code::InvalidArgument, text)
}

/// The hosts of the list that was given with `flag`, or this one with as many slots as are needed. An error
/// if they are too few.
pub fn hosts(flag: &str, list: Option<&str>, needed: usize) -> Result<Vec<Host>> {
    let mut hosts = match list {
        Some(list) => parse(list)?,
        None => vec![Host { name: "localhost".into(), slots: needed }],
    };
    let slots = hosts.iter().map(|h| h.slots).fold(0, usize::saturating_add);
    if needed <= slots {
        return Ok(hosts);
    }
    if let Some(last) = hosts.last_mut() {
        last.slots += needed - slots;
    }
    let enough: Vec<String> = hosts.iter().map(|h| format!("{}:{}", h.name, h.slots)).collect();
    let s = if slots == 1 { "" } else { "s" };
    let enough = enough.join(",");
    Err(invalid(format!(
        "{needed} processes for {slots} slot{s}: add slots, such as {flag} {enough}"
    )))
}

/// Which host each of `count` processes is on, and which of its slots it has: host by host.
pub fn places(hosts: &[Host], count: usize) -> Vec<(usize, usize)> {
    let slots = hosts.iter().enumerate();
    let all = slots.flat_map(|(h, host)| (0..host.slots).map(move |local| (h, local)));
    all.take(count).collect()
}

/// Hosts and their slots, as `hosta:2,hostb`.
pub fn parse(list: &str) -> Result<Vec<Host>> {
    let parse = |part: &str| {
        let (name, slots) = part.trim().rsplit_once(':').unwrap_or((part.trim(), "1"));
        let slots = slots.parse().ok().filter(|&s| s > 0);
        match slots {
            Some(slots) if !name.is_empty() && !name.starts_with('-') => {
                Ok(Host { name: name.into(), slots })
            }
            _ => Err(invalid(format!("{part:?} is no host; write hosts as hosta:2,hostb:2"))),
        }
    };
    list.split(',').map(parse).collect()
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
    fn too_many_processes_and_odd_hosts_are_refused() {
        let e = hosts("-H", Some("a:2,b"), 5).unwrap_err();
        assert_eq!(e.message(), "5 processes for 3 slots: add slots, such as -H a:2,b:3");
        for odd in ["a:x", ":2", "a:0", "-oProxyCommand=x:1"] {
            assert!(hosts("-H", Some(odd), 1).is_err(), "{odd}");
        }
    }
}
