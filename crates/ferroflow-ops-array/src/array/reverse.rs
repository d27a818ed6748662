//! Reverse, ReverseV2, ReverseSequence, Roll.

use super::args::{require_rank, resolve_axis, with_partial_dim};
use super::segments::{self, Segment};
use crate::prelude::*;

/// `x` with the marked axes reversed.
fn reversed(x: Tensor, turn: &[bool]) -> Result<Tensor> {
    if !turn.iter().zip(x.shape().iter()).any(|(turn, dim)| *turn && *dim > 1) {
        return Ok(x);
    }
    let axes: Vec<Vec<Segment>> = x
        .shape()
        .iter()
        .zip(turn)
        .map(|(&len, &reversed)| {
            let from = if reversed { len.saturating_sub(1) } else { 0 };
            vec![Segment { len, from, reversed, to: 0 }]
        })
        .collect();
    let mut out = x.alloc_beside(x.dtype(), x.shape().clone())?;
    segments::copy(&axes, &x, &mut out)?;
    Ok(out)
}

fn reverse(ctx: &mut Ctx<'_>) -> Result<()> {
    let (rank, dims) = (ctx.input(0)?.rank(), ctx.input(1)?);
    ensure!(dims.rank() == 1, InvalidArgument, "'dims' must be 1-dimension, not {}", dims.rank());
    ensure!(
        dims.elements() == rank,
        InvalidArgument,
        "'dims' must have the same number of values as 'input' has dimensions. 'input' has \
         {rank}'dims' has {} values",
        dims.elements()
    );
    ensure!(
        ctx.input(0)?.shape().first() != Some(&0),
        InvalidArgument,
        "Invalid input first dimension. Found 0."
    );
    let turn = dims.as_slice::<bool>()?.to_vec();
    let out = reversed(ctx.take(0)?, &turn)?;
    ctx.set(0, out)
}

fn reverse_v2(ctx: &mut Ctx<'_>) -> Result<()> {
    let (rank, axes) = (ctx.input(0)?.rank(), ctx.input(1)?);
    // TensorFlow accepts a scalar before it checks the axes.
    if rank == 0 {
        let x = ctx.take(0)?;
        return ctx.set(0, x);
    }
    ensure!(axes.rank() == 1, InvalidArgument, "'dims' must be 1-dimension, not {}", axes.rank());
    let mut turn = vec![false; rank];
    for (i, axis) in axes.to_indices()?.into_iter().enumerate() {
        let Some(at) = resolve_axis(axis, rank) else {
            bail!(InvalidArgument, "'axis'[{i}] = {axis} is out of valid range [0, {}]", rank - 1);
        };
        ensure!(!turn[at], InvalidArgument, "axis {at} specified more than once.");
        turn[at] = true;
    }
    let out = reversed(ctx.take(0)?, &turn)?;
    ctx.set(0, out)
}

fn reverse_sequence(init: &KernelInit<'_>) -> Result<KernelBox> {
    let (seq_dim, batch_dim) = (init.int("seq_dim")?, init.int("batch_dim")?);
    Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
        let (x, lengths) = (ctx.input(0)?, ctx.input(1)?);
        ensure!(
            lengths.rank() == 1,
            InvalidArgument,
            "seq_lengths must be 1-dim, not {}",
            lengths.rank()
        );
        let lengths = lengths.to_indices()?;
        ensure!(batch_dim != seq_dim, InvalidArgument, "batch_dim == seq_dim == {seq_dim}");
        let axis = |dim: i64, name: &str| {
            ensure!(dim >= 0, InvalidArgument, "Invalid {name} {dim}");
            ensure!(
                dim < x.rank() as i64,
                InvalidArgument,
                "{name} must be < input rank ( {dim} vs. {})",
                x.rank()
            );
            Ok(dim as usize)
        };
        let (seq, batch) = (axis(seq_dim, "seq_dim")?, axis(batch_dim, "batch_dim")?);
        ensure!(
            lengths.len() == x.shape()[batch],
            InvalidArgument,
            "Length of seq_lengths != input.dims({batch}), ({} vs. {})",
            lengths.len(),
            x.shape()[batch]
        );
        let steps = x.shape()[seq];
        for (i, &len) in lengths.iter().enumerate() {
            ensure!(len >= 0, InvalidArgument, "seq_lens({i}) < 0");
            ensure!(len <= steps as i64, InvalidArgument, "seq_lens({i}) > input.dims({seq})");
        }
        let mut out = ctx.alloc(x.dtype(), x.shape().clone())?;
        let mut axes: Vec<Vec<Segment>> =
            x.shape().iter().map(|&d| vec![Segment::whole(d)]).collect();
        for (i, &len) in lengths.iter().enumerate() {
            let len = len as usize;
            axes[batch] = vec![Segment { len: 1, from: i, reversed: false, to: i }];
            axes[seq] = vec![
                Segment { len, from: len.saturating_sub(1), reversed: true, to: 0 },
                Segment { len: steps - len, from: len, reversed: false, to: len },
            ];
            segments::copy(&axes, x, &mut out)?;
        }
        ctx.set(0, out)
    }))
}

