//! Variables that graphs hold by resource handles: VarHandleOp and what reads and writes through
//! it.

use crate::prelude::*;
use ferroflow_op_kit::handle::{Seen, Target};

/// TensorFlow's name for the type of the resource.
const TYPE_NAME: &str = "tensorflow::Var";

/// A handle to the variable `name`, which need not exist yet.
fn handle(
    init: &KernelInit<'_>,
    container: String,
    name: String,
    dtype: DType,
    shape: PartialShape,
) -> Tensor {
    let container =
        if container.is_empty() { init.node.default_container.clone() } else { container };
    Tensor::handle(ResourceHandle {
        device: init.node.device.text.clone(),
        container,
        name: if name.is_empty() { init.name().to_string() } else { name },
        hash_code: 0,
        type_name: TYPE_NAME.into(),
        dtypes_and_shapes: vec![(dtype, shape)],
    })
}

fn var_handle(init: &KernelInit<'_>) -> Result<KernelBox> {
    let made = handle(
        init,
        init.string("container")?,
        init.string("shared_name")?,
        init.dtype("dtype")?,
        init.shape("shape")?,
    );
    Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| ctx.set(0, made.clone())))
}

fn var_handles(init: &KernelInit<'_>) -> Result<KernelBox> {
    let text = |b: bytes::Bytes| String::from_utf8_lossy(&b).into_owned();
    let (containers, names) =
        (init.byte_strings("containers")?, init.byte_strings("shared_names")?);
    let (dtypes, shapes) = (init.dtypes("dtypes")?, init.shapes("shapes")?);
    let n = init.outputs.len();
    ensure!(
        [containers.len(), names.len(), dtypes.len(), shapes.len()] == [n; 4],
        InvalidArgument,
        "attrs 'containers', 'shared_names', 'dtypes' and 'shapes' must have length {n}"
    );
    let all = containers.into_iter().zip(names).zip(dtypes).zip(shapes);
    let made: Vec<Tensor> = all
        .map(|(((container, name), dtype), shape)| {
            handle(init, text(container), text(name), dtype, shape)
        })
        .collect();
    Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
        made.iter().enumerate().try_for_each(|(i, handle)| ctx.set(i, handle.clone()))
    }))
}

/// The value of the variable that input `i` names.
fn read(ctx: &Ctx<'_>, i: usize, seen: &Seen<StoredVariable>, dtype: DType) -> Result<Tensor> {
    let input = ctx.input(i)?;
    let found = seen.find(&ctx.step().resources, &Value::Tensor(input.clone()));
    let value = match found {
        Ok(variable) => {
            variable.move_to(ctx.node().device.gpu.as_ref())?;
            variable.snapshot().ok_or_else(|| "it has no value".to_string())
        }
        Err(e) if e.code() == Code::NotFound => Err(e.message().to_string()),
        Err(e) => return Err(e),
    };
    let value = value.map_err(|why| {
        let handle = input.handles().ok().and_then(|h| h.first());
        let (name, container) =
            handle.map_or(("", ""), |h| (h.name.as_str(), h.container.as_str()));
        err!(
            FailedPrecondition,
            "Could not find variable {name}. This could mean that the variable has been deleted. \
             In TF1, it can also mean the variable is uninitialized. Debug info: \
             container={container}, status error message={why}"
        )
    })?;
    ensure!(
        value.dtype() == dtype,
        InvalidArgument,
        "Trying to read variable with wrong dtype. Expected {dtype} got {}",
        value.dtype()
    );
    Ok(value)
}

fn read_variable(init: &KernelInit<'_>) -> Result<KernelBox> {
    let (dtype, seen) = (init.dtype("dtype")?, Seen::new());
    Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
        let value = read(ctx, 0, &seen, dtype)?;
        ctx.set(0, value)
    }))
}

