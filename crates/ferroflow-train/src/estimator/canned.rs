//! Models that need no more than feature columns.

use super::head::Head;
use super::{Mode, Model, ModelSpec};
use crate::feature_column::{Column, DenseColumn, Features, input_layer, linear_model};
use crate::graph::Graph;
use crate::layers::Dense;
use crate::optimizer::{Adagrad, Ftrl, Optimizer};
use crate::output::Output;
use crate::variable_scope::Reuse;
use ferroflow_core::Result;
use std::sync::Arc;

type SharedOptimizer = Arc<dyn Optimizer + Send + Sync>;

/// The parts that linear models share: the columns, and how they are trained.
#[derive(Clone)]
struct Linear {
    columns: Vec<Column>,
    optimizer: SharedOptimizer,
}

impl Linear {
    fn new(columns: Vec<Column>) -> Linear {
        // As TensorFlow chooses: the more columns, the smaller the steps.
        let rate = (1.0 / (columns.len().max(1) as f32).sqrt()).min(0.2);
        Linear { columns, optimizer: Arc::new(Ftrl::new(rate)) }
    }

    #[track_caller]
    fn build(
        &self,
        graph: &Graph,
        features: &Features,
        labels: Option<&Output>,
        mode: Mode,
        head: Head,
    ) -> Result<ModelSpec> {
        let logits = graph.variable_scope("linear", Reuse::Auto, || {
            linear_model(graph, features, &self.columns, head.units())
        });
        graph.check()?;
        head.spec(&logits, labels, mode, &*self.optimizer)
    }
}

/// The parts that deep models share.
#[derive(Clone)]
struct Deep {
    columns: Vec<DenseColumn>,
    hidden: Vec<usize>,
    activation: fn(&Output) -> Output,
    dropout: f32,
    optimizer: SharedOptimizer,
}

impl Deep {
    fn new(columns: Vec<DenseColumn>, hidden: &[usize]) -> Deep {
        Deep {
            columns,
            hidden: hidden.to_vec(),
            activation: Output::relu,
            dropout: 0.0,
            optimizer: Arc::new(Adagrad::new(0.05)),
        }
    }

    #[track_caller]
    fn build(
        &self,
        graph: &Graph,
        features: &Features,
        labels: Option<&Output>,
        mode: Mode,
        head: Head,
    ) -> Result<ModelSpec> {
        let logits = graph.variable_scope("dnn", Reuse::Auto, || {
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
            Dense::new("logits", head.units()).apply(&layer)
        });
        graph.check()?;
        head.spec(&logits, labels, mode, &*self.optimizer)
    }
}

macro_rules! linear {
    ($(#[$doc:meta])* $name:ident, $head:expr) => {
        $(#[$doc])*
        #[derive(Clone)]
        pub struct $name {
            linear: Linear,
            outputs: usize,
        }

        impl $name {
            /// How it is trained; by Ftrl, if not given.
            #[must_use]
            pub fn optimizer(mut self, o: impl Optimizer + Send + Sync + 'static) -> Self {
                self.linear.optimizer = Arc::new(o);
                self
            }
        }

        impl Model for $name {
            fn build(
                &self,
                graph: &Graph,
                features: &Features,
                labels: Option<&Output>,
                mode: Mode,
            ) -> Result<ModelSpec> {
                self.linear.build(graph, features, labels, mode, $head(self.outputs))
            }
        }
    };
}

linear! {
    /// Classes by a weighted sum of features.
    LinearClassifier, Head::Classes
}
linear! {
    /// Numbers by a weighted sum of features.
    LinearRegressor, Head::Numbers
}

impl LinearClassifier {
    /// One of `classes` classes, which labels give by number.
    pub fn new(columns: Vec<Column>, classes: usize) -> LinearClassifier {
        LinearClassifier { linear: Linear::new(columns), outputs: classes }
    }
}

impl LinearRegressor {
    /// One number.
    pub fn new(columns: Vec<Column>) -> LinearRegressor {
        LinearRegressor { linear: Linear::new(columns), outputs: 1 }
    }

    /// So many numbers of each example.
    #[must_use]
    pub fn label_width(mut self, width: usize) -> LinearRegressor {
        self.outputs = width.max(1);
        self
    }
}

macro_rules! deep {
    ($(#[$doc:meta])* $name:ident, $head:expr) => {
        $(#[$doc])*
        #[derive(Clone)]
        pub struct $name {
            deep: Deep,
            outputs: usize,
        }

        impl $name {
            /// How it is trained; by Adagrad, if not given.
            #[must_use]
            pub fn optimizer(mut self, o: impl Optimizer + Send + Sync + 'static) -> Self {
                self.deep.optimizer = Arc::new(o);
                self
            }

            /// What follows each hidden layer; rectifiers, if not given.
            #[must_use]
            pub fn activation(mut self, activation: fn(&Output) -> Output) -> Self {
                self.deep.activation = activation;
                self
            }

            /// The part of each hidden layer that is left out, at random, in training.
            #[must_use]
            pub fn dropout(mut self, rate: f32) -> Self {
                self.deep.dropout = rate;
                self
            }
        }

        impl Model for $name {
            fn build(
                &self,
                graph: &Graph,
                features: &Features,
                labels: Option<&Output>,
                mode: Mode,
            ) -> Result<ModelSpec> {
                self.deep.build(graph, features, labels, mode, $head(self.outputs))
            }
        }
    };
}

deep! {
    /// Classes by layers of units.
    DnnClassifier, Head::Classes
}
deep! {
    /// Numbers by layers of units.
    DnnRegressor, Head::Numbers
}

impl DnnClassifier {
    /// One of `classes` classes, which labels give by number, by hidden layers of so many units.
    pub fn new(columns: Vec<DenseColumn>, hidden: &[usize], classes: usize) -> DnnClassifier {
        DnnClassifier { deep: Deep::new(columns, hidden), outputs: classes }
    }
}

impl DnnRegressor {
    /// One number, by hidden layers of so many units.
    pub fn new(columns: Vec<DenseColumn>, hidden: &[usize]) -> DnnRegressor {
        DnnRegressor { deep: Deep::new(columns, hidden), outputs: 1 }
    }

    /// So many numbers of each example.
    #[must_use]
    pub fn label_width(mut self, width: usize) -> DnnRegressor {
        self.outputs = width.max(1);
        self
    }
}
