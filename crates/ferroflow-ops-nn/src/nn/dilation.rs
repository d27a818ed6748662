//! Dilation2D and its gradients: the largest sum of image and filter under a window.

use super::window::{Axis, Layout, Sliding, padding_of};
use crate::prelude::*;
use ferroflow_graph::Attrs;
use ferroflow_op_kit::parallel::for_rows;
use ferroflow_ops_array::reduce::segment::Lowest;

#[derive(Clone, Copy, PartialEq)]
enum Part {
    Output,
    Input,
    Filter,
}

struct Dilation<T> {
    part: Part,
    sliding: Sliding,
    marker: std::marker::PhantomData<T>,
}

fn sliding(attrs: &Attrs) -> Result<Sliding> {
    let (strides, rates) = (attrs.ints("strides")?, attrs.ints("rates")?);
    for (name, what, values) in [("strides", "Stride", &strides), ("rates", "Rate", &rates)] {
        ensure!(
            values.len() == 4,
            InvalidArgument,
            "Sliding window {name} field must specify 4 dimensions"
        );
        ensure!(
            values[0] == 1 && values[3] == 1,
            Unimplemented,
            "{what} is only supported across spatial dimensions."
        );
        ensure!(values.iter().all(|&v| v > 0), InvalidArgument, "{what} must be > 0");
    }
    Ok(Sliding {
        strides: strides[1..3].to_vec(),
        dilations: rates[1..3].to_vec(),
        padding: padding_of(attrs, 2, Layout::ChannelsLast)?,
        layout: Layout::ChannelsLast,
    })
}

/// Sizes of a dilation.
struct Window {
    batch: usize,
    rows: Axis,
    cols: Axis,
    depth: usize,
}

impl Window {
    /// For channel `c` of an output position: the largest sum, and the filter and image elements
    /// that make it. Of equal sums the first wins.
    fn best<T: Lowest>(
        &self,
        x: &[T],
        filter: &[T],
        at: usize,
        c: usize,
    ) -> (T, Option<(usize, usize)>) {
        let (row, col) = (at / self.cols.output, at % self.cols.output);
        let mut best = (T::LOWEST, None);
        for kh in 0..self.rows.window {
            let Some(ih) = self.rows.at(row, kh) else { continue };
            for kw in 0..self.cols.window {
                let Some(iw) = self.cols.at(col, kw) else { continue };
                let tap = (kh * self.cols.window + kw) * self.depth + c;
                let pixel = (ih * self.cols.input + iw) * self.depth + c;
                let sum = x[pixel].add(filter[tap]);
                if sum > best.0 {
                    best = (sum, Some((tap, pixel)));
                }
            }
        }
        best
    }

    fn image(&self) -> usize {
        self.rows.input * self.cols.input * self.depth
    }

    fn positions(&self) -> usize {
        self.rows.output * self.cols.output
    }

    fn output_shape(&self) -> Shape {
        [self.batch, self.rows.output, self.cols.output, self.depth].into()
    }
}

impl<T: Lowest> Dilation<T> {
    fn new(init: &KernelInit<'_>, part: Part) -> Result<Self> {
        let sliding = sliding(init.attrs)?;
        Ok(Dilation { part, sliding, marker: std::marker::PhantomData })
    }

    fn window(&self, x: &Shape, filter: &Shape) -> Result<Window> {
        ensure!(x.rank() == 4, InvalidArgument, "input must be 4-dimensional{x}");
        ensure!(filter.rank() == 3, InvalidArgument, "filter must be 3-dimensional: {filter}");
        ensure!(
            x[3] == filter[2],
            InvalidArgument,
            "input and filter must have the same depth: {} vs {}",
            x[3],
            filter[2]
        );
        let axes = self.sliding.axes(&x[1..3], &filter[..2])?;
        Ok(Window { batch: x[0], rows: axes[0], cols: axes[1], depth: x[3] })
    }
}

impl<T: Lowest> Kernel for Dilation<T> {
    fn compute(&self, ctx: &mut Ctx<'_>) -> Result<()> {
        let (x, filter) = (ctx.input(0)?, ctx.input(1)?);
        let w = self.window(x.shape(), filter.shape())?;
        let (xs, fs) = (x.as_slice::<T>()?, filter.as_slice::<T>()?);
        let (c, positions, image) = (w.depth, w.positions(), w.image());
        if self.part == Part::Output {
            let mut y = ctx.alloc(T::DTYPE, w.output_shape())?;
            let cost = 2 * fs.len() + 1;
            for_rows(y.as_mut_slice::<T>()?, c, cost, |range, y| {
                for (at, y) in range.zip(y.chunks_exact_mut(c)) {
                    let x = &xs[at / positions * image..];
                    for (j, y) in y.iter_mut().enumerate() {
                        *y = w.best(x, fs, at % positions, j).0;
                    }
                }
            });
            return ctx.set(0, y);
        }
        let dy = ctx.input(2)?;
        ensure!(
            *dy.shape() == w.output_shape(),
            InvalidArgument,
            "out_backprop has incompatible size."
        );
        let shape = if self.part == Part::Input { x.shape() } else { filter.shape() };
        let mut grad = Tensor::zeros(T::DTYPE, shape.clone())?;
        let out = grad.as_mut_slice::<T>()?;
        for (i, g) in dy.as_slice::<T>()?.iter().enumerate() {
            let (at, j) = (i / c, i % c);
            let start = at / positions * image;
            if let (_, Some((tap, pixel))) = w.best(&xs[start..], fs, at % positions, j) {
                let to = if self.part == Part::Input { start + pixel } else { tap };
                out[to] = out[to].add(*g);
            }
        }
        ctx.set(0, grad)
    }
}

