//! Code that the resize ops share: sizes, and the input position of each output pixel.

use super::pixels::Images;
use crate::prelude::*;

/// How output pixels are aligned with the input.
#[derive(Clone, Copy, Debug)]
pub(super) struct Grid {
    pub align_corners: bool,
    pub half_pixel_centers: bool,
}

impl Grid {
    pub fn new(init: &KernelInit<'_>) -> Result<Grid> {
        let half_pixel_centers =
            init.contains("half_pixel_centers") && init.bool("half_pixel_centers")?;
        Ok(Grid { align_corners: init.bool("align_corners")?, half_pixel_centers })
    }

    fn check(&self) -> Result<()> {
        ensure!(
            !(self.half_pixel_centers && self.align_corners),
            InvalidArgument,
            "If half_pixel_centers is True, align_corners must be False."
        );
        Ok(())
    }

    /// Input pixels per output pixel.
    pub fn scale(&self, input: usize, output: usize) -> f32 {
        match self.align_corners && output > 1 {
            true => (input - 1) as f32 / (output - 1) as f32,
            false => input as f32 / output as f32,
        }
    }

    /// The input position under the centre of output pixel `i`.
    pub fn place(&self, i: usize, scale: f32) -> f32 {
        match self.half_pixel_centers {
            true => (i as f32 + 0.5) * scale - 0.5,
            false => i as f32 * scale,
        }
    }

    /// The sizes of a resize of input 0 to the size in input 1.
    pub fn forward(&self, ctx: &Ctx<'_>) -> Result<(Images, Images)> {
        self.sizes(ctx.input(0)?.shape(), ctx.input(1)?)
    }

    /// The sizes of a resize of images of this shape to the size that a vector holds.
    pub fn sizes(&self, shape: &Shape, size: &Tensor) -> Result<(Images, Images)> {
        self.check()?;
        let from =
            Images::of(shape, || err!(InvalidArgument, "input must be 4-dimensional{shape}"))?;
        ensure!(from.channels > 0, InvalidArgument, "image must have at least one channel");
        ensure!(
            from.height > 0 && from.width > 0,
            InvalidArgument,
            "input image must be of non-zero size"
        );
        ensure!(
            from.height < i32::MAX as usize && from.width < i32::MAX as usize,
            InvalidArgument,
            "input sizes must be between 0 and max int32"
        );
        let (height, width) = wanted_size(size)?;
        Ok((from, from.sized(height, width)))
    }

    /// The sizes of the gradient in input 0 of a resize of the image in input 1.
    pub fn backward(&self, ctx: &Ctx<'_>) -> Result<(Images, Images)> {
        self.check()?;
        let (grads, image) = (ctx.input(0)?.shape(), ctx.input(1)?.shape());
        let resized =
            Images::of(grads, || err!(InvalidArgument, "input_grad must be 4-dimensional{grads}"))?;
        ensure!(
            resized.height > 0 && resized.width > 0,
            InvalidArgument,
            "resized dimensions must be positive"
        );
        let original = Images::of(image, || {
            err!(InvalidArgument, "original_image must be 4-dimensional{image}")
        })?;
        ensure!(
            original.height > 0 && original.width > 0,
            InvalidArgument,
            "original dimensions must be positive"
        );
        ensure!(
            original.height < i32::MAX as usize && original.width < i32::MAX as usize,
            InvalidArgument,
            "original sizes must be between 0 and max int32"
        );
        Ok((resized, resized.sized(original.height, original.width)))
    }
}

/// Height and width from a vector of two positive integers.
pub(super) fn wanted_size(size: &Tensor) -> Result<(usize, usize)> {
    ensure!(size.rank() == 1, InvalidArgument, "shape_t must be 1-dimensional{}", size.shape());
    ensure!(
        size.elements() == 2,
        InvalidArgument,
        "shape_t must have two elements{}",
        size.shape()
    );
    let size = size.to_indices()?;
    ensure!(size[0] > 0 && size[1] > 0, InvalidArgument, "output dimensions must be positive");
    Ok((size[0] as usize, size[1] as usize))
}

/// Images like input 0 with the size that input 1 holds.
pub(super) fn resized_shape(c: &ShapeCtx<'_>) -> Result<Vec<PartialShape>> {
    let images = c.input(0).merge(&PartialShape::of_rank(4))?;
    let size = c.shape_from(1).merge(&PartialShape::of_rank(2))?;
    let shape = [images.dim(0), size.dim(0), size.dim(1), images.dim(3)];
    Ok(vec![PartialShape::new(shape); c.outputs])
}

/// Images like the gradient in input 0 with the size of the images in input 1.
pub(super) fn original_shape(c: &ShapeCtx<'_>) -> Result<Vec<PartialShape>> {
    let grads = c.input(0).merge(&PartialShape::of_rank(4))?;
    let image = c.input(1).merge(&PartialShape::of_rank(4))?;
    Ok(vec![PartialShape::new([grads.dim(0), image.dim(1), image.dim(2), grads.dim(3)])])
}
