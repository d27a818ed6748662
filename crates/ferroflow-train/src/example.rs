//! `Example` records, and the TFRecord files that hold them.

use crate::events::{file_error, write_record};
use crate::wire::{ExampleValues, encode_example};
use bytes::Bytes;
use ferroflow_core::Result;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

/// One example: features by name, each a list of numbers or texts.
///
/// ```
/// use ferroflow_train::Example;
/// let record = Example::new().floats("x", &[1.0, 2.0]).texts("city", &["Rome"]).encode();
/// assert!(!record.is_empty());
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Example(BTreeMap<String, ExampleValues>);

impl Example {
    /// An example without features.
    pub fn new() -> Example {
        Example::default()
    }

    fn with(mut self, name: &str, values: ExampleValues) -> Example {
        self.0.insert(name.into(), values);
        self
    }

    /// Adds a feature of floats.
    #[must_use]
    pub fn floats(self, name: &str, values: &[f32]) -> Example {
        self.with(name, ExampleValues::Floats(values.to_vec()))
    }

    /// Adds a feature of integers.
    #[must_use]
    pub fn ints(self, name: &str, values: &[i64]) -> Example {
        self.with(name, ExampleValues::Ints(values.to_vec()))
    }

    /// Adds a feature of byte strings.
    #[must_use]
    pub fn texts(self, name: &str, values: &[impl AsRef<[u8]>]) -> Example {
        let copy = |v: &_| Bytes::copy_from_slice(AsRef::<[u8]>::as_ref(v));
        self.with(name, ExampleValues::Bytes(values.iter().map(copy).collect()))
    }

    /// The record, as TensorFlow's `parse_example` reads it.
    pub fn encode(&self) -> Vec<u8> {
        encode_example(&self.0)
    }
}

/// Writes a TFRecord file.
///
/// ```
/// use ferroflow_train::{Example, RecordWriter};
/// let path = std::env::temp_dir().join(format!("ferroflow-{}.tfrecord", std::process::id()));
/// let mut file = RecordWriter::create(&path)?;
/// file.write(&Example::new().ints("label", &[7]).encode())?;
/// file.finish()?;
/// # std::fs::remove_file(&path).unwrap();
/// # Ok::<(), ferroflow_core::Error>(())
/// ```
pub struct RecordWriter {
    path: PathBuf,
    file: BufWriter<File>,
}

impl RecordWriter {
    /// Creates a file, or replaces an existing one.
    pub fn create(path: impl AsRef<Path>) -> Result<RecordWriter> {
        let path = path.as_ref().to_path_buf();
        let file = File::create(&path).map_err(|e| file_error(&path, &e))?;
        Ok(RecordWriter { path, file: BufWriter::new(file) })
    }

    /// Adds a record.
    pub fn write(&mut self, record: &[u8]) -> Result<()> {
        write_record(&mut self.file, record).map_err(|e| file_error(&self.path, &e))
    }

    /// Flushes all records to the file.
    pub fn finish(mut self) -> Result<()> {
        self.file.flush().map_err(|e| file_error(&self.path, &e))
    }
}
