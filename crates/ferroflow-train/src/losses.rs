//! Losses. Each is a scalar, the mean over the batch, and is added to the collection of losses.
//!
//! ```
//! # let g = ferroflow_train::Graph::new();
//! use ferroflow_train::losses;
//! let logits = g.placeholder::<f32>("logits", [None, Some(10)]);
//! let labels = g.placeholder::<i64>("labels", [None]);
//! let loss = losses::sparse_softmax_cross_entropy(&labels, &logits);
//! let accuracy = losses::accuracy(&labels, &logits);
//! ```

use crate::graph::{Graph, keys};
use crate::output::Output;
use ferroflow_core::{DType, err};

#[track_caller]
fn collected(loss: Output) -> Output {
    loss.graph().add_to_collection(keys::LOSSES, &loss);
    loss
}

/// An error if labels and predictions have different shapes. Broadcasting them, for example [n] and
/// [n, 1], would give a wrong loss.
#[track_caller]
fn check_alike(labels: &Output, predictions: &Output) {
    let (l, p) = (labels.shape(), predictions.shape());
    if l.merge(&p).is_err() {
        let e =
            err!(InvalidArgument, "shapes {p} of predictions and {l} of labels are incompatible");
        labels.graph().fail(e);
    }
}

/// The weighted sum of the losses of examples, divided by the number of nonzero weights, as in
/// TensorFlow. The loss is added to the collection of losses.
///
/// ```
/// # let g = ferroflow_train::Graph::new();
/// use ferroflow_train::losses;
/// let each = (g.constant([1.0, 2.0, 3.0]) - g.constant([2.0, 2.0, 5.0])).square();
/// let loss = losses::weighted(&each, &g.constant([1.0, 0.0, 2.0])); // (1 + 8) / 2
/// assert_eq!(loss.shape().to_string(), "[]");
/// ```
#[track_caller]
pub fn weighted(each: &Output, weights: &Output) -> Output {
    each.graph().name_scope("weighted_loss", |_| {
        let weights = weights.cast(each.dtype());
        // A broadcast weight counts once for each element it applies to.
        let present = (each.zeros_like() + &weights).not_equal(0.0).cast(each.dtype());
        collected((each * &weights).sum_all().div_no_nan(present.sum_all()))
    })
}

/// Mean of the squared differences.
///
/// ```
/// # let g = ferroflow_train::Graph::new();
/// use ferroflow_train::losses;
/// let loss = losses::mean_squared_error(&g.constant([1.0, 2.0]), &g.constant([1.0, 4.0]));
/// assert_eq!(loss.shape().to_string(), "[]");
/// ```
#[track_caller]
pub fn mean_squared_error(labels: &Output, predictions: &Output) -> Output {
    check_alike(labels, predictions);
    labels.graph().name_scope("mean_squared_error", |_| {
        collected(predictions.squared_difference(labels).mean_all())
    })
}

/// Mean of the absolute differences.
///
/// ```
/// # let g = ferroflow_train::Graph::new();
/// use ferroflow_train::losses;
/// let loss = losses::absolute_difference(&g.constant([1.0, 2.0]), &g.constant([1.0, 4.0]));
/// assert_eq!(loss.shape().to_string(), "[]");
/// ```
#[track_caller]
pub fn absolute_difference(labels: &Output, predictions: &Output) -> Output {
    check_alike(labels, predictions);
    labels
        .graph()
        .name_scope("absolute_difference", |_| collected((predictions - labels).abs().mean_all()))
}

/// Huber loss: squared up to `delta`, linear beyond.
///
/// ```
/// # let g = ferroflow_train::Graph::new();
/// use ferroflow_train::losses;
/// let loss = losses::huber(&g.constant([1.0, 2.0]), &g.constant([1.0, 9.0]), 1.0);
/// assert_eq!(loss.shape().to_string(), "[]");
/// ```
#[track_caller]
pub fn huber(labels: &Output, predictions: &Output, delta: f32) -> Output {
    check_alike(labels, predictions);
    labels.graph().name_scope("huber_loss", |_| {
        let error = (predictions - labels).abs();
        let quadratic = error.minimum(delta);
        let linear = &error - &quadratic;
        collected((quadratic.square() * 0.5 + linear * delta).mean_all())
    })
}

