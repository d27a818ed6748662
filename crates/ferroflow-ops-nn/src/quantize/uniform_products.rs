//! UniformQuantizedAdd, UniformQuantizedDot, UniformQuantizedConvolution and the hybrid forms,
//! whose left operand is a float that is quantised for each row or image.

use super::affine::Quantized;
use super::uniform::{Axis, FixedPoint, Scales, bounds};
use crate::prelude::*;
use ferroflow_ops_math::linalg::gemm::{Mat, ProductThreads, product};
use ferroflow_ops_math::xla::convolution::{ConvolutionLayout, GeneralConvolution, TensorLayout};

/// Elements less the zero point of their slice.
fn centred<T: Quantized>(t: &Tensor, scales: &Scales) -> Result<Tensor> {
    let mut out = Tensor::zeros(DType::Int32, t.shape().clone())?;
    let pairs = out.as_mut_slice::<i32>()?.iter_mut().zip(t.as_slice::<T>()?);
    for (i, (out, &x)) in pairs.enumerate() {
        let x: i64 = x.into();
        *out = (x as i32).wrapping_sub(scales.at(i).1);
    }
    Ok(out)
}

/// Both operands in the scale of the output, added.
struct Add {
    axes: [Axis; 3],
    bounds: (i64, i64),
}

impl Kernel for Add {
    fn compute(&self, ctx: &mut Ctx<'_>) -> Result<()> {
        let (lhs, rhs) = (ctx.input(0)?, ctx.input(1)?);
        let shape =
            shape::broadcast_shapes(&lhs.shape().clone().into(), &rhs.shape().clone().into())?;
        let Some(shape) = shape.known() else {
            bail!(Internal, "two known shapes broadcast to an unknown one");
        };
        let to = self.axes[2].scales(ctx, 6, &shape)?;
        let mut parts = Vec::with_capacity(2);
        for (i, t) in [lhs, rhs].into_iter().enumerate() {
            let from = self.axes[i].scales(ctx, 2 + 2 * i, t.shape())?;
            let mut x = centred::<i32>(t, &from)?;
            // Along its axis, a slice of the output has the number of the operand's.
            for (at, x) in x.as_mut_slice::<i32>()?.iter_mut().enumerate() {
                let slice = at / from.inner % from.parts.len();
                let to = to.parts.get(slice).unwrap_or(&to.parts[0]).0;
                *x = FixedPoint::new(f64::from(from.at(at).0) / f64::from(to))?.times(*x);
            }
            parts.push(x);
        }
        let mut out = ctx.alloc(DType::QInt32, shape.clone())?;
        let places = |t: &Tensor| broadcast_places(t.shape(), &shape);
        let (left, right) = (places(&parts[0]), places(&parts[1]));
        let (x, y) = (parts[0].as_slice::<i32>()?, parts[1].as_slice::<i32>()?);
        for (i, out) in out.as_mut_slice::<i32>()?.iter_mut().enumerate() {
            let sum = i64::from(x[left(i)]) + i64::from(y[right(i)]) + i64::from(to.at(i).1);
            *out = sum.clamp(self.bounds.0, self.bounds.1) as i32;
        }
        ctx.set(0, out)
    }
}

/// Where the element of a broadcast tensor is that an element of the result is made of.
fn broadcast_places<'a>(from: &Shape, to: &'a Shape) -> impl Fn(usize) -> usize + use<'a> {
    let mut strides = vec![0; to.rank()];
    let missing = to.rank() - from.rank();
    for (d, stride) in from.strides().into_iter().enumerate() {
        strides[missing + d] = if from[d] == 1 { 0 } else { stride };
    }
    let steps = to.strides();
    move |i| (0..to.rank()).map(|d| i / steps[d] % to[d] * strides[d]).sum()
}

