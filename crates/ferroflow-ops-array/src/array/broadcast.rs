//! BroadcastTo, BroadcastArgs, BroadcastGradientArgs.

use super::args::{index_tensor, to_shape};
use super::walk::{self, Walk};
use crate::prelude::*;

/// `x` repeated to fill `shape`.
pub(crate) fn broadcast_to(x: &Tensor, shape: &Shape) -> Result<Tensor> {
    if x.shape() == shape {
        return Ok(x.clone());
    }
    let Some(missing) = shape.rank().checked_sub(x.rank()) else {
        bail!(
            InvalidArgument,
            "Rank of input ({}) must be no greater than rank of output shape ({}).",
            x.rank(),
            shape.rank()
        );
    };
    let mut strides = vec![0isize; missing];
    for ((&have, &want), stride) in
        x.shape().iter().zip(&shape[missing..]).zip(walk::strides(x.shape()))
    {
        ensure!(
            have == want || have == 1,
            InvalidArgument,
            "Incompatible shapes: {} vs. {shape}",
            x.shape()
        );
        strides.push(if have == 1 { 0 } else { stride });
    }
    let mut out = x.alloc_beside(x.dtype(), shape.clone())?;
    Walk::gather(shape, &strides, 0).copy(x, &mut out)?;
    Ok(out)
}

fn broadcast_to_op(ctx: &mut Ctx<'_>) -> Result<()> {
    let shape = ctx.input(1)?;
    ensure!(
        shape.rank() == 1,
        InvalidArgument,
        "shape must be a vector of {{int32,int64}}, got shape {}",
        shape.shape()
    );
    let shape = to_shape(&shape.to_indices()?)?;
    let out = broadcast_to(ctx.input(0)?, &shape)?;
    ctx.set(0, out)
}

/// Two shapes as vectors of equal length, padded with ones on the left.
fn aligned(ctx: &Ctx<'_>) -> Result<[Vec<i64>; 2]> {
    let mut both = [Vec::new(), Vec::new()];
    for (i, dims) in both.iter_mut().enumerate() {
        let t = ctx.input(i)?;
        ensure!(t.rank() == 1, InvalidArgument, "In[{i}] must be a vector.{}", t.shape());
        *dims = t.to_indices()?;
    }
    let [a, b] = &both;
    let text = |dims: &[i64]| dims.iter().map(|d| d.to_string()).collect::<Vec<_>>().join(",");
    let fit = a.iter().rev().zip(b.iter().rev()).all(|(x, y)| x == y || *x == 1 || *y == 1);
    ensure!(fit, InvalidArgument, "Incompatible shapes: [{}] vs. [{}]", text(a), text(b));
    let rank = a.len().max(b.len());
    for dims in &mut both {
        dims.splice(0..0, std::iter::repeat_n(1, rank - dims.len()));
    }
    Ok(both)
}

fn broadcast_args(ctx: &mut Ctx<'_>) -> Result<()> {
    let [a, b] = aligned(ctx)?;
    let dims: Vec<i64> = a.iter().zip(&b).map(|(&x, &y)| if x == 1 { y } else { x }).collect();
    let dtype = ctx.input(0)?.dtype();
    ctx.set(0, index_tensor(dtype, [dims.len()], &dims)?)
}

/// The axes along which the gradient of a broadcast is summed, for each side.
fn broadcast_gradient_args(ctx: &mut Ctx<'_>) -> Result<()> {
    let dtype = ctx.input(0)?.dtype();
    // Equal shapes need no sums, not even over dimensions of size one.
    let equal = ctx.input(0)? == ctx.input(1)?;
    let [a, b] = aligned(ctx)?;
    for (i, mine) in [a, b].into_iter().enumerate() {
        let axes: Vec<i64> =
            (0..mine.len()).filter(|&d| !equal && mine[d] == 1).map(|d| d as i64).collect();
        ctx.set(i, index_tensor(dtype, [axes.len()], &axes)?)?;
    }
    Ok(())
}

