//! Stochastic dual coordinate ascent for linear models (Shalev-Shwartz and Zhang; in the form for
//! several partitions of Ma and others, "Adding vs. Averaging in Distributed Primal-Dual
//! Optimization").
//!
//! Each example has a dual variable. A step visits the examples of a batch one after the other and
//! moves each dual variable to its best value while the others stay. The weights follow.

use crate::prelude::*;
use ferroflow_op_kit::handle::Target;
use ferroflow_op_kit::philox::{Philox, SharedPhilox, Singles};
use std::collections::{HashMap, HashSet};

/// Newton's method converges quadratically: these steps are more than enough.
const NEWTON_STEPS: usize = 10;

/// Columns of the state of an example: its dual variable, its primal loss, its dual loss, and its
/// weight.
const STATE: usize = 4;

#[derive(Clone, Copy)]
enum Loss {
    Logistic,
    Squared,
    Hinge,
    SmoothHinge,
    Poisson,
}

/// The inputs of the best value of a dual variable.
struct Point {
    label: f64,
    dual: f64,
    /// The prediction.
    wx: f64,
    /// How much a change of the dual variable changes the prediction.
    gain: f64,
}

impl Loss {
    fn named(name: &str) -> Result<Loss> {
        Ok(match name {
            "logistic_loss" => Loss::Logistic,
            "squared_loss" => Loss::Squared,
            "hinge_loss" => Loss::Hinge,
            "smooth_hinge_loss" => Loss::SmoothHinge,
            "poisson_loss" => Loss::Poisson,
            _ => bail!(InvalidArgument, "Unsupported loss type: {name}"),
        })
    }

    /// The label as the loss uses it: classes are -1 and 1.
    fn label(self, given: f32) -> Result<f64> {
        match self {
            Loss::Squared => {}
            Loss::Poisson => ensure!(
                given >= 0.0 || given.is_nan(),
                InvalidArgument,
                "Only non-negative labels can be used with the Poisson log loss. Found example \
                 with label: {given}"
            ),
            _ if given == 0.0 => return Ok(-1.0),
            _ => ensure!(
                given == 1.0,
                InvalidArgument,
                "Only labels of 0.0 or 1.0 are supported right now. Found example with label: \
                 {given}"
            ),
        }
        Ok(f64::from(given))
    }

    /// The value of the dual variable at which the dual objective is greatest.
    fn best_dual(self, at: &Point) -> f64 {
        let Point { label: y, dual, wx, gain } = *at;
        let within = |dual: f64| match y * dual {
            below if below < 0.0 => 0.0,
            above if above > 1.0 => y,
            _ => dual,
        };
        match self {
            Loss::Squared => dual + (y - dual - wx) / (1.0 + gain),
            Loss::Hinge => within(dual + (y - wx) / gain),
            Loss::SmoothHinge => within(dual + (y - wx - dual) / (gain + 1.0)),
            Loss::Logistic => {
                // The dual variable is (1 + tanh x) / 2y.
                let mut x = 0f64;
                for _ in 0..NEWTON_STEPS {
                    let t = x.tanh();
                    let value = -2.0 * y * x - wx - gain * (0.5 * (1.0 + t) / y - dual);
                    let slope = -2.0 * y - gain * (1.0 - t * t) * 0.5 / y;
                    x -= value / slope;
                }
                0.5 * (1.0 + x.tanh()) / y
            }
            Loss::Poisson => {
                // The dual variable is y - exp x.
                let mut x = if y > dual { (y - dual).ln() } else { 0.0 };
                for _ in 0..NEWTON_STEPS {
                    let e = x.exp();
                    x -= (x - wx - gain * (y - dual - e)) / (1.0 + gain * e);
                }
                y - x.exp()
            }
        }
    }

    fn primal(self, wx: f64, y: f64) -> f64 {
        let margin = y * wx;
        match self {
            Loss::Squared => 0.5 * (wx - y) * (wx - y),
            Loss::Hinge => (1.0 - margin).max(0.0),
            Loss::SmoothHinge if margin >= 1.0 => 0.0,
            Loss::SmoothHinge if margin <= 0.0 => 0.5 - margin,
            Loss::SmoothHinge => 0.5 * (1.0 - margin) * (1.0 - margin),
            Loss::Logistic => (-margin.abs()).exp().ln_1p() - margin.min(0.0),
            Loss::Poisson => wx.exp() - wx * y,
        }
    }

