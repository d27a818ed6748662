//! Select and SelectV2: elements from one input or another.

use super::broadcast::Broadcast;
use super::same_shapes;
use crate::prelude::*;
use ferroflow_op_kit::gpu::{self, elementwise::Elementwise};

/// The condition is a scalar, a vector over the leading dimension, or has the shape of the others.
fn select<W: Movable>(ctx: &mut Ctx<'_>) -> Result<()> {
    let (condition, then, other) = (ctx.input(0)?, ctx.input(1)?, ctx.input(2)?);
    if condition.rank() == 0 {
        ensure!(
            then.shape() == other.shape(),
            InvalidArgument,
            "'then' and 'else' must have the same size.  but received: {} vs. {}",
            then.shape(),
            other.shape()
        );
        let chosen = if condition.scalar_value::<bool>()? { 1 } else { 2 };
        let chosen = ctx.take(chosen)?;
        return ctx.set(0, chosen);
    }
    if condition.rank() == 1 && then.rank() != 1 {
        ensure!(
            then.rank() > 0,
            InvalidArgument,
            "'then' must be at least a vector, but saw shape: {}",
            then.shape()
        );
        ensure!(
            then.shape()[0] == condition.elements(),
            InvalidArgument,
            "Number of batches of 'then' must match size of 'cond', but saw: {} vs. {}",
            then.shape()[0],
            condition.elements()
        );
        same_shapes(ctx, 1, 2)?;
    } else {
        same_shapes(ctx, 0, 1)?;
        same_shapes(ctx, 0, 2)?;
    }
    let shape = then.shape().clone();
    let rows = condition.elements();
    pick::<W>(ctx, shape, |take, condition| {
        let row = take.elements().checked_div(rows).unwrap_or(0);
        for (i, &is_then) in condition.iter().enumerate() {
            take.copy(is_then, i * row, i * row, row, false);
        }
    })
}

/// All three broadcast against each other.
fn select_v2<W: Movable>(ctx: &mut Ctx<'_>) -> Result<()> {
    let (c, t, e) = (ctx.input(0)?.shape(), ctx.input(1)?.shape(), ctx.input(2)?.shape());
    let Some(plan) = Broadcast::new([c, t, e]) else {
        bail!(InvalidArgument, "condition {c}, then {t}, and else {e} must be broadcastable");
    };
    let shape = plan.shape().clone();
    let n = shape.checked_elements()?;
    let repeats = [0, 1, 2].map(|k| plan.repeats_in_run(k));
    pick::<W>(ctx, shape, |take, condition| {
        plan.runs(0..n, |at, [c, t, e], len| {
            if repeats[0] {
                let (from, one) = if condition[c] { (t, repeats[1]) } else { (e, repeats[2]) };
                return take.copy(condition[c], at, from, len, one);
            }
            for (i, &is_then) in condition[c..c + len].iter().enumerate() {
                let (from, one) = if is_then { (t, repeats[1]) } else { (e, repeats[2]) };
                take.copy(is_then, at + i, if one { from } else { from + i }, 1, false);
            }
        })
    })
}

const CHOICE: &str = "x ? y : z";

/// [`select`] on a GPU, except for a scalar condition, which broadcasts.
fn select_on_device(init: &KernelInit<'_>) -> Result<KernelBox> {
    let kernel = Elementwise::new(init, CHOICE.to_string())?;
    Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
        let (condition, then) = (ctx.input(0)?, ctx.input(1)?);
        same_shapes(ctx, 1, 2)?;
        let mut shape = condition.shape().clone();
        if condition.rank() == 1 && then.rank() > 1 {
            ensure!(
                then.shape()[0] == condition.elements(),
                InvalidArgument,
                "Number of batches of 'then' must match size of 'cond', but saw: {} vs. {}",
                then.shape()[0],
                condition.elements()
            );
            let ones = std::iter::repeat_n(1, then.rank() - 1);
            shape = std::iter::once(condition.elements()).chain(ones).collect();
        } else if condition.rank() > 0 {
            same_shapes(ctx, 0, 1)?;
        }
        let inputs = vec![ctx.take(0)?.into_shape(shape)?, ctx.take(1)?, ctx.take(2)?];
        let out = kernel.run(ctx.gpu()?, inputs)?;
        ctx.set(0, out)
    }))
}

/// Copies runs of one of two tensors into a third.
struct Take<'a, W> {
    then: &'a [W],
    other: &'a [W],
    out: &'a mut [W],
}

impl<W: Movable> Take<'_, W> {
    fn elements(&self) -> usize {
        self.out.len()
    }

    /// Copies `len` elements from `from` on to `at`, or repeats the one element at `from`.
    fn copy(&mut self, is_then: bool, at: usize, from: usize, len: usize, repeats: bool) {
        let source = if is_then { self.then } else { self.other };
        let to = &mut self.out[at..at + len];
        if repeats {
            to.fill(source[from].clone());
        } else {
            to.clone_from_slice(&source[from..from + len]);
        }
    }
}

