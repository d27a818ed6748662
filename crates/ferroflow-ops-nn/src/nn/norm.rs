//! FusedBatchNorm and its gradient, in all versions.

mod device;

use super::conv_ops::reordered;
use super::window::Layout;
use crate::prelude::*;
use ferroflow_core::ComputePool;
use ferroflow_op_kit::parallel::for_rows;

/// Sums over rows of `c` elements, in double precision: `term(i, sums)` adds row `i`.
fn column_sums(rows: usize, sums: usize, term: impl Fn(usize, &mut [f64]) + Sync) -> Vec<f64> {
    let parts = ComputePool::threads().min(rows.div_ceil(64)).max(1);
    let mut partial: Vec<Vec<f64>> = vec![Vec::new(); parts];
    for_rows(&mut partial, 1, rows / parts * sums, |range, partial| {
        for (part, out) in range.zip(partial) {
            let mut total = vec![0.0; sums];
            (rows * part / parts..rows * (part + 1) / parts).for_each(|i| term(i, &mut total));
            *out = total;
        }
    });
    let mut total = vec![0.0; sums];
    for partial in &partial {
        total.iter_mut().zip(partial).for_each(|(total, x)| *total += x);
    }
    total
}

/// A vector of `channels` floats in input `i`.
fn channel_vector<'a>(
    ctx: &'a Ctx<'_>,
    i: usize,
    name: &str,
    when: &str,
    channels: usize,
) -> Result<&'a [f32]> {
    device::check_vector(ctx, i, name, when, channels)?;
    ctx.input(i)?.as_slice::<f32>()
}

struct FusedBatchNorm<T> {
    epsilon: f64,
    is_training: bool,
    /// Weight of the batch's statistics in the running ones.
    factor: f32,
    layout: Layout,
    gradient: bool,
    marker: std::marker::PhantomData<T>,
}

/// The gradient of the result and the input that it is for, both checked.
pub(super) fn gradient_and_input<'a>(ctx: &'a Ctx<'_>) -> Result<(&'a Tensor, &'a Tensor)> {
    let (dy, x) = (ctx.input(0)?, ctx.input(1)?);
    for (name, t) in [("y backprop", dy), ("input", x)] {
        ensure!(
            matches!(t.rank(), 4 | 5),
            InvalidArgument,
            "{name} must be 4 or 5-dimensional{}",
            t.shape()
        );
    }
    ensure!(
        dy.shape() == x.shape(),
        InvalidArgument,
        "x and y_backprop must have same shape, but x has shape {} and y_backprop has shape {}",
        x.shape(),
        dy.shape()
    );
    Ok((dy, x))
}

impl<T: Float<Wide = f32>> FusedBatchNorm<T> {
    fn new(init: &KernelInit<'_>, gradient: bool) -> Result<Self> {
        Ok(FusedBatchNorm {
            epsilon: init.float("epsilon")? as f64,
            is_training: init.bool("is_training")?,
            factor: if gradient { 1.0 } else { init.float("exponential_avg_factor")? },
            layout: Layout::new(init.attrs)?,
            gradient,
            marker: std::marker::PhantomData,
        })
    }

    /// Rounds up to the type once per element: `y = a x + b` for every channel.
    fn scaled(&self, x: &[T], a: &[f32], b: &[f32], y: &mut [T]) {
        let c = a.len();
        for_rows(y, c, c, |range, y| {
            for (i, y) in range.zip(y.chunks_exact_mut(c)) {
                for (((y, x), a), b) in y.iter_mut().zip(&x[i * c..]).zip(a).zip(b) {
                    *y = T::narrow(x.wide() * a + b);
                }
            }
        });
    }