pub(crate) fn register(c: &mut Catalog) {
    c.op("BroadcastTo")
        .work(work::of_shape::<1>)
        .doc("Repeats a tensor to fill a shape.")
        .input("input: T")
        .input("shape: Tidx")
        .output("output: T")
        .attr("T: type")
        .attr("Tidx: {int32, int64} = DT_INT32")
        .shape(|c| Ok(vec![c.shape_from(1)]))
        .anywhere()
        .host_inputs(&["shape"])
        .gpu_rows(GpuRows::Broadcast)
        .cpu_fn(broadcast_to_op);
    c.op("BroadcastArgs")
        .doc("The shape that two shapes broadcast to.")
        .input("s0: T")
        .input("s1: T")
        .output("r0: T")
        .attr("T: {int32, int64} = DT_INT32")
        .shape(|c| {
            let rank = c.input(0).dim(0).zip(c.input(1).dim(0)).map(|(a, b)| a.max(b));
            Ok(vec![PartialShape::new([rank])])
        })
        .anywhere()
        .host_inputs(&["s0", "s1"])
        .host_outputs(&["r0"])
        .cpu_fn(broadcast_args);
    c.op("BroadcastGradientArgs")
        .doc("The axes over which gradients are summed after two shapes were broadcast.")
        .input("s0: T")
        .input("s1: T")
        .output("r0: T")
        .output("r1: T")
        .attr("T: {int32, int64} = DT_INT32")
        .shape(shape::vector)
        .anywhere()
        .host_inputs(&["s0", "s1"])
        .host_outputs(&["r0", "r1"])
        .cpu_fn(broadcast_gradient_args);
    c.gradient("BroadcastTo", |g, dy| {
        Ok(g.only(g.unbroadcast_one(dy[0], g.input(0), g.output(0))))
    });
    c.no_gradient(&["BroadcastGradientArgs"]);
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::testing::{Check, check};

    fn pair(op: &str, a: &[i32], b: &[i32]) -> Check<'static> {
        check(op).input(Tensor::vector(a)).input(Tensor::vector(b))
    }

    #[test]
    fn tensors_are_broadcast() {
        let x = Tensor::from_slice([2, 1], &[1i32, 2]).unwrap();
        let to = |shape: &[i32]| check("BroadcastTo").input(x.clone()).input(Tensor::vector(shape));
        to(&[2, 2, 3]).gives(
            Tensor::from_slice([2, 2, 3], &[1i32, 1, 1, 2, 2, 2, 1, 1, 1, 2, 2, 2]).unwrap(),
        );
        to(&[2, 0]).gives(Tensor::zeros(DType::Int32, [2, 0]).unwrap());
        to(&[2]).fails(
            Code::InvalidArgument,
            "Rank of input (2) must be no greater than rank of output shape (1).",
        );
        to(&[3, 1]).fails(Code::InvalidArgument, "Incompatible shapes: [2,1] vs. [3,1]");
        to(&[-1, 1]).fails(Code::InvalidArgument, "Dimension -1 must be >= 0");
        check("BroadcastTo")
            .input(Tensor::string("a"))
            .input(Tensor::vector(&[2i64]))
            .gives(Tensor::from_strings([2], vec!["a".into(), "a".into()]).unwrap());
    }

    #[test]
    fn shapes_are_broadcast() {
        pair("BroadcastArgs", &[2, 1], &[3]).gives(Tensor::vector(&[2i32, 3]));
        pair("BroadcastArgs", &[], &[3]).gives(Tensor::vector(&[3i32]));
        pair("BroadcastArgs", &[0, 1], &[5]).gives(Tensor::vector(&[0i32, 5]));
        pair("BroadcastArgs", &[2, 3], &[3, 3])
            .fails(Code::InvalidArgument, "Incompatible shapes: [2,3] vs. [3,3]");
        check("BroadcastArgs")
            .input(Tensor::scalar(2i32))
            .input(Tensor::vector(&[3i32]))
            .fails(Code::InvalidArgument, "In[0] must be a vector.[]");
    }

    #[test]
    fn gradients_are_summed_over_what_was_broadcast() {
        let cases: [(&[i32], &[i32], &[i32], &[i32]); 7] = [
            (&[2, 3], &[2, 3], &[], &[]),
            (&[2, 1, 4], &[3, 1], &[1], &[0, 2]),
            (&[1, 1], &[1], &[0, 1], &[0, 1]),
            (&[1], &[1], &[], &[]),
            (&[1, 2], &[2], &[0], &[0]),
            (&[], &[2], &[0], &[]),
            (&[1, 2, 1], &[1, 1, 1], &[0, 2], &[0, 1, 2]),
        ];
        for (a, b, ra, rb) in cases {
            let out = pair("BroadcastGradientArgs", a, b).run().unwrap();
            assert_eq!(out, [Tensor::vector(ra), Tensor::vector(rb)], "{a:?} {b:?}");
        }
    }
}
