//! The ops on tensor lists that deal with single elements.

use super::tensor_list::{TensorList, list, list_in, shape_in, take_list};
use crate::prelude::*;
use ferroflow_core::Variant;

fn empty(init: &KernelInit<'_>) -> Result<KernelBox> {
    let dtype = init.dtype("element_dtype")?;
    Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
        let mut made = TensorList::new(dtype, shape_in(ctx.input(0)?)?);
        let max = ctx.input(1)?;
        ensure!(
            max.rank() == 0,
            InvalidArgument,
            "max_num_elements expected to be a scalar but got shape: {}",
            max.shape()
        );
        made.max = usize::try_from(max.scalar_index()?).ok();
        ctx.set(0, made.into_tensor())
    }))
}

fn reserve(init: &KernelInit<'_>) -> Result<KernelBox> {
    let dtype = init.dtype("element_dtype")?;
    Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
        let mut made = TensorList::new(dtype, shape_in(ctx.input(0)?)?);
        let n = ctx.input(1)?;
        ensure!(
            n.rank() == 0,
            InvalidArgument,
            "The num_elements to reserve must be a tensor size 1, but got {}",
            n.shape()
        );
        let n = n.scalar_index()?;
        let n = usize::try_from(n).map_err(|_| {
            err!(
                InvalidArgument,
                "The num_elements to reserve must be a non negative number, but got {n}"
            )
        })?;
        made.resize(n)?;
        ctx.set(0, made.into_tensor())
    }))
}

fn length(ctx: &mut Ctx<'_>) -> Result<()> {
    let n = list(ctx, 0)?.items.len();
    ctx.set(0, Tensor::scalar(n as i32))
}

fn element_shape(init: &KernelInit<'_>) -> Result<KernelBox> {
    let wide = init.dtype("shape_type")? == DType::Int64;
    Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
        let shape = &list(ctx, 0)?.shape;
        let number = |d: Option<usize>| d.map_or(-1, |d| d as i64);
        let out = match shape.dims() {
            Some(dims) => Tensor::vector(&dims.iter().map(|&d| number(d)).collect::<Vec<_>>()),
            None => Tensor::scalar(-1i64),
        };
        if wide {
            return ctx.set(0, out);
        }
        let narrow: Vec<i32> = out.to_indices()?.into_iter().map(|d| d as i32).collect();
        let narrow = Tensor::from_slice(out.shape().clone(), &narrow)?;
        ctx.set(0, narrow)
    }))
}

fn push_back(ctx: &mut Ctx<'_>) -> Result<()> {
    let item = ctx.take(1)?;
    let mut list = take_list(ctx, 0)?;
    push(&mut list, item)?;
    ctx.set(0, list.into_tensor())
}

fn push(list: &mut TensorList, item: Tensor) -> Result<()> {
    list.check_dtype(item.dtype())?;
    ensure!(
        list.shape.admits(item.shape()),
        InvalidArgument,
        "Tried to append a tensor with incompatible shape to a list. Op element shape: {} list \
         shape: {}",
        item.shape(),
        list.shape
    );
    if let Some(max) = list.max {
        ensure!(
            list.items.len() < max,
            InvalidArgument,
            "Tried to push item into a full list list size: {} max_num_elements: {max}",
            list.items.len()
        );
    }
    list.items.push(Some(item))
}

fn push_back_batch(ctx: &mut Ctx<'_>) -> Result<()> {
    let (lists, batch) = (ctx.take(0)?, ctx.take(1)?);
    let n = lists.elements();
    ensure!(batch.rank() > 0, InvalidArgument, "tensor must be at least a vector");
    ensure!(
        batch.shape()[0] == n,
        InvalidArgument,
        "Expected tensor.shape[0] == input_handles.size, but saw {} vs. {n}",
        batch.shape()[0]
    );
    let mut out = Vec::with_capacity(n);
    for (i, variant) in lists.variants()?.iter().enumerate() {
        let mut list = list_in(variant)?.try_clone()?;
        push(&mut list, batch.row(i)?)?;
        out.push(Variant::new(list));
    }
    ctx.set(0, Tensor::from_variants(lists.shape().clone(), out)?)
}