fn roll(ctx: &mut Ctx<'_>) -> Result<()> {
    let (x, shift, axis) = (ctx.input(0)?, ctx.input(1)?, ctx.input(2)?);
    ensure!(x.rank() >= 1, InvalidArgument, "input must be 1-D or higher");
    for (t, name) in [(shift, "shift"), (axis, "axis")] {
        ensure!(
            t.rank() <= 1,
            InvalidArgument,
            "{name} must be a scalar or a 1-D vector. Found: {}",
            t.shape()
        );
    }
    ensure!(
        shift.shape() == axis.shape(),
        InvalidArgument,
        "shift and axis must have the same size"
    );
    let mut shifts = vec![0usize; x.rank()];
    for (shift, axis) in shift.to_indices()?.into_iter().zip(axis.to_indices()?) {
        let Some(at) = resolve_axis(axis, x.rank()) else {
            let shown = if axis < 0 { axis.saturating_add(x.rank() as i64) } else { axis };
            bail!(InvalidArgument, "axis {shown} is out of range");
        };
        let dim = x.shape()[at].max(1);
        shifts[at] = (shifts[at] + shift.rem_euclid(dim as i64) as usize) % dim;
    }
    if shifts.iter().all(|&s| s == 0) {
        let x = ctx.take(0)?;
        return ctx.set(0, x);
    }
    let axes: Vec<Vec<Segment>> = x
        .shape()
        .iter()
        .zip(shifts)
        .map(|(&dim, shift)| {
            let rest = dim - shift;
            vec![
                Segment { len: rest, from: 0, reversed: false, to: shift },
                Segment { len: shift, from: rest, reversed: false, to: 0 },
            ]
        })
        .collect();
    let mut out = ctx.alloc(x.dtype(), x.shape().clone())?;
    segments::copy(&axes, x, &mut out)?;
    ctx.set(0, out)
}

fn reverse_v2_shape(c: &ShapeCtx<'_>) -> Result<Vec<PartialShape>> {
    require_rank(&c.input(1), 1)?;
    if let (Some(rank), Some(axes)) = (c.input(0).rank(), c.constant_ints(1)) {
        let mut seen = vec![false; rank];
        for (i, &axis) in axes.iter().enumerate() {
            let Some(at) = resolve_axis(axis, rank) else {
                bail!(
                    InvalidArgument,
                    "'axis'[{i}] = {axis} is out of valid range [0, {}",
                    rank as i64 - 1
                );
            };
            ensure!(!seen[at], InvalidArgument, "axis {at} specified more than once.");
            seen[at] = true;
        }
    }
    shape::same_as_input(c)
}

fn reverse_sequence_shape(c: &ShapeCtx<'_>) -> Result<Vec<PartialShape>> {
    let (input, lengths) = (c.input(0), c.input(1));
    require_rank(&lengths, 1)?;
    let Some(dims) = input.dims() else { return shape::same_as_input(c) };
    let axis = |name: &str| {
        let dim = c.attrs.int(name)?;
        usize::try_from(dim).ok().filter(|d| *d < dims.len()).ok_or_else(|| {
            err!(InvalidArgument, "{name} must be < input rank: {dim} vs. {}", dims.len())
        })
    };
    let batch = axis("batch_dim")?;
    axis("seq_dim")?;
    let size = PartialShape::new([dims[batch]]).merge(&lengths)?.dim(0);
    Ok(vec![with_partial_dim(&input, batch, size)])
}

