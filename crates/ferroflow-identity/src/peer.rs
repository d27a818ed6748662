//! The identity of a peer, and the peer that a client expects.

use ferroflow_core::{Result, err};
use ring::digest;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::server::ParsedCertificate;
use std::fmt;

/// Certificates that name a role have it as a DNS name below this domain: `ps-0.ferroflow.internal`
/// is task 0 of job `ps`.
const ROLE_DOMAIN: &str = ".ferroflow.internal";

/// The other end of a connection that was let in. Sessions and graphs belong to the identity that
/// made them.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum PeerIdentity {
    /// This process itself.
    ThisProcess,
    /// A user of this host, by number.
    User(u32),
    /// The holder of a certificate of the job's CA.
    Certificate {
        /// The names in the certificate. They stay the same when it is renewed.
        name: String,
        /// The tasks and ranks that it may be. Empty if the certificate names none: then it may be
        /// any.
        roles: Vec<String>,
    },
    /// A peer that was not asked who it is, because the network is trusted (`--insecure`).
    Unverified,
}

impl PeerIdentity {
    /// Reads the identity from a certificate that was verified.
    pub(crate) fn of_certificate(leaf: &CertificateDer<'_>) -> Result<PeerIdentity> {
        let parsed = webpki::EndEntityCert::try_from(leaf)
            .map_err(|e| err!(PermissionDenied, "malformed certificate: {e}"))?;
        let dns: Vec<String> = parsed.valid_dns_names().map(str::to_ascii_lowercase).collect();
        let mut names: Vec<String> = parsed.valid_uri_names().map(str::to_string).collect();
        let role = |name: &String| Some(name.strip_suffix(ROLE_DOMAIN)?.to_string());
        let roles = dns.iter().filter_map(role).collect();
        names.extend(dns);
        names.sort_unstable();
        if names.is_empty() {
            // Only addresses or a common name: the subject stays the same when it is renewed.
            let hash = digest::digest(&digest::SHA256, parsed.subject());
            names.push(hash.as_ref().iter().map(|b| format!("{b:02x}")).collect());
        }
        Ok(PeerIdentity::Certificate { name: names.join(","), roles })
    }

    /// Whether the peer may say that it is `role`, such as `ps-0`.
    pub fn may_be(&self, role: &str) -> bool {
        match self {
            PeerIdentity::Certificate { roles, .. } if !roles.is_empty() => {
                roles.iter().any(|r| r.eq_ignore_ascii_case(role))
            }
            _ => true,
        }
    }
}

impl fmt::Display for PeerIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PeerIdentity::ThisProcess => f.write_str("this process"),
            PeerIdentity::User(uid) => write!(f, "user {uid} of this host"),
            PeerIdentity::Certificate { name, .. } => write!(f, "the certificate of {name}"),
            PeerIdentity::Unverified => f.write_str("an unverified peer"),
        }
    }
}

/// The role of a task in certificates.
pub fn task_role(job: &str, index: u32) -> String {
    format!("{job}-{index}").to_ascii_lowercase()
}

/// The role of a rank in certificates.
pub fn rank_role(rank: usize) -> String {
    format!("rank-{rank}")
}

/// The DNS name of a role in certificates.
pub(crate) fn role_name(role: &str) -> String {
    format!("{role}{ROLE_DOMAIN}")
}

/// The peer that a client connects to.
#[derive(Clone, Copy, Debug)]
pub struct ExpectedPeer<'a> {
    /// `host` or `host:port`. A certificate for this host is accepted.
    pub address: &'a str,
    /// A certificate for this role is accepted too, wherever the peer runs.
    pub role: Option<&'a str>,
}

impl ExpectedPeer<'_> {
    /// The host without port and brackets.
    fn host(&self) -> &str {
        if self.address.parse::<std::net::IpAddr>().is_ok() {
            return self.address;
        }
        let host = self.address.rsplit_once(':').map_or(self.address, |(host, _)| host);
        host.trim_matches(['[', ']'])
    }

    /// The name for the TLS handshake.
    pub(crate) fn server_name(&self) -> ServerName<'static> {
        let role = || role_name(self.role.unwrap_or("task"));
        ServerName::try_from(self.host().to_string())
            .or_else(|_| ServerName::try_from(role()))
            .unwrap_or_else(|_| ServerName::from(std::net::IpAddr::from([127, 0, 0, 1])))
    }

    /// Checks that a verified certificate is that of this peer.
    pub(crate) fn check(&self, leaf: &CertificateDer<'_>) -> Result<()> {
        let parsed = ParsedCertificate::try_from(leaf)
            .map_err(|e| err!(PermissionDenied, "malformed certificate: {e}"))?;
        let role = self.role.map(role_name);
        let names = [Some(self.host().to_string()), role];
        let fits = names.into_iter().flatten().any(|name| {
            ServerName::try_from(name)
                .is_ok_and(|name| rustls::client::verify_server_name(&parsed, &name).is_ok())
        });
        if fits {
            return Ok(());
        }
        let found = match PeerIdentity::of_certificate(leaf)? {
            PeerIdentity::Certificate { name, .. } => name,
            other => other.to_string(),
        };
        let role = self.role.map(|role| format!(" or the task {role}")).unwrap_or_default();
        Err(err!(
            PermissionDenied,
            "the certificate of {} is for {found}, not for {}{role}; add the name with \
             `ferroflow certs`",
            self.address,
            self.host()
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_of_an_address_is_found() {
        let host = |address| ExpectedPeer { address, role: None }.host().to_string();
        assert_eq!(host("a.b:1"), "a.b");
        assert_eq!(host("a.b"), "a.b");
        assert_eq!(host("[fd00::1]:7"), "fd00::1");
        assert_eq!(host("fd00::1"), "fd00::1");
        assert_eq!(host("10.0.0.1:7"), "10.0.0.1");
    }

    #[test]
    fn a_certificate_with_roles_may_be_these_alone() {
        let identity = |roles: &[&str]| PeerIdentity::Certificate {
            name: "x".into(),
            roles: roles.iter().map(|r| r.to_string()).collect(),
        };
        assert!(identity(&["ps-0"]).may_be(&task_role("PS", 0)));
        assert!(!identity(&["ps-0"]).may_be("ps-1"));
        assert!(identity(&[]).may_be("ps-1"), "a certificate without roles is for the whole job");
        assert!(PeerIdentity::User(7).may_be("ps-1"));
    }
}
