//! Pad, PadV2, MirrorPad, MirrorPadGrad.

use super::args::require_rank;
use super::segments::{self, Segment};
use super::walk::{self, Walk};
use crate::prelude::*;

/// The padding before and after each dimension.
fn paddings(x: &Tensor, paddings: &Tensor, separator: &str) -> Result<Vec<(i64, i64)>> {
    ensure!(
        paddings.rank() == 2 && paddings.shape()[1] == 2,
        InvalidArgument,
        "paddings must be a matrix with 2 columns: {}",
        paddings.shape()
    );
    ensure!(
        paddings.shape()[0] == x.rank(),
        InvalidArgument,
        "The first dimension of paddings must be the rank of inputs{}{separator} {}",
        paddings.shape(),
        x.shape()
    );
    Ok(paddings.to_indices()?.chunks_exact(2).map(|p| (p[0], p[1])).collect())
}

fn padded(shape: &Shape, paddings: &[(i64, i64)]) -> Result<Shape> {
    let dims: Vec<i64> = shape
        .iter()
        .zip(paddings)
        .map(|(&d, (before, after))| (d as i64).saturating_add(*before).saturating_add(*after))
        .collect();
    Shape::from_dims(&dims)
}

/// The kernel of Pad and of PadV2, which has a third input.
fn pad(ctx: &mut Ctx<'_>) -> Result<()> {
    let x = ctx.input(0)?;
    let paddings = paddings(x, ctx.input(1)?, "")?;
    for (before, after) in &paddings {
        ensure!(
            *before >= 0 && *after >= 0,
            InvalidArgument,
            "Paddings must be non-negative: {before} {after}"
        );
    }
    let shape = padded(x.shape(), &paddings)?;
    let mut out = if ctx.num_inputs() > 2 {
        let value = ctx.input(2)?;
        ensure!(
            value.rank() == 0,
            InvalidArgument,
            "constant_values must be a scalar. Found: {}",
            value.shape()
        );
        let mut out = x.alloc_beside(x.dtype(), shape.clone())?;
        walk::fill(&mut out, value)?;
        out
    } else {
        x.zeros_beside(x.dtype(), shape.clone())?
    };
    if x.elements() > 0 {
        let strides = walk::strides(&shape);
        let to = paddings.iter().zip(&strides).map(|((b, _), s)| *b as usize * *s as usize).sum();
        Walk::scatter(x.shape(), &strides, to).copy(x, &mut out)?;
    }
    ctx.set(0, out)
}

fn pad_shape(c: &ShapeCtx<'_>) -> Result<Vec<PartialShape>> {
    resized(c, |dim, before, after| dim.checked_add(before)?.checked_add(after))
}

fn resized(
    c: &ShapeCtx<'_>,
    dim: fn(usize, usize, usize) -> Option<usize>,
) -> Result<Vec<PartialShape>> {
    let (input, paddings) = (c.input(0), c.constant_ints(1));
    PartialShape::new([None, Some(2)]).merge(&c.input(1))?;
    if let Some(rank) = c.input(1).dim(0) {
        require_rank(&input, rank)?;
    }
    let negative = paddings.iter().flatten().any(|p| *p < 0);
    ensure!(!negative, InvalidArgument, "Paddings must be non-negative");
    let Some(rank) = input.rank().or(c.input(1).dim(0)).filter(|&r| r <= 254) else {
        return shape::unknown(c);
    };
    let dims = (0..rank).map(|i| {
        let at = |j: usize| usize::try_from(*paddings.as_ref()?.get(2 * i + j)?).ok();
        dim(input.dim(i)?, at(0)?, at(1)?)
    });
    Ok(vec![PartialShape::new(dims)])
}

/// The distance from the edge where mirroring begins: 1 when the edge itself is not repeated.
fn mirror_offset(init: &KernelInit<'_>) -> Result<usize> {
    Ok(if init.string("mode")? == "REFLECT" { 1 } else { 0 })
}

