//! BatchNormWithGlobalNormalization and its gradient, the predecessors of FusedBatchNorm.

use crate::prelude::*;

struct Norm<T> {
    epsilon: f64,
    scale: bool,
    marker: std::marker::PhantomData<T>,
}

impl<T: Float> Norm<T> {
    fn new(init: &KernelInit<'_>) -> Result<Norm<T>> {
        let (epsilon, scale) =
            (init.float("variance_epsilon")?, init.bool("scale_after_normalization")?);
        Ok(Norm { epsilon: f64::from(epsilon), scale, marker: std::marker::PhantomData })
    }

    /// Vectors of as many elements as the images in input 0 have channels, in double precision.
    fn vectors(&self, ctx: &Ctx<'_>, names: &[(usize, &str)]) -> Result<Vec<Vec<f64>>> {
        let x = ctx.input(0)?;
        ensure!(x.rank() == 4, InvalidArgument, "input must be 4-dimensional{}", x.shape());
        let read = |&(i, name): &(usize, &str)| {
            let t = ctx.input(i)?;
            ensure!(t.rank() == 1, InvalidArgument, "{name} must be 1-dimensional{}", t.shape());
            ensure!(
                t.elements() == x.shape()[3],
                InvalidArgument,
                "{name} must have {} elements, got {}",
                x.shape()[3],
                t.elements()
            );
            Ok(t.as_slice::<T>()?.iter().map(|x| x.to_f64()).collect())
        };
        names.iter().map(read).collect()
    }
}

struct Forward<T>(Norm<T>);

impl<T: Float> Kernel for Forward<T> {
    fn compute(&self, ctx: &mut Ctx<'_>) -> Result<()> {
        let names = [(1, "mean"), (2, "var"), (3, "beta"), (4, "gamma")];
        let v = self.0.vectors(ctx, &names)?;
        let lines: Vec<(f64, f64)> = (0..v[0].len())
            .map(|c| {
                let gamma = if self.0.scale { v[3][c] } else { 1.0 };
                let scale = gamma / (v[1][c] + self.0.epsilon).sqrt();
                (scale, v[2][c] - v[0][c] * scale)
            })
            .collect();
        let mut out = ctx.take_or_copy(0)?;
        for (x, (scale, offset)) in out.as_mut_slice::<T>()?.iter_mut().zip(lines.iter().cycle()) {
            *x = T::from_f64(x.to_f64() * scale + offset);
        }
        ctx.set(0, out)
    }
}

struct Backward<T>(Norm<T>);

impl<T: Float> Kernel for Backward<T> {
    fn compute(&self, ctx: &mut Ctx<'_>) -> Result<()> {
        let v = self.0.vectors(ctx, &[(1, "mean"), (2, "var"), (3, "gamma")])?;
        let (x, dy) = (ctx.input(0)?, ctx.input(4)?);
        ensure!(
            dy.shape() == x.shape(),
            InvalidArgument,
            "backprop must have the shape of the input, {}, got {}",
            x.shape(),
            dy.shape()
        );
        let n = v[0].len();
        let root: Vec<f64> = v[1].iter().map(|var| 1.0 / (var + self.0.epsilon).sqrt()).collect();
        let gamma = |c: usize| if self.0.scale { v[2][c] } else { 1.0 };
        let (mut sums, mut tilts) = (vec![0f64; n], vec![0f64; n]);
        let mut dx = ctx.alloc(T::DTYPE, x.shape().clone())?;
        let pairs = x.as_slice::<T>()?.iter().zip(dy.as_slice::<T>()?);
        for ((i, to), (x, dy)) in dx.as_mut_slice::<T>()?.iter_mut().enumerate().zip(pairs) {
            let (c, dy) = (i % n, dy.to_f64());
            sums[c] += dy;
            tilts[c] += dy * (x.to_f64() - v[0][c]);
            *to = T::from_f64(dy * gamma(c) * root[c]);
        }
        let vector = |f: &dyn Fn(usize) -> f64| -> Tensor {
            Tensor::vector(&(0..n).map(|c| T::from_f64(f(c))).collect::<Vec<T>>())
        };
        let dm = vector(&|c| -sums[c] * gamma(c) * root[c]);
        let dv = vector(&|c| -0.5 * tilts[c] * gamma(c) * root[c].powi(3));
        let db = vector(&|c| sums[c]);
        let dg = vector(&|c| if self.0.scale { tilts[c] * root[c] } else { 0.0 });
        for (i, t) in [dx, dm, dv, db, dg].into_iter().enumerate() {
            ctx.set(i, t)?;
        }
        Ok(())
    }
}

