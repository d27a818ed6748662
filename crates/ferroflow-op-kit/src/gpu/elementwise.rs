//! Kernels that apply a formula to each element, with broadcasting.

use super::walk::{self, Walk};
use super::{GpuKernel, address, c_type, length};
use crate::prelude::*;
use ferroflow_core::{Gpu, LaunchArg};
use std::fmt::Write;

/// The names of operands in formulas.
const NAMES: [&str; 6] = ["x", "y", "z", "w", "u", "v"];

/// A formula of all inputs, which broadcast, for output 0. The node says the dtypes. The inputs are
/// `x`, `y`, `z`, `w`, `u` and `v`, and `W` is the type in which `x` is computed.
pub fn elementwise(
    formula: &'static str,
) -> impl Fn(&KernelInit<'_>) -> Result<KernelBox> + Send + Sync {
    move |init| Ok(KernelBox::new(Elementwise::new(init, formula.to_string())?))
}

/// A formula of two inputs of one shape.
pub fn pair(formula: &'static str) -> impl Fn(&KernelInit<'_>) -> Result<KernelBox> + Send + Sync {
    move |init| {
        let kernel = Elementwise::new(init, formula.to_string())?;
        Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
            let (a, b) = (ctx.input(0)?.shape(), ctx.input(1)?.shape());
            ensure!(
                a == b,
                InvalidArgument,
                "Inputs to operation {} of type {} must have the same size and shape.  \
                 Input 0: {a} != input 1: {b}",
                ctx.name(),
                ctx.node().op
            );
            kernel.compute(ctx)
        }))
    }
}

/// A kernel that computes one output from the elements of all inputs.
pub struct Elementwise {
    inputs: usize,
    output: DType,
    /// All inputs have the shape of the output, or are scalars.
    direct: GpuKernel,
    spread: GpuKernel,
}

impl Elementwise {
    /// The kernel of `formula` for a node.
    pub fn new(init: &KernelInit<'_>, formula: String) -> Result<Elementwise> {
        let inputs: Vec<DType> = init.inputs.iter().map(|p| p.dtype).collect();
        Elementwise::of(init, &inputs, init.output_dtype(0)?, &formula)
    }

    /// The kernel of `formula` for operands of these dtypes.
    pub fn of(
        init: &KernelInit<'_>,
        inputs: &[DType],
        output: DType,
        formula: &str,
    ) -> Result<Elementwise> {
        let text: Arc<str> = text(inputs, output, formula)?.into();
        Ok(Elementwise {
            inputs: inputs.len(),
            output,
            direct: GpuKernel::new(text.clone(), "direct").loaded(init)?,
            spread: GpuKernel::new(text, "spread"),
        })
    }
}

impl Kernel for Elementwise {
    fn compute(&self, ctx: &mut Ctx<'_>) -> Result<()> {
        let inputs = (0..self.inputs).map(|i| ctx.take(i)).collect::<Result<Vec<_>>>()?;
        let out = self.run(ctx.gpu()?, inputs)?;
        ctx.set(0, out)
    }
}

impl Elementwise {
    /// The result for these operands, in the memory of one of them where possible.
    pub fn run(&self, gpu: &Arc<dyn Gpu>, mut inputs: Vec<Tensor>) -> Result<Tensor> {
        let mut shape = inputs[0].shape().clone();
        for input in &inputs[1..] {
            shape = broadcast(&shape, input.shape())?;
        }
        let fits =
            |t: &mut Tensor| t.dtype() == self.output && *t.shape() == shape && t.is_unique();
        let own = inputs.iter_mut().position(fits);
        let out = match own {
            Some(i) => inputs[i].clone(),
            None => Tensor::on_device(gpu, self.output, shape)?,
        };
        self.run_into(gpu, &inputs.iter().collect::<Vec<_>>(), &out)?;
        Ok(out)
    }

    /// Writes the result for these operands to `out`, which has their common shape. It may be one
    /// of them.
    pub fn run_into(&self, gpu: &Arc<dyn Gpu>, inputs: &[&Tensor], out: &Tensor) -> Result<()> {
        let (shape, n) = (out.shape(), out.elements());
        let is_direct = inputs.iter().all(|t| t.shape() == shape || t.elements() == 1);
        let mut args = vec![length(n)];
        if !is_direct {
            let shapes: Vec<&Shape> = inputs.iter().map(|t| t.shape()).collect();
            args.push(Walk::broadcast(shape, &shapes)?.arg());
        }
        for input in inputs {
            args.push(address(input)?);
            if is_direct {
                args.push(LaunchArg::I64(i64::from(input.shape() == shape)));
            }
        }
        args.push(address(out)?);
        let kernel = if is_direct { &self.direct } else { &self.spread };
        kernel.over(gpu.as_ref(), n, &args)
    }
}

fn broadcast(a: &Shape, b: &Shape) -> Result<Shape> {
    if a == b || b.rank() == 0 {
        return Ok(a.clone());
    }
    let both = shape::broadcast_shapes(&a.into(), &b.into()).ok().and_then(|s| s.known());
    both.ok_or_else(|| err!(InvalidArgument, "Incompatible shapes: {a} vs. {b}"))
}

/// The text of a formula's kernels.
pub fn text(inputs: &[DType], output: DType, formula: &str) -> Result<String> {
    ensure!(
        (1..=NAMES.len()).contains(&inputs.len()),
        Internal,
        "a formula of {} operands",
        inputs.len()
    );
    let types = inputs.iter().map(|t| c_type(*t)).collect::<Result<Vec<_>>>()?;
    let named = || types.iter().zip(NAMES);
    let (out, n) = (c_type(output)?, inputs.len());
    let list = |part: &dyn Fn(&str, &str) -> String| {
        named().map(|(t, name)| part(t, name)).collect::<Vec<_>>().join(", ")
    };
    let values = list(&|t, name| format!("{t} {name}_"));
    let mut text = walk::TEXT.to_string();
    let _ = writeln!(text, "typedef {out} Out;\ntypedef WideOf<{}>::type W;", types[0]);
    let _ = writeln!(text, "__device__ inline Out element({values}) {{");
    for (t, name) in named() {
        let _ = writeln!(text, "    WideOf<{t}>::type {name} = wide({name}_);");
    }
    let _ = writeln!(text, "    return Narrow<Out>::from({formula});\n}}");
    let direct = list(&|t, name| format!("const {t} *{name}, i64 {name}_step"));
    let at = list(&|_, name| format!("{name}[i * {name}_step]"));
    let _ = writeln!(
        text,
        "extern \"C\" __global__ void direct(i64 n, {direct}, Out *out) {{\n    \
         for (i64 i = thread_number(); i < n; i += thread_count()) out[i] = element({at});\n}}"
    );
    let spread = list(&|t, name| format!("const {t} *{name}"));
    let found = (0..n).map(|k| format!("{}[at[{k}]]", NAMES[k])).collect::<Vec<_>>().join(", ");
    let _ = writeln!(
        text,
        "extern \"C\" __global__ void spread(i64 n, Walk<{n}> walk, {spread}, Out *out) {{\n    \
         for (i64 i = thread_number(); i < n; i += thread_count()) {{\n        \
         i64 at[{n}];\n        walk.find(i, at);\n        out[i] = element({found});\n    }}\n}}"
    );
    Ok(text)
}