fn read_variables(init: &KernelInit<'_>) -> Result<KernelBox> {
    let all: Vec<(DType, Seen<StoredVariable>)> =
        init.dtypes("dtypes")?.into_iter().map(|dtype| (dtype, Seen::new())).collect();
    ensure!(
        all.len() == init.inputs.len(),
        InvalidArgument,
        "{} variables are read as {} types",
        init.inputs.len(),
        all.len()
    );
    Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
        for (i, (dtype, seen)) in all.iter().enumerate() {
            let value = read(ctx, i, seen, *dtype)?;
            ctx.set(i, value)?;
        }
        Ok(())
    }))
}

struct AssignVariable {
    dtype: DType,
    validate_shape: bool,
    seen: Seen<StoredVariable>,
}

impl Kernel for AssignVariable {
    fn compute(&self, ctx: &mut Ctx<'_>) -> Result<()> {
        let value = ctx.take(1)?;
        let resources = &ctx.step().resources;
        let to = ctx.take_value(0)?;
        let variable = match self.seen.find(resources, &to) {
            Err(e) if e.code() == Code::NotFound => {
                let Value::Tensor(to) = &to else { return Err(e) };
                let [handle] = to.handles()? else {
                    bail!(InvalidArgument, "expected one handle, got shape {}", to.shape());
                };
                let declared = handle.dtypes_and_shapes.first();
                let shape = declared.map_or_else(PartialShape::unknown, |(_, s)| s.clone());
                let declared = declared.map_or(self.dtype, |(dtype, _)| *dtype);
                check_dtype(declared, self.dtype)?;
                if self.validate_shape {
                    check_shape(shape.admits(value.shape()), &shape, &value)?;
                }
                resources.lookup_or_create(&handle.container, &handle.name, || {
                    let variable = StoredVariable::new(handle.name.clone(), declared, shape);
                    variable.assign(value.clone());
                    Ok(variable)
                })?
            }
            found => found?,
        };
        check_dtype(variable.dtype(), self.dtype)?;
        let old = variable.update(|slot| {
            if let Some(now) = slot.as_ref().filter(|_| self.validate_shape) {
                check_shape(now.shape() == value.shape(), now.shape(), &value)?;
            }
            StoredVariable::replace(slot, value)
        })?;
        drop(old);
        Ok(())
    }
}

fn check_dtype(is: DType, assigned: DType) -> Result<()> {
    ensure!(
        is == assigned,
        InvalidArgument,
        "Trying to assign variable with wrong dtype. Expected {is} got {assigned}"
    );
    Ok(())
}

fn check_shape(fits: bool, want: &dyn std::fmt::Display, value: &Tensor) -> Result<()> {
    ensure!(
        fits,
        InvalidArgument,
        "Trying to assign to variable with tensor with wrong shape. Expected {want} got {}",
        value.shape()
    );
    Ok(())
}

fn assign_variable(init: &KernelInit<'_>) -> Result<KernelBox> {
    Ok(KernelBox::new(AssignVariable {
        dtype: init.dtype("dtype")?,
        validate_shape: init.bool("validate_shape")?,
        seen: Seen::new(),
    }))
}

fn is_initialized(_: &KernelInit<'_>) -> Result<KernelBox> {
    let seen = Seen::<StoredVariable>::new();
    Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
        let handle = ctx.take_value(0)?;
        let found = seen.find(&ctx.step().resources, &handle);
        ctx.set(0, Tensor::scalar(found.is_ok_and(|variable| variable.is_initialized())))
    }))
}

fn variable_shape(init: &KernelInit<'_>) -> Result<KernelBox> {
    let (target, wide) = (Target::new(init, 0), init.dtype("out_type")? == DType::Int64);
    Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
        let value = target.get(ctx)?.read()?;
        let dims = value.shape().to_i64s();
        if wide {
            return ctx.set(0, Tensor::vector(&dims));
        }
        let narrow: Result<Vec<i32>> = dims
            .into_iter()
            .map(|d| i32::try_from(d).map_err(|_| err!(InvalidArgument, "{d} exceeds int32")))
            .collect();
        ctx.set(0, Tensor::vector(&narrow?))
    }))
}

