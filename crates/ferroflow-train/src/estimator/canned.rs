//! Canned models: linear and deep models over feature columns.

use super::head::Head;
use super::{Mode, Model, ModelSpec};
use crate::feature_column::{Column, DenseColumn, Features, input_layer, linear_model};
use crate::graph::Graph;
use crate::layers::Dense;
use crate::optimizer::{Adagrad, Ftrl, Optimizer};
use crate::output::Output;
use crate::variable_scope::Reuse;
use ferroflow_core::Result;
use std::marker::PhantomData;
use std::sync::Arc;

type SharedOptimizer = Arc<dyn Optimizer + Send + Sync>;

/// A canned model: a network over feature columns, and a head that interprets its logits.
/// [`LinearClassifier`] and the other canned models are aliases of it.
#[derive(Clone)]
pub struct Canned<B, H> {
    body: B,
    optimizer: SharedOptimizer,
    outputs: usize,
    head: PhantomData<H>,
}

/// Classifies by a weighted sum of features.
///
/// ```
/// use ferroflow_train::estimator::LinearClassifier;
/// use ferroflow_train::feature_column::numeric;
/// let model = LinearClassifier::new(vec![numeric("x").into()], 3); // for ferroflow::estimator
/// ```
pub type LinearClassifier = Canned<Linear, Classes>;
/// Predicts numbers by a weighted sum of features.
///
/// ```
/// use ferroflow_train::Sgd;
/// use ferroflow_train::estimator::LinearRegressor;
/// use ferroflow_train::feature_column::numeric;
/// let model = LinearRegressor::new(vec![numeric("x").into()]).optimizer(Sgd::new(0.1));
/// ```
pub type LinearRegressor = Canned<Linear, Numbers>;
/// Classifies with hidden layers.
///
/// ```
/// use ferroflow_train::estimator::DnnClassifier;
/// use ferroflow_train::feature_column::numeric;
/// let model = DnnClassifier::new(vec![numeric("x").width(4).into()], &[16, 8], 3).dropout(0.1);
/// ```
pub type DnnClassifier = Canned<Deep, Classes>;
/// Predicts numbers with hidden layers.
///
/// ```
/// use ferroflow_train::estimator::DnnRegressor;
/// use ferroflow_train::feature_column::numeric;
/// let model = DnnRegressor::new(vec![numeric("x").into()], &[16]).label_width(2);
/// ```
pub type DnnRegressor = Canned<Deep, Numbers>;

/// The logits select a class.
#[derive(Clone, Copy, Debug)]
pub enum Classes {}

/// The logits are the predicted numbers.
#[derive(Clone, Copy, Debug)]
pub enum Numbers {}

/// The use of a model's logits.
pub trait Purpose: Clone + Send + Sync {
    /// The head of the model.
    #[doc(hidden)]
    fn head(outputs: usize) -> Head;
}

impl Purpose for Classes {
    fn head(outputs: usize) -> Head {
        Head::Classes(outputs)
    }
}

impl Purpose for Numbers {
    fn head(outputs: usize) -> Head {
        Head::Numbers(outputs)
    }
}

/// Maps features to logits.
pub trait Body: Clone + Send + Sync {
    /// Builds the logits.
    #[doc(hidden)]
    fn logits(&self, graph: &Graph, features: &Features, units: usize, mode: Mode) -> Output;
}

/// A weighted sum of features.
#[derive(Clone)]
pub struct Linear {
    columns: Vec<Column>,
}

impl Body for Linear {
    #[track_caller]
    fn logits(&self, graph: &Graph, features: &Features, units: usize, _: Mode) -> Output {
        graph.variable_scope("linear", Reuse::Auto, || {
            linear_model(graph, features, &self.columns, units)
        })
    }
}

/// Hidden layers of units.
#[derive(Clone)]
pub struct Deep {
    columns: Vec<DenseColumn>,
    hidden: Vec<usize>,
    activation: fn(&Output) -> Output,
    dropout: f32,
}