/// Softmax cross entropy of `logits` with labels as class numbers.
///
/// ```
/// # let g = ferroflow_train::Graph::new();
/// use ferroflow_train::losses;
/// let loss = losses::sparse_softmax_cross_entropy(&g.constant([1]), &g.constant([[0.1, 0.9]]));
/// assert_eq!(loss.shape().to_string(), "[]");
/// ```
#[track_caller]
pub fn sparse_softmax_cross_entropy(labels: &Output, logits: &Output) -> Output {
    labels.graph().name_scope("sparse_softmax_cross_entropy_loss", |_| {
        collected(sparse_softmax_cross_entropy_each(labels, logits).mean_all())
    })
}

/// [`sparse_softmax_cross_entropy`] of each example.
///
/// ```
/// # let g = ferroflow_train::Graph::new();
/// use ferroflow_train::losses;
/// let logits = g.constant([[0.1, 0.9], [0.8, 0.2]]);
/// let each = losses::sparse_softmax_cross_entropy_each(&g.constant([1, 0]), &logits);
/// assert_eq!(each.shape().to_string(), "[2]");
/// ```
#[track_caller]
pub fn sparse_softmax_cross_entropy_each(labels: &Output, logits: &Output) -> Output {
    let g = labels.graph();
    let op = g.op("SparseSoftmaxCrossEntropyWithLogits").input(logits).input(labels);
    let [loss] = op.split();
    loss
}

/// Softmax cross entropy of `logits` with labels as distributions over the classes.
///
/// ```
/// # let g = ferroflow_train::Graph::new();
/// use ferroflow_train::losses;
/// let labels = g.constant([[0.5, 0.5]]);
/// let loss = losses::softmax_cross_entropy(&labels, &g.constant([[0.1, 0.9]]));
/// assert_eq!(loss.shape().to_string(), "[]");
/// ```
#[track_caller]
pub fn softmax_cross_entropy(labels: &Output, logits: &Output) -> Output {
    let g = labels.graph();
    g.name_scope("softmax_cross_entropy_loss", |_| {
        let op = g.op("SoftmaxCrossEntropyWithLogits").input(logits).input(labels);
        let [loss] = op.split();
        collected(loss.mean_all())
    })
}

/// Sigmoid cross entropy of `logits` with labels between 0 and 1.
///
/// ```
/// # let g = ferroflow_train::Graph::new();
/// use ferroflow_train::losses;
/// let loss = losses::sigmoid_cross_entropy(&g.constant([1.0, 0.0]), &g.constant([3.0, -3.0]));
/// assert_eq!(loss.shape().to_string(), "[]");
/// ```
#[track_caller]
pub fn sigmoid_cross_entropy(labels: &Output, logits: &Output) -> Output {
    labels.graph().name_scope("sigmoid_cross_entropy_loss", |_| {
        collected(sigmoid_cross_entropy_each(labels, logits).mean_all())
    })
}

/// [`sigmoid_cross_entropy`] of each element.
///
/// ```
/// # let g = ferroflow_train::Graph::new();
/// use ferroflow_train::losses;
/// let (labels, logits) = (g.constant([1.0, 0.0]), g.constant([3.0, -3.0]));
/// let each = losses::sigmoid_cross_entropy_each(&labels, &logits);
/// assert_eq!(each.shape().to_string(), "[2]");
/// ```
#[track_caller]
pub fn sigmoid_cross_entropy_each(labels: &Output, logits: &Output) -> Output {
    check_alike(labels, logits);
    // max(x, 0) - x z + log(1 + exp(-|x|)) never overflows.
    logits.relu() - logits * labels + (-logits.abs()).exp().log1p()
}

