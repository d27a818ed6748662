//! The ops of optimizers on a GPU: one launch updates variables and their slots in place. A dense
//! op may be several that were joined, and then updates all of their variables. A sparse op first
//! orders the rows of the gradient by the rows of the variable, and then applies those of one row
//! one after the other, as on the CPU.

use super::{Spec, variable};
use crate::prelude::*;
use ferroflow_core::{HashSet, LaunchArg};
use ferroflow_op_kit::gpu::rows::{ROW_LOOP, order_rows};
use ferroflow_op_kit::gpu::{GpuKernel, GpuProgram, address, c_type, length};
use ferroflow_op_kit::handle::{Target, modify_all};
use std::fmt::Write;

/// Bytes that a thread reads of a variable at once.
const PACK_BYTES: usize = 16;
/// Threads of a block.
const THREADS: usize = 256;
/// The variables of a small launch.
const FEW: usize = 8;
/// Numbers in the list of a large launch. All arguments of a kernel have at most 4096 bytes.
const LIST: usize = 470;

/// The kernel of an op of `spec`.
pub(super) fn apply(init: &KernelInit<'_>, spec: &'static Spec) -> Result<KernelBox> {
    let choice = match spec.choice {
        Some((name, _)) => init.bool(name)?,
        None => false,
    };
    let dtype = init.dtype("T")?;
    if init.contains("Tindices") {
        let text = sparse_text(spec, dtype, choice)?;
        return Ok(KernelBox::new(ApplyRows {
            spec,
            targets: (0..spec.slots.len()).map(|i| Target::new(init, i)).collect(),
            inputs: spec.inputs(true),
            kernel: GpuKernel::new(text, "apply").prepared(init)?,
        }));
    }
    let each = spec.slots.len() + spec.args.len();
    let members = init.inputs.len() / each;
    let target = |i: usize| Target::new(init, i / spec.slots.len() * each + i % spec.slots.len());
    Ok(KernelBox::new(ApplyOnDevice {
        spec,
        targets: (0..members * spec.slots.len()).map(target).collect(),
        program: GpuProgram::new(dense_text(spec, dtype, choice)?).prepared(init)?,
        pack: PACK_BYTES / dtype.size().unwrap_or(PACK_BYTES),
    }))
}

fn is_gradient(name: &str) -> bool {
    matches!(name, "grad" | "delta")
}

/// The inputs that joined ops share: the scalars.
pub(super) fn shared_inputs(spec: &Spec) -> Vec<&'static str> {
    spec.args.iter().copied().filter(|arg| !is_gradient(arg)).collect()
}

/// Variables of one launch with a long list: each has a first block, a length and addresses.
fn many(spec: &Spec) -> usize {
    LIST / (spec.slots.len() + 3)
}

/// Parameters for the scalars.
fn scalar_params(spec: &Spec) -> String {
    let kind = |arg: &str| if arg == "global_step" { "i64" } else { "T" };
    let scalars = shared_inputs(spec).into_iter();
    scalars.map(|arg| format!(", const {} *{arg}_", kind(arg))).collect()
}

/// Reads the scalars.
fn scalars(spec: &Spec, choice: bool) -> String {
    let mut text = format!("    const bool choice = {choice};\n    (void)choice;\n");
    for arg in shared_inputs(spec) {
        let _ = match arg {
            "global_step" => writeln!(text, "    i64 {arg} = *{arg}_;"),
            _ => writeln!(text, "    W {arg} = wide(*{arg}_);"),
        };
    }
    text
}

