//! The handshake of a link's connection: identity, authorization and capabilities.

use super::frame::cut;
use crate::net::{BoxRead, BoxWrite};
use bytes::{Buf, BufMut, BytesMut};
use ferroflow_collective::blocks::BlockMemory;
use ferroflow_core::{Error, Result, ensure, err};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// The first bytes of a connection. HTTP/2 starts with another byte.
pub(crate) const MAGIC: [u8; 8] = *b"FERROFLW";
/// The protocol version. It changes with the handshake or the frames; both sides must have the
/// same.
pub(crate) const VERSION: u32 = 6;
/// The limit of a greeting.
const MAX_HELLO: usize = 64 << 10;

/// Longer texts are truncated.
const MAX_TEXT: usize = 4096;

/// The ticket that authorizes a link; see `tickets.rs`.
pub(crate) type Token = [u8; 16];

/// The purpose of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ConnectionPurpose {
    /// Calls, their answers, and values.
    Main = 0,
    /// Large values.
    Bulk = 1,
}

/// The greeting of the connecting task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LinkHello {
    pub purpose: ConnectionPurpose,
    pub token: Token,
    /// Its name, for messages.
    pub task: String,
    /// The incarnations of its devices. It may only send values of these.
    pub incarnations: Vec<u64>,
    /// Shared memory that it offers for large values.
    pub blocks: Option<BlockMemory>,
    /// The stream over UCX that it offers for large values.
    pub ucx: Option<UcxOffer>,
}

/// A stream over UCX that a task offers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct UcxOffer {
    /// The number of the stream's end at the accepting task.
    pub number: u64,
    /// The address of the connecting task's port.
    pub address: Vec<u8>,
}

impl UcxOffer {
    /// The number of the stream's end at the connecting task.
    pub fn own_number(&self) -> u64 {
        !self.number
    }
}

/// The answer of the accepting task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Welcome {
    /// Whether it has mapped the offered shared memory.
    pub takes_blocks: bool,
    /// The address of its UCX port, if it takes the offered stream; else empty.
    pub ucx: Vec<u8>,
    /// Its name, for messages.
    pub task: String,
    /// What identifies each of its GPUs, if it takes tensors in their memory.
    pub gpus: Vec<String>,
    /// The incarnations of its devices.
    pub incarnations: Vec<u64>,
}

/// The GPUs that a task names. It takes tensors through host memory on further ones.
pub(super) const MOST_GPUS: usize = 64;

impl LinkHello {
    pub async fn send(&self, to: &mut BoxWrite) -> Result<()> {
        let mut body = BytesMut::new();
        body.put_u32_le(VERSION);
        body.put_u8(self.purpose as u8);
        body.put_slice(&self.token);
        put_text(&mut body, &self.task);
        let blocks = self.blocks.as_ref().map_or(("", 0, 0), |m| (&m.name, m.len, m.mark));
        let (name, len, mark) = blocks;
        put_text(&mut body, name);
        body.put_u64_le(len);
        body.put_u64_le(mark);
        let ucx = self.ucx.as_ref().map_or((0, &[][..]), |offer| (offer.number, &offer.address));
        body.put_u64_le(ucx.0);
        put_bytes(&mut body, ucx.1);
        put_numbers(&mut body, &self.incarnations);
        send(to, &body).await
    }

    pub async fn receive(from: &mut BoxRead) -> Result<LinkHello> {
        let body = receive(from).await?;
        LinkHello::parse(&body).ok_or_else(|| err!(InvalidArgument, "malformed link greeting"))
    }

    fn parse(mut body: &[u8]) -> Option<LinkHello> {
        let body = &mut body;
        if body.try_get_u32_le().ok()? != VERSION {
            return None;
        }
        let purpose = match body.try_get_u8().ok()? {
            0 => ConnectionPurpose::Main,
            1 => ConnectionPurpose::Bulk,
            _ => return None,
        };
        let mut token = Token::default();
        body.try_copy_to_slice(&mut token).ok()?;
        let task = text(body)?;
        let name = text(body)?;
        let len = body.try_get_u64_le().ok()?;
        let mark = body.try_get_u64_le().ok()?;
        let number = body.try_get_u64_le().ok()?;
        let address = bytes(body)?.to_vec();
        let ucx = (!address.is_empty()).then_some(UcxOffer { number, address });
        let incarnations = numbers(body)?;
        let blocks = (!name.is_empty()).then_some(BlockMemory { name, len, mark });
        Some(LinkHello { purpose, token, task, incarnations, blocks, ucx })
    }
}

/// Accepts the connection, or says why not.
pub(super) async fn answer(to: &mut BoxWrite, answer: &Result<Welcome>) -> Result<()> {
    let mut body = BytesMut::new();
    match answer {
        Ok(welcome) => {
            body.put_slice(&[1, welcome.takes_blocks.into()]);
            put_bytes(&mut body, &welcome.ucx);
            put_text(&mut body, &welcome.task);
            body.put_u32_le(welcome.gpus.len().min(MOST_GPUS) as u32);
            welcome.gpus.iter().take(MOST_GPUS).for_each(|gpu| put_text(&mut body, gpu));
            put_numbers(&mut body, &welcome.incarnations);
        }
        Err(e) => {
            body.put_slice(&[0, 0]);
            put_text(&mut body, e.message());
        }
    }
    send(to, &body).await
}

