//! The ops that convert between tensors and tensor lists: stack, gather, concat and their inverses.

use super::list_ops::reserved_like;
use super::tensor_list::{TensorList, list, shape_in, take_list};
use crate::prelude::*;
use ferroflow_core::CountedVec;
use ferroflow_op_kit::pack::{concat, stack, with_rows};

fn stack_all(init: &KernelInit<'_>) -> Result<KernelBox> {
    let (dtype, expected) = (init.dtype("element_dtype")?, init.int("num_elements")?);
    Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
        let asked = shape_in(ctx.input(1)?)?;
        let list = list(ctx, 0)?;
        list.check_dtype(dtype)?;
        let len = list.items.len();
        ensure!(
            expected == -1 || expected == len as i64,
            InvalidArgument,
            "Operation expected a list with {expected} elements but got a list with {len} elements."
        );
        let shape = list.element_shape(&asked)?;
        let Some(known) = shape.known() else {
            if list.items.is_empty() {
                bail!(
                    InvalidArgument,
                    "Tried to stack elements of an empty list with non-fully-defined \
                     element_shape: {shape}"
                );
            }
            bail!(
                InvalidArgument,
                "Tried to stack list which only contains uninitialized tensors and has a \
                 non-fully-defined element_shape: {shape}"
            );
        };
        let out = stack_items(list, &known, 0..len)?;
        ctx.set(0, out)
    }))
}

/// Elements of one shape, stacked. Unset elements are zeros.
fn stack_items(
    list: &TensorList,
    shape: &Shape,
    indices: impl ExactSizeIterator<Item = usize> + Clone,
) -> Result<Tensor> {
    let all_set = indices.clone().all(|i| list.items[i].is_some());
    let zeros = if all_set { None } else { Some(Tensor::zeros(list.dtype, shape.clone())?) };
    let item = |i: usize| list.items[i].as_ref().or(zeros.as_ref());
    stack(list.dtype, shape, indices.map(|i| item(i).expect("zeros stand in for what is not set")))
}

fn gather(init: &KernelInit<'_>) -> Result<KernelBox> {
    let dtype = init.dtype("element_dtype")?;
    Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
        let (indices, asked) = (ctx.input(1)?.to_indices()?, shape_in(ctx.input(2)?)?);
        let list = list(ctx, 0)?;
        list.check_dtype(dtype)?;
        let len = list.items.len();
        let mut at = Vec::with_capacity(indices.len());
        for &i in &indices {
            match usize::try_from(i).ok().filter(|&i| i < len) {
                Some(i) => at.push(i),
                None => bail!(
                    InvalidArgument,
                    "Trying to gather element {i} in a list with {len} elements."
                ),
            }
        }
        let shape =
            if at.is_empty() { list.shape.merge(&asked)? } else { list.element_shape(&asked)? };
        let Some(known) = shape.known() else {
            bail!(
                InvalidArgument,
                "Tried to gather {}-elements from a list with non-fully-defined shape: {shape}",
                at.len()
            );
        };
        let out = stack_items(list, &known, at.into_iter())?;
        ctx.set(0, out)
    }))
}

fn rows_of(t: &Tensor) -> Result<usize> {
    t.shape().first().copied().ok_or_else(|| {
        err!(InvalidArgument, "Tensor must be at least a vector, but saw shape: {}", t.shape())
    })
}

fn check_rows(shape: &PartialShape, t: &Tensor) -> Result<()> {
    let row = Shape::from(&t.shape()[1..]);
    ensure!(
        shape.admits(&row),
        InvalidArgument,
        "Specified a list with shape {shape} from a tensor with shape {row}"
    );
    Ok(())
}

fn from_tensor(ctx: &mut Ctx<'_>) -> Result<()> {
    let (t, shape) = (ctx.take(0)?, shape_in(ctx.input(1)?)?);
    let rows = rows_of(&t)?;
    check_rows(&shape, &t)?;
    let mut list = TensorList::new(t.dtype(), shape);
    list.items = CountedVec::try_from_iter((0..rows).map(|i| t.row(i).map(Some)))?;
    ctx.set(0, list.into_tensor())
}

