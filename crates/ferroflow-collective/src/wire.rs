//! Frames on the control connections, and the fields in them.

use ferroflow_core::{Result, err};
use std::io::{ErrorKind, Read, Write};

/// Most bytes of a frame. A peer that announces more is not a Ferroflow rank.
const LONGEST: u32 = 64 << 20;

/// Sends one frame.
pub(crate) fn write_frame(to: &mut impl Write, body: &[u8]) -> std::io::Result<()> {
    let mut frame = Vec::with_capacity(4 + body.len());
    frame.extend_from_slice(&(body.len() as u32).to_le_bytes());
    frame.extend_from_slice(body);
    to.write_all(&frame)
}

/// Reads the next frame. `None` if the connection was closed between frames.
pub(crate) fn read_frame(from: &mut impl Read) -> std::io::Result<Option<Vec<u8>>> {
    read_frame_within(from, LONGEST)
}

/// Reads the next frame of at most `longest` bytes.
pub(crate) fn read_frame_within(
    from: &mut impl Read,
    longest: u32,
) -> std::io::Result<Option<Vec<u8>>> {
    let mut len = [0; 4];
    loop {
        match from.read(&mut len[..1]) {
            Ok(0) => return Ok(None),
            Ok(_) => break,
            // Retry: a read with a timeout is interrupted when a stopped process continues.
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    from.read_exact(&mut len[1..])?;
    let len = u32::from_le_bytes(len);
    if len > longest {
        return Err(std::io::Error::new(ErrorKind::InvalidData, "a frame of absurd length"));
    }
    // Grow the buffer as bytes arrive, so that a false length costs no memory.
    let mut body = Vec::new();
    from.take(u64::from(len)).read_to_end(&mut body)?;
    if body.len() < len as usize {
        return Err(ErrorKind::UnexpectedEof.into());
    }
    Ok(Some(body))
}

/// Writes the fields of a frame.
#[derive(Default)]
pub(crate) struct FieldWriter(pub Vec<u8>);

impl FieldWriter {
    pub(crate) fn u8(&mut self, x: u8) -> &mut FieldWriter {
        self.0.push(x);
        self
    }
    pub(crate) fn u32(&mut self, x: u32) -> &mut FieldWriter {
        self.0.extend_from_slice(&x.to_le_bytes());
        self
    }
    pub(crate) fn u64(&mut self, x: u64) -> &mut FieldWriter {
        self.0.extend_from_slice(&x.to_le_bytes());
        self
    }
    pub(crate) fn text(&mut self, x: &str) -> &mut FieldWriter {
        self.u32(x.len() as u32);
        self.0.extend_from_slice(x.as_bytes());
        self
    }
}

/// Reads the fields of a frame. A missing or malformed field is an error.
pub(crate) struct FieldReader<'a>(pub &'a [u8]);

impl<'a> FieldReader<'a> {
    fn take(&mut self, n: usize) -> Result<&'a [u8]> {
        let (taken, rest) = self
            .0
            .split_at_checked(n)
            .ok_or_else(|| err!(DataLoss, "a message between ranks ends too early"))?;
        self.0 = rest;
        Ok(taken)
    }
    pub(crate) fn u8(&mut self) -> Result<u8> {
        Ok(self.take(1)?[0])
    }
    pub(crate) fn u32(&mut self) -> Result<u32> {
        let mut x = [0; 4];
        x.copy_from_slice(self.take(4)?);
        Ok(u32::from_le_bytes(x))
    }
    pub(crate) fn u64(&mut self) -> Result<u64> {
        let mut x = [0; 8];
        x.copy_from_slice(self.take(8)?);
        Ok(u64::from_le_bytes(x))
    }
    pub(crate) fn text(&mut self) -> Result<String> {
        let n = self.u32()? as usize;
        let bytes = self.take(n)?;
        String::from_utf8(bytes.to_vec())
            .map_err(|_| err!(DataLoss, "a name in a message between ranks is not text"))
    }
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_read_as_written_and_a_short_frame_is_an_error() {
        let mut w = FieldWriter::default();
        w.u8(3).u32(70_000).u64(1 << 50).text("conv1/bias");
        let mut r = FieldReader(&w.0);
        assert_eq!((r.u8().unwrap(), r.u32().unwrap(), r.u64().unwrap()), (3, 70_000, 1 << 50));
        assert_eq!(r.text().unwrap(), "conv1/bias");
        assert!(r.is_empty() && r.u8().is_err());
        assert!(FieldReader(&[255, 255, 255, 255, b'x']).text().is_err());
    }

    #[test]
    fn frames_that_are_too_long_or_cut_off_are_errors() {
        assert!(read_frame(&mut &[0xFF; 4][..]).is_err());
        assert!(read_frame(&mut &[9, 0, 0, 0, 1, 2][..]).is_err());
        assert!(read_frame(&mut &[][..]).unwrap().is_none());
        let mut bytes = Vec::new();
        write_frame(&mut bytes, b"abc").unwrap();
        assert_eq!(read_frame(&mut &bytes[..]).unwrap().unwrap(), b"abc");
    }

    #[test]
    fn an_interrupted_read_is_retried() {
        /// A connection on which every other read is interrupted.
        struct Interrupted<'a>(&'a [u8], bool);
        impl Read for Interrupted<'_> {
            fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
                self.1 = !self.1;
                if self.1 { Err(ErrorKind::Interrupted.into()) } else { self.0.read(into) }
            }
        }
        let mut bytes = Vec::new();
        write_frame(&mut bytes, b"abc").unwrap();
        let mut from = Interrupted(&bytes, false);
        assert_eq!(read_frame(&mut from).unwrap().unwrap(), b"abc");
        assert!(read_frame(&mut from).unwrap().is_none());
    }
}
