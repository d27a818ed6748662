//! UnravelIndex.

use super::args::index_tensor;
use crate::prelude::*;

fn unravel_index(ctx: &mut Ctx<'_>) -> Result<()> {
    let (indices, dims) = (ctx.input(0)?, ctx.input(1)?);
    ensure!(
        indices.rank() <= 1,
        InvalidArgument,
        "The indices can only be scalar or vector, got \"{}\"",
        indices.shape()
    );
    ensure!(
        dims.rank() == 1,
        InvalidArgument,
        "The indices can only be 1-D, got \"{}\"",
        dims.shape()
    );
    let sizes = dims.to_indices()?;
    let largest = if dims.dtype() == DType::Int32 { i32::MAX as i64 } else { i64::MAX };
    let mut product = 1i64;
    for (i, &d) in sizes.iter().enumerate() {
        ensure!(
            d != 0,
            InvalidArgument,
            "Input dims cannot contain a dim of zero, but dims contains zero at index {i}"
        );
        ensure!(
            d > 0,
            InvalidArgument,
            "Input dims cannot be negative. Got dim = {d} at index {i}"
        );
        product = match product.checked_mul(d).filter(|&p| p <= largest) {
            Some(product) => product,
            None => {
                bail!(InvalidArgument, "Input dims product is causing integer overflow: {sizes:?}")
            }
        };
    }
    let values = indices.to_indices()?;
    ensure!(
        values.iter().all(|v| (0..product).contains(v)),
        InvalidArgument,
        "index is out of bound as with dims"
    );
    let shape = match indices.rank() {
        0 => Shape::vector(sizes.len()),
        _ => Shape::from([sizes.len(), values.len()]),
    };
    let mut out = Vec::with_capacity(shape.checked_elements()?);
    let mut stride = product;
    for d in sizes {
        stride /= d;
        out.extend(values.iter().map(|v| v / stride % d));
    }
    let out = index_tensor(indices.dtype(), shape, &out)?;
    ctx.set(0, out)
}

pub(crate) fn register(c: &mut Catalog) {
    c.op("UnravelIndex")
        .doc("The coordinates of elements given by their place in row-major order.")
        .input("indices: Tidx")
        .input("dims: Tidx")
        .output("output: Tidx")
        .attr("Tidx: {int32, int64} = DT_INT32")
        .shape(|c| {
            let (indices, dims) = (c.input(0), c.input(1));
            Ok(vec![match indices.rank() {
                Some(0) => PartialShape::new([dims.dim(0)]),
                Some(_) => PartialShape::new([dims.dim(0), indices.dim(0)]),
                None => PartialShape::unknown(),
            }])
        })
        .cpu_fn(unravel_index);
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::testing::{Check, check};

    fn unravel(indices: &[i32], dims: &[i32]) -> Check<'static> {
        check("UnravelIndex").input(Tensor::vector(indices)).input(Tensor::vector(dims))
    }

    #[test]
    fn places_become_coordinates() {
        unravel(&[5, 11], &[3, 4]).gives(Tensor::from_slice([2, 2], &[1i32, 2, 1, 3]).unwrap());
        unravel(&[], &[3, 4]).gives(Tensor::zeros(DType::Int32, [2, 0]).unwrap());
        check("UnravelIndex")
            .input(Tensor::scalar(5i64))
            .input(Tensor::vector(&[3i64, 4]))
            .gives(Tensor::vector(&[1i64, 1]));
    }

    #[test]
    fn impossible_places_are_refused() {
        for (index, dims, text) in [
            (12, &[3, 4][..], "index is out of bound as with dims"),
            (-1, &[3, 4], "index is out of bound as with dims"),
            (3, &[], "index is out of bound as with dims"),
            (
                0,
                &[0, 4],
                "Input dims cannot contain a dim of zero, but dims contains zero at index 0",
            ),
            (3, &[-3, 4], "Input dims cannot be negative. Got dim = -3 at index 0"),
            (3, &[1 << 30, 4], "Input dims product is causing integer overflow"),
        ] {
            unravel(&[index], dims).fails(Code::InvalidArgument, text);
        }
    }
}
