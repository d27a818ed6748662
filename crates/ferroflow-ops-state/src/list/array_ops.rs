//! The ops on tensor arrays. The three versions differ in their handles: references to strings,
//! strings, resources.

use super::array::{Options, TensorArray};
use crate::prelude::*;
use bytes::Bytes;
use ferroflow_core::Reservation;
use ferroflow_graph::OpBuilder;
use ferroflow_op_kit::handle::{name_in, ref_handle};
use ferroflow_op_kit::pack::{concat, stack, with_rows};
use std::sync::atomic::{AtomicU64, Ordering};

/// Containers among the step's resources.
const ARRAYS: &str = "_tensor_arrays";
const GRADIENTS: &str = "_tensor_array_grads";

/// The array that input 0 names.
fn array(ctx: &mut Ctx<'_>) -> Result<Arc<TensorArray>> {
    let handle = ctx.take_value(0)?;
    let (container, name) = name_in(&handle)?;
    ctx.step().step_resources.lookup(&container, &name)
}

/// Sets output 0 to a handle of the op's kind, and output 1, if present, to a flow.
fn set_handle(ctx: &mut Ctx<'_>, kind: HandleKind, container: &str, name: &str) -> Result<()> {
    let text = |s: &str| Bytes::copy_from_slice(s.as_bytes());
    let handle = match kind {
        HandleKind::Ref => ref_handle(container, name),
        HandleKind::Strings => Tensor::from_strings([2], vec![text(container), text(name)])?.into(),
        HandleKind::Resource => Tensor::handle(ResourceHandle {
            device: ctx.node().device.text.clone(),
            container: container.into(),
            name: name.into(),
            type_name: "tensorflow::TensorArray".into(),
            ..Default::default()
        })
        .into(),
    };
    ctx.set_value(0, handle)?;
    if ctx.num_outputs() > 1 {
        ctx.set(1, Tensor::scalar(0.0f32))?;
    }
    Ok(())
}

#[derive(Clone, Copy, PartialEq)]
enum HandleKind {
    Ref,
    Strings,
    Resource,
}

impl HandleKind {
    fn of(init: &KernelInit<'_>) -> HandleKind {
        match init.outputs.first() {
            Some(port) if port.is_ref => HandleKind::Ref,
            Some(port) if port.dtype == DType::String => HandleKind::Strings,
            _ => HandleKind::Resource,
        }
    }
}

fn make(init: &KernelInit<'_>) -> Result<KernelBox> {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    let options = Options {
        dtype: init.dtype("dtype")?,
        shape: init.shape("element_shape")?,
        dynamic: init.bool("dynamic_size")?,
        clear_after_read: init.bool("clear_after_read")?,
        identical_shapes: init.contains("identical_element_shapes")
            && init.bool("identical_element_shapes")?,
    };
    let name = match init.string("tensor_array_name")? {
        name if name.is_empty() => init.name().to_string(),
        name => name,
    };
    let kind = HandleKind::of(init);
    Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
        let size = ctx.input(0)?;
        ensure!(
            size.rank() == 0,
            InvalidArgument,
            "TensorArray size must be scalar, but had shape: {}",
            size.shape()
        );
        let size = size.scalar_index()?;
        let size = usize::try_from(size)
            .map_err(|_| err!(InvalidArgument, "Size should be >= 0. Instead received {size}"))?;
        let name = format!("{name}_{}", COUNTER.fetch_add(1, Ordering::Relaxed));
        let made = TensorArray::new(name.clone(), size, &options)?;
        ctx.step().step_resources.create(ARRAYS, &name, made)?;
        set_handle(ctx, kind, ARRAYS, &name)
    }))
}

