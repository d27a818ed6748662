//! DepthwiseConv2dNative and its gradients: each channel is convolved separately.

use super::conv::device::{axes_arg, reordered_on_device, text};
use super::conv_ops::{ConvElement, conv_shape, reordered, shape_in};
use super::window::{Axis, Layout, Sliding};
use crate::prelude::*;
use ferroflow_core::ComputePool;
use ferroflow_op_kit::gpu::{self, GpuKernel, address, length};
use ferroflow_op_kit::parallel::for_rows;

/// Sizes of a depthwise convolution with channels last.
struct Depthwise {
    batch: usize,
    rows: Axis,
    cols: Axis,
    channels: usize,
    /// Output channels for every input channel.
    multiplier: usize,
}

impl Depthwise {
    fn new(sliding: &Sliding, image: &Shape, filter: &Shape) -> Result<Depthwise> {
        ensure!(image.rank() == 4, InvalidArgument, "input must be 4-dimensional{image}");
        ensure!(filter.rank() == 4, InvalidArgument, "filter must be 4-dimensional: {filter}");
        ensure!(
            image[3] == filter[2],
            InvalidArgument,
            "input and filter must have the same depth: {} vs {}",
            image[3],
            filter[2]
        );
        filter.checked_elements()?;
        let axes = sliding.axes(&image[1..3], &filter[..2])?;
        let (channels, multiplier) = (image[3], filter[3]);
        Ok(Depthwise { batch: image[0], rows: axes[0], cols: axes[1], channels, multiplier })
    }

    fn out_channels(&self) -> usize {
        self.channels * self.multiplier
    }

    /// Calls `visit(filter position, input pixel)` for each part of a window inside the image.
    fn taps(&self, row: usize, col: usize, mut visit: impl FnMut(usize, usize)) {
        for kh in 0..self.rows.window {
            let Some(ih) = self.rows.at(row, kh) else { continue };
            for kw in 0..self.cols.window {
                if let Some(iw) = self.cols.at(col, kw) {
                    visit(kh * self.cols.window + kw, ih * self.cols.input + iw);
                }
            }
        }
    }

    fn image(&self) -> usize {
        self.rows.input * self.cols.input * self.channels
    }

    fn positions(&self) -> usize {
        self.rows.output * self.cols.output
    }

    /// About how many nanoseconds one output position takes.
    fn cost(&self) -> usize {
        self.rows.window * self.cols.window * self.out_channels() / 4 + 1
    }

    fn forward<T: Num>(&self, x: &[T], filter: &[T], y: &mut [T]) {
        let (c, m, k) = (self.channels, self.multiplier, self.out_channels());
        for_rows(y, k, self.cost(), |range, y| {
            for (at, y) in range.zip(y.chunks_exact_mut(k)) {
                let x = &x[at / self.positions() * self.image()..];
                let at = at % self.positions();
                y.fill(T::ZERO);
                self.taps(at / self.cols.output, at % self.cols.output, |tap, pixel| {
                    let (x, f) = (&x[pixel * c..][..c], &filter[tap * k..][..k]);
                    if m == 1 {
                        for ((y, x), f) in y.iter_mut().zip(x).zip(f) {
                            *y = y.add(x.mul(*f));
                        }
                        return;
                    }
                    for ((y, x), f) in y.chunks_exact_mut(m).zip(x).zip(f.chunks_exact(m)) {
                        y.iter_mut().zip(f).for_each(|(y, f)| *y = y.add(x.mul(*f)));
                    }
                });
            }
        });
    }

    fn backprop_input<T: Num>(&self, filter: &[T], dy: &[T], dx: &mut [T]) {
        let (c, m, k) = (self.channels, self.multiplier, self.out_channels());
        let image = self.image();
        for_rows(dx, image, self.positions() * self.cost(), |range, dx| {
            dx.fill(T::ZERO);
            for (i, dx) in range.zip(dx.chunks_exact_mut(image)) {
                let dy = &dy[i * self.positions() * k..(i + 1) * self.positions() * k];
                for (at, dy) in dy.chunks_exact(k).enumerate() {
                    self.taps(at / self.cols.output, at % self.cols.output, |tap, pixel| {
                        let (dx, f) = (&mut dx[pixel * c..][..c], &filter[tap * k..][..k]);
                        let pairs = dy.chunks_exact(m).zip(f.chunks_exact(m));
                        for (dx, (dy, f)) in dx.iter_mut().zip(pairs) {
                            dy.iter().zip(f).for_each(|(dy, f)| *dx = dx.add(dy.mul(*f)));
                        }
                    });
                }
            }
        });
    }

