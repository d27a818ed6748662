//! Kernels that reduce rows or columns together with the formulas before and after: layer
//! normalization, softmax and their gradients. A kernel reads each input once. Threads keep their
//! elements of a row in registers, and what they have reduced if it is used again, such as the
//! exponentials of a softmax. They compute other values again rather than keep them too.
//!
//! The order of additions depends on the shape alone, so every run gives the same bits.

use super::elementwise::{all_broadcast_to, reusable};
use super::formulas::{PACK_BYTES, functions, pack_of};
use super::walk::{self, Walk, broadcast_strides};
use super::{GpuKernel, address, c_type, length};
use crate::prelude::*;
use ferroflow_core::{Gpu, LaunchArg};
use ferroflow_graph::{
    FormulaOperand, FormulaStep, FormulaText, FusedFormulas, FusedRows, RowResult,
};
use std::fmt::Write;

/// The widest row that a warp reduces by itself, with several rows to a block.
const WARP_ROW: usize = 512;
/// The widest row of a small block.
const SMALL_ROW: usize = 2048;
const WARP: usize = 32;
const SMALL_BLOCK: usize = 128;
const LARGE_BLOCK: usize = 256;

/// Columns and rows of a block that reduces columns.
const COLUMNS: usize = 32;
const LANES: usize = 8;
/// Blocks that keep a GPU busy.
const MANY_BLOCKS: usize = 1024;
/// The most parts of a column, and the fewest rows of one.
const MAX_PARTS: usize = 128;
const PART_ROWS: usize = 64;

/// The kernel of fused formulas with reductions.
pub(super) struct RowProgram {
    output: DType,
    shape: Option<Shape>,
    rows: FusedRows,
    pack: usize,
    /// Threads that share a row.
    threads: usize,
    main: GpuKernel,
    /// Joins the parts of columns.
    join: Option<GpuKernel>,
}

impl RowProgram {
    pub fn new(formulas: &FusedFormulas, rows: &FusedRows) -> Result<RowProgram> {
        let pack = widest_pack(pack_of(formulas)?, rows.cols);
        let threads = match rows.cols {
            cols if cols <= WARP_ROW => WARP,
            cols if cols <= SMALL_ROW => SMALL_BLOCK,
            _ => LARGE_BLOCK,
        };
        let text = Text { formulas, rows, pack, threads };
        let is_columns = matches!(rows.result, RowResult::Columns | RowResult::ColumnsOnly);
        let (main, join) = match is_columns {
            true => {
                let text: Arc<str> = text.by_column()?.into();
                let join = GpuKernel::new(text.clone(), "joined_parts");
                (GpuKernel::new(text, "column_parts"), Some(join))
            }
            false => (GpuKernel::new(text.by_row()?, "by_row"), None),
        };
        let (output, shape) = (formulas.output()?, formulas.shape.known());
        Ok(RowProgram { output, shape, rows: rows.clone(), pack, threads, main, join })
    }

    /// Begins to compile it.
    pub fn prepared(self, init: &KernelInit<'_>) -> Result<RowProgram> {
        Ok(RowProgram { main: self.main.prepared(init)?, ..self })
    }

