//! The ops of optimizers on a GPU: one launch updates a variable and its slots in place. A sparse
//! op first orders the rows of the gradient by the rows of the variable, and then applies those
//! of one row one after the other, as on the CPU.

use super::{Spec, variable};
use crate::prelude::*;
use ferroflow_core::LaunchArg;
use ferroflow_op_kit::gpu::rows::{ROW_LOOP, order_rows};
use ferroflow_op_kit::gpu::{GpuKernel, address, c_type, length};
use ferroflow_op_kit::handle::{Target, modify_all};
use std::fmt::Write;

struct ApplyOnDevice {
    spec: &'static Spec,
    targets: Vec<Target>,
    /// The names of the inputs after the slots.
    inputs: Vec<&'static str>,
    kernel: GpuKernel,
}

/// The kernel of an op of `spec`.
pub(super) fn apply(init: &KernelInit<'_>, spec: &'static Spec) -> Result<KernelBox> {
    let choice = match spec.choice {
        Some((name, _)) => init.bool(name)?,
        None => false,
    };
    let is_sparse = init.contains("Tindices");
    let text = text(spec, init.dtype("T")?, choice, is_sparse)?;
    Ok(KernelBox::new(ApplyOnDevice {
        spec,
        targets: (0..spec.slots.len()).map(|i| Target::new(init, i)).collect(),
        inputs: spec.inputs(is_sparse),
        kernel: GpuKernel::new(text, "apply").prepared(init)?,
    }))
}

fn is_gradient(name: &str) -> bool {
    matches!(name, "grad" | "delta")
}

fn text(spec: &Spec, dtype: DType, choice: bool, is_sparse: bool) -> Result<String> {
    let sizes = match is_sparse {
        true => {
            "i64 count, i64 inner, i64 rows, i64 update_step, const i64 *keys, const i64 *order"
        }
        false => "i64 n",
    };
    let mut text = format!(
        "typedef {} T;\ntypedef WideOf<T>::type W;\n{ROW_LOOP}\
         extern \"C\" __global__ void apply({sizes}",
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
        let _ = match *arg {
            "global_step" => writeln!(text, "    i64 {arg} = *{arg}_;"),
            _ => writeln!(text, "    W {arg} = wide(*{arg}_);"),
        };
    }
    let (begin, end, at) = match is_sparse {
        true => (
            "    EACH_ROW\n    for (i64 q = p; SAME_ROW(q); q++) {\n",
            "    }\n",
            ("to", "UPDATE(q)"),
        ),
        false => {
            ("    for (i64 i = thread_number(); i < n; i += thread_count()) {\n", "", ("i", "i"))
        }
    };
    text.push_str(begin);
    for name in spec.slots {
        let _ = writeln!(text, "        W {name} = wide({name}_[{}]);", at.0);
    }
    for name in spec.args.iter().filter(|arg| is_gradient(arg)) {
        let _ = writeln!(text, "        W {name} = wide({name}_[{}]);", at.1);
    }
    let _ = writeln!(text, "        {}", spec.text.unwrap_or_default());
    for slot in spec.slots {
        let _ = writeln!(text, "        {slot}_[{}] = Narrow<T>::from({slot});", at.0);
    }
    let _ = writeln!(text, "        (void)choice;\n{end}    }}\n}}");
    Ok(text)
}

impl Kernel for ApplyOnDevice {
    fn compute(&self, ctx: &mut Ctx<'_>) -> Result<()> {
        let variables: Vec<Arc<StoredVariable>> =
            self.targets.iter().map(|t| variable(t, ctx)).collect::<Result<_>>()?;
        let gpu = ctx.gpu()?;
        let (mut args, mut gradient, mut indices) = (Vec::new(), None, None);
        for (i, &name) in self.inputs.iter().enumerate() {
            let input = ctx.input(self.spec.slots.len() + i)?;
            match name {
                "indices" => {
                    indices = Some(input);
                    continue;
                }
                name if is_gradient(name) => gradient = Some((name, input.shape().clone())),
                _ => ensure!(
                    input.rank() == 0,
                    InvalidArgument,
                    "{name} is not a scalar: {}",
                    input.shape()
                ),
            }
            args.push(address(input)?);
        }
        let (name, shape) =
            gradient.ok_or_else(|| err!(Internal, "an optimizer without a gradient"))?;
        modify_all(&variables, &mut |values| {
            let var = values[0].shape().clone();
            for (value, slot) in values.iter().zip(self.spec.slots) {
                ensure!(
                    *value.shape() == var,
                    InvalidArgument,
                    "var and {slot} do not have the same shape{var} {}",
                    value.shape()
                );
            }
            ensure!(
                indices.is_some() || var == shape,
                InvalidArgument,
                "var and {name} do not have the same shape{var} {shape}"
            );
            let mut addresses = Vec::with_capacity(values.len());
            for value in values.iter_mut() {
                if !value.is_unique() {
                    **value = value.deep_copy()?;
                }
                addresses.push(address(value)?);
            }
            let rest = addresses.into_iter().chain(args.iter().cloned());
            let Some(indices) = indices else {
                let all: Vec<LaunchArg> =
                    std::iter::once(length(shape.elements())).chain(rest).collect();
                return self.kernel.over(gpu.as_ref(), shape.elements(), &all);
            };
            let (rows, inner) = checked_rows(&var, &shape, indices)?;
            let count = indices.elements();
            if count == 0 || inner == 0 {
                return Ok(());
            }
            let ordered = order_rows(gpu, indices, &[rows], count)?;
            let head = [
                length(count),
                length(inner),
                length(rows),
                length(inner),
                address(&ordered.keys)?,
                address(&ordered.order)?,
            ];
            let all: Vec<LaunchArg> = head.into_iter().chain(rest).collect();
            self.kernel.over(gpu.as_ref(), count * inner, &all)
        })?;
        self.targets[0].pass_on(ctx, variables[0].clone())
    }
}

/// Rows of a variable and elements of a row, if there is a row of the gradient for each index.
fn checked_rows(var: &Shape, gradient: &Shape, indices: &Tensor) -> Result<(usize, usize)> {
    let Some((&rows, row_dims)) = var.split_first() else {
        bail!(InvalidArgument, "var must be at least 1 dimensional");
    };
    ensure!(indices.rank() == 1, InvalidArgument, "indices must be one-dimensional");
    ensure!(
        gradient.rank() == var.rank()
            && gradient[1..] == *row_dims
            && gradient[0] == indices.elements(),
        InvalidArgument,
        "grad must have a row of shape {row_dims:?} for each of {} indices, got shape {gradient}",
        indices.elements()
    );
    Ok((rows, row_dims.iter().product()))
}
