//! Answers requests: predict, classify, regress, and several of them in one request.

use crate::model::ModelVersion;
use crate::wire::{InferenceAnswer, ModelSpec};
use ferroflow_core::{DType, Result, Tensor, bail, ensure, err};
use ferroflow_train::{DEFAULT_SIGNATURE, Signature};
use std::collections::BTreeSet;

/// The labels of one example with their scores.
pub(crate) type Classes = Vec<(String, f32)>;

/// The task of a signature on examples.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Method {
    Classify,
    Regress,
}

impl Method {
    /// The method that signatures and requests call `name`.
    pub fn from_name(name: &str) -> Result<Method> {
        Ok(match name {
            CLASSIFY => Method::Classify,
            REGRESS => Method::Regress,
            _ => bail!(Unimplemented, "Unrecognized signature method_name: {name}"),
        })
    }

    fn name(self) -> &'static str {
        match self {
            Method::Classify => CLASSIFY,
            Method::Regress => REGRESS,
        }
    }
}

const CLASSIFY: &str = "tensorflow/serving/classify";
const REGRESS: &str = "tensorflow/serving/regress";
const INPUTS: &str = "inputs";
const CLASSES: &str = "classes";
const SCORES: &str = "scores";
const OUTPUTS: &str = "outputs";

/// The name of the requested signature.
pub(crate) fn signature_name(asked: &str) -> &str {
    if asked.is_empty() { DEFAULT_SIGNATURE } else { asked }
}

/// The signature of a predict request.
pub(crate) fn predict_signature<'m>(
    model: &'m ModelVersion,
    asked: &str,
) -> Result<(&'m Signature, String)> {
    let name = signature_name(asked);
    let signature = model
        .signature(name)
        .ok_or_else(|| err!(FailedPrecondition, "Serving signature key \"{name}\" not found."))?;
    Ok((signature, name.to_string()))
}

/// Calls a signature with tensors. Returns the wanted outputs, or all.
pub(crate) async fn predict(
    model: &ModelVersion,
    signature: &Signature,
    inputs: Vec<(String, Tensor)>,
    wanted: &[String],
) -> Result<Vec<(String, Tensor)>> {
    let mut feeds = Vec::with_capacity(signature.inputs.len());
    let mut given = BTreeSet::new();
    for (name, value) in inputs {
        let Some(info) = signature.inputs.get(&name) else {
            let takes: Vec<&String> = signature.inputs.keys().collect();
            bail!(InvalidArgument, "the signature has no input {name:?}; it takes {takes:?}");
        };
        ensure!(
            value.dtype() == info.dtype,
            InvalidArgument,
            "input {name:?} is a {}, but the signature takes a {}",
            value.dtype(),
            info.dtype
        );
        feeds.push((info.name.clone(), value));
        given.insert(name);
    }
    for (name, info) in signature.inputs.iter().filter(|(name, _)| !given.contains(*name)) {
        let Some(default) = signature.defaults.get(name) else {
            let takes: Vec<&String> = signature.inputs.keys().collect();
            bail!(InvalidArgument, "input {name:?} is missing; the signature takes {takes:?}");
        };
        feeds.push((info.name.clone(), default.clone()));
    }
    // Sorted by name, so that equal requests are compiled once and share batches.
    feeds.sort_by(|a, b| a.0.cmp(&b.0));
    let mut outputs: Vec<(String, String)> = Vec::new();
    for name in wanted {
        let Some(info) = signature.outputs.get(name) else {
            let gives: Vec<&String> = signature.outputs.keys().collect();
            bail!(InvalidArgument, "the signature has no output {name:?}; it gives {gives:?}");
        };
        ensure!(
            outputs.iter().all(|(other, _)| other != name),
            InvalidArgument,
            "output {name:?} is asked for twice"
        );
        outputs.push((name.clone(), info.name.clone()));
    }
    if wanted.is_empty() {
        outputs = signature.outputs.iter().map(|(n, i)| (n.clone(), i.name.clone())).collect();
    }
    let (names, fetches): (Vec<String>, Vec<String>) = outputs.into_iter().unzip();
    let values = model.run(feeds, fetches).await?;
    Ok(names.into_iter().zip(values).collect())
}

/// Labels and scores of each example.
pub(crate) async fn classify(
    model: &ModelVersion,
    asked: &str,
    examples: Tensor,
) -> Result<Vec<Classes>> {
    let answers = examined(model, &[(asked.to_string(), Method::Classify)], examples).await?;
    match answers.into_iter().next() {
        Some((_, InferenceAnswer::Classes(classes))) => Ok(classes),
        _ => bail!(Internal, "a classification gave no classes"),
    }
}

/// A value for each example.
pub(crate) async fn regress(
    model: &ModelVersion,
    asked: &str,
    examples: Tensor,
) -> Result<Vec<f32>> {
    let answers = examined(model, &[(asked.to_string(), Method::Regress)], examples).await?;
    match answers.into_iter().next() {
        Some((_, InferenceAnswer::Values(values))) => Ok(values),
        _ => bail!(Internal, "a regression gave no values"),
    }
}

/// Checks that all tasks of a MultiInference are for one model.
pub(crate) fn one_model(tasks: &[(ModelSpec, Method)]) -> Result<&ModelSpec> {
    let Some((first, _)) = tasks.first() else {
        bail!(InvalidArgument, "Inference request has no tasks.")
    };
    let mut signatures = BTreeSet::new();
    for (spec, _) in tasks {
        ensure!(
            spec.name == first.name && spec.version == first.version,
            InvalidArgument,
            "all tasks of a request must be for one model and version; there are {:?} and {:?}",
            first.name,
            spec.name
        );
        ensure!(
            signatures.insert(signature_name(&spec.signature)),
            InvalidArgument,
            "signature {:?} is in two tasks of the request",
            signature_name(&spec.signature)
        );
    }
    Ok(first)
}

