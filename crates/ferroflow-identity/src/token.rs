//! The secret of a job. It is never sent: peers prove that they know it.

use ferroflow_core::{Result, err};
use ring::rand::SecureRandom;
use ring::{hmac, rand};
use std::fmt;

/// The number of bytes of a proof.
pub const TOKEN_PROOF: usize = 32;

/// The number of bytes of a [`nonce`].
pub const NONCE: usize = 32;

/// A random number that makes a proof worthless for another connection.
pub fn nonce() -> Result<[u8; NONCE]> {
    random()
}

/// A secret that all processes of a job know. The default is empty: every process knows it.
#[derive(Clone, Default)]
pub struct JobToken(String);

impl JobToken {
    /// A new secret of 128 random bits.
    pub fn random() -> Result<JobToken> {
        let bytes = random::<16>()?;
        Ok(JobToken(bytes.iter().map(|b| format!("{b:02x}")).collect()))
    }

    /// A secret that another process has made.
    pub fn new(text: impl Into<String>) -> JobToken {
        JobToken(text.into())
    }

    /// Whether there is no secret.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The secret itself, to give it to a process of the job.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// Proves that the caller knows the secret. `label` tells the directions apart, `nonces` make
    /// the proof worthless for another connection.
    pub fn prove(&self, label: &str, nonces: &[&[u8]]) -> [u8; TOKEN_PROOF] {
        let mut proof = [0; TOKEN_PROOF];
        proof.copy_from_slice(self.tag(label, nonces).as_ref());
        proof
    }

    /// Checks a proof of a peer, in constant time.
    pub fn verify(&self, label: &str, nonces: &[&[u8]], proof: &[u8]) -> bool {
        let expected = self.tag(label, nonces);
        // Both sides are compared through another keyed hash, so that the time reveals nothing.
        let key = self.key();
        hmac::verify(&key, expected.as_ref(), hmac::sign(&key, proof).as_ref()).is_ok()
    }

    fn key(&self) -> hmac::Key {
        hmac::Key::new(hmac::HMAC_SHA256, self.0.as_bytes())
    }

    fn tag(&self, label: &str, nonces: &[&[u8]]) -> hmac::Tag {
        let mut context = hmac::Context::with_key(&self.key());
        context.update(&(label.len() as u64).to_le_bytes());
        context.update(label.as_bytes());
        for nonce in nonces {
            context.update(&(nonce.len() as u64).to_le_bytes());
            context.update(nonce);
        }
        context.sign()
    }
}

impl fmt::Debug for JobToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_empty() { "JobToken(none)" } else { "JobToken(secret)" })
    }
}

/// Random bytes from the operating system.
pub(crate) fn random<const N: usize>() -> Result<[u8; N]> {
    let mut bytes = [0; N];
    rand::SystemRandom::new()
        .fill(&mut bytes)
        .map_err(|_| err!(Unavailable, "the system gives no random numbers"))?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_same_secret_label_and_nonces_verify() {
        let token = JobToken::random().unwrap();
        let proof = token.prove("server", &[b"a", b"b"]);
        assert!(token.verify("server", &[b"a", b"b"], &proof));
        assert!(!token.verify("client", &[b"a", b"b"], &proof));
        assert!(!token.verify("server", &[b"ab", b""], &proof));
        assert!(!token.verify("server", &[b"a", b"b"], &proof[..31]));
        assert!(!JobToken::random().unwrap().verify("server", &[b"a", b"b"], &proof));
    }

    #[test]
    fn a_token_is_long_random_and_not_printed() {
        let (a, b) = (JobToken::random().unwrap(), JobToken::random().unwrap());
        assert_eq!(a.reveal().len(), 32);
        assert_ne!(a.reveal(), b.reveal());
        assert!(!format!("{a:?}").contains(a.reveal()));
    }
}
