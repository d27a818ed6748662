//! Convolutions of integers, for quantised images.

use super::conv::Conv;
use super::conv_ops::conv_shape;
use super::depthwise::convolved_depthwise;
use super::window::{Layout, Sliding, three};
use crate::prelude::*;
use ferroflow_ops_math::linalg::gemm::Finisher;

#[derive(Clone)]
pub(crate) struct Convolution(Sliding);

impl Convolution {
    pub fn new(attrs: &Attrs) -> Result<Convolution> {
        let sliding = Sliding::of_convolution(attrs, 2)?;
        ensure!(
            sliding.dilations == [1, 1],
            InvalidArgument,
            "Current implementation only supports dilations as 1."
        );
        ensure!(
            sliding.strides[0] == sliding.strides[1],
            InvalidArgument,
            "Current implementation only supports equal length strides in the row and column \
             dimensions."
        );
        Ok(Convolution(sliding))
    }

    /// Convolves an image by a filter, both given as their shapes and elements.
    pub fn run(&self, image: &Shape, filter: &Shape, x: &[i32], f: &[i32]) -> Result<Tensor> {
        ensure!(
            image.rank() == 4,
            InvalidArgument,
            "input must be rank 4 but is rank {}",
            image.rank()
        );
        ensure!(
            filter.rank() == 4,
            InvalidArgument,
            "filter must be rank 4 but is rank {}",
            filter.rank()
        );
        convolved(&self.0, image, filter, x, f)
    }
}

/// A convolution whose strides, dilations and padding may be any, and whose channels may have
/// filters of their own.
#[derive(Clone)]
pub(crate) struct AnyConvolution {
    sliding: Sliding,
    is_depthwise: bool,
}

impl AnyConvolution {
    pub fn new(attrs: &Attrs, is_depthwise: bool) -> Result<AnyConvolution> {
        let sliding = Sliding::of_convolution(attrs, 2)?;
        ensure!(
            sliding.layout == Layout::ChannelsLast,
            InvalidArgument,
            "quantized convolutions take images with channels last only"
        );
        Ok(AnyConvolution { sliding, is_depthwise })
    }

    /// Convolves an image by a filter, both given as their shapes and elements.
    pub fn run(&self, image: &Shape, filter: &Shape, x: &[i32], f: &[i32]) -> Result<Tensor> {
        for (name, shape) in [("input", image), ("filter", filter)] {
            ensure!(shape.rank() == 4, InvalidArgument, "{name} must be 4-dimensional: {shape}");
        }
        if self.is_depthwise {
            return convolved_depthwise(&self.sliding, (image, x), (filter, f));
        }
        convolved(&self.sliding, image, filter, x, f)
    }
}

/// The sums of an image and a filter of four dimensions.
fn convolved(
    sliding: &Sliding,
    image: &Shape,
    filter: &Shape,
    x: &[i32],
    f: &[i32],
) -> Result<Tensor> {
    ensure!(
        image[3] == filter[2],
        InvalidArgument,
        "input and filter must have the same depth: {} vs {}",
        image[3],
        filter[2]
    );
    ensure!(
        filter.elements() > 0,
        InvalidArgument,
        "filter must not have zero elements (i.e. all dimensions must be non-zero)"
    );
    let axes = sliding.axes(&image[1..3], &filter[..2])?;
    let conv = Conv {
        batch: image[0],
        axes: three(&axes),
        in_channels: image[3],
        out_channels: filter[3],
        groups: 1,
    };
    let shape = [image[0], axes[0].output, axes[1].output, filter[3]];
    let mut out = Tensor::zeros(DType::Int32, Shape::from_dims(&shape.map(|d| d as i64))?)?;
    conv.forward::<i32>(x, f, out.as_mut_slice()?, Finisher::NONE);
    Ok(out)
}

/// The shape of the output.
pub(crate) fn output_shape(c: &ShapeCtx<'_>, is_depthwise: bool) -> Result<PartialShape> {
    Ok(conv_shape(c, 2, is_depthwise)?.swap_remove(0))
}
