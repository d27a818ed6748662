//! The addresses of this host that other hosts may reach.

use super::store_error;
use ferroflow_core::{Result, bail};
use ferroflow_identity::IpRange;
use std::net::{IpAddr, SocketAddr};

/// Restricts the addresses to those of some interfaces or networks.
const VARIABLE: &str = "FERROFLOW_INTERFACE";

/// An address of this host, and its interface.
#[derive(Clone, Debug, PartialEq)]
struct OwnAddress {
    interface: String,
    ip: IpAddr,
}

fn all() -> Result<Vec<OwnAddress>> {
    let found = if_addrs::get_if_addrs().map_err(|e| store_error("cannot list interfaces", e))?;
    Ok(found.into_iter().map(|i| OwnAddress { ip: i.ip(), interface: i.name }).collect())
}

/// The addresses that other hosts may reach, in the order of the system.
pub(super) fn candidates() -> Result<Vec<IpAddr>> {
    let asked = std::env::var(VARIABLE).unwrap_or_default();
    let chosen = choose(all()?, &asked)?;
    Ok(chosen.into_iter().map(|own| own.ip).collect())
}

/// Leaves out addresses that mean another host elsewhere, and those that were not requested.
fn choose(all: Vec<OwnAddress>, asked: &str) -> Result<Vec<OwnAddress>> {
    let is_local = |ip: &IpAddr| match ip {
        IpAddr::V4(ip) => ip.is_loopback() || ip.is_link_local(),
        IpAddr::V6(ip) => ip.is_loopback() || ip.is_unicast_link_local(),
    };
    let words: Vec<&str> = asked.split(',').map(str::trim).filter(|w| !w.is_empty()).collect();
    let is_asked = |own: &OwnAddress| {
        let fits = |word: &&str| {
            own.interface == *word || word.parse().is_ok_and(|r: IpRange| r.contains(own.ip))
        };
        words.is_empty() || words.iter().any(fits)
    };
    let names: Vec<String> =
        all.iter().map(|own| format!("{} ({})", own.interface, own.ip)).collect();
    let chosen: Vec<OwnAddress> =
        all.into_iter().filter(|own| !is_local(&own.ip) && is_asked(own)).collect();
    if chosen.is_empty() && !words.is_empty() {
        bail!(
            FailedPrecondition,
            "{VARIABLE}={asked} names no interface of this host that others reach; it has {}",
            names.join(", ")
        );
    }
    Ok(chosen)
}

/// Says which of the addresses of rank 0 the other hosts use.
pub(super) fn describe(addresses: &[String], used: &[IpAddr]) -> String {
    let own = all().unwrap_or_default();
    let named = |ip: &IpAddr| match own.iter().find(|own| own.ip == *ip) {
        Some(own) => format!("{ip} ({})", own.interface),
        None => ip.to_string(),
    };
    let offered = addresses.iter().filter_map(|text| Some(text.parse::<SocketAddr>().ok()?.ip()));
    let others: Vec<String> =
        offered.filter(|ip| !used.contains(ip)).map(|ip| named(&ip)).collect();
    let used: Vec<String> = used.iter().map(named).collect();
    let unused = match others.is_empty() {
        true => String::new(),
        false => format!("; not used: {}", others.join(", ")),
    };
    format!(
        "the ranks reach rank 0 at {}{unused} ({VARIABLE}=NAME chooses another)",
        used.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own(interface: &str, ip: &str) -> OwnAddress {
        OwnAddress { interface: interface.into(), ip: ip.parse().unwrap() }
    }

    #[test]
    fn local_addresses_are_left_out_and_the_asked_ones_are_chosen() {
        let all = vec![
            own("lo", "127.0.0.1"),
            own("eth0", "10.0.0.1"),
            own("eth0", "fe80::1"),
            own("ib0", "192.168.7.1"),
            own("eth1", "169.254.3.4"),
        ];
        let chosen = |asked: &str| -> Vec<String> {
            let chosen = choose(all.clone(), asked).unwrap();
            chosen.into_iter().map(|own| own.ip.to_string()).collect()
        };
        assert_eq!(chosen(""), ["10.0.0.1", "192.168.7.1"]);
        assert_eq!(chosen("ib0"), ["192.168.7.1"]);
        assert_eq!(chosen("10.0.0.0/8, ib0"), ["10.0.0.1", "192.168.7.1"]);
        let e = choose(all.clone(), "ib9").unwrap_err();
        let says = |part: &str| e.message().contains(part);
        assert!(says("FERROFLOW_INTERFACE=ib9") && says("ib0 (192.168.7.1)"), "{e}");
    }

    #[test]
    fn the_unused_addresses_of_rank_0_are_named() {
        let text = describe(
            &["192.0.2.1:7".into(), "198.51.100.1:7".into()],
            &["192.0.2.1".parse().unwrap()],
        );
        assert!(text.contains("at 192.0.2.1; not used: 198.51.100.1"), "{text}");
    }
}
