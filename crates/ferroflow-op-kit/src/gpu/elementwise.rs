//! Kernels that apply formulas to each element, with broadcasting. The kernel of fused nodes has
//! several formulas, each of which may take the values of the ones before it.

use super::formulas::{PACK_BYTES, functions, has_pairs, pack_of};
use super::row_program::RowProgram;
use super::walk::{self, Walk};
use super::{GpuKernel, GpuTypes, address, c_type, length};
use crate::prelude::*;
use ferroflow_core::{Gpu, LaunchArg};
use ferroflow_graph::{
    FormulaOperand, FormulaStep, FormulaText, FusedFormulas, FusedOnGpu, GpuFormula, OpBuilder,
    OperandShapes,
};
use std::fmt::Write;

/// Threads of a block of the kernel that takes rows.
const ROW_BLOCK: usize = 256;
/// Blocks that keep a GPU busy.
const MANY_BLOCKS: usize = 4096;

/// Declares GPU kernels by formulas of an op's inputs: `x`, `y`, `z`, `w`, `u` and `v`. `W` is the
/// type in which `x` is computed, `Out` that of the output.
pub trait OnGpuByFormula: Sized {
    /// A formula of all inputs, which broadcast, for output 0.
    fn gpu_elementwise(self, types: GpuTypes, formula: &'static str) -> Self;

    /// A formula of two inputs of one shape.
    fn gpu_pair(self, types: GpuTypes, formula: &'static str) -> Self;
}

impl OnGpuByFormula for OpBuilder<'_> {
    fn gpu_elementwise(self, types: GpuTypes, formula: &'static str) -> Self {
        let operands = OperandShapes::Broadcast;
        self.gpu(types, elementwise(formula)).gpu_formula(GpuFormula {
            text: |_, given| Some(given),
            given: formula,
            operands,
        })
    }

    fn gpu_pair(self, types: GpuTypes, formula: &'static str) -> Self {
        let operands = OperandShapes::Alike;
        self.gpu(types, pair(formula)).gpu_formula(GpuFormula {
            text: |_, given| Some(given),
            given: formula,
            operands,
        })
    }
}

/// A formula of all inputs, which broadcast, for output 0. The node says the dtypes.
pub fn elementwise(
    formula: &'static str,
) -> impl Fn(&KernelInit<'_>) -> Result<KernelBox> + Send + Sync {
    move |init| Ok(KernelBox::new(Elementwise::new(init, formula.to_string())?))
}

/// A formula of two inputs of one shape.
fn pair(formula: &'static str) -> impl Fn(&KernelInit<'_>) -> Result<KernelBox> + Send + Sync {
    move |init| {
        let inputs = [init.input_dtype(0)?, init.input_dtype(1)?];
        let kernel = Elementwise::of(init, &inputs, init.output_dtype(0)?, formula)?;
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

/// The kernel of fused nodes, for [`Catalog::fuse_on_gpus_with`].
pub fn fused(formulas: &FusedFormulas, init: &KernelInit<'_>) -> Result<FusedOnGpu> {
    if let Some(rows) = &formulas.rows {
        let program = RowProgram::new(formulas, rows)?.prepared(init)?;
        return Ok(Box::new(move |gpu, inputs| program.run_if_simple(gpu, inputs)));
    }
    let mut kernel = Elementwise::of_formulas(formulas)?;
    kernel.direct = kernel.direct.prepared(init)?;
    if formulas.inputs.len() > 1 {
        kernel.by_rows = kernel.by_rows.prepared(init)?;
    }
    if kernel.shape.is_some() {
        // A value is repeated, perhaps over dimensions in the middle.
        kernel.spread = kernel.spread.prepared(init)?;
    }
    Ok(Box::new(move |gpu, inputs| kernel.run_if_simple(gpu, inputs)))
}

/// A kernel that computes one output from the elements of all inputs.
pub struct Elementwise {
    inputs: Vec<DType>,
    output: DType,
    /// The shape of the result, if it is known.
    shape: Option<Shape>,
    /// Elements that a thread reads at once, if they lie well.
    pack: usize,
    /// All inputs have the shape of the output, or are scalars.
    direct: GpuKernel,
    packed: GpuKernel,
    /// Inputs have the rows of the output, one row or one column.
    by_rows: GpuKernel,
    spread: GpuKernel,
}

impl Elementwise {
    /// The kernel of `formula` for a node whose inputs broadcast.
    pub fn new(init: &KernelInit<'_>, formula: String) -> Result<Elementwise> {
        let inputs: Vec<DType> = init.inputs.iter().map(|p| p.dtype).collect();
        let mut kernel = Elementwise::of(init, &inputs, init.output_dtype(0)?, &formula)?;
        if inputs.len() > 1 {
            kernel.by_rows = kernel.by_rows.prepared(init)?;
            kernel.spread = kernel.spread.prepared(init)?;
        }
        Ok(kernel)
    }

    /// The kernel of `formula` for operands of these dtypes, which have one shape or are scalars.
    pub fn of(
        init: &KernelInit<'_>,
        inputs: &[DType],
        output: DType,
        formula: &str,
    ) -> Result<Elementwise> {
        let mut kernel = Elementwise::of_formulas(&single(inputs, output, formula))?;
        kernel.direct = kernel.direct.prepared(init)?;
        Ok(kernel)
    }

    /// The same where some operands are rows or columns of the result.
    pub fn of_rows(
        init: &KernelInit<'_>,
        inputs: &[DType],
        output: DType,
        formula: &str,
    ) -> Result<Elementwise> {
        let mut kernel = Elementwise::of_formulas(&single(inputs, output, formula))?;
        kernel.by_rows = kernel.by_rows.prepared(init)?;
        Ok(kernel)
    }

    fn of_formulas(formulas: &FusedFormulas) -> Result<Elementwise> {
        let Texts { direct, by_rows, spread } = texts(formulas)?;
        let direct: Arc<str> = direct.into();
        Ok(Elementwise {
            inputs: formulas.inputs.clone(),
            output: formulas.output()?,
            shape: formulas.shape.known(),
            pack: pack_of(formulas)?,
            direct: GpuKernel::new(direct.clone(), "direct"),
            packed: GpuKernel::new(direct, "packed"),
            by_rows: GpuKernel::new(by_rows, "by_rows"),
            spread: GpuKernel::new(spread, "spread"),
        })
    }
}

impl Kernel for Elementwise {
    fn compute(&self, ctx: &mut Ctx<'_>) -> Result<()> {
        let inputs = (0..self.inputs.len()).map(|i| ctx.take(i)).collect::<Result<Vec<_>>>()?;
        let out = self.run(ctx.gpu()?, inputs)?;
        ctx.set(0, out)
    }
}

impl Elementwise {
    /// The result for these operands, in the memory of one of them where possible.
    pub fn run(&self, gpu: &Arc<dyn Gpu>, inputs: Vec<Tensor>) -> Result<Tensor> {
        let mut shape = inputs[0].shape().clone();
        for input in &inputs[1..] {
            shape = broadcast(&shape, input.shape())?;
        }
        self.run_with(gpu, inputs, shape)
    }

    fn run_with(
        &self,
        gpu: &Arc<dyn Gpu>,
        mut inputs: Vec<Tensor>,
        shape: Shape,
    ) -> Result<Tensor> {
        let out = match reusable(&mut inputs, self.output, &shape) {
            Some(i) => inputs[i].clone(),
            None => Tensor::on_device(gpu, self.output, shape)?,
        };
        self.run_into(gpu, &inputs.iter().collect::<Vec<_>>(), &out)?;
        Ok(out)
    }

    /// The result, if all operands broadcast to its shape: the known one, or that of the largest.
    fn run_if_simple(
        &self,
        gpu: &Arc<dyn Gpu>,
        inputs: &mut Vec<Tensor>,
    ) -> Result<Option<Tensor>> {
        let largest = || inputs.iter().max_by_key(|t| t.elements()).map(|t| t.shape().clone());
        let Some(shape) = self.shape.clone().or_else(largest) else { return Ok(None) };
        if !all_broadcast_to(inputs, &shape) {
            return Ok(None);
        }
        self.run_with(gpu, std::mem::take(inputs), shape).map(Some)
    }

    /// Writes the result for these operands to `out`, which has their common shape. It may be one
    /// of them.
    pub fn run_into(&self, gpu: &Arc<dyn Gpu>, inputs: &[&Tensor], out: &Tensor) -> Result<()> {
        let (shape, n) = (out.shape(), out.elements());
        if n == 0 {
            return Ok(());
        }
        let is_direct = inputs.iter().all(|t| t.shape() == shape || t.elements() == 1);
        if is_direct {
            let mut args = Vec::with_capacity(2 * inputs.len() + 2);
            args.push(length(n));
            let mut is_packed = n >= self.pack && self.is_aligned(out)?;
            for input in inputs {
                let is_whole = input.shape() == shape;
                is_packed = is_packed && (!is_whole || self.is_aligned(input)?);
                args.push(address(input)?);
                args.push(LaunchArg::I64(i64::from(is_whole)));
            }
            args.push(address(out)?);
            return match is_packed {
                true => self.packed.over(gpu.as_ref(), n.div_ceil(self.pack), &args),
                false => self.direct.over(gpu.as_ref(), n, &args),
            };
        }
        let shapes: Vec<&Shape> = inputs.iter().map(|t| t.shape()).collect();
        let walk = Walk::broadcast(shape, &shapes)?;
        if self.run_by_rows(gpu, inputs, &walk, out)? {
            return Ok(());
        }
        let mut args = vec![length(n), walk.arg()];
        for input in inputs {
            args.push(address(input)?);
        }
        args.push(address(out)?);
        self.spread.over(gpu.as_ref(), n, &args)
    }

    /// Runs the kernel for matrices, if the operands are rows, columns and whole matrices that can
    /// be read in packs.
    fn run_by_rows(
        &self,
        gpu: &Arc<dyn Gpu>,
        inputs: &[&Tensor],
        walk: &Walk,
        out: &Tensor,
    ) -> Result<bool> {
        let &[rows, cols] = walk.dims() else { return Ok(false) };
        let mut args = Vec::with_capacity(3 * inputs.len() + 3);
        args.extend([length(rows), length(cols)]);
        let mut fits = cols.is_multiple_of(self.pack) && self.is_aligned(out)?;
        for (k, input) in inputs.iter().enumerate() {
            let &[row, col] = walk.strides(k) else { return Ok(false) };
            fits = fits
                && match col {
                    0 => true,
                    1 => row % self.pack as i64 == 0 && self.is_aligned(input)?,
                    _ => false,
                };
            args.extend([address(input)?, LaunchArg::I64(row), LaunchArg::I64(col)]);
        }
        if !fits {
            return Ok(false);
        }
        args.push(address(out)?);
        let packs = cols / self.pack;
        let wide = packs.next_power_of_two().min(ROW_BLOCK);
        let high = ROW_BLOCK / wide;
        let across = packs.div_ceil(wide);
        let down = rows.div_ceil(high).min((MANY_BLOCKS / across).max(1));
        let (grid, block) = ([across as u32, down as u32, 1], [wide as u32, high as u32, 1]);
        self.by_rows.blocks(gpu.as_ref(), grid, block, &args)?;
        Ok(true)
    }

    /// Whether packs of a tensor that begin at its start can be read at once.
    fn is_aligned(&self, t: &Tensor) -> Result<bool> {
        let bytes = t.dtype().size().unwrap_or(PACK_BYTES) * self.pack;
        Ok(t.device_address()?.is_multiple_of(bytes as u64))
    }
}

/// An operand whose memory can take the result.
pub(super) fn reusable(inputs: &mut [Tensor], output: DType, shape: &Shape) -> Option<usize> {
    let fits = |t: &mut Tensor| t.dtype() == output && t.shape() == shape && t.is_unique();
    inputs.iter_mut().position(fits)
}

/// Whether all tensors broadcast to this shape.
pub(super) fn all_broadcast_to(inputs: &[Tensor], shape: &Shape) -> bool {
    inputs.iter().all(|t| broadcast(shape, t.shape()).is_ok_and(|both| both == *shape))
}

fn broadcast(a: &Shape, b: &Shape) -> Result<Shape> {
    if a == b || b.rank() == 0 {
        return Ok(a.clone());
    }
    let both = shape::broadcast_shapes(&a.into(), &b.into()).ok().and_then(|s| s.known());
    both.ok_or_else(|| err!(InvalidArgument, "Incompatible shapes: {a} vs. {b}"))
}

/// One formula of all inputs.
fn single(inputs: &[DType], output: DType, formula: &str) -> FusedFormulas {
    let operands = (0..inputs.len()).map(FormulaOperand::Input).collect();
    let step = FormulaStep { text: FormulaText::Each(formula.to_string()), output, operands };
    let shape = PartialShape::unknown();
    FusedFormulas { inputs: inputs.to_vec(), steps: vec![step], shape, rows: None }
}

/// The texts of the kernels. They are compiled apart, because a node uses one or two of them.
struct Texts {
    direct: String,
    by_rows: String,
    spread: String,
}

/// The texts of the kernels of formulas.
fn texts(formulas: &FusedFormulas) -> Result<Texts> {
    let head = head(formulas)?;
    let types = formulas.inputs.iter().map(|t| c_type(*t)).collect::<Result<Vec<_>>>()?;
    let n = types.len();
    let list = |part: &dyn Fn(usize, &str) -> String| {
        types.iter().enumerate().map(|(k, t)| part(k, t)).collect::<Vec<_>>().join(", ")
    };
    let each = |part: &dyn Fn(usize, &str) -> String| {
        types.iter().enumerate().map(|(k, t)| part(k, t)).collect::<String>()
    };
    let params = list(&|k, t| format!("const {t} *in{k}, i64 step{k}"));
    let at = list(&|k, _| format!("in{k}[i * step{k}]"));
    let lanes = list(&|k, _| format!("pack{k}.at[k]"));
    let load = each(&|k, t| format!("        Lanes<{t}> pack{k} = load(in{k}, p * P, step{k});\n"));
    let store = format!(
        "        Lanes<Result> out_pack;\n#pragma unroll\n        \
         for (int k = 0; k < LANES; k++) out_pack.at[k] = element({lanes});\n"
    );
    let direct = format!(
        "{head}\
         extern \"C\" __global__ void direct(i64 n, {params}, Result *out) {{\n    \
         for (i64 i = thread_number(); i < n; i += thread_count()) out[i] = element({at});\n}}\n\
         extern \"C\" __global__ void packed(i64 n, {params}, Result *out) {{\n    \
         i64 packs = n / P;\n    \
         for (i64 p = thread_number(); p < packs; p += thread_count()) {{\n{load}{store}        \
         *(Lanes<Result> *)(out + p * P) = out_pack;\n    }}\n    \
         i64 i = packs * P + thread_number();\n    if (i < n) out[i] = element({at});\n}}\n"
    );
    let params = list(&|k, t| format!("const {t} *in{k}, i64 row{k}, i64 col{k}"));
    let load = each(&|k, t| {
        format!("        Lanes<{t}> pack{k} = load(in{k} + r * row{k}, c, col{k});\n")
    });
    let by_rows = format!(
        "{head}\
         extern \"C\" __global__ void by_rows(i64 rows, i64 cols, {params}, Result *out) {{\n    \
         i64 c = ((i64)blockIdx.x * blockDim.x + threadIdx.x) * P;\n    \
         if (c >= cols) return;\n    \
         i64 r = (i64)blockIdx.y * blockDim.y + threadIdx.y;\n    \
         for (; r < rows; r += (i64)gridDim.y * blockDim.y) {{\n{load}{store}        \
         *(Lanes<Result> *)(out + r * cols + c) = out_pack;\n    }}\n}}\n"
    );
    let params = list(&|k, t| format!("const {t} *in{k}"));
    let found = list(&|k, _| format!("in{k}[at[{k}]]"));
    let spread = format!(
        "{}{head}\
         extern \"C\" __global__ void spread(i64 n, Walk<{n}> walk, {params}, Result *out) {{\n    \
         for (i64 i = thread_number(); i < n; i += thread_count()) {{\n        \
         i64 at[{n}];\n        walk.find(i, at);\n        out[i] = element({found});\n    }}\n}}\n",
        walk::TEXT
    );
    Ok(Texts { direct, by_rows, spread })
}

/// A function for each formula, `element` with all of them, and how packs are read.
fn head(formulas: &FusedFormulas) -> Result<String> {
    let inputs = formulas.inputs.iter().map(|t| c_type(*t)).collect::<Result<Vec<_>>>()?;
    let steps = formulas.steps.iter().map(|s| c_type(s.output)).collect::<Result<Vec<_>>>()?;
    let mut text = format!("const int P = {};\n{}", pack_of(formulas)?, functions(formulas)?);
    let result = steps.last().copied().unwrap_or("f32");
    let _ = writeln!(text, "typedef {result} Result;");
    let mut element = |of: &dyn Fn(&str) -> String| {
        let params = inputs.iter().enumerate().map(|(k, t)| format!("{} a{k}", of(t)));
        let params = params.collect::<Vec<_>>().join(", ");
        let _ = writeln!(text, "__device__ inline {} element({params}) {{", of("Result"));
        for (i, step) in formulas.steps.iter().enumerate() {
            let operands = step.operands.iter().map(|operand| match operand {
                FormulaOperand::Input(k) => format!("a{k}"),
                FormulaOperand::Step(k) => format!("s{k}"),
            });
            let operands = operands.collect::<Vec<_>>().join(", ");
            let _ = writeln!(text, "    {} s{i} = step{i}({operands});", of(steps[i]));
        }
        let _ = writeln!(text, "    return s{};\n}}", steps.len().saturating_sub(1));
    };
    element(&str::to_string);
    match has_pairs(formulas) {
        true => {
            element(&|t| format!("Two<{t}>"));
            text.push_str(PAIRS);
        }
        false => text.push_str(SINGLES),
    }
    text.push_str(LOAD);
    Ok(text)
}

/// What a thread computes at a time: elements, or pairs of them.
const SINGLES: &str = r"
const int LANES = P;
template <class T> using Lanes = Pack<T, P>;
template <class T> __device__ inline T same(T x) { return x; }
";
const PAIRS: &str = r"
const int LANES = P / 2;
template <class T> using Lanes = Pack<Two<T>, P / 2>;
template <class T> __device__ inline Two<T> same(T x) { return pair_of(x); }
";

const LOAD: &str = r"
// P elements, or one element P times.
template <class T> __device__ inline Lanes<T> load(const T *from, i64 at, i64 step) {
    if (step) return *(const Lanes<T> *)(from + at);
    Lanes<T> lanes;
    T x = *from;
#pragma unroll
    for (int k = 0; k < LANES; k++) lanes.at[k] = same(x);
    return lanes;
}
";
