//! Ops that pass their input through: StopGradient, Snapshot, EnsureShape, the debugger's
//! identities.

use crate::prelude::*;

/// Passes input 0 through, references included.
fn identity(ctx: &mut Ctx<'_>) -> Result<()> {
    let x = ctx.take_value(0)?;
    ctx.set_value(0, x)
}

/// Passes every input through as the output of its number.
fn identities(ctx: &mut Ctx<'_>) -> Result<()> {
    for i in 0..ctx.num_inputs() {
        let x = ctx.take_value(i)?;
        ctx.set_value(i, x)?;
    }
    Ok(())
}

/// A list of tensors, and as many tensors of one type.
fn converted_list(c: &ShapeCtx<'_>, types: &str) -> Result<Vec<PartialShape>> {
    let (dtypes, n) = (c.attrs.dtypes(types)?, c.attrs.int("N")?);
    let dtype = c.attrs.dtype("T")?;
    ensure!(
        i64::try_from(dtypes.len()).is_ok_and(|len| len == n) && dtypes.iter().all(|&d| d == dtype),
        InvalidArgument,
        "attr {types} must be {n} times {dtype}, got {dtypes:?}"
    );
    shape::like_inputs(c)
}

/// A copy of input 0 in its own storage.
fn copy(ctx: &mut Ctx<'_>) -> Result<()> {
    let x = ctx.take_or_copy(0)?;
    ctx.set(0, x)
}

/// Input 0, if it has the shape in attribute `shape`.
fn ensure_shape(init: &KernelInit<'_>) -> Result<KernelBox> {
    let want = init.shape("shape")?;
    Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
        let x = ctx.take(0)?;
        ensure!(
            want.admits(x.shape()),
            InvalidArgument,
            "Shape of tensor {} {} is not compatible with expected shape {want}.",
            ctx.name(),
            x.shape()
        );
        ctx.set(0, x)
    }))
}