    /// The result, if all operands broadcast to the known shape, or to that of the largest.
    pub fn run_if_simple(
        &self,
        gpu: &Arc<dyn Gpu>,
        inputs: &mut [Tensor],
    ) -> Result<Option<Tensor>> {
        let largest = || {
            let by_size = inputs.iter().max_by_key(|t| (t.elements(), t.rank()));
            by_size.map(|t| t.shape().clone())
        };
        let Some(shape) = self.shape.clone().or_else(largest) else { return Ok(None) };
        let cols = self.rows.cols;
        let fits = shape.last() == Some(&cols)
            && shape.elements() > 0
            && all_broadcast_to(inputs, &shape)
            && self.are_aligned(inputs)?;
        if !fits {
            return Ok(None);
        }
        let (lead, rows) = (&shape[..shape.rank() - 1], shape.elements() / cols);
        let strides: Vec<Vec<i64>> = inputs
            .iter()
            .map(|t| {
                let mut strides = broadcast_strides(t.shape(), &shape);
                strides.pop();
                strides
            })
            .collect();
        let Ok(walk) = Walk::new(lead, &strides) else { return Ok(None) };
        let mut args = Vec::with_capacity(inputs.len() + 4);
        args.extend([length(rows), walk.arg()]);
        for input in inputs.iter() {
            args.push(address(input)?);
        }
        if let Some(join) = &self.join {
            return self.columns(gpu, args, join, rows, &shape).map(Some);
        }
        let result: Shape = match self.rows.result {
            RowResult::Rows => lead.iter().copied().chain([1]).collect(),
            RowResult::RowsOnly => lead.into(),
            _ => shape,
        };
        // A row is read completely before it is written.
        let out = match reusable(inputs, self.output, &result) {
            Some(i) => inputs[i].clone(),
            None => Tensor::on_device(gpu, self.output, result)?,
        };
        args.push(address(&out)?);
        let (block, together) = match self.threads {
            WARP => (SMALL_BLOCK, SMALL_BLOCK / WARP),
            threads => (threads, 1),
        };
        let grid = [rows.div_ceil(together) as u32, 1, 1];
        self.main.blocks(gpu.as_ref(), grid, [block as u32, 1, 1], &args)?;
        Ok(Some(out))
    }

    /// Reduces columns: blocks for parts of them, then a kernel that joins the parts.
    fn columns(
        &self,
        gpu: &Arc<dyn Gpu>,
        mut args: Vec<LaunchArg>,
        join: &GpuKernel,
        rows: usize,
        shape: &Shape,
    ) -> Result<Tensor> {
        let cols = self.rows.cols;
        let result: Shape = match self.rows.result {
            RowResult::Columns => std::iter::repeat_n(1, shape.rank() - 1).chain([cols]).collect(),
            _ => [cols].into(),
        };
        let out = Tensor::on_device(gpu, self.output, result)?;
        let blocks = cols.div_ceil(COLUMNS * self.pack);
        let parts = (MANY_BLOCKS / blocks).clamp(1, MAX_PARTS).min(rows / PART_ROWS).max(1);
        // Accumulators have at most 8 bytes.
        let partial = Tensor::on_device(gpu, DType::Double, [parts * cols])?;
        args.push(address(&partial)?);
        let block = [COLUMNS as u32, LANES as u32, 1];
        self.main.blocks(gpu.as_ref(), [blocks as u32, parts as u32, 1], block, &args)?;
        let args = [length(parts), length(rows), address(&partial)?, address(&out)?];
        let grid = [cols.div_ceil(COLUMNS) as u32, 1, 1];
        join.blocks(gpu.as_ref(), grid, block, &args)?;
        Ok(out)
    }

