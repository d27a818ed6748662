//! `Example` records.

use crate::wire::{ExampleValues, encode_example};
use bytes::Bytes;
use std::collections::BTreeMap;

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
