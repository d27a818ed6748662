//! TFRecord files: each record with its length, and a checksum of both.

use crate::file::file_error;
use crate::prelude::*;
use ferroflow_core::files::OpenFile;
use flate2::write::{GzEncoder, ZlibEncoder};
use std::io::{BufWriter, Write};
use std::path::Path;

/// How the bytes of a file are compressed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RecordCompression {
    /// Not compressed.
    None,
    /// Compressed by zlib.
    Zlib,
    /// Compressed by gzip.
    Gzip,
}

impl RecordCompression {
    /// The compression that TensorFlow calls `name`: `""`, `"ZLIB"` or `"GZIP"`.
    pub fn from_name(name: &str) -> Result<RecordCompression> {
        Ok(match name {
            "" => RecordCompression::None,
            "ZLIB" => RecordCompression::Zlib,
            "GZIP" => RecordCompression::Gzip,
            _ => bail!(InvalidArgument, "Unsupported compression_type: {name}"),
        })
    }
}

/// Writes a TFRecord file.
///
/// ```
/// use ferroflow_op_kit::tfrecord::RecordWriter;
/// let path = std::env::temp_dir().join(format!("ferroflow-{}.tfrecord", std::process::id()));
/// let mut file = RecordWriter::create(&path)?;
/// file.write(b"one record")?;
/// file.finish()?;
/// # std::fs::remove_file(&path).unwrap();
/// # Ok::<(), ferroflow_core::Error>(())
/// ```
pub struct RecordWriter {
    name: String,
    to: Box<dyn Finish>,
}

/// The output, and how to finish it.
trait Finish: Write + Send {
    fn finish(self: Box<Self>) -> std::io::Result<()>;
}

impl Finish for BufWriter<OpenFile> {
    fn finish(mut self: Box<Self>) -> std::io::Result<()> {
        self.flush()
    }
}

impl Finish for ZlibEncoder<BufWriter<OpenFile>> {
    fn finish(self: Box<Self>) -> std::io::Result<()> {
        ZlibEncoder::finish(*self)?.flush()
    }
}

impl Finish for GzEncoder<BufWriter<OpenFile>> {
    fn finish(self: Box<Self>) -> std::io::Result<()> {
        GzEncoder::finish(*self)?.flush()
    }
}

impl RecordWriter {
    /// Starts a file that is not compressed. An existing file is replaced.
    pub fn create(path: impl AsRef<Path>) -> Result<RecordWriter> {
        RecordWriter::create_compressed(path, RecordCompression::None)
    }

    /// Starts a file. An existing file is replaced.
    pub fn create_compressed(
        path: impl AsRef<Path>,
        compression: RecordCompression,
    ) -> Result<RecordWriter> {
        let path = path.as_ref();
        let name = path.display().to_string();
        let file = ferroflow_core::files::create(path).map_err(|e| file_error(&name, &e))?;
        let file = BufWriter::with_capacity(256 << 10, file);
        let to: Box<dyn Finish> = match compression {
            RecordCompression::None => Box::new(file),
            RecordCompression::Zlib => Box::new(ZlibEncoder::new(file, Default::default())),
            RecordCompression::Gzip => Box::new(GzEncoder::new(file, Default::default())),
        };
        Ok(RecordWriter { name, to })
    }

    /// Adds a record.
    pub fn write(&mut self, record: &[u8]) -> Result<()> {
        write_record(&mut self.to, record).map_err(|e| file_error(&self.name, &e))
    }

    /// Writes buffered records to the file. Without this call, the end of the file may be missing.
    pub fn finish(self) -> Result<()> {
        self.to.finish().map_err(|e| file_error(&self.name, &e))
    }
}

/// Writes one record as TFRecord files hold it: length, checksum, bytes, checksum.
pub fn write_record(to: &mut impl Write, record: &[u8]) -> std::io::Result<()> {
    let length = (record.len() as u64).to_le_bytes();
    to.write_all(&length)?;
    to.write_all(&masked_crc(&length).to_le_bytes())?;
    to.write_all(record)?;
    to.write_all(&masked_crc(record).to_le_bytes())
}

/// A checksum of `bytes`, masked so that it differs from checksums that the bytes may contain.
pub fn masked_crc(bytes: &[u8]) -> u32 {
    crc32c::crc32c(bytes).rotate_right(15).wrapping_add(0xa282_ead8)
}