    fn backprop_filter<T: Num>(&self, x: &[T], dy: &[T], df: &mut [T]) {
        let (c, m, k) = (self.channels, self.multiplier, self.out_channels());
        let (positions, image) = (self.positions(), self.image());
        let rows = self.batch * positions;
        let parts = ComputePool::threads().min(rows).max(1);
        let len = df.len();
        let mut sums: Vec<Vec<T>> = vec![Vec::new(); parts];
        for_rows(&mut sums, 1, rows / parts * self.cost(), |range, sums| {
            for (part, sum) in range.zip(sums) {
                *sum = vec![T::ZERO; len];
                for row in rows * part / parts..rows * (part + 1) / parts {
                    let x = &x[row / positions * image..];
                    let (at, dy) = (row % positions, &dy[row * k..][..k]);
                    self.taps(at / self.cols.output, at % self.cols.output, |tap, pixel| {
                        let (x, sum) = (&x[pixel * c..][..c], &mut sum[tap * k..][..k]);
                        let pairs = sum.chunks_exact_mut(m).zip(dy.chunks_exact(m));
                        for (x, (sum, dy)) in x.iter().zip(pairs) {
                            sum.iter_mut().zip(dy).for_each(|(s, dy)| *s = s.add(x.mul(*dy)));
                        }
                    });
                }
            }
        });
        df.fill(T::ZERO);
        for sum in &sums {
            df.iter_mut().zip(sum).for_each(|(df, s)| *df = df.add(*s));
        }
    }
}

/// The sums of an image of integers and of a filter for each of its channels, which come last.
pub(super) fn convolved_depthwise(
    sliding: &Sliding,
    (image, x): (&Shape, &[i32]),
    (filter, f): (&Shape, &[i32]),
) -> Result<Tensor> {
    let d = Depthwise::new(sliding, image, filter)?;
    let shape = [d.batch, d.rows.output, d.cols.output, d.out_channels()];
    let mut y = Tensor::zeros(DType::Int32, Shape::from_dims(&shape.map(|d| d as i64))?)?;
    if y.elements() > 0 {
        d.forward::<i32>(x, f, y.as_mut_slice()?);
    }
    Ok(y)
}

#[derive(Clone, Copy, PartialEq)]
enum Part {
    Output,
    Input,
    Filter,
}

struct DepthwiseConv<T> {
    part: Part,
    sliding: Sliding,
    marker: std::marker::PhantomData<T>,
}

impl<T: ConvElement> DepthwiseConv<T> {
    fn new(init: &KernelInit<'_>, part: Part) -> Result<Self> {
        let sliding = Sliding::of_convolution(init.attrs, 2)?;
        ensure!(
            sliding.strides[0] == sliding.strides[1],
            InvalidArgument,
            "Current implementation only supports equal length strides in the row and column \
             dimensions."
        );
        Ok(DepthwiseConv { part, sliding, marker: std::marker::PhantomData })
    }

    fn sizes(&self, image: &Shape, filter: &Shape) -> Result<Depthwise> {
        Depthwise::new(&self.sliding, image, filter)
    }

    fn check_gradient(&self, d: &Depthwise, dy: &Shape) -> Result<()> {
        let op = match self.part {
            Part::Input => "DepthwiseConv2DBackpropInput",
            _ => "DepthwiseConv2DBackpropFilter",
        };
        ensure!(dy.rank() == 4, InvalidArgument, "{op}: out_backprop must be 4-dimensional");
        ensure!(
            dy[0] == d.batch,
            InvalidArgument,
            "{op}: input and out_backprop must have the same batch size"
        );
        for (name, is, want) in [("rows", dy[1], d.rows.output), ("cols", dy[2], d.cols.output)] {
            ensure!(
                is == want,
                InvalidArgument,
                "{op}: Number of {name} of out_backprop doesn't match computed: actual = {is}, \
                 computed = {want}"
            );
        }
        ensure!(
            dy[3] == d.out_channels(),
            InvalidArgument,
            "{op}: depth_multiplier * in_depth not equal to out_depth"
        );
        Ok(())
    }