fn mirror_pad(init: &KernelInit<'_>) -> Result<KernelBox> {
    let offset = mirror_offset(init)?;
    Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
        let x = ctx.input(0)?;
        let paddings = paddings(x, ctx.input(1)?, ",")?;
        let mut axes = Vec::with_capacity(x.rank());
        for (&dim, &(before, after)) in x.shape().iter().zip(&paddings) {
            ensure!(
                before >= 0 && after >= 0,
                InvalidArgument,
                "paddings must be non-negative: {before} {after}"
            );
            let limit = dim as i64;
            if offset == 0 {
                ensure!(
                    before <= limit && after <= limit,
                    InvalidArgument,
                    "paddings must be no greater than the dimension size: {before}, {after} \
                     greater than {dim}"
                );
            } else {
                ensure!(
                    before < limit && after < limit,
                    InvalidArgument,
                    "paddings must be less than the dimension size: {before}, {after} not less \
                     than {dim}"
                );
            }
            let (before, after) = (before as usize, after as usize);
            axes.push(vec![
                Segment {
                    len: before,
                    from: (before + offset).saturating_sub(1),
                    reversed: true,
                    to: 0,
                },
                Segment { len: dim, from: 0, reversed: false, to: before },
                Segment {
                    len: after,
                    from: dim.saturating_sub(1 + offset),
                    reversed: true,
                    to: before + dim,
                },
            ]);
        }
        let mut out = ctx.alloc(x.dtype(), padded(x.shape(), &paddings)?)?;
        segments::copy(&axes, x, &mut out)?;
        ctx.set(0, out)
    }))
}

/// Adds every element of the input to the one it mirrors.
fn mirror_pad_grad<T: Num>(offset: usize) -> impl Kernel {
    move |ctx: &mut Ctx<'_>| {
        let x = ctx.input(0)?;
        let paddings = paddings(x, ctx.input(1)?, "")?;
        // For each axis, the output offset of every input position, in elements.
        let mut dims = Vec::with_capacity(x.rank());
        for (&dim, &(before, after)) in x.shape().iter().zip(&paddings) {
            ensure!(
                before >= 0 && after >= 0,
                InvalidArgument,
                "Paddings must be non-negative: {before}, {after}"
            );
            let total = before.saturating_add(after);
            ensure!(
                total < dim as i64 || total == 0,
                InvalidArgument,
                "Total paddings must be less than the input dimension size: {total} was not less \
                 than {dim}"
            );
            let out = dim - total as usize;
            let limit = out as i64 - offset as i64;
            ensure!(
                total == 0 || before <= limit && after <= limit,
                InvalidArgument,
                "paddings must be {} the output dimension size: {before}, {after} {} {out}",
                if offset == 0 { "no greater than" } else { "less than" },
                if offset == 0 { "greater than" } else { "not less than" }
            );
            dims.push(out);
        }
        let mut out = Tensor::zeros(T::DTYPE, dims.as_slice())?;
        let strides = Shape::from(dims.as_slice()).strides();
        let maps: Vec<Vec<usize>> = (0..x.rank())
            .map(|axis| {
                let (before, len, stride) = (paddings[axis].0 as usize, dims[axis], strides[axis]);
                (0..x.shape()[axis])
                    .map(|i| {
                        let at = if i < before {
                            before - 1 - i + offset
                        } else if i < before + len {
                            i - before
                        } else {
                            len - 1 - offset - (i - before - len)
                        };
                        at * stride
                    })
                    .collect()
            })
            .collect();
        let (values, sums) = (x.as_slice::<T>()?, out.as_mut_slice::<T>()?);
        if let Some((inner, outer)) = maps.split_last() {
            let mut at = vec![0usize; outer.len()];
            for row in values.chunks_exact(inner.len().max(1)) {
                let base: usize = at.iter().zip(outer).map(|(&i, map)| map[i]).sum();
                for (v, to) in row.iter().zip(inner) {
                    sums[base + to] = sums[base + to].add(*v);
                }
                for (i, map) in at.iter_mut().zip(outer).rev() {
                    *i += 1;
                    if *i < map.len() {
                        break;
                    }
                    *i = 0;
                }
            }
        } else {
            sums.copy_from_slice(values);
        }
        ctx.set(0, out)
    }
}

