//! QuantizedMaxPool and QuantizedAvgPool.

use super::pool::{Pool, PoolAttrs, pool_shape};
use crate::prelude::*;

struct QuantizedPool<T> {
    attrs: PoolAttrs,
    average: bool,
    marker: std::marker::PhantomData<T>,
}

impl<T: Real + Into<i64>> QuantizedPool<T> {
    fn new(init: &KernelInit<'_>, average: bool) -> Result<QuantizedPool<T>> {
        let attrs = PoolAttrs::new(init.attrs, 2)?;
        Ok(QuantizedPool { attrs, average, marker: std::marker::PhantomData })
    }

    /// The value of each window for one channel: the largest element, or the mean rounded half to
    /// even.
    fn value(&self, pool: &Pool, x: &[T], position: usize, channel: usize) -> T {
        let (mut sum, mut largest) = (0i64, None);
        pool.pixels_at(position, |pixel| {
            let x = x[pixel * pool.channels + channel];
            sum += x.into();
            largest = Some(largest.map_or(x, |best| Real::max(best, x)));
        });
        match self.average {
            true => {
                let mean = sum as f64 / Ord::max(pool.count_at(position), 1) as f64;
                T::from_i64(mean.round_ties_even() as i64)
            }
            false => largest.unwrap_or(T::ZERO),
        }
    }
}

impl<T: Real + Into<i64>> Kernel for QuantizedPool<T> {
    fn compute(&self, ctx: &mut Ctx<'_>) -> Result<()> {
        let (x, window) = (ctx.input(0)?, self.attrs.window(ctx, 0)?);
        let range = |i: usize, name: &str| -> Result<Tensor> {
            let t = ctx.input(i)?;
            ensure!(
                t.elements() == 1,
                InvalidArgument,
                "{name} must be a scalar, got shape {}",
                t.shape()
            );
            t.reshape(Shape::scalar())
        };
        let (min, max) = (range(1, "min_input")?, range(2, "max_input")?);
        let pool = self.attrs.over(x.shape(), &window)?;
        ensure!(
            pool.depth_window == 1,
            Unimplemented,
            "Non-spatial pooling is not yet supported. Volunteers? :)"
        );
        let mut out = ctx.alloc(x.dtype(), pool.output_shape(2))?;
        let (positions, image) = (pool.positions(), pool.pixels() * pool.channels);
        let data = x.as_slice::<T>()?;
        for (i, out) in out.as_mut_slice::<T>()?.iter_mut().enumerate() {
            let (at, channel) = (i / pool.channels, i % pool.channels);
            let data = &data[at / positions * image..][..image];
            *out = self.value(&pool, data, at % positions, channel);
        }
        ctx.set(0, out)?;
        ctx.set(1, min)?;
        ctx.set(2, max)
    }
}

pub(crate) fn register(c: &mut Catalog) {
    for (op, average, doc) in [
        ("QuantizedMaxPool", false, "The largest of the quantised elements under a window."),
        ("QuantizedAvgPool", true, "The mean of the quantised elements under a window."),
    ] {
        c.op(op)
            .doc(doc)
            .input("input: T")
            .input("min_input: float")
            .input("max_input: float")
            .output("output: T")
            .output("min_output: float")
            .output("max_output: float")
            .attr("T: quantizedtype")
            .attr("ksize: list(int)")
            .attr("strides: list(int)")
            .attr("padding: {'SAME', 'VALID'}")
            .shape(|c| {
                let mut shapes = pool_shape(c, 2, 1)?;
                shapes[1..].fill(PartialShape::scalar());
                Ok(shapes)
            })
            .cpu(move |init| {
                per_dtype!([QUInt8 u8, QInt8 i8], init, T => {
                    QuantizedPool::<T>::new(init, average)?
                })(init)
            });
    }
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::testing::check;

    #[test]
    fn means_are_rounded_to_even_halfway() {
        let means = |x: [i8; 4]| {
            let image = Tensor::from_slice([1, 1, 4, 1], &x).unwrap();
            let got = check("QuantizedAvgPool")
                .attr("ksize", vec![1i64, 1, 2, 1])
                .attr("strides", vec![1i64, 1, 1, 1])
                .attr("padding", "VALID")
                .input(image.with_dtype(DType::QInt8).unwrap())
                .input(Tensor::scalar(-1f32))
                .input(Tensor::scalar(1f32))
                .run()
                .unwrap();
            got[0].as_slice::<i8>().unwrap().to_vec()
        };
        assert_eq!(means([1, 2, 3, 5]), [2, 2, 4]);
        assert_eq!(means([-1, -2, -3, -128]), [-2, -2, -66]);
    }
}
