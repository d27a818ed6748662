//! The identity of a peer, and the peer that a client expects.

use ferroflow_core::{Result, err};
use ring::digest;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::server::ParsedCertificate;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// Certificates that name a role have it as a DNS name below this domain: `ps-0.ferroflow.internal`
/// is task 0 of job `ps`.
const ROLE_DOMAIN: &str = ".ferroflow.internal";

/// The role of a certificate whose holder may be any task or rank of the job.
pub const ANY_ROLE: &str = "job";

/// The other end of an admitted connection. Sessions and graphs belong to the identity that made
/// them.
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
        /// The tasks and ranks that it may be.
        roles: Vec<String>,
        /// The certificate itself.
        certificate: VerifiedCertificate,
    },
    /// A peer without proof of identity, because the network is trusted (`--insecure`).
    Unverified,
}

/// A certificate of the job's CA. All of them compare equal within an identity: names distinguish
/// identities, because a renewed certificate is another one.
#[derive(Clone)]
pub struct VerifiedCertificate(Arc<CertificateDer<'static>>);

impl VerifiedCertificate {
    /// Whether the certificate is for the host of an address, `host` or `host:port`.
    fn is_for(&self, address: &str) -> bool {
        let Ok(host) = ServerName::try_from(host_of(address).to_string()) else { return false };
        ParsedCertificate::try_from(&*self.0)
            .is_ok_and(|parsed| rustls::client::verify_server_name(&parsed, &host).is_ok())
    }
}

impl PartialEq for VerifiedCertificate {
    fn eq(&self, _: &VerifiedCertificate) -> bool {
        true
    }
}

impl Eq for VerifiedCertificate {}

impl Hash for VerifiedCertificate {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}

impl fmt::Debug for VerifiedCertificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("VerifiedCertificate")
    }
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
        let certificate = VerifiedCertificate(Arc::new(leaf.clone().into_owned()));
        names.extend(dns);
        names.sort_unstable();
        if names.is_empty() {
            // Only addresses or a common name. The subject stays the same when the certificate is
            // renewed.
            let hash = digest::digest(&digest::SHA256, parsed.subject());
            names.push(hash.as_ref().iter().map(|b| format!("{b:02x}")).collect());
        }
        Ok(PeerIdentity::Certificate { name: names.join(","), roles, certificate })
    }

    /// Whether the peer may claim to be `role`, such as `ps-0`, which others reach at `address`.
    pub fn may_be(&self, role: &str, address: &str) -> bool {
        match self {
            PeerIdentity::Certificate { roles, .. } => {
                let is_role = |own: &String| own == ANY_ROLE || own.eq_ignore_ascii_case(role);
                roles.iter().any(is_role) || self.is_any_of_host(address)
            }
            _ => true,
        }
    }

    /// Whether this is a certificate that names the host of `address` and no role. CAs other than
    /// ours issue such certificates. The holder may be any task of the host.
    pub fn is_any_of_host(&self, address: &str) -> bool {
        match self {
            PeerIdentity::Certificate { roles, certificate, .. } => {
                roles.is_empty() && certificate.is_for(address)
            }
            _ => false,
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

/// The host of an address, without port and brackets.
fn host_of(address: &str) -> &str {
    if address.parse::<std::net::IpAddr>().is_ok() {
        return address;
    }
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
    host.trim_matches(['[', ']'])
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
    fn host(&self) -> &str {
        host_of(self.address)
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
        let any = self.role.map(|_| role_name(ANY_ROLE));
        let names = [Some(self.host().to_string()), self.role.map(role_name), any];
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
}
