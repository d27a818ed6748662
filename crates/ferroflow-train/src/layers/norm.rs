//! Normalisation of activations.

use crate::graph::keys;
use crate::init;
use crate::output::Output;
use crate::variable::VariableOptions;
use crate::variable_scope::Reuse;
use ferroflow_core::{DType, Result, err};

/// Batch normalisation over all but the last dimension (Ioffe, Szegedy 2015).
///
/// In training, the ops that update the moving averages are in the collection [`keys::UPDATE_OPS`]:
/// run them with each step.
///
/// ```
/// # let g = ferroflow_train::Graph::new();
/// use ferroflow_train::{keys, layers::BatchNorm};
/// let x = g.placeholder::<f32>("x", [None, Some(8)]);
/// let y = BatchNorm::new("norm").apply(&x, true);
/// assert_eq!(g.operations_of(keys::UPDATE_OPS).len(), 2);
/// ```
#[derive(Clone, Debug)]
pub struct BatchNorm {
    name: String,
    momentum: f32,
    epsilon: f32,
}

impl BatchNorm {
    /// A layer with TensorFlow's default settings.
    pub fn new(name: &str) -> BatchNorm {
        BatchNorm { name: name.into(), momentum: 0.99, epsilon: 1e-3 }
    }

    /// Sets the momentum of the moving averages.
    pub fn momentum(mut self, momentum: f32) -> BatchNorm {
        self.momentum = momentum;
        self
    }

    /// Sets the number added to the variance.
    pub fn epsilon(mut self, epsilon: f32) -> BatchNorm {
        self.epsilon = epsilon;
        self
    }

    /// Applies the layer: with batch statistics in training, else with moving averages.
    #[track_caller]
    pub fn apply(&self, x: &Output, is_training: bool) -> Output {
        let g = x.graph();
        let Some(width) = g.or_fail(width_of(x, &self.name)) else { return Output::new(g, None) };
        g.variable_scope(&self.name, Reuse::No, || {
            let dtype = statistics_type(x);
            let (zeros, ones) = (init::zeros([width]).of(dtype), init::ones([width]).of(dtype));
            let gamma = g.get_variable("gamma", &ones);
            let beta = g.get_variable("beta", &zeros);
            let kept = || VariableOptions::untrained();
            let mean = g.get_variable_with("moving_mean", &zeros, kept());
            let variance = g.get_variable_with("moving_variance", &ones, kept());
            let rank = x.shape().rank().unwrap_or(2) as i32;
            // The fused op has no kernel for doubles.
            if rank == 4 && dtype == DType::Float {
                return self.fused(x, [&gamma, &beta, &mean, &variance], is_training);
            }
            let as_x = |y: Output| y.cast(x.dtype());
            let x = &x.cast(dtype);
            if !is_training {
                return as_x(normalise(x, &mean, &variance, &gamma, &beta, self.epsilon));
            }
            let axes: Vec<i32> = (0..rank - 1).collect();
            let batch_mean = x.mean(&axes);
            let batch_variance = x.squared_difference(batch_mean.stop_gradient()).mean(&axes);
            self.track(&mean, &batch_mean);
            self.track(&variance, &batch_variance);
            as_x(normalise(x, &batch_mean, &batch_variance, &gamma, &beta, self.epsilon))
        })
    }

    #[track_caller]
    fn fused(
        &self,
        x: &Output,
        [gamma, beta, mean, variance]: [&crate::Variable; 4],
        is_training: bool,
    ) -> Output {
        let g = x.graph();
        let empty = || g.constant(Vec::<f32>::new());
        let (m, v) = match is_training {
            true => (empty(), empty()),
            false => ((**mean).clone(), (**variance).clone()),
        };
        let op = g.op("FusedBatchNormV3").input(x).input(gamma).input(beta).input(&m).input(&v);
        let op = op.attr("epsilon", self.epsilon).attr("is_training", is_training);
        let [y, batch_mean, batch_variance] = op.split();
        if is_training {
            self.track(mean, &batch_mean);
            self.track(variance, &batch_variance);
        }
        y
    }

    /// Moves a moving average towards the batch's, when the update operations run.
    #[track_caller]
    fn track(&self, average: &crate::Variable, batch: &Output) {
        let update = average.assign_sub((&**average - batch) * (1.0 - self.momentum));
        average.graph().add_operation_to_collection(keys::UPDATE_OPS, &update);
    }
}

#[track_caller]
fn normalise(
    x: &Output,
    mean: &Output,
    variance: &Output,
    gamma: &Output,
    beta: &Output,
    epsilon: f32,
) -> Output {
    let scale = (variance + epsilon).rsqrt() * gamma;
    x * &scale + (beta - mean * &scale)
}

/// Normalises each example over its last dimension (Ba, Kiros, Hinton 2016).
///
/// ```
/// # let g = ferroflow_train::Graph::new();
/// use ferroflow_train::layers::layer_norm;
/// let x = g.placeholder::<f32>("x", [None, Some(8)]);
/// assert_eq!(layer_norm("norm", &x).shape().to_string(), "[?,8]");
/// ```
#[track_caller]
pub fn layer_norm(name: &str, x: &Output) -> Output {
    const EPSILON: f32 = 1e-12;
    let g = x.graph();
    let Some(width) = g.or_fail(width_of(x, name)) else { return Output::new(g, None) };
    g.variable_scope(name, Reuse::No, || {
        let beta = g.get_variable("beta", init::zeros([width]).of(x.dtype()));
        let gamma = g.get_variable("gamma", init::ones([width]).of(x.dtype()));
        let mean = x.mean_keep(&[-1]);
        let variance = x.squared_difference(&mean).mean_keep(&[-1]);
        normalise(x, &mean, &variance, &gamma, &beta, EPSILON)
    })
}

/// The type of means and variances: half floats are too coarse for them.
fn statistics_type(x: &Output) -> DType {
    if x.dtype() == DType::Double { DType::Double } else { DType::Float }
}

fn width_of(x: &Output, name: &str) -> Result<usize> {
    debug_assert!(x.dtype() != DType::String);
    let width = x.shape().dims().and_then(|dims| dims.last().copied().flatten());
    width.ok_or_else(|| {
        err!(InvalidArgument, "layer '{name}': the last dimension of {} must be known", x.shape())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layers::Dense;
    use crate::testing::{graph, initialized};
    use ferroflow_core::Tensor;

    #[test]
    fn activations_of_any_type_are_normalised() {
        for dtype in [DType::Float, DType::Double, DType::Half] {
            let g = graph();
            let x = g.constant([[1.0, 2.0], [3.0, 6.0]]).cast(dtype);
            let flat = BatchNorm::new("flat").apply(&x, true);
            let image = BatchNorm::new("image").apply(&x.reshape([2, 1, 1, 2]), true);
            let trained = Dense::new("dense", 2).apply(&layer_norm("layer", &x));
            let outputs = [flat, image, trained];
            assert!(outputs.iter().all(|y| y.dtype() == dtype), "{outputs:?}");
            let seen = outputs.map(|y| y.cast(DType::Float));
            let s = initialized(&g).unwrap();
            let values: Vec<Tensor> = s.run(&seen).unwrap();
            for value in &values[..2] {
                let value = value.as_slice::<f32>().unwrap();
                // Means 2 and 4, deviations 1 and 2.
                assert!((value[0] + 1.0).abs() < 3e-3 && (value[3] - 1.0).abs() < 3e-3);
            }
        }
    }
}
