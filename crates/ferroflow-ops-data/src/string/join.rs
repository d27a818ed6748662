//! StringJoin, ReduceJoin, UnsortedSegmentJoin.

use super::TextList;
use crate::prelude::*;
use bytes::Bytes;

/// Joins the strings of all inputs at the same place; scalars go with every place.
fn string_join(ctx: &mut Ctx<'_>, separator: &[u8]) -> Result<()> {
    let inputs = ctx.inputs(0..ctx.num_inputs())?;
    let mut shape = Shape::scalar();
    for t in &inputs {
        ensure!(
            t.rank() == 0 || shape.rank() == 0 || *t.shape() == shape,
            InvalidArgument,
            "Input shapes do not match: {shape} vs. {}",
            t.shape()
        );
        if t.rank() > 0 {
            shape = t.shape().clone();
        }
    }
    let mut strings: Vec<&[Bytes]> = Vec::new();
    for t in &inputs {
        strings.push(t.strings()?);
    }
    let mut out = TextList::with_capacity(shape.elements())?;
    for i in 0..shape.elements() {
        let parts = strings.iter().map(|s| &s[if s.len() == 1 { 0 } else { i }]);
        out.push_joined(parts, separator)?;
    }
    drop(inputs);
    ctx.set(0, out.tensor(shape)?)
}

fn string_join_shape(c: &ShapeCtx<'_>) -> Result<Vec<PartialShape>> {
    let mut shape = PartialShape::scalar();
    for s in c.inputs {
        match (s.rank(), shape.rank()) {
            (Some(0), _) => {}
            (None, _) => return Ok(vec![PartialShape::unknown()]),
            (_, Some(0)) => shape = s.clone(),
            _ => shape = shape.merge(s)?,
        }
    }
    Ok(vec![shape])
}

/// Joins over some dimensions, the first listed running fastest.
fn reduce_join(ctx: &mut Ctx<'_>, separator: &[u8], keep: bool) -> Result<()> {
    let input = ctx.input(0)?;
    let (shape, rank) = (input.shape(), input.rank() as i64);
    let mut axes: Vec<usize> = Vec::new();
    for axis in ctx.input(1)?.to_indices()? {
        ensure!(
            -rank <= axis && axis < rank,
            OutOfRange,
            "Invalid reduction dimension {axis} for input with {rank} dimension(s)"
        );
        let at = if axis < 0 { axis + rank } else { axis } as usize;
        ensure!(!axes.contains(&at), InvalidArgument, "Duplicate reduction dimension {axis}");
        axes.push(at);
    }
    let kept: Vec<usize> = (0..shape.rank()).filter(|d| !axes.contains(d)).collect();
    let strides = shape.strides();
    // Offsets of the places that dimensions span, the last of them running fastest.
    let offsets = |dims: &[usize]| {
        dims.iter().fold(vec![0], |so_far, &d| {
            let step = |at: usize| (0..shape[d]).map(move |i| (at, i));
            let steps = so_far.into_iter().flat_map(step);
            steps.map(|(at, i)| at + i * strides[d]).collect::<Vec<usize>>()
        })
    };
    let innermost_last: Vec<usize> = axes.iter().rev().copied().collect();
    let (outer, inner) = (offsets(&kept), offsets(&innermost_last));
    let strings = input.strings()?;
    let mut out = TextList::with_capacity(outer.len())?;
    for from in &outer {
        out.push_joined(inner.iter().map(|i| &strings[from + i]), separator)?;
    }
    let dims: Shape = match keep {
        true => (0..shape.rank()).map(|d| if axes.contains(&d) { 1 } else { shape[d] }).collect(),
        false => kept.iter().map(|&d| shape[d]).collect(),
    };
    ctx.set(0, out.tensor(dims)?)
}

fn reduce_join_shape(c: &ShapeCtx<'_>) -> Result<Vec<PartialShape>> {
    let input = c.input(0);
    let (Some(dims), Some(axes)) = (input.dims(), c.constant_ints(1)) else {
        return Ok(vec![PartialShape::unknown()]);
    };
    let keep = c.attrs.bool("keep_dims")?;
    let rank = dims.len() as i64;
    let is_joined = |d: usize| axes.iter().any(|&a| a == d as i64 || a + rank == d as i64);
    let out = dims.iter().enumerate().filter_map(|(d, &dim)| match (is_joined(d), keep) {
        (true, true) => Some(Some(1)),
        (true, false) => None,
        (false, _) => Some(dim),
    });
    Ok(vec![PartialShape::new(out)])
}