    /// `finish` changes the result, which is laid out as the input.
    fn forward(&self, ctx: &mut Ctx<'_>, finish: impl FnOnce(&mut [T])) -> Result<()> {
        let x = ctx.input(0)?;
        ensure!(
            matches!(x.rank(), 4 | 5),
            InvalidArgument,
            "input must be 4 or 5-dimensional{}",
            x.shape()
        );
        let x = reordered(x, self.layout, true)?;
        let c = x.shape()[x.rank() - 1];
        let rows = x.elements().checked_div(c).unwrap_or(0);
        let scale = channel_vector(ctx, 1, "scale", "", c)?;
        let offset = channel_vector(ctx, 2, "offset", "", c)?;
        let given = !self.is_training || self.factor != 1.0;
        let when = if self.is_training {
            "When exponential_avg_factor != 1, "
        } else {
            "When is_training=false, "
        };
        let (old_mean, old_variance) = match given {
            true => (
                channel_vector(ctx, 3, "mean", when, c)?,
                channel_vector(ctx, 4, "variance", when, c)?,
            ),
            false => (&[][..], &[][..]),
        };
        let data = x.as_slice::<T>()?;
        let (mean, variance): (Vec<f32>, Vec<f32>) = match self.is_training {
            true => moments(data, rows, c),
            false => (old_mean.to_vec(), old_variance.to_vec()),
        };
        let a: Vec<f32> = variance
            .iter()
            .zip(scale)
            .map(|(v, s)| (*s as f64 / (*v as f64 + self.epsilon).sqrt()) as f32)
            .collect();
        let b: Vec<f32> = (0..c).map(|i| offset[i] - mean[i] * a[i]).collect();
        let mut y = ctx.alloc(T::DTYPE, x.shape().clone())?;
        if rows > 0 {
            self.scaled(data, &a, &b, y.as_mut_slice()?);
        }
        let (batch_mean, batch_variance) = if rows == 0 && self.is_training {
            (vec![f32::NAN; c], vec![f32::NAN; c])
        } else if self.is_training {
            // The variance output is the unbiased estimate.
            let unbiased = rows as f32 / (rows as f32 - 1.0).max(1.0);
            let variance: Vec<f32> = variance.iter().map(|v| v * unbiased).collect();
            let mix = |new: &[f32], old: &[f32]| -> Vec<f32> {
                let old = old.iter().copied().chain(std::iter::repeat(0.0));
                let pairs = new.iter().zip(old);
                pairs.map(|(new, old)| (1.0 - self.factor) * old + self.factor * new).collect()
            };
            (mix(&mean, old_mean), mix(&variance, old_variance))
        } else {
            (mean.clone(), variance.clone())
        };
        let outputs = [batch_mean, batch_variance, mean, variance];
        let mut y = reordered(&y, self.layout, false)?;
        finish(y.as_mut_slice()?);
        ctx.set(0, y)?;
        for (i, values) in outputs.iter().enumerate() {
            ctx.set(i + 1, Tensor::vector(values))?;
        }
        if ctx.num_outputs() == 6 {
            ctx.set(5, nothing(T::DTYPE == DType::Half)?)?;
        }
        Ok(())
    }

    fn backward(&self, ctx: &mut Ctx<'_>) -> Result<()> {
        let (dy, x) = gradient_and_input(ctx)?;
        let (x, dy) = (reordered(x, self.layout, true)?, reordered(dy, self.layout, true)?);
        let c = x.shape()[x.rank() - 1];
        let rows = x.elements().checked_div(c).unwrap_or(0);
        let scale = channel_vector(ctx, 2, "scale", "", c)?;
        let mean = channel_vector(ctx, 3, "saved mean", "", c)?;
        let variance = channel_vector(ctx, 4, "saved variance", "", c)?;
        let (xs, dys) = (x.as_slice::<T>()?, dy.as_slice::<T>()?);
        let sums = gradient_sums(xs, dys, mean, rows);
        let (sum_dy, sum_dy_x) = sums.split_at(c);
        let spread: Vec<f64> = variance.iter().map(|v| *v as f64 + self.epsilon).collect();
        // dx = p dy + q x + r for every channel.
        let mut factors = [vec![0f32; c], vec![0f32; c], vec![0f32; c]];
        for j in 0..c {
            let p = scale[j] as f64 / spread[j].sqrt();
            let n = rows.max(1) as f64;
            let q = if self.is_training { -p * sum_dy_x[j] / (n * spread[j]) } else { 0.0 };
            let r = if self.is_training { -p * sum_dy[j] / n - q * mean[j] as f64 } else { 0.0 };
            [factors[0][j], factors[1][j], factors[2][j]] = [p, q, r].map(|x| x as f32);
        }
        let mut dx = ctx.alloc(T::DTYPE, x.shape().clone())?;
        let [p, q, r] = &factors;
        for_rows(dx.as_mut_slice::<T>()?, c, 2 * c, |range, dx| {
            for (i, dx) in range.zip(dx.chunks_exact_mut(c)) {
                let (x, dy) = (&xs[i * c..][..c], &dys[i * c..][..c]);
                for j in 0..c {
                    dx[j] = T::narrow(p[j] * dy[j].wide() + q[j] * x[j].wide() + r[j]);
                }
            }
        });
        let d_scale: Vec<f32> = (0..c).map(|j| (sum_dy_x[j] / spread[j].sqrt()) as f32).collect();
        let d_offset: Vec<f32> = sum_dy.iter().map(|&x| x as f32).collect();
        ctx.set(0, reordered(&dx, self.layout, false)?)?;
        ctx.set(1, Tensor::vector(&d_scale))?;
        ctx.set(2, Tensor::vector(&d_offset))?;
        for i in [3, 4] {
            ctx.set(i, nothing(T::DTYPE != DType::Half)?)?;
        }
        Ok(())
    }
}

