//! Switch, Merge and the loop primitives, for values and for references. The executor treats their
//! outputs specially; the kernels only pass values on.

use crate::prelude::*;

/// Outputs input 0, a value or a reference.
fn pass(ctx: &mut Ctx<'_>) -> Result<()> {
    let value = ctx.take_value(0)?;
    ctx.set_value(0, value)
}

/// Input 0 goes to output 1 if the predicate holds, else to output 0. The other output stays empty,
/// which makes it dead.
fn switch(ctx: &mut Ctx<'_>) -> Result<()> {
    let pred = ctx.input(1)?;
    ensure!(
        pred.rank() == 0,
        InvalidArgument,
        "The second input must be a scalar, but it has shape {}",
        pred.shape()
    );
    let pred = pred.scalar_value::<bool>()?;
    let value = ctx.take_value(0)?;
    ctx.set_value(usize::from(pred), value)
}

/// Input 0 goes to the output that `output_index` names, or to the last one if the index is out of
/// range.
fn switch_n(ctx: &mut Ctx<'_>) -> Result<()> {
    let (index, last) = (ctx.input(1)?.scalar_value::<i32>()?, ctx.num_outputs().saturating_sub(1));
    let value = ctx.take_value(0)?;
    let slot = usize::try_from(index).ok().filter(|&i| i <= last).unwrap_or(last);
    ctx.set_value(slot, value)
}

/// The one input that has a value, and its index.
fn merge(ctx: &mut Ctx<'_>) -> Result<()> {
    let Some(i) = (0..ctx.num_inputs()).find(|&i| ctx.has_input(i)) else {
        bail!(Internal, "a Merge ran without an input");
    };
    let value = ctx.take_value(i)?;
    ctx.set_value(0, value)?;
    ctx.set(1, Tensor::scalar(i as i32))
}

/// The reference among inputs 1.. that input 0 selects.
fn ref_select(ctx: &mut Ctx<'_>) -> Result<()> {
    let index = ctx.input(0)?;
    ensure!(
        index.rank() == 0,
        InvalidArgument,
        "Index must be a scalar, but it has shape {}",
        index.shape()
    );
    let index = index.scalar_value::<i32>()?;
    let n = ctx.num_inputs() as i32 - 1;
    ensure!(
        (0..n).contains(&index),
        InvalidArgument,
        "Index must be in the range [0, {n}) but got {index}"
    );
    let value = ctx.take_value(1 + index as usize)?;
    ctx.set_value(0, value)
}

fn merged_shape(c: &ShapeCtx<'_>) -> Result<Vec<PartialShape>> {
    // Merged values may differ in shape, and the values of the next iteration are not known yet.
    let first = c.input(0);
    let same = c.inputs.iter().all(|s| *s == first);
    Ok(vec![if same { first } else { PartialShape::unknown() }, PartialShape::scalar()])
}

/// Inside a loop a value may change its shape from one iteration to the next.
fn first_of_many(c: &ShapeCtx<'_>) -> Result<Vec<PartialShape>> {
    shape::unknown(c)
}

