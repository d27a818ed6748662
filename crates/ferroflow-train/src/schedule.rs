//! Learning rates: a number, a tensor, or one that changes with the training step.
//!
//! ```
//! # let g = ferroflow_train::Graph::new();
//! use ferroflow_train::{Optimizer, Sgd, schedule};
//! let w = g.variable("w", 0.0);
//! let step = g.global_step();
//! let rate = schedule::exponential_decay(0.1, &step, 1000.0, 0.96, true);
//! let train = Sgd::new(rate).minimize_counted(&(&*w - 3.0).square(), &step);
//! assert!(g.check().is_ok());
//! ```

use crate::graph::Graph;
use crate::output::Output;
use crate::variable::Variable;
use ferroflow_core::DType;

/// A learning rate.
#[derive(Clone, Debug)]
pub enum Rate {
    /// A constant.
    Number(f32),
    /// A tensor.
    Tensor(Output),
}

impl Rate {
    #[track_caller]
    pub(crate) fn tensor(&self, graph: &Graph) -> Output {
        match self {
            Rate::Number(x) => graph.named_constant("learning_rate", *x),
            Rate::Tensor(output) => output.clone(),
        }
    }
}

impl From<f32> for Rate {
    fn from(x: f32) -> Rate {
        Rate::Number(x)
    }
}

impl From<Output> for Rate {
    fn from(output: Output) -> Rate {
        Rate::Tensor(output)
    }
}

impl From<&Output> for Rate {
    fn from(output: &Output) -> Rate {
        Rate::Tensor(output.clone())
    }
}

/// `rate * decay ^ (step / steps)`; in stairs if `staircase`.
///
/// ```
/// # let g = ferroflow_train::Graph::new();
/// use ferroflow_train::schedule::exponential_decay;
/// // Halves the rate every 1000 steps.
/// let rate = exponential_decay(0.1, &g.global_step(), 1000.0, 0.5, false);
/// assert_eq!(rate.shape().to_string(), "[]");
/// ```
#[track_caller]
pub fn exponential_decay(
    rate: f32,
    global_step: &Variable,
    steps: f32,
    decay: f32,
    staircase: bool,
) -> Output {
    let g = global_step.graph();
    g.name_scope("ExponentialDecay", |_| {
        let mut exponent = global_step.cast(DType::Float) / steps;
        if staircase {
            exponent = exponent.floor();
        }
        g.constant(decay).pow(exponent) * rate
    })
}

/// `rate * exp(-decay * step / steps)`; in stairs if `staircase`.
///
/// ```
/// # let g = ferroflow_train::Graph::new();
/// use ferroflow_train::schedule::natural_exp_decay;
/// let rate = natural_exp_decay(0.1, &g.global_step(), 1000.0, 0.5, false);
/// assert_eq!(rate.shape().to_string(), "[]");
/// ```
#[track_caller]
pub fn natural_exp_decay(
    rate: f32,
    global_step: &Variable,
    steps: f32,
    decay: f32,
    staircase: bool,
) -> Output {
    exponential_decay(rate, global_step, steps, (-decay).exp(), staircase)
}

/// `rate / (1 + decay * step / steps)`; in stairs if `staircase`.
///
/// ```
/// # let g = ferroflow_train::Graph::new();
/// use ferroflow_train::schedule::inverse_time_decay;
/// let rate = inverse_time_decay(0.1, &g.global_step(), 1000.0, 1.0, false);
/// assert_eq!(rate.shape().to_string(), "[]");
/// ```
#[track_caller]
pub fn inverse_time_decay(
    rate: f32,
    global_step: &Variable,
    steps: f32,
    decay: f32,
    staircase: bool,
) -> Output {
    global_step.graph().name_scope("InverseTimeDecay", |_| {
        let mut time = global_step.cast(DType::Float) / steps;
        if staircase {
            time = time.floor();
        }
        rate / (time * decay + 1.0)
    })
}

