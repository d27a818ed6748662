//! The dense ops of optimizers on a GPU: one launch updates a variable and its slots in place.

use super::{Spec, variable};
use crate::prelude::*;
use ferroflow_op_kit::gpu::{GpuKernel, address, c_type, length};
use ferroflow_op_kit::handle::{Target, modify_all};
use std::fmt::Write;

struct ApplyOnDevice {
    spec: &'static Spec,
    targets: Vec<Target>,
    kernel: GpuKernel,
}

/// The kernel of an op of `spec`.
pub(super) fn apply(init: &KernelInit<'_>, spec: &'static Spec) -> Result<KernelBox> {
    let choice = match spec.choice {
        Some((name, _)) => init.bool(name)?,
        None => false,
    };
    let text = text(spec, init.dtype("T")?, choice)?;
    Ok(KernelBox::new(ApplyOnDevice {
        spec,
        targets: (0..spec.slots.len()).map(|i| Target::new(init, i)).collect(),
        kernel: GpuKernel::new(text, "apply").loaded(init)?,
    }))
}

fn is_gradient(name: &str) -> bool {
    matches!(name, "grad" | "delta")
}

fn text(spec: &Spec, dtype: DType, choice: bool) -> Result<String> {
    let mut text = format!(
        "typedef {} T;\ntypedef WideOf<T>::type W;\n\
         extern \"C\" __global__ void apply(i64 n",
        c_type(dtype)?
    );
    for slot in spec.slots {
        let _ = write!(text, ", T *{slot}_");
    }
    for arg in spec.args {
        let kind = if *arg == "global_step" { "i64" } else { "T" };
        let _ = write!(text, ", const {kind} *{arg}_");
    }
    let _ = writeln!(text, ") {{\n    const bool choice = {choice};");
    for arg in spec.args.iter().filter(|arg| !is_gradient(arg)) {
        match *arg {
            "global_step" => writeln!(text, "    i64 {arg} = *{arg}_;"),
            _ => writeln!(text, "    W {arg} = wide(*{arg}_);"),
        }
        .map_err(|e| err!(Internal, "{e}"))?;
    }
    text.push_str("    for (i64 i = thread_number(); i < n; i += thread_count()) {\n");
    for name in spec.slots.iter().chain(spec.args.iter().filter(|arg| is_gradient(arg))) {
        let _ = writeln!(text, "        W {name} = wide({name}_[i]);");
    }
    let _ = writeln!(text, "        {}", spec.text.unwrap_or_default());
    for slot in spec.slots {
        let _ = writeln!(text, "        {slot}_[i] = Narrow<T>::from({slot});");
    }
    text.push_str("        (void)choice;\n    }\n}\n");
    Ok(text)
}

impl Kernel for ApplyOnDevice {
    fn compute(&self, ctx: &mut Ctx<'_>) -> Result<()> {
        let variables: Vec<Arc<Variable>> =
            self.targets.iter().map(|t| variable(t, ctx)).collect::<Result<_>>()?;
        let gpu = ctx.gpu()?;
        let mut args = Vec::new();
        let mut gradient = None;
        for (i, &name) in self.spec.args.iter().enumerate() {
            let input = ctx.input(self.spec.slots.len() + i)?;
            if is_gradient(name) {
                gradient = Some((name, input.shape().clone()));
            } else {
                ensure!(
                    input.rank() == 0,
                    InvalidArgument,
                    "{name} is not a scalar: {}",
                    input.shape()
                );
            }
            args.push(address(input)?);
        }
        let (name, shape) =
            gradient.ok_or_else(|| err!(Internal, "an optimizer without a gradient"))?;
        modify_all(&variables, &mut |values| {
            for (value, slot) in values.iter().zip(self.spec.slots) {
                ensure!(
                    *value.shape() == shape,
                    InvalidArgument,
                    "{slot} and {name} do not have the same shape{} {shape}",
                    value.shape()
                );
            }
            let mut all = vec![length(shape.elements())];
            for value in values.iter_mut() {
                if !value.is_unique() {
                    **value = value.deep_copy()?;
                }
                all.push(address(value)?);
            }
            all.extend(args.iter().cloned());
            self.kernel.over(gpu.as_ref(), shape.elements(), &all)
        })?;
        self.targets[0].pass_on(ctx, variables[0].clone())
    }
}
