//! Ops. The ones models are written with are methods of [`Output`] and [`Graph`]; every op of the
//! catalog is a function of this module.
//!
//! A function takes the op's inputs, then its attributes without defaults. One without tensors
//! among its inputs takes the graph first. An op with more attributes also has a function that ends
//! in `_with` and takes them in a struct.
//!
//! ```
//! use ferroflow_train::{Graph, ops};
//! let g = Graph::new();
//! let x = g.constant([[1.0, 3.0, 2.0]]);
//! let (values, indices) = ops::top_k_v2(&x, &g.constant(2));
//! let options = ops::MatMulOptions { transpose_b: true, ..Default::default() };
//! let product = ops::mat_mul_with(&x, &x, options);
//! assert_eq!(values.shape().to_string(), "[1,2]");
//! assert_eq!(product.shape().to_string(), "[1,1]");
//! ```

mod array;
pub(crate) mod attrs;
// All defaults are written out, those of the types too: a reader sees them in one place.
#[allow(clippy::derivable_impls)]
mod generated;
mod nn;
mod reduce;

pub(crate) use array::known_dims;
pub use generated::*;
pub use nn::Padding;

use crate::graph::Graph;
use crate::output::Output;
use crate::value::IntoOutput;
use ferroflow_core::DType;

/// One row per op of one input.
macro_rules! unary {
    ($($name:ident $op:literal $doc:literal;)*) => {
        impl Output {$(
            #[doc = $doc]
            #[track_caller]
            pub fn $name(&self) -> Output {
                self.unary($op)
            }
        )*}
    };
}

unary! {
    abs "Abs" "Element-wise absolute value.";
    square "Square" "Element-wise square.";
    sqrt "Sqrt" "Element-wise square root.";
    rsqrt "Rsqrt" "Element-wise reciprocal of the square root.";
    exp "Exp" "Element-wise exponential.";
    log "Log" "Element-wise natural logarithm.";
    log1p "Log1p" "Element-wise `log(1 + x)`.";
    sin "Sin" "Element-wise sine.";
    cos "Cos" "Element-wise cosine.";
    tanh "Tanh" "Element-wise hyperbolic tangent.";
    sigmoid "Sigmoid" "Element-wise logistic function.";
    sign "Sign" "Element-wise -1, 0 or 1.";
    floor "Floor" "Element-wise largest integer that is not greater.";
    ceil "Ceil" "Element-wise smallest integer that is not less.";
    round "Rint" "Element-wise nearest integer, even ones at halves.";
    reciprocal "Reciprocal" "Element-wise reciprocal.";
    relu "Relu" "Element-wise `max(x, 0)`.";
    relu6 "Relu6" "Element-wise `min(max(x, 0), 6)`.";
    elu "Elu" "Element-wise exponential linear unit.";
    selu "Selu" "Element-wise scaled exponential linear unit.";
    softplus "Softplus" "Element-wise `log(1 + exp(x))`.";
    softsign "Softsign" "Element-wise `x / (1 + |x|)`.";
    softmax "Softmax" "Softmax along the last dimension.";
    log_softmax "LogSoftmax" "Logarithm of the softmax along the last dimension.";
    l2_loss "L2Loss" "Half the sum of the squares.";
    logical_not "LogicalNot" "Element-wise negation.";
    is_nan "IsNan" "Element-wise test for NaN.";
    is_finite "IsFinite" "Element-wise test for finite numbers.";
    identity "Identity" "The same tensor, as a node of its own.";
    stop_gradient "StopGradient" "The same tensor; gradients do not flow through it.";
    zeros_like "ZerosLike" "Zeros of the same type and shape.";
    ones_like "OnesLike" "Ones of the same type and shape.";
}

/// One row per op of two inputs; a plain number takes the type of the tensor.
macro_rules! binary {
    ($($name:ident $op:literal $doc:literal;)*) => {
        impl Output {$(
            #[doc = $doc]
            #[track_caller]
            pub fn $name(&self, other: impl IntoOutput) -> Output {
                self.binary($op, other)
            }
        )*}
    };
}

binary! {
    pow "Pow" "Element-wise power.";
    maximum "Maximum" "Element-wise maximum.";
    minimum "Minimum" "Element-wise minimum.";
    squared_difference "SquaredDifference" "Element-wise square of the difference.";
    div_no_nan "DivNoNan" "Element-wise quotient; 0 where the divisor is 0.";
    equal "Equal" "Element-wise equality.";
    not_equal "NotEqual" "Element-wise inequality.";
    less "Less" "Element-wise `<`.";
    less_equal "LessEqual" "Element-wise `<=`.";
    greater "Greater" "Element-wise `>`.";
    greater_equal "GreaterEqual" "Element-wise `>=`.";
    logical_and "LogicalAnd" "Element-wise conjunction.";
    logical_or "LogicalOr" "Element-wise disjunction.";
}