fn gradient(init: &KernelInit<'_>) -> Result<KernelBox> {
    let (source, kind) = (init.string("source")?, HandleKind::of(init));
    Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
        let prepend =
            if ctx.num_inputs() > 2 { ctx.input(2)?.to_shape()? } else { Shape::scalar() };
        let handle = ctx.take_value(0)?;
        let (container, name) = name_in(&handle)?;
        ensure!(container == ARRAYS, InvalidArgument, "Wrong input container. {container}{name}");
        let resources = &ctx.step().step_resources;
        let forward = resources.lookup::<TensorArray>(&container, &name)?;
        let name = format!("{name}@{source}");
        resources
            .lookup_or_create(GRADIENTS, &name, || forward.gradient(name.clone(), &prepend))?;
        set_handle(ctx, kind, GRADIENTS, &name)
    }))
}

/// Outputs the last input, a flow.
fn pass_flow(ctx: &mut Ctx<'_>) -> Result<()> {
    let flow = ctx.take(ctx.num_inputs() - 1)?;
    ctx.set(0, flow)
}

fn write(ctx: &mut Ctx<'_>) -> Result<()> {
    let array = array(ctx)?;
    let index = scalar_index(ctx.input(1)?)?;
    let value = ctx.take(2)?;
    ensure!(
        value.dtype() == array.dtype,
        InvalidArgument,
        "TensorArray dtype is {} but Op is trying to write dtype {}.",
        array.dtype,
        value.dtype()
    );
    array.write(&[index], vec![value])?;
    pass_flow(ctx)
}

fn scalar_index(t: &Tensor) -> Result<i64> {
    ensure!(
        t.rank() == 0,
        InvalidArgument,
        "TensorArray index must be scalar, but had shape: {}",
        t.shape()
    );
    t.scalar_index()
}

fn check_dtype(array: &TensorArray, dtype: DType) -> Result<()> {
    ensure!(
        array.dtype == dtype,
        InvalidArgument,
        "TensorArray dtype is {} but Op requested dtype {dtype}.",
        array.dtype
    );
    Ok(())
}

fn read(init: &KernelInit<'_>) -> Result<KernelBox> {
    let dtype = init.dtype("dtype")?;
    Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
        let array = array(ctx)?;
        let index = scalar_index(ctx.input(1)?)?;
        check_dtype(&array, dtype)?;
        let value = array.read(&[index])?.remove(0);
        ctx.set(0, value)
    }))
}

/// TensorArrayGather, or with all indices TensorArrayPack.
fn gather(init: &KernelInit<'_>) -> Result<KernelBox> {
    let (dtype, shape) = (init.dtype("dtype")?, init.shape("element_shape")?);
    let all = init.inputs.len() == 2;
    Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
        let array = array(ctx)?;
        check_dtype(&array, dtype)?;
        array.merge_shape(&shape)?;
        let indices: Vec<i64> = if all {
            (0..array.packed_size()? as i64).collect()
        } else {
            let indices = ctx.input(1)?;
            ensure!(
                indices.rank() == 1,
                InvalidArgument,
                "Expected indices to be a vector, but received shape: {}",
                indices.shape()
            );
            indices.to_indices()?
        };
        if indices.is_empty() {
            let element = array.shape();
            let Some(known) = element.known() else {
                bail!(
                    Unimplemented,
                    "TensorArray has size zero, but element shape {element} is not fully defined. \
                     Currently only static shapes are supported when packing zero-size \
                     TensorArrays."
                );
            };
            let empty = ctx.alloc(dtype, with_rows(0, &known))?;
            return ctx.set(0, empty);
        }
        let values = array.read(&indices)?;
        let first = values[0].shape();
        ensure!(
            shape.admits(first),
            InvalidArgument,
            "TensorArray was passed element_shape {shape} which does not match the Tensor at index \
             0: {first}"
        );
        for (i, value) in values.iter().enumerate() {
            ensure!(
                value.shape() == first,
                InvalidArgument,
                "TensorArray has inconsistent shapes.  Index 0 has shape: {first} but index {i} \
                 has shape: {}",
                value.shape()
            );
        }
        let packed = stack(dtype, first, values.iter())?;
        ctx.set(0, packed)
    }))
}

