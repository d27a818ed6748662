//! The proof of the job token at the start of a connection. Both ends prove that they know the
//! token and neither sends it, so that a process that listens at the wrong address learns nothing.

use crate::token::{JobToken, NONCE, TOKEN_PROOF, nonce};
use ferroflow_core::{Result, ensure, err};
use std::io::{Read, Write};

const MAGIC: [u8; 8] = *b"FFGREET1";
const WRONG: &str = "the token is not that of this job";

/// Greets as the end that opened the connection.
pub(crate) fn greet(mut stream: impl Read + Write, token: &JobToken) -> Result<()> {
    let own = nonce()?;
    let mut first = [0; MAGIC.len() + NONCE];
    first[..MAGIC.len()].copy_from_slice(&MAGIC);
    first[MAGIC.len()..].copy_from_slice(&own);
    stream.write_all(&first).map_err(lost)?;
    let mut answer = [0; NONCE + TOKEN_PROOF];
    stream.read_exact(&mut answer).map_err(lost)?;
    let (theirs, proof) = answer.split_at(NONCE);
    ensure!(token.verify("accepting", &[&own, theirs], proof), PermissionDenied, "{WRONG}");
    stream.write_all(&token.prove("connecting", &[&own, theirs])).map_err(lost)?;
    let mut welcome = [0];
    stream.read_exact(&mut welcome).map_err(|_| err!(PermissionDenied, "{WRONG}"))
}

/// Greets as the end that accepted the connection.
pub(crate) fn answer(mut stream: impl Read + Write, token: &JobToken) -> Result<()> {
    let mut first = [0; MAGIC.len() + NONCE];
    stream.read_exact(&mut first).map_err(lost)?;
    let (magic, theirs) = first.split_at(MAGIC.len());
    ensure!(magic == MAGIC, DataLoss, "the peer is not a process of this version of Ferroflow");
    let own = nonce()?;
    let mut answer = [0; NONCE + TOKEN_PROOF];
    answer[..NONCE].copy_from_slice(&own);
    answer[NONCE..].copy_from_slice(&token.prove("accepting", &[theirs, &own]));
    stream.write_all(&answer).map_err(lost)?;
    let mut proof = [0; TOKEN_PROOF];
    stream.read_exact(&mut proof).map_err(lost)?;
    ensure!(token.verify("connecting", &[theirs, &own], &proof), PermissionDenied, "{WRONG}");
    stream.write_all(&[1]).map_err(lost)
}

fn lost(e: std::io::Error) -> ferroflow_core::Error {
    err!(Unavailable, "connection lost while greeting: {e}")
}