pub(super) async fn receive_answer(from: &mut BoxRead) -> Result<Welcome> {
    let body = receive(from).await?;
    match body.as_slice() {
        [1, takes_blocks, rest @ ..] => {
            let rest = &mut &*rest;
            let ucx = bytes(rest).map(<[u8]>::to_vec);
            let (Some(ucx), Some(task), Some(gpus), Some(incarnations)) =
                (ucx, text(rest), texts(rest), numbers(rest))
            else {
                return Err(err!(InvalidArgument, "malformed answer to a link greeting"));
            };
            Ok(Welcome { takes_blocks: *takes_blocks != 0, ucx, task, gpus, incarnations })
        }
        [0, 0, why @ ..] => {
            let why = text(&mut &*why).unwrap_or_default();
            Err(err!(FailedPrecondition, "the task refused a connection: {why}"))
        }
        _ => Err(err!(InvalidArgument, "malformed answer to a link greeting")),
    }
}

async fn send(to: &mut BoxWrite, body: &[u8]) -> Result<()> {
    let mut all = BytesMut::with_capacity(MAGIC.len() + 4 + body.len());
    all.put_slice(&MAGIC);
    all.put_u32_le(body.len() as u32);
    all.put_slice(body);
    to.write_all(&all).await.map_err(lost)?;
    to.flush().await.map_err(lost)
}

async fn receive(from: &mut BoxRead) -> Result<Vec<u8>> {
    let mut head = [0; MAGIC.len() + 4];
    from.read_exact(&mut head).await.map_err(lost)?;
    let (magic, mut len) = head.split_at(MAGIC.len());
    let len = len.get_u32_le() as usize;
    ensure!(
        magic == MAGIC && len <= MAX_HELLO,
        InvalidArgument,
        "the peer does not speak the link protocol"
    );
    let mut body = vec![0; len];
    from.read_exact(&mut body).await.map_err(lost)?;
    Ok(body)
}

/// Numbers at the end of a greeting.
fn put_numbers(to: &mut BytesMut, numbers: &[u64]) {
    to.put_u32_le(numbers.len() as u32);
    numbers.iter().for_each(|n| to.put_u64_le(*n));
}

fn numbers(from: &mut &[u8]) -> Option<Vec<u64>> {
    let count = from.try_get_u32_le().ok()? as usize;
    if from.len() != count.checked_mul(8)? {
        return None;
    }
    Some((0..count).map(|_| from.get_u64_le()).collect())
}

fn texts(from: &mut &[u8]) -> Option<Vec<String>> {
    let count = from.try_get_u32_le().ok()? as usize;
    (count <= MOST_GPUS).then(|| (0..count).map(|_| text(from)).collect()).flatten()
}

fn put_text(to: &mut BytesMut, text: &str) {
    put_bytes(to, cut(text, MAX_TEXT).as_bytes());
}

fn text(from: &mut &[u8]) -> Option<String> {
    Some(std::str::from_utf8(bytes(from)?).ok()?.to_string())
}

/// Bytes, none if there are more than a greeting can have.
fn put_bytes(to: &mut BytesMut, bytes: &[u8]) {
    let len = u16::try_from(bytes.len()).unwrap_or(0);
    to.put_u16_le(len);
    to.put_slice(&bytes[..usize::from(len)]);
}

fn bytes<'b>(from: &mut &'b [u8]) -> Option<&'b [u8]> {
    let len = usize::from(from.try_get_u16_le().ok()?);
    let (bytes, rest) = from.split_at_checked(len)?;
    *from = rest;
    Some(bytes)
}

pub(super) fn lost(e: std::io::Error) -> Error {
    err!(Unavailable, "connection lost while greeting: {e}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn greetings_round_trip() {
        let memory = BlockMemory { name: "memory".into(), len: 77, mark: 78 };
        for blocks in [None, Some(memory)] {
            let ucx = blocks.is_none().then(|| UcxOffer { number: 7, address: vec![1, 0] });
            let hello = LinkHello {
                purpose: ConnectionPurpose::Bulk,
                token: [7; 16],
                task: "/job:ps/replica:0/task:0".into(),
                incarnations: vec![1, u64::MAX],
                blocks,
                ucx,
            };
            let (near, far) = tokio::io::duplex(1 << 12);
            let (mut near, mut far): (BoxWrite, BoxRead) = (Box::new(near), Box::new(far));
            hello.send(&mut near).await.unwrap();
            assert_eq!(LinkHello::receive(&mut far).await.unwrap(), hello);
            let welcome = Welcome {
                takes_blocks: true,
                ucx: vec![9; 300],
                task: "x".into(),
                gpus: vec!["host 0000:01:00.0".into(), String::new()],
                incarnations: vec![3, 0],
            };
            answer(&mut near, &Ok(welcome.clone())).await.unwrap();
            assert_eq!(receive_answer(&mut far).await.unwrap(), welcome);
            answer(&mut near, &Err(err!(Aborted, "no"))).await.unwrap();
            assert!(receive_answer(&mut far).await.unwrap_err().message().ends_with(": no"));
        }
    }

    #[tokio::test]
    async fn other_protocols_are_refused() {
        for bytes in [&b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"[..], b"FERROFLW\xff\xff\xff\xff", b"FE"]
        {
            let mut from: BoxRead = Box::new(bytes);
            assert!(LinkHello::receive(&mut from).await.is_err());
        }
        for body in [&b""[..], b"\x02\0\0\0\0", b"\x06\0\0\0\x07", &[6, 0, 0, 0, 0, 1, 2]] {
            assert_eq!(LinkHello::parse(body), None);
        }
    }
}
