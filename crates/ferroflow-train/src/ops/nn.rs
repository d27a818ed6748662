//! Convolution, pooling, dropout, normalization.

use crate::output::Output;
use crate::value::IntoOutput;

/// The padding of windows at the edges of an image.
///
/// ```
/// # let g = ferroflow_train::Graph::new();
/// use ferroflow_train::Padding;
/// let image = g.placeholder::<f32>("image", [1, 8, 8, 3]);
/// assert_eq!(image.max_pool(3, 1, Padding::Same).shape().to_string(), "[1,8,8,3]");
/// assert_eq!(image.max_pool(3, 1, Padding::Valid).shape().to_string(), "[1,6,6,3]");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Padding {
    /// Pads with zeros. With stride 1 the size stays the same.
    #[default]
    Same,
    /// No padding.
    Valid,
}

impl Padding {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Padding::Same => "SAME",
            Padding::Valid => "VALID",
        }
    }
}

impl Output {
    /// Adds a vector along the channels, the last dimension.
    #[track_caller]
    pub fn bias_add(&self, bias: impl IntoOutput) -> Output {
        self.binary("BiasAdd", bias)
    }

    /// Convolution of images [batch, height, width, channels] with filters [height, width, in,
    /// out].
    #[track_caller]
    pub fn conv2d(&self, filter: impl IntoOutput, stride: i64, padding: Padding) -> Output {
        let filter = filter.into_output(&self.graph, Some(self.dtype()));
        self.graph
            .op("Conv2D")
            .input(self)
            .input(&filter)
            .attr("strides", vec![1, stride, stride, 1])
            .attr("padding", padding.name())
            .output()
    }

    /// The largest value of each window.
    #[track_caller]
    pub fn max_pool(&self, size: i64, stride: i64, padding: Padding) -> Output {
        self.pool("MaxPool", size, stride, padding)
    }

    /// The mean of each window.
    #[track_caller]
    pub fn avg_pool(&self, size: i64, stride: i64, padding: Padding) -> Output {
        self.pool("AvgPool", size, stride, padding)
    }

    #[track_caller]
    fn pool(&self, op: &str, size: i64, stride: i64, padding: Padding) -> Output {
        self.graph
            .op(op)
            .input(self)
            .attr("ksize", vec![1, size, size, 1])
            .attr("strides", vec![1, stride, stride, 1])
            .attr("padding", padding.name())
            .output()
    }

    /// Dropout: zeroes elements with probability `rate` and scales up the rest, which keeps the
    /// mean.
    #[track_caller]
    pub fn dropout(&self, rate: f32) -> Output {
        let shape = self.shape_op();
        let drawn = crate::ops::random(&self.graph, "RandomUniform", &shape, self.dtype(), None);
        let keep = drawn.greater_equal(rate);
        keep.select(self * (1.0 / (1.0 - rate)), self.zeros_like())
    }

    /// Scales to unit L2 norm along `axes`.
    #[track_caller]
    pub fn l2_normalize(&self, axes: &[i32]) -> Output {
        let norm = self.square().sum_keep(axes).maximum(1e-12);
        self * norm.rsqrt()
    }
}