fn output_shape(c: &ShapeCtx<'_>) -> Result<Vec<PartialShape>> {
    let sliding = sliding(c.attrs)?;
    let x = c.input(0).merge(&PartialShape::of_rank(4))?;
    let filter = c.input(1).merge(&PartialShape::of_rank(3))?;
    let (dims, f) = (x.dims().unwrap_or_default(), filter.dims().unwrap_or_default());
    let outputs = sliding.outputs(&dims[1..3], &f[..2])?;
    Ok(vec![PartialShape::new([dims[0], outputs[0], outputs[1], dims[3].or(f[2])])])
}

pub(crate) fn register(c: &mut Catalog) {
    macro_rules! dilation {
        ($op:literal, $doc:literal, $part:ident, $output:literal, $shape:expr) => {{
            let op = c.op($op).doc($doc).input("input: T").input("filter: T");
            let op = match Part::$part {
                Part::Output => op,
                _ => op.input("out_backprop: T"),
            };
            op.output($output)
                .attr("T: realnumbertype")
                .attr("strides: list(int) >= 4")
                .attr("rates: list(int) >= 4")
                .attr("padding: {'SAME', 'VALID'}")
                .expensive()
                .shape($shape)
                .cpu(per_dtype!(REAL, init, T => Dilation::<T>::new(init, Part::$part)?));
        }};
    }
    dilation!(
        "Dilation2D",
        "The largest sum of image and filter under a sliding window.",
        Output,
        "output: T",
        output_shape
    );
    dilation!(
        "Dilation2DBackpropInput",
        "Gradient of Dilation2D for its input.",
        Input,
        "in_backprop: T",
        shape::same_as_input
    );
    dilation!(
        "Dilation2DBackpropFilter",
        "Gradient of Dilation2D for its filter.",
        Filter,
        "filter_backprop: T",
        |c: &ShapeCtx<'_>| Ok(vec![c.input(1)])
    );
    c.gradient("Dilation2D", |g, dy| {
        let inputs = [g.input(0), g.input(1), dy[0]];
        Ok(vec![
            g.call_like("Dilation2DBackpropInput", &inputs),
            g.call_like("Dilation2DBackpropFilter", &inputs),
        ])
    });
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::testing::{Check, check};

    fn op(name: &str) -> Check<'static> {
        let x: Vec<f32> = (0..16).map(|i| (i % 5) as f32).collect();
        check(name)
            .input(Tensor::from_slice([1, 4, 4, 1], &x).unwrap())
            .input(Tensor::from_slice([2, 2, 1], &[1f32, 0.0, 0.0, 2.0]).unwrap())
            .attr("padding", "VALID")
            .attr("strides", vec![1; 4])
            .attr("rates", vec![1; 4])
    }

    #[test]
    fn sums_are_maximised_and_gradients_follow_them() {
        let t = |dims: &[usize], values: &[f32]| Tensor::from_slice(dims, values).unwrap();
        let want = [4.0, 3.0, 4.0, 6.0, 4.0, 3.0, 5.0, 6.0, 4.0];
        op("Dilation2D").gives(t(&[1, 3, 3, 1], &want));
        let same = op("Dilation2D").attr("padding", "SAME").attr("strides", vec![1, 2, 2, 1]);
        let same = same.attr("rates", vec![1, 2, 2, 1]);
        same.gives(t(&[1, 2, 2, 1], &[3.0, 3.0, 4.0, 1.0]));
        let dy = t(&[1, 3, 3, 1], &[0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]);
        let want = [0., 0., 0., 0., 0., 0., 1., 2., 0., 7., 0., 5., 0., 6., 15., 0.];
        op("Dilation2DBackpropInput").input(dy.clone()).gives(t(&[1, 4, 4, 1], &want));
        let want = t(&[2, 2, 1], &[0.0, 0.0, 12.0, 24.0]);
        op("Dilation2DBackpropFilter").input(dy).gives(want);
        let bad = op("Dilation2DBackpropInput").input(t(&[1, 1, 3, 1], &[0.0; 3]));
        bad.fails(Code::InvalidArgument, "out_backprop has incompatible size.");
        let text = "Stride is only supported across spatial dimensions.";
        op("Dilation2D").attr("strides", vec![2, 1, 1, 1]).fails(Code::Unimplemented, text);
    }
}
