//! If, XlaIf and Case: one of several functions is called.

use crate::prelude::*;
use ferroflow_graph::{AttrList, FuncRef};

/// Whether a tensor counts as true: a scalar that is not zero or the empty string, or any tensor
/// with elements.
pub(super) fn is_true(t: &Tensor) -> Result<bool> {
    if t.rank() > 0 {
        return Ok(t.elements() > 0);
    }
    match t.dtype() {
        DType::String => Ok(!t.scalar_string()?.is_empty()),
        dtype if dtype.is_plain() => Ok(match dtype {
            // Minus zero is zero.
            DType::Float => t.scalar_value::<f32>()? != 0.0,
            DType::Double => t.scalar_value::<f64>()? != 0.0,
            _ => t.bytes()?.iter().any(|&b| b != 0),
        }),
        other => bail!(InvalidArgument, "a {other} is neither true nor false"),
    }
}

/// Calls `functions[index(input 0)]` with the other inputs.
struct Branch {
    functions: Vec<FunctionHandle>,
    choose: fn(&Tensor, usize) -> Result<usize>,
}

impl AsyncKernel for Branch {
    fn start(&self, mut ctx: AsyncCtx, done: Done, scope: &InlineScope) {
        let n = ctx.inputs.len();
        let chosen = ctx
            .input(0)
            .and_then(|t| (self.choose)(t, self.functions.len()))
            .and_then(|i| self.functions[i].get());
        match chosen.and_then(|f| Ok((f, ctx.take_inputs(1..n)?))) {
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

fn make_if(init: &KernelInit<'_>) -> Result<KernelBox> {
    let functions = vec![init.function("then_branch")?, init.function("else_branch")?];
    Ok(KernelBox::new_async(Branch { functions, choose: |t, _| Ok(usize::from(!is_true(t)?)) }))
}

fn make_case(init: &KernelInit<'_>) -> Result<KernelBox> {
    let functions = init.functions_of("branches")?;
    // An index out of range means the last branch.
    let choose = |t: &Tensor, n: usize| {
        let index = t.scalar_value::<i32>()?;
        Ok(usize::try_from(index).ok().filter(|&i| i < n).unwrap_or(n - 1))
    };
    Ok(KernelBox::new_async(Branch { functions, choose }))
}

fn output_shapes(c: &ShapeCtx<'_>) -> Result<Vec<PartialShape>> {
    let stated = c.attrs.shapes("output_shapes")?;
    Ok(if stated.len() == c.outputs { stated } else { vec![PartialShape::unknown(); c.outputs] })
}

pub(crate) fn register(c: &mut Catalog) {
    for (op, stateful) in [("If", true), ("StatelessIf", false)] {
        let b = c
            .op(op)
            .doc("Calls `then_branch` if `cond` is true, else `else_branch`.")
            .input("cond: Tcond")
            .input("input: Tin")
            .output("output: Tout")
            .attr("Tcond: type")
            .attr("Tin: list(type) >= 0")
            .attr("Tout: list(type) >= 0")
            .attr("then_branch: func")
            .attr("else_branch: func")
            .attr("output_shapes: list(shape) = []")
            .expensive()
            .calls(CallKind::If)
            .shape(output_shapes)
            .cpu(make_if);
        if stateful {
            drop(b.stateful());
        }
    }
    c.op("_If")
        .doc("Calls `then_branch` if `cond` is true, else `else_branch`.")
        .input("cond: Tcond")
        .input("input: Tin")
        .output("output: Tout")
        .attr("Tcond: type")
        .attr("Tin: list(type) >= 1")
        .attr("Tout: list(type) >= 1")
        .attr("then_branch: func")
        .attr("else_branch: func")
        .stateful()
        .expensive()
        .calls(CallKind::If)
        .shape(shape::unknown)
        .cpu(make_if);
    c.op("XlaIf")
        .doc("Calls `then_branch` if `cond` is true, else `else_branch`.")
        .input("cond: Tcond")
        .input("inputs: Tin")
        .output("output: Tout")
        .attr("Tcond: type")
        .attr("then_branch: func")
        .attr("else_branch: func")
        .attr("Tin: list(type) >= 0")
        .attr("Tout: list(type) >= 0")
        .stateful()
        .expensive()
        .calls(CallKind::If)
        .shape(shape::unknown)
        .cpu(make_if);
    for (op, stateful) in [("Case", true), ("StatelessCase", false)] {
        let b = c
            .op(op)
            .doc("Calls the branch that `branch_index` picks.")
            .input("branch_index: int32")
            .input("input: Tin")
            .output("output: Tout")
            .attr("Tin: list(type) >= 0")
            .attr("Tout: list(type) >= 0")
            .attr("branches: list(func) >= 1")
            .attr("output_shapes: list(shape) = []")
            .expensive()
            .calls(CallKind::Case)
            .shape(output_shapes)
            .cpu(make_case);
        if stateful {
            drop(b.stateful());
        }
    }
    for op in ["If", "StatelessIf"] {
        c.gradient(op, |g, dy| {
            let funcs = [g.attrs().func("then_branch")?, g.attrs().func("else_branch")?];
            let set = |attrs: &mut Attrs, funcs: Vec<FuncRef>| {
                for (name, func) in ["then_branch", "else_branch"].into_iter().zip(funcs) {
                    attrs.set(name, func);
                }
            };
            g.branch_gradient(&funcs, set, ("If", "StatelessIf"), dy)
        });
    }
    for op in ["Case", "StatelessCase"] {
        c.gradient(op, |g, dy| {
            let funcs = g.attrs().funcs("branches")?;
            let set = |attrs: &mut Attrs, funcs: Vec<FuncRef>| {
                attrs.set("branches", AttrList::Funcs(funcs));
            };
            g.branch_gradient(&funcs, set, ("Case", "StatelessCase"), dy)
        });
    }
}