/// Sets the elements of `list` at `indices` to the rows of `t`.
fn set_rows(list: &mut TensorList, t: &Tensor, indices: &[i64]) -> Result<()> {
    let rows = rows_of(t)?;
    check_rows(&list.shape, t)?;
    ensure!(
        rows == indices.len(),
        InvalidArgument,
        "Invalid number of rows in input tensor. Expected: {} Actual: {rows}",
        indices.len()
    );
    for (row, &i) in indices.iter().enumerate() {
        let len = list.items.len();
        let slot = usize::try_from(i).ok().and_then(|i| list.items.get_mut(i));
        match slot {
            Some(slot) => *slot = Some(t.row(row)?),
            None => bail!(
                InvalidArgument,
                "TensorListScatter: Trying to scatter at index {i} in list with size {len}"
            ),
        }
    }
    Ok(())
}

/// One more than the largest index.
fn span(indices: &[i64]) -> Result<usize> {
    let mut span = 0usize;
    for &i in indices {
        let i = usize::try_from(i).map_err(|_| {
            err!(InvalidArgument, "Indices in TensorListScatter must all be non-negative.")
        })?;
        span = span.max(i + 1);
    }
    Ok(span)
}

fn scatter(ctx: &mut Ctx<'_>) -> Result<()> {
    let (t, indices) = (ctx.take(0)?, ctx.input(1)?.to_indices()?);
    let len = match ctx.num_inputs() > 3 {
        true => {
            let len = ctx.input(3)?;
            ensure!(len.rank() == 0, InvalidArgument, "num_elements must be a scalar");
            len.scalar_index()?
        }
        false => -1,
    };
    ensure!(
        len >= -1,
        InvalidArgument,
        "TensorListScatter expects num_elements >= -1, found: {len}"
    );
    let mut list = TensorList::new(t.dtype(), shape_in(ctx.input(2)?)?);
    let needed = span(&indices)?;
    list.resize(usize::try_from(len).unwrap_or(needed))?;
    set_rows(&mut list, &t, &indices)?;
    ctx.set(0, list.into_tensor())
}

fn scatter_into(ctx: &mut Ctx<'_>) -> Result<()> {
    let indices = ctx.input(2)?;
    ensure!(
        indices.rank() == 1,
        InvalidArgument,
        "Expected indices to be a vector, but received shape: {}",
        indices.shape()
    );
    let (indices, t) = (indices.to_indices()?, ctx.take(1)?);
    let mut list = take_list(ctx, 0)?;
    list.check_dtype(t.dtype())?;
    let len = list.items.len().max(span(&indices)?);
    list.resize(len)?;
    set_rows(&mut list, &t, &indices)?;
    ctx.set(0, list.into_tensor())
}

fn split(ctx: &mut Ctx<'_>) -> Result<()> {
    let (t, shape) = (ctx.take(0)?, shape_in(ctx.input(1)?)?);
    let lengths = ctx.input(2)?;
    ensure!(
        lengths.rank() == 1,
        InvalidArgument,
        "Expected lengths to be a vector, received shape: {}",
        lengths.shape()
    );
    let rows = rows_of(&t)?;
    let mut list = TensorList::new(t.dtype(), shape);
    let mut from = 0usize;
    for len in lengths.to_indices()? {
        let len = usize::try_from(len)
            .map_err(|_| err!(InvalidArgument, "Invalid value in lengths: {len}"))?;
        let end = from.saturating_add(len);
        ensure!(
            end <= rows,
            InvalidArgument,
            "Attempting to slice [{from}, {end}] from tensor with length {rows}"
        );
        list.items.push(Some(t.rows(from, len)?))?;
        from = end;
    }
    ensure!(
        from == rows,
        InvalidArgument,
        "Unused values in tensor. Length of tensor: {rows} Values used: {from}"
    );
    ctx.set(0, list.into_tensor())
}