    /// The output with channels last, widened.
    fn forward(&self, ctx: &Ctx<'_>) -> Result<Tensor> {
        let (x, f) = (ctx.input(0)?, ctx.input(1)?);
        ensure!(x.rank() == 4, InvalidArgument, "input must be 4-dimensional{}", x.shape());
        let x = T::widened(&reordered(x, self.sliding.layout, true)?)?;
        let f = T::widened(f)?;
        let d = self.sizes(x.shape(), f.shape())?;
        let shape = [d.batch, d.rows.output, d.cols.output, d.out_channels()];
        let mut y = Tensor::alloc(<T::Wide as Element>::DTYPE, shape)?;
        if y.elements() > 0 {
            d.forward::<T::Wide>(x.as_slice()?, f.as_slice()?, y.as_mut_slice()?);
        }
        Ok(y)
    }

    fn run(&self, ctx: &Ctx<'_>) -> Result<Tensor> {
        let layout = self.sliding.layout;
        let last = |t: &Tensor| T::widened(&reordered(t, layout, true)?);
        let alloc = |shape: Shape| Tensor::alloc(<T::Wide as Element>::DTYPE, shape);
        let shape_in = |i: usize| ctx.input(i)?.to_shape();
        match self.part {
            Part::Output => reordered(&self.forward(ctx)?, layout, false),
            Part::Input => {
                let (f, dy) = (ctx.input(1)?, ctx.input(2)?);
                let shape = shape_in(0)?;
                ensure!(
                    shape.rank() == 4 && dy.rank() == 4,
                    InvalidArgument,
                    "DepthwiseConv2DBackpropInput: input_sizes and out_backprop must be \
                     4-dimensional"
                );
                let (f, dy) = (T::widened(f)?, last(dy)?);
                let d = self.sizes(&layout.to_last(&shape), f.shape())?;
                self.check_gradient(&d, dy.shape())?;
                let mut dx = alloc(layout.to_last(&shape))?;
                if dx.elements() > 0 {
                    if dy.elements() > 0 {
                        d.backprop_input::<T::Wide>(
                            f.as_slice()?,
                            dy.as_slice()?,
                            dx.as_mut_slice()?,
                        );
                    } else {
                        dx.as_mut_slice::<T::Wide>()?.fill(<T::Wide as Num>::ZERO);
                    }
                }
                reordered(&dx, layout, false)
            }
            Part::Filter => {
                let (x, dy) = (ctx.input(0)?, ctx.input(2)?);
                ensure!(
                    x.rank() == 4 && dy.rank() == 4,
                    InvalidArgument,
                    "DepthwiseConv2DBackpropFilter: input and out_backprop must be 4-dimensional"
                );
                let (x, dy, shape) = (last(x)?, last(dy)?, shape_in(1)?);
                let d = self.sizes(x.shape(), &shape)?;
                self.check_gradient(&d, dy.shape())?;
                let mut df = alloc(shape)?;
                if df.elements() > 0 {
                    d.backprop_filter::<T::Wide>(x.as_slice()?, dy.as_slice()?, df.as_mut_slice()?);
                }
                Ok(df)
            }
        }
    }
}

/// The depthwise convolution of inputs 0 and 1 of a node, as a part of another kernel.
pub(super) struct PlainDepthwise<T>(DepthwiseConv<T>);

impl<T: ConvElement> PlainDepthwise<T> {
    pub fn new(init: &KernelInit<'_>) -> Result<Self> {
        Ok(PlainDepthwise(DepthwiseConv::new(init, Part::Output)?))
    }

    pub fn layout(&self) -> Layout {
        self.0.sliding.layout
    }

    /// The output with channels last, widened.
    pub fn run(&self, ctx: &Ctx<'_>) -> Result<Tensor> {
        self.0.forward(ctx)
    }
}

impl<T: ConvElement> Kernel for DepthwiseConv<T> {
    fn compute(&self, ctx: &mut Ctx<'_>) -> Result<()> {
        let out = self.run(ctx)?;
        ctx.set(0, T::narrowed(out)?)
    }
}

