//! LRN and LRNGrad: local response normalisation over channels.

use crate::prelude::*;
use ferroflow_op_kit::multiversion;
use ferroflow_op_kit::parallel::for_rows;
use ferroflow_ops_math::math::fast::Fast;

struct Lrn<T> {
    radius: usize,
    bias: f32,
    alpha: f32,
    beta: f32,
    gradient: bool,
    marker: std::marker::PhantomData<T>,
}

impl<T: Float<Wide = f32>> Lrn<T> {
    fn new(init: &KernelInit<'_>, gradient: bool) -> Result<Self> {
        let radius = init.int("depth_radius")?;
        let Ok(radius) = u32::try_from(radius) else {
            bail!(InvalidArgument, "depth_radius = {radius} is not in the range of int32");
        };
        Ok(Lrn {
            radius: radius as usize,
            bias: init.float("bias")?,
            alpha: init.float("alpha")?,
            beta: init.float("beta")?,
            gradient,
            marker: std::marker::PhantomData,
        })
    }

    fn forward(&self, x: &[T], depth: usize, y: &mut [T]) {
        for_rows(y, depth, depth * (2 * self.radius.min(depth) + 40), |range, y| {
            let zeros = || vec![0.0; depth];
            let (mut pixel, mut squares, mut norms, mut out) = (zeros(), zeros(), zeros(), zeros());
            for (i, y) in range.zip(y.chunks_exact_mut(depth)) {
                widen(&x[i * depth..], &mut pixel);
                squares.iter_mut().zip(&pixel).for_each(|(to, x)| *to = x * x);
                near_sums(self.radius, &squares, &mut norms);
                scale(self.bias, self.alpha, &mut norms);
                power(-self.beta, &norms, &mut out);
                for ((y, x), factor) in y.iter_mut().zip(&pixel).zip(&out) {
                    *y = T::narrow(x * factor);
                }
            }
        });
    }

    fn backward(&self, dy: &[T], x: &[T], y: &[T], depth: usize, dx: &mut [T]) {
        for_rows(dx, depth, depth * (4 * self.radius.min(depth) + 60), |range, dx| {
            let zeros = || vec![0.0; depth];
            let (mut pixel, mut norms, mut grads, mut ratio) = (zeros(), zeros(), zeros(), zeros());
            let (mut squares, mut sums, mut powers) = (zeros(), zeros(), zeros());
            let shared = -2.0 * self.alpha * self.beta;
            for (i, dx) in range.zip(dx.chunks_exact_mut(depth)) {
                widen(&x[i * depth..], &mut pixel);
                widen(&dy[i * depth..], &mut grads);
                widen(&y[i * depth..], &mut ratio);
                squares.iter_mut().zip(&pixel).for_each(|(to, x)| *to = x * x);
                near_sums(self.radius, &squares, &mut norms);
                scale(self.bias, self.alpha, &mut norms);
                power(-self.beta, &norms, &mut powers);
                // Adds each output's gradient to all inputs of its window.
                for ((ratio, grad), norm) in ratio.iter_mut().zip(&grads).zip(&norms) {
                    *ratio *= grad / norm;
                }
                near_sums(self.radius, &ratio, &mut sums);
                for (j, dx) in dx.iter_mut().enumerate() {
                    *dx = T::narrow(grads[j] * powers[j] + shared * pixel[j] * sums[j]);
                }
            }
        });
    }
}

multiversion! {
    /// The sum of each element and of up to `radius` neighbours on both sides.
    fn near_sums[]<>(radius: usize, x: &[f32], sums: &mut [f32]) {
        let n = x.len().min(sums.len());
        let (x, sums) = (&x[..n], &mut sums[..n]);
        let radius = radius.min(n.saturating_sub(1));
        sums.fill(0.0);
        // Neighbours from left to right, each for all elements that have it.
        for back in (1..=radius).rev() {
            sums[back..].iter_mut().zip(x).for_each(|(sum, x)| *sum += x);
        }
        for ahead in 0..=radius.min(n) {
            sums.iter_mut().zip(&x[ahead..]).for_each(|(sum, x)| *sum += x);
        }
    }
}

fn scale(bias: f32, alpha: f32, norms: &mut [f32]) {
    norms.iter_mut().for_each(|norm| *norm = bias + alpha * *norm);
}