/// Cross entropy of probabilities with labels between 0 and 1.
///
/// ```
/// # let g = ferroflow_train::Graph::new();
/// use ferroflow_train::losses;
/// let loss = losses::log_loss(&g.constant([1.0, 0.0]), &g.constant([0.9, 0.2]));
/// assert_eq!(loss.shape().to_string(), "[]");
/// ```
#[track_caller]
pub fn log_loss(labels: &Output, predictions: &Output) -> Output {
    check_alike(labels, predictions);
    labels.graph().name_scope("log_loss", |_| {
        const EPSILON: f32 = 1e-7;
        let right = labels * (predictions + EPSILON).log();
        let wrong = (1.0 - labels) * (1.0 - predictions + EPSILON).log();
        collected(-(right + wrong).mean_all())
    })
}

/// Hinge loss, for labels that are 0 or 1.
///
/// ```
/// # let g = ferroflow_train::Graph::new();
/// use ferroflow_train::losses;
/// let loss = losses::hinge(&g.constant([1.0, 0.0]), &g.constant([3.0, -3.0]));
/// assert_eq!(loss.shape().to_string(), "[]");
/// ```
#[track_caller]
pub fn hinge(labels: &Output, logits: &Output) -> Output {
    check_alike(labels, logits);
    labels.graph().name_scope("hinge_loss", |_| {
        let sides = labels * 2.0 - 1.0;
        collected((1.0 - sides * logits).relu().mean_all())
    })
}

/// The sum of all losses and regularization losses so far.
///
/// ```
/// # let g = ferroflow_train::Graph::new();
/// use ferroflow_train::losses;
/// losses::mean_squared_error(&g.constant([1.0]), &g.constant([2.0]));
/// losses::absolute_difference(&g.constant([1.0]), &g.constant([2.0]));
/// let loss = losses::total(&g);
/// assert_eq!(loss.shape().to_string(), "[]");
/// ```
#[track_caller]
pub fn total(graph: &Graph) -> Output {
    let mut all = graph.collection(keys::LOSSES);
    all.extend(graph.collection(keys::REGULARIZATION_LOSSES));
    graph.add_n(&all)
}

/// Accuracy: the fraction of `predictions`, logits or probabilities, whose largest element is the
/// label.
///
/// ```
/// # let g = ferroflow_train::Graph::new();
/// use ferroflow_train::losses;
/// let accuracy = losses::accuracy(&g.constant([1i64]), &g.constant([[0.1, 0.9]]));
/// assert_eq!(accuracy.shape().to_string(), "[]");
/// ```
#[track_caller]
pub fn accuracy(labels: &Output, predictions: &Output) -> Output {
    labels.graph().name_scope("accuracy", |_| {
        let right = predictions.argmax(-1).equal(labels.cast(DType::Int64));
        right.cast(DType::Float).mean_all()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{graph, session};

    #[test]
    fn losses_equal_those_of_tensorflow() {
        let g = graph();
        let [a, b] = [[1.0, 2.0], [1.0, 9.0]].map(|x| g.constant(x));
        let each = g.constant([1.0, 2.0, 3.0]).squared_difference([2.0, 2.0, 5.0]);
        let losses = [
            huber(&a, &b, 1.0),
            hinge(&g.constant([1.0, 0.0]), &g.constant([0.3, -0.3])),
            log_loss(&g.constant([1.0, 0.0]), &g.constant([0.9, 0.2])),
            weighted(&each, &g.constant([1.0, 0.0, 2.0])),
            weighted(&each, &g.constant(2.0)),
        ];
        let values = session(&g).unwrap().run(&losses).unwrap();
        let expected = [3.25, 0.7, 0.164_251_9, 4.5, 2.0 * 5.0 / 3.0];
        for (value, expected) in values.iter().zip(expected) {
            let value = value.scalar_value::<f32>().unwrap();
            assert!((value - expected).abs() < 1e-6, "{value} {expected}");
        }
    }

    #[test]
    fn labels_and_predictions_are_not_broadcast() {
        let g = graph();
        let line = line!() + 1;
        mean_squared_error(&g.constant([1.0, 2.0]), &g.constant([[1.0], [2.0]]));
        let e = g.check().unwrap_err();
        assert!(e.message().contains("incompatible"), "{e}");
        assert!(e.message().contains(&format!("losses.rs:{line}:")), "{e}");
    }
}