fn destroy(init: &KernelInit<'_>) -> Result<KernelBox> {
    let ignore = init.bool("ignore_lookup_error")?;
    Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
        let handle = ctx.handle(0)?;
        match ctx.resources().delete(&handle.container, &handle.name) {
            Err(e) if !(ignore && e.code() == Code::NotFound) => Err(e),
            _ => Ok(()),
        }
    }))
}

pub(crate) fn register(c: &mut Catalog) {
    c.op("VarHandleOp")
        .doc("A handle to a variable.")
        .output("resource: resource")
        .attr("container: string = ''")
        .attr("shared_name: string = ''")
        .attr("debug_name: string = ''")
        .attr("dtype: type")
        .attr("shape: shape")
        .attr("allowed_devices: list(string) = []")
        .stateful()
        .role(OpRole::Variable)
        .shape(shape::scalar)
        .anywhere()
        .cpu(var_handle);
    c.op("_VarHandlesOp")
        .doc("Handles to several variables.")
        .output("resources: N * resource")
        .attr("containers: list(string)")
        .attr("shared_names: list(string)")
        .attr("N: int >= 0")
        .attr("dtypes: list(type)")
        .attr("shapes: list(shape)")
        .stateful()
        .shape(shape::scalar)
        .anywhere()
        .cpu(var_handles);
    c.op("ReadVariableOp")
        .doc("The value of a variable, which later updates do not change.")
        .input("resource: resource")
        .output("value: dtype")
        .attr("dtype: type")
        .stateful()
        .reads_variables()
        .shape(shape::unknown)
        .anywhere()
        .cpu(read_variable);
    c.op("_ReadVariablesOp")
        .doc("The values of several variables.")
        .input("resources: N * resource")
        .output("values: dtypes")
        .attr("N: int >= 0")
        .attr("dtypes: list(type) >= 1")
        .stateful()
        .reads_variables()
        .shape(shape::unknown)
        .anywhere()
        .cpu(read_variables);
    c.op("AssignVariableOp")
        .doc("Gives a variable a value, and makes it if it is not there.")
        .input("resource: resource")
        .input("value: dtype")
        .attr("dtype: type")
        .attr("validate_shape: bool = false")
        .stateful()
        .shape(shape::unknown)
        .anywhere()
        .cpu(assign_variable);
    c.op("VarIsInitializedOp")
        .doc("Whether a variable is there and has a value.")
        .input("resource: resource")
        .output("is_initialized: bool")
        .stateful()
        .reads_variables()
        .shape(shape::scalar)
        .anywhere()
        .host_outputs(&["is_initialized"])
        .cpu(is_initialized);
    c.op("VariableShape")
        .doc("The shape of a variable's value.")
        .input("input: resource")
        .output("output: out_type")
        .attr("out_type: {int32, int64} = DT_INT32")
        .stateful()
        .reads_variables()
        .shape(shape::vector)
        .anywhere()
        .host_outputs(&["output"])
        .cpu(variable_shape);
    c.op("DestroyResourceOp")
        .doc("Deletes a resource.")
        .input("resource: resource")
        .attr("ignore_lookup_error: bool = true")
        .stateful()
        .shape(shape::unknown)
        .anywhere()
        .cpu(destroy);
    c.op("DisableCopyOnRead")
        .doc("Nothing: reads never copy here.")
        .input("resource: resource")
        .stateful()
        .reads_variables()
        .shape(shape::unknown)
        .anywhere()
        .cpu_fn(|_| Ok(()));
    c.op("IsResourceHandleRefCounting")
        .doc("Whether a handle keeps its resource alive: never here, since handles are names.")
        .input("handle: resource")
        .output("result: bool")
        .stateful()
        .reads_variables()
        .shape(shape::scalar)
        .cpu_fn(|ctx| ctx.set(0, Tensor::scalar(false)));
    c.gradient("ReadVariableOp", |_, dy| Ok(vec![dy[0]]));
    c.no_gradient(&["VarIsInitializedOp", "VariableShape"]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Check, check};

    fn made(resources: &Arc<Resources>) -> Tensor {
        check("VarHandleOp")
            .resources(resources)
            .attr("dtype", DType::Float)
            .attr("shape", PartialShape::from([2]))
            .attr("shared_name", "v")
            .run()
            .unwrap()
            .remove(0)
    }

    #[test]
    fn a_variable_is_made_by_its_first_assignment() {
        let resources = Arc::new(Resources::new());
        let v = made(&resources);
        let on = |op: &str| -> Check<'static> { check(op).resources(&resources).input(v.clone()) };
        on("VarIsInitializedOp").gives(Tensor::scalar(false));
        on("ReadVariableOp").attr("dtype", DType::Float).fails(
            Code::FailedPrecondition,
            "Could not find variable v. This could mean that the variable has been deleted. In \
             TF1, it can also mean the variable is uninitialized. Debug info: \
             container=localhost, status error message=Resource localhost/v/Variable does not \
             exist.",
        );
        on("VariableShape").fails(Code::NotFound, "localhost/v/");
        on("AssignVariableOp")
            .input(Tensor::vector(&[1.0f32]))
            .attr("validate_shape", true)
            .fails(Code::InvalidArgument, "Expected [2] got [1]");
        on("AssignVariableOp").input(Tensor::vector(&[1.0f32, 2.0])).run().unwrap();
        on("VarIsInitializedOp").gives(Tensor::scalar(true));
        on("ReadVariableOp").attr("dtype", DType::Float).gives(Tensor::vector(&[1.0f32, 2.0]));
        on("ReadVariableOp").attr("dtype", DType::Int32).fails(
            Code::InvalidArgument,
            "Trying to read variable with wrong dtype. Expected int32 got float",
        );
        on("AssignVariableOp").input(Tensor::vector(&[1i32, 2])).fails(
            Code::InvalidArgument,
            "Trying to assign variable with wrong dtype. Expected float got int32",
        );
        on("VariableShape").gives(Tensor::vector(&[2i32]));
        on("VariableShape").attr("out_type", DType::Int64).gives(Tensor::vector(&[2i64]));
        // Without validation the shape may change.
        on("AssignVariableOp").input(Tensor::scalar(5.0f32)).run().unwrap();
        on("ReadVariableOp").attr("dtype", DType::Float).gives(Tensor::scalar(5.0f32));
        on("DestroyResourceOp").run().unwrap();
        on("VarIsInitializedOp").gives(Tensor::scalar(false));
        on("DestroyResourceOp").run().unwrap();
        on("DestroyResourceOp").attr("ignore_lookup_error", false).fails(Code::NotFound, "v");
    }

    #[test]
    fn several_handles_and_reads_at_once() {
        let resources = Arc::new(Resources::new());
        let strings = |s: &[&'static str]| {
            ferroflow_graph::AttrList::Strs(s.iter().map(|&s| bytes::Bytes::from(s)).collect())
        };
        let handles = check("_VarHandlesOp")
            .resources(&resources)
            .attr("containers", strings(&["", "c"]))
            .attr("shared_names", strings(&["a", "b"]))
            .attr("N", 2)
            .attr("dtypes", vec![DType::Float, DType::Int32])
            .attr("shapes", vec![PartialShape::scalar(), PartialShape::scalar()])
            .run()
            .unwrap();
        assert_eq!(handles[1].handles().unwrap()[0].container, "c");
        let values = [Tensor::scalar(1.0f32), Tensor::scalar(2i32)];
        for (handle, value) in handles.iter().zip(&values) {
            check("AssignVariableOp")
                .resources(&resources)
                .input(handle.clone())
                .input(value.clone())
                .run()
                .unwrap();
        }
        let got = check("_ReadVariablesOp")
            .resources(&resources)
            .input(handles[0].clone())
            .input(handles[1].clone())
            .attr("dtypes", vec![DType::Float, DType::Int32])
            .run()
            .unwrap();
        assert_eq!(got, values);
    }
}
