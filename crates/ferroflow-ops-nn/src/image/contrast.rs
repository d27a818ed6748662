//! AdjustContrast and AdjustContrastv2: scale the distances from the mean of a channel.

use super::pixels::floats;
use crate::prelude::*;

/// Scales the distance of each pixel from its channel's mean over the image.
fn adjust(pixels: &mut [f32], image: usize, channels: usize, factor: f32) {
    if image == 0 || channels == 0 {
        return;
    }
    let count = (image / channels) as f64;
    for image in pixels.chunks_exact_mut(image) {
        let mut sums = vec![0f64; channels];
        for pixel in image.chunks_exact(channels) {
            sums.iter_mut().zip(pixel).for_each(|(sum, x)| *sum += f64::from(*x));
        }
        let means: Vec<f32> = sums.iter().map(|sum| (sum / count) as f32).collect();
        for pixel in image.chunks_exact_mut(channels) {
            for (x, mean) in pixel.iter_mut().zip(&means) {
                *x = (*x - mean) * factor + mean;
            }
        }
    }
}

fn scalar(ctx: &Ctx<'_>, i: usize, name: &str) -> Result<f32> {
    let t = ctx.input(i)?;
    ensure!(t.rank() == 0, InvalidArgument, "{name} must be scalar: {}", t.shape());
    t.scalar_value::<f32>()
}

/// Elements of one image, and channels.
fn sizes(shape: &Shape) -> Result<(usize, usize)> {
    ensure!(shape.rank() >= 3, InvalidArgument, "input must be at least 3-D, got shape{shape}");
    let last = &shape[shape.rank() - 3..];
    Ok((last.iter().product(), last[2]))
}

fn adjust_v2(ctx: &mut Ctx<'_>) -> Result<()> {
    let (image, channels) = sizes(ctx.input(0)?.shape())?;
    let factor = scalar(ctx, 1, "contrast_factor")?;
    let mut out = ctx.take_or_copy(0)?;
    adjust(out.as_mut_slice()?, image, channels, factor);
    ctx.set(0, out)
}

fn adjust_v1(ctx: &mut Ctx<'_>) -> Result<()> {
    let shape = ctx.input(0)?.shape().clone();
    let (image, channels) = sizes(&shape)?;
    let factor = scalar(ctx, 1, "contrast_factor")?;
    let (low, high) = (scalar(ctx, 2, "min_value")?, scalar(ctx, 3, "max_value")?);
    let mut pixels = floats(ctx.input(0)?)?.into_owned();
    adjust(&mut pixels, image, channels, factor);
    pixels.iter_mut().for_each(|x| *x = x.min(high).max(low));
    let out = Tensor::from_slice(shape, &pixels)?;
    ctx.set(0, out)
}

fn image_shape(c: &ShapeCtx<'_>) -> Result<Vec<PartialShape>> {
    let shape = c.input(0);
    ensure!(
        shape.rank().is_none_or(|rank| rank >= 3),
        InvalidArgument,
        "Shape must be at least rank 3 but is rank {}",
        shape.rank().unwrap_or(0)
    );
    Ok(vec![shape])
}

pub(crate) fn register(c: &mut Catalog) {
    c.op("AdjustContrast")
        .doc("An old form of AdjustContrastv2 that clips its result.")
        .input("images: T")
        .input("contrast_factor: float")
        .input("min_value: float")
        .input("max_value: float")
        .output("output: float")
        .attr("T: {uint8, int8, int16, int32, int64, float, double}")
        .shape(image_shape)
        .cpu(|init| match init.dtype("T")? {
            DType::Int64 => Err(unsupported(init, "T", DType::Int64)),
            _ => Ok(KernelBox::new(adjust_v1)),
        });
    c.op("AdjustContrastv2")
        .doc("Images with distances from the mean of their channels scaled.")
        .input("images: T")
        .input("contrast_factor: float")
        .output("output: T")
        .attr("T: {half, float} = DT_FLOAT")
        .shape(image_shape)
        .cpu(|init| match init.dtype("T")? {
            DType::Float => Ok(KernelBox::new(adjust_v2)),
            other => Err(unsupported(init, "T", other)),
        });
}
