//! Turns the logits of canned models into losses, predictions and metrics.

use super::{Mode, ModelSpec};
use crate::graph::Graph;
use crate::losses;
use crate::metrics;
use crate::optimizer::Optimizer;
use crate::output::Output;
use crate::saved_model::{DEFAULT_SIGNATURE, Signature};
use ferroflow_core::{DType, Result, err};

/// The interpretation of a model's logits.
#[derive(Clone, Copy, Debug)]
pub enum Head {
    /// One of this many classes.
    Classes(usize),
    /// This many numbers.
    Numbers(usize),
}

impl Head {
    /// Number of logits.
    pub fn units(self) -> usize {
        match self {
            // Two classes need one logit.
            Head::Classes(n) if n <= 2 => 1,
            Head::Classes(n) | Head::Numbers(n) => n,
        }
    }

    #[track_caller]
    pub fn spec(
        self,
        logits: &Output,
        labels: Option<&Output>,
        mode: Mode,
        optimizer: &dyn Optimizer,
    ) -> Result<ModelSpec> {
        let spec = match self {
            Head::Classes(n) if n <= 2 => two_classes(logits, labels, mode),
            Head::Classes(n) => classes(logits, labels, n, mode),
            Head::Numbers(n) => numbers(logits, labels, n, mode),
        }?;
        match (mode, &spec.loss) {
            (Mode::Train, Some(loss)) => {
                let step = logits.graph().global_step();
                let train = optimizer.minimize_counted(loss, &step);
                Ok(spec.train(&train))
            }
            _ => Ok(spec),
        }
    }
}

fn needed(labels: Option<&Output>) -> Result<&Output> {
    labels.ok_or_else(|| err!(InvalidArgument, "training and evaluation need labels"))
}

/// Predictions of class names.
#[track_caller]
fn named(probabilities: &Output, logits: &Output, classes: usize) -> (ModelSpec, Output) {
    let g = logits.graph();
    let ids = probabilities.argmax(-1).expand_dims(-1);
    let names = g.op("AsString").input(&ids).output();
    let spec = ModelSpec::new()
        .prediction("logits", logits)
        .prediction("probabilities", probabilities)
        .prediction("class_ids", &ids)
        .prediction("classes", &names);
    // Lists all classes for each example, next to their probabilities.
    let all: Vec<String> = (0..classes).map(|c| c.to_string()).collect();
    let all = g.constant(all).expand_dims(0);
    let one = g.constant(1);
    let all = all.tile(g.pack(&[logits.dim(0), one], 0));
    let classify = Signature::classify().output("classes", &all).output("scores", probabilities);
    let spec = spec.export("classification", classify.clone()).export(DEFAULT_SIGNATURE, classify);
    (spec, ids)
}

#[track_caller]
fn two_classes(logits: &Output, labels: Option<&Output>, mode: Mode) -> Result<ModelSpec> {
    let g: &Graph = logits.graph();
    let logistic = logits.sigmoid();
    let both = g.concat(&[logits.zeros_like(), logits.clone()], -1);
    let (spec, ids) = named(&both.softmax(), logits, 2);
    let regress = Signature::regress().output("outputs", &logistic);
    let spec = spec.prediction("logistic", &logistic).export("regression", regress);
    if mode == Mode::Predict {
        return Ok(spec);
    }
    let labels = needed(labels)?.cast(DType::Float).reshape([None, Some(1)]);
    let loss = losses::sigmoid_cross_entropy(&labels, logits);
    let spec = spec.loss(&loss);
    if mode == Mode::Train {
        return Ok(spec);
    }
    let label_mean = metrics::mean(&labels);
    let baseline = label_mean.value.maximum(1.0 - &label_mean.value);
    let baseline = metrics::Metric { value: baseline, ..label_mean.clone() };
    Ok(spec
        .metric("average_loss", metrics::mean(&losses::sigmoid_cross_entropy_each(&labels, logits)))
        .metric("accuracy", metrics::accuracy(&labels, &ids))
        .metric("precision", metrics::precision(&labels, &ids))
        .metric("recall", metrics::recall(&labels, &ids))
        .metric("auc", metrics::auc(&labels, &logistic, 200))
        .metric("prediction/mean", metrics::mean(&logistic))
        .metric("label/mean", label_mean)
        .metric("accuracy_baseline", baseline))
}

#[track_caller]
fn classes(
    logits: &Output,
    labels: Option<&Output>,
    count: usize,
    mode: Mode,
) -> Result<ModelSpec> {
    let (spec, ids) = named(&logits.softmax(), logits, count);
    if mode == Mode::Predict {
        return Ok(spec);
    }
    let labels = needed(labels)?.cast(DType::Int64).reshape([None]);
    let spec = spec.loss(&losses::sparse_softmax_cross_entropy(&labels, logits));
    if mode == Mode::Train {
        return Ok(spec);
    }
    let each = losses::sparse_softmax_cross_entropy_each(&labels, logits);
    Ok(spec
        .metric("average_loss", metrics::mean(&each))
        .metric("accuracy", metrics::accuracy(&labels, &ids.reshape([None]))))
}

#[track_caller]
fn numbers(
    logits: &Output,
    labels: Option<&Output>,
    width: usize,
    mode: Mode,
) -> Result<ModelSpec> {
    let regress = Signature::regress().output("outputs", logits);
    let spec = ModelSpec::new()
        .prediction("predictions", logits)
        .export("regression", regress.clone())
        .export(DEFAULT_SIGNATURE, regress);
    if mode == Mode::Predict {
        return Ok(spec);
    }
    let labels = needed(labels)?.cast(DType::Float).reshape([None, Some(width)]);
    let spec = spec.loss(&losses::mean_squared_error(&labels, logits));
    if mode == Mode::Train {
        return Ok(spec);
    }
    Ok(spec
        .metric("average_loss", metrics::mean(&logits.squared_difference(&labels)))
        .metric("prediction/mean", metrics::mean(logits))
        .metric("label/mean", metrics::mean(&labels)))
}
