//! Metrics over many steps. They keep local variables that each batch updates.
//!
//! ```
//! # let g = ferroflow_train::Graph::new();
//! use ferroflow_train::metrics;
//! let labels = g.placeholder::<i64>("labels", [None]);
//! let scores = g.placeholder::<f32>("scores", [None]);
//! let auc = metrics::auc(&labels, &scores, 200);
//! // For each batch: session.run_fed(feeds, &auc.update)?
//! // At the end: session.run(auc.value.scalar::<f32>())?
//! ```

use crate::graph::{Graph, keys};
use crate::init;
use crate::output::{Operation, Output};
use crate::variable::{Variable, VariableOptions};
use ferroflow_core::{DType, Shape};

/// A metric: its value so far, and the operation that adds a batch.
#[derive(Clone, Debug)]
pub struct Metric {
    /// The value so far.
    pub value: Output,
    /// Adds a batch.
    pub update: Operation,
    /// Its variables. Initialize them to reset the metric.
    pub variables: Vec<Variable>,
}

impl Metric {
    /// Resets the metric.
    #[track_caller]
    pub fn reset(&self) -> Operation {
        self.value.graph().initializer_of("reset", &self.variables)
    }
}

#[track_caller]
fn counter(g: &Graph, name: &str, shape: impl Into<Shape>) -> Variable {
    let mut options = VariableOptions::local();
    options.collections.push(keys::METRIC_VARIABLES.into());
    g.variable_with(name, init::zeros(shape), options)
}

/// Mean of all elements seen.
///
/// ```
/// # let g = ferroflow_train::Graph::new();
/// let mean = ferroflow_train::metrics::mean(&g.constant([1.0, 2.0]));
/// assert_eq!(mean.variables.len(), 2);
/// ```
#[track_caller]
pub fn mean(values: &Output) -> Metric {
    let g = values.graph();
    g.name_scope("mean", |_| {
        let total = counter(g, "total", Shape::scalar());
        let count = counter(g, "count", Shape::scalar());
        let values = values.cast(DType::Float);
        let update = [
            total.assign_add(values.sum_all()),
            count.assign_add(values.size().cast(DType::Float)),
        ];
        let value = total.div_no_nan(&count);
        Metric { value, update: g.group("update", &update), variables: vec![total, count] }
    })
}

/// The fraction of predicted classes that equal the labels.
///
/// ```
/// # let g = ferroflow_train::Graph::new();
/// use ferroflow_train::metrics;
/// let accuracy = metrics::accuracy(&g.constant([1i64, 0]), &g.constant([1i64, 1]));
/// assert!(g.check().is_ok()); // run accuracy.update for each batch, accuracy.value at the end
/// ```
#[track_caller]
pub fn accuracy(labels: &Output, predictions: &Output) -> Metric {
    let right = predictions.cast(labels.dtype()).equal(labels);
    mean(&right.cast(DType::Float))
}

/// Root of the mean squared error.
///
/// ```
/// # let g = ferroflow_train::Graph::new();
/// use ferroflow_train::metrics;
/// let error = metrics::root_mean_squared_error(&g.constant([1.0, 2.0]), &g.constant([1.0, 4.0]));
/// assert!(g.check().is_ok());
/// ```
#[track_caller]
pub fn root_mean_squared_error(labels: &Output, predictions: &Output) -> Metric {
    let metric = mean(&predictions.squared_difference(labels));
    Metric { value: metric.value.sqrt(), ..metric }
}

/// The fraction of positive predictions that are right.
///
/// ```
/// # let g = ferroflow_train::Graph::new();
/// use ferroflow_train::metrics;
/// let precision = metrics::precision(&g.constant([true, false]), &g.constant([true, true]));
/// assert!(g.check().is_ok());
/// ```
#[track_caller]
pub fn precision(labels: &Output, predictions: &Output) -> Metric {
    ratio("precision", labels, predictions, |l, p| (l.logical_and(p), p.clone()))
}

