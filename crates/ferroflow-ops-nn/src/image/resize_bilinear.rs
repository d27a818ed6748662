//! ResizeBilinear and its gradient, QuantizedResizeBilinear.

use super::pixels::{Images, floats};
use super::resize::{Grid, original_shape, resized_shape};
use crate::prelude::*;
use ferroflow_core::RealElement;
use ferroflow_op_kit::parallel::for_rows;

/// The two pixels around a position, and its distance from the first.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Between {
    pub lower: usize,
    pub upper: usize,
    pub weight: f32,
}

/// For each of `output` pixels, between which of `input` pixels it lies.
fn betweens(grid: Grid, input: usize, output: usize) -> Vec<Between> {
    let scale = grid.scale(input, output);
    let last = input - 1;
    (0..output)
        .map(|i| {
            let place = grid.place(i, scale);
            let floor = place.floor();
            let lower = (floor.max(0.0) as usize).min(last);
            let upper = (place.ceil().max(0.0) as usize).min(last);
            Between { lower, upper, weight: place - floor }
        })
        .collect()
}

/// Resizes images of floats.
fn resize(grid: Grid, from: Images, to: Images, x: &[f32], y: &mut [f32]) {
    let (rows, cols) =
        (betweens(grid, from.height, to.height), betweens(grid, from.width, to.width));
    let c = from.channels;
    for_rows(y, to.row(), to.row() * 2, |range, y| {
        for (at, y) in range.zip(y.chunks_exact_mut(to.row())) {
            let (image, row) = (at / to.height, rows[at % to.height]);
            let image = &x[image * from.image()..];
            let top = &image[row.lower * from.row()..][..from.row()];
            let bottom = &image[row.upper * from.row()..][..from.row()];
            for (col, y) in cols.iter().zip(y.chunks_exact_mut(c)) {
                let (left, right) = (col.lower * c, col.upper * c);
                for (j, y) in y.iter_mut().enumerate() {
                    let (tl, tr) = (top[left + j], top[right + j]);
                    let (bl, br) = (bottom[left + j], bottom[right + j]);
                    let t = tl + (tr - tl) * col.weight;
                    let b = bl + (br - bl) * col.weight;
                    *y = t + (b - t) * row.weight;
                }
            }
        }
    });
}

/// Images of floats resized to the size that a vector holds.
pub(crate) fn resized(x: &Tensor, size: &Tensor, align_corners: bool) -> Result<Tensor> {
    let grid = Grid { align_corners, half_pixel_centers: false };
    let (from, to) = grid.sizes(x.shape(), size)?;
    let mut y = Tensor::alloc(DType::Float, to.shape()?)?;
    if y.elements() > 0 {
        resize(grid, from, to, x.as_slice()?, y.as_mut_slice()?);
    }
    Ok(y)
}

/// Resizes images of integers with weights of some bits. Sums of 32-bit elements fit with 29 bits.
fn resize_integers<T: Copy + Into<i64>>(
    (grid, bits): (Grid, u32),
    (from, to): (Images, Images),
    x: &[T],
    mut set: impl FnMut(usize, i64),
) {
    let whole = 1i64 << bits;
    let (rows, cols) =
        (betweens(grid, from.height, to.height), betweens(grid, from.width, to.width));
    let weight = |w: f32| (w * whole as f32) as i64;
    let mut next = 0;
    for image in x.chunks_exact(from.image()) {
        for row in &rows {
            for col in &cols {
                for j in 0..from.channels {
                    let at = |y: usize, x: usize| -> i64 {
                        image[y * from.row() + x * from.channels + j].into()
                    };
                    let between = |y: usize| {
                        let (left, right) = (at(y, col.lower), at(y, col.upper));
                        left * whole + (right - left) * weight(col.weight)
                    };
                    let (top, bottom) = (between(row.lower), between(row.upper));
                    let sum = top + (bottom - top) / whole * weight(row.weight);
                    set(next, (sum + whole / 2) / whole);
                    next += 1;
                }
            }
        }
    }
}

/// Resizes quantised images; the range does not change.
struct QuantizedResize {
    grid: Grid,
    dtype: DType,
}

impl Kernel for QuantizedResize {
    fn compute(&self, ctx: &mut Ctx<'_>) -> Result<()> {
        let sizes = self.grid.forward(ctx)?;
        let mut y = ctx.alloc(self.dtype, sizes.1.shape()?)?;
        let x = ctx.input(0)?;
        if y.elements() > 0 {
            match self.dtype {
                DType::QUInt8 => {
                    let y = y.as_mut_slice::<u8>()?;
                    let grid = (self.grid, 7);
                    resize_integers(grid, sizes, x.as_slice::<u8>()?, |i, v| y[i] = v as u8);
                }
                DType::QInt32 => {
                    let y = y.as_mut_slice::<i32>()?;
                    let grid = (self.grid, 29);
                    resize_integers(grid, sizes, x.as_slice::<i32>()?, |i, v| y[i] = v as i32);
                }
                _ => resize(self.grid, sizes.0, sizes.1, x.as_slice()?, y.as_mut_slice()?),
            }
        }
        let (min, max) = (ctx.input(2)?.clone(), ctx.input(3)?.clone());
        for (name, t) in [("min", &min), ("max", &max)] {
            ensure!(
                t.rank() == 0,
                InvalidArgument,
                "{name} must be a scalar, got shape {}",
                t.shape()
            );
        }
        ctx.set(0, y)?;
        ctx.set(1, min)?;
        ctx.set(2, max)
    }
}

