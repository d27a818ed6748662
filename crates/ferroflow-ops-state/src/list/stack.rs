//! Stacks that live for a step. The gradients of loops keep values on them.

use super::set_typed;
use crate::prelude::*;
use ferroflow_graph::OpBuilder;
use ferroflow_op_kit::handle::{name_in, ref_handle};
use ferroflow_op_kit::handle_form::HandleForm;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

const CONTAINER: &str = "_stacks";

struct Stack {
    name: String,
    max: usize,
    /// `None` once it is closed.
    items: Mutex<Option<Vec<Tensor>>>,
}

impl Resource for Stack {
    fn describe(&self) -> String {
        format!("stack {}", self.name)
    }
}

impl Stack {
    fn with<R>(&self, act: impl FnOnce(&mut Vec<Tensor>) -> Result<R>) -> Result<R> {
        match &mut *self.items.lock() {
            Some(items) => act(items),
            None => bail!(InvalidArgument, "Stack[{}] has already been closed.", self.name),
        }
    }
}

fn found(ctx: &mut Ctx<'_>) -> Result<Arc<Stack>> {
    let handle = ctx.take_value(0)?;
    let (container, name) = name_in(&handle)?;
    ctx.step().step_resources.lookup(&container, &name)
}

fn make(init: &KernelInit<'_>) -> Result<KernelBox> {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    let name = match init.string("stack_name")? {
        name if name.is_empty() => init.name().to_string(),
        name => name,
    };
    let by_ref = init.outputs.first().is_some_and(|port| port.is_ref);
    Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
        let max = if by_ref { -1 } else { ctx.input(0)?.scalar_index()? };
        let max = usize::try_from(max).unwrap_or(usize::MAX);
        let name = format!("{name}_{}", COUNTER.fetch_add(1, Ordering::Relaxed));
        let stack = Stack { name: name.clone(), max, items: Mutex::new(Some(Vec::new())) };
        ctx.step().step_resources.create(CONTAINER, &name, stack)?;
        if by_ref {
            return ctx.set_value(0, ref_handle(CONTAINER, &name));
        }
        let handle = ResourceHandle {
            device: ctx.node().device.text.clone(),
            container: CONTAINER.into(),
            name,
            type_name: "tensorflow::Stack".into(),
            ..Default::default()
        };
        ctx.set(0, Tensor::handle(handle))
    }))
}

fn push(ctx: &mut Ctx<'_>) -> Result<()> {
    let stack = found(ctx)?;
    let value = ctx.take(1)?;
    stack.with(|items| {
        ensure!(
            items.len() < stack.max,
            InvalidArgument,
            "Stack[{}] overflowed its max_size ({})",
            stack.name,
            stack.max
        );
        items.push(value.clone());
        Ok(())
    })?;
    ctx.set(0, value)
}

fn pop(init: &KernelInit<'_>) -> Result<KernelBox> {
    let dtype = init.dtype("elem_type")?;
    Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
        let stack = found(ctx)?;
        let value = stack.with(|items| {
            items.pop().ok_or_else(|| {
                err!(InvalidArgument, "Stack[{}] is empty when calling Pop().", stack.name)
            })
        })?;
        set_typed(ctx, value, dtype)
    }))
}

fn close(ctx: &mut Ctx<'_>) -> Result<()> {
    let dropped = found(ctx)?.items.lock().take();
    drop(dropped);
    Ok(())
}

/// Starts the declaration of an op on a stack, in one of two forms.
fn on<'c>(c: &'c mut Catalog, form: HandleForm, name: &str, doc: &str) -> OpBuilder<'c> {
    form.input(c.op(&form.versioned(name)).doc(doc), "handle")
}

pub(crate) fn register(c: &mut Catalog) {
    for form in HandleForm::BOTH {
        let op = c.op(&form.versioned("Stack")).doc("A new stack.");
        form.output(op, "handle")
            .inputs(form.pick(&[][..], &["max_size: int32"]))
            .attr("elem_type: type")
            .attr("stack_name: string = ''")
            .cpu(make);
        on(c, form, "StackPush", "Puts a value on a stack, and passes it on.")
            .input("elem: T")
            .output("output: T")
            .attr("T: type")
            .attr("swap_memory: bool = false")
            .shape(|c| Ok(vec![c.input(1)]))
            .cpu_fn(push);
        on(c, form, "StackPop", "Takes the value on top of a stack.")
            .output("elem: elem_type")
            .attr("elem_type: type")
            .shape(shape::unknown)
            .cpu(pop);
        on(c, form, "StackClose", "Drops all values.").shape(shape::unknown).cpu_fn(close);
    }
    c.no_gradient(&["Stack", "StackPush", "StackPop", "StackClose"]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Check, check};

    #[test]
    fn the_last_pushed_is_popped_first() {
        for v2 in ["", "V2"] {
            let step = Arc::new(Resources::new());
            let made = check(&format!("Stack{v2}")).step_resources(&step);
            let made = if v2.is_empty() { made } else { made.input(Tensor::scalar(2i32)) };
            let handle = made.attr("elem_type", DType::Float).run_values().unwrap().remove(0);
            let on = |op: &str| -> Check<'static> {
                let check = check(&format!("Stack{op}{v2}")).step_resources(&step);
                match &handle {
                    Value::Ref(v) => check.ref_input(v.clone()),
                    Value::Tensor(t) => check.input(t.clone()),
                    _ => unreachable!(),
                }
            };
            let pop = || on("Pop").attr("elem_type", DType::Float);
            let push = |x: f32| on("Push").input(Tensor::scalar(x));
            push(1.0).gives(Tensor::scalar(1.0f32));
            push(2.0).run().unwrap();
            if !v2.is_empty() {
                push(3.0).fails(Code::InvalidArgument, "overflowed its max_size (2)");
            }
            pop().gives(Tensor::scalar(2.0f32));
            pop().gives(Tensor::scalar(1.0f32));
            pop().fails(Code::InvalidArgument, "is empty when calling Pop().");
            on("Close").run().unwrap();
            pop().fails(Code::InvalidArgument, "has already been closed.");
        }
    }
}
