//! RFFT, IRFFT and their forms over two and three dimensions: real signals, of which only half of
//! the spectrum is kept.

use super::complex::transformed_size;
use super::plan::{Part, Plans};
use crate::prelude::*;
use rustfft::FftDirection;
use rustfft::num_complex::Complex;

struct RealFft<P: Part> {
    dims: usize,
    direction: FftDirection,
    plans: Plans<P>,
}

impl<P: Part> Kernel for RealFft<P>
where
    Complex<P>: Num,
{
    fn compute(&self, ctx: &mut Ctx<'_>) -> Result<()> {
        let (x, lengths) = (ctx.input(0)?, ctx.input(1)?);
        let Some(first) = x.rank().checked_sub(self.dims) else {
            bail!(
                InvalidArgument,
                "Input must have rank of at least {} but got: {}",
                self.dims,
                x.shape()
            );
        };
        ensure!(
            lengths.rank() == 1 && lengths.elements() == self.dims,
            InvalidArgument,
            "fft_length must have shape [{}]",
            self.dims
        );
        let mut n = Vec::with_capacity(self.dims);
        for (i, length) in lengths.to_indices()?.into_iter().enumerate() {
            ensure!(length >= 0, InvalidArgument, "fft_length[{i}] must >= 0, but got: {length}");
            ensure!(length > 0, InvalidArgument, "fft_length[{i}] must not be 0");
            n.push(length as usize);
        }
        let y = match self.direction {
            FftDirection::Forward => self.forward(x, first, &n)?,
            FftDirection::Inverse => self.inverse(x, first, &n)?,
        };
        ctx.set(0, y)
    }
}

/// Returns an error for inputs smaller than the transform needs.
fn check_size(x: &Tensor, first: usize, need: &[usize]) -> Result<()> {
    for (i, (&is, &need)) in x.shape()[first..].iter().zip(need).enumerate() {
        ensure!(
            is >= need,
            InvalidArgument,
            "Input dimension {} must have length of at least {need} but got: {is}",
            first + i
        );
    }
    Ok(())
}

/// The first element of row `i` of the last dimension of `dims`, in a tensor whose transformed
/// dimensions are `own`.
fn row_start(i: usize, dims: &[usize], own: &[usize]) -> usize {
    let (mut rest, mut at, mut stride) = (i, 0, own[own.len() - 1]);
    for d in (0..dims.len() - 1).rev() {
        at += rest % dims[d] * stride;
        rest /= dims[d];
        stride *= own[d];
    }
    at + rest * stride
}

