//! The models to serve, their versions, and the batching of requests.

use crate::wire;
use ferroflow_core::{Result, ensure, err};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The versions of a model that are served.
#[derive(Clone, Debug, PartialEq)]
pub enum VersionPolicy {
    /// The highest numbers.
    Latest(usize),
    /// All that exist.
    All,
    /// These, if they exist.
    Specific(BTreeSet<i64>),
}

impl Default for VersionPolicy {
    fn default() -> VersionPolicy {
        VersionPolicy::Latest(1)
    }
}

/// A model to serve.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelSource {
    /// The name in requests.
    pub name: String,
    /// The folder with a subfolder for each version, or a SavedModel, which is version 1.
    pub path: PathBuf,
    /// The versions to serve.
    pub versions: VersionPolicy,
    /// Names of versions, such as `canary`.
    pub labels: BTreeMap<String, i64>,
}

impl ModelSource {
    /// The latest version of the model at `path`.
    pub fn new(name: impl Into<String>, path: impl Into<PathBuf>) -> ModelSource {
        let (versions, labels) = (VersionPolicy::default(), BTreeMap::new());
        ModelSource { name: name.into(), path: path.into(), versions, labels }
    }

    /// Reads a file in the text format of TensorFlow Serving's `ModelServerConfig`.
    pub fn read_config(file: &Path) -> Result<Vec<ModelSource>> {
        wire::models_from_text(&read_text(file)?).map_err(|e| e.context(file.display()))
    }
}

/// Refuses models with missing or duplicate names, and models without a path.
pub(crate) fn check(models: &[ModelSource]) -> Result<()> {
    let mut names = BTreeSet::new();
    for model in models {
        ensure!(!model.name.is_empty(), InvalidArgument, "a model has no name");
        ensure!(
            !model.name.contains(['/', ':']),
            InvalidArgument,
            "the name of model {:?} contains '/' or ':', which REST addresses cannot",
            model.name
        );
        ensure!(
            names.insert(&model.name),
            InvalidArgument,
            "two models have the name {:?}",
            model.name
        );
        let has_path = !model.path.as_os_str().is_empty();
        ensure!(has_path, InvalidArgument, "model {:?} has no base path", model.name);
    }
    Ok(())
}

/// How requests of the same kind are joined to one step.
#[derive(Clone, Debug, PartialEq)]
pub struct BatchingOptions {
    /// The rows of one step.
    pub max_batch_size: usize,
    /// How long the first request of a batch waits for others. Requests wait longer while all
    /// threads are busy.
    pub timeout: Duration,
    /// The most waiting batches for each model. A request that would start one more is refused.
    pub max_enqueued_batches: usize,
    /// The most running batches for each model.
    pub threads: usize,
    /// A batch is padded to the next of these sizes. Sorted; empty for any size.
    pub allowed_batch_sizes: Vec<usize>,
    /// Joins requests whose shapes differ in other dimensions, and pads the smaller ones.
    pub pad_variable_length_inputs: bool,
    /// Splits requests of more rows than a batch. Otherwise they are refused.
    pub split_large_batches: bool,
}

impl Default for BatchingOptions {
    /// TensorFlow Serving's defaults.
    fn default() -> BatchingOptions {
        BatchingOptions {
            max_batch_size: 1000,
            timeout: Duration::ZERO,
            max_enqueued_batches: 10,
            threads: std::thread::available_parallelism().map_or(1, usize::from),
            allowed_batch_sizes: Vec::new(),
            pad_variable_length_inputs: false,
            split_large_batches: false,
        }
    }
}

impl BatchingOptions {
    /// Reads a file in the text format of TensorFlow Serving's `BatchingParameters`.
    pub fn read_config(file: &Path) -> Result<BatchingOptions> {
        let options = wire::batching_from_text(&read_text(file)?);
        options.and_then(BatchingOptions::checked).map_err(|e| e.context(file.display()))
    }

