//! Conv2D, Conv3D and their gradients.

use super::conv::Conv;
use super::conv::device::{ConvOnDevice, reordered_on_device};
use super::window::{Layout, Sliding, channels_last, from_channels_last, three};
use crate::prelude::*;
use ferroflow_core::Epilogue;
use ferroflow_graph::OpBuilder;
use ferroflow_op_kit::gpu;
use ferroflow_ops_math::linalg::gemm::{Finisher, Product};

/// The type that a convolution is computed in: halves use single precision.
pub(super) trait ConvElement: Element {
    type Wide: Product;
    /// The tensor, widened.
    fn widened(t: &Tensor) -> Result<Tensor>;
    fn narrowed(t: Tensor) -> Result<Tensor>;
}

macro_rules! conv_elements {
    ($($t:ty)*) => {$(
        impl ConvElement for $t {
            type Wide = $t;
            fn widened(t: &Tensor) -> Result<Tensor> {
                Ok(t.clone())
            }
            fn narrowed(t: Tensor) -> Result<Tensor> {
                Ok(t)
            }
        }
    )*};
}
conv_elements!(f32 f64 i32);

macro_rules! half_conv_elements {
    ($($t:ty)*) => {$(
        impl ConvElement for $t {
            type Wide = f32;
            fn widened(t: &Tensor) -> Result<Tensor> {
                let mut wide = Tensor::alloc(DType::Float, t.shape().clone())?;
                let pairs = wide.as_mut_slice::<f32>()?.iter_mut().zip(t.as_slice::<$t>()?);
                pairs.for_each(|(to, x)| *to = x.to_f32());
                Ok(wide)
            }
            fn narrowed(t: Tensor) -> Result<Tensor> {
                let mut narrow = Tensor::alloc(<$t>::DTYPE, t.shape().clone())?;
                let pairs = narrow.as_mut_slice::<$t>()?.iter_mut().zip(t.as_slice::<f32>()?);
                pairs.for_each(|(to, x)| *to = <$t>::from_f32(*x));
                Ok(narrow)
            }
        }
    )*};
}
half_conv_elements!(f16 bf16);

/// A width to move elements of a type by.
pub(super) fn reordered(t: &Tensor, layout: Layout, to_last: bool) -> Result<Tensor> {
    fn go<W: Movable>(t: &Tensor, layout: Layout, to_last: bool) -> Result<Tensor> {
        if to_last {
            channels_last::<W>(t, layout)
        } else {
            from_channels_last::<W>(t.clone(), layout)
        }
    }
    match t.dtype().size() {
        _ if layout == Layout::ChannelsLast => Ok(t.clone()),
        Some(1) => go::<u8>(t, layout, to_last),
        Some(2) => go::<u16>(t, layout, to_last),
        Some(4) => go::<u32>(t, layout, to_last),
        Some(8) => go::<u64>(t, layout, to_last),
        _ => bail!(Internal, "images are of numbers"),
    }
}

/// Which of the three products a node computes.
#[derive(Clone, Copy, PartialEq)]
enum Part {
    Output,
    Input,
    Filter,
}

struct Convolution<T> {
    part: Part,
    spatial: usize,
    sliding: Sliding,
    /// Whether the input (or filter) size is given as a shape vector, not as a tensor of that
    /// shape.
    sizes_as_shape: bool,
    marker: std::marker::PhantomData<T>,
}

impl<T: ConvElement> Convolution<T> {
    fn new(
        init: &KernelInit<'_>,
        part: Part,
        spatial: usize,
        sizes_as_shape: bool,
    ) -> Result<Self> {
        let sliding = Sliding::of_convolution(init.attrs, spatial)?;
        Ok(Convolution { part, spatial, sliding, sizes_as_shape, marker: std::marker::PhantomData })
    }

