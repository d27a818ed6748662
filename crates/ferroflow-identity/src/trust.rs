//! The peers that a process admits. One policy for servers, ranks and the elastic driver.

use crate::credentials::Credentials;
use crate::environment::take_secret;
use crate::ip_range::IpRange;
use crate::peer::PeerIdentity;
use crate::user;
use ferroflow_core::{Error, Result, bail, ensure};
use std::net::{IpAddr, SocketAddr};

/// The peers that a process trusts. By default these are processes of the same user on the same
/// host, without credentials.
#[derive(Clone, Debug, Default)]
pub struct Trust {
    /// With credentials, peers need a certificate of the same CA.
    pub credentials: Option<Credentials>,
    /// Admits all peers from all hosts without credentials.
    pub is_insecure: bool,
    /// Admits all users of this host without credentials.
    pub any_local_user: bool,
    /// Peers with these addresses need no credentials and speak no TLS: TensorFlow's tasks.
    pub insecure_peers: Vec<IpRange>,
    /// With credentials: admits processes of the same user on this host without TLS too.
    pub plain_on_this_host: bool,
    /// Whether an identity may end sessions and clear containers of another. By default only where
    /// all peers are one user of one host.
    pub allow_foreign_reset: Option<bool>,
    /// The error of reading the credentials. With one, the process listens on no address.
    pub problem: Option<Error>,
}

/// The next step of a new connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Admission {
    /// The peer must present a certificate.
    Tls,
    /// The peer is admitted without further proof.
    Plain(PeerIdentity),
}

impl Trust {
    /// The trust that the environment describes: `FERROFLOW_CREDENTIALS` (a folder) and
    /// `FERROFLOW_INSECURE=1`.
    pub fn from_env() -> Result<Trust> {
        let credentials = take_secret("FERROFLOW_CREDENTIALS");
        let is_insecure = match std::env::var("FERROFLOW_INSECURE").ok().as_deref() {
            None | Some("" | "0") => false,
            Some("1") => true,
            Some(other) => {
                bail!(InvalidArgument, "FERROFLOW_INSECURE={other:?} must be 0 or 1")
            }
        };
        let credentials = credentials.as_deref().map(Credentials::parse).transpose()?;
        Ok(Trust { credentials, is_insecure, ..Trust::default() })
    }

    /// The default trust, with these credentials.
    pub fn with(credentials: Credentials) -> Trust {
        Trust { credentials: Some(credentials), ..Trust::default() }
    }

    /// Refuses to listen on an address that other hosts reach, if they need no credentials.
    pub fn check_bind(&self, address: SocketAddr) -> Result<()> {
        if let Some(problem) = &self.problem {
            return Err(problem.clone());
        }
        let is_safe = self.credentials.is_some() || address.ip().to_canonical().is_loopback();
        ensure!(
            is_safe || self.is_insecure,
            FailedPrecondition,
            "refused to listen on {address} without credentials: every host that reaches this \
             address could run code here. Make credentials with `ferroflow certs` and give them \
             with --credentials DIR or FERROFLOW_CREDENTIALS=DIR. If you trust every host of the \
             network, give --insecure or FERROFLOW_INSECURE=1"
        );
        Ok(())
    }

    /// Decides how a connection that was accepted at `local` continues, before anything is read
    /// from it.
    pub fn admit(&self, local: SocketAddr, peer: SocketAddr) -> Result<Admission> {
        let is_listed = self.is_insecure_peer(peer.ip());
        let is_local_plain = self.plain_on_this_host && user::is_same_host(local, peer);
        if self.credentials.is_some() && !is_listed && !is_local_plain {
            return Ok(Admission::Tls);
        }
        if self.is_insecure {
            return Ok(Admission::Plain(PeerIdentity::Unverified));
        }
        if user::is_same_host(local, peer) {
            let owner = match user::owner(local, peer) {
                Err(_) if self.any_local_user => {
                    return Ok(Admission::Plain(PeerIdentity::Unverified));
                }
                owner => owner?,
            };
            return self.admit_user(owner).map(Admission::Plain);
        }
        ensure!(
            is_listed,
            PermissionDenied,
            "refused a connection from {peer}: it has no credentials, and this server admits \
             processes of this host alone"
        );
        Ok(Admission::Plain(PeerIdentity::Unverified))
    }

