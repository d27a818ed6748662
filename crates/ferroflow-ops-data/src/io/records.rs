//! Reading files of records: lines, records of a fixed length, TFRecord.

use crate::prelude::*;
use bytes::Bytes;
use ferroflow_core::{files, limits};
use ferroflow_op_kit::file::{file_error, local};
use ferroflow_op_kit::tfrecord::{RecordCompression, masked_crc};
use flate2::bufread::{GzDecoder, ZlibDecoder};
use std::io::{BufRead, BufReader, Read};

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
        let most = limits().record;
        let mut line = Vec::new();
        let mut from = self.from.by_ref().take((most.most as u64).saturating_add(1));
        let n = from.read_until(b'\n', &mut line).map_err(|e| file_error(&self.name, &e))?;
        most.admit(n, format_args!("the reader of {}", self.name))?;
        self.at += n as u64;
        Ok((n > 0).then_some(line))
    }

    /// Up to `n` bytes: fewer only at the end of the file.
    pub fn bytes(&mut self, n: u64) -> Result<Vec<u8>> {
        let mut out = Vec::new();
        let most = limits().record;
        let n = std::cmp::min(n, (most.most as u64).saturating_add(1));
        let read = self.from.by_ref().take(n).read_to_end(&mut out);
        read.map_err(|e| file_error(&self.name, &e))?;
        most.admit(out.len(), format_args!("the reader of {}", self.name))?;
        self.at += out.len() as u64;
        Ok(out)
    }

    /// Skips the next `n` bytes, or as many as there are.
    pub fn skip(&mut self, n: u64) -> Result<()> {
        let read = std::io::copy(&mut self.from.by_ref().take(n), &mut std::io::sink());
        self.at += read.map_err(|e| file_error(&self.name, &e))?;
        Ok(())
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