    fn op(&self) -> &'static str {
        match (self.part, self.spatial) {
            (Part::Input, 2) => "Conv2DBackpropInput",
            (Part::Filter, 2) => "Conv2DBackpropFilter",
            (Part::Input, _) => "Conv3DBackpropInput",
            (Part::Filter, _) => "Conv3DBackpropFilter",
            (Part::Output, 2) => "Conv2D",
            (Part::Output, _) => "Conv3D",
        }
    }

    fn check_rank(&self, what: &str, shape: &Shape) -> Result<()> {
        let rank = self.spatial + 2;
        ensure!(
            shape.rank() == rank,
            InvalidArgument,
            "{what} must be {rank}-dimensional: {shape}"
        );
        Ok(())
    }

    /// The convolution of an image of this shape, with channels last, by a filter of that shape.
    fn conv(&self, image: &Shape, filter: &Shape) -> Result<Conv> {
        let n = self.spatial;
        let (in_channels, depth, out_channels) = (image[n + 1], filter[n], filter[n + 1]);
        ensure!(depth > 0, InvalidArgument, "filter depth must be stricly positive, got {depth}");
        ensure!(
            in_channels % depth == 0,
            InvalidArgument,
            "input depth must be evenly divisible by filter depth: {in_channels} vs {depth}"
        );
        ensure!(
            filter[..n].iter().all(|&d| d > 0),
            InvalidArgument,
            "filter must not have zero elements (i.e. all dimensions must be non-zero)"
        );
        let groups = (in_channels / depth).max(1);
        ensure!(
            out_channels % groups == 0,
            InvalidArgument,
            "output depth must be evenly divisible by number of groups: {out_channels} vs {groups}"
        );
        let axes = self.sliding.axes(&image[1..=n], &filter[..n])?;
        Ok(Conv { batch: image[0], axes: three(&axes), in_channels, out_channels, groups })
    }

    /// Shape of the output, channels last.
    fn output_shape(&self, conv: &Conv) -> Shape {
        let spatial = conv.axes[3 - self.spatial..].iter().map(|a| a.output);
        std::iter::once(conv.batch).chain(spatial).chain([conv.out_channels]).collect()
    }

    /// The shape in (or of) input `i`.
    fn shape_input(&self, ctx: &Ctx<'_>, i: usize) -> Result<Vec<i64>> {
        let t = ctx.input(i)?;
        if !self.sizes_as_shape {
            return Ok(t.shape().to_i64s());
        }
        let name = if self.part == Part::Input { "input_sizes" } else { "filter_sizes" };
        ensure!(
            t.rank() == 1,
            InvalidArgument,
            "{}: {name} input must be 1-dim, not {}",
            self.op(),
            t.rank()
        );
        t.to_indices()
    }

    /// Returns an error if the gradient's shape does not fit the convolution.
    fn check_gradient(&self, conv: &Conv, dy: &Shape) -> Result<()> {
        let op = self.op().replace("Backprop", "CustomBackprop");
        let n = self.spatial;
        ensure!(
            dy[0] == conv.batch,
            InvalidArgument,
            "{op}: input and out_backprop must have the same batch size. Input batch: {}, \
             outbackprop batch: {}, batch_dim: 0",
            conv.batch,
            dy[0]
        );
        ensure!(
            dy[n + 1] == conv.out_channels,
            InvalidArgument,
            "{op}: filter and out_backprop must have the same out_depth"
        );
        for (i, axis) in conv.axes[3 - n..].iter().enumerate() {
            ensure!(
                axis.output == dy[i + 1],
                InvalidArgument,
                "{op}: Size of out_backprop doesn't match computed: actual = {}, computed = {} \
                 spatial_dim: {} input: {} filter: {} output: {} stride: {} dilation: {}",
                dy[i + 1],
                axis.output,
                i + 1,
                axis.input,
                axis.window,
                dy[i + 1],
                axis.stride,
                axis.dilation
            );
        }
        Ok(())
    }

    /// The output, and whether it is finished.
    fn forward(&self, ctx: &Ctx<'_>, epilogue: Option<&dyn Epilogue>) -> Result<(Tensor, bool)> {
        let (x, filter) = (ctx.input(0)?, ctx.input(1)?);
        self.check_rank("input", x.shape())?;
        self.check_rank("filter", filter.shape())?;
        let conv = self.conv(&self.sliding.layout.to_last(x.shape()), filter.shape())?;
        let x = T::widened(&reordered(x, self.sliding.layout, true)?)?;
        let filter = T::widened(filter)?;
        let mut y = Tensor::alloc(<T::Wide as Element>::DTYPE, self.output_shape(&conv))?;
        let is_as_made =
            self.sliding.layout == Layout::ChannelsLast && T::DTYPE == <T::Wide as Element>::DTYPE;
        let finisher = epilogue
            .filter(|_| is_as_made)
            .and_then(|epilogue| Finisher::new::<T::Wide>(epilogue, y.shape()));
        let (filter, then) = (filter.as_slice()?, finisher.unwrap_or(Finisher::NONE));
        conv.forward::<T::Wide>(x.as_slice()?, filter, y.as_mut_slice()?, then);
        Ok((y, finisher.is_some()))
    }

    /// The convolution whose input has a gradient, and the shape of that with channels last.
    fn input_conv(&self, ctx: &Ctx<'_>) -> Result<(Conv, Shape)> {
        let (filter, dy) = (ctx.input(1)?, ctx.input(2)?);
        self.check_rank("filter", filter.shape())?;
        self.check_rank("out_backprop", dy.shape())?;
        let layout = self.sliding.layout;
        let dy_shape = layout.to_last(dy.shape());
        let sizes = self.shape_input(ctx, 0)?;
        let n = self.spatial;
        // The spatial sizes are enough; the rest follows from the other inputs.
        let sizes = match sizes.len() {
            len if len == n + 2 => sizes,
            len if len == n && n == 2 => {
                let last = [dy_shape[0], 0, 0, filter.shape()[n]];
                let mut last = last.map(|d| d as i64);
                last[1..3].copy_from_slice(&sizes);
                let shape = Shape::from_dims(&last)?;
                layout.stored(&shape).to_i64s()
            }
            len => bail!(
                InvalidArgument,
                "{} requires input_sizes to contain {} values or {n} values, but got: {len}",
                self.op(),
                n + 2
            ),
        };
        let image = layout.to_last(&Shape::from_dims(&sizes)?);
        let conv = self.conv(&image, filter.shape())?;
        self.check_gradient(&conv, &dy_shape)?;
        Ok((conv, image))
    }

    fn backprop_input(&self, ctx: &Ctx<'_>) -> Result<Tensor> {
        let (filter, dy) = (ctx.input(1)?, ctx.input(2)?);
        let (conv, image) = self.input_conv(ctx)?;
        let layout = self.sliding.layout;
        let dy = T::widened(&reordered(dy, layout, true)?)?;
        let filter = T::widened(filter)?;
        let mut dx = Tensor::alloc(<T::Wide as Element>::DTYPE, image)?;
        conv.backprop_input::<T::Wide>(filter.as_slice()?, dy.as_slice()?, dx.as_mut_slice()?);
        Ok(dx)
    }

    /// The convolution whose filter has a gradient, and the shape of the filter.
    fn filter_conv(&self, ctx: &Ctx<'_>) -> Result<(Conv, Shape)> {
        let (x, dy) = (ctx.input(0)?, ctx.input(2)?);
        self.check_rank("input", x.shape())?;
        self.check_rank("out_backprop", dy.shape())?;
        let layout = self.sliding.layout;
        let shape = Shape::from_dims(&self.shape_input(ctx, 1)?)?;
        self.check_rank(&format!("{}: filter", self.op().replace("Back", "CustomBack")), &shape)?;
        let conv = self.conv(&layout.to_last(x.shape()), &shape)?;
        self.check_gradient(&conv, &layout.to_last(dy.shape()))?;
        Ok((conv, shape))
    }

    fn backprop_filter(&self, ctx: &Ctx<'_>) -> Result<Tensor> {
        let (x, dy) = (ctx.input(0)?, ctx.input(2)?);
        let (conv, shape) = self.filter_conv(ctx)?;
        let layout = self.sliding.layout;
        let x = T::widened(&reordered(x, layout, true)?)?;
        let dy = T::widened(&reordered(dy, layout, true)?)?;
        let mut df = Tensor::alloc(<T::Wide as Element>::DTYPE, shape)?;
        conv.backprop_filter::<T::Wide>(x.as_slice()?, dy.as_slice()?, df.as_mut_slice()?);
        Ok(df)
    }
}

