//! The features of a batch of examples, by name.

use crate::graph::Graph;
use crate::output::Output;
use ferroflow_core::{DType, Result, bail, err};
use std::collections::BTreeMap;

/// A sparse tensor: `values[i]` at `indices[i]`.
#[derive(Clone, Debug)]
pub struct SparseOutput {
    /// A row for each element.
    pub indices: Output,
    /// The values.
    pub values: Output,
    /// The shape of the whole.
    pub shape: Output,
}

impl SparseOutput {
    /// The example of each element.
    #[track_caller]
    pub(crate) fn rows(&self) -> Output {
        self.indices.slice(&[0, 0], &[-1, 1]).reshape([None])
    }

    /// The same with other values.
    pub(crate) fn with_values(&self, values: Output) -> SparseOutput {
        SparseOutput { values, ..self.clone() }
    }

    /// Only the elements for which `keep` is true.
    #[track_caller]
    pub(crate) fn filtered(&self, keep: &Output) -> SparseOutput {
        let kept = keep.graph().op("Where").input(keep).output().reshape([None]);
        SparseOutput {
            indices: self.indices.gather(&kept),
            values: self.values.gather(&kept),
            shape: self.shape.clone(),
        }
    }
}

/// The values of one feature in a batch.
#[derive(Clone, Debug)]
pub enum Feature {
    /// The same number of values for each example.
    Dense(Output),
    /// Any number of values for each example.
    Sparse(SparseOutput),
}

/// The features of a batch, by name.
///
/// ```
/// # let g = ferroflow_train::Graph::new();
/// use ferroflow_train::feature_column::Features;
/// let features = Features::new().with("x", &g.constant([1.0, 2.0]));
/// assert!(features.tensor("x").is_ok());
/// assert!(features.tensor("y").unwrap_err().message().contains("there are: x"));
/// ```
#[derive(Clone, Debug, Default)]
pub struct Features(BTreeMap<String, Feature>);

impl Features {
    /// No features.
    pub fn new() -> Features {
        Features::default()
    }

    /// Adds a feature with the same number of values for each example.
    #[must_use]
    pub fn with(mut self, name: &str, tensor: &Output) -> Features {
        self.insert(name, Feature::Dense(tensor.clone()));
        self
    }

    /// Adds or replaces a feature.
    pub fn insert(&mut self, name: &str, feature: Feature) {
        self.0.insert(name.to_string(), feature);
    }

    /// Their names, sorted.
    pub fn names(&self) -> Vec<&str> {
        self.0.keys().map(String::as_str).collect()
    }

    /// The feature of this name.
    pub fn get(&self, name: &str) -> Result<&Feature> {
        self.0.get(name).ok_or_else(|| {
            let known = self.names().join(", ");
            err!(InvalidArgument, "feature '{name}' is not in the features; there are: {known}")
        })
    }

    /// A feature with the same number of values for each example.
    pub fn tensor(&self, name: &str) -> Result<&Output> {
        match self.get(name)? {
            Feature::Dense(tensor) => Ok(tensor),
            Feature::Sparse(_) => bail!(
                InvalidArgument,
                "feature '{name}' has another number of values for each example, where a column \
                 needs the same"
            ),
        }
    }

    /// The only feature there is.
    pub fn only(&self) -> Result<&Output> {
        match self.names().as_slice() {
            [one] => self.tensor(one),
            names => bail!(InvalidArgument, "one feature is expected, there are {}", names.len()),
        }
    }

    /// A feature as a sparse tensor: empty strings and -1 count as missing.
    #[track_caller]
    pub(crate) fn sparse(&self, graph: &Graph, name: &str) -> Result<SparseOutput> {
        let tensor = match self.get(name)? {
            Feature::Sparse(sparse) => return Ok(sparse.clone()),
            Feature::Dense(tensor) => as_matrix(tensor),
        };
        let missing = match tensor.dtype() {
            DType::String => tensor.not_equal(""),
            t if t.is_integer() => tensor.not_equal(-1),
            other => bail!(InvalidArgument, "feature '{name}' is {other}, which is no category"),
        };
        let indices = graph.op("Where").input(&missing).output();
        indices.set_shape([None, Some(2)]);
        let values = graph.op("GatherNd").input(&tensor).input(&indices).output();
        let shape = tensor.graph().op("Shape").input(&tensor).attr("out_type", DType::Int64);
        Ok(SparseOutput { indices, values, shape: shape.output() })
    }
}

/// A tensor with a row for each example.
#[track_caller]
pub(crate) fn as_matrix(tensor: &Output) -> Output {
    match tensor.shape().rank() {
        Some(2) => tensor.clone(),
        Some(1) => tensor.expand_dims(1),
        _ => tensor.flatten(),
    }
}