impl<P: Part> RealFft<P>
where
    Complex<P>: Num,
{
    fn forward(&self, x: &Tensor, first: usize, n: &[usize]) -> Result<Tensor> {
        let own = &x.shape()[first..];
        let last = n[self.dims - 1];
        let mut half = n.to_vec();
        half[self.dims - 1] = last / 2 + 1;
        let shape: Vec<i64> = x.shape()[..first].iter().chain(&half).map(|&d| d as i64).collect();
        let shape = Shape::from_dims(&shape)?;
        if x.elements() == 0 {
            return Tensor::zeros(<Complex<P> as Element>::DTYPE, shape);
        }
        check_size(x, first, n)?;
        let mut y = Tensor::alloc(<Complex<P> as Element>::DTYPE, shape)?;
        let out = y.as_mut_slice::<Complex<P>>()?;
        let data = x.as_slice::<P>()?;
        self.plans.forward_rows(last, out, |i, row| {
            let at = row_start(i, n, own);
            row.copy_from_slice(&data[at..at + last]);
        });
        for d in 0..self.dims - 1 {
            let inner = half[d + 1..].iter().product();
            self.plans.along(out, n[d], inner, FftDirection::Forward);
        }
        Ok(y)
    }

    fn inverse(&self, x: &Tensor, first: usize, n: &[usize]) -> Result<Tensor> {
        let last = n[self.dims - 1];
        let mut half = n.to_vec();
        half[self.dims - 1] = last / 2 + 1;
        let batch = &x.shape()[..first];
        let shaped = |dims: &[usize]| {
            Shape::from_dims(&batch.iter().chain(dims).map(|&d| d as i64).collect::<Vec<_>>())
        };
        if x.elements() == 0 {
            return Tensor::zeros(P::DTYPE, shaped(n)?);
        }
        check_size(x, first, &half)?;
        let cropped = match self.dims {
            1 => x.clone(),
            _ => self.inverse_outer(x, shaped(&half)?, &half, first)?,
        };
        let own = &cropped.shape()[first..];
        let data = cropped.as_slice::<Complex<P>>()?;
        let mut y = Tensor::alloc(P::DTYPE, shaped(n)?)?;
        let out = y.as_mut_slice::<P>()?;
        self.plans.inverse_rows(last, out, |i, row| {
            let at = row_start(i, &half, own);
            row.copy_from_slice(&data[at..at + row.len()]);
        });
        let count: usize = n.iter().product();
        let scale = <P as Num>::ONE / <P as Num>::from_i64(count as i64);
        out.iter_mut().for_each(|x| *x = *x * scale);
        Ok(y)
    }

    /// The input cropped to `half`, transformed back along all dimensions but the last.
    fn inverse_outer(
        &self,
        x: &Tensor,
        shape: Shape,
        half: &[usize],
        first: usize,
    ) -> Result<Tensor> {
        let (own, data) = (&x.shape()[first..], x.as_slice::<Complex<P>>()?);
        let mut cropped = Tensor::alloc(x.dtype(), shape)?;
        let out = cropped.as_mut_slice::<Complex<P>>()?;
        let width = half[self.dims - 1];
        for (i, row) in out.chunks_exact_mut(width).enumerate() {
            row.copy_from_slice(&data[row_start(i, half, own)..][..width]);
        }
        for d in 0..self.dims - 1 {
            let inner = half[d + 1..].iter().product();
            self.plans.along(out, half[d], inner, FftDirection::Inverse);
        }
        Ok(cropped)
    }
}

fn kernel(dims: usize, direction: FftDirection) -> impl Fn(&KernelInit<'_>) -> Result<KernelBox> {
    move |init| {
        let (real, complex) = (init.dtype("Treal")?, init.dtype("Tcomplex")?);
        Ok(match (real, complex) {
            (DType::Float, DType::Complex64) => {
                KernelBox::new(RealFft::<f32> { dims, direction, plans: Plans::new() })
            }
            (DType::Double, DType::Complex128) => {
                KernelBox::new(RealFft::<f64> { dims, direction, plans: Plans::new() })
            }
            _ => {
                bail!(InvalidArgument, "Wrong types for real FFT: Treal={real} Tcomplex={complex}")
            }
        })
    }
}

fn shape_of(
    dims: usize,
    direction: FftDirection,
) -> impl Fn(&ShapeCtx<'_>) -> Result<Vec<PartialShape>> {
    move |c| {
        let input = c.input(0);
        let Some(own) = input.dims() else {
            return Ok(vec![PartialShape::unknown()]);
        };
        let Some(first) = own.len().checked_sub(dims) else {
            bail!(InvalidArgument, "Shape must be at least rank {dims} but is rank {}", own.len());
        };
        let lengths = c.constant_ints(1).filter(|n| n.len() == dims);
        let transformed = (0..dims).map(|i| {
            let n = usize::try_from(*lengths.as_ref()?.get(i)?).ok()?;
            let halved = direction == FftDirection::Forward && i == dims - 1;
            Some(if halved { n / 2 + 1 } else { n })
        });
        Ok(vec![PartialShape::new(own[..first].iter().copied().chain(transformed))])
    }
}

/// The last element of a vector of int32, as a vector.
fn last_of<'g>(g: &GradientScope<'g>, x: Term<'g>) -> Term<'g> {
    let attrs = Attrs::new().with("end_mask", 1i64);
    g.call_with("StridedSlice", &[x, g.ints(&[-1]), g.ints(&[0]), g.ints(&[1])], attrs)
}

