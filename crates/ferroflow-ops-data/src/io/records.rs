//! Reading files of records: lines, records of a fixed length, TFRecord.

use crate::prelude::*;
use bytes::Bytes;
use ferroflow_core::{Reservation, files, limits};
use ferroflow_op_kit::file::{file_error, local};
use ferroflow_op_kit::tfrecord::{RecordCompression, masked_crc};
use flate2::bufread::{GzDecoder, ZlibDecoder};
use std::io::{self, BufRead, BufReader, Read, Take};

/// Bytes that are read before they count.
const PIECE: u64 = 1 << 20;
/// Bytes that are skipped without a pause.
const SKIPPED_PIECE: u64 = 256 << 10;

/// A file being read from front to back.
pub(crate) struct Input {
    name: String,
    from: Box<dyn BufRead + Send>,
    /// Bytes read so far.
    at: u64,
}

impl Input {
    pub fn open(name: &str, compression: RecordCompression) -> Result<Input> {
        let file = files::open(local(name.as_bytes())).map_err(|e| file_error(name, &e))?;
        let is_dir = file.metadata().is_ok_and(|m| m.is_dir());
        ensure!(!is_dir, FailedPrecondition, "{name}; Is a directory");
        Ok(Input::new(name, BufReader::with_capacity(256 << 10, file), compression))
    }

    /// Reads from `file`, which errors call `name`.
    pub fn new(
        name: &str,
        file: impl BufRead + Send + 'static,
        compression: RecordCompression,
    ) -> Input {
        let from: Box<dyn BufRead + Send> = match compression {
            RecordCompression::None => Box::new(file),
            RecordCompression::Zlib => Box::new(BufReader::new(ZlibDecoder::new(file))),
            RecordCompression::Gzip => Box::new(BufReader::new(GzDecoder::new(file))),
        };
        Input { name: name.into(), from, at: 0 }
    }

    /// The next line without its end; `None` behind the last one. Carriage returns are dropped.
    pub fn line(&mut self) -> Result<Option<Bytes>> {
        let Some(mut line) = self.raw_line()? else { return Ok(None) };
        line.retain(|b| !matches!(b, b'\r' | b'\n'));
        Ok(Some(Bytes::from(line)))
    }

    /// The next line with its line end, unchanged; `None` after the last one.
    pub fn raw_line(&mut self) -> Result<Option<Vec<u8>>> {
        let most = (limits().record.most as u64).saturating_add(1);
        let line = self.in_pieces(most, |from, line| {
            from.read_until(b'\n', line)?;
            Ok(line.last() == Some(&b'\n'))
        })?;
        Ok((!line.is_empty()).then_some(line))
    }

    /// Up to `n` bytes: fewer only at the end of the file.
    pub fn bytes(&mut self, n: u64) -> Result<Vec<u8>> {
        let most = (limits().record.most as u64).saturating_add(1);
        self.in_pieces(Ord::min(n, most), |from, out| from.read_to_end(out).map(|_| false))
    }

    /// Up to `most` bytes, read piece by piece, because compressed data may expand to very many.
    /// They count against the limits while they are read. `read` returns whether its piece was the
    /// last one.
    fn in_pieces(
        &mut self,
        most: u64,
        read: impl Fn(&mut Take<&mut Box<dyn BufRead + Send>>, &mut Vec<u8>) -> io::Result<bool>,
    ) -> Result<Vec<u8>> {
        let (mut out, mut counted) = (Vec::new(), Reservation::default());
        loop {
            let before = out.len() as u64;
            let piece = Ord::min(PIECE, most - before);
            let mut from = self.from.by_ref().take(piece);
            let is_last = read(&mut from, &mut out).map_err(|e| file_error(&self.name, &e))?;
            let read = out.len() as u64 - before;
            if is_last || read < piece || before + read == most {
                break;
            }
            // A vector that grows has room for twice as much.
            counted.grow(2 * read as usize)?;
        }
        limits().record.admit(out.len(), format_args!("the reader of {}", self.name))?;
        self.at += out.len() as u64;
        Ok(out)
    }

    /// Skips one piece of the next `n` bytes. Returns how many of them are left: none at the end of
    /// the file. The caller checks between two pieces whether it is cancelled.
    pub fn skip_piece(&mut self, n: u64) -> Result<u64> {
        let piece = Ord::min(n, SKIPPED_PIECE);
        let skipped = io::copy(&mut self.from.by_ref().take(piece), &mut io::sink());
        let skipped = skipped.map_err(|e| file_error(&self.name, &e))?;
        self.at += skipped;
        Ok(if skipped < piece { 0 } else { n - skipped })
    }

    /// The next TFRecord, and where it begins; `None` behind the last one.
    pub fn record(&mut self) -> Result<Option<(u64, Bytes)>> {
        let start = self.at;
        let head = self.bytes(12)?;
        if head.is_empty() {
            return Ok(None);
        }
        let truncated = || err!(DataLoss, "truncated record at {start}");
        let (len, crc) = head.split_first_chunk::<8>().ok_or_else(truncated)?;
        let crc = <[u8; 4]>::try_from(crc).map_err(|_| truncated())?;
        ensure_crc(len, crc, start)?;
        let len = u64::from_le_bytes(*len);
        let data = self.bytes(len)?;
        let foot = self.bytes(4)?;
        let (true, Ok(foot)) = (data.len() as u64 == len, <[u8; 4]>::try_from(&foot[..])) else {
            bail!(
                DataLoss,
                "truncated record at {start}' failed with Read less bytes than requested"
            );
        };
        ensure_crc(&data, foot, start)?;
        Ok(Some((start, Bytes::from(data))))
    }
}

fn ensure_crc(bytes: &[u8], stored: [u8; 4], at: u64) -> Result<()> {
    ensure!(stored == masked_crc(bytes).to_le_bytes(), DataLoss, "corrupted record at {at}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use ferroflow_core::{Limit, Limits, MemoryOwner};
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use std::io::Write;

    /// A compressed line of this many bytes.
    fn compressed(len: usize) -> Vec<u8> {
        let mut to = GzEncoder::new(Vec::new(), Compression::default());
        (0..len >> 16).for_each(|_| to.write_all(&[b'a'; 1 << 16]).unwrap());
        to.write_all(b"\nnext\n").unwrap();
        to.finish().unwrap()
    }

    fn input(len: usize) -> Input {
        let file = io::Cursor::new(compressed(len));
        Input::new("test", file, RecordCompression::Gzip)
    }

    #[test]
    fn lines_and_bytes_longer_than_a_piece_are_whole() {
        let mut lines = input(3 << 20);
        assert_eq!(lines.line().unwrap().unwrap().len(), 3 << 20);
        assert_eq!(lines.line().unwrap().unwrap(), "next");
        assert_eq!(lines.line().unwrap(), None);
        let mut bytes = input(3 << 20);
        assert_eq!(bytes.bytes(2 << 20).unwrap().len(), 2 << 20);
        assert_eq!(bytes.bytes((1 << 20) + 1).unwrap().last(), Some(&b'\n'));
        assert_eq!(bytes.bytes(1 << 30).unwrap(), b"next\n");
    }

    #[test]
    fn a_compressed_line_counts_while_it_is_read() {
        let limit = Limit { most: 8 << 20, ..Limits::DEFAULT.session_memory };
        let session = MemoryOwner::new("session 7", limit);
        let e = session.run(|| input(64 << 20).line()).unwrap_err();
        assert_eq!(e.code(), Code::ResourceExhausted);
        assert!(session.live() < 1 << 20);
        assert!(session.run(|| input(2 << 20).line()).is_ok());
    }
}