impl Body for Deep {
    #[track_caller]
    fn logits(&self, graph: &Graph, features: &Features, units: usize, mode: Mode) -> Output {
        graph.variable_scope("dnn", Reuse::Auto, || {
            let mut layer = graph.variable_scope("input_from_feature_columns", Reuse::Auto, || {
                input_layer(graph, features, &self.columns)
            });
            for (i, units) in self.hidden.iter().enumerate() {
                let name = format!("hiddenlayer_{i}");
                layer = Dense::new(&name, *units).activation(self.activation).apply(&layer);
                if self.dropout > 0.0 && mode == Mode::Train {
                    layer = layer.dropout(self.dropout);
                }
            }
            Dense::new("logits", units).apply(&layer)
        })
    }
}

impl<B: Body, H: Purpose> Model for Canned<B, H> {
    fn build(
        &self,
        graph: &Graph,
        features: &Features,
        labels: Option<&Output>,
        mode: Mode,
    ) -> Result<ModelSpec> {
        let head = H::head(self.outputs);
        let logits = self.body.logits(graph, features, head.units(), mode);
        graph.check()?;
        head.spec(&logits, labels, mode, &*self.optimizer)
    }
}

impl<B, H> Canned<B, H> {
    fn of(body: B, optimizer: impl Optimizer + Send + Sync + 'static, outputs: usize) -> Self {
        Canned { body, optimizer: Arc::new(optimizer), outputs, head: PhantomData }
    }

    /// The optimizer; the default is Ftrl for linear models and Adagrad for deep ones.
    #[must_use]
    pub fn optimizer(mut self, optimizer: impl Optimizer + Send + Sync + 'static) -> Self {
        self.optimizer = Arc::new(optimizer);
        self
    }
}

impl<B> Canned<B, Numbers> {
    /// Number of predicted values per example.
    #[must_use]
    pub fn label_width(mut self, width: usize) -> Self {
        self.outputs = width.max(1);
        self
    }
}

impl<H> Canned<Linear, H> {
    fn linear(columns: Vec<Column>, outputs: usize) -> Self {
        // TensorFlow's default: the learning rate falls with the number of columns.
        let rate = (1.0 / (columns.len().max(1) as f32).sqrt()).min(0.2);
        Canned::of(Linear { columns }, Ftrl::new(rate), outputs)
    }
}

impl LinearClassifier {
    /// Predicts one of `classes` classes; labels are class numbers.
    pub fn new(columns: Vec<Column>, classes: usize) -> LinearClassifier {
        Canned::linear(columns, classes)
    }
}

impl LinearRegressor {
    /// Predicts one number.
    pub fn new(columns: Vec<Column>) -> LinearRegressor {
        Canned::linear(columns, 1)
    }
}

impl<H> Canned<Deep, H> {
    fn deep(columns: Vec<DenseColumn>, hidden: &[usize], outputs: usize) -> Self {
        let body =
            Deep { columns, hidden: hidden.to_vec(), activation: Output::relu, dropout: 0.0 };
        Canned::of(body, Adagrad::new(0.05), outputs)
    }

    /// Activation of the hidden layers; the default is `relu`.
    #[must_use]
    pub fn activation(mut self, activation: fn(&Output) -> Output) -> Self {
        self.body.activation = activation;
        self
    }

    /// Dropout rate of the hidden layers in training.
    #[must_use]
    pub fn dropout(mut self, rate: f32) -> Self {
        self.body.dropout = rate;
        self
    }
}

impl DnnClassifier {
    /// Predicts one of `classes` classes with hidden layers of these sizes; labels are class
    /// numbers.
    pub fn new(columns: Vec<DenseColumn>, hidden: &[usize], classes: usize) -> DnnClassifier {
        Canned::deep(columns, hidden, classes)
    }
}

impl DnnRegressor {
    /// Predicts one number with hidden layers of these sizes.
    pub fn new(columns: Vec<DenseColumn>, hidden: &[usize]) -> DnnRegressor {
        Canned::deep(columns, hidden, 1)
    }
}