pub(crate) fn register(c: &mut Catalog) {
    for (name, doc, value) in [
        ("Pad", "Surrounds a tensor with zeros.", &[][..]),
        ("PadV2", "Surrounds a tensor with a value.", &["constant_values: T"][..]),
    ] {
        c.op(name)
            .work(work::any)
            .doc(doc)
            .input("input: T")
            .input("paddings: Tpaddings")
            .inputs(value)
            .output("output: T")
            .attr("T: type")
            .attr("Tpaddings: {int32, int64} = DT_INT32")
            .shape(pad_shape)
            .anywhere()
            .host_inputs(&["paddings"])
            .cpu_fn(pad);
    }
    c.op("MirrorPad")
        .work(work::any)
        .doc("Surrounds a tensor with its mirror images.")
        .input("input: T")
        .input("paddings: Tpaddings")
        .output("output: T")
        .attr("T: type")
        .attr("Tpaddings: {int32, int64} = DT_INT32")
        .attr("mode: {'REFLECT', 'SYMMETRIC'}")
        .shape(pad_shape)
        .cpu(mirror_pad);
    c.op("MirrorPadGrad")
        .doc("Folds the mirror images around a tensor back onto it.")
        .input("input: T")
        .input("paddings: Tpaddings")
        .output("output: T")
        .attr("T: type")
        .attr("Tpaddings: {int32, int64} = DT_INT32")
        .attr("mode: {'REFLECT', 'SYMMETRIC'}")
        .shape(|c| resized(c, |dim, before, after| dim.checked_sub(before)?.checked_sub(after)))
        .cpu(per_dtype!(NUMBER, init, T => mirror_pad_grad::<T>(mirror_offset(init)?)));
    for op in ["Pad", "PadV2"] {
        c.gradient(op, |g, dy| {
            let (x, paddings) = (g.input(0), g.input(1));
            let count = g.concat(&[x.rank_term().expand_dims(0), g.ints(&[1])], 0);
            let before = g.call("Slice", &[paddings, g.ints(&[0, 0]), count]);
            let begin = before.reshape(g.ints(&[-1]));
            Ok(g.only(g.call("Slice", &[dy[0], begin, x.shape_as(begin.dtype())])))
        });
    }
    for (op, back) in [("MirrorPad", "MirrorPadGrad"), ("MirrorPadGrad", "MirrorPad")] {
        c.gradient(op, move |g, dy| Ok(g.only(g.call_like(back, &[dy[0], g.input(1)]))));
    }
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::testing::{Check, check};

    fn pads(op: &str, x: Tensor, pads: &[[i32; 2]]) -> Check<'static> {
        let flat: Vec<i32> = pads.concat();
        check(op).input(x).input(Tensor::from_slice([pads.len(), 2], &flat).unwrap())
    }

    fn matrix() -> Tensor {
        Tensor::from_slice([2, 2], &[1.0f32, 2.0, 3.0, 4.0]).unwrap()
    }

    #[test]
    fn zeros_or_a_value_surround() {
        let want = [0.0f32, 0.0, 0.0, 1.0, 2.0, 0.0, 3.0, 4.0, 0.0];
        pads("Pad", matrix(), &[[1, 0], [0, 1]]).gives(Tensor::from_slice([3, 3], &want).unwrap());
        let empty = Tensor::zeros(DType::Float, [0, 1]).unwrap();
        pads("PadV2", empty, &[[1, 0], [0, 1]])
            .input(Tensor::scalar(7.0f32))
            .gives(Tensor::from_slice([1, 2], &[7.0f32, 7.0]).unwrap());
        pads("PadV2", Tensor::string("b").reshape([1]).unwrap(), &[[1, 0]])
            .input(Tensor::string("a"))
            .gives(Tensor::from_strings([2], vec!["a".into(), "b".into()]).unwrap());
        pads("Pad", Tensor::scalar(2.0f32), &[]).gives(Tensor::scalar(2.0f32));
    }

    #[test]
    fn bad_paddings_are_refused() {
        let fails = |op: &str, pad: &[[i32; 2]], text: &str| {
            let check = pads(op, matrix(), pad);
            let check = if op == "Pad" { check } else { check.attr("mode", "SYMMETRIC") };
            check.fails(Code::InvalidArgument, text)
        };
        fails(
            "Pad",
            &[[1, 1]],
            "The first dimension of paddings must be the rank of inputs[1,2] [2,2]",
        );
        fails("Pad", &[[1, 1], [0, -1]], "Paddings must be non-negative: 0 -1");
        fails("MirrorPad", &[[1, 1]], "the rank of inputs[1,2], [2,2]");
        fails("MirrorPad", &[[0, 0], [0, -1]], "paddings must be non-negative: 0 -1");
        fails(
            "MirrorPad",
            &[[0, 0], [0, 3]],
            "paddings must be no greater than the dimension size: 0, 3 greater than 2",
        );
        check("Pad")
            .input(Tensor::vector(&[1i32]))
            .input(Tensor::from_slice([1, 2], &[i64::MAX, i64::MAX]).unwrap())
            .fails(Code::ResourceExhausted, "");
        check("Pad")
            .input(Tensor::vector(&[1i32]))
            .input(Tensor::vector(&[1i32, 1]))
            .fails(Code::InvalidArgument, "paddings must be a matrix with 2 columns: [2]");
    }

    #[test]
    fn mirrors_repeat_the_edge_or_not() {
        let v = || Tensor::vector(&[1i32, 2, 3]);
        pads("MirrorPad", v(), &[[2, 1]])
            .attr("mode", "REFLECT")
            .gives(Tensor::vector(&[3i32, 2, 1, 2, 3, 2]));
        pads("MirrorPad", v(), &[[3, 1]])
            .attr("mode", "SYMMETRIC")
            .gives(Tensor::vector(&[3i32, 2, 1, 1, 2, 3, 3]));
        pads("MirrorPad", v(), &[[3, 0]]).attr("mode", "REFLECT").fails(
            Code::InvalidArgument,
            "paddings must be less than the dimension size: 3, 0 not less than 3",
        );
        let m = Tensor::from_slice([2, 2], &[1i32, 2, 3, 4]).unwrap();
        pads("MirrorPad", m, &[[1, 0], [0, 1]])
            .attr("mode", "REFLECT")
            .gives(Tensor::from_slice([3, 3], &[3i32, 4, 3, 1, 2, 1, 3, 4, 3]).unwrap());
    }

    #[test]
    fn the_gradient_folds_mirrors_back() {
        let v = || Tensor::vector(&[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0]);
        let grad = |pad, mode: &str| pads("MirrorPadGrad", v(), &[pad]).attr("mode", mode);
        grad([2, 1], "REFLECT").gives(Tensor::vector(&[3.0f32, 12.0, 6.0]));
        grad([2, 1], "SYMMETRIC").gives(Tensor::vector(&[5.0f32, 5.0, 11.0]));
        grad([4, 1], "SYMMETRIC").fails(
            Code::InvalidArgument,
            "paddings must be no greater than the output dimension size: 4, 1 greater than 1",
        );
        grad([4, 3], "SYMMETRIC").fails(
            Code::InvalidArgument,
            "Total paddings must be less than the input dimension size: 7 was not less than 6",
        );
        let m: Vec<f32> = (1..10).map(|x| x as f32).collect();
        pads("MirrorPadGrad", Tensor::from_slice([3, 3], &m).unwrap(), &[[1, 0], [0, 1]])
            .attr("mode", "REFLECT")
            .gives(Tensor::from_slice([2, 2], &[10.0f32, 5.0, 20.0, 10.0]).unwrap());
    }
}
