//! Ranges of addresses, such as `10.0.0.0/8`.

use ferroflow_core::{Error, Result, err};
use std::net::IpAddr;
use std::str::FromStr;

/// A network in CIDR notation, or a single address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IpRange {
    network: IpAddr,
    prefix: u32,
}

impl IpRange {
    /// Whether an address is in the range. An IPv4 address in IPv6 notation counts as IPv4.
    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.network, address.to_canonical()) {
            (IpAddr::V4(network), IpAddr::V4(address)) => {
                let mask = u32::MAX.checked_shl(32 - self.prefix).unwrap_or(0);
                u32::from(network) & mask == u32::from(address) & mask
            }
            (IpAddr::V6(network), IpAddr::V6(address)) => {
                let mask = u128::MAX.checked_shl(128 - self.prefix).unwrap_or(0);
                u128::from(network) & mask == u128::from(address) & mask
            }
            _ => false,
        }
    }
}

impl From<IpAddr> for IpRange {
    fn from(address: IpAddr) -> IpRange {
        let network = address.to_canonical();
        IpRange { network, prefix: if network.is_ipv4() { 32 } else { 128 } }
    }
}

impl FromStr for IpRange {
    type Err = Error;

    fn from_str(text: &str) -> Result<IpRange> {
        let wrong = || {
            err!(InvalidArgument, "invalid address range {text:?}: expected one like 10.0.0.0/8")
        };
        let (address, prefix) = match text.split_once('/') {
            Some((address, prefix)) => (address, Some(prefix.parse().map_err(|_| wrong())?)),
            None => (text, None),
        };
        let whole = IpRange::from(address.parse::<IpAddr>().map_err(|_| wrong())?);
        match prefix {
            Some(prefix) if prefix > whole.prefix => Err(wrong()),
            Some(prefix) => Ok(IpRange { prefix, ..whole }),
            None => Ok(whole),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_contains_its_addresses_alone() {
        let is_in = |range: &str, address: &str| {
            range.parse::<IpRange>().unwrap().contains(address.parse().unwrap())
        };
        assert!(is_in("10.0.0.0/8", "10.255.0.1") && !is_in("10.0.0.0/8", "11.0.0.1"));
        assert!(is_in("10.0.0.7", "10.0.0.7") && !is_in("10.0.0.7", "10.0.0.6"));
        assert!(is_in("0.0.0.0/0", "8.8.8.8") && !is_in("0.0.0.0/0", "::1"));
        assert!(is_in("fd00::/8", "fd12::1") && !is_in("fd00::/8", "fe80::1"));
        assert!(is_in("10.0.0.0/8", "::ffff:10.1.1.1"), "IPv4 in IPv6 notation");
        for wrong in ["", "10", "10.0.0.0/33", "10.0.0.0/x", "fd00::/129", "host"] {
            assert!(wrong.parse::<IpRange>().is_err(), "{wrong}");
        }
    }
}