/// The fraction of positive labels that were predicted.
///
/// ```
/// # let g = ferroflow_train::Graph::new();
/// use ferroflow_train::metrics;
/// let recall = metrics::recall(&g.constant([true, false]), &g.constant([true, true]));
/// assert!(g.check().is_ok());
/// ```
#[track_caller]
pub fn recall(labels: &Output, predictions: &Output) -> Metric {
    ratio("recall", labels, predictions, |l, p| (l.logical_and(p), l.clone()))
}

#[track_caller]
fn ratio(
    name: &str,
    labels: &Output,
    predictions: &Output,
    parts: impl Fn(&Output, &Output) -> (Output, Output),
) -> Metric {
    let g = labels.graph();
    g.name_scope(name, |_| {
        let (l, p) = (labels.cast(DType::Bool), predictions.cast(DType::Bool));
        let (hit, of) = parts(&l, &p);
        let hits = counter(g, "hits", Shape::scalar());
        let all = counter(g, "all", Shape::scalar());
        let update = [
            hits.assign_add(hit.cast(DType::Float).sum_all()),
            all.assign_add(of.cast(DType::Float).sum_all()),
        ];
        let value = hits.div_no_nan(&all);
        Metric { value, update: g.group("update", &update), variables: vec![hits, all] }
    })
}