/// Polynomial decay from `rate` to `end` within `steps`.
///
/// ```
/// # let g = ferroflow_train::Graph::new();
/// use ferroflow_train::schedule::polynomial_decay;
/// let rate = polynomial_decay(0.1, &g.global_step(), 1000.0, 0.001, 1.0);
/// assert_eq!(rate.shape().to_string(), "[]");
/// ```
#[track_caller]
pub fn polynomial_decay(
    rate: f32,
    global_step: &Variable,
    steps: f32,
    end: f32,
    power: f32,
) -> Output {
    global_step.graph().name_scope("PolynomialDecay", |_| {
        let step = global_step.cast(DType::Float).minimum(steps);
        (1.0 - step / steps).pow(power) * (rate - end) + end
    })
}

/// [`polynomial_decay`] in cycles: when it ends, it restarts over two, three and more times
/// `steps`.
///
/// ```
/// # let g = ferroflow_train::Graph::new();
/// use ferroflow_train::schedule::polynomial_decay_in_cycles;
/// let rate = polynomial_decay_in_cycles(0.1, &g.global_step(), 1000.0, 0.001, 1.0);
/// assert_eq!(rate.shape().to_string(), "[]");
/// ```
#[track_caller]
pub fn polynomial_decay_in_cycles(
    rate: f32,
    global_step: &Variable,
    steps: f32,
    end: f32,
    power: f32,
) -> Output {
    global_step.graph().name_scope("PolynomialDecay", |_| {
        let step = global_step.cast(DType::Float);
        let length = (&step / steps).ceil().maximum(1.0) * steps;
        (1.0 - step / length).pow(power) * (rate - end) + end
    })
}

/// Cosine decay with restarts (Loshchilov and Hutter 2016): from `rate` to `alpha * rate` within
/// `steps`. Each restart is `longer` times as long and `lower` times as high.
///
/// ```
/// # let g = ferroflow_train::Graph::new();
/// use ferroflow_train::schedule::cosine_decay_restarts;
/// let rate = cosine_decay_restarts(0.1, &g.global_step(), 1000.0, 2.0, 1.0, 0.0);
/// assert_eq!(rate.shape().to_string(), "[]");
/// ```
#[track_caller]
pub fn cosine_decay_restarts(
    rate: f32,
    global_step: &Variable,
    steps: f32,
    longer: f32,
    lower: f32,
    alpha: f32,
) -> Output {
    let g = global_step.graph();
    g.name_scope("CosineDecayRestarts", |_| {
        let time = global_step.cast(DType::Float) / steps;
        let (restarts, done) = if longer == 1.0 {
            let restarts = time.floor();
            let done = &time - &restarts;
            (restarts, done)
        } else {
            // Restart i begins after the sum of the lengths before it, a geometric series.
            let restarts = ((1.0 - &time * (1.0 - longer)).log() / longer.ln()).floor();
            let length = g.constant(longer).pow(&restarts);
            let begin = (1.0 - &length) / (1.0 - longer);
            (restarts, (time - begin) / length)
        };
        let wave = ((done * std::f32::consts::PI).cos() + 1.0) * 0.5;
        let height = g.constant(lower).pow(restarts);
        (wave * height * (1.0 - alpha) + alpha) * rate
    })
}

/// Cosine decay from `rate` to `alpha * rate` within `steps`.
///
/// ```
/// # let g = ferroflow_train::Graph::new();
/// use ferroflow_train::schedule::cosine_decay;
/// let rate = cosine_decay(0.1, &g.global_step(), 1000.0, 0.0);
/// assert_eq!(rate.shape().to_string(), "[]");
/// ```
#[track_caller]
pub fn cosine_decay(rate: f32, global_step: &Variable, steps: f32, alpha: f32) -> Output {
    global_step.graph().name_scope("CosineDecay", |_| {
        let done = global_step.cast(DType::Float).minimum(steps) / steps;
        let wave = ((done * std::f32::consts::PI).cos() + 1.0) * 0.5;
        (wave * (1.0 - alpha) + alpha) * rate
    })
}

