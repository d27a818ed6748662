//! ResizeArea: each pixel is the mean of the area of the input that it covers.

use super::pixels::floats;
use super::resize::{Grid, resized_shape};
use crate::prelude::*;
use ferroflow_op_kit::parallel::for_rows;

/// The input pixels that each of `output` pixels covers, and their weights. Pixels beyond the edge
/// repeat the last one.
fn covers(scale: f32, input: usize, output: usize) -> Vec<Vec<(usize, f32)>> {
    (0..output)
        .map(|i| {
            let (from, to) = (i as f32 * scale, (i + 1) as f32 * scale);
            let (first, end) = (from.floor() as i64, to.ceil() as i64);
            (first..end)
                .map(|at| {
                    let (start, stop) = (at as f32, (at + 1) as f32);
                    let share = match (start < from, stop > to) {
                        (true, true) => scale,
                        (true, false) => stop - from,
                        (false, true) => to - start,
                        (false, false) => 1.0,
                    };
                    (at.clamp(0, input as i64 - 1) as usize, share)
                })
                .collect()
        })
        .collect()
}

struct ResizeArea(Grid);

impl ResizeArea {
    /// Input pixels per output pixel. A single output pixel has no corners to align, so it covers
    /// all.
    fn scale(&self, input: usize, output: usize) -> f32 {
        if input == 1 { 1.0 / output as f32 } else { self.0.scale(input, output) }
    }
}

impl Kernel for ResizeArea {
    fn compute(&self, ctx: &mut Ctx<'_>) -> Result<()> {
        let (from, to) = self.0.forward(ctx)?;
        let mut y = ctx.alloc(DType::Float, to.shape()?)?;
        if y.elements() == 0 {
            return ctx.set(0, y);
        }
        let x = floats(ctx.input(0)?)?;
        let row_scale = self.scale(from.height, to.height);
        let col_scale = self.scale(from.width, to.width);
        let rows = covers(row_scale, from.height, to.height);
        let cols = covers(col_scale, from.width, to.width);
        let scale = 1.0 / (row_scale * col_scale);
        let c = from.channels;
        let cost = (row_scale * from.row() as f32) as usize + to.row();
        for_rows(y.as_mut_slice::<f32>()?, to.row(), cost, |range, y| {
            for (at, y) in range.zip(y.chunks_exact_mut(to.row())) {
                let image = &x[at / to.height * from.image()..];
                for (col, y) in cols.iter().zip(y.chunks_exact_mut(c)) {
                    for (j, y) in y.iter_mut().enumerate() {
                        let mut sum = 0f32;
                        for (row, share) in &rows[at % to.height] {
                            let x = &image[row * from.row()..];
                            let part: f32 = col.iter().map(|(i, w)| x[i * c + j] * w).sum();
                            sum += part * share;
                        }
                        *y = sum * scale;
                    }
                }
            }
        });
        ctx.set(0, y)
    }
}

pub(crate) fn register(c: &mut Catalog) {
    c.op("ResizeArea")
        .doc("Images resized by taking the mean of the area under each pixel.")
        .input("images: T")
        .input("size: int32")
        .output("resized_images: float")
        .attr("T: {int8, uint8, int16, uint16, int32, int64, half, float, double, bfloat16}")
        .attr("align_corners: bool = false")
        .expensive()
        .shape(resized_shape)
        .cpu(|init| Ok(KernelBox::new(ResizeArea(Grid::new(init)?))));
}