/// Sums of products in the scale of the output: `slice(i)` is the channel of element `i`.
fn rescaled(
    sums: &Tensor,
    slice: impl Fn(usize) -> usize,
    (lhs, rhs, out): (&Scales, &Scales, &Scales),
    bounds: (i64, i64),
) -> Result<Tensor> {
    let part = |scales: &Scales, slice: usize| *scales.parts.get(slice).unwrap_or(&scales.parts[0]);
    let slices = Ord::max(rhs.parts.len(), out.parts.len());
    let factors = (0..slices).map(|s| {
        let product = f64::from(lhs.parts[0].0) * f64::from(part(rhs, s).0);
        FixedPoint::new(product / f64::from(part(out, s).0))
    });
    let factors = factors.collect::<Result<Vec<_>>>()?;
    let mut result = Tensor::zeros(DType::QInt32, sums.shape().clone())?;
    let pairs = result.as_mut_slice::<i32>()?.iter_mut().zip(sums.as_slice::<i32>()?);
    for (i, (result, &sum)) in pairs.enumerate() {
        let s = slice(i) % slices;
        let level = i64::from(factors[s].times(sum)) + i64::from(part(out, s).1);
        *result = level.clamp(bounds.0, bounds.1) as i32;
    }
    Ok(result)
}

/// Floats in `rows` equal parts, each quantised over its own range: elements less the zero
/// point, and the scale of each part.
fn quantized_rows(t: &Tensor, rows: usize) -> Result<(Tensor, Vec<f32>)> {
    let mut out = Tensor::zeros(DType::Int32, t.shape().clone())?;
    let mut scales = Vec::with_capacity(rows);
    let len = t.elements() / rows.max(1);
    let pairs = out.as_mut_slice::<i32>()?.chunks_mut(len.max(1));
    for (out, row) in pairs.zip(t.as_slice::<f32>()?.chunks(len.max(1))) {
        let least = f64::from(row.iter().copied().fold(0.0, f32::min));
        let most = f64::from(row.iter().copied().fold(0.0, f32::max));
        let scale = if most > least { (most - least) / 255.0 } else { 1.0 };
        let zero = (-128.0 - least / scale).round().clamp(-128.0, 127.0) as f32;
        let inverse = 1.0 / scale as f32;
        for (out, x) in out.iter_mut().zip(row) {
            *out = (((x * inverse).round() + zero).clamp(-128.0, 127.0) - zero) as i32;
        }
        scales.push(scale as f32);
    }
    Ok((out, scales))
}

/// Sums of products as floats; `row(i)` and `slice(i)` are the row and the channel of element `i`.
fn as_floats(
    sums: &Tensor,
    row: impl Fn(usize) -> usize,
    slice: impl Fn(usize) -> usize,
    (lhs, rhs): (&[f32], &Scales),
) -> Result<Tensor> {
    let mut out = Tensor::zeros(DType::Float, sums.shape().clone())?;
    let pairs = out.as_mut_slice::<f32>()?.iter_mut().zip(sums.as_slice::<i32>()?);
    for (i, (out, &sum)) in pairs.enumerate() {
        *out = sum as f32 * (lhs[row(i)] * rhs.parts[slice(i) % rhs.parts.len()].0);
    }
    Ok(out)
}

/// Elements behind an index of dimension `d`.
fn behind(shape: &Shape, d: usize) -> usize {
    Ord::max(shape[d + 1..].iter().product(), 1)
}

struct Dot {
    rhs: Axis,
    /// The axis and the bounds of the output; a hybrid product has none.
    output: Option<(Axis, (i64, i64))>,
}

impl Kernel for Dot {
    fn compute(&self, ctx: &mut Ctx<'_>) -> Result<()> {
        let (lhs, rhs) = (ctx.input(0)?, ctx.input(1)?);
        let (&[m, k], &[rows, n]) = (lhs.shape().dims(), rhs.shape().dims()) else {
            bail!(
                InvalidArgument,
                "lhs and rhs must be matrices, got shapes {} and {}",
                lhs.shape(),
                rhs.shape()
            );
        };
        ensure!(
            k == rows,
            InvalidArgument,
            "lhs.dim_size(1) and rhs.dim_size(0) must be equal, but given lhs shape {} and rhs \
             shape {}",
            lhs.shape(),
            rhs.shape()
        );
        let mut sums = Tensor::zeros(DType::Int32, Shape::from_dims(&[m as i64, n as i64])?)?;
        let at = if self.output.is_some() { 4 } else { 2 };
        let of_rhs = self.rhs.scales(ctx, at, rhs.shape())?;
        let right = centred::<i8>(rhs, &of_rhs)?;
        let (left, row_scales, of_lhs) = match self.output {
            Some(_) => {
                let of_lhs = Axis::WHOLE.scales(ctx, 2, lhs.shape())?;
                (centred::<i8>(lhs, &of_lhs)?, Vec::new(), Some(of_lhs))
            }
            None => {
                let (left, scales) = quantized_rows(lhs, m)?;
                (left, scales, None)
            }
        };
        if sums.elements() > 0 && k > 0 {
            let (a, b) = (Mat::new(left.as_slice::<i32>()?, m, k), right.as_slice::<i32>()?);
            product(a, Mat::new(b, k, n), sums.as_mut_slice()?, ProductThreads::All);
        }
        let out = match (self.output, of_lhs) {
            (Some((axis, bounds)), Some(of_lhs)) => {
                let of_out = axis.scales(ctx, 6, sums.shape())?;
                rescaled(&sums, |i| i % n, (&of_lhs, &of_rhs, &of_out), bounds)?
            }
            _ => as_floats(&sums, |i| i / n, |i| i % n, (&row_scales, &of_rhs))?,
        };
        ctx.set(0, out)
    }
}