/// The kernel on a GPU.
fn on_device(init: &KernelInit<'_>, part: Part) -> Result<KernelBox> {
    let dtype = init.dtype("T")?;
    // The checks do not depend on the type.
    let node = DepthwiseConv::<f32>::new(init, part)?;
    let name = match part {
        Part::Output => "depthwise",
        Part::Input => "depthwise_input",
        Part::Filter => "depthwise_filter",
    };
    let kernel = GpuKernel::new(text(dtype)?, name).prepared(init)?;
    Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
        let layout = node.sliding.layout;
        let (first, last) = (ctx.input(0)?, ctx.input(if part == Part::Output { 0 } else { 2 })?);
        ensure!(
            last.rank() == 4 && (part == Part::Input || first.rank() == 4),
            InvalidArgument,
            "input must be 4-dimensional{}",
            first.shape()
        );
        let image = match part {
            Part::Input => layout.to_last(&first.to_shape()?),
            _ => layout.to_last(first.shape()),
        };
        let filter = match part {
            Part::Filter => ctx.input(1)?.to_shape()?,
            _ => ctx.input(1)?.shape().clone(),
        };
        let d = node.sizes(&image, &filter)?;
        let output = [d.batch, d.rows.output, d.cols.output, d.out_channels()];
        if part != Part::Output {
            node.check_gradient(&d, &layout.to_last(last.shape()))?;
        }
        let shape = match part {
            Part::Output => Shape::from(output),
            Part::Input => image,
            Part::Filter => filter,
        };
        let gpu = ctx.gpu()?;
        let out = ctx.alloc_on_device(dtype, shape)?;
        let n = out.elements();
        let last = reordered_on_device(last, layout, true)?;
        let axes = axes_arg(&[Axis::NONE, d.rows, d.cols]);
        let sizes = [axes, length(d.channels), length(d.multiplier)];
        if n > 0 && part == Part::Filter {
            let x = reordered_on_device(first, layout, true)?;
            let tensors = [address(&x)?, address(&last)?, address(&out)?];
            let head = [length(n), length(d.batch)];
            let args: Vec<_> = head.into_iter().chain(sizes).chain(tensors).collect();
            let grid = [n.min(1 << 20) as u32, 1, 1];
            kernel.blocks(gpu.as_ref(), grid, [256, 1, 1], &args)?;
        } else if n > 0 {
            let filter = ctx.input(1)?;
            let tensors = match part {
                Part::Output => [address(&last)?, address(filter)?, address(&out)?],
                _ => [address(filter)?, address(&last)?, address(&out)?],
            };
            let args: Vec<_> = [length(n)].into_iter().chain(sizes).chain(tensors).collect();
            kernel.over(gpu.as_ref(), n, &args)?;
        }
        let stored =
            if part == Part::Filter { out } else { reordered_on_device(&out, layout, false)? };
        ctx.set(0, stored)
    }))
}