/// TensorArrayScatter, or with all indices TensorArrayUnpack.
fn scatter(ctx: &mut Ctx<'_>) -> Result<()> {
    let array = array(ctx)?;
    let all = ctx.num_inputs() == 3;
    let value = ctx.take(if all { 1 } else { 2 })?;
    let Some(&rows) = value.shape().first() else {
        bail!(
            InvalidArgument,
            "Input value for unpack must be at least a vector but received shape: {}",
            value.shape()
        );
    };
    let size = array.size()?;
    let indices: Vec<i64> = if all {
        let size = if array.is_dynamic() { size.max(rows) } else { size };
        ensure!(
            rows == size,
            InvalidArgument,
            "Input value must have first dimension equal to the array size ({rows} vs. {size})"
        );
        (0..rows as i64).collect()
    } else {
        let indices = ctx.input(1)?;
        ensure!(
            indices.rank() == 1,
            InvalidArgument,
            "Expected indices to be a vector, but received shape: {}",
            indices.shape()
        );
        ensure!(
            indices.elements() == rows,
            InvalidArgument,
            "Expected len(indices) == values.shape[0], but saw: {} vs. {rows}",
            indices.elements()
        );
        let indices = indices.to_indices()?;
        let largest = indices.iter().copied().max().unwrap_or(-1);
        ensure!(
            array.is_dynamic() || largest < size as i64,
            InvalidArgument,
            "Max scatter index must be < array size ({largest} vs. {size})"
        );
        indices
    };
    ensure!(
        value.dtype() == array.dtype,
        InvalidArgument,
        "TensorArray dtype is {} but Op is trying to write dtype {}.",
        array.dtype,
        value.dtype()
    );
    let _counted = Reservation::new(rows.saturating_mul(size_of::<Tensor>()))?;
    let values: Result<Vec<Tensor>> = (0..rows).map(|i| value.row(i)).collect();
    array.write(&indices, values?)?;
    array.mark(array.size()?)?;
    pass_flow(ctx)
}

fn concat_all(init: &KernelInit<'_>) -> Result<KernelBox> {
    let (dtype, except0) = (init.dtype("dtype")?, init.shape("element_shape_except0")?);
    Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
        let array = array(ctx)?;
        check_dtype(&array, dtype)?;
        let size = array.packed_size()?;
        if size == 0 {
            let Some(known) = except0.known() else {
                bail!(
                    Unimplemented,
                    "TensorArray has size zero, but element_shape_except0 {except0} is not fully \
                     defined. Currently only static shapes are supported when concatenating \
                     zero-size TensorArrays."
                );
            };
            ctx.set(0, Tensor::zeros(dtype, with_rows(0, &known))?)?;
            return ctx.set(1, Tensor::vector::<i64>(&[]));
        }
        let indices: Vec<i64> = (0..size as i64).collect();
        let values = array.read(&indices)?;
        let mut lengths = Vec::with_capacity(size);
        let mut row: Option<Shape> = None;
        for (i, value) in values.iter().enumerate() {
            let Some((&len, rest)) = value.shape().split_first() else {
                bail!(
                    InvalidArgument,
                    "Concat saw a scalar shape at index {i} but requires at least vectors.  Did \
                     you mean to call pack?"
                );
            };
            lengths.push(len as i64);
            let rest = Shape::from(rest);
            match &row {
                None => {
                    ensure!(
                        except0.admits(&rest),
                        InvalidArgument,
                        "TensorArray was passed element_shape_except0 {except0} but index 0 has \
                         (excepting dimension 0) shape: {rest} which does not match."
                    );
                    row = Some(rest);
                }
                Some(row) => ensure!(
                    *row == rest,
                    InvalidArgument,
                    "TensorArray has inconsistent shapes.  Index 0 has (excepting dimension 0) \
                     shape: {row} but index {i} has (excepting dimension 0) shape: {rest}"
                ),
            }
        }
        let joined = concat(dtype, &row.unwrap_or_default(), values.iter())?;
        ctx.set(0, joined)?;
        ctx.set(1, Tensor::vector(&lengths))
    }))
}