/// A kernel for a list of variables. A block has `THREADS` packs of one of them.
fn dense_text(spec: &Spec, dtype: DType, choice: bool) -> Result<String> {
    let gradient = spec.args.iter().find(|arg| is_gradient(arg)).copied().unwrap_or("grad");
    let held: Vec<&str> = spec.slots.iter().copied().chain([gradient]).collect();
    let each = |part: &dyn Fn(usize, &str) -> String| {
        held.iter().enumerate().map(|(k, name)| part(k, name)).collect::<String>()
    };
    let stored = |part: &dyn Fn(&str) -> String| {
        spec.slots.iter().map(|name| part(name)).collect::<String>()
    };
    let found = each(&|k, name| format!("    T *{name}_ = (T *)list.at[t][{k}];\n"));
    let bits = each(&|_, name| format!(" | (u64){name}_"));
    let load = each(&|_, name| {
        format!("        Pack<T, PACK> {name}s = *(const Pack<T, PACK> *)({name}_ + i);\n")
    });
    let of_pack = each(&|_, name| format!("            W {name} = wide({name}s.at[k]);\n"));
    let to_pack = stored(&|name| format!("            {name}s.at[k] = Narrow<T>::from({name});\n"));
    let store = stored(&|name| format!("        *(Pack<T, PACK> *)({name}_ + i) = {name}s;\n"));
    let of_one = each(&|_, name| format!("        W {name} = wide({name}_[k]);\n"));
    let to_one = stored(&|name| format!("        {name}_[k] = Narrow<T>::from({name});\n"));
    let (params, rule) = (scalar_params(spec), spec.text.unwrap_or_default());
    let (scalars, n) = (scalars(spec, choice), held.len());
    let names = shared_inputs(spec).into_iter().map(|arg| format!(", {arg}_")).collect::<String>();
    let kernel = |name: &str, most: usize| {
        format!(
            "extern \"C\" __global__ void {name}(List<{most}> list{params}) {{\n    \
             apply_list(list{names});\n}}\n"
        )
    };
    Ok(format!(
        "typedef {} T;\ntypedef WideOf<T>::type W;\nconst int PACK = {PACK_BYTES} / sizeof(T);\n\
         template <int N> struct List {{ i64 count; i64 first[N]; i64 n[N]; i64 at[N][{n}]; }};\n\
         template <int N> __device__ inline void apply_list(const List<N> &list{params}) {{\n    \
         int t = 0, end = (int)list.count;\n    \
         while (end - t > 1) {{\n        int middle = (t + end) / 2;\n        \
         if (list.first[middle] <= (i64)blockIdx.x) t = middle;\n        else end = middle;\n    }}\n    \
         i64 n = list.n[t];\n    \
         i64 i = (((i64)blockIdx.x - list.first[t]) * {THREADS} + threadIdx.x) * PACK;\n\
         {found}{scalars}    \
         if (i + PACK <= n && ((0{bits}) & {}) == 0) {{\n{load}#pragma unroll\n        \
         for (int k = 0; k < PACK; k++) {{\n{of_pack}            {rule}\n{to_pack}        }}\n\
         {store}        return;\n    }}\n    \
         for (i64 k = i; k < n && k < i + PACK; k++) {{\n{of_one}        {rule}\n{to_one}    }}\n}}\n\
         {}{}",
        c_type(dtype)?,
        PACK_BYTES - 1,
        kernel("apply_few", FEW),
        kernel("apply_many", many(spec)),
    ))
}

fn sparse_text(spec: &Spec, dtype: DType, choice: bool) -> Result<String> {
    let mut text = format!(
        "typedef {} T;\ntypedef WideOf<T>::type W;\n{ROW_LOOP}\
         extern \"C\" __global__ void apply(i64 count, i64 inner, i64 rows, i64 update_step, \
         const i64 *keys, const i64 *order",
        c_type(dtype)?
    );
    for slot in spec.slots {
        let _ = write!(text, ", T *{slot}_");
    }
    for arg in spec.args {
        let kind = if *arg == "global_step" { "i64" } else { "T" };
        let _ = write!(text, ", const {kind} *{arg}_");
    }
    let _ = write!(text, ") {{\n{}", scalars(spec, choice));
    text.push_str("    EACH_ROW\n    for (i64 q = p; SAME_ROW(q); q++) {\n");
    for name in spec.slots {
        let _ = writeln!(text, "        W {name} = wide({name}_[to]);");
    }
    for name in spec.args.iter().filter(|arg| is_gradient(arg)) {
        let _ = writeln!(text, "        W {name} = wide({name}_[UPDATE(q)]);");
    }
    let _ = writeln!(text, "        {}", spec.text.unwrap_or_default());
    for slot in spec.slots {
        let _ = writeln!(text, "        {slot}_[to] = Narrow<T>::from({slot});");
    }
    text.push_str("    }\n    }\n}\n");
    Ok(text)
}

struct ApplyOnDevice {
    spec: &'static Spec,
    /// The variables and slots of each joined op.
    targets: Vec<Target>,
    program: GpuProgram,
    pack: usize,
}

impl Kernel for ApplyOnDevice {
    fn compute(&self, ctx: &mut Ctx<'_>) -> Result<()> {
        let slots = self.spec.slots.len();
        let variables: Vec<Arc<StoredVariable>> =
            self.targets.iter().map(|t| variable(t, ctx)).collect::<Result<_>>()?;
        let mut seen = HashSet::default();
        let members = variables.len() / slots;
        if members == 1 || variables.iter().all(|v| seen.insert(Arc::as_ptr(v))) {
            self.update(ctx, &variables, 0)?;
        } else {
            // Two of them have one variable.
            for (member, variables) in variables.chunks(slots).enumerate() {
                self.update(ctx, variables, member)?;
            }
        }
        self.targets[0].pass_on(ctx, variables[0].clone())
    }
}

