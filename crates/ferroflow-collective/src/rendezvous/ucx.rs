//! How the ranks agree on UCX. Each rank says how it is reached over UCX, or why it is not. UCX is
//! used if all ranks are reached.

use super::{Hello, Membership, TransportChoice};
use crate::environment::print_note;
use crate::failure::GroupFailure;
use crate::mesh::Mesh;
use ferroflow_core::{Result, err};
use std::sync::Arc;

/// How a rank is reached over UCX.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum UcxAddress {
    /// The rank does not want UCX.
    #[default]
    Unwanted,
    /// The rank has no UCX, for this reason.
    Missing(String),
    /// The address of its worker.
    Worker(Vec<u8>),
}

impl UcxAddress {
    pub fn to_text(&self) -> String {
        match self {
            UcxAddress::Unwanted => String::new(),
            UcxAddress::Missing(why) => format!("-{why}"),
            UcxAddress::Worker(bytes) => {
                bytes.iter().fold("+".to_string(), |text, byte| text + &format!("{byte:02x}"))
            }
        }
    }

    pub fn from_text(text: &str) -> Result<UcxAddress> {
        let Some((kind, rest)) = text.split_at_checked(1) else { return Ok(UcxAddress::Unwanted) };
        let unknown = || err!(DataLoss, "a rank sent an address of UCX that is none");
        match kind {
            "-" => Ok(UcxAddress::Missing(rest.into())),
            "+" => {
                let pair = |pair: &[u8]| {
                    let text = std::str::from_utf8(pair).ok()?;
                    u8::from_str_radix(text, 16).ok().filter(|_| text.len() == 2)
                };
                let bytes: Option<Vec<u8>> = rest.as_bytes().chunks(2).map(pair).collect();
                bytes.map(UcxAddress::Worker).ok_or_else(unknown)
            }
            _ => Err(unknown()),
        }
    }
}

/// What this rank has prepared.
#[derive(Default)]
pub(super) struct UcxPlan {
    #[cfg(target_os = "linux")]
    offer: Option<Result<crate::mesh::ucx::UcxOffer>>,
}

impl UcxPlan {
    /// Prepares UCX if it was requested, or if the host has a device for it and the values may
    /// travel without encryption.
    #[cfg(target_os = "linux")]
    pub fn of(member: &Membership) -> UcxPlan {
        use crate::mesh::ucx::{UcxOffer, has_device};
        let wanted = match member.transport {
            TransportChoice::Ucx => true,
            TransportChoice::Auto => has_device() && member.trust.credentials.is_none(),
            TransportChoice::Tcp | TransportChoice::Shared => false,
        };
        let offer = (wanted && member.size > 1).then(UcxOffer::open);
        UcxPlan { offer }
    }

    #[cfg(not(target_os = "linux"))]
    pub fn of(_: &Membership) -> UcxPlan {
        UcxPlan::default()
    }

    pub fn address(&mut self) -> UcxAddress {
        #[cfg(target_os = "linux")]
        if let Some(offer) = &mut self.offer {
            return match offer {
                Ok(offer) => UcxAddress::Worker(offer.address.clone()),
                Err(e) => UcxAddress::Missing(e.message().chars().take(1000).collect()),
            };
        }
        UcxAddress::Unwanted
    }

    /// Whether UCX carries the values of all ranks. Rank 0 decides.
    pub fn is_used(&self, member: &Membership, table: &[Hello], one_host: bool) -> bool {
        let asked = member.transport == TransportChoice::Ucx;
        if table.len() == 1 || (!asked && (one_host || table[0].ucx == UcxAddress::Unwanted)) {
            return false;
        }
        let without = table.iter().find(|h| !matches!(h.ucx, UcxAddress::Worker(_)));
        let Some(without) = without else {
            if asked && member.trust.credentials.is_some() {
                print_note("UCX carries the values of the ranks without encryption");
            }
            return true;
        };
        if asked {
            let why = match &without.ucx {
                UcxAddress::Missing(why) => why,
                _ => "it was not asked to use it",
            };
            let rank = without.rank;
            print_note(&format!("rank {rank} has no UCX, so the ranks use TCP: {why}"));
        }
        false
    }

    /// The plan, or none if UCX is not used.
    pub fn filter(self, is_used: bool) -> UcxPlan {
        if is_used { self } else { UcxPlan::default() }
    }

    /// The links over UCX, if they are used.
    #[cfg(target_os = "linux")]
    pub fn mesh(
        self,
        rank: usize,
        table: &[Hello],
        failure: &Arc<GroupFailure>,
        crowded: bool,
    ) -> Result<Option<Box<dyn Mesh>>> {
        let Some(offer) = self.offer else { return Ok(None) };
        let address = |hello: &Hello| match &hello.ucx {
            UcxAddress::Worker(bytes) => Ok(bytes.clone()),
            _ => Err(err!(DataLoss, "rank 0 sent no address of rank {} for UCX", hello.rank)),
        };
        let addresses = table.iter().map(address).collect::<Result<_>>()?;
        let spin = crate::mesh::spin(crowded);
        let mesh = crate::mesh::ucx::Ucx::new(offer?, rank, addresses, failure.clone(), spin)?;
        Ok(Some(Box::new(mesh)))
    }

    #[cfg(not(target_os = "linux"))]
    pub fn mesh(
        self,
        _: usize,
        _: &[Hello],
        _: &Arc<GroupFailure>,
        _: bool,
    ) -> Result<Option<Box<dyn Mesh>>> {
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_of_ucx_is_read_as_written() {
        for address in [
            UcxAddress::Unwanted,
            UcxAddress::Missing("no library".into()),
            UcxAddress::Worker(vec![0, 9, 255]),
        ] {
            assert_eq!(UcxAddress::from_text(&address.to_text()).unwrap(), address);
        }
        for wrong in ["x", "+0", "+0g", "+é"] {
            assert!(UcxAddress::from_text(wrong).is_err(), "{wrong}");
        }
    }
}