/// How the borders of images are padded.
#[derive(Clone)]
enum Padding {
    Same,
    Valid,
    Explicit(Vec<i64>),
}

struct Convolution {
    layout: Option<ConvolutionLayout>,
    strides: Vec<i64>,
    padding: Padding,
    lhs_dilation: Vec<i64>,
    rhs_dilation: Vec<i64>,
    feature_groups: i64,
    batch_groups: i64,
    rhs: Axis,
    output: Option<(Axis, (i64, i64))>,
}

/// The numbers of the fields of UniformQuantizedConvolutionDimensionNumbersAttr.
const FIELDS: [usize; 9] = [1, 2, 3, 4, 5, 6, 7, 8, 9];

/// The layout without dimension numbers: channels come first.
fn channels_first(rank: usize) -> ConvolutionLayout {
    let layout = |batch, feature| TensorLayout { batch, feature, spatial: (2..rank).collect() };
    ConvolutionLayout { image: layout(0, 1), filter: layout(1, 0), output: layout(0, 1) }
}

impl Convolution {
    fn new(init: &KernelInit<'_>, output: Option<(Axis, (i64, i64))>) -> Result<Convolution> {
        let explicit = init.ints("explicit_padding")?;
        let padding = match init.string("padding")?.as_str() {
            "SAME" => Padding::Same,
            "VALID" => Padding::Valid,
            "EXPLICIT" => Padding::Explicit(explicit),
            other => bail!(InvalidArgument, "padding Attribute value {other} is not valid"),
        };
        let layout = match init.bytes("dimension_numbers")?.is_empty() {
            true => None,
            false => Some(ConvolutionLayout::new(init, FIELDS)?),
        };
        Ok(Convolution {
            layout,
            strides: init.ints("window_strides")?,
            padding,
            lhs_dilation: init.ints("lhs_dilation")?,
            rhs_dilation: init.ints("rhs_dilation")?,
            feature_groups: init.int("feature_group_count")?,
            batch_groups: init.int("batch_group_count")?,
            rhs: Axis::new(init, "rhs_quantization_axis")?,
            output,
        })
    }

    /// The padding of each spatial dimension.
    fn paddings(
        &self,
        layout: &ConvolutionLayout,
        (image, filter): (&Shape, &Shape),
        strides: &[i64],
        dilations: (&[i64], &[i64]),
    ) -> Result<Vec<(i64, i64)>> {
        let spatial = layout.image.spatial.len();
        match &self.padding {
            Padding::Valid => Ok(vec![(0, 0); spatial]),
            Padding::Explicit(list) => {
                ensure!(
                    list.len() == 2 * spatial,
                    InvalidArgument,
                    "explicit_padding must have {} elements, got {}",
                    2 * spatial,
                    list.len()
                );
                Ok(list.chunks_exact(2).map(|p| (p[0], p[1])).collect())
            }
            Padding::Same => {
                let dilated = |n: usize, by: i64| (n as i64 - 1).saturating_mul(by) + 1;
                let side = |d: usize| -> Option<(i64, i64)> {
                    let base =
                        dilated(*image.get(*layout.image.spatial.get(d)?)?, *dilations.0.get(d)?);
                    let window =
                        dilated(*filter.get(*layout.filter.spatial.get(d)?)?, *dilations.1.get(d)?);
                    let stride = *strides.get(d).filter(|&&s| s > 0)?;
                    let outputs = base.saturating_add(stride - 1) / stride;
                    let total = Ord::max((outputs - 1) * stride + window - base, 0);
                    Some((total / 2, total - total / 2))
                };
                let sides: Option<Vec<_>> = (0..spatial).map(side).collect();
                sides.ok_or_else(|| {
                    err!(
                        InvalidArgument,
                        "window_strides and dilations must have {spatial} positive elements"
                    )
                })
            }
        }
    }
}