/// The real part of the complex inverse transform, with zeros for the half that was left out.
fn real_gradient<'g>(g: &GradientScope<'g>, dy: Term<'g>, dims: i64, back: &str) -> Term<'g> {
    let (x, length) = (g.input(0), g.input(1));
    // Crops to another shape, or pads with zeros.
    let fit = |t: Term<'g>, shape: Term<'g>| {
        let size = t.shape().with("Minimum", shape);
        let cut = g.call("Slice", &[t, size.zeros_like(), size]);
        let paddings = [size.zeros_like(), shape - size];
        let paddings = g.call_with("Pack", &paddings, Attrs::new().with("axis", 1i64));
        g.call("Pad", &[cut, paddings])
    };
    let attrs = Attrs::new().with("begin_mask", 1i64);
    let batch = [dy.shape(), g.ints(&[0]), g.ints(&[-dims]), g.ints(&[1])];
    let batch = g.call_with("StridedSlice", &batch, attrs);
    let full = fit(dy, g.concat(&[batch, length], 0));
    let size = transformed_size(g, full, dims).cast(x.dtype());
    let attrs = Attrs::new().with("Tout", x.dtype());
    let real = g.call(back, &[full]).apply_with("Real", attrs) * size;
    fit(real, x.shape())
}

pub(crate) fn register(c: &mut Catalog) {
    for (dims, forward, inverse) in
        [(1, "RFFT", "IRFFT"), (2, "RFFT2D", "IRFFT2D"), (3, "RFFT3D", "IRFFT3D")]
    {
        c.op(forward)
            .doc("Fourier transform of a real signal over the last dimensions; half is kept.")
            .input("input: Treal")
            .input("fft_length: int32")
            .output("output: Tcomplex")
            .attr("Treal: {float, double} = DT_FLOAT")
            .attr("Tcomplex: {complex64, complex128} = DT_COMPLEX64")
            .expensive()
            .shape(shape_of(dims, FftDirection::Forward))
            .cpu(kernel(dims, FftDirection::Forward));
        c.op(inverse)
            .doc("The real signal that half a spectrum over the last dimensions belongs to.")
            .input("input: Tcomplex")
            .input("fft_length: int32")
            .output("output: Treal")
            .attr("Treal: {float, double} = DT_FLOAT")
            .attr("Tcomplex: {complex64, complex128} = DT_COMPLEX64")
            .expensive()
            .shape(shape_of(dims, FftDirection::Inverse))
            .cpu(kernel(dims, FftDirection::Inverse));
    }
    // TensorFlow defines no gradient in three dimensions.
    for (dims, forward, inverse, complex) in
        [(1, "RFFT", "IRFFT", "IFFT"), (2, "RFFT2D", "IRFFT2D", "IFFT2D")]
    {
        c.gradient(forward, move |g, dy| Ok(g.only(real_gradient(g, dy[0], dims, complex))));
        c.gradient(inverse, move |g, dy| {
            let (length, x) = (g.input(1), g.input(0));
            let real = dy[0].dtype();
            let attrs = Attrs::new().with("Tcomplex", x.dtype());
            let back = g.call_with(forward, &[dy[0], length], attrs);
            // All points but the first and, for even lengths, the last count twice.
            let last = last_of(g, length);
            let odd = last.with("FloorMod", g.int(2));
            let two = g.call("Fill", &[last_of(g, x.shape()) - 2.0 + odd, g.number(2.0, real)]);
            let one = g.call("Fill", &[g.ints(&[1]), g.number(1.0, real)]);
            let end = g.call("Fill", &[1.0 - odd, g.number(1.0, real)]);
            let weights = g.concat(&[one, two, end], 0);
            let size = transformed_size(g, dy[0], dims).cast(real);
            Ok(g.only(back * (weights / size).cast(x.dtype())))
        });
    }
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::testing::{Check, check};

    fn op(name: &str, x: Tensor, lengths: &[i32]) -> Check<'static> {
        check(name).input(x).input(Tensor::vector(lengths))
    }

    fn z(re: f32, im: f32) -> Complex32 {
        Complex32::new(re, im)
    }

    #[test]
    fn rows_transform_and_are_cropped() {
        let x = || Tensor::vector(&[1f32, 2.0, 3.0, 4.0]);
        let want = Tensor::vector(&[z(10.0, 0.0), z(-2.0, 2.0), z(-2.0, 0.0)]);
        op("RFFT", x(), &[4]).gives(want.clone());
        op("RFFT", x(), &[3]).gives(Tensor::vector(&[z(6.0, 0.0), z(-1.5, 0.8660254)]));
        op("IRFFT", want, &[4]).gives(x());
        let y = Tensor::vector(&[z(10.0, 5.0), z(-2.0, 2.0), z(-2.0, 1.0)]);
        op("IRFFT", y.clone(), &[4]).gives(x());
        let want = [0.4f32, 1.4040407, 2.3101945, 2.4898057, 3.3959596];
        op("IRFFT", y.clone(), &[5]).gives(Tensor::vector(&want));
        op("IRFFT", y, &[1]).gives(Tensor::vector(&[10f32]));
    }

    #[test]
    fn planes_transform_and_invert() {
        let x: Vec<f32> = (0..12).map(|i| i as f32).collect();
        let x = Tensor::from_slice([3, 4], &x).unwrap();
        let (o, w) = (z(0.0, 0.0), 13.856406);
        let want =
            [z(66.0, 0.0), z(-6.0, 6.0), z(-6.0, 0.0), z(-24.0, w), o, o, z(-24.0, -w), o, o];
        let want = Tensor::from_slice([3, 3], &want).unwrap();
        let y = op("RFFT2D", x.clone(), &[3, 4]).run().unwrap().remove(0);
        ferroflow_testing::assert_close(&y, &want, 1e-5, 1e-5);
        op("IRFFT2D", y.clone(), &[3, 4]).gives(x.clone());
        let want = [5.0f32, 6.2679496, 9.732051, 13.0, 14.26795, 17.732052];
        op("IRFFT2D", y, &[2, 3]).gives(Tensor::from_slice([2, 3], &want).unwrap());
        let want = [z(18.0, 0.0), z(-3.0, 1.7320508), z(-12.0, 0.0), o];
        op("RFFT2D", x, &[2, 3]).gives(Tensor::from_slice([2, 2], &want).unwrap());
        let cube: Vec<f64> = (0..60).map(|i| (i * 7 % 11) as f64).collect();
        let cube = Tensor::from_slice([2, 3, 10], &cube).unwrap();
        let y = op("RFFT3D", cube.clone(), &[2, 3, 10])
            .attr("Tcomplex", DType::Complex128)
            .run()
            .unwrap()
            .remove(0);
        op("IRFFT3D", y, &[2, 3, 10]).attr("Treal", DType::Double).gives(cube);
    }

    #[test]
    fn lengths_are_checked() {
        let fails = |name: &str, x: Tensor, n: &[i32], text: &str| {
            op(name, x, n).fails(Code::InvalidArgument, text)
        };
        let x = || Tensor::vector(&[1f32, 2.0]);
        let text = "Input dimension 0 must have length of at least 6 but got: 2";
        fails("RFFT", x(), &[6], text);
        fails("RFFT", x(), &[3, 4], "fft_length must have shape [1]");
        fails("RFFT", x(), &[-1], "fft_length[0] must >= 0, but got: -1");
        fails("RFFT2D", x(), &[1, 1], "Input must have rank of at least 2 but got: [2]");
        let empty = Tensor::zeros(DType::Float, [0]).unwrap();
        op("RFFT", empty, &[4]).gives(Tensor::zeros(DType::Complex64, [3]).unwrap());
    }
}
