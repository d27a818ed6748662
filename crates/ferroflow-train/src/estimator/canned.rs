//! Canned models: linear and deep models over feature columns.

use super::head::Head;
use super::{Mode, Model, ModelSpec};
use crate::feature_column::{Column, DenseColumn, Features, input_layer, linear_model};
use crate::gradient::IndexedSlices;
use crate::graph::Graph;
use crate::layers::Dense;
use crate::optimizer::{Adagrad, Ftrl, GradAndVar, Optimizer, Update, forward_to};
use crate::output::{Operation, Output};
use crate::variable::Variable;
use crate::variable_scope::Reuse;
use ferroflow_core::{DType, Result};
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

/// Classifies with hidden layers and a weighted sum of features, whose logits are added.
///
/// ```
/// use ferroflow_train::estimator::DnnLinearCombinedClassifier;
/// use ferroflow_train::feature_column::{embedding, identity, numeric};
/// let id = identity("id", 100);
/// let wide = vec![id.clone().into()];
/// let deep = vec![numeric("x").into(), embedding(&id, 4).into()];
/// let model = DnnLinearCombinedClassifier::new(wide, deep, &[16, 8], 2);
/// ```
pub type DnnLinearCombinedClassifier = Canned<Combined, Classes>;
/// Predicts numbers with hidden layers and a weighted sum of features, which are added.
///
/// ```
/// use ferroflow_train::estimator::DnnLinearCombinedRegressor;
/// use ferroflow_train::feature_column::numeric;
/// let x = numeric("x");
/// let model =
///     DnnLinearCombinedRegressor::new(vec![x.clone().into()], vec![x.into()], &[16]);
/// ```
pub type DnnLinearCombinedRegressor = Canned<Combined, Numbers>;

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

/// A weighted sum of features beside hidden layers.
#[derive(Clone)]
pub struct Combined {
    linear: Linear,
    deep: Deep,
}

impl Body for Combined {
    #[track_caller]
    fn logits(&self, graph: &Graph, features: &Features, units: usize, mode: Mode) -> Output {
        let deep = self.deep.logits(graph, features, units, mode);
        deep + self.linear.logits(graph, features, units, mode)
    }
}

/// Trains the variables of a weighted sum by one optimizer, and all others by another.
struct TwoOptimizers {
    linear: SharedOptimizer,
    deep: SharedOptimizer,
}

impl Optimizer for TwoOptimizers {
    forward_to!(gradients of deep);

    #[track_caller]
    fn apply_gradients(
        &self,
        graph: &Graph,
        gradients: &[GradAndVar],
        global_step: Option<&Variable>,
    ) -> Operation {
        let is_linear = |(_, v): &GradAndVar| v.variable_name().starts_with("linear/");
        let (linear, deep): (Vec<_>, Vec<_>) = gradients.iter().cloned().partition(is_linear);
        let linear = self.linear.apply_gradients(graph, &linear, None);
        graph.control_dependencies(&[linear], || {
            self.deep.apply_gradients(graph, &deep, global_step)
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

impl<H> Canned<Combined, H> {
    fn combined(
        linear: Vec<Column>,
        deep: Vec<DenseColumn>,
        hidden: &[usize],
        outputs: usize,
    ) -> Self {
        // TensorFlow's defaults.
        let rate = (1.0 / (linear.len().max(1) as f32).sqrt()).min(0.005);
        let deep =
            Deep { columns: deep, hidden: hidden.to_vec(), activation: Output::relu, dropout: 0.0 };
        let body = Combined { linear: Linear { columns: linear }, deep };
        let model = Canned::of(body, Adagrad::new(0.05), outputs);
        model.optimizers(Ftrl::new(rate), Adagrad::new(0.05))
    }

    /// The optimizers of the weighted sum and of the hidden layers; the defaults are Ftrl and
    /// Adagrad.
    #[must_use]
    pub fn optimizers(
        mut self,
        linear: impl Optimizer + Send + Sync + 'static,
        deep: impl Optimizer + Send + Sync + 'static,
    ) -> Self {
        self.optimizer = Arc::new(TwoOptimizers { linear: Arc::new(linear), deep: Arc::new(deep) });
        self
    }
}

impl DnnLinearCombinedClassifier {
    /// Predicts one of `classes` classes; labels are class numbers.
    pub fn new(
        linear: Vec<Column>,
        deep: Vec<DenseColumn>,
        hidden: &[usize],
        classes: usize,
    ) -> DnnLinearCombinedClassifier {
        Canned::combined(linear, deep, hidden, classes)
    }
}

impl DnnLinearCombinedRegressor {
    /// Predicts one number.
    pub fn new(
        linear: Vec<Column>,
        deep: Vec<DenseColumn>,
        hidden: &[usize],
    ) -> DnnLinearCombinedRegressor {
        Canned::combined(linear, deep, hidden, 1)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimator::{ArrayInput, Estimator, RunConfig, Until};
    use crate::feature_column::{identity, numeric};
    use crate::testing::temporary;
    use crate::{Saver, latest_checkpoint};
    use ferroflow_core::Tensor;

    /// Labels that depend on an id, by a weight each, and on the square of a number.
    fn examples() -> ArrayInput {
        let ids: Vec<i64> = (0..64).map(|i| i % 4).collect();
        let xs: Vec<f32> = (0..64).map(|i| i as f32 / 32.0 - 1.0).collect();
        let label = |(id, x): (&i64, &f32)| 2.0 * *id as f32 + 4.0 * x * x;
        let labels: Vec<f32> = ids.iter().zip(&xs).map(label).collect();
        ArrayInput::new(&[("id", Tensor::vector(&ids)), ("x", Tensor::vector(&xs))])
            .labels(Tensor::vector(&labels))
            .batch(64)
    }

    #[test]
    fn a_combined_model_learns_with_both_parts_and_an_optimizer_for_each() {
        let dir = temporary("combined");
        let (linear, deep) = (Ftrl::new(0.5), Adagrad::new(0.1));
        let wide: Vec<Column> = vec![identity("id", 4).into()];
        let model = DnnLinearCombinedRegressor::new(wide, vec![numeric("x").into()], &[16])
            .optimizers(linear, deep);
        let e = Estimator::new(model, RunConfig::new(&dir).seed(1));
        e.train(|g| examples().epochs(None).batches(g), Until::Steps(600)).unwrap();
        let scores = e.evaluate(|g| examples().batches(g), None).unwrap();
        assert!(scores["loss"] < 0.3, "{scores:?}");
        // Ftrl has slots for the weighted sum alone, Adagrad for the layers.
        let g = Graph::new();
        let slots = ["linear/linear_model/id/weights/Ftrl", "dnn/hiddenlayer_0/kernel/Adagrad"];
        let shapes: [&[usize]; 2] = [&[4, 1], &[1, 16]];
        for (slot, shape) in slots.iter().zip(shapes) {
            g.variable(slot, crate::init::zeros(shape.to_vec()));
        }
        let saver = Saver::new(&g);
        let session = crate::Session::local(&g).unwrap();
        saver.restore(&session, &latest_checkpoint(&dir).unwrap()).unwrap();
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