pub(crate) fn register(c: &mut Catalog) {
    c.op("Reverse")
        .doc("Turns the marked axes of a tensor round.")
        .input("tensor: T")
        .input("dims: bool")
        .output("output: T")
        .attr("T: {uint8, int8, uint16, int16, uint32, int32, uint64, int64, bool, bfloat16, half, float, double, complex64, complex128, string}")
        .shape(shape::same_as_input)
        .anywhere()
        .host_inputs(&["dims"])
        .cpu_fn(reverse);
    c.op("ReverseV2")
        .doc("Turns the given axes of a tensor round.")
        .input("tensor: T")
        .input("axis: Tidx")
        .output("output: T")
        .attr("Tidx: {int32, int64} = DT_INT32")
        .attr("T: {uint8, int8, uint16, int16, int32, uint32, int64, uint64, bool, bfloat16, half, float, double, complex64, complex128, string}")
        .shape(reverse_v2_shape)
        .anywhere()
        .host_inputs(&["axis"])
        .cpu_fn(reverse_v2);
    c.op("ReverseSequence")
        .doc("Turns the beginning of each sequence of a batch round.")
        .input("input: T")
        .input("seq_lengths: Tlen")
        .output("output: T")
        .attr("seq_dim: int")
        .attr("batch_dim: int = 0")
        .attr("T: type")
        .attr("Tlen: {int32, int64} = DT_INT64")
        .shape(reverse_sequence_shape)
        .cpu(reverse_sequence);
    c.op("Roll")
        .doc("Shifts elements along axes; what falls off one end comes back at the other.")
        .input("input: T")
        .input("shift: Tshift")
        .input("axis: Taxis")
        .output("output: T")
        .attr("T: type")
        .attr("Tshift: {int32, int64}")
        .attr("Taxis: {int32, int64}")
        .shape(shape::same_as_input)
        .cpu_fn(roll);
    for op in ["Reverse", "ReverseV2", "ReverseSequence"] {
        c.gradient(op, move |g, dy| Ok(g.only(g.call_like(op, &[dy[0], g.input(1)]))));
    }
    c.gradient("Roll", |g, dy| Ok(g.only(g.call("Roll", &[dy[0], -g.input(1), g.input(2)]))));
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::testing::{Check, check};

    fn x() -> Tensor {
        Tensor::from_slice([2, 3], &[1i32, 2, 3, 4, 5, 6]).unwrap()
    }

    fn t(values: [i32; 6]) -> Tensor {
        Tensor::from_slice([2, 3], &values).unwrap()
    }

    #[test]
    fn axes_are_turned_round() {
        let v2 = |axes: &[i32]| check("ReverseV2").input(x()).input(Tensor::vector(axes));
        v2(&[0]).gives(t([4, 5, 6, 1, 2, 3]));
        v2(&[-1]).gives(t([3, 2, 1, 6, 5, 4]));
        v2(&[1, 0]).gives(t([6, 5, 4, 3, 2, 1]));
        v2(&[]).gives(x());
        v2(&[2]).fails(Code::InvalidArgument, "'axis'[0] = 2 is out of valid range [0, 1");
        v2(&[0, -2]).fails(Code::InvalidArgument, "axis 0 specified more than once.");
        check("ReverseV2")
            .input(Tensor::scalar(1i32))
            .input(Tensor::vector(&[0i32]))
            .gives(Tensor::scalar(1i32));
        let marked = |dims: &[bool]| check("Reverse").input(x()).input(Tensor::vector(dims));
        marked(&[true, false]).gives(t([4, 5, 6, 1, 2, 3]));
        marked(&[true]).fails(Code::InvalidArgument, "'input' has 2'dims' has 1 values");
    }

    fn sequences(lengths: &[i64], seq_dim: i64, batch_dim: i64) -> Check<'static> {
        check("ReverseSequence")
            .input(x())
            .input(Tensor::vector(lengths))
            .attr("seq_dim", seq_dim)
            .attr("batch_dim", batch_dim)
    }

    #[test]
    fn sequences_are_turned_up_to_their_length() {
        sequences(&[2, 3], 1, 0).gives(t([2, 1, 3, 6, 5, 4]));
        sequences(&[2, 1, 0], 0, 1).gives(t([4, 2, 3, 1, 5, 6]));
        for (lengths, seq, batch, text) in [
            (&[1][..], 1, 0, "Length of seq_lengths != input.dims(0), (1 vs. 2)"),
            (&[1, 4], 1, 0, "seq_lens(1) > input.dims(1)"),
            (&[1, -1], 1, 0, "seq_lens(1) < 0"),
            (&[1, 2], 0, 0, "batch_dim == seq_dim == 0"),
            (&[1, 2], 2, 0, "seq_dim must be < input rank ( 2 vs. 2)"),
            (&[1, 2], 1, 2, "batch_dim must be < input rank ( 2 vs. 2)"),
            (&[1, 2], -1, 0, "Invalid seq_dim -1"),
        ] {
            sequences(lengths, seq, batch).fails(Code::InvalidArgument, text);
        }
    }

    #[test]
    fn rolling_wraps_around() {
        let roll = |shift: &[i32], axis: &[i32]| {
            check("Roll").input(x()).input(Tensor::vector(shift)).input(Tensor::vector(axis))
        };
        roll(&[1], &[1]).gives(t([3, 1, 2, 6, 4, 5]));
        roll(&[-4], &[-1]).gives(t([2, 3, 1, 5, 6, 4]));
        roll(&[1, 1], &[0, 1]).gives(t([6, 4, 5, 3, 1, 2]));
        roll(&[1, 2], &[1, 1]).gives(x());
        roll(&[i32::MIN], &[1]).gives(t([3, 1, 2, 6, 4, 5]));
        roll(&[1], &[2]).fails(Code::InvalidArgument, "axis 2 is out of range");
        roll(&[1], &[0, 0]).fails(Code::InvalidArgument, "shift and axis must have the same size");
        let empty = Tensor::zeros(DType::Float, [0, 2]).unwrap();
        check("Roll")
            .input(empty.clone())
            .input(Tensor::scalar(-4i32))
            .input(Tensor::scalar(0i32))
            .gives(empty);
    }
}
