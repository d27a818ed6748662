//! ResizeNearestNeighbor and its gradient.

use super::pixels::Images;
use super::resize::{Grid, resized_shape, wanted_size};
use crate::prelude::*;

/// For each of `output` pixels, which of `input` pixels is the nearest.
fn nearest(grid: Grid, input: usize, output: usize) -> Vec<usize> {
    let scale = grid.scale(input, output);
    (0..output)
        .map(|i| {
            let place = match grid.half_pixel_centers {
                true => (i as f32 + 0.5) * scale,
                false => i as f32 * scale,
            };
            let place = if grid.align_corners { place.round() } else { place.floor() };
            (place.max(0.0) as usize).min(input - 1)
        })
        .collect()
}

struct Resize<W>(Grid, std::marker::PhantomData<W>);

impl<W: Movable> Kernel for Resize<W> {
    fn compute(&self, ctx: &mut Ctx<'_>) -> Result<()> {
        let (from, to) = self.0.forward(ctx)?;
        let x = ctx.input(0)?;
        let mut y = ctx.alloc(x.dtype(), to.shape()?)?;
        let rows = nearest(self.0, from.height, to.height);
        let cols = nearest(self.0, from.width, to.width);
        let c = from.channels;
        let (x, out) = (W::of(x)?, W::of_mut(&mut y)?);
        for (at, out) in out.chunks_exact_mut(to.row().max(1)).enumerate() {
            let row = at / to.height * from.image() + rows[at % to.height] * from.row();
            for (col, out) in cols.iter().zip(out.chunks_exact_mut(c)) {
                out.clone_from_slice(&x[row + col * c..][..c]);
            }
        }
        ctx.set(0, y)
    }
}

struct Gradient<T>(Grid, std::marker::PhantomData<T>);

impl<T: Num> Kernel for Gradient<T> {
    fn compute(&self, ctx: &mut Ctx<'_>) -> Result<()> {
        let grads = ctx.input(0)?;
        let resized = Images::of(grads.shape(), || {
            err!(InvalidArgument, "input must be 4-dimensional{}", grads.shape())
        })?;
        let (height, width) = wanted_size(ctx.input(1)?)?;
        ensure!(resized.channels > 0, InvalidArgument, "image must have at least one channel");
        let original = resized.sized(height, width);
        let mut dx = Tensor::zeros(T::DTYPE, original.shape()?)?;
        if grads.elements() == 0 {
            return ctx.set(0, dx);
        }
        let rows = nearest(self.0, height, resized.height);
        let cols = nearest(self.0, width, resized.width);
        let c = resized.channels;
        let out = dx.as_mut_slice::<T>()?;
        for (at, dy) in grads.as_slice::<T>()?.chunks_exact(resized.row()).enumerate() {
            let (image, row) = (at / resized.height, rows[at % resized.height]);
            let row = image * original.image() + row * original.row();
            for (col, dy) in cols.iter().zip(dy.chunks_exact(c)) {
                let out = &mut out[row + col * c..][..c];
                out.iter_mut().zip(dy).for_each(|(x, dy)| *x = x.add(*dy));
            }
        }
        ctx.set(0, dx)
    }
}

pub(crate) fn register(c: &mut Catalog) {
    c.op("ResizeNearestNeighbor")
        .doc("Images resized by taking the nearest pixels.")
        .input("images: T")
        .input("size: int32")
        .output("resized_images: T")
        .attr("T: {int8, uint8, int16, uint16, int32, int64, half, float, double, bfloat16}")
        .attr("align_corners: bool = false")
        .attr("half_pixel_centers: bool = false")
        .shape(resized_shape)
        .cpu(per_width!(init, W => Resize::<W>(Grid::new(init)?, std::marker::PhantomData)));
    c.op("ResizeNearestNeighborGrad")
        .doc("Gradient of ResizeNearestNeighbor.")
        .input("grads: T")
        .input("size: int32")
        .output("output: T")
        .attr("T: {uint8, int8, int32, half, float, double, bfloat16}")
        .attr("align_corners: bool = false")
        .attr("half_pixel_centers: bool = false")
        .shape(resized_shape)
        .cpu(per_dtype!(
            [UInt8 u8, Int8 i8, Int32 i32, Half f16, BFloat16 bf16, Float f32, Double f64],
            init,
            T => Gradient::<T>(Grid::new(init)?, std::marker::PhantomData)
        ));
    c.gradient("ResizeNearestNeighbor", |g, dy| {
        let size = g.call("Slice", &[g.input(0).shape(), g.ints(&[1]), g.ints(&[2])]);
        Ok(g.only(g.call_like("ResizeNearestNeighborGrad", &[dy[0], size])))
    });
}