    /// Whether packs of all rows can be read at once.
    fn are_aligned(&self, inputs: &[Tensor]) -> Result<bool> {
        for (input, is_same_in_row) in inputs.iter().zip(&self.rows.is_same_in_row) {
            let last = input.shape().last().copied().unwrap_or(1);
            let expected = if *is_same_in_row { 1 } else { self.rows.cols };
            let bytes = input.dtype().size().unwrap_or(PACK_BYTES) * self.pack;
            let is_aligned = input.device_address()?.is_multiple_of(bytes as u64);
            if last != expected || !is_same_in_row && !is_aligned {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// The widest pack that divides a row.
fn widest_pack(most: usize, cols: usize) -> usize {
    let mut pack = most;
    while !cols.is_multiple_of(pack) {
        pack /= 2;
    }
    pack
}

/// Makes the text of a kernel.
struct Text<'a> {
    formulas: &'a FusedFormulas,
    rows: &'a FusedRows,
    pack: usize,
    threads: usize,
}

impl Text<'_> {
    /// Whether a formula has one value for a whole row.
    fn is_same_in_row(&self, operand: FormulaOperand) -> bool {
        match operand {
            FormulaOperand::Input(k) => self.rows.is_same_in_row[k],
            FormulaOperand::Step(k) => {
                let FormulaStep { text, operands, .. } = &self.formulas.steps[k];
                matches!(text, FormulaText::Fold(_))
                    || operands.iter().all(|operand| self.is_same_in_row(*operand))
            }
        }
    }

    /// The formulas that differ within a row, are not `kept`, and that `operand` needs, in order.
    fn needed(&self, operand: FormulaOperand, kept: &[usize], found: &mut Vec<usize>) {
        let FormulaOperand::Step(k) = operand else { return };
        if self.is_same_in_row(operand) || kept.contains(&k) || found.contains(&k) {
            return;
        }
        for operand in &self.formulas.steps[k].operands {
            self.needed(*operand, kept, found);
        }
        found.push(k);
    }

    /// The formula that reduction `i` reduces, if a later formula needs its values too.
    fn used_again(&self, i: usize) -> Option<usize> {
        let &[FormulaOperand::Step(reduced)] = &self.formulas.steps[i].operands[..] else {
            return None;
        };
        let later = self.formulas.steps.iter().skip(i + 1);
        let uses = later.flat_map(|step| &step.operands);
        let is_used = uses.into_iter().any(|operand| *operand == FormulaOperand::Step(reduced));
        (is_used && !self.is_same_in_row(FormulaOperand::Step(reduced))).then_some(reduced)
    }

    /// The value of an operand for element `k` of pack `p`.
    fn value(&self, operand: FormulaOperand, kept: &[usize]) -> String {
        match operand {
            FormulaOperand::Input(k) if self.rows.is_same_in_row[k] => format!("a{k}"),
            FormulaOperand::Input(k) => format!("a{k}[p].at[k]"),
            FormulaOperand::Step(k) if kept.contains(&k) => format!("kept{k}[p].at[k]"),
            FormulaOperand::Step(k) => format!("s{k}"),
        }
    }

    /// A formula as a statement.
    fn statement(&self, i: usize, kept: &[usize]) -> Result<String> {
        let step = &self.formulas.steps[i];
        let operands: Vec<String> = step.operands.iter().map(|o| self.value(*o, kept)).collect();
        Ok(format!("{} s{i} = step{i}({});", c_type(step.output)?, operands.join(", ")))
    }

    /// The statements of formulas that differ within a row and are not `kept`.
    fn statements(&self, operand: FormulaOperand, kept: &[usize]) -> Result<String> {
        let mut needed = Vec::new();
        self.needed(operand, kept, &mut needed);
        let mut text = String::new();
        for i in needed {
            let _ = writeln!(text, "                {}", self.statement(i, kept)?);
        }
        Ok(text)
    }

    /// Types, constants, functions and the parameters of the inputs.
    fn head(&self) -> Result<(String, String)> {
        let result = c_type(self.formulas.output()?)?;
        let mut head = format!(
            "{}typedef {result} Result;\nconst int P = {};\nconst int COLS = {};\n{}",
            walk::TEXT,
            self.pack,
            self.rows.cols,
            functions(self.formulas)?
        );
        let _ = writeln!(head, "const int N = {};", self.formulas.inputs.len());
        let types = self.formulas.inputs.iter().enumerate();
        let params = types.map(|(k, t)| Ok(format!("const {} *in{k}", c_type(*t)?)));
        Ok((head, params.collect::<Result<Vec<_>>>()?.join(", ")))
    }

    /// A kernel with one value for each element or row.
    fn by_row(&self) -> Result<String> {
        let (mut text, params) = self.head()?;
        let _ = writeln!(text, "const int THREADS = {};", self.threads);
        text.push_str(JOINED);
        let _ = write!(
            text,
            "extern \"C\" __global__ void by_row(i64 rows, Walk<N> lead, {params}, Result *out) {{\n    \
             i64 row = (i64)blockIdx.x * (blockDim.x / THREADS) + threadIdx.x / THREADS;\n    \
             bool is_valid = row < rows;\n    \
             int lane = threadIdx.x % THREADS;\n    \
             i64 at[N];\n    lead.find(is_valid ? row : 0, at);\n"
        );
        let mut load = String::new();
        for (k, dtype) in self.formulas.inputs.iter().enumerate() {
            let t = c_type(*dtype)?;
            if self.rows.is_same_in_row[k] {
                let _ = writeln!(text, "    {t} a{k} = in{k}[at[{k}]];");
            } else {
                let _ = writeln!(text, "    Pack<{t}, P> a{k}[PACKS];");
                let _ = writeln!(
                    load,
                    "        a{k}[p] = *(const Pack<{t}, P> *)(in{k} + at[{k}] + c);"
                );
            }
        }
        let _ = write!(text, "    PACKS_OF_ROW {{\n{load}    }}\n");
        let last = self.formulas.steps.len().saturating_sub(1);
        let mut kept = Vec::new();
        for (i, step) in self.formulas.steps.iter().enumerate() {
            if let FormulaText::Fold(_) = &step.text {
                text.push_str(&self.fold(i, step, &mut kept)?);
            } else if self.is_same_in_row(FormulaOperand::Step(i)) {
                let _ = writeln!(text, "    {}", self.statement(i, &kept)?);
            }
        }
        let result = FormulaOperand::Step(last);
        match self.rows.result {
            RowResult::Elements => {
                let (statements, value) =
                    (self.statements(result, &kept)?, self.value(result, &kept));
                let _ = write!(
                    text,
                    "    if (!is_valid) return;\n    \
                     PACKS_OF_ROW {{\n        Pack<Result, P> pack;\n\
                     #pragma unroll\n        \
                     for (int k = 0; k < P; k++) {{\n{statements}                \
                     pack.at[k] = {value};\n        }}\n        \
                     *(Pack<Result, P> *)(out + row * COLS + c) = pack;\n    }}\n"
                );
            }
            _ => {
                let _ = writeln!(text, "    if (is_valid && lane == 0) out[row] = s{last};");
            }
        }
        text.push_str("}\n");
        Ok(text)
    }

    /// A reduction of a row. Adds what it keeps to `kept`.
    fn fold(&self, i: usize, step: &FormulaStep, kept: &mut Vec<usize>) -> Result<String> {
        let &[operand] = &step.operands[..] else { bail!(Internal, "a reduction's operands") };
        let mut statements = self.statements(operand, kept)?;
        let value = self.value(operand, kept);
        let mut declared = String::new();
        if let Some(k) = self.used_again(i).filter(|k| !kept.contains(k)) {
            let t = c_type(self.formulas.steps[k].output)?;
            declared = format!("    Pack<{t}, P> kept{k}[PACKS];\n");
            let _ = writeln!(statements, "                kept{k}[p].at[k] = {value};");
            kept.push(k);
        }
        Ok(format!(
            "{declared}    Fold{i}::Acc acc{i} = Fold{i}::start();\n    \
             PACKS_OF_ROW {{\n        Fold{i}::Acc part = Fold{i}::start();\n\
             #pragma unroll\n        \
             for (int k = 0; k < P; k++) {{\n{statements}                \
             part = Fold{i}::join(part, Fold{i}::lift({value}));\n        }}\n        \
             acc{i} = Fold{i}::join(acc{i}, part);\n    }}\n    \
             {} s{i} = Fold{i}::finish(joined<Fold{i}>(acc{i}), COLS);\n",
            c_type(step.output)?
        ))
    }

    /// Kernels with one value for each column: the last formula is the reduction.
    fn by_column(&self) -> Result<String> {
        let (mut text, params) = self.head()?;
        let last = self.formulas.steps.len().saturating_sub(1);
        let step = self.formulas.steps.last();
        let Some(&[operand]) = step.map(|step| &step.operands[..]) else {
            bail!(Internal, "a reduction's operands");
        };
        let mut load = String::new();
        for (k, dtype) in self.formulas.inputs.iter().enumerate() {
            let t = c_type(*dtype)?;
            let _ = match self.rows.is_same_in_row[k] {
                true => writeln!(load, "        {t} a{k} = in{k}[at[{k}]];"),
                false => writeln!(
                    load,
                    "        Pack<{t}, P> a{k}[1];\n        \
                     a{k}[0] = *(const Pack<{t}, P> *)(in{k} + at[{k}] + column);"
                ),
            };
        }
        for (i, step) in self.formulas.steps.iter().enumerate().take(last) {
            let is_row = self.is_same_in_row(FormulaOperand::Step(i));
            ensure!(
                !matches!(step.text, FormulaText::Fold(_)),
                Internal,
                "two kinds of reductions"
            );
            if is_row {
                let _ = writeln!(load, "        {}", self.statement(i, &[])?);
            }
        }
        let (statements, value) = (self.statements(operand, &[])?, self.value(operand, &[]));
        let value = value.replace("[p]", "[0]");
        let statements = statements.replace("[p]", "[0]");
        let _ = write!(
            text,
            "typedef Fold{last} F;\ntypedef F::Acc Acc;\n\
             extern \"C\" __global__ void column_parts(i64 rows, Walk<N> lead, {params}, Acc *out) {{\n    \
             __shared__ Acc parts[{LANES}][{COLUMNS}][P];\n    \
             int column = ((int)blockIdx.x * {COLUMNS} + (int)threadIdx.x) * P;\n    \
             Acc acc[P], part[P];\n    \
             for (int k = 0; k < P; k++) acc[k] = part[k] = F::start();\n    \
             int n_part = 0;\n    \
             i64 row = (i64)blockIdx.y * {LANES} + threadIdx.y;\n    \
             for (; column < COLS && row < rows; row += (i64)gridDim.y * {LANES}) {{\n        \
             i64 at[N];\n        lead.find(row, at);\n{load}\
             #pragma unroll\n        \
             for (int k = 0; k < P; k++) {{\n{statements}                \
             part[k] = F::join(part[k], F::lift({value}));\n        }}\n        \
             if (++n_part == 64) {{\n            \
             for (int k = 0; k < P; k++) acc[k] = F::join(acc[k], part[k]), part[k] = F::start();\n            \
             n_part = 0;\n        }}\n    }}\n    \
             for (int k = 0; k < P; k++) parts[threadIdx.y][threadIdx.x][k] = F::join(acc[k], part[k]);\n    \
             __syncthreads();\n    \
             if (threadIdx.y == 0 && column < COLS) {{\n        \
             for (int k = 0; k < P; k++) {{\n            \
             Acc all = parts[0][threadIdx.x][k];\n            \
             for (int i = 1; i < {LANES}; i++) all = F::join(all, parts[i][threadIdx.x][k]);\n            \
             out[(i64)blockIdx.y * COLS + column + k] = all;\n        }}\n    }}\n}}\n"
        );
        text.push_str(JOINED_PARTS);
        Ok(text)
    }
}

/// Packs of a row that a thread has, and joining what the threads of a row have.
const JOINED: &str = r#"
const int PACKS = (COLS + THREADS * P - 1) / (THREADS * P);
// A statement for each pack `p` of this thread, which begins at column `c`.
#define PACKS_OF_ROW                                                                               \
    _Pragma("unroll") for (int p = 0, c = lane * P; p < PACKS; p++, c += THREADS * P)              \
        if (COLS % (THREADS * P) == 0 || c < COLS)

template <class F> __device__ inline typename F::Acc joined(typename F::Acc x) {
    for (int mask = 16; mask > 0; mask /= 2) x = F::join(x, exchanged(x, mask));
    if (THREADS > 32) {
        __shared__ typename F::Acc parts[THREADS > 32 ? THREADS / 32 : 1];
        if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = x;
        __syncthreads();
        x = parts[0];
        for (int i = 1; i < THREADS / 32; i++) x = F::join(x, parts[i]);
        __syncthreads();
    }
    return x;
}
"#;

/// Joins the parts of columns: 8 threads to each.
const JOINED_PARTS: &str = r#"
extern "C" __global__ void joined_parts(i64 parts, i64 rows, const Acc *x, Result *out) {
    __shared__ Acc lanes[8][32];
    i64 column = (i64)blockIdx.x * 32 + threadIdx.x;
    Acc acc = F::start();
    if (column < COLS) {
        for (i64 j = threadIdx.y; j < parts; j += 8) acc = F::join(acc, x[j * COLS + column]);
    }
    lanes[threadIdx.y][threadIdx.x] = acc;
    __syncthreads();
    if (threadIdx.y == 0 && column < COLS) {
        for (int k = 1; k < 8; k++) acc = F::join(acc, lanes[k][threadIdx.x]);
        out[column] = F::finish(acc, rows);
    }
}
"#;