    /// The derivative of the primal loss by the prediction.
    fn slope(self, wx: f64, y: f64) -> f64 {
        let margin = y * wx;
        match self {
            Loss::Squared => wx - y,
            Loss::Hinge if margin < 1.0 => -y,
            Loss::SmoothHinge if margin <= 0.0 => -y,
            Loss::SmoothHinge if margin < 1.0 => wx - y,
            Loss::Hinge | Loss::SmoothHinge => 0.0,
            Loss::Logistic => -y / (1.0 + margin.exp()),
            Loss::Poisson => wx.exp() - y,
        }
    }

    /// The convex conjugate of the loss; the largest number stands for infinity.
    fn dual_loss(self, dual: f64, y: f64) -> f64 {
        let scaled = dual * y;
        let x_ln_x = |x: f64| if x > 0.0 { x * x.ln() } else { 0.0 };
        match self {
            Loss::Squared => dual * (0.5 * dual - y),
            Loss::Hinge | Loss::SmoothHinge if !(0.0..=1.0).contains(&scaled) => f64::MAX,
            Loss::Hinge => -scaled,
            Loss::SmoothHinge => -scaled + 0.5 * dual * dual,
            Loss::Logistic => x_ln_x(scaled) + x_ln_x(1.0 - scaled),
            Loss::Poisson if y < dual => f64::MAX,
            Loss::Poisson => x_ln_x(y - dual) - (y - dual),
        }
    }

    /// How smooth the loss is: the inverse of the Lipschitz constant of its derivative.
    fn smoothness(self) -> f64 {
        match self {
            Loss::Logistic => 4.0,
            Loss::Hinge => 0.0,
            _ => 1.0,
        }
    }
}

#[derive(Clone, Copy)]
struct Regularization {
    l2: f64,
    /// The L1 part divided by the L2 part: the shrinkage of each weight.
    shrinkage: f64,
}

impl Regularization {
    fn new(init: &KernelInit<'_>) -> Result<Regularization> {
        let (l1, l2) = (init.float("l1")?, init.float("l2")?);
        Ok(Regularization { l2: f64::from(l2), shrinkage: f64::from(l1 / l2) })
    }

    fn shrink(self, weight: f64) -> f64 {
        // A comparison, so that a NaN of the shrinkage gives zeros as in TensorFlow.
        let size = weight.abs() - self.shrinkage;
        if size > 0.0 { size.copysign(weight) } else { 0.0 }
    }
}

/// A group of features: the weights, what was added to them, and the features of each example as
/// positions of weights with values.
struct FeatureGroup<'a> {
    weights: &'a [f32],
    deltas: Vec<f32>,
    features: Features<'a>,
}

enum Features<'a> {
    Dense { values: &'a [f32], columns: usize },
    Sparse { examples: Vec<std::ops::Range<usize>>, at: Vec<usize>, values: Option<&'a [f32]> },
}

impl FeatureGroup<'_> {
    /// Calls `f` with the position and the value of each feature of an example.
    fn each(&self, example: usize, mut f: impl FnMut(usize, f64)) {
        match &self.features {
            Features::Dense { values, columns } => {
                let row = &values[example * columns..][..*columns];
                row.iter().enumerate().for_each(|(i, x)| f(i, f64::from(*x)));
            }
            Features::Sparse { examples, at, values } => {
                for k in examples[example].clone() {
                    f(at[k], values.map_or(1.0, |values| f64::from(values[k])));
                }
            }
        }
    }

    fn add(&mut self, example: usize, step: f64) {
        let mut deltas = std::mem::take(&mut self.deltas);
        self.each(example, |i, x| deltas[i] = (f64::from(deltas[i]) + x * step) as f32);
        self.deltas = deltas;
    }
}

/// The prediction with the weights so far, and with those before this step.
struct Predictions {
    now: f64,
    before: f64,
}

struct Sdca {
    loss: Loss,
    is_adaptive: bool,
    sparse: usize,
    with_values: usize,
    dense: usize,
    partitions: f64,
    regularization: Regularization,
    order: SharedPhilox,
}

