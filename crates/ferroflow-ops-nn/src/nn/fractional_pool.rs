//! FractionalMaxPool, FractionalAvgPool and their gradients: pools whose windows differ in size by
//! one, so that the output is a fraction of the input (Graham, arXiv 1412.6071).

use crate::prelude::*;
use ferroflow_op_kit::philox::{Philox, Singles, entropy};

/// The start of each of `output` windows over `input` elements, and the end of the last.
fn boundaries(input: usize, output: usize, pseudo: bool, stream: &mut Philox) -> Vec<i64> {
    // Reserves the next `words` words for the caller.
    let mut reserve = |words: u64| {
        let mine = *stream;
        stream.skip(words.div_ceil(4));
        Singles::new(mine)
    };
    let least = input / output;
    let mut sizes = vec![least as i64; output];
    if pseudo {
        let mut random = reserve(2);
        let (n, m, k) = (input as f64, output as f64, least as f64);
        let alpha = n / m;
        let most = ((k + 2.0) / alpha - 1.0).min((n + 1.0 - k) / alpha - (m - 1.0));
        let u = random.next_f64() * most;
        let ends = (1..output).map(|i| (alpha * (i as f64 + u)).ceil() as i64);
        let ends = std::iter::once(1).chain(ends).chain([input as i64 + 1]).collect::<Vec<_>>();
        sizes = ends.windows(2).map(|w| w[1] - w[0]).collect();
    } else {
        sizes[..input % output].iter_mut().for_each(|size| *size += 1);
        let mut random = reserve(output as u64);
        // Swaps each element with itself or a later one.
        for i in 0..output.saturating_sub(1) {
            let j = i + random.next_u32() as usize % (output - i);
            sizes.swap(i, j);
        }
    }
    let mut at = 0;
    let mut ends = vec![0];
    ends.extend(sizes.iter().map(|size| {
        at += size;
        at
    }));
    ends
}

/// The elements of window `i`; an overlapping window includes the first element of the next.
fn window(ends: &[i64], i: usize, overlapping: bool, input: usize) -> std::ops::Range<usize> {
    let to = ends[i + 1] + i64::from(overlapping);
    let clamp = |x: i64| x.clamp(0, input as i64) as usize;
    clamp(ends[i])..clamp(to).max(clamp(ends[i]))
}

struct FractionalPool<T> {
    average: bool,
    ratio: [f32; 4],
    pseudo: bool,
    overlapping: bool,
    /// The seeds of the regions, if they are the same in every step.
    seeds: Option<(i64, i64)>,
    marker: std::marker::PhantomData<T>,
}

impl<T: Real> FractionalPool<T> {
    fn new(init: &KernelInit<'_>, average: bool) -> Result<FractionalPool<T>> {
        let Ok(ratio) = <[f32; 4]>::try_from(init.floats("pooling_ratio")?) else {
            bail!(InvalidArgument, "pooling_ratio field must specify 4 dimensions");
        };
        for x in ratio {
            ensure!(x >= 1.0, InvalidArgument, "pooling_ratio cannot be smaller than 1, got: {x}");
        }
        ensure!(
            ratio[0] == 1.0 && ratio[3] == 1.0,
            Unimplemented,
            "Fractional {} pooling is not yet supported on the batch nor channel dimension.",
            if average { "average" } else { "max" }
        );
        let seeds = match (init.bool("deterministic")?, init.int("seed")?, init.int("seed2")?) {
            (true, 0, 0) => Some((entropy() as i64, entropy() as i64)),
            (true, seed, seed2) => Some((seed, seed2)),
            (false, 0, 0) => None,
            _ => {
                bail!(InvalidArgument, "Both seed and seed2 should be 0 if deterministic is false.")
            }
        };
        Ok(FractionalPool {
            average,
            ratio,
            pseudo: init.bool("pseudo_random")?,
            overlapping: init.bool("overlapping")?,
            seeds,
            marker: std::marker::PhantomData,
        })
    }
}

