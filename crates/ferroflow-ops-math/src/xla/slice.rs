//! XlaDynamicSlice, XlaDynamicUpdateSlice: blocks whose start is a value of the step.

use super::{for_each_index, integers};
use crate::prelude::*;

/// Where a block of these dimensions begins: as wanted, but moved so that it lies within.
fn start(shape: &[usize], size: &[usize], wanted: &[i64]) -> Vec<usize> {
    let clamped = |(d, &at): (usize, &i64)| at.clamp(0, (shape[d] - size[d]) as i64) as usize;
    wanted.iter().enumerate().map(clamped).collect()
}

/// Calls `copy(a, b, len)` for each row of a block: its place `a` in the whole tensor, its place
/// `b` in the block, and its length.
fn for_each_row(
    shape: &Shape,
    size: &[usize],
    start: &[usize],
    mut copy: impl FnMut(usize, usize, usize),
) {
    let strides = shape.strides();
    let first: usize = start.iter().zip(&strides).map(|(s, stride)| s * stride).sum();
    let (outer, len) = match size.split_last() {
        Some((&last, outer)) => (outer, last),
        None => (size, 1),
    };
    let mut row = 0;
    for_each_index(outer, |index| {
        let at: usize = index.iter().zip(&strides).map(|(i, stride)| i * stride).sum();
        copy(first + at, row * len, len);
        row += 1;
    });
}

fn dynamic_slice<W: Movable>(ctx: &mut Ctx<'_>) -> Result<()> {
    let x = ctx.input(0)?;
    let wanted = integers(ctx, 1, "start_indices", x.rank())?;
    let size = Shape::from_dims(&integers(ctx, 2, "size_indices", x.rank())?)?;
    ensure!(
        size.iter().zip(x.shape().iter()).all(|(size, dim)| size <= dim),
        InvalidArgument,
        "size_indices {size} exceed the shape of the input, {}",
        x.shape()
    );
    let start = start(x.shape(), &size, &wanted);
    let mut out = Tensor::zeros(x.dtype(), size.clone())?;
    let (from, to) = (W::of(x)?, W::of_mut(&mut out)?);
    for_each_row(x.shape(), &size, &start, |a, b, len| {
        to[b..b + len].clone_from_slice(&from[a..a + len]);
    });
    ctx.set(0, out)
}

fn dynamic_update_slice<W: Movable>(ctx: &mut Ctx<'_>) -> Result<()> {
    let rank = ctx.input(0)?.rank();
    let wanted = integers(ctx, 2, "indices", rank)?;
    let mut out = ctx.take_or_copy(0)?;
    let update = ctx.input(1)?;
    ensure!(
        update.rank() == rank
            && update.shape().iter().zip(out.shape().iter()).all(|(size, dim)| size <= dim),
        InvalidArgument,
        "update of shape {} does not fit into the input, {}",
        update.shape(),
        out.shape()
    );
    let (shape, start) = (out.shape().clone(), start(out.shape(), update.shape(), &wanted));
    let (from, to) = (W::of(update)?, W::of_mut(&mut out)?);
    for_each_row(&shape, update.shape(), &start, |a, b, len| {
        to[a..a + len].clone_from_slice(&from[b..b + len]);
    });
    ctx.set(0, out)
}

pub(crate) fn register(c: &mut Catalog) {
    c.op("XlaDynamicSlice")
        .work(work::any)
        .doc("A block of a tensor; it is moved if it would not lie within.")
        .input("input: T")
        .input("start_indices: Tindices")
        .input("size_indices: Tindices")
        .output("output: T")
        .attr("T: type")
        .attr("Tindices: {int32, int64}")
        .shape(|c| match c.constant_ints(2) {
            Some(size) => Ok(vec![Shape::from_dims(&size)?.into()]),
            None => Ok(vec![c.input(0).rank().map(PartialShape::of_rank).unwrap_or_default()]),
        })
        .cpu(per_width!(W => dynamic_slice::<W>));
    c.op("XlaDynamicUpdateSlice")
        .doc("A tensor with a block replaced; the block is moved if it would not lie within.")
        .input("input: T")
        .input("update: T")
        .input("indices: Tindices")
        .output("output: T")
        .attr("T: type")
        .attr("Tindices: {int32, int64}")
        .shape(shape::same_as_input)
        .cpu(per_width!(W => dynamic_update_slice::<W>));
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::testing::check;

    fn grid() -> Tensor {
        Tensor::from_slice([2, 3], &[1i32, 2, 3, 4, 5, 6]).unwrap()
    }

    #[test]
    fn blocks_are_moved_inside() {
        let slice = |start: [i64; 2], size: [i64; 2]| {
            check("XlaDynamicSlice")
                .input(grid())
                .input(Tensor::vector(&start))
                .input(Tensor::vector(&size))
        };
        slice([0, 1], [2, 2]).gives(Tensor::from_slice([2, 2], &[2i32, 3, 5, 6]).unwrap());
        slice([1, 9], [1, 2]).gives(Tensor::from_slice([1, 2], &[5i32, 6]).unwrap());
        slice([-5, 0], [1, 1]).gives(Tensor::from_slice([1, 1], &[1i32]).unwrap());
        slice([0, 0], [3, 1]).fails(Code::InvalidArgument, "exceed the shape of the input");
        slice([0, 0], [-1, 1]).fails(Code::InvalidArgument, "must be >= 0");
    }

    #[test]
    fn updates_are_moved_inside() {
        let update = |block: Tensor, at: [i32; 2]| {
            let at = Tensor::vector(&at);
            check("XlaDynamicUpdateSlice").input(grid()).input(block).input(at)
        };
        let block = Tensor::from_slice([1, 2], &[7i32, 8]).unwrap();
        update(block.clone(), [1, 2])
            .gives(Tensor::from_slice([2, 3], &[1i32, 2, 3, 4, 7, 8]).unwrap());
        update(Tensor::zeros(DType::Int32, [3, 1]).unwrap(), [0, 0])
            .fails(Code::InvalidArgument, "does not fit");
    }
}