impl<T: ConvElement> Kernel for Convolution<T> {
    fn compute(&self, ctx: &mut Ctx<'_>) -> Result<()> {
        let layout = self.sliding.layout;
        let out = match self.part {
            Part::Output => reordered(&self.forward(ctx, None)?.0, layout, false)?,
            Part::Input => reordered(&self.backprop_input(ctx)?, layout, false)?,
            Part::Filter => self.backprop_filter(ctx)?,
        };
        ctx.set(0, T::narrowed(out)?)
    }

    fn compute_with_epilogue(&self, ctx: &mut Ctx<'_>, epilogue: &dyn Epilogue) -> Result<bool> {
        if self.part != Part::Output {
            self.compute(ctx)?;
            return Ok(false);
        }
        let (out, is_finished) = self.forward(ctx, Some(epilogue))?;
        let out = reordered(&out, self.sliding.layout, false)?;
        ctx.set(0, T::narrowed(out)?)?;
        Ok(is_finished)
    }
}

/// The convolution of inputs 0 and 1 of a node, as a part of another kernel.
pub(super) struct PlainConvolution<T>(Convolution<T>);

impl<T: ConvElement> PlainConvolution<T> {
    pub fn new(init: &KernelInit<'_>, spatial: usize) -> Result<Self> {
        Ok(PlainConvolution(Convolution::new(init, Part::Output, spatial, false)?))
    }

    pub fn layout(&self) -> Layout {
        self.0.sliding.layout
    }

    /// The output with channels last, widened.
    pub fn run(&self, ctx: &Ctx<'_>) -> Result<Tensor> {
        Ok(self.0.forward(ctx, None)?.0)
    }
}