/// Joins the strings (or rows of strings) of each segment.
fn unsorted_segment_join(ctx: &mut Ctx<'_>, separator: &[u8]) -> Result<()> {
    let (input, ids, count) = (ctx.input(0)?, ctx.input(1)?, ctx.input(2)?);
    ensure!(
        count.rank() == 0,
        InvalidArgument,
        "Number of segments should be a scalar, got shape {}",
        count.shape()
    );
    let count = count.scalar_index()?;
    ensure!(count >= 0, InvalidArgument, "Number of segments must be non-negative but got {count}");
    ensure!(ids.rank() != 0, InvalidArgument, "Segment_id cannot have rank 0");
    ensure!(
        ids.rank() <= input.rank(),
        OutOfRange,
        "Invalid segment_id rank {} for input with {} dimension(s)",
        ids.rank(),
        input.rank()
    );
    for (d, (&have, &want)) in ids.shape().iter().zip(input.shape().iter()).enumerate() {
        ensure!(
            have == want,
            InvalidArgument,
            "Segment dimension is {have} while input dimension is {want} in rank {d}"
        );
    }
    let rest = &input.shape()[ids.rank()..];
    let dims = [count].into_iter().chain(rest.iter().map(|&d| d as i64));
    let shape = Shape::from_dims(&dims.collect::<Vec<_>>())?;
    let row: usize = rest.iter().product();
    let strings = input.strings()?;
    let mut out = TextList::with_capacity(shape.checked_elements()?)?;
    let mut parts: Vec<Vec<usize>> = vec![Vec::new(); if row > 0 { count as usize } else { 0 }];
    for (i, id) in ids.to_indices()?.iter().enumerate() {
        ensure!(
            (0..count).contains(id),
            InvalidArgument,
            "segment_ids are not allowed to exceed num_segments or to have negative values."
        );
        if let Some(part) = parts.get_mut(*id as usize) {
            part.push(i);
        }
    }
    for i in 0..shape.elements() {
        // As in TensorFlow, empty strings at the beginning leave no separator behind.
        let parts = parts[i / row].iter().map(|p| &strings[p * row + i % row]);
        out.push_joined(parts.skip_while(|s| s.is_empty()), separator)?;
    }
    ctx.set(0, out.tensor(shape)?)
}