impl Kernel for Convolution {
    fn compute(&self, ctx: &mut Ctx<'_>) -> Result<()> {
        let (lhs, rhs) = (ctx.input(0)?, ctx.input(1)?);
        ensure!(
            lhs.rank() == rhs.rank() && lhs.rank() >= 2,
            InvalidArgument,
            "lhs and rhs must have the same rank of at least 2, got {} and {}",
            lhs.rank(),
            rhs.rank()
        );
        let usual;
        let layout = match &self.layout {
            Some(layout) => layout,
            None => {
                usual = channels_first(lhs.rank());
                &usual
            }
        };
        let spatial = layout.image.spatial.len();
        let filled = |list: &[i64]| if list.is_empty() { vec![1; spatial] } else { list.to_vec() };
        let strides = filled(&self.strides);
        let (image_dilation, filter_dilation) =
            (filled(&self.lhs_dilation), filled(&self.rhs_dilation));
        let shapes = (lhs.shape(), rhs.shape());
        let padding =
            self.paddings(layout, shapes, &strides, (&image_dilation, &filter_dilation))?;
        let convolution = GeneralConvolution {
            layout,
            strides,
            padding,
            image_dilation,
            filter_dilation,
            feature_groups: self.feature_groups,
            batch_groups: self.batch_groups,
        };
        let shape = convolution.output_shape(lhs.shape(), rhs.shape())?;
        let (feature, batch) = (layout.output.feature, layout.output.batch);
        let channel = |i: usize| i / behind(&shape, feature) % Ord::max(shape[feature], 1);
        let at = if self.output.is_some() { 4 } else { 2 };
        let of_rhs = self.rhs.scales(ctx, at, rhs.shape())?;
        let right = centred::<i8>(rhs, &of_rhs)?;
        let out = match self.output {
            Some((axis, bounds)) => {
                let of_lhs = Axis::WHOLE.scales(ctx, 2, lhs.shape())?;
                let sums = convolution.run::<i32>(&centred::<i8>(lhs, &of_lhs)?, &right)?;
                let of_out = axis.scales(ctx, 6, sums.shape())?;
                rescaled(&sums, channel, (&of_lhs, &of_rhs, &of_out), bounds)?
            }
            None => {
                ensure!(
                    layout.image.batch == 0 && self.batch_groups == 1,
                    Unimplemented,
                    "hybrid convolutions need images whose first dimension is the batch"
                );
                let (left, scales) = quantized_rows(lhs, lhs.shape()[0])?;
                let sums = convolution.run::<i32>(&left, &right)?;
                let image = |i: usize| i / behind(&shape, batch) % Ord::max(shape[batch], 1);
                as_floats(&sums, image, channel, (&scales, &of_rhs))?
            }
        };
        ctx.set(0, out)
    }
}

/// The axis and the bounds of a product's output.
fn output(init: &KernelInit<'_>) -> Result<Option<(Axis, (i64, i64))>> {
    bounds::<i8>(init, "lhs_")?;
    Ok(Some((Axis::new(init, "output_quantization_axis")?, bounds::<i32>(init, "output_")?)))
}

/// Inputs of products, all of whose operands are quantised.
const SCALED: [&str; 6] = [
    "lhs_scales: float",
    "lhs_zero_points: int32",
    "rhs_scales: float",
    "rhs_zero_points: int32",
    "output_scales: float",
    "output_zero_points: int32",
];

const LHS: [&str; 3] = [
    "lhs_quantization_axis: int = -1",
    "lhs_quantization_min_val: int",
    "lhs_quantization_max_val: int",
];
const RHS: [&str; 3] = [
    "rhs_quantization_axis: int = -1",
    "rhs_quantization_min_val: int",
    "rhs_quantization_max_val: int",
];
const OUTPUT: [&str; 3] = [
    "output_quantization_axis: int = -1",
    "output_quantization_min_val: int",
    "output_quantization_max_val: int",
];
const WINDOW: [&str; 8] = [
    "window_strides: list(int) = []",
    "padding: string",
    "explicit_padding: list(int) = []",
    "lhs_dilation: list(int) = []",
    "rhs_dilation: list(int) = []",
    "batch_group_count: int = 1",
    "feature_group_count: int = 1",
    "dimension_numbers: string = ''",
];

