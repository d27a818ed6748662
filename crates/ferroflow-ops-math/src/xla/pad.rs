//! XlaPad: padding at the edges, which may be negative, and between elements.

use super::integers;
use crate::prelude::*;

/// Where the elements along one dimension go.
#[derive(Clone, Copy, Debug)]
struct Padding {
    low: i64,
    interior: i64,
    /// The size of the result.
    output: i64,
}

impl Padding {
    fn new(dim: usize, low: i64, high: i64, interior: i64) -> Result<Padding> {
        ensure!(
            interior >= 0,
            InvalidArgument,
            "padding_interior must be non-negative, got {interior}"
        );
        let between = Ord::max(dim as i64 - 1, 0).saturating_mul(interior);
        let output = (dim as i64).saturating_add(between).saturating_add(low).saturating_add(high);
        ensure!(
            output >= 0,
            InvalidArgument,
            "padding of {low} and {high} leaves {output} elements of a dimension of {dim}"
        );
        Ok(Padding { low, interior, output })
    }

    /// The place of element `i` in the result, if it has one.
    fn place(self, i: usize) -> Option<usize> {
        let at = (i as i64).saturating_mul(self.interior + 1).saturating_add(self.low);
        usize::try_from(at).ok().filter(|_| at < self.output)
    }
}

fn pad<W: Movable>(ctx: &mut Ctx<'_>) -> Result<()> {
    let (x, value) = (ctx.input(0)?, ctx.input(1)?);
    ensure!(
        value.rank() == 0,
        InvalidArgument,
        "padding_value must be a scalar, got shape {}",
        value.shape()
    );
    let rank = x.rank();
    let low = integers(ctx, 2, "padding_low", rank)?;
    let high = integers(ctx, 3, "padding_high", rank)?;
    let interior = integers(ctx, 4, "padding_interior", rank)?;
    let paddings = (0..rank)
        .map(|d| Padding::new(x.shape()[d], low[d], high[d], interior[d]))
        .collect::<Result<Vec<_>>>()?;
    let dims: Vec<i64> = paddings.iter().map(|p| p.output).collect();
    let mut out = Tensor::zeros(x.dtype(), Shape::from_dims(&dims)?)?;
    let strides = out.shape().strides();
    let from = W::of(x)?;
    let to = W::of_mut(&mut out)?;
    to.fill(W::of(value)?[0].clone());
    let mut next = 0;
    super::for_each_index(x.shape(), |index| {
        let place = index.iter().zip(&paddings).zip(&strides);
        let at = place.map(|((&i, p), stride)| Some(p.place(i)? * stride)).sum::<Option<usize>>();
        if let Some(at) = at {
            to[at] = from[next].clone();
        }
        next += 1;
    });
    ctx.set(0, out)
}

fn pad_shape(c: &ShapeCtx<'_>) -> Result<Vec<PartialShape>> {
    let x = c.input(0);
    let Some(dims) = x.dims() else {
        return Ok(vec![PartialShape::unknown()]);
    };
    let (low, high, interior) = (c.constant_ints(2), c.constant_ints(3), c.constant_ints(4));
    let (Some(low), Some(high), Some(interior)) = (low, high, interior) else {
        return Ok(vec![PartialShape::of_rank(dims.len())]);
    };
    for list in [&low, &high, &interior] {
        ensure!(
            list.len() == dims.len(),
            InvalidArgument,
            "XlaPad needs {} paddings, got {}",
            dims.len(),
            list.len()
        );
    }
    let padded = dims.iter().enumerate().map(|(d, dim)| {
        let Some(dim) = *dim else { return Ok(None) };
        Ok(Some(Padding::new(dim, low[d], high[d], interior[d])?.output as usize))
    });
    Ok(vec![PartialShape::new(padded.collect::<Result<Vec<_>>>()?)])
}

pub(crate) fn register(c: &mut Catalog) {
    c.op("XlaPad").work(work::any)
        .doc("Pads the edges of a tensor, and between its elements; crops where padding is negative.")
        .input("input: T")
        .input("padding_value: T")
        .input("padding_low: Tindices")
        .input("padding_high: Tindices")
        .input("padding_interior: Tindices")
        .output("output: T")
        .attr("T: type")
        .attr("Tindices: {int32, int64}")
        .shape(pad_shape)
        .cpu(per_width!(W => pad::<W>));
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::testing::{Check, check};

    fn pad(low: i64, high: i64, interior: i64) -> Check<'static> {
        check("XlaPad")
            .input(Tensor::vector(&[1i32, 2, 3]))
            .input(Tensor::scalar(9i32))
            .input(Tensor::vector(&[low]))
            .input(Tensor::vector(&[high]))
            .input(Tensor::vector(&[interior]))
    }

    #[test]
    fn padding_is_inserted_and_negative_padding_crops() {
        pad(1, 2, 1).gives(Tensor::vector(&[9i32, 1, 9, 2, 9, 3, 9, 9]));
        pad(-1, -1, 1).gives(Tensor::vector(&[9i32, 2, 9]));
        pad(-2, 1, 0).gives(Tensor::vector(&[3i32, 9]));
    }

    #[test]
    fn sizes_that_do_not_exist_are_refused() {
        pad(-4, 0, 0).fails(Code::InvalidArgument, "leaves -1 elements");
        pad(0, 0, -1).fails(Code::InvalidArgument, "must be non-negative");
        pad(i64::MAX, 1, 0).run().unwrap_err();
    }
}
