//! XlaSharding, XlaOptimizationBarrier, XlaReplicaId, XlaBroadcastHelper: what only a compiler
//! needs to know, and shapes.

use super::integers;
use crate::prelude::*;

fn same(ctx: &mut Ctx<'_>) -> Result<()> {
    for i in 0..ctx.num_inputs() {
        let value = ctx.take(i)?;
        ctx.set(i, value)?;
    }
    Ok(())
}

/// The shape of the operand of lower rank, with ones for the dimensions that it does not have.
fn widened(small: &[usize], large: &[usize], dims: &[i64]) -> Result<Shape> {
    let mut shape = vec![1; large.len()];
    let mut next = 0;
    for (&size, &dim) in small.iter().zip(dims) {
        ensure!(
            (next..large.len() as i64).contains(&dim),
            InvalidArgument,
            "broadcast dimensions must rise from 0 to below {}, got {dims:?}",
            large.len()
        );
        ensure!(
            size == 1 || size == large[dim as usize],
            InvalidArgument,
            "dimension {dim} has size {}, it cannot be broadcast with {size}",
            large[dim as usize]
        );
        shape[dim as usize] = size;
        next = dim + 1;
    }
    Ok(shape.into())
}

fn broadcast_helper(ctx: &mut Ctx<'_>) -> Result<()> {
    let (lhs, rhs) = (ctx.input(0)?.shape().clone(), ctx.input(1)?.shape().clone());
    let count = ctx.input(2)?.elements();
    let dims = integers(ctx, 2, "broadcast_dims", count)?;
    let mut outputs = [ctx.input(0)?.clone(), ctx.input(1)?.clone()];
    if dims.is_empty() {
        ensure!(
            lhs.rank() == rhs.rank() || lhs.rank() == 0 || rhs.rank() == 0,
            InvalidArgument,
            "If broadcast_dims is empty, both arguments must have equal rank; argument shapes, or \
             at least one argument must be a scalar: {lhs} and {rhs}"
        );
    } else {
        ensure!(
            count == lhs.rank().min(rhs.rank()),
            InvalidArgument,
            "broadcast_dims must have size equal to the smaller argument rank; got {count} for \
             shapes {lhs} and {rhs}"
        );
        let (which, small, large) =
            if lhs.rank() < rhs.rank() { (0, &lhs, &rhs) } else { (1, &rhs, &lhs) };
        outputs[which] = outputs[which].reshape(widened(small, large, &dims)?)?;
    }
    let [lhs, rhs] = outputs;
    ctx.set(0, lhs)?;
    ctx.set(1, rhs)
}

fn broadcast_shape(c: &ShapeCtx<'_>) -> Result<Vec<PartialShape>> {
    let unknown = vec![PartialShape::unknown(); 2];
    let (lhs, rhs) = (c.input(0), c.input(1));
    let (Some(l), Some(r), Some(dims)) = (lhs.known(), rhs.known(), c.constant_ints(2)) else {
        return Ok(unknown);
    };
    if dims.is_empty() || l.rank() == r.rank() {
        return Ok(vec![lhs, rhs]);
    }
    Ok(match l.rank() < r.rank() {
        true => vec![widened(&l, &r, &dims)?.into(), rhs],
        false => vec![lhs, widened(&r, &l, &dims)?.into()],
    })
}

pub(crate) fn register(c: &mut Catalog) {
    c.op("XlaSharding")
        .doc("Its input; says how a compiler should divide it between devices.")
        .input("input: T")
        .output("output: T")
        .attr("T: type")
        .attr("sharding: string = ''")
        .attr("unspecified_dims: list(int) = []")
        .shape(shape::same_as_input)
        .gradient(|g, dy| {
            let attrs = Attrs::new()
                .with("sharding", g.attrs().string("sharding")?.as_str())
                .with("unspecified_dims", g.attrs().ints("unspecified_dims")?);
            Ok(vec![g.call_with("XlaSharding", &[dy[0]], attrs)])
        })
        .cpu_fn(same);
    c.op("XlaOptimizationBarrier")
        .doc("Its inputs; a compiler moves nothing across it.")
        .input("input: T")
        .output("output: T")
        .attr("T: list(type) >= 0")
        .shape(shape::like_inputs)
        .cpu_fn(same);
    c.op("XlaReplicaId")
        .doc("The number of this replica: 0, because a compiler makes none.")
        .output("id: int32")
        .shape(shape::scalar)
        .cpu(|_| Ok(KernelBox::new(|ctx: &mut Ctx<'_>| ctx.set(0, Tensor::scalar(0i32)))));
    c.op("XlaBroadcastHelper")
        .doc("Two tensors, the one of lower rank with dimensions of size 1 inserted.")
        .input("lhs: T")
        .input("rhs: T")
        .input("broadcast_dims: Tindices")
        .output("lhs_output: T")
        .output("rhs_output: T")
        .attr("T: numbertype")
        .attr("Tindices: {int32, int64}")
        .shape(broadcast_shape)
        .cpu_fn(broadcast_helper);
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::testing::check;

    fn helper(lhs: &[usize], rhs: &[usize], dims: &[i64]) -> Result<Vec<Shape>> {
        let got = check("XlaBroadcastHelper")
            .input(Tensor::zeros(DType::Float, lhs)?)
            .input(Tensor::zeros(DType::Float, rhs)?)
            .input(Tensor::vector(dims))
            .run()?;
        Ok(got.iter().map(|t| t.shape().clone()).collect())
    }

    #[test]
    fn dimensions_of_size_one_are_inserted() {
        let shapes = helper(&[3], &[2, 3, 4], &[1]).unwrap();
        assert_eq!(shapes, [Shape::from([1, 3, 1]), Shape::from([2, 3, 4])]);
        let shapes = helper(&[2, 3], &[], &[]).unwrap();
        assert_eq!(shapes, [Shape::from([2, 3]), Shape::scalar()]);
    }

    #[test]
    fn dimensions_that_do_not_fit_are_refused() {
        for (lhs, rhs, dims) in [
            (&[3][..], &[2, 3][..], &[][..]),
            (&[3], &[2, 3], &[0, 1]),
            (&[3], &[2, 3], &[2]),
            (&[3], &[2, 3], &[0]),
            (&[2, 3], &[2, 3, 4], &[1, 0]),
        ] {
            assert_eq!(helper(lhs, rhs, dims).unwrap_err().code(), Code::InvalidArgument);
        }
    }

    #[test]
    fn sharding_changes_nothing() {
        let x = Tensor::vector(&[1f32, -2.0]);
        check("XlaSharding").input(x.clone()).gives(x.clone());
        check("XlaSharding").input(x).gradient();
    }
}
