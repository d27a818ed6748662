//! Function calls, and the nodes that are a function's arguments and results.

use crate::prelude::*;
use ferroflow_graph::{FuncRef, SYMBOLIC_GRADIENT};

/// Calls a function with all inputs; its results are the outputs.
struct Call {
    function: FunctionHandle,
}

impl AsyncKernel for Call {
    fn start(&self, mut ctx: AsyncCtx, done: Done, scope: &InlineScope) {
        let n = ctx.inputs.len();
        match self.function.get().and_then(|f| Ok((f, ctx.take_inputs(0..n)?))) {
            Ok((f, args)) => {
                let finish = move |result: Result<Vec<Tensor>>, scope: &InlineScope| {
                    done.finish_tensors_in(scope, result);
                };
                f.call(args, &ctx.step, scope, Box::new(finish))
            }
            Err(e) => done.fail(e),
        }
    }
}

/// Calls a function on another device. On one task that is a plain call; input 0 names the device.
struct RemoteCall {
    function: FunctionHandle,
}

impl AsyncKernel for RemoteCall {
    fn start(&self, mut ctx: AsyncCtx, done: Done, scope: &InlineScope) {
        let n = ctx.inputs.len();
        match self.function.get().and_then(|f| Ok((f, ctx.take_inputs(1..n)?))) {
            Ok((f, args)) => {
                let finish = move |result: Result<Vec<Tensor>>, scope: &InlineScope| {
                    done.finish_tensors_in(scope, result);
                };
                f.call(args, &ctx.step, scope, Box::new(finish))
            }
            Err(e) => done.fail(e),
        }
    }
}

/// Only the executor reads these nodes; their kernels never run.
fn never_run(ctx: &mut Ctx<'_>) -> Result<()> {
    bail!(Internal, "'{}' is not a node to run", ctx.name())
}

pub(crate) fn register(c: &mut Catalog) {
    for op in ["_Arg", "_DeviceArg"] {
        c.op(op)
            .doc("Argument `index` of a function or step.")
            .output("output: T")
            .attr("T: type")
            .attr("index: int >= 0")
            .stateful()
            .role(OpRole::Argument)
            .shape(shape::unknown)
            .cpu_fn(never_run);
    }
    for op in ["_Retval", "_DeviceRetval"] {
        c.op(op)
            .doc("Result `index` of a function or step.")
            .input("input: T")
            .attr("T: type")
            .attr("index: int >= 0")
            .stateful()
            .role(OpRole::Return)
            .shape(shape::unknown)
            .cpu_fn(never_run);
    }
    for (op, stateful) in [("PartitionedCall", false), ("StatefulPartitionedCall", true)] {
        let b = c
            .op(op)
            .doc("Calls `f` with `args`.")
            .input("args: Tin")
            .output("output: Tout")
            .attr("Tin: list(type) >= 0")
            .attr("Tout: list(type) >= 0")
            .attr("f: func")
            .attr("config: string = ''")
            .attr("config_proto: string = ''")
            .attr("executor_type: string = ''")
            .expensive()
            .calls(CallKind::Function)
            .shape(shape::unknown)
            .cpu(|init| Ok(KernelBox::new_async(Call { function: init.function("f")? })));
        if stateful {
            drop(b.stateful());
        }
    }
    c.op("SymbolicGradient")
        .doc("The gradient of `f`: from its arguments and the gradients of its results, those of its arguments.")
        .input("input: Tin")
        .output("output: Tout")
        .attr("Tin: list(type) >= 1")
        .attr("Tout: list(type) >= 1")
        .attr("f: func")
        .expensive()
        .shape(|c| Ok((0..c.outputs).map(|i| c.input(i)).collect()))
        .waits()
        .cpu(|init| {
            let attrs = Attrs::new().with("f", init.func("f")?);
            let gradient = FuncRef { name: SYMBOLIC_GRADIENT.into(), attrs };
            Ok(KernelBox::new_async(Call { function: init.function_ref(gradient) }))
        });
    c.op("RemoteCall")
        .doc("Calls `f` with `args` on the device `target`.")
        .input("target: string")
        .input("args: Tin")
        .output("output: Tout")
        .attr("Tin: list(type) >= 1")
        .attr("Tout: list(type) >= 1")
        .attr("f: func")
        .stateful()
        .expensive()
        .takes_resources_from_anywhere()
        .shape(shape::unknown)
        .waits()
        .cpu(|init| Ok(KernelBox::new_async(RemoteCall { function: init.function("f")? })));
    for op in ["PartitionedCall", "StatefulPartitionedCall"] {
        c.gradient(op, |g, dy| g.call_gradient(g.attrs().func("f")?, Some("f"), dy));
    }
}