/// Area under the ROC curve, by the trapezoidal rule over `thresholds` thresholds (200 in
/// TensorFlow). A prediction outside [0, 1] fails the step.
///
/// ```
/// # let g = ferroflow_train::Graph::new();
/// use ferroflow_train::metrics;
/// let auc = metrics::auc(&g.constant([1i64, 0]), &g.constant([0.9, 0.2]), 200);
/// assert!(g.check().is_ok());
/// ```
#[track_caller]
pub fn auc(labels: &Output, predictions: &Output, thresholds: usize) -> Metric {
    let g = labels.graph();
    let n = thresholds.clamp(2, 10_000);
    g.name_scope("auc", |_| {
        /// Puts the first and the last threshold outside the range of predictions.
        const OUTSIDE: f32 = 1e-7;
        /// Avoids a division by 0.
        const EPSILON: f32 = 1e-6;
        let mut at: Vec<f32> = vec![-OUTSIDE];
        at.extend((1..n - 1).map(|i| i as f32 / (n - 1) as f32));
        at.push(1.0 + OUTSIDE);
        let at = g.constant(at).expand_dims(1);
        let positive = labels.cast(DType::Bool).reshape([Some(1), None]);
        let predictions = predictions.cast(DType::Float);
        let inside = predictions.greater_equal(0.0).logical_and(predictions.less_equal(1.0));
        let message = g.constant("predictions must be in [0, 1]");
        let checked = g.assert(&inside.all_all(), &[message, predictions.clone()]);
        let predictions = g.control_dependencies(&[checked], || predictions.identity());
        let above = predictions.reshape([Some(1), None]).greater(&at);
        let count = |hit: Output| hit.cast(DType::Float).sum(&[1]);
        let kinds = [
            ("true_positives", above.logical_and(&positive)),
            ("false_positives", above.logical_and(positive.logical_not())),
            ("false_negatives", above.logical_not().logical_and(&positive)),
            ("true_negatives", above.logical_not().logical_and(positive.logical_not())),
        ];
        let mut variables = Vec::new();
        let mut updates = Vec::new();
        for (name, hits) in kinds {
            let v = counter(g, name, [n]);
            updates.push(v.assign_add(count(hits)));
            variables.push(v);
        }
        let [tp, fp, fnn, tn] = [0, 1, 2, 3].map(|i: usize| (*variables[i]).clone());
        let rate = (&tp + EPSILON) / (&tp + &fnn + EPSILON);
        let false_rate = &fp / (&fp + &tn + EPSILON);
        let m = n as i32 - 1;
        let (head, tail) = (|x: &Output| x.slice(&[0], &[m]), |x: &Output| x.slice(&[1], &[m]));
        let width = head(&false_rate) - tail(&false_rate);
        let height = (head(&rate) + tail(&rate)) * 0.5;
        let value = (width * height).sum_all();
        Metric { value, update: g.group("update", &updates), variables }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{graph, initialized};

    #[test]
    fn metrics_accumulate_over_batches() {
        let g = graph();
        let labels = g.placeholder::<i64>("labels", [None]);
        let scores = g.placeholder::<f32>("scores", [None]);
        let predicted = scores.greater(0.5).cast(DType::Int64);
        let all = [
            accuracy(&labels, &predicted),
            precision(&labels, &predicted),
            recall(&labels, &predicted),
            auc(&labels, &scores, 200),
        ];
        let s = initialized(&g).unwrap();
        let updates: Vec<Operation> = all.iter().map(|m| m.update.clone()).collect();
        let feed = |l: [i64; 2], p: [f32; 2]| {
            let feeds = vec![
                (labels.name(), ferroflow_core::Tensor::vector(&l)),
                (scores.name(), ferroflow_core::Tensor::vector(&p)),
            ];
            s.run_fed(feeds, &updates).unwrap();
        };
        feed([1, 0], [0.9, 0.8]);
        feed([1, 0], [0.3, 0.1]);
        let values: Vec<Output> = all.iter().map(|m| m.value.clone()).collect();
        let values = s.run(&values).unwrap();
        let value = |i: usize| values[i].scalar_value::<f32>().unwrap();
        assert_eq!((value(0), value(1), value(2)), (0.5, 0.5, 0.5));
        assert!((value(3) - 0.75).abs() < 1e-3, "{}", value(3));
        s.run(all[0].reset()).unwrap();
        assert_eq!(s.run(all[0].value.scalar::<f32>()).unwrap(), 0.0);
    }

    #[test]
    fn auc_equals_that_of_tensorflow() {
        let g = graph();
        let labels = g.placeholder::<i64>("labels", [None]);
        let scores = g.placeholder::<f32>("scores", [None]);
        let (fine, coarse) = (auc(&labels, &scores, 200), auc(&labels, &scores, 5));
        let s = initialized(&g).unwrap();
        let mut seen = Vec::new();
        let batches: [(&[i64], &[f32]); 2] =
            [(&[1, 0, 1, 0], &[0.9, 0.8, 0.35, 0.1]), (&[0, 1, 1], &[0.5, 0.5, 0.75])];
        for (l, p) in batches {
            let feeds = vec![
                (labels.name(), ferroflow_core::Tensor::vector(l)),
                (scores.name(), ferroflow_core::Tensor::vector(p)),
            ];
            s.run_fed(feeds, (&fine.update, &coarse.update)).unwrap();
            let values = (fine.value.scalar::<f32>(), coarse.value.scalar::<f32>());
            seen.push(s.run(values).unwrap());
        }
        let expected = [(0.749_999_76, 0.624_999_9), (0.624_999_94, 0.624_999_94)];
        for ((a, b), (x, y)) in seen.iter().zip(expected) {
            assert!((a - x).abs() < 2e-7 && (b - y).abs() < 2e-7, "{seen:?}");
        }
        let wrong = vec![
            (labels.name(), ferroflow_core::Tensor::vector(&[1i64])),
            (scores.name(), ferroflow_core::Tensor::vector(&[1.5f32])),
        ];
        let e = s.run_fed(wrong, &fine.update).unwrap_err();
        assert!(e.message().contains("predictions must be in [0, 1]"), "{e}");
    }

    #[test]
    fn fractions_that_differ_are_not_the_same_class() {
        let g = graph();
        let metric = accuracy(&g.constant([0.0, 1.0]), &g.constant([0.4, 1.0]));
        let s = initialized(&g).unwrap();
        s.run(&metric.update).unwrap();
        assert_eq!(s.run(metric.value.scalar::<f32>()).unwrap(), 0.5);
    }
}