impl Output {
    /// The same numbers as another type.
    #[track_caller]
    pub fn cast(&self, to: DType) -> Output {
        if self.dtype() == to {
            return self.clone();
        }
        self.graph.op("Cast").input(self).attr("DstT", to).output()
    }

    /// Matrix product.
    #[track_caller]
    pub fn matmul(&self, other: impl IntoOutput) -> Output {
        self.matmul_with(other, false, false)
    }

    /// Matrix product with optional transposition. A rank above two is a batch of matrices.
    #[track_caller]
    pub fn matmul_with(&self, other: impl IntoOutput, left: bool, right: bool) -> Output {
        let other = other.into_output(&self.graph, Some(self.dtype()));
        let rank = self.shape().rank().unwrap_or(2).max(other.shape().rank().unwrap_or(2));
        let op = if rank > 2 { "BatchMatMulV2" } else { "MatMul" };
        let names = if rank > 2 { ["adj_x", "adj_y"] } else { ["transpose_a", "transpose_b"] };
        let op = self.graph.op(op).input(self).input(&other);
        op.attr(names[0], left).attr(names[1], right).output()
    }

    /// Elements of `yes` where this is true, else those of `no`.
    #[track_caller]
    pub fn select(&self, yes: impl IntoOutput, no: impl IntoOutput) -> Output {
        let yes = yes.into_output(&self.graph, None);
        let no = no.into_output(&self.graph, Some(yes.dtype()));
        self.graph.op("SelectV2").input(self).input(&yes).input(&no).output()
    }

    /// Elements no smaller than `low` and no larger than `high`.
    #[track_caller]
    pub fn clip(&self, low: impl IntoOutput, high: impl IntoOutput) -> Output {
        self.minimum(high).maximum(low)
    }

    /// Element-wise `x`, and `alpha x` below 0.
    #[track_caller]
    pub fn leaky_relu(&self, alpha: f32) -> Output {
        self.graph.op("LeakyRelu").input(self).attr("alpha", alpha).output()
    }
}

/// A random tensor of the given shape, of the named op (`RandomUniform`, …).
#[track_caller]
pub(crate) fn random(
    graph: &Graph,
    op: &str,
    shape: &Output,
    dtype: DType,
    seed: Option<i64>,
) -> Output {
    let (seed, seed2) = graph.seeds(seed);
    let op = graph.op(op).input(shape).attr("dtype", dtype);
    op.attr("seed", seed).attr("seed2", seed2).output()
}

impl Graph {
    /// The sum of tensors of one shape.
    #[track_caller]
    pub fn add_n(&self, outputs: &[Output]) -> Output {
        if let [one] = outputs {
            return one.clone();
        }
        self.op("AddN").list(outputs).output()
    }

    /// Numbers drawn uniformly from [0, 1), new ones in every step.
    #[track_caller]
    pub fn random_uniform(&self, shape: impl IntoOutput) -> Output {
        let shape = shape.into_output(self, Some(DType::Int32));
        random(self, "RandomUniform", &shape, DType::Float, None)
    }

    /// Numbers drawn from the standard normal distribution, new ones in every step.
    #[track_caller]
    pub fn random_normal(&self, shape: impl IntoOutput) -> Output {
        let shape = shape.into_output(self, Some(DType::Int32));
        random(self, "RandomStandardNormal", &shape, DType::Float, None)
    }

    /// The numbers from `start` up to `limit`.
    #[track_caller]
    pub fn range(
        &self,
        start: impl IntoOutput,
        limit: impl IntoOutput,
        delta: impl IntoOutput,
    ) -> Output {
        let start = start.into_output(self, None);
        let like = Some(start.dtype());
        let (limit, delta) = (limit.into_output(self, like), delta.into_output(self, like));
        self.op("Range").input(&start).input(&limit).input(&delta).output()
    }

    /// A tensor filled with one value.
    #[track_caller]
    pub fn fill(&self, dims: impl IntoOutput, value: impl IntoOutput) -> Output {
        let dims = dims.into_output(self, Some(DType::Int32));
        let value = value.into_output(self, None);
        self.op("Fill").input(&dims).input(&value).output()
    }

    /// Fails the step with `data` in the message unless `condition` is true.
    #[track_caller]
    pub fn assert(&self, condition: &Output, data: &[Output]) -> crate::Operation {
        self.op("Assert").input(condition).list(data).operation()
    }
}
