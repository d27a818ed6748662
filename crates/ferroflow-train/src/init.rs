//! Initial values of variables.
//!
//! ```
//! # let g = ferroflow_train::Graph::new();
//! use ferroflow_train::init;
//! let w = g.variable("w", init::he_normal([3, 3, 16, 32]));
//! let b = g.variable("b", init::zeros([32]));
//! let from_values = g.variable("v", [1.0, 2.0]);
//! ```

use crate::graph::Graph;
use crate::output::Output;
use crate::value::IntoTensor;
use ferroflow_core::{DType, Result, Shape, Tensor, ensure};
use std::sync::Arc;

/// Makes the initial value of a variable.
#[derive(Clone)]
pub struct Initializer {
    pub(crate) dtype: DType,
    pub(crate) shape: Shape,
    /// For a partition: the shape of the whole variable, and the offset of the partition.
    whole: Option<(Shape, Vec<usize>)>,
    make: Arc<Make>,
    /// The only possible shape of the value, if there is one.
    is_fixed: bool,
}

type Make = dyn Fn(&Graph, DType, &Wanted<'_>) -> Output + Send + Sync;

/// The requested value: of a whole variable, or of one partition.
struct Wanted<'a> {
    shape: &'a Shape,
    /// The shape of the whole variable, which sets the scale of random values.
    whole: &'a Shape,
    /// The offset of the partition; `None` for the whole variable.
    offset: Option<&'a [usize]>,
}

impl Default for Initializer {
    fn default() -> Initializer {
        zeros(Shape::scalar())
    }
}

impl Initializer {
    /// An initializer that builds its value from type and shape.
    pub fn new(
        shape: impl Into<Shape>,
        make: impl Fn(&Graph, DType, &Shape) -> Output + Send + Sync + 'static,
    ) -> Initializer {
        Initializer::scaled(shape, move |g, dtype, wanted| make(g, dtype, wanted.shape))
    }