/// Runs several signatures on the same examples in one step.
pub(crate) async fn examined(
    model: &ModelVersion,
    tasks: &[(String, Method)],
    examples: Tensor,
) -> Result<Vec<(String, InferenceAnswer)>> {
    let rows = examples.elements();
    let mut input: Option<&str> = None;
    let mut fetches: Vec<String> = Vec::new();
    let mut plans = Vec::with_capacity(tasks.len());
    for (asked, method) in tasks {
        let name = signature_name(asked);
        let signature = model
            .signature(name)
            .ok_or_else(|| err!(InvalidArgument, "No signature was found with the name: {name}"))?;
        ensure!(
            signature.method == method.name(),
            InvalidArgument,
            "Expected signature method_name to be {}. Was: {}",
            method.name(),
            signature.method
        );
        let fed = example_input(signature, name)?;
        ensure!(
            input.is_none_or(|other| other == fed),
            InvalidArgument,
            "the signatures of a request take different inputs"
        );
        input = Some(fed);
        let mut fetch = |output: &str| {
            let tensor = signature.outputs.get(output)?.name.clone();
            let at = fetches.iter().position(|other| *other == tensor).unwrap_or(fetches.len());
            if at == fetches.len() {
                fetches.push(tensor);
            }
            Some(at)
        };
        let plan = match method {
            Method::Classify => (fetch(CLASSES), fetch(SCORES)),
            Method::Regress => (fetch(OUTPUTS), None),
        };
        ensure!(
            plan.0.is_some() || plan.1.is_some(),
            InvalidArgument,
            "signature {name:?} has none of the outputs that {} needs",
            method.name()
        );
        plans.push((name.to_string(), *method, plan));
    }
    let Some(input) = input else { bail!(InvalidArgument, "Inference request has no tasks.") };
    let values = model.run(vec![(input.to_string(), examples)], fetches).await?;
    let at = |index: Option<usize>| index.and_then(|index| values.get(index));
    let answer =
        |(name, method, (first, second)): (String, Method, (Option<usize>, Option<usize>))| {
            let answer = match method {
                Method::Classify => InferenceAnswer::Classes(classes(at(first), at(second), rows)?),
                Method::Regress => {
                    let values = at(first).ok_or_else(|| err!(Internal, "no value of {name:?}"))?;
                    InferenceAnswer::Values(regressions(values, rows)?)
                }
            };
            Ok((name, answer))
        };
    plans.into_iter().map(answer).collect()
}

/// The tensor that takes the examples.
fn example_input<'s>(signature: &'s Signature, name: &str) -> Result<&'s str> {
    ensure!(
        signature.inputs.len() == 1,
        InvalidArgument,
        "signature {name:?} has {} inputs; a classification or regression has one",
        signature.inputs.len()
    );
    let input = signature.inputs.get(INPUTS).ok_or_else(|| {
        err!(InvalidArgument, "signature {name:?} has no input with the name {INPUTS:?}")
    })?;
    ensure!(
        input.dtype == DType::String,
        InvalidArgument,
        "input {INPUTS:?} of signature {name:?} takes {}, not serialized examples",
        input.dtype
    );
    Ok(&input.name)
}

/// Joins the labels and the scores of a classification. One of them may be missing.
fn classes(labels: Option<&Tensor>, scores: Option<&Tensor>, rows: usize) -> Result<Vec<Classes>> {
    let width = |tensor: &Tensor, what: &str| {
        let dims = tensor.shape().dims();
        match dims {
            [n, width] if *n == rows => Ok(*width),
            _ => bail!(
                InvalidArgument,
                "the {what} of {rows} examples have the shape {}; expected [{rows}, classes]",
                tensor.shape()
            ),
        }
    };
    let labels = match labels {
        Some(tensor) => Some((tensor.strings()?, width(tensor, "classes")?)),
        None => None,
    };
    let scores = match scores {
        Some(tensor) => {
            let floats = tensor.as_slice::<f32>().map_err(|_| {
                err!(InvalidArgument, "the scores are {}, not float", tensor.dtype())
            })?;
            Some((floats, width(tensor, "scores")?))
        }
        None => None,
    };
    let count = match (&labels, &scores) {
        (Some((_, a)), Some((_, b))) => {
            ensure!(a == b, InvalidArgument, "there are {a} classes, but {b} scores");
            *a
        }
        (Some((_, n)), None) | (None, Some((_, n))) => *n,
        (None, None) => 0,
    };
    let class = |at: usize| {
        let label = labels.map_or_else(String::new, |(labels, _)| {
            String::from_utf8_lossy(&labels[at]).into_owned()
        });
        (label, scores.map_or(0.0, |(scores, _)| scores[at]))
    };
    Ok((0..rows).map(|row| (0..count).map(|i| class(row * count + i)).collect()).collect())
}

fn regressions(values: &Tensor, rows: usize) -> Result<Vec<f32>> {
    let dims = values.shape().dims();
    ensure!(
        dims == [rows] || dims == [rows, 1],
        InvalidArgument,
        "the outputs of {rows} examples have the shape {}; expected [{rows}] or [{rows}, 1]",
        values.shape()
    );
    let floats = values
        .as_slice::<f32>()
        .map_err(|_| err!(InvalidArgument, "the outputs are {}, not float", values.dtype()))?;
    Ok(floats.to_vec())
}