/// A reserved space without contents: TensorFlow's kernels output a scalar or an empty vector;
/// those for halves do the opposite.
fn nothing(is_scalar: bool) -> Result<Tensor> {
    if is_scalar { Ok(Tensor::scalar(0f32)) } else { Tensor::zeros(DType::Float, [0]) }
}

/// Mean and variance of every channel.
fn moments<T: Float<Wide = f32>>(x: &[T], rows: usize, c: usize) -> (Vec<f32>, Vec<f32>) {
    let n = rows.max(1) as f64;
    let row = |i: usize| x[i * c..(i + 1) * c].iter().map(|x| x.wide() as f64);
    let mut mean = column_sums(rows, c, |i, sums| {
        sums.iter_mut().zip(row(i)).for_each(|(sum, x)| *sum += x);
    });
    mean.iter_mut().for_each(|x| *x /= n);
    let mut variance = column_sums(rows, c, |i, sums| {
        for ((sum, x), mean) in sums.iter_mut().zip(row(i)).zip(&mean) {
            *sum += (x - mean) * (x - mean);
        }
    });
    variance.iter_mut().for_each(|x| *x /= n);
    let narrow = |x: Vec<f64>| x.into_iter().map(|x| x as f32).collect();
    (narrow(mean), narrow(variance))
}

/// For every channel the sum of `dy`, and then of `dy (x - mean)`.
fn gradient_sums<T: Float<Wide = f32>>(x: &[T], dy: &[T], mean: &[f32], rows: usize) -> Vec<f64> {
    let c = mean.len();
    column_sums(rows, 2 * c, |i, sums| {
        let (sum_dy, sum_dy_x) = sums.split_at_mut(c);
        let (x, dy) = (&x[i * c..][..c], &dy[i * c..][..c]);
        for j in 0..c {
            let g = dy[j].wide() as f64;
            sum_dy[j] += g;
            sum_dy_x[j] += g * (x[j].wide() - mean[j]) as f64;
        }
    })
}

impl<T: Float<Wide = f32>> Kernel for FusedBatchNorm<T> {
    fn compute(&self, ctx: &mut Ctx<'_>) -> Result<()> {
        if self.gradient { self.backward(ctx) } else { self.forward(ctx, |_| {}) }
    }
}

/// Batch normalization with what TensorFlow's optimizer fuses into it.
struct FusedBatchNormEx<T> {
    norm: FusedBatchNorm<T>,
    has_side_input: bool,
    relu: bool,
}