    /// Admits a process of user `owner` on this host without credentials, or returns the error.
    pub fn admit_user(&self, owner: u32) -> Result<PeerIdentity> {
        let own = user::own();
        ensure!(
            owner == own || owner == 0 || self.any_local_user || self.is_insecure,
            PermissionDenied,
            "refused a connection of user {owner}: this process belongs to user {own}, and only \
             that user is let in (--any-local-user admits all users of this host)"
        );
        Ok(PeerIdentity::User(owner))
    }

    /// Whether to use TLS towards a peer.
    pub fn uses_tls(&self, peer: IpAddr) -> bool {
        self.credentials.is_some() && !self.is_insecure_peer(peer)
    }

    fn is_insecure_peer(&self, peer: IpAddr) -> bool {
        self.insecure_peers.iter().any(|range| range.contains(peer))
    }

    /// Whether `caller` may end or change objects of `owner`.
    pub fn may_touch(&self, owner: &PeerIdentity, caller: &PeerIdentity) -> bool {
        owner == caller || self.allows_foreign_reset()
    }

    /// Whether an identity may end sessions and clear containers of another.
    pub fn allows_foreign_reset(&self) -> bool {
        let is_one_user = self.credentials.is_none()
            && !self.is_insecure
            && !self.any_local_user
            && self.insecure_peers.is_empty();
        self.allow_foreign_reset.unwrap_or(is_one_user)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn only_loopback_can_be_bound_without_credentials() {
        let bind = |trust: &Trust, at: &str| trust.check_bind(at.parse().unwrap());
        let trust = Trust::default();
        for safe in ["127.0.0.1:1", "127.9.9.9:1", "[::1]:1", "[::ffff:127.0.0.1]:1"] {
            bind(&trust, safe).unwrap();
        }
        for wide in ["0.0.0.0:1", "[::]:1", "10.1.2.3:1", "192.0.2.1:0"] {
            let e = bind(&trust, wide).unwrap_err();
            assert!(e.message().contains("ferroflow certs"), "{e}");
            bind(&Trust { is_insecure: true, ..Trust::default() }, wide).unwrap();
        }
    }

    #[test]
    fn only_the_own_user_and_root_are_let_in() {
        let (own, trust) = (user::own(), Trust::default());
        assert_eq!(trust.admit_user(own).unwrap(), PeerIdentity::User(own));
        assert_eq!(trust.admit_user(0).unwrap(), PeerIdentity::User(0));
        let e = trust.admit_user(own + 4242).unwrap_err();
        assert!(e.message().contains("--any-local-user"), "{e}");
        let open = Trust { any_local_user: true, ..Trust::default() };
        assert_eq!(open.admit_user(own + 1).unwrap(), PeerIdentity::User(own + 1));
    }

    #[test]
    fn a_peer_of_another_host_needs_credentials() {
        let (local, peer) = ("10.0.0.1:1".parse().unwrap(), "10.0.0.2:2".parse().unwrap());
        let admit = |trust: Trust| trust.admit(local, peer);
        assert!(admit(Trust::default()).is_err());
        let unverified = Admission::Plain(PeerIdentity::Unverified);
        let insecure = Trust { is_insecure: true, ..Trust::default() };
        assert_eq!(admit(insecure).unwrap(), unverified);
        let listed = vec!["10.0.0.0/24".parse().unwrap()];
        let listed = Trust { insecure_peers: listed, ..Trust::default() };
        assert_eq!(admit(listed).unwrap(), unverified);
    }

    #[test]
    fn a_connection_within_the_host_has_its_user() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let _client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (server, peer) = listener.accept().unwrap();
        let admission = Trust::default().admit(server.local_addr().unwrap(), peer).unwrap();
        assert_eq!(admission, Admission::Plain(PeerIdentity::User(user::own())));
    }

    #[test]
    fn others_may_be_reset_only_where_all_are_one_user() {
        let (a, b) = (PeerIdentity::User(1), PeerIdentity::User(2));
        assert!(Trust::default().may_touch(&a, &b));
        let open = Trust { any_local_user: true, ..Trust::default() };
        assert!(!open.may_touch(&a, &b) && open.may_touch(&a, &a));
        let allowed = Trust { allow_foreign_reset: Some(true), ..open };
        assert!(allowed.may_touch(&a, &b));
        let refused = Trust { allow_foreign_reset: Some(false), ..Trust::default() };
        assert!(!refused.may_touch(&a, &b));
    }
}