fn pick<W: Movable>(
    ctx: &mut Ctx<'_>,
    shape: Shape,
    fill: impl FnOnce(&mut Take<'_, W>, &[bool]),
) -> Result<()> {
    let (condition, then, other) = (ctx.input(0)?, ctx.input(1)?, ctx.input(2)?);
    let mut out = ctx.alloc(then.dtype(), shape)?;
    let mut take = Take { then: W::of(then)?, other: W::of(other)?, out: W::of_mut(&mut out)? };
    fill(&mut take, condition.as_slice::<bool>()?);
    ctx.set(0, out)
}

pub(crate) fn register(c: &mut Catalog) {
    c.op("Select")
        .doc("Elements (or rows) of `t` where the condition is true, of `e` where it is not.")
        .input("condition: bool")
        .input("t: T")
        .input("e: T")
        .output("output: T")
        .attr("T: type")
        .shape(|c| Ok(vec![c.input(1).merge(&c.input(2))?]))
        .gpu(gpu::REAL_OR_BOOL, select_on_device)
        .cpu(per_width!(W => select::<W>));
    c.op("SelectV2")
        .doc("Elements of `t` where the condition is true, of `e` where it is not; all broadcast.")
        .input("condition: bool")
        .input("t: T")
        .input("e: T")
        .output("output: T")
        .attr("T: type")
        .shape(|c| {
            let both = shape::broadcast_shapes(&c.input(1), &c.input(2))?;
            Ok(vec![shape::broadcast_shapes(&c.input(0), &both)?])
        })
        .gpu_elementwise(gpu::REAL_OR_BOOL, CHOICE)
        .cpu(per_width!(W => select_v2::<W>));
    c.gradient("Select", |g, dy| {
        let zeros = g.input(1).zeros_like();
        let [when, dy] = [g.input(0), dy[0]];
        Ok(vec![
            g.none(),
            g.call("Select", &[when, dy, zeros]),
            g.call("Select", &[when, zeros, dy]),
        ])
    });
    c.gradient("SelectV2", |g, dy| {
        let (when, dy, z, zero) = (g.input(0), dy[0], g.output(0), dy[0].number(0.0));
        Ok(vec![
            g.none(),
            g.unbroadcast_one(g.select(when, dy, zero), g.input(1), z),
            g.unbroadcast_one(g.select(when, zero, dy), g.input(2), z),
        ])
    });
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::testing::{Check, check};

    fn on(op: &str, condition: Tensor, then: Tensor, other: Tensor) -> Check<'static> {
        check(op).input(condition).input(then).input(other)
    }

    fn matrix(values: [f32; 4]) -> Tensor {
        Tensor::from_slice([2, 2], &values).unwrap()
    }

    #[test]
    fn select_chooses_elements_rows_or_all() {
        let (a, b) = (matrix([1.0, 2.0, 3.0, 4.0]), matrix([5.0, 6.0, 7.0, 8.0]));
        let full = Tensor::from_slice([2, 2], &[true, false, false, true]).unwrap();
        on("Select", full, a.clone(), b.clone()).gives(matrix([1.0, 6.0, 7.0, 4.0]));
        let rows = Tensor::vector(&[true, false]);
        on("Select", rows, a.clone(), b.clone()).gives(matrix([1.0, 2.0, 7.0, 8.0]));
        on("Select", Tensor::scalar(false), a, b.clone()).gives(b);
    }

    #[test]
    fn select_demands_shapes() {
        let v = |n: usize| Tensor::zeros(DType::Float, [n]).unwrap();
        let c = |n: usize| Tensor::zeros(DType::Bool, [n]).unwrap();
        on("Select", c(2), v(3), v(2)).fails(
            Code::InvalidArgument,
            "must have the same size and shape.  Input 0: [2] != input 1: [3]",
        );
        on("Select", Tensor::scalar(true), v(3), v(2)).fails(
            Code::InvalidArgument,
            "'then' and 'else' must have the same size.  but received: [3] vs. [2]",
        );
        on("Select", c(3), matrix([0.0; 4]), matrix([0.0; 4])).fails(
            Code::InvalidArgument,
            "Number of batches of 'then' must match size of 'cond', but saw: 2 vs. 3",
        );
        on("Select", c(1), Tensor::scalar(1.0f32), Tensor::scalar(1.0f32))
            .fails(Code::InvalidArgument, "'then' must be at least a vector, but saw shape: []");
    }

    #[test]
    fn select_v2_broadcasts() {
        let c = Tensor::from_slice([2, 1], &[true, false]).unwrap();
        let t = Tensor::vector(&[1.0f32, 2.0, 3.0]);
        let want = Tensor::from_slice([2, 3], &[1.0f32, 2.0, 3.0, 9.0, 9.0, 9.0]).unwrap();
        on("SelectV2", c, t.clone(), Tensor::scalar(9.0f32)).gives(want);
        let c = Tensor::vector(&[true, false, true]);
        on("SelectV2", c, Tensor::scalar(9.0f32), t).gives(Tensor::vector(&[9.0f32, 2.0, 9.0]));
        let empty = Tensor::zeros(DType::Bool, [0, 1]).unwrap();
        let t = Tensor::vector(&[1.0f32, 2.0, 3.0]);
        on("SelectV2", empty, t, Tensor::scalar(0.0f32))
            .gives(Tensor::zeros(DType::Float, [0, 3]).unwrap());
    }

    #[test]
    fn select_v2_refuses_what_does_not_broadcast() {
        let v = |n: usize| Tensor::zeros(DType::Float, [n]).unwrap();
        let c = Tensor::vector(&[true, false]);
        on("SelectV2", c, v(3), Tensor::scalar(9.0f32)).fails(
            Code::InvalidArgument,
            "condition [2], then [3], and else [] must be broadcastable",
        );
    }

    #[test]
    fn strings_are_selected_too() {
        let s = |t: [&'static str; 2]| {
            Tensor::from_strings([2], t.iter().map(|&t| t.into()).collect()).unwrap()
        };
        for op in ["Select", "SelectV2"] {
            let c = Tensor::vector(&[false, true]);
            on(op, c, s(["a", "b"]), s(["c", "d"])).gives(s(["c", "b"]));
        }
    }
}