fn dot_shape(c: &ShapeCtx<'_>) -> Result<Vec<PartialShape>> {
    let (lhs, rhs) = (c.input(0), c.input(1));
    let matrix = PartialShape::of_rank(2);
    let (lhs, rhs) = (lhs.merge(&matrix)?, rhs.merge(&matrix)?);
    Ok(vec![PartialShape::new([lhs.dim(0), rhs.dim(1)])])
}

fn convolution_shape(c: &ShapeCtx<'_>) -> Result<Vec<PartialShape>> {
    Ok(vec![c.input(0).rank().map(PartialShape::of_rank).unwrap_or_default()])
}

pub(crate) fn register(c: &mut Catalog) {
    c.op("UniformQuantizedAdd")
        .doc("The sum of two uniformly quantised tensors.")
        .input("lhs: T")
        .input("rhs: T")
        .inputs(&SCALED)
        .output("output: T")
        .attrs(&LHS)
        .attrs(&RHS)
        .attrs(&OUTPUT)
        .attr("T: {qint32}")
        .broadcasts()
        .cpu(|init| {
            bounds::<i32>(init, "lhs_")?;
            bounds::<i32>(init, "rhs_")?;
            let axis = |which: &str| Axis::new(init, &format!("{which}_quantization_axis"));
            let axes = [axis("lhs")?, axis("rhs")?, axis("output")?];
            Ok(KernelBox::new(Add { axes, bounds: bounds::<i32>(init, "output_")? }))
        });
    c.op("UniformQuantizedDot")
        .doc("The product of two uniformly quantised matrices.")
        .input("lhs: Tin")
        .input("rhs: Tin")
        .inputs(&SCALED)
        .output("output: Tout")
        .attr("Tin: {qint8}")
        .attr("Tout: {qint32}")
        .attrs(&LHS)
        .attrs(&RHS)
        .attrs(&OUTPUT)
        .expensive()
        .shape(dot_shape)
        .cpu(|init| {
            bounds::<i8>(init, "rhs_")?;
            let rhs = Axis::new(init, "rhs_quantization_axis")?;
            Ok(KernelBox::new(Dot { rhs, output: output(init)? }))
        });
    c.op("UniformQuantizedDotHybrid")
        .doc("The product of a matrix of floats and a uniformly quantised one.")
        .input("lhs: Tlhs")
        .input("rhs: Trhs")
        .input("rhs_scales: float")
        .input("rhs_zero_points: int32")
        .output("output: Tout")
        .attr("Tlhs: {float}")
        .attr("Trhs: {qint8}")
        .attr("Tout: {float}")
        .attrs(&RHS)
        .expensive()
        .shape(dot_shape)
        .cpu(|init| {
            bounds::<i8>(init, "rhs_")?;
            let rhs = Axis::new(init, "rhs_quantization_axis")?;
            Ok(KernelBox::new(Dot { rhs, output: None }))
        });
    c.op("UniformQuantizedConvolution")
        .doc("The convolution of uniformly quantised images, in any layout.")
        .input("lhs: Tin")
        .input("rhs: Tin")
        .inputs(&SCALED)
        .output("output: Tout")
        .attr("Tin: {qint8}")
        .attr("Tout: {qint32}")
        .attrs(&WINDOW)
        .attrs(&LHS)
        .attrs(&RHS)
        .attrs(&OUTPUT)
        .expensive()
        .shape(convolution_shape)
        .cpu(|init| {
            bounds::<i8>(init, "rhs_")?;
            Ok(KernelBox::new(Convolution::new(init, output(init)?)?))
        });
    c.op("UniformQuantizedConvolutionHybrid")
        .doc("The convolution of images of floats by a uniformly quantised filter.")
        .input("lhs: Tlhs")
        .input("rhs: Trhs")
        .input("rhs_scales: float")
        .input("rhs_zero_points: int32")
        .output("output: Tout")
        .attr("Tlhs: {float}")
        .attr("Trhs: {qint8}")
        .attr("Tout: {float}")
        .attrs(&WINDOW)
        .attrs(&RHS)
        .expensive()
        .shape(convolution_shape)
        .cpu(|init| {
            bounds::<i8>(init, "rhs_")?;
            Ok(KernelBox::new(Convolution::new(init, None)?))
        });
}
