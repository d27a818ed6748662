//! AvgPool and AvgPool3D, with their gradients.

use super::conv_ops::reordered;
use super::pool::device::average;
use super::pool::{Pool, PoolAttrs, pool_shape};
use crate::prelude::*;
use ferroflow_op_kit::gpu;
use ferroflow_op_kit::parallel::for_rows;

struct AvgPool<T> {
    attrs: PoolAttrs,
    gradient: bool,
    marker: std::marker::PhantomData<T>,
}

impl<T: Float> AvgPool<T> {
    fn new(init: &KernelInit<'_>, spatial: usize, gradient: bool) -> Result<Self> {
        let attrs = PoolAttrs::new(init.attrs, spatial)?;
        if let Some((window, strides)) = &attrs.window {
            let channel = attrs.layout.channels(spatial + 2);
            ensure!(
                window[channel] == 1 && strides[channel] == 1,
                Unimplemented,
                "Non-spatial pooling is not yet supported. Volunteers? :)"
            );
        }
        Ok(AvgPool { attrs, gradient, marker: std::marker::PhantomData })
    }

    fn forward(&self, pool: &Pool, x: &[T], y: &mut [T]) {
        let c = pool.channels;
        for_rows(y, c, pool.cost(), |range, y| {
            let mut sums = vec![<T::Wide as Num>::ZERO; c];
            for (at, y) in range.zip(y.chunks_exact_mut(c)) {
                let x = &x[at / pool.positions() * pool.pixels() * c..];
                sums.fill(<T::Wide as Num>::ZERO);
                let at = at % pool.positions();
                pool.pixels_at(at, |pixel| {
                    let x = &x[pixel * c..][..c];
                    sums.iter_mut().zip(x).for_each(|(sum, x)| *sum = sum.add(x.wide()));
                });
                let count = <T::Wide as Num>::from_i64(pool.count_at(at) as i64);
                y.iter_mut().zip(&sums).for_each(|(y, sum)| *y = T::narrow(sum.div(count)));
            }
        });
    }

    fn backward(&self, pool: &Pool, dy: &[T], dx: &mut [T]) {
        let (c, image) = (pool.channels, pool.pixels() * pool.channels);
        let positions = pool.positions();
        for_rows(dx, image, positions * pool.cost(), |images, dx| {
            let mut sums = vec![<T::Wide as Num>::ZERO; image];
            for (i, dx) in images.zip(dx.chunks_exact_mut(image)) {
                sums.fill(<T::Wide as Num>::ZERO);
                let dy = &dy[i * positions * c..(i + 1) * positions * c];
                for (at, dy) in dy.chunks_exact(c).enumerate() {
                    let count = <T::Wide as Num>::from_i64(pool.count_at(at) as i64);
                    pool.pixels_at(at, |pixel| {
                        let sums = &mut sums[pixel * c..][..c];
                        for (sum, dy) in sums.iter_mut().zip(dy) {
                            *sum = sum.add(dy.wide().div(count));
                        }
                    });
                }
                dx.iter_mut().zip(&sums).for_each(|(dx, sum)| *dx = T::narrow(*sum));
            }
        });
    }
}

impl<T: Float> Kernel for AvgPool<T> {
    fn compute(&self, ctx: &mut Ctx<'_>) -> Result<()> {
        let (layout, spatial) = (self.attrs.layout, self.attrs.spatial);
        let window = self.attrs.window(ctx, 0)?;
        if !self.gradient {
            let x = ctx.input(0)?;
            let pool = self.attrs.over(x.shape(), &window)?;
            let x = reordered(x, layout, true)?;
            let mut y = ctx.alloc(T::DTYPE, pool.output_shape(spatial))?;
            if y.elements() > 0 {
                self.forward(&pool, x.as_slice()?, y.as_mut_slice()?);
            }
            return ctx.set(0, reordered(&y, layout, false)?);
        }
        let (sizes, dy) = (ctx.input(0)?, ctx.input(1)?);
        ensure!(
            sizes.rank() == 1 && sizes.elements() == spatial + 2,
            InvalidArgument,
            "orig_input_shape must be 1-dimensional and {} elements",
            spatial + 2
        );
        let shape = sizes.to_shape()?;
        let pool = self.attrs.over(&shape, &window)?;
        let wanted = layout.stored(&pool.output_shape(spatial));
        ensure!(
            *dy.shape() == wanted,
            InvalidArgument,
            "Expected grad shape to be {wanted}, but got {}",
            dy.shape()
        );
        let dy = reordered(dy, layout, true)?;
        let mut dx = Tensor::zeros(T::DTYPE, layout.to_last(&shape))?;
        if dx.elements() > 0 && dy.elements() > 0 {
            self.backward(&pool, dy.as_slice()?, dx.as_mut_slice()?);
        }
        ctx.set(0, reordered(&dx, layout, false)?)
    }
}

