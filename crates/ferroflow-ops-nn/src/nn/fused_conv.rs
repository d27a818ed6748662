//! FusedPadConv2D and FusedResizeAndPadConv2D: convolutions of images that are first resized and
//! padded with their mirror images.

use super::conv::Conv;
use super::conv_ops::ConvElement;
use super::window::{Layout, Sliding, padding_of, three};
use crate::image::resize_bilinear;
use crate::prelude::*;
use ferroflow_ops_math::linalg::gemm::Finisher;

/// Strides and padding; there are no dilations.
fn sliding(attrs: &Attrs) -> Result<Sliding> {
    let strides = attrs.ints("strides")?;
    ensure!(
        strides.len() == 4,
        InvalidArgument,
        "Sliding window strides field must specify 4 dimensions"
    );
    ensure!(
        strides[0] == 1 && strides[3] == 1,
        InvalidArgument,
        "Current implementation does not yet support strides in the batch and depth dimensions."
    );
    ensure!(
        strides[1] > 0 && strides[2] > 0,
        InvalidArgument,
        "Row and column strides should be larger than 0."
    );
    Ok(Sliding {
        strides: strides[1..3].to_vec(),
        dilations: vec![1, 1],
        padding: padding_of(attrs, 2, Layout::ChannelsLast)?,
        layout: Layout::ChannelsLast,
    })
}

/// For each position of a side that is padded, the position that it mirrors. `offset` is 1 when
/// the edge itself is not repeated.
fn mirrored(len: usize, before: i64, after: i64, offset: i64) -> Result<Vec<usize>> {
    ensure!(
        before >= 0 && after >= 0,
        InvalidArgument,
        "paddings must be non-negative: {before} {after}"
    );
    let most = len as i64 - offset;
    ensure!(
        before <= most && after <= most,
        InvalidArgument,
        "paddings must be {} the dimension size: {before}, {after} {} {len}",
        if offset == 1 { "less than" } else { "no greater than" },
        if offset == 1 { "not less than" } else { "greater than" }
    );
    let len = len as i64;
    let source = |i: i64| match i {
        i if i < 0 => -i - 1 + offset,
        i if i >= len => 2 * len - 1 - offset - i,
        i => i,
    };
    Ok((-before..len + after).map(|i| source(i) as usize).collect())
}

struct FusedConv<T> {
    sliding: Sliding,
    /// Whether the size of the image is an input, and if so how corners are laid.
    align_corners: Option<bool>,
    offset: i64,
    marker: std::marker::PhantomData<T>,
}

impl<T: ConvElement> FusedConv<T> {
    fn new(init: &KernelInit<'_>, resized: bool) -> Result<FusedConv<T>> {
        let align_corners = match resized {
            true => Some(init.bool("resize_align_corners")?),
            false => None,
        };
        Ok(FusedConv {
            sliding: sliding(init.attrs)?,
            align_corners,
            offset: i64::from(init.string("mode")? == "REFLECT"),
            marker: std::marker::PhantomData,
        })
    }

    /// The image in single precision, resized.
    fn resized(&self, x: &Tensor, size: &Tensor, align_corners: bool) -> Result<Tensor> {
        let floats = T::widened(x)?;
        let wide = |t: &Tensor| -> Result<Tensor> {
            let values: Vec<f32> = match t.dtype() {
                DType::Double => t.as_slice::<f64>()?.iter().map(|&x| x as f32).collect(),
                _ => t.as_slice::<f32>()?.to_vec(),
            };
            Tensor::from_slice(t.shape().clone(), &values)
        };
        let resized = resize_bilinear::resized(&wide(&floats)?, size, align_corners)?;
        match floats.dtype() {
            DType::Double => {
                let values = resized.as_slice::<f32>()?.iter().map(|&x| f64::from(x));
                Tensor::from_slice(resized.shape().clone(), &values.collect::<Vec<_>>())
            }
            _ => Ok(resized),
        }
    }
}