    fn scaled(
        shape: impl Into<Shape>,
        make: impl Fn(&Graph, DType, &Wanted<'_>) -> Output + Send + Sync + 'static,
    ) -> Initializer {
        Initializer {
            dtype: DType::Float,
            shape: shape.into(),
            whole: None,
            make: Arc::new(make),
            is_fixed: false,
        }
    }

    /// The same initializer for another type.
    pub fn of(mut self, dtype: DType) -> Initializer {
        self.dtype = dtype;
        self
    }

    /// The same initializer for another shape.
    pub fn with_shape(&self, shape: Shape) -> Result<Initializer> {
        ensure!(
            !self.is_fixed || shape == self.shape,
            InvalidArgument,
            "an initial value of shape {} cannot be one of shape {shape}",
            self.shape
        );
        Ok(Initializer { shape, ..self.clone() })
    }

    /// The initializer of the partition that begins at `offset`.
    pub(crate) fn part(&self, offset: Vec<usize>, shape: Shape) -> Initializer {
        Initializer { shape, whole: Some((self.shape.clone(), offset)), ..self.clone() }
    }

    #[track_caller]
    pub(crate) fn make(&self, graph: &Graph) -> Output {
        let (whole, offset) = match &self.whole {
            Some((whole, offset)) => (whole, Some(offset.as_slice())),
            None => (&self.shape, None),
        };
        (self.make)(graph, self.dtype, &Wanted { shape: &self.shape, whole, offset })
    }
}

/// An initial value: an [`Initializer`] or a constant.
pub trait IntoInitializer {
    /// The initializer.
    fn into_initializer(self) -> Result<Initializer>;
}

impl IntoInitializer for Initializer {
    fn into_initializer(self) -> Result<Initializer> {
        Ok(self)
    }
}

impl IntoInitializer for &Initializer {
    fn into_initializer(self) -> Result<Initializer> {
        Ok(self.clone())
    }
}

impl<T: IntoTensor> IntoInitializer for T {
    fn into_initializer(self) -> Result<Initializer> {
        let value = self.into_tensor()?;
        Ok(Initializer {
            dtype: value.dtype(),
            shape: value.shape().clone(),
            whole: None,
            make: Arc::new(move |g, _, wanted| {
                let whole = g.named_constant("value", &value);
                match wanted.offset {
                    Some(offset) => whole.slice(&ints(offset), &ints(wanted.shape.dims())),
                    None => whole,
                }
            }),
            is_fixed: true,
        })
    }
}

/// All zeros.
pub fn zeros(shape: impl Into<Shape>) -> Initializer {
    Initializer::new(shape, |g, dtype, shape| {
        g.constant_from(Tensor::zeros(dtype, shape.clone()), Some("zeros"))
    })
}

/// All ones.
pub fn ones(shape: impl Into<Shape>) -> Initializer {
    filled(shape, 1.0)
}

/// All `value`.
pub fn filled(shape: impl Into<Shape>, value: f32) -> Initializer {
    Initializer::new(shape, move |g, dtype, shape| {
        let value = crate::value::number_as(Tensor::scalar(value), dtype);
        let value = g.constant_from(value, Some("value"));
        g.op("Fill").name("filled").input(&dims(g, shape)).input(&value).output()
    })
}

/// Uniformly between `low` and `high`.
pub fn uniform(shape: impl Into<Shape>, low: f32, high: f32) -> Initializer {
    Initializer::new(shape, move |g, dtype, shape| {
        let unit = crate::ops::random(g, "RandomUniform", &dims(g, shape), dtype, None);
        unit * (high - low) + low
    })
}

/// Normally distributed.
pub fn normal(shape: impl Into<Shape>, mean: f32, deviation: f32) -> Initializer {
    Initializer::new(shape, move |g, dtype, shape| {
        let unit = crate::ops::random(g, "RandomStandardNormal", &dims(g, shape), dtype, None);
        unit * deviation + mean
    })
}

/// Normally distributed, truncated at two standard deviations from the mean.
pub fn truncated_normal(shape: impl Into<Shape>, mean: f32, deviation: f32) -> Initializer {
    Initializer::new(shape, move |g, dtype, shape| {
        let unit = crate::ops::random(g, "TruncatedNormal", &dims(g, shape), dtype, None);
        unit * deviation + mean
    })
}

/// Glorot uniform (Glorot and Bengio 2010): keeps the variance of activations and of gradients.
/// TensorFlow's default.
pub fn glorot_uniform(shape: impl Into<Shape>) -> Initializer {
    Initializer::scaled(shape, |g, dtype, wanted| {
        let (fan_in, fan_out) = fans(wanted.whole);
        let limit = (6.0 / (fan_in + fan_out).max(1.0)).sqrt() as f32;
        let unit = crate::ops::random(g, "RandomUniform", &dims(g, wanted.shape), dtype, None);
        unit * (2.0 * limit) - limit
    })
}

/// He normal (He et al. 2015): truncated normal, with the variance for layers of rectifiers.
pub fn he_normal(shape: impl Into<Shape>) -> Initializer {
    Initializer::scaled(shape, |g, dtype, wanted| {
        // The standard deviation of a unit normal after truncation.
        const KEPT: f64 = 0.879_625_661_034_239_8;
        let deviation = ((2.0 / fans(wanted.whole).0.max(1.0)).sqrt() / KEPT) as f32;
        crate::ops::random(g, "TruncatedNormal", &dims(g, wanted.shape), dtype, None) * deviation
    })
}

/// Fan-in and fan-out of a weight tensor.
fn fans(shape: &Shape) -> (f64, f64) {
    match shape.dims() {
        [] => (1.0, 1.0),
        [n] => (*n as f64, *n as f64),
        [field @ .., fan_in, fan_out] => {
            let field = field.iter().map(|&d| d as f64).product::<f64>();
            (field * *fan_in as f64, field * *fan_out as f64)
        }
    }
}

fn dims(g: &Graph, shape: &Shape) -> Output {
    g.named_constant("shape", ints(shape.dims()))
}

fn ints(dims: &[usize]) -> Vec<i32> {
    dims.iter().map(|&d| i32::try_from(d).unwrap_or(i32::MAX)).collect()
}