/// The shape that input 0 holds.
fn gradient_shape(rank: usize) -> impl Fn(&ShapeCtx<'_>) -> Result<Vec<PartialShape>> {
    move |c| Ok(vec![c.shape_from(0).merge(&PartialShape::of_rank(rank))?])
}

pub(crate) fn register(c: &mut Catalog) {
    macro_rules! average {
        ($op:literal, $grad:literal, $input:literal, $dims:literal, $format:literal, $rank:literal) => {
            c.op($op)
                .doc("The mean of the elements under a sliding window.")
                .input($input)
                .output("output: T")
                .attr(concat!("ksize: list(int) >= ", $rank))
                .attr(concat!("strides: list(int) >= ", $rank))
                .attr("padding: {'SAME', 'VALID'}")
                .attr($format)
                .attr("T: {half, bfloat16, float, double}")
                .expensive()
                .shape(|c| pool_shape(c, $dims, 1))
                .gpu(gpu::FLOAT, |init| average(init, $dims, false))
                .cpu(per_dtype!(FLOAT, init, T => AvgPool::<T>::new(init, $dims, false)?));
            c.op($grad)
                .doc(concat!("Gradient of ", $op, "."))
                .input("orig_input_shape: int32")
                .input("grad: T")
                .output("output: T")
                .attr(concat!("ksize: list(int) >= ", $rank))
                .attr(concat!("strides: list(int) >= ", $rank))
                .attr("padding: {'SAME', 'VALID'}")
                .attr($format)
                .attr("T: {half, bfloat16, float, double}")
                .expensive()
                .shape(gradient_shape($rank))
                .gpu(gpu::FLOAT, |init| average(init, $dims, true))
                .host_inputs(&["orig_input_shape"])
                .cpu(per_dtype!(FLOAT, init, T => AvgPool::<T>::new(init, $dims, true)?));
        };
    }
    average!("AvgPool", "AvgPoolGrad", "value: T", 2, "data_format: {'NHWC', 'NCHW'} = 'NHWC'", 4);
    average!(
        "AvgPool3D",
        "AvgPool3DGrad",
        "input: T",
        3,
        "data_format: {'NDHWC', 'NCDHW'} = 'NDHWC'",
        5
    );
    for (op, back) in [("AvgPool", "AvgPoolGrad"), ("AvgPool3D", "AvgPool3DGrad")] {
        c.gradient(op, move |g, dy| Ok(vec![g.call_like(back, &[g.input(0).shape(), dy[0]])]));
        c.gradient(back, move |g, dy| Ok(vec![g.none(), g.call_like(op, &[dy[0]])]));
    }
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::testing::{Check, check};

    fn image(dims: &[usize], values: &[f32]) -> Tensor {
        Tensor::from_slice(dims, values).unwrap()
    }

    fn attrs(op: Check<'static>, dims: usize) -> Check<'static> {
        let mut window = vec![2; dims + 2];
        (window[0], window[dims + 1]) = (1, 1);
        op.attr("ksize", window.clone()).attr("strides", window).attr("padding", "SAME")
    }

    #[test]
    fn means_leave_padding_out() {
        let values: Vec<f32> = (0..27).map(|i| i as f32).collect();
        let x = image(&[1, 3, 3, 1], &values[..9]);
        attrs(check("AvgPool").input(x), 2).gives(image(&[1, 2, 2, 1], &[2.0, 3.5, 6.5, 8.0]));
        let x = image(&[1, 3, 3, 3, 1], &values);
        let want = [6.5, 8.0, 11.0, 12.5, 20.0, 21.5, 24.5, 26.0];
        attrs(check("AvgPool3D").input(x), 3).gives(image(&[1, 2, 2, 2, 1], &want));
    }

    #[test]
    fn gradients_are_shared_out() {
        let grad = |dy: [usize; 4]| {
            let op = check("AvgPoolGrad").input(Tensor::vector(&[1i32, 3, 3, 1]));
            attrs(op.input(image(&dy, &vec![1.0; dy.iter().product()])), 2)
        };
        let want = [0.25, 0.25, 0.5, 0.25, 0.25, 0.5, 0.5, 0.5, 1.0];
        grad([1, 2, 2, 1]).gives(image(&[1, 3, 3, 1], &want));
        let text = "Expected grad shape to be [1,2,2,1], but got [1,3,2,1]";
        grad([1, 3, 2, 1]).fails(Code::InvalidArgument, text);
    }

    #[test]
    fn channels_are_not_averaged() {
        let op = check("AvgPool").input(image(&[1, 1, 1, 2], &[1.0, 2.0]));
        let op = op.attr("ksize", vec![1, 1, 1, 2]).attr("strides", vec![1, 1, 1, 2]);
        let text = "Non-spatial pooling is not yet supported.";
        op.attr("padding", "VALID").fails(Code::Unimplemented, text);
    }
}