/// An element, or zeros of its shape if it is not set.
fn item_or_zeros(list: &TensorList, i: usize, asked: &PartialShape) -> Result<Tensor> {
    if let Some(Some(item)) = list.items.get(i) {
        return Ok(item.clone());
    }
    let shape = list.element_shape(asked)?;
    match shape.known() {
        Some(known) => Tensor::zeros(list.dtype, known),
        None => bail!(
            InvalidArgument,
            "Trying to read an uninitialized tensor but element_shape is not fully defined: \
             {shape} and no list element is set."
        ),
    }
}

fn pop_back(init: &KernelInit<'_>) -> Result<KernelBox> {
    let dtype = init.dtype("element_dtype")?;
    Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
        let asked = shape_in(ctx.input(1)?)?;
        let mut list = take_list(ctx, 0)?;
        list.check_dtype(dtype)?;
        ensure!(!list.items.is_empty(), InvalidArgument, "Trying to pop from an empty list.");
        let item = item_or_zeros(&list, list.items.len() - 1, &asked)?;
        list.items.pop();
        ctx.set(0, list.into_tensor())?;
        ctx.set(1, item)
    }))
}

fn get_item(init: &KernelInit<'_>) -> Result<KernelBox> {
    let dtype = init.dtype("element_dtype")?;
    Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
        let (index, asked) = (ctx.input(1)?.scalar_index()?, ctx.input(2)?);
        let list = list(ctx, 0)?;
        list.check_dtype(dtype)?;
        let at = usize::try_from(index).ok().filter(|&at| at < list.items.len());
        let Some(at) = at else {
            bail!(
                InvalidArgument,
                "Trying to access element {index} in a list with {} elements.",
                list.items.len()
            );
        };
        let item = item_or_zeros(list, at, &shape_in(asked)?)?;
        ctx.set(0, item)
    }))
}

fn set_item(init: &KernelInit<'_>) -> Result<KernelBox> {
    let grow = init.bool("resize_if_index_out_of_bounds")?;
    Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
        let index = ctx.input(1)?;
        ensure!(
            index.rank() == 0,
            InvalidArgument,
            "Expected argument 1 to be a scalar. Received shape: {}",
            index.shape()
        );
        let (index, item) = (index.scalar_index()?, ctx.take(2)?);
        let mut list = take_list(ctx, 0)?;
        list.check_dtype(item.dtype())?;
        let len = list.items.len();
        let at = usize::try_from(index).ok().filter(|&at| at < len || grow);
        let Some(at) = at else {
            bail!(
                InvalidArgument,
                "Trying to modify element {index} in a list with {len} elements."
            );
        };
        ensure!(
            list.shape.admits(item.shape()),
            InvalidArgument,
            "Tried to set a tensor with incompatible shape at a list index. Item element shape: {} \
             list shape: {}",
            item.shape(),
            list.shape
        );
        if at >= len {
            list.resize(at + 1)?;
        }
        list.items[at] = Some(item);
        ctx.set(0, list.into_tensor())
    }))
}

fn resize(ctx: &mut Ctx<'_>) -> Result<()> {
    let size = ctx.input(1)?;
    ensure!(size.rank() == 0, InvalidArgument, "size must be a scalar");
    let size = size.scalar_index()?;
    let size = usize::try_from(size).map_err(|_| {
        err!(InvalidArgument, "TensorListSlice expects size to be non-negative. Got: {size}")
    })?;
    let mut list = take_list(ctx, 0)?;
    list.resize(size)?;
    ctx.set(0, list.into_tensor())
}

/// Joins lists, one pair for each element of the two inputs.
fn concat_lists(init: &KernelInit<'_>) -> Result<KernelBox> {
    let dtype = init.dtype("element_dtype")?;
    Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
        let (a, b) = (ctx.take(0)?, ctx.take(1)?);
        ensure!(
            a.shape() == b.shape(),
            InvalidArgument,
            "input_a and input_b must have the same shape: {} vs. {}",
            a.shape(),
            b.shape()
        );
        let mut out = Vec::with_capacity(a.elements());
        for (a, b) in a.variants()?.iter().zip(b.variants()?) {
            let (a, b) = (list_in(a)?, list_in(b)?);
            a.check_dtype(dtype)?;
            b.check_dtype(dtype)?;
            let shape = a.shape.merge(&b.shape)?;
            let mut joined = TensorList { shape, ..a.try_clone()? };
            joined.resize(a.items.len() + b.items.len())?;
            joined.items[a.items.len()..].clone_from_slice(&b.items);
            out.push(Variant::new(joined));
        }
        let shape = a.shape().clone();
        ctx.set(0, Tensor::from_variants(shape, out)?)
    }))
}