/// The attributes of a normalization.
const NORM_ATTRS: [&str; 3] =
    ["T: numbertype", "variance_epsilon: float", "scale_after_normalization: bool"];

pub(crate) fn register(c: &mut Catalog) {
    c.op("BatchNormWithGlobalNormalization")
        .doc("Images normalised by given means and variances of their channels.")
        .input("t: T")
        .input("m: T")
        .input("v: T")
        .input("beta: T")
        .input("gamma: T")
        .output("result: T")
        .attrs(&NORM_ATTRS)
        .shape(shape::same_as_input)
        .cpu(per_dtype!([Half f16, Float f32, Double f64], init, T => Forward(Norm::<T>::new(init)?)));
    c.op("BatchNormWithGlobalNormalizationGrad")
        .doc("Gradient of BatchNormWithGlobalNormalization.")
        .input("t: T")
        .input("m: T")
        .input("v: T")
        .input("gamma: T")
        .input("backprop: T")
        .output("dx: T")
        .output("dm: T")
        .output("dv: T")
        .output("db: T")
        .output("dg: T")
        .attrs(&NORM_ATTRS)
        .shape(|c| {
            let vector = c.input(1);
            let mut shapes = vec![c.input(0)];
            shapes.extend(vec![vector; 4]);
            Ok(shapes)
        })
        .cpu(per_dtype!([Half f16, Float f32, Double f64], init, T => {
            Backward(Norm::<T>::new(init)?)
        }));
    c.gradient("BatchNormWithGlobalNormalization", |g, dy| {
        let inputs = [g.input(0), g.input(1), g.input(2), g.input(4), dy[0]];
        Ok(g.calls_like("BatchNormWithGlobalNormalizationGrad", &inputs))
    });
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::testing::{Check, check};

    fn images(op: &str) -> Check<'static> {
        let op = check(op).attr("variance_epsilon", 0.0f32).attr("scale_after_normalization", true);
        op.input(Tensor::from_slice([1, 1, 2, 2], &[1f32, 2.0, 5.0, 8.0]).unwrap())
            .input(Tensor::vector(&[3f32, 4.0]))
            .input(Tensor::vector(&[4f32, 16.0]))
    }

    #[test]
    fn images_are_normalised_and_gradients_follow() {
        let op = images("BatchNormWithGlobalNormalization");
        let op = op.input(Tensor::vector(&[1f32, 0.0])).input(Tensor::vector(&[1f32, 2.0]));
        let want = [0.0, -1.0, 2.0, 2.0];
        op.gives(Tensor::from_slice([1, 1, 2, 2], &want.map(|x: f32| x)).unwrap());
        let op = images("BatchNormWithGlobalNormalizationGrad").input(Tensor::vector(&[1f32, 2.0]));
        let dy = Tensor::from_slice([1, 1, 2, 2], &[1f32, 1.0, 2.0, 1.0]).unwrap();
        let got = op.input(dy).run().unwrap();
        // One over the deviation is 1/2 and 1/4; distances from the mean are -2, 2 and -2, 4.
        assert_eq!(got[0].as_slice::<f32>().unwrap(), [0.5, 0.5, 1.0, 0.5]);
        assert_eq!(got[1].as_slice::<f32>().unwrap(), [-1.5, -1.0]);
        assert_eq!(got[2].as_slice::<f32>().unwrap(), [-0.125, -0.03125]);
        assert_eq!(got[3].as_slice::<f32>().unwrap(), [3.0, 2.0]);
        assert_eq!(got[4].as_slice::<f32>().unwrap(), [1.0, 0.5]);
    }
}