/// `values[i]` while the step is at most `boundaries[i]`, then the last value.
///
/// ```
/// # let g = ferroflow_train::Graph::new();
/// use ferroflow_train::schedule::piecewise_constant;
/// let rate = piecewise_constant(&g.global_step(), &[1000, 2000], &[0.1, 0.01, 0.001]);
/// assert!(g.check().is_ok());
/// ```
#[track_caller]
pub fn piecewise_constant(global_step: &Variable, boundaries: &[i64], values: &[f32]) -> Output {
    let g = global_step.graph();
    if values.len() != boundaries.len() + 1 {
        g.fail(ferroflow_core::err!(
            InvalidArgument,
            "the length of boundaries should be 1 less than the length of values: {} and {}",
            boundaries.len(),
            values.len()
        ));
        return Output::new(g, None);
    }
    g.name_scope("PiecewiseConstant", |_| {
        let last = g.constant(values[boundaries.len()]);
        let step = (**global_step).clone();
        boundaries.iter().zip(values).rev().fold(last, |later, (boundary, value)| {
            let bound = crate::value::number_as(
                ferroflow_core::Tensor::scalar(*boundary),
                global_step.dtype(),
            );
            let bound = g.constant_from(bound, None);
            step.less_equal(bound).select(*value, later)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{graph, initialized};

    /// Checks the rates at each global step.
    fn assert_rates<const N: usize>(rates: &[Output; N], expected: &[(i32, [f32; N])]) {
        let g = rates[0].graph();
        let s = initialized(g).unwrap();
        for (at, expected) in expected {
            s.run(g.global_step().assign(*at)).unwrap();
            for (value, expected) in s.run(rates).unwrap().iter().zip(expected) {
                let value = value.scalar_value::<f32>().unwrap();
                assert!((value - expected).abs() < 1e-6, "step {at}: {value} {expected}");
            }
        }
    }

    #[test]
    fn rates_follow_their_formulas() {
        let g = graph();
        let step = g.global_step();
        let rates = [
            exponential_decay(0.1, &step, 10.0, 0.5, false),
            exponential_decay(0.1, &step, 10.0, 0.5, true),
            inverse_time_decay(0.1, &step, 10.0, 0.5, false),
            polynomial_decay(0.1, &step, 30.0, 0.01, 2.0),
            cosine_decay(0.1, &step, 30.0, 0.0),
            piecewise_constant(&step, &[10, 20], &[1.0, 0.5, 0.1]),
        ];
        assert_rates(&rates, &[(15, [0.035_355_34, 0.05, 0.057_142_86, 0.0325, 0.05, 0.5])]);
    }

    #[test]
    fn rates_equal_those_of_tensorflow() {
        let g = graph();
        let step = g.global_step();
        let rates = [
            exponential_decay(0.1, &step, 10.0, 0.5, true),
            natural_exp_decay(0.1, &step, 10.0, 0.5, false),
            inverse_time_decay(0.1, &step, 10.0, 0.5, true),
            polynomial_decay(0.1, &step, 30.0, 0.01, 2.0),
            polynomial_decay_in_cycles(0.1, &step, 30.0, 0.01, 2.0),
            cosine_decay(0.1, &step, 30.0, 0.1),
            cosine_decay_restarts(0.1, &step, 10.0, 2.0, 0.5, 0.1),
        ];
        let expected: [(i32, [f32; 7]); 6] = [
            (0, [0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1]),
            (15, [0.05, 0.047_236_66, 0.066_666_67, 0.0325, 0.0325, 0.055, 0.048_409_905]),
            (29, [0.025, 0.023_457_028, 0.05, 0.0101, 0.0101, 0.010_246_514, 0.010_277_012]),
            (30, [0.0125, 0.022_313_017, 0.04, 0.01, 0.01, 0.01, 0.0325]),
            (31, [0.0125, 0.021_224_797, 0.04, 0.01, 0.031_025_002, 0.01, 0.032_465_32]),
            (65, [0.001_562_5, 0.003_877_421, 0.025, 0.01, 0.016_944_446, 0.01, 0.010_856_355]),
        ];
        assert_rates(&rates, &expected);
    }
}
