//! FFT, IFFT and their forms over two and three dimensions.

use super::plan::{Part, Plans};
use crate::prelude::*;
use rustfft::FftDirection;
use rustfft::num_complex::Complex;

struct Fft<P: Part> {
    dims: usize,
    direction: FftDirection,
    plans: Plans<P>,
}

impl<P: Part> Kernel for Fft<P>
where
    Complex<P>: Num,
{
    fn compute(&self, ctx: &mut Ctx<'_>) -> Result<()> {
        let shape = ctx.input(0)?.shape().clone();
        let Some(first) = shape.rank().checked_sub(self.dims) else {
            bail!(
                InvalidArgument,
                "Input must have rank of at least {} but got: {shape}",
                self.dims
            );
        };
        let mut y = ctx.take_or_copy(0)?;
        let x = y.as_mut_slice::<Complex<P>>()?;
        if x.is_empty() {
            return ctx.set(0, y);
        }
        for d in first..shape.rank() {
            let inner = shape[d + 1..].iter().product();
            self.plans.along(x, shape[d], inner, self.direction);
        }
        if self.direction == FftDirection::Inverse {
            let count: usize = shape[first..].iter().product();
            let scale = <P as Num>::ONE / <P as Num>::from_i64(count as i64);
            x.iter_mut().for_each(|z| *z = Complex::new(z.re * scale, z.im * scale));
        }
        ctx.set(0, y)
    }
}

fn kernel(dims: usize, direction: FftDirection) -> impl Fn(&KernelInit<'_>) -> Result<KernelBox> {
    move |init| {
        Ok(match init.dtype("Tcomplex")? {
            DType::Complex64 => KernelBox::new(Fft::<f32> { dims, direction, plans: Plans::new() }),
            DType::Complex128 => {
                KernelBox::new(Fft::<f64> { dims, direction, plans: Plans::new() })
            }
            other => return Err(unsupported(init, "Tcomplex", other)),
        })
    }
}

/// The shape of the input. It must have at least `dims` dimensions.
fn shape_of(dims: usize) -> impl Fn(&ShapeCtx<'_>) -> Result<Vec<PartialShape>> {
    move |c| {
        let input = c.input(0);
        if let Some(rank) = input.rank() {
            ensure!(
                rank >= dims,
                InvalidArgument,
                "Shape must be at least rank {dims} but is rank {rank}"
            );
        }
        Ok(vec![input])
    }
}

/// The number of elements that one transform covers: those of the last dimensions.
pub(crate) fn transformed_size<'g>(g: &GradientScope<'g>, x: Term<'g>, dims: i64) -> Term<'g> {
    let attrs = Attrs::new().with("end_mask", 1i64);
    let ends = [x.shape(), g.ints(&[-dims]), g.ints(&[0]), g.ints(&[1])];
    let lengths = g.call_with("StridedSlice", &ends, attrs);
    g.call("Prod", &[lengths, g.ints(&[0])])
}

pub(crate) fn register(c: &mut Catalog) {
    let table = [
        ("FFT", "Fourier transform along the last dimension.", 1, FftDirection::Forward),
        ("FFT2D", "Fourier transform of the last two dimensions.", 2, FftDirection::Forward),
        ("FFT3D", "Fourier transform of the last three dimensions.", 3, FftDirection::Forward),
        ("IFFT", "Inverse Fourier transform along the last dimension.", 1, FftDirection::Inverse),
        ("IFFT2D", "Inverse of the transform of two dimensions.", 2, FftDirection::Inverse),
        ("IFFT3D", "Inverse of the transform of three dimensions.", 3, FftDirection::Inverse),
    ];
    for (op, doc, dims, direction) in table {
        c.op(op)
            .doc(doc)
            .input("input: Tcomplex")
            .output("output: Tcomplex")
            .attr("Tcomplex: {complex64, complex128} = DT_COMPLEX64")
            .expensive()
            .shape(shape_of(dims))
            .cpu(kernel(dims, direction));
    }
    for (dims, forward, inverse) in
        [(1, "FFT", "IFFT"), (2, "FFT2D", "IFFT2D"), (3, "FFT3D", "IFFT3D")]
    {
        c.gradient(forward, move |g, dy| {
            let size = transformed_size(g, dy[0], dims).cast(dy[0].dtype());
            Ok(vec![g.call(inverse, &[dy[0]]) * size])
        });
        c.gradient(inverse, move |g, dy| {
            let size = transformed_size(g, dy[0], dims).cast(dy[0].dtype());
            Ok(vec![g.call(forward, &[dy[0]]) / size])
        });
    }
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::testing::check;
    use ferroflow_testing::assert_close;

    /// Transforms by the definition, over the last `dims` dimensions of one batch.
    fn plainly(x: &[Complex64], dims: &[usize]) -> Vec<Complex64> {
        let strides = Shape::from(dims).strides();
        let at = |i: usize, d: usize| (i / strides[d] % dims[d]) as f64;
        (0..x.len())
            .map(|k| {
                let term = |(i, x): (usize, &Complex64)| {
                    let turns: f64 =
                        (0..dims.len()).map(|d| at(i, d) * at(k, d) / dims[d] as f64).sum();
                    x * Complex64::from_polar(1.0, -2.0 * std::f64::consts::PI * turns)
                };
                x.iter().enumerate().map(term).sum()
            })
            .collect()
    }

    #[test]
    fn transforms_agree_with_the_definition_and_invert() {
        for (suffix, dims) in [("", vec![7]), ("2D", vec![4, 5]), ("3D", vec![2, 3, 20])] {
            let n: usize = dims.iter().product();
            let x: Vec<Complex64> =
                (0..n).map(|i| Complex64::new((i * 7 % 5) as f64, (i % 3) as f64)).collect();
            let (x, want) = (
                Tensor::from_slice(dims.as_slice(), &x).unwrap(),
                Tensor::from_slice(dims.as_slice(), &plainly(&x, &dims)).unwrap(),
            );
            let y = check(&format!("FFT{suffix}")).input(x.clone()).run().unwrap().remove(0);
            assert_close(&y, &want, 1e-9, 1e-9);
            let back = check(&format!("IFFT{suffix}")).input(y).run().unwrap().remove(0);
            assert_close(&back, &x, 1e-9, 1e-9);
        }
    }

    #[test]
    fn batches_and_nothing() {
        let z = |re: f32, im: f32| Complex32::new(re, im);
        let x = Tensor::from_slice([2, 2], &[z(1., 0.), z(2., 0.), z(0., 1.), z(0., 3.)]).unwrap();
        let want = [z(3., 0.), z(-1., 0.), z(0., 4.), z(0., -2.)];
        check("FFT").input(x).gives(Tensor::from_slice([2, 2], &want).unwrap());
        let empty = Tensor::zeros(DType::Complex64, [2, 0]).unwrap();
        check("FFT2D").input(empty.clone()).gives(empty);
        let text = "Input must have rank of at least 2 but got: [1]";
        let x = Tensor::vector(&[z(1., 0.)]);
        check("FFT2D").input(x).fails(Code::InvalidArgument, text);
    }
}