/// TensorListConcat, and V2, where the shape and the lengths of unset elements are inputs.
fn concat_all(init: &KernelInit<'_>) -> Result<KernelBox> {
    let dtype = init.dtype("element_dtype")?;
    let given = if init.inputs.len() == 1 { Some(init.shape("element_shape")?) } else { None };
    Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
        let (asked, leading) = match &given {
            Some(shape) => (shape.clone(), vec![]),
            None => (shape_in(ctx.input(1)?)?, ctx.input(2)?.to_indices()?),
        };
        let list = list(ctx, 0)?;
        list.check_dtype(dtype)?;
        ensure!(
            asked.rank() != Some(0) && list.shape.rank() != Some(0),
            InvalidArgument,
            "Concat requires elements to be at least vectors, found scalars instead."
        );
        let (parts, row) = parts(list, &asked, &leading)?;
        let lengths: Vec<i64> = parts.iter().map(|t| t.shape()[0] as i64).collect();
        let out = concat(dtype, &row, parts.iter())?;
        ctx.set(0, out)?;
        ctx.set(1, Tensor::vector(&lengths))
    }))
}

/// The elements to join, with zeros for unset ones, and the shape of their rows.
fn parts(list: &TensorList, asked: &PartialShape, leading: &[i64]) -> Result<(Vec<Tensor>, Shape)> {
    let without_rows = |s: &PartialShape| match s.dims() {
        Some(dims) => PartialShape::new(dims[1..].iter().copied()),
        None => PartialShape::unknown(),
    };
    let declared = list.shape.merge(asked)?;
    let mut row = without_rows(&declared);
    for (i, item) in list.items.iter().enumerate() {
        if let Some(item) = item {
            ensure!(
                item.rank() > 0,
                InvalidArgument,
                "Concat saw a scalar shape at index {i} but requires at least vectors."
            );
            row = row.merge(&Shape::from(&item.shape()[1..]).into())?;
        }
    }
    let Some(known) = row.known() else {
        bail!(
            InvalidArgument,
            "All except the first dimension must be fully defined when concating an empty tensor \
             list. element_shape: {declared}"
        );
    };
    let mut parts = Vec::with_capacity(list.items.len());
    for (i, item) in list.items.iter().enumerate() {
        if let Some(item) = item {
            parts.push(item.clone());
            continue;
        }
        let rows = match leading.get(i) {
            Some(&rows) => usize::try_from(rows).ok(),
            None => declared.dim(0).or_else(|| first_rows(list)),
        };
        let Some(rows) = rows else {
            bail!(InvalidArgument, "Element {i} of the list is not set, and its length not known.");
        };
        parts.push(Tensor::zeros(list.dtype, with_rows(rows, &known))?);
    }
    Ok((parts, known))
}

fn first_rows(list: &TensorList) -> Option<usize> {
    list.items.iter().flatten().next().map(|t| t.shape()[0])
}

fn stacked_shape(c: &ShapeCtx<'_>) -> Result<Vec<PartialShape>> {
    // Elements that are set may know more dimensions than the requested shape, but not another
    // rank.
    let shape = c.constant(1).and_then(|t| shape_in(t).ok()).unwrap_or_default();
    Ok(vec![
        shape.rank().map_or_else(PartialShape::unknown, |rank| PartialShape::of_rank(rank + 1)),
    ])
}

fn joined_shape(_: &ShapeCtx<'_>) -> Result<Vec<PartialShape>> {
    Ok(vec![PartialShape::unknown(), PartialShape::of_rank(1)])
}

/// The shape of the rows of a tensor.
fn row_shape<'g>(g: &GradientScope<'g>, x: Term<'g>) -> Term<'g> {
    g.call("Slice", &[x.shape(), g.ints(&[1]), g.ints(&[-1])])
}