multiversion! {
    /// Powers of positive numbers. The usual exponents need no logarithm.
    wide(true)
    fn power[]<>(exponent: f32, x: &[f32], out: &mut [f32]) {
        let all = out.iter_mut().zip(x);
        if exponent == -0.75 {
            all.for_each(|(out, x)| *out = 1.0 / (x.sqrt() * x.sqrt().sqrt()));
        } else if exponent == -0.5 {
            all.for_each(|(out, x)| *out = 1.0 / x.sqrt());
        } else if exponent == -1.0 {
            all.for_each(|(out, x)| *out = 1.0 / x);
        } else {
            all.for_each(|(out, x)| *out = (exponent * x.fast_ln()).fast_exp());
        }
    }
}

fn widen<T: Float<Wide = f32>>(from: &[T], to: &mut [f32]) {
    to.iter_mut().zip(from).for_each(|(to, x)| *to = x.wide());
}

impl<T: Float<Wide = f32>> Kernel for Lrn<T> {
    fn compute(&self, ctx: &mut Ctx<'_>) -> Result<()> {
        let x = ctx.input(0)?;
        let what = if self.gradient { "input_grads" } else { "in" };
        ensure!(x.rank() == 4, InvalidArgument, "{what} must be 4-dimensional");
        let depth = x.shape()[3];
        let mut out = ctx.alloc(T::DTYPE, x.shape().clone())?;
        if self.gradient {
            let (image, y) = (ctx.input(1)?, ctx.input(2)?);
            ensure!(
                image.shape() == x.shape() && y.shape() == x.shape(),
                InvalidArgument,
                "input_grads, input_image, and out_image should have the same shape"
            );
            let (dy, image, y) = (x.as_slice()?, image.as_slice()?, y.as_slice()?);
            self.backward(dy, image, y, depth, out.as_mut_slice()?);
        } else {
            self.forward(x.as_slice()?, depth, out.as_mut_slice()?);
        }
        ctx.set(0, out)
    }
}

pub(crate) fn register(c: &mut Catalog) {
    c.op("LRN")
        .doc("Divides every element by a power of the squares of near channels.")
        .input("input: T")
        .output("output: T")
        .attr("depth_radius: int = 5")
        .attr("bias: float = 1.0")
        .attr("alpha: float = 1.0")
        .attr("beta: float = 0.5")
        .attr("T: {half, bfloat16, float} = DT_FLOAT")
        .expensive()
        .shape(shape::same_as_input)
        .cpu(per_dtype!(
            [Half f16, BFloat16 bf16, Float f32],
            init, T => Lrn::<T>::new(init, false)?
        ));
    c.op("LRNGrad")
        .doc("Gradient of LRN.")
        .input("input_grads: T")
        .input("input_image: T")
        .input("output_image: T")
        .output("output: T")
        .attr("depth_radius: int = 5")
        .attr("bias: float = 1.0")
        .attr("alpha: float = 1.0")
        .attr("beta: float = 0.5")
        .attr("T: {half, bfloat16, float} = DT_FLOAT")
        .expensive()
        .shape(shape::merged_inputs)
        .cpu(per_dtype!(
            [Half f16, BFloat16 bf16, Float f32],
            init, T => Lrn::<T>::new(init, true)?
        ));
    c.gradient("LRN", |g, dy| Ok(vec![g.call_like("LRNGrad", &[dy[0], g.input(0), g.output(0)])]));
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::testing::{Check, check};

    fn attrs(op: Check<'static>) -> Check<'static> {
        op.attr("depth_radius", 1).attr("alpha", 0.5f32).attr("beta", 0.75f32)
    }

    #[test]
    fn channels_are_normalised_and_gradients_follow() {
        let image = |values: &[f32]| Tensor::from_slice([1, 1, 3, 2], values).unwrap();
        let x = || image(&[0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
        let y = [0.0, 0.7377879, 0.44130012, 0.6619502, 0.40061864, 0.5007733];
        attrs(check("LRN").input(x())).gives(image(&y));
        let dy = image(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        let want = [0.73778796, 0.737788, -0.13239002, -0.30891013, -0.19798014, -0.27251378];
        let grad = check("LRNGrad").input(dy).input(x()).input(image(&y));
        attrs(grad).gives(image(&want));
    }

    #[test]
    fn images_have_four_dimensions() {
        let flat = check("LRN").input(Tensor::vector(&[1f32]));
        flat.fails(Code::InvalidArgument, "in must be 4-dimensional");
        let flat = check("LRN").input(Tensor::vector(&[1f32])).attr("depth_radius", -1);
        flat.fails(Code::InvalidArgument, "depth_radius");
    }
}
