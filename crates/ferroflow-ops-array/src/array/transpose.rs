//! Transpose and ConjugateTranspose.

use super::args::require_rank;
use super::walk::{self, Walk};
use crate::prelude::*;

/// `perm`, checked to be a permutation of the dimensions of a tensor of this rank.
fn permutation(perm: &Tensor, rank: usize) -> Result<Vec<usize>> {
    ensure!(perm.rank() == 1, InvalidArgument, "perm must be rank 1, got shape {}", perm.shape());
    let perm = perm.to_indices()?;
    ensure!(
        perm.len() == rank,
        InvalidArgument,
        "transpose expects a vector of size {rank}. But input(1) is a vector of size {}",
        perm.len()
    );
    let mut seen = vec![false; rank];
    for &d in &perm {
        let known = usize::try_from(d).ok().and_then(|d| seen.get_mut(d));
        match known {
            Some(seen) => *seen = true,
            None => bail!(InvalidArgument, "{d} is out of range [0 .. {rank})"),
        }
    }
    if let Some(missing) = seen.iter().position(|seen| !seen) {
        let text: Vec<String> = perm.iter().map(|d| d.to_string()).collect();
        bail!(InvalidArgument, "{missing} is missing from {{{}}}.", text.join(","));
    }
    Ok(perm.iter().map(|&d| d as usize).collect())
}

fn transposed(ctx: &mut Ctx<'_>) -> Result<Tensor> {
    let x = ctx.input(0)?;
    let perm = permutation(ctx.input(1)?, x.rank())?;
    let dims: Vec<usize> = perm.iter().map(|&d| x.shape()[d]).collect();
    // Dimensions of size one do not matter: if the others keep their order, no element moves.
    if perm.iter().filter(|&&d| x.shape()[d] != 1).is_sorted() {
        return ctx.take(0)?.into_shape(dims);
    }
    let strides = walk::strides(x.shape());
    let strides: Vec<isize> = perm.iter().map(|&d| strides[d]).collect();
    let mut out = x.alloc_beside(x.dtype(), dims.as_slice())?;
    Walk::gather(&dims, &strides, 0).copy(x, &mut out)?;
    Ok(out)
}

fn transpose(ctx: &mut Ctx<'_>) -> Result<()> {
    let out = transposed(ctx)?;
    ctx.set(0, out)
}

fn conjugate_transpose(ctx: &mut Ctx<'_>) -> Result<()> {
    let mut out = transposed(ctx)?;
    match out.dtype() {
        DType::Complex64 => {
            out.as_mut_slice::<Complex32>()?.iter_mut().for_each(|z| *z = z.conj());
        }
        DType::Complex128 => {
            out.as_mut_slice::<Complex64>()?.iter_mut().for_each(|z| *z = z.conj());
        }
        _ => {}
    }
    ctx.set(0, out)
}

fn transpose_shape(c: &ShapeCtx<'_>) -> Result<Vec<PartialShape>> {
    let (input, perm) = (c.input(0), c.input(1));
    require_rank(&perm, 1)?;
    if let Some(rank) = perm.dim(0) {
        require_rank(&input, rank)?;
    }
    let Some(rank) = input.rank().or(perm.dim(0)).filter(|&r| r <= 254) else {
        return shape::unknown(c);
    };
    let Some(perm) = c.constant_ints(1) else { return Ok(vec![PartialShape::of_rank(rank)]) };
    let mut dims = Vec::with_capacity(rank);
    for &d in &perm {
        ensure!(
            d.unsigned_abs() < rank as u64,
            InvalidArgument,
            "perm dim {d} is out of range of input rank {rank}"
        );
        // As in TensorFlow, a dimension that is named twice is an error of the step, not of the
        // graph.
        dims.push(usize::try_from(d).ok().and_then(|d| input.dim(d)));
    }
    Ok(vec![PartialShape::new(dims)])
}