pub(crate) fn register(c: &mut Catalog) {
    c.op("TensorListStack")
        .doc("The elements of a list, stacked.")
        .input("input_handle: variant")
        .input("element_shape: int32")
        .output("tensor: element_dtype")
        .attr("element_dtype: type")
        .attr("num_elements: int = -1")
        .shape(stacked_shape)
        .cpu(stack_all);
    c.op("TensorListGather")
        .work(work::any)
        .doc("Some elements of a list, stacked.")
        .input("input_handle: variant")
        .input("indices: int32")
        .input("element_shape: int32")
        .output("values: element_dtype")
        .attr("element_dtype: type")
        .shape(shape::unknown)
        .cpu(gather);
    c.op("TensorListFromTensor")
        .work(work::any)
        .doc("The list of a tensor's rows.")
        .input("tensor: element_dtype")
        .input("element_shape: shape_type")
        .output("output_handle: variant")
        .attr("element_dtype: type")
        .attr("shape_type: {int32, int64}")
        .shape(shape::scalar)
        .cpu_fn(from_tensor);
    for (name, more) in
        [("TensorListScatter", &[][..]), ("TensorListScatterV2", &["num_elements: int32"][..])]
    {
        c.op(name)
            .work(work::any)
            .doc("A list with a tensor's rows at some indices.")
            .input("tensor: element_dtype")
            .input("indices: int32")
            .input("element_shape: shape_type")
            .inputs(more)
            .output("output_handle: variant")
            .attr("element_dtype: type")
            .attr("shape_type: {int32, int64}")
            .shape(shape::scalar)
            .cpu_fn(scatter);
    }
    c.op("TensorListScatterIntoExistingList")
        .doc("A list with some elements replaced by a tensor's rows.")
        .input("input_handle: variant")
        .input("tensor: element_dtype")
        .input("indices: int32")
        .output("output_handle: variant")
        .attr("element_dtype: type")
        .shape(shape::scalar)
        .cpu_fn(scatter_into);
    c.op("TensorListSplit")
        .doc("A list of runs of a tensor's rows.")
        .input("tensor: element_dtype")
        .input("element_shape: shape_type")
        .input("lengths: int64")
        .output("output_handle: variant")
        .attr("element_dtype: type")
        .attr("shape_type: {int32, int64}")
        .shape(shape::scalar)
        .cpu_fn(split);
    for (name, more, element_shape) in [
        ("TensorListConcat", &[][..], "element_shape: shape = { unknown_rank: true }"),
        (
            "TensorListConcatV2",
            &["element_shape: shape_type", "leading_dims: int64"][..],
            "shape_type: {int32, int64}",
        ),
    ] {
        c.op(name)
            .work(work::any)
            .doc("The elements of a list, joined along their first dimension.")
            .input("input_handle: variant")
            .inputs(more)
            .output("tensor: element_dtype")
            .output("lengths: int64")
            .attr("element_dtype: type")
            .attr(element_shape)
            .shape(joined_shape)
            .cpu(concat_all);
    }
    c.gradient("TensorListStack", |g, dy| {
        Ok(g.only(g.call("TensorListFromTensor", &[dy[0], row_shape(g, dy[0])])))
    });
    c.gradient("TensorListFromTensor", |g, dy| {
        let x = g.input(0);
        let count = x.static_shape().dim(0).map_or(-1, |n| n as i64);
        let attrs = Attrs::new().with("element_dtype", x.dtype()).with("num_elements", count);
        Ok(g.only(g.call_with("TensorListStack", &[dy[0], row_shape(g, x)], attrs)))
    });
    c.gradient("TensorListGather", |g, dy| {
        let reserved = reserved_like(g, g.input(0), dy[0].dtype());
        let inputs = [reserved, dy[0], g.input(1)];
        Ok(g.only(g.call("TensorListScatterIntoExistingList", &inputs)))
    });
    for op in ["TensorListScatter", "TensorListScatterV2"] {
        c.gradient(op, |g, dy| {
            let x = g.input(0);
            let attrs = Attrs::new().with("element_dtype", x.dtype());
            let inputs = [dy[0], g.input(1), row_shape(g, x)];
            Ok(g.only(g.call_with("TensorListGather", &inputs, attrs)))
        });
    }
    c.gradient("TensorListScatterIntoExistingList", |g, dy| {
        let (x, at) = (g.input(1), g.input(2));
        let attrs = Attrs::new().with("element_dtype", x.dtype());
        let of_x = g.call_with("TensorListGather", &[dy[0], at, row_shape(g, x)], attrs);
        let inputs = [dy[0], x.zeros_like(), at];
        let of_list = g.call("TensorListScatterIntoExistingList", &inputs);
        Ok(vec![of_list, of_x, g.none()])
    });
    c.gradient("TensorListSplit", |g, dy| {
        let (x, lengths) = (g.input(0), g.input(2));
        let shape = g.concat(&[g.ints(&[-1]), row_shape(g, x)], 0);
        let attrs = Attrs::new().with("element_dtype", x.dtype());
        Ok(g.only(g.call_with("TensorListConcatV2", &[dy[0], shape, lengths], attrs)))
    });
    for op in ["TensorListConcat", "TensorListConcatV2"] {
        c.gradient(op, |g, dy| {
            let attrs = Attrs::new().with("shape_type", DType::Int32);
            let shape = g.input(0).apply_with("TensorListElementShape", attrs);
            Ok(g.only(g.call("TensorListSplit", &[dy[0], shape, g.output(1)])))
        });
    }
}