/// The kernel on a GPU.
fn on_device(
    init: &KernelInit<'_>,
    part: Part,
    spatial: usize,
    sizes_as_shape: bool,
) -> Result<KernelBox> {
    let dtype = init.dtype("T")?;
    // The checks do not depend on the type.
    let node = Convolution::<f32>::new(init, part, spatial, sizes_as_shape)?;
    let kernels = ConvOnDevice::new(init, dtype)?;
    Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
        let layout = node.sliding.layout;
        let last = |i: usize| reordered_on_device(ctx.input(i)?, layout, true);
        let out = match part {
            Part::Output => {
                let (x, filter) = (ctx.input(0)?, ctx.input(1)?);
                node.check_rank("input", x.shape())?;
                node.check_rank("filter", filter.shape())?;
                let conv = node.conv(&layout.to_last(x.shape()), filter.shape())?;
                let y = ctx.alloc_on_device(dtype, node.output_shape(&conv))?;
                kernels.forward(&conv, &last(0)?, filter, &y)?;
                reordered_on_device(&y, layout, false)?
            }
            Part::Input => {
                let (conv, image) = node.input_conv(ctx)?;
                let dx = ctx.alloc_on_device(dtype, image)?;
                kernels.of_input(&conv, ctx.input(1)?, &last(2)?, &dx)?;
                reordered_on_device(&dx, layout, false)?
            }
            Part::Filter => {
                let (conv, shape) = node.filter_conv(ctx)?;
                let df = ctx.alloc_on_device(dtype, shape)?;
                kernels.of_filter(&conv, &last(0)?, &last(2)?, &df)?;
                df
            }
        };
        ctx.set(0, out)
    }))
}

/// Output shape of a convolution over `spatial` dimensions.
pub(super) fn conv_shape(
    c: &ShapeCtx<'_>,
    spatial: usize,
    depthwise: bool,
) -> Result<Vec<PartialShape>> {
    let sliding = Sliding::of_convolution(c.attrs, spatial)?;
    let rank = PartialShape::of_rank(spatial + 2);
    let (input, filter) = (c.input(0).merge(&rank)?, c.input(1).merge(&rank)?);
    let (x, f) = (input.dims().unwrap_or_default(), filter.dims().unwrap_or_default());
    let at = sliding.layout.first_spatial();
    let outputs = sliding.outputs(&x[at..at + spatial], &f[..spatial])?;
    let channels = match depthwise {
        true => f[spatial].zip(f[spatial + 1]).and_then(|(a, b)| a.checked_mul(b)),
        false => f[spatial + 1],
    };
    let mut dims = vec![x[0]];
    match sliding.layout {
        Layout::ChannelsLast => {
            dims.extend(outputs);
            dims.push(channels);
        }
        Layout::ChannelsFirst => {
            dims.push(channels);
            dims.extend(outputs);
        }
    }
    Ok(vec![PartialShape::new(dims)])
}

/// The shape that input `i` holds, if it has `rank` dimensions.
pub(super) fn shape_in(
    i: usize,
    rank: usize,
) -> impl Fn(&ShapeCtx<'_>) -> Result<Vec<PartialShape>> {
    move |c| {
        let shape = c.shape_from(i);
        Ok(vec![if shape.rank() == Some(rank) { shape } else { PartialShape::of_rank(rank) }])
    }
}

macro_rules! conv2d_attrs {
    ($builder:expr) => {
        $builder
            .attr("strides: list(int)")
            .attr("use_cudnn_on_gpu: bool = true")
            .attr("padding: {'SAME', 'VALID', 'EXPLICIT'}")
            .attr("explicit_paddings: list(int) = []")
            .attr("data_format: {'NHWC', 'NCHW'} = 'NHWC'")
            .attr("dilations: list(int) = [1, 1, 1, 1]")
            .expensive()
    };
}

macro_rules! conv_kernel {
    ($set:tt, $part:ident, $spatial:literal, $as_shape:literal) => {
        per_dtype!($set, init, T => Convolution::<T>::new(init, Part::$part, $spatial, $as_shape)?)
    };
}

/// The number of filter elements that contribute to one output element.
fn taps(filter: Option<&Vec<usize>>) -> f64 {
    let dims = filter.and_then(|dims| dims.split_last()).map_or(&[][..], |(_, rest)| rest);
    dims.iter().map(|&d| d as f64).product()
}

fn flops(s: &NodeSizes<'_>) -> f64 {
    2.0 * s.output(0) * taps(s.inputs.get(1))
}

fn flops_of_input(s: &NodeSizes<'_>) -> f64 {
    2.0 * s.input(2) * taps(s.inputs.get(1))
}

fn flops_of_filter(s: &NodeSizes<'_>) -> f64 {
    2.0 * s.input(2) * taps(s.outputs.first())
}