impl<T: Float<Wide = f32>> FusedBatchNormEx<T> {
    fn new(init: &KernelInit<'_>) -> Result<Self> {
        let relu = match init.string("activation_mode")?.as_str() {
            "Identity" => false,
            "Relu" => true,
            other => bail!(InvalidArgument, "Unsupported activation mode: {other}"),
        };
        let side_inputs = init.int("num_side_inputs")?;
        ensure!(
            (0..=1).contains(&side_inputs),
            InvalidArgument,
            "FusedBatchNorm accepts at most one side input."
        );
        let norm = FusedBatchNorm::new(init, false)?;
        ensure!(
            side_inputs == 0 || relu || !norm.is_training,
            InvalidArgument,
            "Identity activation is not supported with non-empty side input"
        );
        Ok(FusedBatchNormEx { norm, has_side_input: side_inputs == 1, relu })
    }
}

impl<T: Float<Wide = f32>> Kernel for FusedBatchNormEx<T> {
    fn compute(&self, ctx: &mut Ctx<'_>) -> Result<()> {
        let side = match self.has_side_input {
            true => Some(ctx.input(5)?.clone()),
            false => None,
        };
        if let Some(side) = &side {
            let x = ctx.input(0)?;
            ensure!(
                side.shape() == x.shape(),
                InvalidArgument,
                "side_input shape must be equal to input shape: {} != {}",
                side.shape(),
                x.shape()
            );
        }
        let relu = self.relu;
        let side = match &side {
            Some(side) => Some(side.as_slice::<T>()?),
            None => None,
        };
        self.norm.forward(ctx, |y| {
            for_rows(y, 1, 1, |range, y| {
                if let Some(side) = side {
                    let pairs = y.iter_mut().zip(&side[range]);
                    pairs.for_each(|(y, side)| *y = y.add(*side));
                }
                if relu {
                    y.iter_mut().for_each(|y| *y = y.max(T::ZERO));
                }
            });
        })
    }
}

/// The input's shape, then a vector of its channels for every other output.
fn forward_shape(c: &ShapeCtx<'_>) -> Result<Vec<PartialShape>> {
    let x = c.input(0);
    let channels = channels(c, &x)?;
    let mut shapes = vec![PartialShape::new([channels]); 5];
    shapes[0] = x;
    if c.outputs == 6 {
        shapes.push(PartialShape::unknown());
    }
    Ok(shapes)
}

fn backward_shape(c: &ShapeCtx<'_>) -> Result<Vec<PartialShape>> {
    let x = c.input(0).merge(&c.input(1))?;
    let channels = PartialShape::new([channels(c, &x)?]);
    let reserved = PartialShape::unknown();
    Ok(vec![x, channels.clone(), channels, reserved.clone(), reserved])
}

fn channels(c: &ShapeCtx<'_>, x: &PartialShape) -> Result<Option<usize>> {
    let layout = Layout::new(c.attrs)?;
    Ok(match x.rank() {
        Some(rank @ (4 | 5)) => x.dim(layout.channels(rank)),
        Some(rank) => bail!(InvalidArgument, "Shape must be rank 4 or 5 but is rank {rank}"),
        None => None,
    })
}

const EPSILON: &str = "epsilon: float = 9.999999747378752e-05";
const FORMAT: &str = "data_format: {'NHWC', 'NCHW'} = 'NHWC'";
const ANY_FORMAT: &str = "data_format: {'NHWC', 'NCHW', 'NDHWC', 'NCDHW'} = 'NHWC'";