impl<T: Real> Kernel for FractionalPool<T> {
    fn compute(&self, ctx: &mut Ctx<'_>) -> Result<()> {
        let x = ctx.input(0)?;
        let &[batch, height, width, channels] = x.shape().dims() else {
            bail!(InvalidArgument, "tensor_in must be 4-dimensional");
        };
        let input = [batch, height, width, channels];
        let mut output = [0; 4];
        for i in 0..4 {
            ensure!(
                input[i] as f32 >= self.ratio[i],
                InvalidArgument,
                "Pooling ratio is higher than input dimension size for dimension {i}. Input dim \
                 size: {} pooling ratio: {}",
                input[i],
                self.ratio[i]
            );
            output[i] = (input[i] as f32 / self.ratio[i]).floor() as usize;
        }
        let (seed, seed2) = self.seeds.unwrap_or_else(|| (entropy() as i64, entropy() as i64));
        let mut stream = Philox::seeded(seed, seed2);
        let down = boundaries(height, output[1], self.pseudo, &mut stream);
        let across = boundaries(width, output[2], self.pseudo, &mut stream);
        let mut out = ctx.alloc(T::DTYPE, output)?;
        let data = x.as_slice::<T>()?;
        for (i, out) in out.as_mut_slice::<T>()?.chunks_exact_mut(channels.max(1)).enumerate() {
            let (b, at) = (i / (output[1] * output[2]), i % (output[1] * output[2]));
            let rows = window(&down, at / output[2], self.overlapping, height);
            let cols = window(&across, at % output[2], self.overlapping, width);
            let count = T::from_i64((rows.len() * cols.len()) as i64);
            for (c, out) in out.iter_mut().enumerate() {
                let (mut sum, mut largest) = (T::ZERO, None);
                for y in rows.clone() {
                    for x in cols.clone() {
                        let v = data[((b * height + y) * width + x) * channels + c];
                        sum = sum.add(v);
                        largest = Some(largest.map_or(v, |best| Real::max(best, v)));
                    }
                }
                *out = if self.average { sum.div(count) } else { largest.unwrap_or(T::ZERO) };
            }
        }
        ctx.set(0, out)?;
        ctx.set(1, Tensor::vector(&down))?;
        ctx.set(2, Tensor::vector(&across))
    }
}

/// The boundaries in a sequence input, which must suit the sizes of input and output.
fn given(ctx: &Ctx<'_>, i: usize, name: &str, output: usize) -> Result<Vec<i64>> {
    let t = ctx.input(i)?;
    ensure!(t.rank() == 1, InvalidArgument, "{name} must be rank 1, got shape {}", t.shape());
    ensure!(
        t.elements() > output,
        InvalidArgument,
        "Given {name} shape {} must have one element more than the output, which has {output}",
        t.shape()
    );
    Ok(t.as_slice::<i64>()?.to_vec())
}

fn avg_grad<T: Real>(overlapping: bool) -> impl Kernel {
    move |ctx: &mut Ctx<'_>| {
        let (sizes, dy) = (ctx.input(0)?, ctx.input(1)?);
        ensure!(
            sizes.rank() == 1 && sizes.elements() == 4,
            InvalidArgument,
            "original input tensor shape must be 1-dimensional and 4 elements"
        );
        let shape = sizes.to_shape()?;
        let &[batch, rows, cols, channels] = dy.shape().dims() else {
            bail!(InvalidArgument, "out_backprop must be 4-dimensional, got {}", dy.shape());
        };
        ensure!(
            batch == shape[0] && channels == shape[3],
            InvalidArgument,
            "out_backprop {} does not fit the original input {shape}",
            dy.shape()
        );
        let down = given(ctx, 2, "row_pooling_sequence", rows)?;
        let across = given(ctx, 3, "col_pooling_sequence", cols)?;
        let mut sums = Tensor::zeros(DType::Double, shape.clone())?;
        let out = sums.as_mut_slice::<f64>()?;
        for (i, dy) in dy.as_slice::<T>()?.chunks_exact(channels.max(1)).enumerate() {
            let (b, at) = (i / (rows * cols), i % (rows * cols));
            let ys = window(&down, at / cols, overlapping, shape[1]);
            let xs = window(&across, at % cols, overlapping, shape[2]);
            let count = (ys.len() * xs.len()) as f64;
            for y in ys {
                for x in xs.clone() {
                    let to = &mut out[((b * shape[1] + y) * shape[2] + x) * channels..][..channels];
                    to.iter_mut().zip(dy).for_each(|(to, dy)| *to += dy.to_f64() / count);
                }
            }
        }
        let mut dx = ctx.alloc(T::DTYPE, shape)?;
        let to = dx.as_mut_slice::<T>()?.iter_mut();
        to.zip(sums.as_slice::<f64>()?).for_each(|(to, x)| *to = T::from_f64(*x));
        ctx.set(0, dx)
    }
}

