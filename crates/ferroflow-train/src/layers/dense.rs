//! Dense and convolutional layers.

use crate::init::{self, Initializer};
use crate::ops::{Padding, known_dims};
use crate::output::Output;
use crate::variable_scope::Reuse;
use ferroflow_core::{Result, Shape, err};

type Activation = fn(&Output) -> Output;

/// A dense layer: `activation(x kernel + bias)`.
///
/// ```
/// # let g = ferroflow_train::Graph::new();
/// use ferroflow_train::{Output, layers::Dense};
/// let x = g.placeholder::<f32>("x", [None, Some(64)]);
/// let hidden = Dense::new("hidden", 32).activation(Output::relu).apply(&x);
/// assert_eq!(hidden.shape().to_string(), "[?,32]");
/// ```
#[derive(Clone)]
pub struct Dense {
    name: String,
    units: usize,
    activation: Option<Activation>,
    has_bias: bool,
    kernel: Option<Initializer>,
}

impl Dense {
    /// A layer with `units` outputs.
    pub fn new(name: &str, units: usize) -> Dense {
        Dense { name: name.into(), units, activation: None, has_bias: true, kernel: None }
    }

    /// Sets the activation.
    pub fn activation(mut self, activation: Activation) -> Dense {
        self.activation = Some(activation);
        self
    }

    /// Omits the bias.
    pub fn without_bias(mut self) -> Dense {
        self.has_bias = false;
        self
    }

    /// Initializer of the kernel, whatever its shape; the default is Glorot uniform.
    pub fn kernel(mut self, kernel: Initializer) -> Dense {
        self.kernel = Some(kernel);
        self
    }

    /// Applies the layer.
    #[track_caller]
    pub fn apply(&self, x: &Output) -> Output {
        let g = x.graph();
        let width = x.shape().dims().and_then(|dims| dims.last().copied().flatten());
        let width = width.ok_or_else(|| {
            err!(
                InvalidArgument,
                "layer '{}': the last dimension of {} must be known",
                self.name,
                x.shape()
            )
        });
        let Some(width) = g.or_fail(width) else { return Output::new(g, None) };
        g.variable_scope(&self.name, Reuse::No, || {
            let shape = [width, self.units];
            let Some(kernel) = g.or_fail(chosen(&self.kernel, shape.into())) else {
                return Output::new(g, None);
            };
            let kernel = g.get_variable("kernel", kernel.of(x.dtype()));
            let bias = self
                .has_bias
                .then(|| g.get_variable("bias", init::zeros([self.units]).of(x.dtype())));
            let rank = x.shape().rank().unwrap_or(2);
            let mut y =
                if rank > 2 { dense_nd(x, &kernel, width, self.units) } else { x.matmul(&kernel) };
            if let Some(bias) = bias {
                y = y.bias_add(&bias);
            }
            self.activation.map_or(y.clone(), |f| f(&y))
        })
    }
}

/// The product over the last dimension of a tensor of higher rank.
#[track_caller]
fn dense_nd(x: &Output, kernel: &Output, width: usize, units: usize) -> Output {
    let g = x.graph();
    let flat = x.reshape([None, Some(width)]).matmul(kernel);
    let lead = x.shape().rank().unwrap_or(1) as i32 - 1;
    let shape = x.shape_op().slice(&[0], &[lead]);
    let units_t = g.constant([i32::try_from(units).unwrap_or(i32::MAX)]);
    let y = flat.reshape(g.concat(&[shape, units_t], 0));
    if let Some(dims) = x.shape().dims()
        && let Some((_, lead)) = dims.split_last()
    {
        let dims = lead.iter().copied().chain([Some(units)]);
        y.set_shape(ferroflow_core::PartialShape::new(dims));
    }
    y
}

fn chosen(given: &Option<Initializer>, shape: Shape) -> Result<Initializer> {
    match given {
        Some(initial) => initial.with_shape(shape),
        None => Ok(init::glorot_uniform(shape)),
    }
}

/// A convolutional layer over images [batch, height, width, channels].
///
/// ```
/// # let g = ferroflow_train::Graph::new();
/// use ferroflow_train::{Output, layers::Conv2d};
/// let x = g.placeholder::<f32>("x", [None, Some(28), Some(28), Some(1)]);
/// let maps = Conv2d::new("conv", 32, 5).stride(2).activation(Output::relu).apply(&x);
/// assert_eq!(maps.shape().to_string(), "[?,14,14,32]");
/// ```
#[derive(Clone)]
pub struct Conv2d {
    name: String,
    filters: usize,
    size: usize,
    stride: i64,
    padding: Padding,
    activation: Option<Activation>,
    kernel: Option<Initializer>,
}

impl Conv2d {
    /// `filters` filters of `size` by `size`.
    pub fn new(name: &str, filters: usize, size: usize) -> Conv2d {
        Conv2d {
            name: name.into(),
            filters,
            size,
            stride: 1,
            padding: Padding::Same,
            activation: None,
            kernel: None,
        }
    }

    /// Sets the stride; 1 by default.
    pub fn stride(mut self, stride: i64) -> Conv2d {
        self.stride = stride;
        self
    }

    /// Sets the padding.
    pub fn padding(mut self, padding: Padding) -> Conv2d {
        self.padding = padding;
        self
    }

    /// Sets the activation.
    pub fn activation(mut self, activation: Activation) -> Conv2d {
        self.activation = Some(activation);
        self
    }

    /// Initializer of the kernel; the default is Glorot uniform.
    pub fn kernel(mut self, kernel: Initializer) -> Conv2d {
        self.kernel = Some(kernel);
        self
    }

    /// Applies the layer.
    #[track_caller]
    pub fn apply(&self, x: &Output) -> Output {
        let g = x.graph();
        let channels = known_dims(x).and_then(|dims| {
            dims.get(2).copied().ok_or_else(|| {
                err!(InvalidArgument, "layer '{}' takes images, got {}", self.name, x.shape())
            })
        });
        let Some(channels) = g.or_fail(channels) else { return Output::new(g, None) };
        g.variable_scope(&self.name, Reuse::No, || {
            let shape = Shape::from([self.size, self.size, channels, self.filters]);
            let Some(kernel) = g.or_fail(chosen(&self.kernel, shape)) else {
                return Output::new(g, None);
            };
            let kernel = g.get_variable("kernel", kernel.of(x.dtype()));
            let bias = g.get_variable("bias", init::zeros([self.filters]).of(x.dtype()));
            let y = x.conv2d(&kernel, self.stride, self.padding).bias_add(&bias);
            self.activation.map_or(y.clone(), |f| f(&y))
        })
    }
}