pub(crate) fn register(c: &mut Catalog) {
    macro_rules! depthwise {
        ($op:literal, $doc:literal, [$($input:literal),*], $part:ident, $shape:expr, $sizes:expr) => {
            c.op($op)
                .doc($doc)
                $(.input($input))*
                .output("output: T")
                .attr("T: {half, bfloat16, float, double}")
                .attr("strides: list(int)")
                .attr("padding: {'SAME', 'VALID', 'EXPLICIT'}")
                .attr("explicit_paddings: list(int) = []")
                .attr("data_format: {'NHWC', 'NCHW'} = 'NHWC'")
                .attr("dilations: list(int) = [1, 1, 1, 1]")
                .expensive()
                .shape($shape)
                .gpu(gpu::FLOAT, |init| on_device(init, Part::$part))
                .host_inputs($sizes)
                .cpu(per_dtype!(FLOAT, init, T => DepthwiseConv::<T>::new(init, Part::$part)?));
        };
    }
    depthwise!(
        "DepthwiseConv2dNative",
        "Convolution of every channel with filters of its own.",
        ["input: T", "filter: T"],
        Output,
        |c| conv_shape(c, 2, true),
        &[]
    );
    depthwise!(
        "DepthwiseConv2dNativeBackpropInput",
        "Gradient of DepthwiseConv2dNative for its input.",
        ["input_sizes: int32", "filter: T", "out_backprop: T"],
        Input,
        shape_in(0, 4),
        &["input_sizes"]
    );
    depthwise!(
        "DepthwiseConv2dNativeBackpropFilter",
        "Gradient of DepthwiseConv2dNative for its filter.",
        ["input: T", "filter_sizes: int32", "out_backprop: T"],
        Filter,
        shape_in(1, 4),
        &["filter_sizes"]
    );
    super::conv_ops::declare_gradients(
        c,
        "DepthwiseConv2dNative",
        "DepthwiseConv2dNativeBackpropInput",
        "DepthwiseConv2dNativeBackpropFilter",
    );
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::testing::{Check, check};

    fn counted(dims: &[usize]) -> Tensor {
        let n: usize = dims.iter().product();
        let values: Vec<f64> = (0..n).map(|i| (i * 7 % 13) as f64 - 5.0).collect();
        Tensor::from_slice(dims, &values).unwrap()
    }

    fn attrs(op: Check<'static>, stride: i64, padding: &str) -> Check<'static> {
        op.attr("strides", vec![1, stride, stride, 1]).attr("padding", padding)
    }

    fn shape_vector(t: &Tensor) -> Tensor {
        Tensor::vector(&t.shape().iter().map(|&d| d as i32).collect::<Vec<_>>())
    }

    fn dot(a: &Tensor, b: &Tensor) -> f64 {
        let pairs = a.as_slice::<f64>().unwrap().iter().zip(b.as_slice::<f64>().unwrap());
        pairs.map(|(a, b)| a * b).sum()
    }

    /// A filter that convolves all channels together, with zeros where they would mix.
    fn full_filter(f: &Tensor) -> Tensor {
        let [h, w, c, m] = f.shape()[..] else { panic!() };
        let mut full = vec![0.0; h * w * c * c * m];
        for (i, x) in f.as_slice::<f64>().unwrap().iter().enumerate() {
            let (tap, channel, out) = (i / (c * m), i / m % c, i % m);
            full[(tap * c + channel) * c * m + channel * m + out] = *x;
        }
        Tensor::from_slice([h, w, c, c * m], &full).unwrap()
    }

    #[test]
    fn channels_are_convolved_apart_and_gradients_are_adjoint() {
        for (stride, padding) in [(1, "SAME"), (2, "SAME"), (1, "VALID"), (2, "VALID")] {
            for m in [1, 4] {
                let (x, f) = (counted(&[2, 7, 6, 3]), counted(&[3, 2, 3, m]));
                let op = check("DepthwiseConv2dNative").input(x.clone()).input(f.clone());
                let y = attrs(op, stride, padding).run().unwrap().remove(0);
                let op = check("Conv2D").input(x.clone()).input(full_filter(&f));
                attrs(op, stride, padding).gives(y.clone());
                let dy = counted(y.shape());
                let op = check("DepthwiseConv2dNativeBackpropInput").input(shape_vector(&x));
                let op = op.input(f.clone()).input(dy.clone());
                let dx = attrs(op, stride, padding).run().unwrap().remove(0);
                assert!((dot(&x, &dx) - dot(&y, &dy)).abs() < 1e-6);
                let op = check("DepthwiseConv2dNativeBackpropFilter").input(x.clone());
                let op = op.input(shape_vector(&f)).input(dy.clone());
                let df = attrs(op, stride, padding).run().unwrap().remove(0);
                assert!((dot(&f, &df) - dot(&y, &dy)).abs() < 1e-6);
            }
        }
    }

    #[test]
    fn sizes_must_fit() {
        let op = check("DepthwiseConv2dNative").input(counted(&[1, 3, 3, 2]));
        let text = "input and filter must have the same depth: 2 vs 3";
        attrs(op.input(counted(&[2, 2, 3, 2])), 1, "VALID").fails(Code::InvalidArgument, text);
        let op = check("DepthwiseConv2dNativeBackpropFilter").input(counted(&[1, 3, 3, 2]));
        let op = op.input(Tensor::vector(&[2i32, 2, 2, 2])).input(counted(&[1, 2, 3, 4]));
        let text =
            "Number of cols of out_backprop doesn't match computed: actual = 3, computed = 2";
        attrs(op, 1, "VALID").fails(Code::InvalidArgument, text);
    }
}