fn max_grad<T: Real>(overlapping: bool) -> impl Kernel {
    move |ctx: &mut Ctx<'_>| {
        let (x, y, dy) = (ctx.input(0)?, ctx.input(1)?, ctx.input(2)?);
        let (&[batch, height, width, channels], &[_, rows, cols, _]) =
            (x.shape().dims(), y.shape().dims())
        else {
            bail!(InvalidArgument, "orig_input and orig_output must be 4-dimensional");
        };
        ensure!(
            y.shape() == dy.shape() && y.shape()[0] == batch && y.shape()[3] == channels,
            InvalidArgument,
            "out_backprop {} does not fit orig_output {} and orig_input {}",
            dy.shape(),
            y.shape(),
            x.shape()
        );
        let down = given(ctx, 3, "row_pooling_sequence", rows)?;
        let across = given(ctx, 4, "col_pooling_sequence", cols)?;
        let mut dx = Tensor::zeros(T::DTYPE, x.shape().clone())?;
        let (data, out) = (x.as_slice::<T>()?, dx.as_mut_slice::<T>()?);
        for (i, dy) in dy.as_slice::<T>()?.chunks_exact(channels.max(1)).enumerate() {
            let (b, at) = (i / (rows * cols), i % (rows * cols));
            let ys = window(&down, at / cols, overlapping, height);
            let xs = window(&across, at % cols, overlapping, width);
            for (c, dy) in dy.iter().enumerate() {
                let mut best: Option<usize> = None;
                for y in ys.clone() {
                    for x in xs.clone() {
                        let at = ((b * height + y) * width + x) * channels + c;
                        if best.is_none_or(|best| data[best] < data[at]) {
                            best = Some(at);
                        }
                    }
                }
                let Some(best) = best else {
                    bail!(InvalidArgument, "a pooling region is empty");
                };
                out[best] = out[best].add(*dy);
            }
        }
        ctx.set(0, dx)
    }
}

fn pool_shape(c: &ShapeCtx<'_>) -> Result<Vec<PartialShape>> {
    let input = c.input(0).merge(&PartialShape::of_rank(4))?;
    let ratio = c.attrs.floats("pooling_ratio")?;
    ensure!(ratio.len() == 4, InvalidArgument, "pooling_ratio field must specify 4 dimensions");
    let size = |i: usize| input.dim(i).map(|d| (d as f32 / ratio[i]).floor() as usize);
    let sequence = |i: usize| PartialShape::new([size(i).map(|n| n + 1)]);
    let output = PartialShape::new([size(0), size(1), size(2), size(3)]);
    Ok(vec![output, sequence(1), sequence(2)])
}

/// The gradient of the result, and the edges of the regions.
const POOLED_GRADIENT: [&str; 3] =
    ["out_backprop: T", "row_pooling_sequence: int64", "col_pooling_sequence: int64"];

pub(crate) fn register(c: &mut Catalog) {
    for (op, average, doc) in [
        ("FractionalMaxPool", false, "The largest elements of windows of random sizes."),
        ("FractionalAvgPool", true, "The means of windows of random sizes."),
    ] {
        c.op(op)
            .work(work::any)
            .doc(doc)
            .input("value: T")
            .output("output: T")
            .output("row_pooling_sequence: int64")
            .output("col_pooling_sequence: int64")
            .attr("pooling_ratio: list(float) >= 4")
            .attr("pseudo_random: bool = false")
            .attr("overlapping: bool = false")
            .attr("deterministic: bool = false")
            .attr("seed: int = 0")
            .attr("seed2: int = 0")
            .attr("T: {float, double, int32, int64}")
            .expensive()
            .shape(pool_shape)
            .cpu(move |init| {
                per_dtype!([Float f32, Double f64, Int32 i32, Int64 i64], init, T => {
                    FractionalPool::<T>::new(init, average)?
                })(init)
            });
    }
    c.op("FractionalAvgPoolGrad")
        .doc("Gradient of FractionalAvgPool.")
        .input("orig_input_tensor_shape: int64")
        .inputs(&POOLED_GRADIENT)
        .output("output: T")
        .attr("overlapping: bool = false")
        .attr("T: {float, double, int32, int64}")
        .expensive()
        .shape(|c| Ok(vec![c.shape_from(0).merge(&PartialShape::of_rank(4))?]))
        .cpu(per_dtype!([Float f32, Double f64, Int32 i32, Int64 i64], init, T => {
            avg_grad::<T>(init.bool("overlapping")?)
        }));
    c.op("FractionalMaxPoolGrad")
        .doc("Gradient of FractionalMaxPool.")
        .input("orig_input: T")
        .input("orig_output: T")
        .inputs(&POOLED_GRADIENT)
        .output("output: T")
        .attr("overlapping: bool = false")
        .attr("T: {float, double, int32, int64}")
        .expensive()
        .shape(shape::same_as_input)
        .cpu(per_dtype!([Float f32, Double f64, Int32 i32, Int64 i64], init, T => {
            max_grad::<T>(init.bool("overlapping")?)
        }));
    c.gradient("FractionalMaxPool", |g, dy| {
        let inputs = [g.input(0), g.output(0), dy[0], g.output(1), g.output(2)];
        Ok(vec![g.call_like("FractionalMaxPoolGrad", &inputs)])
    });
    c.gradient("FractionalAvgPool", |g, dy| {
        let shape = g.input(0).shape_as(DType::Int64);
        let inputs = [shape, dy[0], g.output(1), g.output(2)];
        Ok(vec![g.call_like("FractionalAvgPoolGrad", &inputs)])
    });
}