#[cfg(test)]
mod tests {
    use super::super::list_ops::tests::{any_shape, floats, some};
    use super::*;
    use crate::testing::{Check, check};

    fn stack(l: Tensor, shape: Tensor) -> Check<'static> {
        check("TensorListStack").input(l).input(shape).attr("element_dtype", DType::Float)
    }

    #[track_caller]
    fn refused(check: Check<'static>, text: &str) {
        check.fails(Code::InvalidArgument, text);
    }

    #[test]
    fn elements_are_stacked_zeros_for_those_not_set() {
        stack(floats(&[some(1.0), None, some(3.0)]), any_shape())
            .gives(Tensor::vector(&[1.0f32, 0.0, 3.0]));
        stack(floats(&[]), Tensor::vector(&[3i32]))
            .gives(Tensor::zeros(DType::Float, [0, 3]).unwrap());
        refused(
            stack(floats(&[]), any_shape()),
            "Tried to stack elements of an empty list with non-fully-defined element_shape: \
             <unknown>",
        );
        refused(
            stack(floats(&[None]), any_shape()),
            "Tried to stack list which only contains uninitialized tensors and has a \
             non-fully-defined element_shape: <unknown>",
        );
        refused(
            stack(floats(&[some(1.0)]), any_shape()).attr("num_elements", 2),
            "Operation expected a list with 2 elements but got a list with 1 elements.",
        );
        let mixed = floats(&[some(1.0), Some(Tensor::vector(&[2.0f32]))]);
        stack(mixed, any_shape()).fails(Code::InvalidArgument, "rank");
    }

    #[test]
    fn elements_are_gathered() {
        let gather = |i: &[i32], shape: Tensor| {
            check("TensorListGather")
                .input(floats(&[some(1.0), some(2.0), some(3.0)]))
                .input(Tensor::vector(i))
                .input(shape)
                .attr("element_dtype", DType::Float)
        };
        gather(&[2, 0], any_shape()).gives(Tensor::vector(&[3.0f32, 1.0]));
        refused(
            gather(&[2, 7], any_shape()),
            "Trying to gather element 7 in a list with 3 elements.",
        );
        refused(gather(&[], any_shape()), "Tried to gather 0-elements from a list");
        gather(&[], Tensor::vector(&[2i32])).gives(Tensor::zeros(DType::Float, [0, 2]).unwrap());
    }

    #[test]
    fn rows_become_elements() {
        let matrix = || Tensor::from_slice([2, 2], &[1.0f32, 2.0, 3.0, 4.0]).unwrap();
        let from = |t: Tensor, shape: Tensor| check("TensorListFromTensor").input(t).input(shape);
        let made = from(matrix(), any_shape()).run().unwrap().remove(0);
        stack(made, any_shape()).gives(matrix());
        refused(
            from(Tensor::scalar(1.0f32), any_shape()),
            "Tensor must be at least a vector, but saw shape: []",
        );
        refused(
            from(matrix(), Tensor::vector(&[3i32])),
            "Specified a list with shape [3] from a tensor with shape [2]",
        );
    }

    #[test]
    fn rows_are_scattered() {
        let v2 = |i: &[i32], n: i32| {
            check("TensorListScatterV2")
                .input(Tensor::vector(&[1.0f32, 2.0]))
                .input(Tensor::vector(i))
                .input(any_shape())
                .input(Tensor::scalar(n))
        };
        let made = v2(&[3, 0], -1).run().unwrap().remove(0);
        stack(made.clone(), any_shape()).gives(Tensor::vector(&[2.0f32, 0.0, 0.0, 1.0]));
        let longer = v2(&[3, 0], 5).run().unwrap().remove(0);
        stack(longer, any_shape()).gives(Tensor::vector(&[2.0f32, 0.0, 0.0, 1.0, 0.0]));
        refused(
            v2(&[3, 0], 2),
            "TensorListScatter: Trying to scatter at index 3 in list with size 2",
        );
        refused(v2(&[3, -1], -1), "Indices in TensorListScatter must all be non-negative.");
        refused(v2(&[3, 0], -2), "TensorListScatter expects num_elements >= -1, found: -2");
        refused(v2(&[3], -1), "Invalid number of rows in input tensor. Expected: 1 Actual: 2");
        let v1 = check("TensorListScatter")
            .input(Tensor::vector(&[1.0f32]))
            .input(Tensor::vector(&[1i32]))
            .input(any_shape());
        stack(v1.run().unwrap().remove(0), any_shape()).gives(Tensor::vector(&[0.0f32, 1.0]));
        let into = check("TensorListScatterIntoExistingList")
            .input(made)
            .input(Tensor::vector(&[8.0f32, 9.0]))
            .input(Tensor::vector(&[1i32, 4]));
        stack(into.run().unwrap().remove(0), any_shape())
            .gives(Tensor::vector(&[2.0f32, 8.0, 0.0, 1.0, 9.0]));
    }

    #[test]
    fn split_and_concat_are_inverse() {
        let split = |lengths: &[i64]| {
            check("TensorListSplit")
                .input(Tensor::vector(&[1.0f32, 2.0, 3.0]))
                .input(any_shape())
                .input(Tensor::vector(lengths))
        };
        let made = split(&[1, 0, 2]).run().unwrap().remove(0);
        let join =
            |l: Tensor| check("TensorListConcat").input(l).attr("element_dtype", DType::Float);
        let got = join(made).run().unwrap();
        assert_eq!(got, [Tensor::vector(&[1.0f32, 2.0, 3.0]), Tensor::vector(&[1i64, 0, 2])]);
        refused(split(&[1, 1]), "Unused values in tensor. Length of tensor: 3 Values used: 2");
        refused(split(&[4, -1]), "Attempting to slice [0, 4] from tensor with length 3");
        refused(join(floats(&[])), "All except the first dimension must be fully defined");
        refused(
            join(floats(&[some(1.0)])),
            "Concat saw a scalar shape at index 0 but requires at least vectors.",
        );
        let row = Tensor::from_slice([1, 2], &[1.0f32, 2.0]).unwrap();
        let got = check("TensorListConcatV2")
            .input(floats(&[Some(row), None]))
            .input(Tensor::vector(&[-1i32, 2]))
            .input(Tensor::vector(&[1i64, 2]))
            .attr("element_dtype", DType::Float)
            .run()
            .unwrap();
        let want = [1.0f32, 2.0, 0.0, 0.0, 0.0, 0.0];
        assert_eq!(got[0], Tensor::from_slice([3, 2], &want).unwrap());
        assert_eq!(got[1], Tensor::vector(&[1i64, 2]));
    }
}
