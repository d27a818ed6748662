//! Input of estimators: batches of examples.

use crate::dataset::Dataset;
use crate::feature_column::{FeatureSpec, Features, parse_examples};
use crate::graph::{Graph, keys};
use crate::output::Output;
use ferroflow_core::{DType, Tensor, err};
use std::collections::BTreeMap;

/// Tensors that hold the next batch of examples in every step.
#[derive(Clone, Debug)]
pub struct Batch {
    /// The features.
    pub features: Features,
    /// The labels, for training and evaluation.
    pub labels: Option<Output>,
}

impl Batch {
    /// Features without labels.
    pub fn new(features: Features) -> Batch {
        Batch { features, labels: None }
    }

    /// The same with labels.
    #[must_use]
    pub fn with_labels(mut self, labels: &Output) -> Batch {
        self.labels = Some(labels.clone());
        self
    }

    /// The elements of a dataset, whose tensors have these names. The tensor named `label` becomes
    /// the labels. The session initializes the iterator when it opens.
    #[track_caller]
    pub fn from_dataset(dataset: &Dataset, names: &[&str], label: Option<&str>) -> Batch {
        let g = dataset.graph();
        let iterator = dataset.iterator();
        g.add_operation_to_collection(keys::TABLE_INITIALIZERS, &iterator.initializer);
        let next = iterator.next();
        if next.len() != names.len() && g.check().is_ok() {
            g.or_fail::<()>(Err(err!(
                InvalidArgument,
                "{} names for elements of {} tensors",
                names.len(),
                next.len()
            )));
        }
        let mut batch = Batch::new(Features::new());
        for (name, tensor) in names.iter().zip(&next) {
            match Some(*name) == label {
                true => batch.labels = Some(tensor.clone()),
                false => batch.features = batch.features.with(name, tensor),
            }
        }
        batch
    }
}

/// Examples in memory: one tensor per feature, with one row per example.
#[derive(Clone, Debug)]
pub struct ArrayInput {
    features: Vec<(String, Tensor)>,
    labels: Option<Tensor>,
    batch: i64,
    epochs: Option<i64>,
    shuffle: bool,
}

impl ArrayInput {
    /// Batches of 128, one epoch, in the given order.
    pub fn new(features: &[(&str, Tensor)]) -> ArrayInput {
        let features = features.iter().map(|(name, t)| (name.to_string(), t.clone())).collect();
        ArrayInput { features, labels: None, batch: 128, epochs: Some(1), shuffle: false }
    }

    /// Sets the labels.
    #[must_use]
    pub fn labels(mut self, labels: Tensor) -> ArrayInput {
        self.labels = Some(labels);
        self
    }

    /// Batch size.
    #[must_use]
    pub fn batch(mut self, size: i64) -> ArrayInput {
        self.batch = size;
        self
    }

    /// Number of epochs; `None` repeats forever.
    #[must_use]
    pub fn epochs(mut self, epochs: Option<i64>) -> ArrayInput {
        self.epochs = epochs;
        self
    }

    /// Shuffles the examples in every epoch.
    #[must_use]
    pub fn shuffled(mut self) -> ArrayInput {
        self.shuffle = true;
        self
    }

    /// The batches, as ops of a graph.
    #[track_caller]
    pub fn batches(&self, g: &Graph) -> Batch {
        let mut names: Vec<&str> = self.features.iter().map(|(name, _)| name.as_str()).collect();
        let mut tensors: Vec<Output> = self.features.iter().map(|(_, t)| g.constant(t)).collect();
        const LABEL: &str = "/label";
        if let Some(labels) = &self.labels {
            names.push(LABEL);
            tensors.push(g.constant(labels));
        }
        let mut data = g.dataset(&tensors);
        if self.shuffle {
            let rows = self.features.first().and_then(|(_, t)| t.shape().first().copied());
            data = data.shuffle(rows.unwrap_or(1).max(1) as i64, None);
        }
        let data = data.repeat(self.epochs).batch(self.batch).prefetch(1);
        Batch::from_dataset(&data, &names, Some(LABEL))
    }
}

/// Inputs of an exported model: the fed tensors, and the features made from them.
#[derive(Clone, Debug)]
pub struct ServingInput {
    /// The features.
    pub features: Features,
    /// The fed tensors, by name.
    pub receivers: BTreeMap<String, Output>,
    /// Whether they are serialized examples.
    pub(crate) has_examples: bool,
}

impl ServingInput {
    /// The features themselves, fed as they are: names, types and shapes, with `None` for the
    /// batch.
    #[track_caller]
    pub fn raw(g: &Graph, tensors: &[(&str, DType, &[Option<usize>])]) -> ServingInput {
        let (mut features, mut receivers) = (Features::new(), BTreeMap::new());
        for (name, dtype, shape) in tensors {
            let fed = g.placeholder_of(*dtype, name, *shape);
            features = features.with(name, &fed);
            receivers.insert(name.to_string(), fed);
        }
        ServingInput { features, receivers, has_examples: false }
    }

    /// Serialized `Example` records, fed as `examples`. [`crate::feature_column::parse_spec`] makes
    /// the specification from columns.
    #[track_caller]
    pub fn examples(g: &Graph, spec: &BTreeMap<String, FeatureSpec>) -> ServingInput {
        let fed = g.placeholder_of(DType::String, "input_example_tensor", [None]);
        let features = parse_examples(&fed, spec);
        let receivers = BTreeMap::from([("examples".to_string(), fed)]);
        ServingInput { features, receivers, has_examples: true }
    }
}
