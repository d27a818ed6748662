//! ResizeBicubic and its gradient.

use super::pixels::{FromF32, floats};
use super::resize::{Grid, original_shape, resized_shape};
use crate::prelude::*;
use ferroflow_op_kit::parallel::for_rows;

/// The number of steps between two pixels: weights are computed for the nearest step.
const STEPS: i64 = 1 << 10;

/// Four pixels and what each contributes.
type Taps = [(usize, f32); 4];

/// The cubic convolution kernel of parameter `a` at a distance below one, and one further.
fn weights(a: f64, step: i64) -> (f32, f32) {
    let x = (step as f64 / STEPS as f64) as f32;
    let near = ((a + 2.0) * f64::from(x) - (a + 3.0)) * f64::from(x) * f64::from(x) + 1.0;
    let x = f64::from((f64::from(x) + 1.0) as f32);
    let far = ((a * x - 5.0 * a) * x + 8.0 * a) * x - 4.0 * a;
    (near as f32, far as f32)
}

/// The pixels that each of `output` pixels is made of.
fn taps(grid: Grid, input: usize, output: usize) -> Vec<Taps> {
    let scale = grid.scale(input, output);
    let last = input as i64 - 1;
    // Keys' kernel, cut off at the edges, for half-pixel centres; otherwise the older kernel, with
    // repeated edges.
    let a = if grid.half_pixel_centers { -0.5 } else { -0.75 };
    (0..output)
        .map(|i| {
            let place = grid.place(i, scale);
            let floor = place.floor() as i64;
            let step = ((place - floor as f32) * STEPS as f32).round_ties_even() as i64;
            let ((w1, w0), (w2, w3)) = (weights(a, step), weights(a, STEPS - step));
            let mut taps = [0, 1, 2, 3].map(|k| {
                let at = floor - 1 + k as i64;
                let inside = at.clamp(0, last);
                let weight = [w0, w1, w2, w3][k];
                let cut = grid.half_pixel_centers && inside != at;
                (inside as usize, if cut { 0.0 } else { weight })
            });
            if grid.half_pixel_centers {
                let sum: f32 = taps.iter().map(|t| t.1).sum();
                if sum.abs() >= 1000.0 * f32::MIN_POSITIVE {
                    let one_over = 1.0 / sum;
                    taps.iter_mut().for_each(|t| t.1 *= one_over);
                }
            }
            taps
        })
        .collect()
}

struct Resize(Grid);

impl Kernel for Resize {
    fn compute(&self, ctx: &mut Ctx<'_>) -> Result<()> {
        let (from, to) = self.0.forward(ctx)?;
        let mut y = ctx.alloc(DType::Float, to.shape()?)?;
        if y.elements() == 0 {
            return ctx.set(0, y);
        }
        let x = floats(ctx.input(0)?)?;
        let rows = taps(self.0, from.height, to.height);
        let cols = taps(self.0, from.width, to.width);
        let c = from.channels;
        for_rows(y.as_mut_slice::<f32>()?, to.row(), to.row() * 8, |range, y| {
            // Combines the four rows first, to one row of the input's width.
            let mut blend = vec![0f32; from.row()];
            for (at, y) in range.zip(y.chunks_exact_mut(to.row())) {
                let image = &x[at / to.height * from.image()..];
                let [r0, r1, r2, r3] = rows[at % to.height];
                let row = |r: (usize, f32)| &image[r.0 * from.row()..][..from.row()];
                let (x0, x1, x2, x3) = (row(r0), row(r1), row(r2), row(r3));
                for (j, out) in blend.iter_mut().enumerate() {
                    *out = x0[j] * r0.1 + x1[j] * r1.1 + x2[j] * r2.1 + x3[j] * r3.1;
                }
                for ([c0, c1, c2, c3], y) in cols.iter().zip(y.chunks_exact_mut(c)) {
                    for (j, y) in y.iter_mut().enumerate() {
                        let x = |t: &(usize, f32)| blend[t.0 * c + j] * t.1;
                        *y = x(c0) + x(c1) + x(c2) + x(c3);
                    }
                }
            }
        });
        ctx.set(0, y)
    }
}

struct Gradient<T>(Grid, std::marker::PhantomData<T>);

impl<T: FromF32> Kernel for Gradient<T> {
    fn compute(&self, ctx: &mut Ctx<'_>) -> Result<()> {
        let (resized, original) = self.0.backward(ctx)?;
        let mut dx = Tensor::zeros(T::DTYPE, original.shape()?)?;
        let dy = ctx.input(0)?.as_slice::<f32>()?;
        let rows = taps(self.0, original.height, resized.height);
        let cols = taps(self.0, original.width, resized.width);
        let c = original.channels;
        for_rows(dx.as_mut_slice::<T>()?, original.image(), resized.image() * 16, |images, dx| {
            for (image, dx) in images.zip(dx.chunks_exact_mut(original.image())) {
                let dy = &dy[image * resized.image()..][..resized.image()];
                for (row, dy) in rows.iter().zip(dy.chunks_exact(resized.row())) {
                    for (col, dy) in cols.iter().zip(dy.chunks_exact(c)) {
                        for (y, wy) in row {
                            for (x, wx) in col {
                                let dx = &mut dx[y * original.row() + x * c..][..c];
                                for (dx, dy) in dx.iter_mut().zip(dy) {
                                    *dx = dx.add(T::of(dy * wy * wx));
                                }
                            }
                        }
                    }
                }
            }
        });
        ctx.set(0, dx)
    }
}

pub(crate) fn register(c: &mut Catalog) {
    c.op("ResizeBicubic")
        .doc("Images resized by bicubic interpolation.")
        .input("images: T")
        .input("size: int32")
        .output("resized_images: float")
        .attr("T: {int8, uint8, int16, uint16, int32, int64, half, float, double, bfloat16}")
        .attr("align_corners: bool = false")
        .attr("half_pixel_centers: bool = false")
        .expensive()
        .shape(resized_shape)
        .cpu(|init| Ok(KernelBox::new(Resize(Grid::new(init)?))));
    c.op("ResizeBicubicGrad")
        .doc("Gradient of ResizeBicubic.")
        .input("grads: float")
        .input("original_image: T")
        .output("output: T")
        .attr("T: {float, double}")
        .attr("align_corners: bool = false")
        .attr("half_pixel_centers: bool = false")
        .expensive()
        .shape(original_shape)
        .cpu(per_dtype!([Float f32, Double f64], init, T => {
            Gradient::<T>(Grid::new(init)?, std::marker::PhantomData)
        }));
    c.gradient("ResizeBicubic", |g, dy| match g.input(0).dtype() {
        DType::Float | DType::Double => {
            Ok(g.only(g.call_like("ResizeBicubicGrad", &[dy[0], g.input(0)])))
        }
        _ => Ok(g.only(g.none())),
    });
}
