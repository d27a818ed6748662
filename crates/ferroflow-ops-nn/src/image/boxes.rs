//! DrawBoundingBoxes and DrawBoundingBoxesV2.

use super::pixels::Images;
use crate::prelude::*;

/// Default colours of boxes, used in turn; RGB and opaque.
const COLOURS: [[f32; 4]; 10] = [
    [1.0, 1.0, 0.0, 1.0],
    [0.0, 0.0, 1.0, 1.0],
    [1.0, 0.0, 0.0, 1.0],
    [0.0, 1.0, 0.0, 1.0],
    [0.5, 0.0, 0.5, 1.0],
    [0.5, 0.5, 0.0, 1.0],
    [0.5, 0.0, 0.0, 1.0],
    [0.0, 0.0, 0.5, 1.0],
    [0.0, 1.0, 1.0, 1.0],
    [1.0, 0.0, 1.0, 1.0],
];

fn default_colours(depth: usize) -> Vec<Vec<f32>> {
    match depth {
        1 => vec![vec![1.0]],
        _ => COLOURS.iter().map(|colour| colour[..depth].to_vec()).collect(),
    }
}

fn given_colours(colours: &Tensor, depth: usize) -> Result<Vec<Vec<f32>>> {
    let shape = colours.shape();
    ensure!(shape.rank() == 2, InvalidArgument, "colors must be a 2-D matrix{shape}");
    ensure!(
        shape[1] >= depth,
        InvalidArgument,
        "colors must have equal or more channels than the image provided: {shape}"
    );
    let rows = colours.as_slice::<f32>()?.chunks_exact(shape[1].max(1));
    Ok(rows.map(|row| row[..depth].to_vec()).collect())
}

/// Draws the frame of a box, as far as its lines are inside the image.
fn draw<T: Copy>(image: &mut [T], size: &Images, corners: &[f32], colour: &[T]) {
    let (height, width) = (size.height as i64, size.width as i64);
    let at = |x: f32, len: i64| (x * (len - 1) as f32) as i64;
    let (top, left) = (at(corners[0], height), at(corners[1], width));
    let (bottom, right) = (at(corners[2], height), at(corners[3], width));
    if top > bottom || left > right || top >= height || bottom < 0 || left >= width || right < 0 {
        return;
    }
    let mut paint = |y: i64, x: i64| {
        let at = (y as usize * size.width + x as usize) * size.channels;
        image[at..at + size.channels].copy_from_slice(colour);
    };
    for y in [top, bottom].into_iter().filter(|y| (0..height).contains(y)) {
        (Ord::max(left, 0)..=Ord::min(right, width - 1)).for_each(|x| paint(y, x));
    }
    for x in [left, right].into_iter().filter(|x| (0..width).contains(x)) {
        (Ord::max(top, 0)..=Ord::min(bottom, height - 1)).for_each(|y| paint(y, x));
    }
}

fn draw_boxes<T: Float>(ctx: &mut Ctx<'_>) -> Result<()> {
    let size = Images::of(ctx.input(0)?.shape(), || {
        err!(InvalidArgument, "The rank of the images should be 4")
    })?;
    let boxes = ctx.input(1)?;
    ensure!(boxes.rank() == 3, InvalidArgument, "The rank of the boxes tensor should be 3");
    let dims = boxes.shape().clone();
    ensure!(size.batch == dims[0], InvalidArgument, "The batch sizes should be the same");
    ensure!(
        matches!(size.channels, 1 | 3 | 4),
        InvalidArgument,
        "Channel depth should be either 1 (GRY), 3 (RGB), or 4 (RGBA)"
    );
    ensure!(
        dims[2] == 4,
        InvalidArgument,
        "The size of the third dimension of the box must be 4. Received: {}",
        dims[2]
    );
    let mut colours = match ctx.num_inputs() {
        3 => given_colours(ctx.input(2)?, size.channels)?,
        _ => Vec::new(),
    };
    if colours.is_empty() {
        colours = default_colours(size.channels);
    }
    let colours: Vec<Vec<T>> = colours
        .iter()
        .map(|colour| colour.iter().map(|&x| T::from_f64(f64::from(x))).collect())
        .collect();
    let boxes = boxes.clone();
    let mut out = ctx.take_or_copy(0)?;
    if out.elements() > 0 {
        let boxes = boxes.as_slice::<f32>()?;
        let per_image = dims[1] * 4;
        for (i, image) in out.as_mut_slice::<T>()?.chunks_exact_mut(size.image()).enumerate() {
            let corners = boxes[i * per_image..][..per_image].chunks_exact(4);
            for (corners, colour) in corners.zip(colours.iter().cycle()) {
                draw(image, &size, corners, colour);
            }
        }
    }
    ctx.set(0, out)
}

pub(crate) fn register(c: &mut Catalog) {
    for (op, colours) in [("DrawBoundingBoxes", false), ("DrawBoundingBoxesV2", true)] {
        let op = c.op(op).doc("Images with the frames of boxes drawn into them.");
        let op = op.input("images: T").input("boxes: float");
        let op = if colours { op.input("colors: float") } else { op };
        op.output("output: T")
            .attr("T: {float, half} = DT_FLOAT")
            .shape(|c| Ok(vec![c.input(0).merge(&PartialShape::of_rank(4))?]))
            .cpu(per_dtype!([Float f32, Half f16], T => draw_boxes::<T>));
    }
    c.no_gradient(&["DrawBoundingBoxes"]);
}