pub(crate) fn register(c: &mut Catalog) {
    use ControlFlow::*;
    for (op, arg, is_ref) in [("Switch", "T", false), ("RefSwitch", "Ref(T)", true)] {
        let b = c
            .op(op)
            .doc("Passes `data` to the output that `pred` picks; the other one is dead.")
            .input(&format!("data: {arg}"))
            .input("pred: bool")
            .output(&format!("output_false: {arg}"))
            .output(&format!("output_true: {arg}"))
            .attr("T: type")
            .control_flow(Switch)
            .shape(shape::same_as_input)
            .anywhere()
            .host_inputs(&["pred"])
            .cpu_fn(switch);
        if is_ref {
            drop(b.allows_uninitialized_input());
        }
    }
    c.op("_SwitchN")
        .doc("Passes `data` to the output that `output_index` names; the others are dead.")
        .input("data: T")
        .input("output_index: int32")
        .output("outputs: num_outs * T")
        .attr("num_outs: int >= 1")
        .attr("T: type")
        .control_flow(SwitchN)
        .shape(shape::same_as_input)
        .anywhere()
        .host_inputs(&["output_index"])
        .cpu_fn(switch_n);
    for (op, arg) in [("Merge", "T"), ("RefMerge", "Ref(T)")] {
        c.op(op)
            .doc("The first of its inputs that is not dead.")
            .input(&if op == "Merge" {
                "inputs: N * T".into()
            } else {
                "inputs: Ref(N * T)".to_string()
            })
            .output(&format!("output: {arg}"))
            .output("value_index: int32")
            .attr("T: type")
            .attr("N: int >= 1")
            .control_flow(Merge)
            .shape(merged_shape)
            .anywhere()
            .host_outputs(&["value_index"])
            .cpu_fn(merge);
    }
    for (op, arg) in [("Enter", "T"), ("RefEnter", "Ref(T)")] {
        c.op(op)
            .doc("Brings a value into the loop `frame_name`.")
            .input(&format!("data: {arg}"))
            .output(&format!("output: {arg}"))
            .attr("T: type")
            .attr("frame_name: string")
            .attr("is_constant: bool = false")
            .attr("parallel_iterations: int = 10")
            .control_flow(Enter)
            .shape(first_of_many)
            .anywhere()
            .cpu_fn(pass);
    }
    for (op, arg, which) in [
        ("Exit", "T", Exit),
        ("RefExit", "Ref(T)", Exit),
        ("NextIteration", "T", NextIteration),
        ("RefNextIteration", "Ref(T)", NextIteration),
    ] {
        c.op(op)
            .doc("Passes a value out of the loop, or to its next iteration.")
            .input(&format!("data: {arg}"))
            .output(&format!("output: {arg}"))
            .attr("T: type")
            .control_flow(which)
            .shape(first_of_many)
            .anywhere()
            .cpu_fn(pass);
    }
    c.op("LoopCond")
        .doc("Whether a loop goes on.")
        .input("input: bool")
        .output("output: bool")
        .control_flow(LoopCond)
        .shape(|c| {
            let input = c.input(0);
            ensure!(
                input.rank().is_none_or(|rank| rank == 0),
                InvalidArgument,
                "Shape must be rank 0 but is rank {}",
                input.rank().unwrap_or_default()
            );
            shape::scalar(c)
        })
        .anywhere()
        .host_inputs(&["input"])
        .host_outputs(&["output"])
        .cpu_fn(pass);
    c.op("ControlTrigger")
        .doc("Runs after its control inputs, dead or alive.")
        .control_flow(ControlTrigger)
        .shape(shape::unknown)
        .anywhere()
        .cpu_fn(|_| Ok(()));
    c.op("Abort")
        .doc("Fails the step; unlike TensorFlow's it never ends the process.")
        .attr("error_msg: string = ''")
        .attr("exit_without_error: bool = false")
        .shape(shape::unknown)
        .cpu(|init| {
            let text = init.string("error_msg")?;
            Ok(KernelBox::new(move |_: &mut Ctx<'_>| Err(err!(Aborted, "Abort: {text}"))))
        });
    c.op("RefSelect")
        .doc("The reference that `index` picks.")
        .input("index: int32")
        .input("inputs: Ref(N * T)")
        .output("output: Ref(T)")
        .attr("T: type")
        .attr("N: int >= 1")
        .reads_variables()
        .shape(shape::unknown)
        .anywhere()
        .host_inputs(&["index"])
        .cpu_fn(ref_select);
    c.op("RefIdentity")
        .doc("Its input, a reference.")
        .input("input: Ref(T)")
        .output("output: Ref(T)")
        .attr("T: type")
        .reads_variables()
        .allows_uninitialized_input()
        .shape(shape::same_as_input)
        .anywhere()
        .cpu_fn(pass);
    for op in ["Switch", "RefSwitch"] {
        // A branch that was not taken has no gradient: the gradient comes from the output that was
        // taken.
        c.gradient(op, |g, dy| {
            let pred = g.input(1);
            let mut ways = Vec::new();
            for (branch, d) in dy.iter().enumerate() {
                ways.push(g.calls("Switch", &[d.dense(), pred])[branch]);
            }
            Ok(g.only(g.call("Merge", &ways)))
        });
    }
    for op in ["Merge", "RefMerge"] {
        c.gradient(op, |g, dy| {
            let from = g.output(1);
            let to = |i: usize| {
                let is_it = from.with("Equal", g.int(i as i64));
                g.calls("Switch", &[dy[0].dense(), is_it])[1]
            };
            Ok((0..g.num_inputs()).map(to).collect())
        });
    }
    c.gradient("RefIdentity", |_, dy| Ok(vec![dy[0]]));
    c.no_gradient(&["LoopCond"]);
}