struct Resize(Grid);

impl Kernel for Resize {
    fn compute(&self, ctx: &mut Ctx<'_>) -> Result<()> {
        let (from, to) = self.0.forward(ctx)?;
        let mut y = ctx.alloc(DType::Float, to.shape()?)?;
        let x = floats(ctx.input(0)?)?;
        if y.elements() > 0 {
            resize(self.0, from, to, &x, y.as_mut_slice()?);
        }
        ctx.set(0, y)
    }
}

/// Each gradient goes to the four pixels that its pixel was made of.
struct Gradient<T>(Grid, std::marker::PhantomData<T>);

impl<T: Float> Kernel for Gradient<T> {
    fn compute(&self, ctx: &mut Ctx<'_>) -> Result<()> {
        let (resized, original) = self.0.backward(ctx)?;
        let mut dx = Tensor::zeros(T::DTYPE, original.shape()?)?;
        let dy = ctx.input(0)?.as_slice::<f32>()?;
        if dx.elements() == 0 {
            return ctx.set(0, dx);
        }
        let rows = betweens(self.0, original.height, resized.height);
        let cols = betweens(self.0, original.width, resized.width);
        let c = original.channels;
        for_rows(dx.as_mut_slice::<T>()?, original.image(), resized.image() * 4, |images, dx| {
            let mut sums = vec![<T::Wide as Num>::ZERO; original.image()];
            for (image, dx) in images.zip(dx.chunks_exact_mut(original.image())) {
                sums.fill(<T::Wide as Num>::ZERO);
                let dy = &dy[image * resized.image()..][..resized.image()];
                for (row, dy) in rows.iter().zip(dy.chunks_exact(resized.row())) {
                    for (col, dy) in cols.iter().zip(dy.chunks_exact(c)) {
                        for (y, wy) in [(row.lower, 1.0 - row.weight), (row.upper, row.weight)] {
                            for (x, wx) in [(col.lower, 1.0 - col.weight), (col.upper, col.weight)]
                            {
                                let sums = &mut sums[y * original.row() + x * c..][..c];
                                for (sum, dy) in sums.iter_mut().zip(dy) {
                                    *sum = sum.add(T::Wide::from_f64(f64::from(dy * wy * wx)));
                                }
                            }
                        }
                    }
                }
                dx.iter_mut().zip(&sums).for_each(|(dx, sum)| *dx = T::narrow(*sum));
            }
        });
        ctx.set(0, dx)
    }
}

pub(crate) fn register(c: &mut Catalog) {
    c.op("ResizeBilinear")
        .doc("Images resized by bilinear interpolation.")
        .input("images: T")
        .input("size: int32")
        .output("resized_images: float")
        .attr("T: {int8, uint8, int16, uint16, int32, int64, bfloat16, half, float, double, bfloat16}")
        .attr("align_corners: bool = false")
        .attr("half_pixel_centers: bool = false")
        .expensive()
        .shape(resized_shape)
        .cpu(|init| Ok(KernelBox::new(Resize(Grid::new(init)?))));
    c.op("QuantizedResizeBilinear")
        .doc("Quantised images resized by bilinear interpolation.")
        .input("images: T")
        .input("size: int32")
        .input("min: float")
        .input("max: float")
        .output("resized_images: T")
        .output("out_min: float")
        .output("out_max: float")
        .attr("T: {quint8, qint32, float}")
        .attr("align_corners: bool = false")
        .attr("half_pixel_centers: bool = false")
        .expensive()
        .shape(|c| {
            let mut shapes = resized_shape(c)?;
            shapes.truncate(1);
            shapes.extend([PartialShape::scalar(), PartialShape::scalar()]);
            Ok(shapes)
        })
        .cpu(|init| {
            let (grid, dtype) = (Grid::new(init)?, init.dtype("T")?);
            Ok(KernelBox::new(QuantizedResize { grid, dtype }))
        });
    c.op("ResizeBilinearGrad")
        .doc("Gradient of ResizeBilinear.")
        .input("grads: float")
        .input("original_image: T")
        .output("output: T")
        .attr("T: {float, bfloat16, half, double}")
        .attr("align_corners: bool = false")
        .attr("half_pixel_centers: bool = false")
        .expensive()
        .shape(original_shape)
        .cpu(per_dtype!(FLOAT, init, T => {
            Gradient::<T>(Grid::new(init)?, std::marker::PhantomData)
        }));
    c.gradient("ResizeBilinear", |g, dy| match g.input(0).dtype() {
        DType::Float | DType::Double => {
            Ok(g.only(g.call_like("ResizeBilinearGrad", &[dy[0], g.input(0)])))
        }
        _ => Ok(g.only(g.none())),
    });
}