/// The gradients of a convolution and of its backward ops: each is expressed by the others.
pub(super) fn declare_gradients(
    c: &mut Catalog,
    forward: &'static str,
    of_input: &'static str,
    of_filter: &'static str,
) {
    c.gradient(forward, move |g, dy| {
        let (x, w) = (g.input(0), g.input(1));
        Ok(vec![
            g.call_like(of_input, &[x.shape(), w, dy[0]]),
            g.call_like(of_filter, &[x, w.shape(), dy[0]]),
        ])
    });
    c.gradient(of_input, move |g, dy| {
        let (w, d) = (g.input(1), g.input(2));
        let d_filter = g.call_like(of_filter, &[dy[0], w.shape(), d]);
        Ok(vec![g.none(), d_filter, g.call_like(forward, &[dy[0], w])])
    });
    c.gradient(of_filter, move |g, dy| {
        let (x, d) = (g.input(0), g.input(2));
        let d_input = g.call_like(of_input, &[x.shape(), dy[0], d]);
        Ok(vec![d_input, g.none(), g.call_like(forward, &[x, dy[0]])])
    });
}

pub(crate) fn register(c: &mut Catalog) {
    register_2d(c);
    register_3d(c);
    register_any(c);
    declare_gradients(c, "Conv2D", "Conv2DBackpropInput", "Conv2DBackpropFilter");
    declare_gradients(c, "Conv3D", "Conv3DBackpropInputV2", "Conv3DBackpropFilterV2");
}

/// The spatial dimensions of a Conv node, by the length of its strides.
fn spatial_of(attrs: &Attrs) -> Result<usize> {
    let strides = attrs.ints("strides")?.len();
    ensure!(
        matches!(strides, 4 | 5),
        InvalidArgument,
        "Sliding window strides field must specify 4 or 5 dimensions, got {strides}"
    );
    let batch_dims = attrs.int("batch_dims")?;
    ensure!(
        batch_dims == 1,
        Unimplemented,
        "Conv with batch_dims = {batch_dims}: only 1 is supported"
    );
    Ok(strides - 2)
}

fn register_any(c: &mut Catalog) {
    c.op("Conv")
        .doc("Convolution of images or volumes with filters.")
        .input("input: T")
        .input("filter: T")
        .output("output: T")
        .attr("T: {half, bfloat16, float, double, int32}")
        .attr("strides: list(int)")
        .attr("padding: {'SAME', 'VALID', 'EXPLICIT'}")
        .attr("explicit_paddings: list(int) = []")
        .attr("data_format: {'CHANNELS_FIRST', 'CHANNELS_LAST'} = 'CHANNELS_LAST'")
        .attr("dilations: list(int) = []")
        .attr("batch_dims: int = 1")
        .attr("groups: int = 1")
        .expensive()
        .flops(flops)
        .shape(|c| conv_shape(c, spatial_of(c.attrs)?, false))
        .cpu(|init| match spatial_of(init.attrs)? {
            2 => conv_kernel!(FLOAT, Output, 2, false)(init),
            _ => conv_kernel!(FLOAT, Output, 3, false)(init),
        });
}

fn register_2d(c: &mut Catalog) {
    let op = c
        .op("Conv2D")
        .doc("Convolution of images with filters.")
        .input("input: T")
        .input("filter: T")
        .output("output: T")
        .attr("T: {half, bfloat16, float, double, int32}");
    conv2d_attrs!(op)
        .flops(flops)
        .takes_epilogue()
        .shape(|c| conv_shape(c, 2, false))
        .gpu(gpu::FLOAT, |init| on_device(init, Part::Output, 2, false))
        .cpu(conv_kernel!(
            [Half f16, BFloat16 bf16, Float f32, Double f64, Int32 i32],
            Output, 2, false
        ));
    let op = c
        .op("Conv2DBackpropInput")
        .doc("Gradient of Conv2D for its input.")
        .input("input_sizes: int32")
        .input("filter: T")
        .input("out_backprop: T")
        .output("output: T")
        .attr("T: {half, bfloat16, float, double, int32}");
    conv2d_attrs!(op)
        .flops(flops_of_input)
        .shape(shape_in(0, 4))
        .gpu(gpu::FLOAT, |init| on_device(init, Part::Input, 2, true))
        .host_inputs(&["input_sizes"])
        .cpu(conv_kernel!(
            [Half f16, BFloat16 bf16, Float f32, Double f64, Int32 i32],
            Input, 2, true
        ));
    let op = c
        .op("Conv2DBackpropFilter")
        .doc("Gradient of Conv2D for its filter.")
        .input("input: T")
        .input("filter_sizes: int32")
        .input("out_backprop: T")
        .output("output: T")
        .attr("T: {half, bfloat16, float, double}");
    conv2d_attrs!(op)
        .flops(flops_of_filter)
        .shape(shape_in(1, 4))
        .gpu(gpu::FLOAT, |init| on_device(init, Part::Filter, 2, true))
        .host_inputs(&["filter_sizes"])
        .cpu(conv_kernel!(FLOAT, Filter, 2, true));
}

/// The dtypes of the second versions of ops on volumes, which have a `data_format`.
const SECOND: &str = "T: {half, bfloat16, float, double}";
/// Those of the first versions, which take tensors of the shape of their results, not the shapes.
const FIRST: &str = "T: {half, float, double}";