impl Sdca {
    fn new(init: &KernelInit<'_>, adaptive: &str) -> Result<Sdca> {
        let count = |name| Ok::<_, Error>(usize::try_from(init.int(name)?).unwrap_or(0));
        let (sparse, dense) = (count("num_sparse_features")?, count("num_dense_features")?);
        ensure!(sparse + dense > 0, InvalidArgument, "Requires at least one feature to train.");
        Ok(Sdca {
            loss: Loss::named(&init.string("loss_type")?)?,
            is_adaptive: init.bool(adaptive)?,
            sparse,
            with_values: count("num_sparse_features_with_values")?,
            dense,
            partitions: init.int("num_loss_partitions")? as f64,
            regularization: Regularization::new(init)?,
            order: SharedPhilox::new(Philox::seeded(0, 0)),
        })
    }

    fn groups<'a>(&self, ctx: &'a Ctx<'_>, examples: usize) -> Result<Vec<FeatureGroup<'a>>> {
        let (s, v, d) = (self.sparse, self.with_values, self.dense);
        let first_dense = 2 * s + v;
        let known = first_dense + d + 2;
        let mut groups = Vec::with_capacity(s + d);
        for i in 0..s {
            let (example, feature) = (ctx.input(i)?, ctx.input(s + i)?);
            let (example, feature) = (example.as_slice::<i64>()?, feature.as_slice::<i64>()?);
            ensure!(
                example.len() == feature.len(),
                InvalidArgument,
                "Found mismatched example_indices and feature_indices: {} vs {} elements",
                example.len(),
                feature.len()
            );
            let values = match i < v {
                true => Some(ctx.input(2 * s + i)?.as_slice::<f32>()?),
                false => None,
            };
            ensure!(
                values.is_none_or(|values| values.len() == feature.len()),
                InvalidArgument,
                "sparse_feature_values {i} must have {} elements, as many as there are indices",
                feature.len()
            );
            let indices = ctx.input(known + i)?.as_slice::<i64>()?;
            let weights = ctx.input(known + s + i)?.as_slice::<f32>()?;
            ensure!(
                indices.len() == weights.len(),
                InvalidArgument,
                "sparse_indices {i} and sparse_weights {i} must have the same length, got {} and {}",
                indices.len(),
                weights.len()
            );
            let features = sparse_features(example, feature, indices, values, examples)?;
            groups.push(FeatureGroup { weights, deltas: vec![0.0; weights.len()], features });
        }
        for i in 0..d {
            let features = ctx.input(first_dense + i)?;
            ensure!(
                features.rank() == 2,
                InvalidArgument,
                "Dense features at index {i} must be rank 2 but is rank {}",
                features.rank()
            );
            let weights = ctx.input(known + 2 * s + i)?.as_slice::<f32>()?;
            let (rows, columns) = (features.shape()[0], features.shape()[1]);
            ensure!(
                columns <= weights.len(),
                InvalidArgument,
                "More dense features than we have parameters for: {columns}"
            );
            ensure!(
                columns == weights.len() && rows == examples,
                InvalidArgument,
                "Dense features at index {i} must have shape [{examples}, {}], got {}",
                weights.len(),
                features.shape()
            );
            let features = Features::Dense { values: features.as_slice::<f32>()?, columns };
            groups.push(FeatureGroup { weights, deltas: vec![0.0; weights.len()], features });
        }
        Ok(groups)
    }

