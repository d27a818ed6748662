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

/// The hosts of a list, or this one with as many slots as are needed. An error if they are too few.
pub fn hosts(list: Option<&str>, needed: usize) -> Result<Vec<Host>> {
    let hosts = match list {
        Some(list) => parse(list)?,
        None => vec![Host { name: "localhost".into(), slots: needed }],
    };
    let slots: usize = hosts.iter().map(|h| h.slots).sum();
    if needed == 0 || needed > slots {
        return Err(invalid(format!("{needed} processes for {slots} slots")));
    }
    Ok(hosts)
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
        let all = hosts(Some("a:2,b,c:2"), 4).unwrap();
        assert_eq!(places(&all, 4), [(0, 0), (0, 1), (1, 0), (2, 0)]);
    }

    #[test]
    fn too_many_processes_and_odd_hosts_are_refused() {
        assert!(hosts(Some("a:2,b:2"), 5).is_err());
        assert!(hosts(None, 0).is_err());
        for odd in ["a:x", ":2", "a:0", "-oProxyCommand=x:1"] {
            assert!(hosts(Some(odd), 1).is_err(), "{odd}");
        }
    }
}