/// Starts the declaration of an op on volumes.
fn op_3d<'c>(
    c: &'c mut Catalog,
    name: &str,
    doc: &str,
    inputs: &[&str],
    numbers: &str,
) -> OpBuilder<'c> {
    let op = c.op(name).doc(doc).inputs(inputs).output("output: T").attr(numbers);
    let op = op.attr("strides: list(int) >= 5").attr("padding: {'SAME', 'VALID'}");
    let op = match numbers {
        SECOND => op.attr("data_format: {'NDHWC', 'NCDHW'} = 'NDHWC'"),
        _ => op,
    };
    op.attr("dilations: list(int) = [1, 1, 1, 1, 1]").expensive()
}

fn register_3d(c: &mut Catalog) {
    op_3d(c, "Conv3D", "Convolution of volumes with filters.", &["input: T", "filter: T"], SECOND)
        .flops(flops)
        .takes_epilogue()
        .shape(|c| conv_shape(c, 3, false))
        .gpu(gpu::FLOAT, |init| on_device(init, Part::Output, 3, false))
        .cpu(conv_kernel!(FLOAT, Output, 3, false));
    let of_input = "Gradient of Conv3D for its input.";
    let of_filter = "Gradient of Conv3D for its filter.";
    let all = ["input: T", "filter: T", "out_backprop: T"];
    op_3d(c, "Conv3DBackpropInput", of_input, &all, FIRST)
        .flops(flops_of_input)
        .shape(shape::same_as_input)
        .gpu(gpu::FLOAT, |init| on_device(init, Part::Input, 3, false))
        .cpu(conv_kernel!(FLOAT, Input, 3, false));
    op_3d(c, "Conv3DBackpropFilter", of_filter, &all, FIRST)
        .flops(flops_of_filter)
        .shape(|c| Ok(vec![c.input(1)]))
        .gpu(gpu::FLOAT, |init| on_device(init, Part::Filter, 3, false))
        .cpu(conv_kernel!(FLOAT, Filter, 3, false));
    op_3d(c, "Conv3DBackpropInputV2", of_input, &["input_sizes: Tshape", all[1], all[2]], SECOND)
        .attr("Tshape: {int32, int64} = DT_INT32")
        .flops(flops_of_input)
        .shape(shape_in(0, 5))
        .gpu(gpu::FLOAT, |init| on_device(init, Part::Input, 3, true))
        .host_inputs(&["input_sizes"])
        .cpu(conv_kernel!(FLOAT, Input, 3, true));
    op_3d(c, "Conv3DBackpropFilterV2", of_filter, &[all[0], "filter_sizes: int32", all[2]], SECOND)
        .flops(flops_of_filter)
        .shape(shape_in(1, 5))
        .gpu(gpu::FLOAT, |init| on_device(init, Part::Filter, 3, true))
        .host_inputs(&["filter_sizes"])
        .cpu(conv_kernel!(FLOAT, Filter, 3, true));
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::testing::{Check, check};

    #[test]
    fn conv_is_conv2d_or_conv3d() {
        let numbers = |dims: &[usize]| {
            let n: usize = dims.iter().product();
            let values: Vec<f32> = (0..n).map(|i| ((i * 7) % 11) as f32 - 5.0).collect();
            Tensor::from_slice(dims, &values).unwrap()
        };
        let cases: [(&str, &[usize], &[usize]); 2] = [
            ("Conv2D", &[2, 5, 4, 3], &[2, 3, 3, 2]),
            ("Conv3D", &[1, 3, 5, 4, 2], &[2, 2, 3, 2, 2]),
        ];
        for (op, image, filter) in cases {
            let strides = vec![1i64; image.len()];
            let of = |op: &str| {
                check(op)
                    .attr("strides", strides.clone())
                    .attr("padding", "SAME")
                    .input(numbers(image))
                    .input(numbers(filter))
            };
            let want = of(op).run().unwrap().remove(0);
            of("Conv").gives(want);
        }
        check("Conv")
            .attr("strides", vec![1i64; 3])
            .attr("padding", "SAME")
            .input(numbers(&[1, 4, 2]))
            .input(numbers(&[2, 2, 2]))
            .fails(Code::InvalidArgument, "must specify 4 or 5 dimensions");
    }

    fn counted(dims: &[usize]) -> Tensor {
        let n: usize = dims.iter().product();
        let values: Vec<f64> = (0..n).map(|i| (i * 7 % 13) as f64 - 5.0).collect();
        Tensor::from_slice(dims, &values).unwrap()
    }

    /// A convolution under test: image with channels last, filter, and attributes per dimension.
    struct Case {
        image: [usize; 4],
        filter: [usize; 4],
        strides: [usize; 2],
        dilations: [usize; 2],
        padding: &'static str,
    }

    impl Case {
        fn attrs(&self, check: Check<'static>) -> Check<'static> {
            let outer = |x: [usize; 2]| vec![1, x[0] as i64, x[1] as i64, 1];
            let check = check.attr("strides", outer(self.strides)).attr("padding", self.padding);
            let explicit =
                if self.padding == "EXPLICIT" { vec![0, 0, 1, 0, 2, 1, 0, 0] } else { vec![] };
            check.attr("explicit_paddings", explicit).attr("dilations", outer(self.dilations))
        }

        fn before(&self, d: usize) -> (usize, usize) {
            let extent = (self.filter[d] - 1) * self.dilations[d] + 1;
            let (n, s) = (self.image[d + 1], self.strides[d]);
            match self.padding {
                "SAME" => {
                    let out = n.div_ceil(s);
                    (((out - 1) * s + extent).saturating_sub(n) / 2, out)
                }
                "VALID" => (0, (n + s - extent) / s),
                _ => {
                    let (before, after) = [(1, 0), (2, 1)][d];
                    (before, (n + before + after + s - extent) / s)
                }
            }
        }

        /// By the definition.
        fn plainly(&self, x: &[f64], f: &[f64]) -> Tensor {
            let [n, h, w, c] = self.image;
            let [fh, fw, fc, k] = self.filter;
            let ((top, oh), (left, ow)) = (self.before(0), self.before(1));
            let (groups, per_group) = (c / fc, k / (c / fc));
            let mut y = vec![0.0; n * oh * ow * k];
            for (i, y) in y.iter_mut().enumerate() {
                let (image, row, col, out) =
                    (i / (oh * ow * k), i / (ow * k) % oh, i / k % ow, i % k);
                for (kh, kw) in (0..fh * fw).map(|j| (j / fw, j % fw)) {
                    let ih = (row * self.strides[0] + kh * self.dilations[0]).wrapping_sub(top);
                    let iw = (col * self.strides[1] + kw * self.dilations[1]).wrapping_sub(left);
                    if ih >= h || iw >= w {
                        continue;
                    }
                    for j in 0..fc {
                        let from = out / per_group * fc + j;
                        debug_assert!(from < c && groups > 0);
                        *y += x[((image * h + ih) * w + iw) * c + from]
                            * f[((kh * fw + kw) * fc + j) * k + out];
                    }
                }
            }
            Tensor::from_slice([n, oh, ow, k], &y).unwrap()
        }
    }

    fn cases() -> Vec<Case> {
        let mut cases = Vec::new();
        for padding in ["SAME", "VALID", "EXPLICIT"] {
            for (strides, dilations) in [([1, 1], [1, 1]), ([2, 2], [1, 1]), ([2, 1], [1, 2])] {
                for (c, filter) in [(3, [3, 2, 3, 4]), (4, [2, 3, 2, 6]), (3, [1, 1, 3, 2])] {
                    let image = [2, 9, 8, c];
                    cases.push(Case { image, filter, strides, dilations, padding });
                }
            }
        }
        cases
    }

    fn dot(a: &Tensor, b: &Tensor) -> f64 {
        let pairs = a.as_slice::<f64>().unwrap().iter().zip(b.as_slice::<f64>().unwrap());
        pairs.map(|(a, b)| a * b).sum()
    }

    fn shape_vector(t: &Tensor) -> Tensor {
        Tensor::vector(&t.shape().iter().map(|&d| d as i32).collect::<Vec<_>>())
    }

    #[test]
    fn images_are_convolved_and_gradients_are_adjoint() {
        for case in cases() {
            let (x, f) = (counted(&case.image), counted(&case.filter));
            let want = case.plainly(x.as_slice().unwrap(), f.as_slice().unwrap());
            let op = check("Conv2D").input(x.clone()).input(f.clone());
            let y = case.attrs(op).run().unwrap().remove(0);
            ferroflow_testing::assert_close(&y, &want, 1e-12, 1e-12);
            // The gradient of a linear op is its adjoint.
            let dy = counted(y.shape());
            let op = check("Conv2DBackpropInput");
            let op = op.input(shape_vector(&x)).input(f.clone()).input(dy.clone());
            let dx = case.attrs(op).run().unwrap().remove(0);
            assert!((dot(&x, &dx) - dot(&y, &dy)).abs() < 1e-6);
            let op = check("Conv2DBackpropFilter");
            let op = op.input(x.clone()).input(shape_vector(&f)).input(dy.clone());
            let df = case.attrs(op).run().unwrap().remove(0);
            assert!((dot(&f, &df) - dot(&y, &dy)).abs() < 1e-6);
        }
    }

    #[test]
    fn channels_may_come_first() {
        let x = Tensor::from_slice([1, 2, 2, 2], &[1i32, 2, 3, 4, 10, 20, 30, 40]).unwrap();
        let f = Tensor::from_slice([1, 1, 2, 2], &[1i32, 2, 1, 0]).unwrap();
        check("Conv2D")
            .input(x)
            .input(f)
            .attr("strides", vec![1, 1, 1, 1])
            .attr("padding", "VALID")
            .attr("data_format", "NCHW")
            .gives(Tensor::from_slice([1, 2, 2, 2], &[11i32, 22, 33, 44, 2, 4, 6, 8]).unwrap());
    }

    #[test]
    fn volumes_are_convolved() {
        let ones =
            |dims: &[usize]| Tensor::from_slice(dims, &vec![1f32; dims.iter().product()]).unwrap();
        let (x, f) = (ones(&[1, 3, 3, 3, 1]), ones(&[2, 2, 2, 1, 1]));
        let attrs = |op: Check<'static>| op.attr("strides", vec![1; 5]).attr("padding", "VALID");
        let y = attrs(check("Conv3D").input(x.clone()).input(f.clone())).run().unwrap().remove(0);
        let want = Tensor::from_slice([1, 2, 2, 2, 1], &[8f32; 8]).unwrap();
        assert_eq!(y, want);
        let op = check("Conv3DBackpropInputV2").input(shape_vector(&x)).input(f.clone());
        let dx = attrs(op.input(ones(&[1, 2, 2, 2, 1]))).run().unwrap().remove(0);
        assert_eq!(dx.as_slice::<f32>().unwrap()[13], 8.0);
        let op = check("Conv3DBackpropFilterV2").input(x).input(shape_vector(&f));
        let df = attrs(op.input(ones(&[1, 2, 2, 2, 1])));
        df.gives(Tensor::from_slice([2, 2, 2, 1, 1], &[8f32; 8]).unwrap());
    }

    #[test]
    fn what_cannot_be_convolved_is_refused() {
        let zeros = |dims: [usize; 4]| Tensor::zeros(DType::Float, dims).unwrap();
        let conv = |x, f, strides: [i64; 4], dilations: [i64; 4]| {
            let op = check("Conv2D").input(zeros(x)).input(zeros(f)).attr("padding", "VALID");
            op.attr("strides", strides.to_vec()).attr("dilations", dilations.to_vec())
        };
        let (x, f, one) = ([1, 3, 3, 2], [2, 2, 2, 1], [1; 4]);
        let text = "input depth must be evenly divisible by filter depth: 2 vs 3";
        conv(x, [2, 2, 3, 1], one, one).fails(Code::InvalidArgument, text);
        let text = "Row and column strides should be larger than 0.";
        conv(x, f, [1, 0, 1, 1], one).fails(Code::InvalidArgument, text);
        let text = "Current implementation does not yet support strides in the batch and depth";
        conv(x, f, [2, 1, 1, 1], one).fails(Code::Unimplemented, text);
        let text = "Dilated rates should be larger than 0.";
        conv(x, f, one, [1, 0, 1, 1]).fails(Code::InvalidArgument, text);
        conv([1, 1, 1, 2], f, one, one).gives(Tensor::zeros(DType::Float, [1, 0, 0, 1]).unwrap());
        let text = "Computed output size would be negative";
        conv([1, 1, 1, 2], [9, 1, 2, 1], one, one).fails(Code::InvalidArgument, text);
        conv([0, 3, 3, 2], f, one, one).gives(Tensor::zeros(DType::Float, [0, 2, 2, 1]).unwrap());
    }

    #[test]
    fn gradients_must_fit() {
        let input = |sizes: &[i32], dy: [usize; 4]| {
            check("Conv2DBackpropInput")
                .input(Tensor::vector(sizes))
                .input(Tensor::zeros(DType::Float, [2, 2, 1, 1]).unwrap())
                .input(Tensor::zeros(DType::Float, dy).unwrap())
                .attr("strides", vec![1; 4])
                .attr("padding", "VALID")
        };
        let fails = |sizes: &[i32], dy, text| input(sizes, dy).fails(Code::InvalidArgument, text);
        input(&[3, 3], [1, 2, 2, 1]).gives(Tensor::zeros(DType::Float, [1, 3, 3, 1]).unwrap());
        let text = "Conv2DCustomBackpropInput: Size of out_backprop doesn't match computed: actual \
                    = 3, computed = 2 spatial_dim: 1 input: 3 filter: 2 output: 3 stride: 1";
        fails(&[1, 3, 3, 1], [1, 3, 2, 1], text);
        let text = "filter and out_backprop must have the same out_depth";
        fails(&[1, 3, 3, 1], [1, 2, 2, 2], text);
        fails(&[1, -3, 3, 1], [1, 2, 2, 1], "must be >= 0");
        let text = "Conv2DBackpropInput requires input_sizes to contain 4 values or 2 values, but \
                    got: 3";
        fails(&[1, 3, 3], [1, 2, 2, 1], text);
    }
}
