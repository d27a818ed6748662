//! The identity of the other end of a connection, and whether to admit it.
//!
//! All paths of a job use this crate: gRPC, links between tasks, the connections between ranks, and
//! the elastic driver. A process has [`Credentials`] (a CA, a certificate with its key, a job
//! token) and a [`Trust`], which defines the peers that it admits. An admitted connection has a
//! [`PeerIdentity`].
//!
//! Peers on other hosts present a certificate of the job's CA (mutual TLS 1.3). A peer on the same
//! host without a certificate is identified by its user number, which the kernel provides.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod authority;
mod credentials;
mod environment;
pub mod fuzzing;
mod greeting;
mod ip_range;
mod peer;
mod stream;
#[cfg(test)]
mod tests;
mod tls;
mod token;
mod trust;
mod user;
mod verify;

pub use authority::{JobAuthority, PemCredentials};
pub use credentials::Credentials;
pub use environment::take_secret;
pub use ip_range::IpRange;
pub use peer::{ANY_ROLE, ExpectedPeer, PeerIdentity, VerifiedCertificate, rank_role, task_role};
pub use stream::SecureStream;
pub use tls::TlsSession;
pub use token::{JobToken, NONCE, TOKEN_PROOF, nonce};
pub use trust::{Admission, Trust};
pub use user::is_same_host;