pub(crate) fn register(c: &mut Catalog) {
    c.op("Transpose")
        .doc("Puts the dimensions of a tensor in another order.")
        .input("x: T")
        .input("perm: Tperm")
        .output("y: T")
        .attr("T: type")
        .attr("Tperm: {int32, int64} = DT_INT32")
        .expensive()
        .shape(transpose_shape)
        .anywhere()
        .host_inputs(&["perm"])
        .moves(OpMoves::Transpose)
        .cpu_fn(transpose);
    c.op("ConjugateTranspose")
        .doc("Puts the dimensions of a tensor in another order and conjugates its elements.")
        .input("x: T")
        .input("perm: Tperm")
        .output("y: T")
        .attr("T: type")
        .attr("Tperm: {int32, int64} = DT_INT32")
        .expensive()
        .shape(transpose_shape)
        .cpu_fn(conjugate_transpose);
    for op in ["Transpose", "ConjugateTranspose"] {
        c.gradient(op, move |g, dy| {
            let back = g.call("InvertPermutation", &[g.input(1)]);
            Ok(g.only(g.call(op, &[dy[0], back])))
        });
    }
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::testing::{Check, check};

    fn transpose(x: Tensor, perm: &[i32]) -> Check<'static> {
        check("Transpose").input(x).input(Tensor::vector(perm))
    }

    fn x() -> Tensor {
        Tensor::from_slice([2, 3], &[1i16, 2, 3, 4, 5, 6]).unwrap()
    }

    #[test]
    fn dimensions_change_places() {
        transpose(x(), &[1, 0]).gives(Tensor::from_slice([3, 2], &[1i16, 4, 2, 5, 3, 6]).unwrap());
        transpose(x(), &[0, 1]).gives(x());
        let cube = Tensor::from_slice([2, 2, 2], &[0i64, 1, 2, 3, 4, 5, 6, 7]).unwrap();
        transpose(cube.clone(), &[2, 0, 1])
            .gives(Tensor::from_slice([2, 2, 2], &[0i64, 2, 4, 6, 1, 3, 5, 7]).unwrap());
        transpose(cube, &[0, 2, 1])
            .gives(Tensor::from_slice([2, 2, 2], &[0i64, 2, 1, 3, 4, 6, 5, 7]).unwrap());
        let empty = Tensor::zeros(DType::Float, [2, 0, 3]).unwrap();
        transpose(empty, &[2, 1, 0]).gives(Tensor::zeros(DType::Float, [3, 0, 2]).unwrap());
    }

    #[test]
    fn moving_ones_moves_nothing() {
        let row = Tensor::from_slice([1, 3], &[1.0f32, 2.0, 3.0]).unwrap();
        let out = transpose(row.clone(), &[1, 0]).run().unwrap();
        assert!(out[0].shares_storage(&row));
        assert_eq!(out[0].shape()[..], [3, 1]);
    }

    #[test]
    fn complex_numbers_are_conjugated() {
        let z = Complex32::new;
        check("ConjugateTranspose")
            .input(Tensor::from_slice([1, 2], &[z(1.0, 2.0), z(0.0, 3.0)]).unwrap())
            .input(Tensor::vector(&[1i32, 0]))
            .gives(Tensor::from_slice([2, 1], &[z(1.0, -2.0), z(0.0, -3.0)]).unwrap());
        check("ConjugateTranspose").input(x()).input(Tensor::vector(&[0i64, 1])).gives(x());
    }

    #[test]
    fn only_permutations_will_do() {
        for (perm, text) in [
            (&[0, 0][..], "1 is missing from {0,0}."),
            (&[0, 2], "2 is out of range [0 .. 2)"),
            (&[-1, 0], "-1 is out of range [0 .. 2)"),
            (&[0], "transpose expects a vector of size 2. But input(1) is a vector of size 1"),
        ] {
            transpose(x(), perm).fails(Code::InvalidArgument, text);
        }
        check("Transpose")
            .input(x())
            .input(Tensor::scalar(0i32))
            .fails(Code::InvalidArgument, "perm must be rank 1, got shape []");
    }
}
