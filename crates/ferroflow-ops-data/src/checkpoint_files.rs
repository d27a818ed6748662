//! Checkpoint files for programs that look into them without running a graph.

use crate::io::bundle::BundleReader;
use ferroflow_core::{DType, Result, Shape, Tensor};

/// A checkpoint of TensorFlow's V2 format, open for reading.
pub struct CheckpointFile(BundleReader);

impl CheckpointFile {
    /// Whether there is a checkpoint of this prefix.
    pub fn is_there(prefix: &str) -> bool {
        BundleReader::is_there(prefix)
    }

    pub fn open(prefix: &str) -> Result<CheckpointFile> {
        BundleReader::open(prefix).map(CheckpointFile)
    }

    /// The names of its tensors, sorted. A partitioned tensor is listed once, without its parts.
    pub fn names(&self) -> Vec<String> {
        self.0.names()
    }

    /// Type and shape of a tensor.
    pub fn find(&self, name: &str) -> Result<(DType, Shape)> {
        self.0.find(name).map(|(dtype, shape)| (dtype, shape.clone()))
    }

    /// The value of a tensor.
    pub fn read(&self, name: &str) -> Result<Tensor> {
        self.0.read(name)
    }
}