fn split(ctx: &mut Ctx<'_>) -> Result<()> {
    let array = array(ctx)?;
    let value = ctx.take(1)?;
    let Some(&rows) = value.shape().first() else {
        bail!(
            InvalidArgument,
            "Expected value to be at least a vector, but received shape: {}",
            value.shape()
        );
    };
    let lengths = ctx.input(2)?;
    ensure!(
        lengths.rank() == 1,
        InvalidArgument,
        "Expected lengths to be a vector, received shape: {}",
        lengths.shape()
    );
    let lengths = lengths.to_indices()?;
    let total: i64 = lengths.iter().fold(0, |n, &len| n.saturating_add(len));
    ensure!(
        total == rows as i64 && lengths.iter().all(|&len| len >= 0),
        InvalidArgument,
        "Expected sum of lengths to be equal to values.shape[0], but sum of lengths is {total} and \
         value's shape is: {}",
        value.shape()
    );
    let size = array.size()?;
    ensure!(
        lengths.len() == size || (array.is_dynamic() && lengths.len() > size),
        InvalidArgument,
        "TensorArray's size is not equal to the size of lengths ({size} vs. {}), and the \
         TensorArray is not marked as dynamically resizeable",
        lengths.len()
    );
    ensure!(
        value.dtype() == array.dtype,
        InvalidArgument,
        "TensorArray dtype is {} but Op is trying to write dtype {}.",
        array.dtype,
        value.dtype()
    );
    let (mut values, mut from) = (Vec::with_capacity(lengths.len()), 0);
    for &len in &lengths {
        values.push(value.rows(from, len as usize)?);
        from += len as usize;
    }
    let indices: Vec<i64> = (0..lengths.len() as i64).collect();
    array.write(&indices, values)?;
    array.mark(array.size()?)?;
    pass_flow(ctx)
}

fn size(ctx: &mut Ctx<'_>) -> Result<()> {
    let size = array(ctx)?.size()?;
    ctx.set(0, Tensor::scalar(size as i32))
}

fn close(ctx: &mut Ctx<'_>) -> Result<()> {
    array(ctx)?.close();
    Ok(())
}

fn handle_and_flow(c: &ShapeCtx<'_>) -> Result<Vec<PartialShape>> {
    // Handles of strings are pairs; a resource handle and a flow are scalars.
    Ok(if c.outputs == 1 {
        vec![PartialShape::from([2])]
    } else {
        vec![PartialShape::unknown(), PartialShape::scalar()]
    })
}

fn packed_shape(c: &ShapeCtx<'_>) -> Result<Vec<PartialShape>> {
    let rows = if c.inputs.len() == 3 { c.input(1).dim(0) } else { None };
    Ok(vec![behind(rows, &c.attrs.shape("element_shape")?)])
}

fn concat_shape(c: &ShapeCtx<'_>) -> Result<Vec<PartialShape>> {
    let rest = c.attrs.shape("element_shape_except0")?;
    Ok(vec![behind(None, &rest), PartialShape::of_rank(1)])
}

fn behind(rows: Option<usize>, rest: &PartialShape) -> PartialShape {
    match rest.dims() {
        Some(dims) => PartialShape::new(std::iter::once(rows).chain(dims.iter().copied())),
        None => PartialShape::unknown(),
    }
}

/// Starts the declaration of an op that exists in three versions.
fn begin<'c>(
    c: &'c mut Catalog,
    (version, handle): (&str, &str),
    name: &str,
    doc: &str,
) -> OpBuilder<'c> {
    let op = c.op(&format!("TensorArray{name}{version}")).doc(doc);
    let op = op.input(&format!("handle: {handle}"));
    if version == "V3" { op.stateful() } else { op }
}

/// The array that collects the gradients of an array's elements, and the flow that orders its use.
fn gradient_array<'g>(
    g: &GradientScope<'g>,
    flow: Term<'g>,
    version: &str,
) -> Result<(Term<'g>, Term<'g>)> {
    let attrs = Attrs::new().with("source", g.source().as_str());
    let flow = flow.dense();
    let inputs = [g.input(0), flow];
    let found = g.calls_with(&format!("TensorArrayGrad{version}"), &inputs, attrs);
    let flow = if version == "V3" { found[1] } else { flow };
    Ok((found[0], flow))
}