    fn predict(&self, groups: &[FeatureGroup<'_>], example: usize) -> Predictions {
        let mut sums = Predictions { now: 0.0, before: 0.0 };
        for group in groups {
            group.each(example, |i, x| {
                let weight = f64::from(group.weights[i]);
                let moved = weight + f64::from(group.deltas[i]) * self.partitions;
                sums.before += x * self.regularization.shrink(weight);
                sums.now += x * self.regularization.shrink(moved);
            });
        }
        sums
    }

    /// The order in which the examples are visited. Adaptive: examples that can move most are
    /// visited more often, each further visit ten times more rarely. The others are visited once at
    /// the end.
    fn visits(&self, chances: Option<Vec<f64>>, count: usize) -> Vec<usize> {
        let words = if chances.is_some() { 4 * count } else { 2 * count };
        let mut random = Singles::new(self.order.reserve_words(words as u64));
        let Some(chances) = chances else {
            let mut order: Vec<usize> = (0..count).collect();
            for i in (1..count).rev() {
                order.swap(i, random.below_u64(i as u64 + 1) as usize);
            }
            return order;
        };
        let mut sums = chances.clone();
        for i in 1..count {
            sums[i] += sums[i - 1];
        }
        let total = sums.last().copied().unwrap_or(0.0);
        let (mut order, mut seen, mut tries) = (Vec::with_capacity(count), vec![0; count], 0);
        while total > 0.0 && total.is_finite() && order.len() < count && tries < count {
            let at = total * f64::from(random.next_f32());
            let picked = sums.partition_point(|sum| *sum <= at).min(count - 1);
            if f64::from(random.next_f32()) > 0.1f64.powi(seen[picked]) {
                tries += 1;
                continue;
            }
            seen[picked] += 1;
            order.push(picked);
        }
        let mut rest: Vec<usize> = (0..count).filter(|i| seen[*i] == 0).collect();
        rest.sort_by(|a, b| chances[*b].total_cmp(&chances[*a]));
        order.extend(rest);
        order.truncate(count);
        order
    }
}

/// The features of each example. Entries are sorted by example.
fn sparse_features<'a>(
    example: &[i64],
    feature: &[i64],
    indices: &[i64],
    values: Option<&'a [f32]>,
    examples: usize,
) -> Result<Features<'a>> {
    let positions: HashMap<i64, usize> = indices.iter().copied().zip(0..).collect();
    let mut at = vec![0; feature.len()];
    let (mut ranges, mut end) = (Vec::with_capacity(examples), 0);
    let mut of_example = HashSet::new();
    for id in 0..examples {
        let start = end;
        of_example.clear();
        while end < example.len() && example[end] == id as i64 {
            let Some(position) = positions.get(&feature[end]) else {
                bail!(
                    InvalidArgument,
                    "Found sparse feature indices out of valid range: {}",
                    feature[end]
                );
            };
            ensure!(
                of_example.insert(feature[end]),
                InvalidArgument,
                "Duplicate index in sparse vector."
            );
            at[end] = *position;
            end += 1;
        }
        ranges.push(start..end);
    }
    Ok(Features::Sparse { examples: ranges, at, values })
}

impl Kernel for Sdca {
    fn compute(&self, ctx: &mut Ctx<'_>) -> Result<()> {
        let first = 2 * self.sparse + self.with_values + self.dense;
        let (weights, labels) = (ctx.input(first)?, ctx.input(first + 1)?);
        let (weights, labels) = (weights.as_slice::<f32>()?, labels.as_slice::<f32>()?);
        let n = weights.len();
        ensure!(
            labels.len() == n,
            InvalidArgument,
            "Expected {n} example labels but got {}",
            labels.len()
        );
        let mut groups = self.groups(ctx, n)?;
        let state = ctx.input(ctx.num_inputs() - 1)?;
        ensure!(
            state.rank() == 2,
            InvalidArgument,
            "example_state_data must be rank 2 but is rank {}",
            state.rank()
        );
        ensure!(
            state.shape().dims() == [n, STATE],
            InvalidArgument,
            "Expected shape [{n},{STATE}] for example_state_data, got {}",
            state.shape()
        );
        let mut state = state.clone();
        let rows = state.as_mut_slice::<f32>()?;
        let labels: Vec<f64> = labels.iter().map(|y| self.loss.label(*y)).collect::<Result<_>>()?;
        let norms: Vec<f64> = (0..n)
            .map(|example| {
                let mut norm = 0.0;
                groups.iter().for_each(|group| group.each(example, |_, x| norm += x * x));
                norm
            })
            .collect();
        let l2 = self.regularization.l2;
        let chance = |(example, norm): (usize, &f64)| {
            let slope = self.loss.slope(self.predict(&groups, example).now, labels[example]);
            let residual = f64::from(rows[example * STATE]) + slope;
            let scale = (norm + l2 * self.loss.smoothness()).sqrt();
            f64::from(weights[example]) * scale * residual.abs()
        };
        let chances = self.is_adaptive.then(|| norms.iter().enumerate().map(chance).collect());
        for example in self.visits(chances, n) {
            let row = &mut rows[example * STATE..][..STATE];
            let (y, weight) = (labels[example], f64::from(weights[example]));
            let dual = f64::from(row[0]);
            let wx = self.predict(&groups, example);
            let gain = self.partitions * norms[example] / l2 * weight;
            let new = self.loss.best_dual(&Point { label: y, dual, wx: wx.now, gain });
            let step = (new - dual) * weight / l2;
            groups.iter_mut().for_each(|group| group.add(example, step));
            row[0] = new as f32;
            row[1] = (self.loss.primal(wx.before, y) * weight) as f32;
            row[2] = match self.loss.dual_loss(dual, y) {
                f64::MAX => f64::MAX as f32,
                loss => (loss * weight) as f32,
            };
            row[3] = weight as f32;
        }
        let first = first + 2 + self.sparse;
        let mut deltas: Vec<Tensor> = Vec::with_capacity(groups.len());
        for (i, group) in groups.into_iter().enumerate() {
            let shape = ctx.input(first + i)?.shape().clone();
            deltas.push(Tensor::from_slice(shape, &group.deltas)?);
        }
        ctx.set(0, state)?;
        deltas.into_iter().enumerate().try_for_each(|(i, delta)| ctx.set(1 + i, delta))
    }
}