impl ApplyOnDevice {
    /// Updates the variables of joined ops, from op `first` on.
    fn update(&self, ctx: &Ctx<'_>, variables: &[Arc<StoredVariable>], first: usize) -> Result<()> {
        let Spec { slots, args, .. } = self.spec;
        let each = slots.len() + args.len();
        let (mut scalars, mut gradient) = (Vec::new(), (0, ""));
        for (i, name) in args.iter().enumerate() {
            if is_gradient(name) {
                gradient = (i, name);
                continue;
            }
            let input = ctx.input(slots.len() + i)?;
            ensure!(
                input.rank() == 0,
                InvalidArgument,
                "{name} is not a scalar: {}",
                input.shape()
            );
            scalars.push(address(input)?);
        }
        let (at, name) = gradient;
        modify_all(variables, &mut |values| {
            let mut list = Vec::with_capacity(values.len() / slots.len());
            for (member, values) in values.chunks_mut(slots.len()).enumerate() {
                let gradient = ctx.input((first + member) * each + slots.len() + at)?;
                let shapes = || -> Result<()> {
                    let var = values[0].shape();
                    for (value, slot) in values.iter().zip(*slots) {
                        let shape = value.shape();
                        ensure!(
                            shape == var,
                            InvalidArgument,
                            "var and {slot} do not have the same shape{var} {shape}"
                        );
                    }
                    let shape = gradient.shape();
                    ensure!(
                        var == shape,
                        InvalidArgument,
                        "var and {name} do not have the same shape{var} {shape}"
                    );
                    Ok(())
                };
                shapes().within(|| variables[member * slots.len()].name().to_string())?;
                let mut addresses = Vec::with_capacity(slots.len() + 1);
                for value in values.iter_mut() {
                    if !value.is_unique() {
                        **value = value.deep_copy()?;
                    }
                    addresses.push(value.device_address()?);
                }
                addresses.push(gradient.device_address()?);
                if gradient.elements() > 0 {
                    list.push((gradient.elements(), addresses));
                }
            }
            // Large launches have as many variables as fit.
            list.chunks(many(self.spec)).try_for_each(|list| self.launch(ctx, list, &scalars))
        })
    }

    /// Launches a kernel for variables with these lengths and addresses.
    fn launch(
        &self,
        ctx: &Ctx<'_>,
        list: &[(usize, Vec<u64>)],
        scalars: &[LaunchArg],
    ) -> Result<()> {
        let (name, most) = match list.len() {
            n if n <= FEW => ("apply_few", FEW),
            _ => ("apply_many", many(self.spec)),
        };
        let width = self.spec.slots.len() + 1;
        let mut words = vec![0i64; 1 + most * (2 + width)];
        words[0] = list.len() as i64;
        let mut blocks = 0;
        for (t, (n, addresses)) in list.iter().enumerate() {
            words[1 + t] = blocks as i64;
            words[1 + most + t] = *n as i64;
            for (k, address) in addresses.iter().enumerate() {
                words[1 + 2 * most + t * width + k] = *address as i64;
            }
            blocks += n.div_ceil(THREADS * self.pack);
        }
        let mut launch_args = vec![LaunchArg::Words(words.into())];
        launch_args.extend_from_slice(scalars);
        let grid = [blocks as u32, 1, 1];
        self.program.blocks(ctx.gpu()?.as_ref(), name, grid, [THREADS as u32, 1, 1], &launch_args)
    }
}

struct ApplyRows {
    spec: &'static Spec,
    targets: Vec<Target>,
    /// The names of the inputs after the slots.
    inputs: Vec<&'static str>,
    kernel: GpuKernel,
}

impl Kernel for ApplyRows {
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
        let (Some((_, shape)), Some(indices)) = (gradient, indices) else {
            bail!(Internal, "an optimizer without a gradient");
        };
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
            let mut addresses = Vec::with_capacity(values.len());
            for value in values.iter_mut() {
                if !value.is_unique() {
                    **value = value.deep_copy()?;
                }
                addresses.push(address(value)?);
            }
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
            let all: Vec<LaunchArg> = {
                let rest = addresses.into_iter().chain(args.iter().cloned());
                head.into_iter().chain(rest).collect()
            };
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