pub(crate) fn register(c: &mut Catalog) {
    const ELEMENT_SHAPE: &str = "element_shape: shape = { unknown_rank: true }";
    const SIZE: [&str; 2] = ["dynamic_size: bool = false", "clear_after_read: bool = true"];
    const NAME: &str = "tensor_array_name: string = ''";
    for (name, outputs, attrs) in [
        ("TensorArray", &["handle: Ref(string)"][..], &[SIZE[0], SIZE[1], NAME, ELEMENT_SHAPE][..]),
        ("TensorArrayV2", &["handle: string"][..], &[ELEMENT_SHAPE, SIZE[0], SIZE[1], NAME][..]),
        (
            "TensorArrayV3",
            &["handle: resource", "flow: float"][..],
            &[ELEMENT_SHAPE, SIZE[0], SIZE[1], "identical_element_shapes: bool = false", NAME][..],
        ),
    ] {
        c.op(name)
            .work(work::any)
            .doc("A new tensor array.")
            .input("size: int32")
            .outputs(outputs)
            .attr("dtype: type")
            .attrs(attrs)
            .stateful()
            .shape(handle_and_flow)
            .cpu(make);
    }
    const GRADIENTS_OF: &str = "The array of the gradients of another.";
    for (name, doc, inputs, outputs) in [
        (
            "TensorArrayGrad",
            GRADIENTS_OF,
            &["handle: string", "flow_in: float"][..],
            &["grad_handle: Ref(string)"][..],
        ),
        (
            "TensorArrayGradV2",
            GRADIENTS_OF,
            &["handle: string", "flow_in: float"][..],
            &["grad_handle: string"][..],
        ),
        (
            "TensorArrayGradV3",
            GRADIENTS_OF,
            &["handle: resource", "flow_in: float"][..],
            &["grad_handle: resource", "flow_out: float"][..],
        ),
        (
            "TensorArrayGradWithShape",
            "The array of the gradients of another, whose elements have more dimensions in front.",
            &["handle: resource", "flow_in: float", "shape_to_prepend: int32"][..],
            &["grad_handle: resource", "flow_out: float"][..],
        ),
    ] {
        c.op(name)
            .doc(doc)
            .inputs(inputs)
            .outputs(outputs)
            .attr("source: string")
            .stateful()
            .shape(handle_and_flow)
            .cpu(gradient);
    }
    c.op("TensorArrayPack")
        .doc("All elements, stacked.")
        .input("handle: Ref(string)")
        .input("flow_in: float")
        .output("value: dtype")
        .attr("dtype: type")
        .attr("element_shape: shape = { unknown_rank: true }")
        .shape(packed_shape)
        .cpu(gather);
    c.op("TensorArrayUnpack")
        .doc("Writes the rows of a tensor as elements.")
        .input("handle: Ref(string)")
        .input("value: T")
        .input("flow_in: float")
        .output("flow_out: float")
        .attr("T: type")
        .shape(shape::scalar)
        .cpu_fn(scatter);
    for (version, handle) in [("", "Ref(string)"), ("V2", "string"), ("V3", "resource")] {
        begin(c, (version, handle), "Write", "Writes an element.")
            .input("index: int32")
            .input("value: T")
            .input("flow_in: float")
            .output("flow_out: float")
            .attr("T: type")
            .shape(shape::scalar)
            .cpu_fn(write);
        begin(c, (version, handle), "Read", "Reads an element.")
            .input("index: int32")
            .input("flow_in: float")
            .output("value: dtype")
            .attr("dtype: type")
            .shape(shape::unknown)
            .cpu(read);
        begin(c, (version, handle), "Gather", "Some elements, stacked.")
            .input("indices: int32")
            .input("flow_in: float")
            .output("value: dtype")
            .attr("dtype: type")
            .attr("element_shape: shape = { unknown_rank: true }")
            .shape(packed_shape)
            .cpu(gather);
        begin(c, (version, handle), "Scatter", "Writes the rows of a tensor as elements.")
            .input("indices: int32")
            .input("value: T")
            .input("flow_in: float")
            .output("flow_out: float")
            .attr("T: type")
            .shape(shape::scalar)
            .cpu_fn(scatter);
        begin(c, (version, handle), "Concat", "All elements, joined along their first dimension.")
            .input("flow_in: float")
            .output("value: dtype")
            .output("lengths: int64")
            .attr("dtype: type")
            .attr("element_shape_except0: shape = { unknown_rank: true }")
            .shape(concat_shape)
            .cpu(concat_all);
        begin(c, (version, handle), "Split", "Writes runs of rows of a tensor as elements.")
            .input("value: T")
            .input("lengths: int64")
            .input("flow_in: float")
            .output("flow_out: float")
            .attr("T: type")
            .shape(shape::scalar)
            .cpu_fn(split);
        begin(c, (version, handle), "Size", "How many elements there are.")
            .input("flow_in: float")
            .output("size: int32")
            .shape(shape::scalar)
            .cpu_fn(size);
        begin(c, (version, handle), "Close", "Drops all elements.")
            .shape(shape::unknown)
            .cpu_fn(close);
    }
    for version in ["", "V2", "V3"] {
        for name in ["", "Grad", "Size", "Close"] {
            c.no_gradient(&[&format!("TensorArray{name}{version}")]);
        }
        c.gradient(&format!("TensorArrayRead{version}"), move |g, dy| {
            let (array, flow) = gradient_array(g, g.input(2), version)?;
            let inputs = [array, g.input(1), dy[0], flow];
            Ok(g.at(2, g.call(&format!("TensorArrayWrite{version}"), &inputs)))
        });
        c.gradient(&format!("TensorArrayWrite{version}"), move |g, dy| {
            let (array, flow) = gradient_array(g, dy[0], version)?;
            let attrs = Attrs::new().with("dtype", g.input(2).dtype());
            let op = format!("TensorArrayRead{version}");
            let of_value = g.call_with(&op, &[array, g.input(1), flow], attrs);
            Ok(vec![g.none(), g.none(), of_value, dy[0]])
        });
        c.gradient(&format!("TensorArrayGather{version}"), move |g, dy| {
            let (array, flow) = gradient_array(g, g.input(2), version)?;
            let inputs = [array, g.input(1), dy[0], flow];
            Ok(g.at(2, g.call(&format!("TensorArrayScatter{version}"), &inputs)))
        });
        c.gradient(&format!("TensorArrayScatter{version}"), move |g, dy| {
            let (array, flow) = gradient_array(g, dy[0], version)?;
            let attrs = Attrs::new().with("dtype", g.input(2).dtype());
            let op = format!("TensorArrayGather{version}");
            let of_value = g.call_with(&op, &[array, g.input(1), flow], attrs);
            Ok(vec![g.none(), g.none(), of_value, dy[0]])
        });
        c.gradient(&format!("TensorArrayConcat{version}"), move |g, dy| {
            let (array, flow) = gradient_array(g, g.input(1), version)?;
            let inputs = [array, dy[0], g.output(1), flow];
            Ok(g.at(1, g.call(&format!("TensorArraySplit{version}"), &inputs)))
        });
        c.gradient(&format!("TensorArraySplit{version}"), move |g, dy| {
            let (array, flow) = gradient_array(g, dy[0], version)?;
            let attrs = Attrs::new().with("dtype", g.input(1).dtype());
            let op = format!("TensorArrayConcat{version}");
            let of_value = g.call_with(&op, &[array, flow], attrs);
            Ok(vec![g.none(), of_value, g.none(), dy[0]])
        });
    }
    c.no_gradient(&["TensorArrayGradWithShape"]);
}

#[cfg(test)]
mod tests;