/// The outputs have the shapes of the state and of the weights.
fn sdca_shapes(c: &ShapeCtx<'_>) -> Result<Vec<PartialShape>> {
    let (last, deltas) = (c.inputs.len() - 1, c.outputs - 1);
    let weights = (last - deltas..last).map(|i| c.input(i));
    Ok(std::iter::once(c.input(last)).chain(weights).collect())
}

/// Subtracts the shrinkage from each weight.
struct ShrinkL1 {
    regularization: Regularization,
    targets: Vec<Target>,
}

impl Kernel for ShrinkL1 {
    fn compute(&self, ctx: &mut Ctx<'_>) -> Result<()> {
        let shrinkage = self.regularization.shrinkage as f32;
        for target in &self.targets {
            target.get(ctx)?.modify(|weights| {
                for w in weights.as_mut_slice::<f32>()? {
                    let size = (w.abs() - shrinkage).max(0.0);
                    *w = if *w == 0.0 { 0.0 } else { size * w.signum() };
                }
                Ok(())
            })?;
        }
        Ok(())
    }
}

pub(crate) fn register(c: &mut Catalog) {
    for (name, adaptive) in [("SdcaOptimizer", "adaptative"), ("SdcaOptimizerV2", "adaptive")] {
        c.op(name)
            .doc("A step of stochastic dual coordinate ascent for a linear model.")
            .input("sparse_example_indices: num_sparse_features * int64")
            .input("sparse_feature_indices: num_sparse_features * int64")
            .input("sparse_feature_values: num_sparse_features_with_values * float")
            .input("dense_features: num_dense_features * float")
            .input("example_weights: float")
            .input("example_labels: float")
            .input("sparse_indices: num_sparse_features * int64")
            .input("sparse_weights: num_sparse_features * float")
            .input("dense_weights: num_dense_features * float")
            .input("example_state_data: float")
            .output("out_example_state_data: float")
            .output("out_delta_sparse_weights: num_sparse_features * float")
            .output("out_delta_dense_weights: num_dense_features * float")
            .attr(
                "loss_type: {'logistic_loss', 'squared_loss', 'hinge_loss', 'smooth_hinge_loss', \
                 'poisson_loss'}",
            )
            .attr(&format!("{adaptive}: bool = false"))
            .attr("num_sparse_features: int >= 0")
            .attr("num_sparse_features_with_values: int >= 0")
            .attr("num_dense_features: int >= 0")
            .attr("l1: float")
            .attr("l2: float")
            .attr("num_loss_partitions: int >= 1")
            .attr("num_inner_iterations: int >= 1")
            .shape(sdca_shapes)
            .expensive()
            .cpu(move |init| Ok(KernelBox::new(Sdca::new(init, adaptive)?)));
    }
    c.op("SdcaShrinkL1")
        .doc("Takes the L1 part of the regularization off weights of stochastic dual coordinate ascent.")
        .input("weights: Ref(num_features * float)")
        .attr("num_features: int >= 0")
        .attr("l1: float")
        .attr("l2: float")
        .shape(shape::unknown)
        .cpu(|init| {
            let targets = (0..init.inputs.len()).map(|i| Target::new(init, i)).collect();
            let regularization = Regularization::new(init)?;
            Ok(KernelBox::new(ShrinkL1 { regularization, targets }))
        });
    c.no_gradient(&["SdcaOptimizer", "SdcaOptimizerV2", "SdcaShrinkL1"]);
}

#[cfg(test)]
mod tests;
