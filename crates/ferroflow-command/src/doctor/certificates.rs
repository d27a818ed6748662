//! Checks of the credentials of this process.

use super::{Finding, Health};
use crate::credentials::CredentialArgs;
use ferroflow::cluster::Credentials;
use ferroflow_identity::{ExpectedPeer, TlsSession};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

const CHECK: &str = "certificates";

/// The credentials, if they can be read, and the findings.
pub fn check(args: &CredentialArgs) -> (Option<Credentials>, Vec<Finding>) {
    let renew =
        "make new ones with `ferroflow certs`, from the same CA as those of the other tasks";
    let loaded = match args.load() {
        Ok(loaded) => loaded,
        Err(e) => {
            let what = format!("the credentials cannot be used: {}", e.message());
            return (None, vec![Finding::fault(CHECK, what, renew)]);
        }
    };
    let Some(credentials) = loaded else {
        let what = "no credentials: only processes of this user on this host can work together";
        return (None, vec![Finding::new(CHECK, Health::Absent, what)]);
    };
    let mut found = Vec::new();
    if let Some(key) = args.key_file()
        && let Some(mode) = mode_of(&key)
        && mode & 0o077 != 0
    {
        let what = format!("{} can be read by others (mode {mode:o})", key.display());
        found.push(Finding::fault(CHECK, what, format!("chmod 600 {}", key.display())));
    }
    found.push(match greet_itself(&credentials) {
        Ok(()) => Finding::good(CHECK, "the certificate is valid now, and its CA has signed it"),
        Err(why) => {
            Finding::fault(CHECK, format!("other tasks would refuse the certificate: {why}"), renew)
        }
    });
    (Some(credentials), found)
}

fn mode_of(path: &Path) -> Option<u32> {
    Some(std::fs::metadata(path).ok()?.permissions().mode() & 0o777)
}

/// Greets as client and as server at the same time: both ends check the certificate as another task
/// would.
fn greet_itself(credentials: &Credentials) -> Result<(), String> {
    let say = |e: &dyn std::fmt::Display| e.to_string();
    let expected = ExpectedPeer { address: "localhost:1", role: None };
    let mut client = TlsSession::client(credentials, expected).map_err(|e| say(&e))?;
    let mut server = TlsSession::server(credentials).map_err(|e| say(&e))?;
    // Four flights are enough for every version of TLS.
    for _ in 0..8 {
        let client_done = client.shake().map_err(|e| say(&e))?;
        carry(&mut client, &mut server);
        let server_done = server.shake().map_err(|e| say(&e))?;
        carry(&mut server, &mut client);
        if client_done && server_done {
            return server.client_identity().map(|_| ()).map_err(|e| say(&e));
        }
    }
    Err("the handshake does not end".into())
}

fn carry(from: &mut TlsSession, to: &mut TlsSession) {
    while !from.outgoing().is_empty() {
        let bytes = from.outgoing().to_vec();
        let room = to.incoming();
        let len = bytes.len().min(room.len());
        if len == 0 {
            return;
        }
        room[..len].copy_from_slice(&bytes[..len]);
        to.received(len);
        from.sent(len);
    }
}