/// The gradient of the gradient, from the formula of the latter.
fn second_gradient<'g>(g: &GradientScope<'g>, dy: &[Term<'g>]) -> Result<Vec<Term<'g>>> {
    let from = [0, 1, 2].map(|i| g.input(i).apply("Identity"));
    let scale = from[2];
    let [d, x_now] = [from[0], from[1]].map(|t| t.cast(scale.dtype()));
    let epsilon = f64::from(g.attrs().float("epsilon")?);
    let format = g.attrs().string("data_format")?;
    let channels_last = format.ends_with('C');
    let space = format.len() as i64 - 2;
    let axes: Vec<i64> = match channels_last {
        true => (0..=space).collect(),
        false => std::iter::once(0).chain(2..space + 2).collect(),
    };
    let axes = g.ints(&axes);
    // Vectors of channels, to go with tensors.
    let wide = |t: Term<'g>| match channels_last {
        true => t,
        false => (0..space).fold(t, |t, _| t.expand_dims(-1)),
    };
    let mean = |t: Term<'g>| g.call("Mean", &[t, axes]);
    let (dx, d_scale) = if g.attrs().bool("is_training")? {
        let center = mean(x_now);
        let off = x_now - wide(center);
        let variance = mean((x_now - wide(center.apply("StopGradient"))).square());
        let inverse = (variance + epsilon).apply("Rsqrt");
        let slope = mean(d * off) * (variance + epsilon).reciprocal();
        let dx = wide(scale * inverse) * (d - wide(mean(d)) - wide(slope) * off);
        (dx, inverse * (d * off).sum(axes, false))
    } else {
        let inverse = (g.input(4) + epsilon).apply("Rsqrt");
        let dx = d * wide(scale * inverse);
        (dx, (d * (x_now - wide(g.input(3))) * wide(inverse)).sum(axes, false))
    };
    let dx = dx.cast(g.input(1).dtype());
    let d_offset = d.sum(axes, false);
    let mut all = g.differentiate(&[dx, d_scale, d_offset], &[dy[0], dy[1], dy[2]], &from)?;
    all.resize(g.num_inputs(), g.none());
    Ok(all)
}

