//! Slice.

use super::args::require_rank;
use super::walk::{self, Walk};
use crate::prelude::*;

/// The block of `x` that begins at `begin` and has shape `size`. It must lie within `x`. It shares
/// storage with `x` when it consists of whole rows.
pub(crate) fn block(x: &Tensor, begin: &[usize], size: &[usize]) -> Result<Tensor> {
    if x.shape()[..] == *size {
        return Ok(x.clone());
    }
    if x.rank() > 0 && x.shape()[1..] == size[1..] {
        return x.rows(begin[0], size[0]);
    }
    let strides = walk::strides(x.shape());
    let from = begin.iter().zip(&strides).map(|(b, s)| b * *s as usize).sum();
    let mut out = x.alloc_beside(x.dtype(), size)?;
    Walk::gather(size, &strides, from).copy(x, &mut out)?;
    Ok(out)
}

/// The start and the size of the slice, with a size of -1 ("all the rest") resolved.
fn bounds(shape: &[usize], begin: &[i64], size: &[i64]) -> Result<(Vec<usize>, Vec<usize>)> {
    let (mut from, mut len) = (Vec::with_capacity(shape.len()), Vec::with_capacity(shape.len()));
    for (i, (&b, &s)) in begin.iter().zip(size).enumerate() {
        let dim = shape[i] as i64;
        ensure!(
            dim > 0 || b == 0 && (s == 0 || s == -1),
            InvalidArgument,
            "Expected begin[{i}] == 0 (got {b}) and size[{i}] == 0 (got {s}) when \
             input.dim_size({i}) == 0"
        );
        ensure!(
            0 <= b && b <= dim,
            InvalidArgument,
            "Expected begin[{i}] in [0, {dim}], but got {b}"
        );
        let s = if s == -1 { dim - b } else { s };
        ensure!(
            0 <= s && s <= dim - b,
            InvalidArgument,
            "Expected size[{i}] in [0, {}], but got {s}",
            dim - b
        );
        from.push(b as usize);
        len.push(s as usize);
    }
    Ok((from, len))
}

fn slice(ctx: &mut Ctx<'_>) -> Result<()> {
    let (x, begin, size) = (ctx.input(0)?, ctx.input(1)?, ctx.input(2)?);
    ensure!(
        begin.shape()[..] == [x.rank()] && size.shape()[..] == [x.rank()],
        InvalidArgument,
        "Expected begin and size arguments to be 1-D tensors of size {}, but got shapes {} and {} \
         instead.",
        x.rank(),
        begin.shape(),
        size.shape()
    );
    let (from, len) = bounds(x.shape(), &begin.to_indices()?, &size.to_indices()?)?;
    let out = block(x, &from, &len)?;
    ctx.set(0, out)
}

fn slice_shape(c: &ShapeCtx<'_>) -> Result<Vec<PartialShape>> {
    let input = c.input(0);
    require_rank(&c.input(1), 1)?;
    require_rank(&c.input(2), 1)?;
    let given = c.input(1).merge(&c.input(2))?.dim(0);
    if let Some(rank) = given {
        require_rank(&input, rank)?;
    }
    let rank = input.rank().or(given);
    let (begin, size) = (c.constant_ints(1), c.constant_ints(2));
    let Some(rank) = rank.filter(|&r| r <= 254) else { return shape::unknown(c) };
    let Some(size) = size.filter(|s| s.len() == rank) else {
        return Ok(vec![PartialShape::of_rank(rank)]);
    };
    let mut dims = Vec::with_capacity(rank);
    for (i, &wanted) in size.iter().enumerate() {
        ensure!(wanted >= -1, InvalidArgument, "Dimension {wanted} must be >= -1");
        let from = begin.as_ref().and_then(|b| usize::try_from(*b.get(i)?).ok());
        dims.push(match (usize::try_from(wanted), from, input.dim(i)) {
            (Ok(wanted), ..) => Some(wanted),
            (Err(_), Some(from), Some(dim)) => {
                let Some(rest) = dim.checked_sub(from) else {
                    bail!(
                        InvalidArgument,
                        "Negative dimension size caused by subtracting {from} from {dim}"
                    );
                };
                Some(rest)
            }
            _ => None,
        });
    }
    Ok(vec![PartialShape::new(dims)])
}

pub(crate) fn register(c: &mut Catalog) {
    c.op("Slice")
        .doc("The block of a tensor that begins at `begin` and has shape `size`.")
        .input("input: T")
        .input("begin: Index")
        .input("size: Index")
        .output("output: T")
        .attr("T: type")
        .attr("Index: {int32, int64}")
        .shape(slice_shape)
        .anywhere()
        .host_inputs(&["begin", "size"])
        .cpu_fn(slice);
    c.gradient("Slice", |g, dy| {
        let (x, begin) = (g.input(0), g.input(1));
        let dtype = begin.dtype();
        let after = x.shape_as(dtype) - g.output(0).shape_as(dtype) - begin;
        let paddings = g.call_with("Pack", &[begin, after], Attrs::new().with("axis", 1i64));
        Ok(g.only(g.call("Pad", &[dy[0], paddings])))
    });
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::testing::{Check, check};

    fn x() -> Tensor {
        Tensor::from_slice([2, 3], &[1i32, 2, 3, 4, 5, 6]).unwrap()
    }

    fn slice(begin: &[i64], size: &[i64]) -> Check<'static> {
        check("Slice").input(x()).input(Tensor::vector(begin)).input(Tensor::vector(size))
    }

    #[test]
    fn blocks_are_cut_out() {
        slice(&[0, 1], &[2, -1]).gives(Tensor::from_slice([2, 2], &[2i32, 3, 5, 6]).unwrap());
        slice(&[1, 0], &[1, 3]).gives(Tensor::from_slice([1, 3], &[4i32, 5, 6]).unwrap());
        slice(&[0, 3], &[1, -1]).gives(Tensor::zeros(DType::Int32, [1, 0]).unwrap());
        check("Slice")
            .input(Tensor::string("s"))
            .input(Tensor::vector::<i32>(&[]))
            .input(Tensor::vector::<i32>(&[]))
            .gives(Tensor::string("s"));
    }

    #[test]
    fn whole_rows_share_the_storage() {
        let x = x();
        let begin = Tensor::vector(&[1i32, 0]);
        let size = Tensor::vector(&[1i32, -1]);
        let out = check("Slice").input(x.clone()).input(begin).input(size).run().unwrap();
        assert!(out[0].shares_storage(&x));
    }

    #[test]
    fn blocks_out_of_bounds_are_refused() {
        for (begin, size, text) in [
            ([0, 2], [1, 2], "Expected size[1] in [0, 1], but got 2"),
            ([0, 4], [1, 0], "Expected begin[1] in [0, 3], but got 4"),
            ([0, -1], [1, 1], "Expected begin[1] in [0, 3], but got -1"),
            ([0, 0], [1, -2], "Expected size[1] in [0, 3], but got -2"),
            ([0, 1], [1, i64::MAX], "Expected size[1] in [0, 2]"),
        ] {
            slice(&begin, &size).fails(Code::InvalidArgument, text);
        }
        slice(&[0], &[1]).fails(
            Code::InvalidArgument,
            "1-D tensors of size 2, but got shapes [1] and [1] instead.",
        );
    }
}