impl<T: ConvElement> Kernel for FusedConv<T> {
    fn compute(&self, ctx: &mut Ctx<'_>) -> Result<()> {
        let x = ctx.input(0)?;
        ensure!(x.rank() == 4, InvalidArgument, "input must be 4-dimensional, got {}", x.shape());
        let (x, at) = match self.align_corners {
            Some(align) => (self.resized(x, ctx.input(1)?, align)?, 2),
            None => (T::widened(x)?, 1),
        };
        let (paddings, filter) = (ctx.input(at)?, ctx.input(at + 1)?);
        ensure!(
            paddings.shape().dims() == [4, 2],
            InvalidArgument,
            "paddings must be a matrix with 2 columns and a row for each dimension: {}",
            paddings.shape()
        );
        let pads = paddings.to_indices()?;
        ensure!(
            pads[..2] == [0, 0] && pads[6..] == [0, 0],
            InvalidArgument,
            "paddings of the batch and depth dimensions must be zero"
        );
        ensure!(
            filter.rank() == 4,
            InvalidArgument,
            "filter must be 4-dimensional: {}",
            filter.shape()
        );
        ensure!(
            x.shape()[3] == filter.shape()[2],
            InvalidArgument,
            "input and filter must have the same depth: {} vs {}",
            x.shape()[3],
            filter.shape()[2]
        );
        let (batch, depth) = (x.shape()[0], x.shape()[3]);
        let rows = mirrored(x.shape()[1], pads[2], pads[3], self.offset)?;
        let cols = mirrored(x.shape()[2], pads[4], pads[5], self.offset)?;
        let (height, width) = (x.shape()[1], x.shape()[2]);
        let size = [batch, rows.len(), cols.len(), depth];
        let shape = Shape::from_dims(&size.map(|d| d as i64))?;
        let mut padded = Tensor::alloc(<T::Wide as Element>::DTYPE, shape)?;
        let data = x.as_slice::<T::Wide>()?;
        let pixels = padded.as_mut_slice::<T::Wide>()?.chunks_exact_mut(depth.max(1));
        for (i, to) in pixels.enumerate() {
            let (b, at) = (i / (rows.len() * cols.len()), i % (rows.len() * cols.len()));
            let (y, x) = (rows[at / cols.len()], cols[at % cols.len()]);
            to.copy_from_slice(&data[((b * height + y) * width + x) * depth..][..depth]);
        }
        let axes = self.sliding.axes(&[rows.len(), cols.len()], &filter.shape()[..2])?;
        let out_channels = filter.shape()[3];
        let conv = Conv { batch, axes: three(&axes), in_channels: depth, out_channels, groups: 1 };
        let size = [batch, axes[0].output, axes[1].output, out_channels];
        let shape = Shape::from_dims(&size.map(|d| d as i64))?;
        let mut out = Tensor::alloc(<T::Wide as Element>::DTYPE, shape)?;
        let filter = T::widened(filter)?;
        let (x, filter) = (padded.as_slice()?, filter.as_slice()?);
        conv.forward::<T::Wide>(x, filter, out.as_mut_slice()?, Finisher::NONE);
        ctx.set(0, T::narrowed(out)?)
    }
}

/// The shape of the output, from that of the image and the paddings in input `at`.
fn output_shape(c: &ShapeCtx<'_>, at: usize) -> Result<Vec<PartialShape>> {
    let sliding = sliding(c.attrs)?;
    let image = c.input(0).merge(&PartialShape::of_rank(4))?;
    let filter = c.input(at + 1).merge(&PartialShape::of_rank(4))?;
    let size =
        if at == 2 { c.shape_from(1) } else { PartialShape::new([image.dim(1), image.dim(2)]) };
    let pads = c.constant_ints(at).filter(|p| p.len() == 8);
    let side = |i: usize| {
        let pads = pads.as_ref()?;
        let len = i64::try_from(size.dim(i)?).ok()?;
        let padded = len.checked_add(pads[2 + 2 * i])?.checked_add(pads[3 + 2 * i])?;
        usize::try_from(padded).ok()
    };
    let outputs = sliding.outputs(&[side(0), side(1)], &[filter.dim(0), filter.dim(1)])?;
    Ok(vec![PartialShape::new([image.dim(0), outputs[0], outputs[1], filter.dim(3)])])
}

pub(crate) fn register(c: &mut Catalog) {
    c.op("FusedPadConv2D")
        .doc("A convolution of images surrounded with their mirror images.")
        .input("input: T")
        .input("paddings: int32")
        .input("filter: T")
        .output("output: T")
        .attr("T: {half, bfloat16, float, double}")
        .attr("mode: {'REFLECT', 'SYMMETRIC'}")
        .attr("strides: list(int)")
        .attr("padding: {'SAME', 'VALID'}")
        .expensive()
        .shape(|c| output_shape(c, 1))
        .cpu(per_dtype!(FLOAT, init, T => FusedConv::<T>::new(init, false)?));
    c.op("FusedResizeAndPadConv2D")
        .doc("A convolution of images that are resized and surrounded with their mirror images.")
        .input("input: T")
        .input("size: int32")
        .input("paddings: int32")
        .input("filter: T")
        .output("output: T")
        .attr("T: {half, float, double}")
        .attr("resize_align_corners: bool = false")
        .attr("mode: {'REFLECT', 'SYMMETRIC'}")
        .attr("strides: list(int)")
        .attr("padding: {'SAME', 'VALID'}")
        .expensive()
        .shape(|c| output_shape(c, 2))
        .cpu(per_dtype!([Half f16, Float f32, Double f64], init, T => {
            FusedConv::<T>::new(init, true)?
        }));
}
