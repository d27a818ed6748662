//! Ranks of several hosts find each other through the key-value store of their launcher: PMIx (Open
//! MPI, Slurm) or PMI (MPICH, Intel MPI, Slurm).
//!
//! Rank 0 listens on a free port and publishes its addresses, the job token and the credentials
//! that all ranks share. The other ranks read them, try all addresses at the same time, and use the
//! first at which rank 0 proves the token.

mod interfaces;
mod pmi;
mod pmix;

use crate::rendezvous::{Deadline, MEMBER_ROLE, Membership, bind};
use ferroflow_core::{Error, Result, ensure, err};
use ferroflow_identity::{Credentials, JobAuthority, JobToken};
use parking_lot::Mutex;
use std::net::TcpListener;
use std::sync::Arc;

/// How long the certificates of a job are valid. New connections fail afterwards.
const DAYS: u32 = 365;

/// Where the launcher keeps values for its processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LauncherStore {
    /// PMIx, through the library `libpmix.so.2`.
    Pmix,
    /// PMI-1, through the connection that the launcher has opened.
    Pmi,
}

impl LauncherStore {
    /// The store that the environment of this process describes.
    pub(crate) fn find(env: &dyn Fn(&str) -> Option<String>) -> Option<LauncherStore> {
        if env("PMIX_NAMESPACE").is_some() && env("PMIX_RANK").is_some() {
            return Some(LauncherStore::Pmix);
        }
        env("PMI_FD").map(|_| LauncherStore::Pmi)
    }
}

/// What the ranks of a job have learned from each other.
#[derive(Clone)]
pub(crate) struct Meeting {
    /// The addresses of rank 0, as `IP:PORT`.
    pub addresses: Vec<String>,
    /// On rank 0: the listener behind these addresses.
    listener: Option<Arc<TcpListener>>,
    token: String,
    credentials: Option<Credentials>,
}

/// A process has one place in its launcher's store, so it exchanges once. Groups that it forms
/// later meet at the same listener.
static MET: Mutex<Option<Meeting>> = Mutex::new(None);

/// Exchanges addresses and secrets with the other ranks, or returns what was exchanged before.
pub(crate) fn meet(
    member: &Membership,
    store: LauncherStore,
    until: &Deadline,
) -> Result<(Membership, Meeting)> {
    let known = MET.lock().clone();
    let meeting = match known {
        Some(meeting) => meeting,
        None => {
            let meeting = exchange(member, store, until)?;
            MET.lock().get_or_insert(meeting).clone()
        }
    };
    let mut member = member.clone();
    member.addresses = vec![meeting.addresses.join(" or ")];
    if member.token.is_empty() {
        member.token = meeting.token.clone();
    }
    if let Some(credentials) = &meeting.credentials {
        member.trust.credentials = Some(credentials.clone());
        member.common_role = Some(MEMBER_ROLE);
    }
    Ok((member, meeting))
}

impl Meeting {
    /// The listener of rank 0.
    pub(crate) fn listener(&self) -> Result<Option<TcpListener>> {
        let cloned = self.listener.as_ref().map(|listener| listener.try_clone()).transpose();
        cloned.map_err(|e| crate::io_error("cannot use the listener of rank 0", &e))
    }

    /// Names the addresses of rank 0 that other hosts used, if it has several.
    pub(crate) fn describe(&self, used: &[std::net::IpAddr]) -> Option<String> {
        (self.addresses.len() > 1 && !used.is_empty())
            .then(|| interfaces::describe(&self.addresses, used))
    }
}

fn exchange(member: &Membership, store: LauncherStore, until: &Deadline) -> Result<Meeting> {
    let (published, listener) = match member.rank {
        0 => {
            let (text, listener) = publish(member)?;
            (Some(text), Some(Arc::new(listener)))
        }
        _ => (None, None),
    };
    let text = match store {
        LauncherStore::Pmi => pmi::exchange(published.as_deref(), until),
        LauncherStore::Pmix => pmix::exchange(published.clone(), until),
    };
    let text = text.map_err(|e| {
        e.context("cannot exchange addresses through the launcher (or set FERROFLOW_ADDRESS)")
    })?;
    let mut meeting = read(&text)?;
    if member.trust.credentials.is_some() || member.trust.is_insecure {
        // This rank was given what to trust.
        meeting.credentials = None;
    }
    Ok(Meeting { listener, ..meeting })
}