    fn checked(self) -> Result<BatchingOptions> {
        ensure!(self.max_batch_size > 0, InvalidArgument, "max_batch_size must be positive");
        ensure!(self.threads > 0, InvalidArgument, "num_batch_threads must be positive");
        ensure!(
            self.max_enqueued_batches > 0,
            InvalidArgument,
            "max_enqueued_batches must be positive"
        );
        let sizes = &self.allowed_batch_sizes;
        ensure!(
            sizes.windows(2).all(|pair| pair[0] < pair[1]),
            InvalidArgument,
            "allowed_batch_sizes must increase: {sizes:?}"
        );
        if let Some(&last) = sizes.last() {
            ensure!(
                last == self.max_batch_size,
                InvalidArgument,
                "the last of allowed_batch_sizes is {last}, but max_batch_size is {}",
                self.max_batch_size
            );
        }
        Ok(self)
    }

    /// The rows that a batch of `rows` rows is padded to.
    pub(crate) fn padded(&self, rows: usize) -> usize {
        let larger = self.allowed_batch_sizes.iter().copied().find(|&size| size >= rows);
        // Without a row there is nothing to copy.
        larger.filter(|_| rows > 0).unwrap_or(rows)
    }
}

fn read_text(file: &Path) -> Result<String> {
    std::fs::read_to_string(file).map_err(|e| err!(NotFound, "cannot read {}: {e}", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_are_read_from_text() {
        let text = r#"
            # Two models.
            model_config_list {
              config {
                name: "half_plus_two" base_path: "/models/half_plus_two"
                model_platform: "tensorflow"
                model_version_policy { specific { versions: 3 versions: 5 } }
                version_labels { key: "stable" value: 3 }
                version_labels { key: 'canary' value: 5 }
              }
              config { name: "other", base_path: "/models/other"
                       model_version_policy: { latest: { num_versions: 2 } } }
            }"#;
        let models = wire::models_from_text(text).unwrap();
        assert_eq!(models.len(), 2);
        assert_eq!(models[0].versions, VersionPolicy::Specific([3, 5].into()));
        assert_eq!(models[0].labels["canary"], 5);
        assert_eq!(models[1].versions, VersionPolicy::Latest(2));
        check(&models).unwrap();
        let twice = [models[0].clone(), models[0].clone()];
        assert!(check(&twice).unwrap_err().message().contains("two models"));
    }

    #[test]
    fn other_configurations_are_refused() {
        let unknown = "model_config_list { config { nam: 'x' } }";
        assert!(wire::models_from_text(unknown).unwrap_err().message().contains("nam"));
        let other = "model_config_list { config { name: 'x' model_platform: 'custom' } }";
        assert!(wire::models_from_text(other).unwrap_err().message().contains("custom"));
        let older = "model_config_list { config { name: 'x' model_type: TENSORFLOW } }";
        assert_eq!(wire::models_from_text(older).unwrap().len(), 1);
    }

    #[test]
    fn batching_parameters_are_read_from_text() {
        let text = "max_batch_size { value: 8 } batch_timeout_micros { value: 5000 }
            max_enqueued_batches { value: 4 } num_batch_threads { value: 2 }
            allowed_batch_sizes: 4 allowed_batch_sizes: 8 pad_variable_length_inputs: true";
        let options = wire::batching_from_text(text).unwrap().checked().unwrap();
        assert_eq!((options.max_batch_size, options.threads), (8, 2));
        assert_eq!(options.timeout, Duration::from_millis(5));
        assert!(options.pad_variable_length_inputs && !options.split_large_batches);
        assert_eq!([0, 1, 4, 5, 9].map(|rows| options.padded(rows)), [0, 4, 4, 8, 9]);
        for bad in [
            "max_batch_size { value: 0 }",
            "allowed_batch_sizes: [4, 2]",
            "allowed_batch_sizes: 4 max_batch_size { value: 8 }",
            "num_batch_threads { value: -1 }",
        ] {
            let options = wire::batching_from_text(bad).and_then(BatchingOptions::checked);
            assert!(options.is_err(), "{bad}");
        }
    }
}