pub(crate) fn register(c: &mut Catalog) {
    for (name, doc) in [
        ("StopGradient", "Its input, which gradients do not flow through."),
        ("Snapshot", "Its input as it is now."),
    ] {
        c.op(name)
            .doc(doc)
            .input("input: T")
            .output("output: T")
            .attr("T: type")
            .role(OpRole::Identity)
            .shape(shape::same_as_input)
            .anywhere()
            .cpu_fn(identity);
    }
    c.op("_EagerConst")
        .doc("Its input, a constant of eager mode.")
        .input("input: T")
        .output("output: T")
        .attr("T: type")
        .role(OpRole::Identity)
        .shape(shape::same_as_input)
        .anywhere()
        .cpu_fn(identity);
    c.op("_ArrayToList")
        .doc("Tensors of one type as a list of tensors.")
        .input("input: N * T")
        .output("output: out_types")
        .attr("T: type")
        .attr("N: int >= 1")
        .attr("out_types: list(type) >= 1")
        .shape(|c| converted_list(c, "out_types"))
        .anywhere()
        .cpu_fn(identities);
    c.op("_ListToArray")
        .doc("A list of tensors as tensors of one type.")
        .input("input: Tin")
        .output("output: N * T")
        .attr("Tin: list(type) >= 1")
        .attr("T: type")
        .attr("N: int >= 1")
        .shape(|c| converted_list(c, "Tin"))
        .anywhere()
        .cpu_fn(identities);
    c.op("PreventGradient")
        .doc("Its input; asking for a gradient through it is an error.")
        .input("input: T")
        .output("output: T")
        .attr("T: type")
        .attr("message: string = ''")
        .role(OpRole::Identity)
        .shape(shape::same_as_input)
        .anywhere()
        .cpu_fn(identity);
    c.op("GuaranteeConst")
        .doc("Its input, promised to be constant.")
        .input("input: T")
        .output("output: T")
        .attr("T: type")
        .stateful()
        .shape(shape::same_as_input)
        .anywhere()
        .cpu_fn(identity);
    c.op("DeepCopy")
        .doc("A copy of its input that shares no storage with it.")
        .input("x: T")
        .output("y: T")
        .attr("T: type")
        .stateful()
        .shape(shape::same_as_input)
        .cpu_fn(copy);
    c.op("EnsureShape")
        .doc("Its input, which must have the given shape.")
        .input("input: T")
        .output("output: T")
        .attr("shape: shape")
        .attr("T: type")
        .shape(|c| Ok(vec![c.input(0).merge(&c.attrs.shape("shape")?)?]))
        .anywhere()
        .cpu(ensure_shape);
    c.op("DebugGradientIdentity")
        .doc("Its input; marks a gradient for the debugger.")
        .input("input: T")
        .output("output: T")
        .attr("T: type")
        .allows_uninitialized_input()
        .shape(shape::same_as_input)
        .anywhere()
        .cpu_fn(identity);
    c.op("DebugGradientRefIdentity")
        .doc("Its input, a reference; marks a gradient for the debugger.")
        .input("input: Ref(T)")
        .output("output: Ref(T)")
        .attr("T: type")
        .reads_variables()
        .allows_uninitialized_input()
        .shape(shape::same_as_input)
        .anywhere()
        .cpu_fn(identity);
    for name in ["Copy", "CopyHost"] {
        c.op(name)
            .doc("A copy of its input for the debugger.")
            .input("input: T")
            .output("output: T")
            .attr("T: type")
            .attr("tensor_name: string = ''")
            .attr("debug_ops_spec: list(string) = []")
            .allows_uninitialized_input()
            .shape(shape::same_as_input)
            .cpu_fn(copy);
    }
    c.op("DebugIdentity")
        .doc("Its input; the debug URLs are not served.")
        .input("input: T")
        .output("output: T")
        .attr("T: type")
        .attr("device_name: string = ''")
        .attr("tensor_name: string = ''")
        .attr("debug_urls: list(string) = []")
        .attr("gated_grpc: bool = false")
        .allows_uninitialized_input()
        .shape(shape::same_as_input)
        .cpu_fn(identity);
    c.op("DebugIdentityV2")
        .doc("Its input; the debug URLs are not served.")
        .input("input: T")
        .output("output: T")
        .attr("T: type")
        .attr("tfdbg_context_id: string = ''")
        .attr("op_name: string = ''")
        .attr("output_slot: int = -1")
        .attr("tensor_debug_mode: int = -1")
        .attr("debug_urls: list(string) = []")
        .attr("circular_buffer_size: int = 1000")
        .attr("tfdbg_run_id: string = ''")
        .stateful()
        .shape(shape::same_as_input)
        .cpu_fn(identity);
    c.no_gradient(&["StopGradient"]);
    c.gradient("PreventGradient", |g, _| {
        let why = g.attrs().string("message")?;
        bail!(Unimplemented, "Gradient explicitly disabled. Reason: {why}")
    });
    // As in TensorFlow, whose function for it raises an error.
    c.gradient("_EagerConst", |_, _| {
        bail!(Unimplemented, "_EagerConst has no gradient: it is a constant of eager mode")
    });
    for op in
        ["EnsureShape", "DebugGradientIdentity", "DebugGradientRefIdentity", "DebugIdentityV2"]
    {
        c.gradient(op, |_, dy| Ok(vec![dy[0]]));
    }
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::testing::check;

    #[test]
    fn what_goes_in_comes_out() {
        for op in ["StopGradient", "Snapshot", "PreventGradient", "GuaranteeConst", "Copy"] {
            check(op).maps([1.0f32, f32::NAN], [1.0, f32::NAN]);
        }
        check("StopGradient").input(Tensor::string("a")).gives(Tensor::string("a"));
        check("DebugIdentity").maps([1i32], [1]);
        check("DebugGradientIdentity").maps([1i32], [1]);
    }

    #[test]
    fn a_reference_stays_a_reference() {
        let v = Arc::new(StoredVariable::new("v", DType::Float, PartialShape::scalar()));
        let out = check("DebugGradientRefIdentity").ref_input(v.clone()).run_values().unwrap();
        assert!(matches!(&out[0], Value::Ref(r) if Arc::ptr_eq(r, &v)));
    }

    #[test]
    fn a_deep_copy_shares_nothing() {
        let x = Tensor::vector(&[1.0f32, 2.0]);
        let y = check("DeepCopy").input(x.clone()).run().unwrap();
        assert_eq!(y[0], x);
        assert!(!y[0].shares_storage(&x));
        let y = check("Snapshot").input(x.clone()).run().unwrap();
        assert!(y[0].shares_storage(&x));
    }

    #[test]
    fn a_shape_is_ensured() {
        let x = Tensor::zeros(DType::Float, [2, 3]).unwrap();
        let want = |dims: &[i64]| PartialShape::from_i64s(dims).unwrap();
        check("EnsureShape").input(x.clone()).attr("shape", want(&[2, -1])).gives(x.clone());
        check("EnsureShape")
            .input(x)
            .attr("shape", want(&[2, 4]))
            .fails(Code::InvalidArgument, "[2,3] is not compatible with expected shape [2,4].");
    }
}
