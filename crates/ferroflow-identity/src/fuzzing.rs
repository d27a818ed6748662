//! Parsers of bytes that arrive before a peer has proved its identity, for the fuzz targets. An
//! input may be an error. It must not cause a panic, nor take much more memory than it holds bytes.

use crate::credentials::Credentials;
use crate::greeting;
use crate::peer::ExpectedPeer;
use crate::tls::TlsSession;
use crate::token::JobToken;
use crate::{IpRange, JobAuthority};
use std::io::{self, Read, Write};
use std::sync::LazyLock;

static CREDENTIALS: LazyLock<Credentials> = LazyLock::new(|| {
    let authority = JobAuthority::new().expect("a CA");
    authority.credentials(&["ps-0".into()], &["localhost".into()], 1).expect("credentials")
});

/// The first bytes of a connection: TLS of a client or of a server, the proof of the token, or
/// texts that name peers. The first byte chooses.
pub fn greetings(data: &[u8]) {
    let Some((kind, data)) = data.split_first() else { return };
    let text = || String::from_utf8_lossy(data).into_owned();
    match kind % 6 {
        0 => shake(TlsSession::server(&CREDENTIALS), data),
        1 => {
            let peer = ExpectedPeer { address: "localhost", role: Some("ps-0") };
            shake(TlsSession::client(&CREDENTIALS, peer), data);
        }
        2 => drop(greeting::answer(Recorded(data), &JobToken::default())),
        3 => drop(greeting::greet(Recorded(data), &JobToken::default())),
        4 => drop(Credentials::parse(&text())),
        _ => drop(text().parse::<IpRange>()),
    }
}

/// Gives the bytes to a session in pieces, and takes its output.
fn shake(session: ferroflow_core::Result<TlsSession>, mut data: &[u8]) {
    let mut session = session.expect("a session");
    let mut plain = [0; 512];
    for size in [1, 5, 100, usize::MAX].into_iter().cycle() {
        let is_done = data.is_empty();
        let room = session.incoming();
        let len = size.min(room.len()).min(data.len());
        room[..len].copy_from_slice(&data[..len]);
        session.received(len);
        data = &data[len..];
        let is_shaken = session.shake();
        let sent = session.outgoing().len();
        session.sent(sent);
        match is_shaken {
            Err(_) => return,
            Ok(true) if session.read(&mut plain).is_err() => return,
            Ok(_) if is_done => return,
            Ok(_) => {}
        }
    }
}

/// A peer that sends these bytes, whatever it receives.
struct Recorded<'a>(&'a [u8]);

impl Read for Recorded<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.0.read(into)
    }
}

impl Write for Recorded<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Valid inputs of [`greetings`].
pub fn sample_greetings() -> Vec<Vec<u8>> {
    let peer = ExpectedPeer { address: "localhost", role: None };
    let mut client = TlsSession::client(&CREDENTIALS, peer).expect("a session");
    let _ = client.shake();
    let token = [&b"\x02FFGREET1"[..], &[7; 64]].concat();
    vec![[&[0], client.outgoing()].concat(), token, b"\x0510.0.0.0/8".to_vec()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use ferroflow_testing::fuzz_bytes;

    #[test]
    fn greetings_do_not_panic() {
        fuzz_bytes(greetings, &sample_greetings());
    }
}
