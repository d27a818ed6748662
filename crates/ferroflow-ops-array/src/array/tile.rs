//! Tile and TileGrad.

use super::args::require_rank;
use super::walk::{self, Walk};
use crate::prelude::*;

fn multiples(x: &Tensor, multiples: &Tensor) -> Result<Vec<i64>> {
    ensure!(
        multiples.rank() == 1,
        InvalidArgument,
        "Expected multiples to be 1-D, but got shape {}",
        multiples.shape()
    );
    ensure!(
        multiples.elements() == x.rank(),
        InvalidArgument,
        "Expected multiples argument to be a vector of length {} but got length {}",
        x.rank(),
        multiples.elements()
    );
    let multiples = multiples.to_indices()?;
    for (i, &m) in multiples.iter().enumerate() {
        ensure!(m >= 0, InvalidArgument, "Expected multiples[{i}] >= 0, but got {m}");
    }
    Ok(multiples)
}

fn tile(ctx: &mut Ctx<'_>) -> Result<()> {
    let x = ctx.input(0)?;
    let multiples = multiples(x, ctx.input(1)?)?;
    if multiples.iter().all(|&m| m == 1) {
        let x = ctx.take(0)?;
        return ctx.set(0, x);
    }
    let dims: Vec<i64> =
        x.shape().iter().zip(&multiples).map(|(&d, m)| (d as i64).saturating_mul(*m)).collect();
    let shape = Shape::from_dims(&dims)?;
    let mut out = x.alloc_beside(x.dtype(), shape.clone())?;
    if !shape.contains(&0) {
        let mut walk = Walk::new(0, 0);
        let strides = walk::strides(x.shape()).into_iter().zip(walk::strides(&shape));
        for ((&dim, &times), (from, to)) in x.shape().iter().zip(&multiples).zip(strides) {
            walk.then(times as usize, 0, dim as isize * to).then(dim, from, to);
        }
        walk.copy(x, &mut out)?;
    }
    ctx.set(0, out)
}

/// Dimension `i` of the output, given the input's dimension and the number of repeats.
fn tiled(c: &ShapeCtx<'_>, dim: fn(usize, usize) -> Option<usize>) -> Result<Vec<PartialShape>> {
    let (input, times) = (c.input(0), c.constant_ints(1));
    require_rank(&c.input(1), 1)?;
    if let Some(rank) = c.input(1).dim(0) {
        require_rank(&input, rank)?;
    }
    let Some(rank) = input.rank().or(c.input(1).dim(0)).filter(|&r| r <= 254) else {
        return shape::unknown(c);
    };
    let dims = (0..rank).map(|i| {
        let times = usize::try_from(*times.as_ref()?.get(i)?).ok()?;
        dim(input.dim(i)?, times)
    });
    Ok(vec![PartialShape::new(dims)])
}

/// The sum of the tiles.
fn tile_grad<T: Num>(ctx: &mut Ctx<'_>) -> Result<()> {
    let x = ctx.input(0)?;
    let multiples = multiples(x, ctx.input(1)?)?;
    let mut dims = Vec::with_capacity(x.rank());
    for (i, (&d, &m)) in x.shape().iter().zip(&multiples).enumerate() {
        ensure!(
            m > 0 && (d as i64) % m == 0,
            InvalidArgument,
            "Expected input_dim[{i}] to be divisible by multiples[{i}], but got {d} and {m}"
        );
        dims.push(d / m as usize);
    }
    let mut out = Tensor::zeros(T::DTYPE, dims.as_slice())?;
    let sums = out.as_mut_slice::<T>()?;
    let strides = Shape::from(dims.as_slice()).strides();
    let mut at = vec![0usize; dims.len()];
    for &v in x.as_slice::<T>()? {
        let to: usize = at.iter().zip(&dims).zip(&strides).map(|((a, d), s)| (a % d) * s).sum();
        sums[to] = sums[to].add(v);
        for (a, d) in at.iter_mut().zip(x.shape().iter()).rev() {
            *a += 1;
            if *a < *d {
                break;
            }
            *a = 0;
        }
    }
    ctx.set(0, out)
}

pub(crate) fn register(c: &mut Catalog) {
    c.op("Tile")
        .work(work::any)
        .doc("Repeats a tensor, in each dimension as often as `multiples` says.")
        .input("input: T")
        .input("multiples: Tmultiples")
        .output("output: T")
        .attr("T: type")
        .attr("Tmultiples: {int32, int64} = DT_INT32")
        .shape(|c| tiled(c, |dim, times| dim.checked_mul(times)))
        .anywhere()
        .host_inputs(&["multiples"])
        .cpu_fn(tile);
    c.op("TileGrad")
        .doc("The sum of the tiles of a tensor.")
        .input("input: T")
        .input("multiples: int32")
        .output("output: T")
        .attr("T: type")
        .shape(|c| tiled(c, |dim, times| dim.checked_div(times)))
        .cpu(per_dtype!(NUMBER, T => tile_grad::<T>));
    c.gradient("Tile", |g, dy| {
        let (x, multiples) = (g.input(0), g.input(1));
        let pairs = [multiples, x.shape_as(multiples.dtype())];
        let pairs = g.call_with("Pack", &pairs, Attrs::new().with("axis", 1i64));
        let apart = pairs.reshape(g.ints(&[-1]));
        let axes = match x.rank() {
            Some(rank) => g.ints(&(0..rank as i64).map(|i| 2 * i).collect::<Vec<_>>()),
            None => g.range(x.rank_term()) * 2.0,
        };
        Ok(g.only(dy[0].reshape(apart).sum(axes, false)))
    });
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::testing::{Check, check};

    fn tile(multiples: &[i64]) -> Check<'static> {
        let x = Tensor::from_slice([2, 2], &[1i32, 2, 3, 4]).unwrap();
        check("Tile").input(x).input(Tensor::vector(multiples))
    }

    #[test]
    fn tensors_are_repeated() {
        tile(&[1, 2]).gives(Tensor::from_slice([2, 4], &[1i32, 2, 1, 2, 3, 4, 3, 4]).unwrap());
        tile(&[2, 1]).gives(Tensor::from_slice([4, 2], &[1i32, 2, 3, 4, 1, 2, 3, 4]).unwrap());
        tile(&[0, 3]).gives(Tensor::zeros(DType::Int32, [0, 6]).unwrap());
        check("Tile")
            .input(Tensor::from_strings([1], vec!["a".into()]).unwrap())
            .input(Tensor::vector(&[3i32]))
            .gives(Tensor::from_strings([3], vec!["a".into(); 3]).unwrap());
        check("Tile")
            .input(Tensor::scalar(2.0f32))
            .input(Tensor::vector::<i32>(&[]))
            .gives(Tensor::scalar(2.0f32));
    }

    #[test]
    fn bad_multiples_are_refused() {
        tile(&[1, -1]).fails(Code::InvalidArgument, "Expected multiples[1] >= 0, but got -1");
        tile(&[1]).fails(
            Code::InvalidArgument,
            "Expected multiples argument to be a vector of length 2 but got length 1",
        );
        tile(&[1 << 40, 1 << 40]).fails(Code::InvalidArgument, "elements");
        tile(&[i64::MAX, i64::MAX]).fails(Code::InvalidArgument, "elements");
    }

    #[test]
    fn the_gradient_sums_the_tiles() {
        let dy = Tensor::from_slice([2, 4], &[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]).unwrap();
        check("TileGrad")
            .input(dy)
            .input(Tensor::vector(&[2i32, 2]))
            .gives(Tensor::from_slice([1, 2], &[16.0f32, 20.0]).unwrap());
    }
}