pub(crate) fn register(c: &mut Catalog) {
    macro_rules! forward {
        ($op:literal, $U:literal, [$($types:literal),*], $third:expr, $format:expr, $gpu:expr) => {{
            let op = c
                .op($op)
                .doc("Normalises channels by their mean and variance, then scales and shifts them.")
                .input("x: T")
                .input(concat!("scale: ", $U))
                .input(concat!("offset: ", $U))
                .input(concat!("mean: ", $U))
                .input(concat!("variance: ", $U))
                .output("y: T")
                .output(concat!("batch_mean: ", $U))
                .output(concat!("batch_variance: ", $U))
                .output(concat!("reserve_space_1: ", $U))
                .output(concat!("reserve_space_2: ", $U));
            let op = if $third { op.output("reserve_space_3: U") } else { op };
            op $(.attr($types))*
                .attr(EPSILON)
                .attr("exponential_avg_factor: float = 1.0")
                .attr($format)
                .attr("is_training: bool = true")
                .expensive()
                .shape(forward_shape)
                .gpu($gpu, |init| device::batch_norm(init, false))
                .cpu(per_dtype!(
                    [Half f16, BFloat16 bf16, Float f32],
                    init, T => FusedBatchNorm::<T>::new(init, false)?
                ));
        }};
    }
    forward!("FusedBatchNorm", "T", ["T: {float}"], false, FORMAT, device::ON_GPU);
    forward!(
        "FusedBatchNormV2",
        "U",
        ["T: {half, bfloat16, float}", "U: {float}"],
        false,
        FORMAT,
        device::ON_GPU_V2
    );
    forward!(
        "FusedBatchNormV3",
        "U",
        ["T: {half, bfloat16, float}", "U: {bfloat16, float}"],
        true,
        ANY_FORMAT,
        device::ON_GPU_V2
    );
    c.op("_FusedBatchNormEx")
        .doc("Batch normalisation, and then the sum with a tensor and Relu.")
        .input("x: T")
        .input("scale: U")
        .input("offset: U")
        .input("mean: U")
        .input("variance: U")
        .input("side_input: num_side_inputs * T")
        .output("y: T")
        .output("batch_mean: U")
        .output("batch_variance: U")
        .output("reserve_space_1: U")
        .output("reserve_space_2: U")
        .output("reserve_space_3: U")
        .attr("T: {half, float, bfloat16}")
        .attr("U: {float}")
        .attr(EPSILON)
        .attr("exponential_avg_factor: float = 1.0")
        .attr("num_side_inputs: int >= 0 = 0")
        .attr("activation_mode: string = 'Identity'")
        .attr(FORMAT)
        .attr("is_training: bool = true")
        .expensive()
        .shape(forward_shape)
        .cpu(per_dtype!(
            [Half f16, BFloat16 bf16, Float f32],
            init, T => FusedBatchNormEx::<T>::new(init)?
        ));
    macro_rules! backward {
        ($op:literal, $U:literal, $scale:literal, [$($types:literal),*], $outputs:expr, $format:expr, $gpu:expr) => {{
            let op = c
                .op($op)
                .doc("Gradient of batch normalisation.")
                .input("y_backprop: T")
                .input("x: T")
                .input($scale)
                .input(concat!("reserve_space_1: ", $U))
                .input(concat!("reserve_space_2: ", $U));
            let op = if $outputs[0] == "4" { op.input("reserve_space_3: U") } else { op };
            op.output("x_backprop: T")
                .output(concat!("scale_backprop: ", $U))
                .output(concat!("offset_backprop: ", $U))
                .output(&format!("reserve_space_{}: {}", $outputs[0], $U))
                .output(&format!("reserve_space_{}: {}", $outputs[1], $U))
                $(.attr($types))*
                .attr(EPSILON)
                .attr($format)
                .attr("is_training: bool = true")
                .expensive()
                .shape(backward_shape)
                .gpu($gpu, |init| device::batch_norm(init, true))
                .cpu(per_dtype!(
                    [Half f16, BFloat16 bf16, Float f32],
                    init, T => FusedBatchNorm::<T>::new(init, true)?
                ));
        }};
    }
    backward!(
        "FusedBatchNormGrad",
        "T",
        "scale: T",
        ["T: {float}"],
        ["3", "4"],
        FORMAT,
        device::ON_GPU
    );
    backward!(
        "FusedBatchNormGradV2",
        "U",
        "scale: float",
        ["T: {half, bfloat16, float}", "U: {float}"],
        ["3", "4"],
        FORMAT,
        device::ON_GPU_V2
    );
    backward!(
        "FusedBatchNormGradV3",
        "U",
        "scale: float",
        ["T: {half, bfloat16, float}", "U: {float}"],
        ["4", "5"],
        ANY_FORMAT,
        device::ON_GPU_V2
    );
    for (op, back) in [
        ("FusedBatchNorm", "FusedBatchNormGrad"),
        ("FusedBatchNormV2", "FusedBatchNormGradV2"),
        ("FusedBatchNormV3", "FusedBatchNormGradV3"),
    ] {
        c.gradient(op, move |g, dy| {
            let saved = match g.attrs().bool("is_training")? {
                true => [g.output(3), g.output(4)],
                false => [g.input(3), g.input(4)],
            };
            let mut inputs = vec![dy[0], g.input(0), g.input(1), saved[0], saved[1]];
            if op == "FusedBatchNormV3" {
                inputs.push(g.output(5));
            }
            let found = g.calls_like(back, &inputs);
            Ok(vec![found[0], found[1], found[2], g.none(), g.none()])
        });
        c.gradient(back, second_gradient);
    }
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::testing::{Check, check};
    use ferroflow_testing::assert_close;

    fn image(values: &[f32]) -> Tensor {
        Tensor::from_slice([1, 2, 3, 2], values).unwrap()
    }

    fn counted() -> Tensor {
        image(&(0..12).map(|i| i as f32).collect::<Vec<_>>())
    }

    fn v(values: &[f32]) -> Tensor {
        Tensor::vector(values)
    }

    fn norm(op: &str, x: Tensor, mean: &[f32], variance: &[f32]) -> Check<'static> {
        let op = check(op).input(x).input(v(&[1.0, 2.0])).input(v(&[0.5, 0.0]));
        op.input(v(mean)).input(v(variance))
    }

    const NORMAL: [f32; 12] = [
        -0.9638438,
        -2.9276876,
        -0.37830633,
        -1.7566127,
        0.20723122,
        -0.58553755,
        0.7927688,
        0.58553755,
        1.3783064,
        1.7566127,
        1.9638438,
        2.9276876,
    ];

    #[test]
    fn batches_are_normalised_by_their_own_moments() {
        let got = norm("FusedBatchNormV3", counted(), &[], &[]).run().unwrap();
        assert_close(&got[0], &image(&NORMAL), 1e-5, 1e-5);
        let moments = [[5.0, 6.0], [14.0, 14.0], [5.0, 6.0], [11.666667, 11.666667]];
        for (got, want) in got[1..5].iter().zip(moments) {
            assert_close(got, &v(&want), 1e-6, 1e-6);
        }
        let mixed = norm("FusedBatchNorm", counted(), &[1.0, 2.0], &[2.0, 3.0]);
        let got = mixed.attr("exponential_avg_factor", 0.5f32).run().unwrap();
        assert_close(&got[1], &v(&[3.0, 4.0]), 1e-6, 1e-6);
        assert_close(&got[2], &v(&[8.0, 8.5]), 1e-6, 1e-6);
        let first = Tensor::from_slice([1, 2, 1, 1], &[3f32, 4.0]).unwrap();
        let got = norm("FusedBatchNormV3", first, &[], &[]).attr("data_format", "NCHW");
        let got = got.run().unwrap();
        assert_eq!(got[0].as_slice::<f32>().unwrap(), [0.5, 0.0]);
        let none = Tensor::zeros(DType::Float, [0, 2, 2, 2]).unwrap();
        let got = norm("FusedBatchNormV2", none, &[], &[]).run().unwrap();
        assert!(got[1].as_slice::<f32>().unwrap()[0].is_nan());
    }

    #[test]
    fn a_sum_and_relu_follow_in_the_same_op() {
        let plain = norm("FusedBatchNormV3", counted(), &[1.0, 2.0], &[2.0, 3.0]);
        let plain = plain.attr("is_training", false).run().unwrap().remove(0);
        let want: Vec<f32> = (plain.as_slice::<f32>().unwrap().iter())
            .zip(counted().as_slice::<f32>().unwrap())
            .map(|(y, side)| (y - side).max(0.0))
            .collect();
        let side: Vec<f32> = counted().as_slice::<f32>().unwrap().iter().map(|x| -x).collect();
        let got = norm("_FusedBatchNormEx", counted(), &[1.0, 2.0], &[2.0, 3.0])
            .attr("is_training", false)
            .attr("num_side_inputs", 1i64)
            .attr("activation_mode", "Relu")
            .input(image(&side))
            .run()
            .unwrap();
        assert_close(&got[0], &image(&want), 1e-5, 1e-5);
    }

    #[test]
    fn inference_uses_given_moments() {
        let op = norm("FusedBatchNormV3", counted(), &[1.0, 2.0], &[2.0, 3.0]);
        let got = op.attr("is_training", false).run().unwrap();
        let y = got[0].as_slice::<f32>().unwrap();
        assert!((y[0] + 0.20708913).abs() < 1e-5 && (y[11] - 10.392132).abs() < 1e-4);
        let op = norm("FusedBatchNormV3", counted(), &[1.0], &[2.0, 3.0]);
        let text = "When is_training=false, mean must have the same number of elements as the \
                    channels of x, got 1 and 2";
        op.attr("is_training", false).fails(Code::InvalidArgument, text);
    }

    #[test]
    fn gradients_of_training_and_inference() {
        let squares = image(&(0..12).map(|i| (i * i) as f32).collect::<Vec<_>>());
        let grad = |is_training: bool| {
            let op = check("FusedBatchNormGradV3").input(squares.clone()).input(counted());
            let op = op.input(v(&[1.0, 2.0])).input(v(&[5.0, 6.0])).input(v(&[2.0, 3.0]));
            op.input(v(&[])).attr("is_training", is_training).run().unwrap()
        };
        let got = grad(true);
        let want = [
            180.29742, 215.53154, 100.63617, 117.00231, 26.631628, 27.710554, -41.716198,
            -52.343758, -104.40732, -123.16062, -161.44173, -184.74005,
        ];
        assert_close(&got[0], &image(&want), 1e-4, 1e-3);
        assert_close(&got[1], &v(&[494.96237, 484.9662]), 1e-5, 1e-5);
        assert_close(&got[2], &v(&[220.0, 286.0]), 1e-5, 1e-5);
        let got = grad(false);
        assert_close(&got[1], &v(&[494.96237, 484.9662]), 1e-5, 1e-5);
        let dx = got[0].as_slice::<f32>().unwrap();
        assert!((dx[1] - 1.1546813).abs() < 1e-5 && (dx[10] - 70.708916).abs() < 1e-3);
    }
}