pub(crate) fn register(c: &mut Catalog) {
    c.op("StringJoin")
        .doc("Strings of all inputs joined, place by place.")
        .input("inputs: N * string")
        .output("output: string")
        .attr("N: int >= 0")
        .attr("separator: string = ''")
        .shape(string_join_shape)
        .cpu(|init| {
            let separator = init.bytes("separator")?;
            Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| string_join(ctx, &separator)))
        });
    c.op("ReduceJoin")
        .doc("Strings joined over some dimensions.")
        .input("inputs: string")
        .input("reduction_indices: int32")
        .output("output: string")
        .attr("keep_dims: bool = false")
        .attr("separator: string = ''")
        .shape(reduce_join_shape)
        .cpu(|init| {
            let (separator, keep) = (init.bytes("separator")?, init.bool("keep_dims")?);
            Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| reduce_join(ctx, &separator, keep)))
        });
    c.op("UnsortedSegmentJoin")
        .work(work::any)
        .doc("Strings of each segment joined.")
        .input("inputs: string")
        .input("segment_ids: Tindices")
        .input("num_segments: Tnumsegments")
        .output("output: string")
        .attr("separator: string = ''")
        .attr("Tindices: {int32, int64}")
        .attr("Tnumsegments: {int32, int64} = DT_INT32")
        .shape(|c| {
            let count = c.constant_ints(2).and_then(|n| usize::try_from(*n.first()?).ok());
            let (input, ids) = (c.input(0), c.input(1));
            Ok(vec![match (input.dims(), ids.rank()) {
                (Some(dims), Some(rank)) if rank <= dims.len() => {
                    PartialShape::new([count].into_iter().chain(dims[rank..].iter().copied()))
                }
                _ => PartialShape::unknown(),
            }])
        })
        .cpu(|init| {
            let separator = init.bytes("separator")?;
            Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| unsorted_segment_join(ctx, &separator)))
        });
    c.no_gradient(&["ReduceJoin", "StringJoin"]);
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::testing::check;
    use bytes::Bytes;

    fn strings<const N: usize>(shape: impl Into<Shape>, values: [&'static str; N]) -> Tensor {
        Tensor::from_strings(shape, values.map(Bytes::from).to_vec()).unwrap()
    }

    #[test]
    fn scalars_join_with_every_place() {
        check("StringJoin")
            .attr("separator", "-")
            .input(strings([2], ["a", "b"]))
            .input(Tensor::string("x"))
            .input(strings([2], ["c", "d"]))
            .gives(strings([2], ["a-x-c", "b-x-d"]));
        check("StringJoin").gives(Tensor::string(""));
        check("StringJoin")
            .input(strings([2], ["a", "b"]))
            .input(strings([1], ["c"]))
            .fails(Code::InvalidArgument, "Input shapes do not match: [2] vs. [1]");
    }

    #[test]
    fn a_join_of_more_than_the_limit_is_refused_before_it_is_made() {
        let separator = "s".repeat(1 << 20);
        let many = |n: usize| Tensor::from_strings([n], vec![Bytes::from_static(b"x"); n]).unwrap();
        check("ReduceJoin")
            .attr("separator", separator.as_str())
            .input(many(1 << 20))
            .input(Tensor::vector(&[0i32]))
            .fails(Code::ResourceExhausted, "--max-string");
        check("UnsortedSegmentJoin")
            .attr("separator", separator.as_str())
            .input(many(1 << 20))
            .input(Tensor::vector(&vec![0i32; 1 << 20]))
            .input(Tensor::scalar(1i32))
            .fails(Code::ResourceExhausted, "--max-string");
    }

    #[test]
    fn dimensions_are_joined_in_the_order_given() {
        let join = |axes: &[i32]| {
            check("ReduceJoin")
                .attr("separator", ",")
                .input(strings([2, 2], ["a", "b", "c", "d"]))
                .input(Tensor::vector(axes))
        };
        join(&[0]).gives(strings([2], ["a,c", "b,d"]));
        join(&[-1]).gives(strings([2], ["a,b", "c,d"]));
        join(&[0, 1]).gives(Tensor::string("a,c,b,d"));
        join(&[1, 0]).attr("keep_dims", true).gives(strings([1, 1], ["a,b,c,d"]));
        join(&[]).gives(strings([2, 2], ["a", "b", "c", "d"]));
        join(&[2])
            .fails(Code::OutOfRange, "Invalid reduction dimension 2 for input with 2 dimension(s)");
        join(&[0, -2]).fails(Code::InvalidArgument, "Duplicate reduction dimension -2");
        check("ReduceJoin")
            .input(Tensor::zeros(DType::String, [0, 2]).unwrap())
            .input(Tensor::vector(&[0i32]))
            .gives(strings([2], ["", ""]));
    }

    #[test]
    fn segments_join() {
        let join = |ids: &[i32], count: i32| {
            check("UnsortedSegmentJoin")
                .attr("separator", "-")
                .input(strings([3], ["a", "b", "c"]))
                .input(Tensor::vector(ids))
                .input(Tensor::scalar(count))
        };
        join(&[0, 2, 0], 3).gives(strings([3], ["a-c", "", "b"]));
        check("UnsortedSegmentJoin")
            .attr("separator", "-")
            .input(strings([4], ["", "b", "", "c"]))
            .input(Tensor::vector(&[0, 0, 0, 0]))
            .input(Tensor::scalar(1))
            .gives(strings([1], ["b--c"]));
        join(&[0, -1, 0], 3).fails(Code::InvalidArgument, "segment_ids are not allowed");
        join(&[0, 1], 3).fails(Code::InvalidArgument, "Segment dimension is 2");
        join(&[0, 1, 1], -3).fails(Code::InvalidArgument, "must be non-negative but got -3");
    }
}