/// A list, and an element of unknown shape.
fn list_and_item(_: &ShapeCtx<'_>) -> Result<Vec<PartialShape>> {
    Ok(vec![PartialShape::scalar(), PartialShape::unknown()])
}

/// A list of as many elements as `list` has, none of them set.
pub(crate) fn reserved_like<'g>(g: &GradientScope<'g>, list: Term<'g>, dtype: DType) -> Term<'g> {
    let attrs = Attrs::new().with("shape_type", DType::Int32);
    let shape = list.apply_with("TensorListElementShape", attrs);
    let attrs = Attrs::new().with("element_dtype", dtype);
    g.call_with("TensorListReserve", &[shape, list.apply("TensorListLength")], attrs)
}

pub(crate) fn register(c: &mut Catalog) {
    c.op("EmptyTensorList")
        .doc("A list without elements.")
        .input("element_shape: shape_type")
        .input("max_num_elements: int32")
        .output("handle: variant")
        .attr("element_dtype: type")
        .attr("shape_type: {int32, int64}")
        .shape(shape::scalar)
        .cpu(empty);
    c.op("TensorListReserve")
        .work(work::any)
        .doc("A list of elements that are not set.")
        .input("element_shape: shape_type")
        .input("num_elements: int32")
        .output("handle: variant")
        .attr("element_dtype: type")
        .attr("shape_type: {int32, int64}")
        .shape(shape::scalar)
        .cpu(reserve);
    c.op("TensorListLength")
        .doc("How many elements a list has.")
        .input("input_handle: variant")
        .output("length: int32")
        .shape(shape::scalar)
        .cpu_fn(length);
    c.op("TensorListElementShape")
        .doc("What is known of the shape of a list's elements.")
        .input("input_handle: variant")
        .output("element_shape: shape_type")
        .attr("shape_type: {int32, int64}")
        .shape(shape::unknown)
        .cpu(element_shape);
    c.op("TensorListPushBack")
        .doc("A list with one more element at its end.")
        .input("input_handle: variant")
        .input("tensor: element_dtype")
        .output("output_handle: variant")
        .attr("element_dtype: type")
        .shape(shape::scalar)
        .cpu_fn(push_back);
    c.op("TensorListPushBackBatch")
        .work(work::any)
        .doc("Lists with one more element at the end of each.")
        .input("input_handles: variant")
        .input("tensor: element_dtype")
        .output("output_handles: variant")
        .attr("element_dtype: type")
        .shape(shape::same_as_input)
        .cpu_fn(push_back_batch);
    c.op("TensorListPopBack")
        .doc("A list without its last element, and that element.")
        .input("input_handle: variant")
        .input("element_shape: int32")
        .output("output_handle: variant")
        .output("tensor: element_dtype")
        .attr("element_dtype: type")
        .shape(list_and_item)
        .cpu(pop_back);
    c.op("TensorListGetItem")
        .doc("An element of a list.")
        .input("input_handle: variant")
        .input("index: int32")
        .input("element_shape: int32")
        .output("item: element_dtype")
        .attr("element_dtype: type")
        .newer_attr("Tshape: {int32} = DT_INT32")
        .shape(shape::unknown)
        .cpu(get_item);
    c.op("TensorListSetItem")
        .doc("A list with one element replaced.")
        .input("input_handle: variant")
        .input("index: int32")
        .input("item: element_dtype")
        .output("output_handle: variant")
        .attr("element_dtype: type")
        .attr("resize_if_index_out_of_bounds: bool = false")
        .shape(shape::scalar)
        .cpu(set_item);
    c.op("TensorListResize")
        .work(work::any)
        .doc("A list cut off, or with elements added that are not set.")
        .input("input_handle: variant")
        .input("size: int32")
        .output("output_handle: variant")
        .shape(shape::scalar)
        .cpu_fn(resize);
    c.op("TensorListConcatLists")
        .work(work::any)
        .doc("The elements of two lists in one.")
        .input("input_a: variant")
        .input("input_b: variant")
        .output("output: variant")
        .attr("element_dtype: type")
        .shape(shape::same_as_input)
        .cpu(concat_lists);
    c.no_gradient(&[
        "TensorListLength",
        "TensorListElementShape",
        "TensorListPushBackBatch",
        "TensorListConcatLists",
    ]);
    c.gradient("TensorListPushBack", |g, dy| {
        let item = g.input(1);
        let attrs = Attrs::new().with("element_dtype", item.dtype());
        let mut all = g.calls_with("TensorListPopBack", &[dy[0], item.shape()], attrs);
        all.truncate(2);
        Ok(all)
    });
    c.gradient("TensorListPopBack", |g, dy| {
        Ok(g.only(g.call("TensorListPushBack", &[dy[0], dy[1]])))
    });
    c.gradient("TensorListGetItem", |g, dy| {
        let list = g.input(0);
        let reserved = reserved_like(g, list, dy[0].dtype());
        Ok(g.only(g.call("TensorListSetItem", &[reserved, g.input(1), dy[0]])))
    });
    c.gradient("TensorListSetItem", |g, dy| {
        let (list, index, item) = (g.input(0), g.input(1), g.input(2));
        let mut of_list = g.call("TensorListSetItem", &[dy[0], index, item.zeros_like()]);
        let attrs = Attrs::new().with("element_dtype", item.dtype());
        let of_item = g.call_with("TensorListGetItem", &[dy[0], index, item.shape()], attrs);
        if g.attrs().bool("resize_if_index_out_of_bounds").unwrap_or(false) {
            let length = list.apply("TensorListLength");
            of_list = g.call("TensorListResize", &[of_list, length]);
        }
        Ok(vec![of_list, g.none(), of_item])
    });
    c.gradient("TensorListResize", |g, dy| {
        let length = g.input(0).apply("TensorListLength");
        Ok(g.only(g.call("TensorListResize", &[dy[0], length])))
    });
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::testing::{Check, check};
    use ferroflow_core::CountedVec;

    /// A list of floats or their vectors, with elements that are not set.
    pub(crate) fn floats(items: &[Option<Tensor>]) -> Tensor {
        let mut list = TensorList::new(DType::Float, PartialShape::unknown());
        list.items = CountedVec::try_from_iter(items.iter().cloned().map(Ok)).unwrap();
        list.into_tensor()
    }

    pub(crate) fn some(x: f32) -> Option<Tensor> {
        Some(Tensor::scalar(x))
    }

    pub(crate) fn any_shape() -> Tensor {
        Tensor::scalar(-1i32)
    }

    #[track_caller]
    fn refused(check: Check<'static>, text: &str) {
        check.fails(Code::InvalidArgument, text);
    }

    #[test]
    fn elements_are_pushed_and_popped() {
        let made = check("EmptyTensorList")
            .input(Tensor::vector(&[2i32]))
            .input(Tensor::scalar(1i32))
            .attr("element_dtype", DType::Float)
            .run()
            .unwrap()
            .remove(0);
        let push = |l: &Tensor, t: Tensor| check("TensorListPushBack").input(l.clone()).input(t);
        refused(
            push(&made, Tensor::scalar(1.0f32)),
            "Tried to append a tensor with incompatible shape to a list. Op element shape: [] list \
             shape: [2]",
        );
        refused(
            push(&made, Tensor::vector(&[1i32, 2])),
            "Invalid data types; op elements int32 but list elements float",
        );
        let one = push(&made, Tensor::vector(&[1.0f32, 2.0])).run().unwrap().remove(0);
        check("TensorListLength").input(one.clone()).gives(Tensor::scalar(1i32));
        // The original list is unchanged.
        check("TensorListLength").input(made.clone()).gives(Tensor::scalar(0i32));
        refused(
            push(&one, Tensor::vector(&[1.0f32, 2.0])),
            "Tried to push item into a full list list size: 1 max_num_elements: 1",
        );
        let pop = |l: &Tensor| {
            check("TensorListPopBack")
                .input(l.clone())
                .input(any_shape())
                .attr("element_dtype", DType::Float)
        };
        let got = pop(&one).run().unwrap();
        assert_eq!(got[1], Tensor::vector(&[1.0f32, 2.0]));
        refused(pop(&got[0]), "Trying to pop from an empty list.");
        refused(
            check("TensorListLength").input(Tensor::variant(Variant::default())),
            "Input handle is not a list.",
        );
    }

    #[test]
    fn elements_are_read_and_replaced_by_index() {
        let reserved = check("TensorListReserve")
            .input(any_shape())
            .input(Tensor::scalar(2i32))
            .attr("element_dtype", DType::Float)
            .run()
            .unwrap()
            .remove(0);
        let get = |l: &Tensor, i: i32, shape: Tensor| {
            check("TensorListGetItem")
                .input(l.clone())
                .input(Tensor::scalar(i))
                .input(shape)
                .attr("element_dtype", DType::Float)
        };
        refused(
            get(&reserved, 0, any_shape()),
            "Trying to read an uninitialized tensor but element_shape is not fully defined: \
             <unknown> and no list element is set.",
        );
        get(&reserved, 0, Tensor::vector(&[2i32])).gives(Tensor::vector(&[0.0f32, 0.0]));
        let set = |l: &Tensor, i: i32| {
            check("TensorListSetItem")
                .input(l.clone())
                .input(Tensor::scalar(i))
                .input(Tensor::scalar(5.0f32))
        };
        let set_one = set(&reserved, 1).run().unwrap().remove(0);
        get(&set_one, 1, any_shape()).gives(Tensor::scalar(5.0f32));
        // The elements that are set determine the shape of the others.
        get(&set_one, 0, any_shape()).gives(Tensor::scalar(0.0f32));
        refused(
            get(&set_one, 2, any_shape()),
            "Trying to access element 2 in a list with 2 elements.",
        );
        refused(set(&set_one, -1), "Trying to modify element -1 in a list with 2 elements.");
        let longer =
            set(&set_one, 4).attr("resize_if_index_out_of_bounds", true).run().unwrap().remove(0);
        check("TensorListLength").input(longer.clone()).gives(Tensor::scalar(5i32));
        let resize =
            |n: i32| check("TensorListResize").input(longer.clone()).input(Tensor::scalar(n));
        let cut = resize(1).run().unwrap().remove(0);
        check("TensorListLength").input(cut).gives(Tensor::scalar(1i32));
        refused(resize(-1), "expects size to be non-negative. Got: -1");
        resize(i32::MAX).fails(Code::ResourceExhausted, "longer than");
    }

    #[test]
    fn shapes_of_elements_are_returned() {
        let shape_of =
            |l: Tensor, t: DType| check("TensorListElementShape").input(l).attr("shape_type", t);
        shape_of(floats(&[]), DType::Int32).gives(Tensor::scalar(-1i32));
        let list = TensorList::new(DType::Float, PartialShape::new([None, Some(2)]));
        shape_of(list.into_tensor(), DType::Int64).gives(Tensor::vector(&[-1i64, 2]));
    }

    #[test]
    fn lists_are_joined_and_pushed_to_in_batches() {
        let joined = check("TensorListConcatLists")
            .input(floats(&[some(1.0)]))
            .input(floats(&[some(2.0), None]))
            .attr("element_dtype", DType::Float)
            .run()
            .unwrap()
            .remove(0);
        check("TensorListLength").input(joined).gives(Tensor::scalar(3i32));
        let pair = |a: Tensor, b: Tensor| {
            let all = [a, b].iter().map(|t| t.variants().unwrap()[0].clone()).collect();
            Tensor::from_variants([2], all).unwrap()
        };
        let push = |t: Tensor| {
            check("TensorListPushBackBatch").input(pair(floats(&[]), floats(&[some(1.0)]))).input(t)
        };
        let got = push(Tensor::vector(&[7.0f32, 8.0])).run().unwrap().remove(0);
        let lens: Vec<usize> =
            got.variants().unwrap().iter().map(|v| list_in(v).unwrap().items.len()).collect();
        assert_eq!(lens, [1, 2]);
        refused(
            push(Tensor::vector(&[7.0f32])),
            "Expected tensor.shape[0] == input_handles.size, but saw 1 vs. 2",
        );
    }
}