/// Listens for the other ranks. Returns what they have to know.
fn publish(member: &Membership) -> Result<(String, TcpListener)> {
    let mut trust = member.trust.clone();
    let token = match member.token.as_str() {
        "" => JobToken::random()?.reveal().to_string(),
        given => given.to_string(),
    };
    let mut credentials = String::new();
    if trust.credentials.is_none() && !trust.is_insecure {
        // One certificate for all: the launcher's store is open to all processes of the job.
        credentials = JobAuthority::new()?.inline(&[MEMBER_ROLE.to_string()], &[], DAYS)?;
        trust.credentials = Some(Credentials::parse(&credentials)?);
    }
    let own = interfaces::candidates()?;
    ensure!(
        !own.is_empty(),
        FailedPrecondition,
        "this host has no network interface with an address that other hosts could reach"
    );
    let any = if own.iter().any(std::net::IpAddr::is_ipv4) { "0.0.0.0:0" } else { "[::]:0" };
    let listener = bind(any, &trust)?;
    let at = listener.local_addr();
    let port = at.map_err(|e| crate::io_error("cannot get the port of rank 0", &e))?.port();
    let own = own.into_iter().filter(|ip| ip.is_ipv4() == any.starts_with('0'));
    let addresses: Vec<String> =
        own.map(|ip| std::net::SocketAddr::new(ip, port).to_string()).collect();
    Ok((write(&addresses, &token, &credentials), listener))
}

/// One line that is safe in every store: hexadecimal.
fn write(addresses: &[String], token: &str, credentials: &str) -> String {
    let text = [&addresses.join(","), token, credentials].join("\n");
    text.bytes().map(|byte| format!("{byte:02x}")).collect()
}

fn read(hex: &str) -> Result<Meeting> {
    let strange = || err!(DataLoss, "rank 0 published something that is not an address of a job");
    let digits =
        |two: &[u8]| -> Option<u8> { u8::from_str_radix(std::str::from_utf8(two).ok()?, 16).ok() };
    let bytes: Option<Vec<u8>> = hex.as_bytes().chunks(2).map(digits).collect();
    let text = bytes.and_then(|bytes| String::from_utf8(bytes).ok()).ok_or_else(strange)?;
    let mut lines = text.split('\n');
    let (Some(addresses), Some(token), Some(credentials), None) =
        (lines.next(), lines.next(), lines.next(), lines.next())
    else {
        return Err(strange());
    };
    let credentials = match credentials {
        "" => None,
        text => Some(Credentials::parse(text)?),
    };
    let addresses = addresses.split(',').map(String::from).collect();
    Ok(Meeting { addresses, listener: None, token: token.into(), credentials })
}

/// An error of a launcher's store.
fn store_error(what: &str, why: impl std::fmt::Display) -> Error {
    err!(Unavailable, "{what}: {why}")
}

/// Answers of a launcher that speaks PMI-1, for the fuzz target.
pub(crate) fn fuzz_pmi(data: &[u8]) {
    pmi::fuzz(data);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_rank_0_publishes_is_read_as_written_and_is_safe_in_every_store() {
        let authority = JobAuthority::new().unwrap();
        let inline = authority.inline(&["member".into()], &[], 1).unwrap();
        let text = write(&["10.0.0.1:7".into(), "[fd00::1]:7".into()], "secret", &inline);
        assert!(text.bytes().all(|byte| byte.is_ascii_hexdigit()));
        let met = read(&text).unwrap();
        assert_eq!(met.addresses, ["10.0.0.1:7", "[fd00::1]:7"]);
        assert_eq!(met.token, "secret");
        let token = met.credentials.unwrap().token();
        assert_eq!(token.reveal(), authority.token().reveal());
        for wrong in ["", "7", "zz", &text[..9]] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_store_is_found_by_the_variables_of_the_launcher() {
        let found = |names: &[&str]| {
            LauncherStore::find(&|name| names.contains(&name).then(|| "1".to_string()))
        };
        assert_eq!(found(&[]), None);
        assert_eq!(found(&["PMI_FD"]), Some(LauncherStore::Pmi));
        assert_eq!(found(&["PMIX_NAMESPACE", "PMIX_RANK", "PMI_FD"]), Some(LauncherStore::Pmix));
        assert_eq!(found(&["PMIX_NAMESPACE"]), None);
    }
}
