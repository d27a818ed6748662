//! The receiving half of a connection. Tensors are read into their own memory.

use super::frame::{FrameHead, FrameRest, HEAD};
use crate::net::BoxRead;
use crate::watchdog;
use ferroflow_core::{Error, IncomingTensor, Result, Tensor, err};
use tokio::io::AsyncReadExt;

/// Heads, names and small payloads are read through a buffer of this size.
const BUFFER: usize = 64 << 10;

pub(super) struct FrameReader {
    io: BoxRead,
    buffer: Box<[u8]>,
    start: usize,
    end: usize,
}

impl FrameReader {
    pub fn new(io: BoxRead) -> FrameReader {
        FrameReader { io, buffer: vec![0; BUFFER].into(), start: 0, end: 0 }
    }

    /// The next head; `None` if the peer has closed the connection between frames.
    pub async fn head(&mut self) -> Result<Option<FrameHead>> {
        if !self.fill(HEAD).await? {
            return if self.start == self.end { Ok(None) } else { Err(cut_short()) };
        }
        let head = &self.buffer[self.start..self.start + HEAD];
        let head = FrameHead::read(head.try_into().expect("as long as a head"))?;
        self.start += HEAD;
        Ok(Some(head))
    }

    /// Reads the dimensions and the name of the frame of `head`.
    pub async fn rest(&mut self, head: &FrameHead) -> Result<FrameRest> {
        let len = head.rest();
        if len > BUFFER {
            let mut long = vec![0; len];
            self.read_into(&mut long).await?;
            return head.parse_rest(&long);
        }
        if !self.fill(len).await? {
            return Err(cut_short());
        }
        let rest = head.parse_rest(&self.buffer[self.start..self.start + len]);
        self.start += len;
        rest
    }

    /// Reads the elements of a tensor. The inner error says that there is no memory for them; then
    /// they are skipped.
    pub async fn tensor(&mut self, mut tensor: IncomingTensor) -> Result<Result<Tensor>> {
        loop {
            let missing = tensor.missing();
            match tensor.next_piece() {
                Ok(Some(piece)) => self.read_into(piece).await?,
                Ok(None) => return Ok(tensor.finish()),
                Err(e) => {
                    self.skip(missing as u64).await?;
                    return Ok(Err(e));
                }
            }
        }
    }

    /// Reads a payload that is not a plain tensor. It takes memory as it arrives.
    pub async fn bytes(&mut self, len: usize) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        while bytes.len() < len {
            let from = bytes.len();
            // Twice as much each time, so that few bytes are copied again.
            let to = len.min(from.max(BUFFER) + from);
            bytes
                .try_reserve_exact(to - from)
                .map_err(|_| err!(ResourceExhausted, "no memory for a message of {len} bytes"))?;
            bytes.resize(to, 0);
            self.read_into(&mut bytes[from..]).await?;
        }
        Ok(bytes)
    }

    /// Fills `to`. Bytes that are not buffered are read directly into it.
    pub async fn read_into(&mut self, to: &mut [u8]) -> Result<()> {
        let buffered = to.len().min(self.end - self.start);
        let (first, rest) = to.split_at_mut(buffered);
        first.copy_from_slice(&self.buffer[self.start..self.start + buffered]);
        self.start += buffered;
        if rest.is_empty() {
            return Ok(());
        }
        if rest.len() >= BUFFER / 2 {
            self.io.read_exact(rest).await.map_err(lost)?;
            return Ok(());
        }
        if !self.fill(rest.len()).await? {
            return Err(cut_short());
        }
        rest.copy_from_slice(&self.buffer[self.start..self.start + rest.len()]);
        self.start += rest.len();
        Ok(())
    }

    /// Skips a payload.
    pub async fn skip(&mut self, mut len: u64) -> Result<()> {
        while len > 0 {
            if self.start == self.end && !self.fill(1).await? {
                return Err(cut_short());
            }
            let step = len.min((self.end - self.start) as u64);
            self.start += step as usize;
            len -= step;
        }
        Ok(())
    }

    /// Buffers at least `len` bytes. Returns false if the stream ends before.
    async fn fill(&mut self, len: usize) -> Result<bool> {
        if self.end - self.start >= len {
            return Ok(true);
        }
        watchdog::moves();
        self.buffer.copy_within(self.start..self.end, 0);
        (self.start, self.end) = (0, self.end - self.start);
        while self.end < len {
            match self.io.read(&mut self.buffer[self.end..]).await.map_err(lost)? {
                0 => return Ok(false),
                n => self.end += n,
            }
        }
        Ok(true)
    }
}

fn lost(e: std::io::Error) -> Error {
    err!(Unavailable, "Socket closed ({e})")
}

fn cut_short() -> Error {
    err!(Unavailable, "Socket closed (in the middle of a frame)")
}

#[cfg(test)]
mod tests {
    use super::super::frame::LinkFrame;
    use super::*;
    use ferroflow_core::{Received, Tensor};

    #[tokio::test]
    async fn frames_survive_any_split_of_the_stream() {
        for piece in [1, 7, 1000, 1 << 20] {
            let big = Tensor::vector(&vec![5u8; 200_000]);
            let small = Tensor::vector(&[1u8, 2, 3]);
            let mut bytes = Vec::new();
            for tensor in [&big, &small, &big] {
                let value = Received::Live(tensor.clone());
                let frame = LinkFrame::value(1, "k", &value).unwrap();
                bytes.extend_from_slice(&frame.head);
                bytes.extend_from_slice(&frame.payload);
            }
            let (near, far) = tokio::io::duplex(piece);
            let writing = tokio::spawn(async move {
                let mut near = near;
                tokio::io::AsyncWriteExt::write_all(&mut near, &bytes).await
            });
            let mut reader = FrameReader::new(Box::new(far));
            for (at, tensor) in [&big, &small, &big].into_iter().enumerate() {
                let head = reader.head().await.unwrap().unwrap();
                let rest = reader.rest(&head).await.unwrap();
                if at == 0 {
                    reader.skip(head.payload).await.unwrap();
                    continue;
                }
                let back = head.tensor(rest.shape).unwrap();
                assert_eq!(reader.tensor(back).await.unwrap().unwrap(), *tensor);
            }
            writing.await.unwrap().unwrap();
            assert_eq!(reader.head().await.unwrap(), None);
        }
    }

    #[tokio::test]
    async fn an_end_inside_a_frame_is_an_error() {
        let frame = LinkFrame::value(1, "k", &Received::Dead).unwrap();
        let mut reader =
            FrameReader::new(Box::new(std::io::Cursor::new(frame.head.slice(..10).to_vec())));
        assert!(reader.head().await.is_err());
    }
}
