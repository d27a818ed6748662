//! Softmax and cross entropy on a GPU: one block to a row.

use crate::nn::loss::logits_shape;
use crate::prelude::*;
use ferroflow_core::LaunchArg;
use ferroflow_graph::{FormulaOperand, FormulaStep, FormulaText};
use ferroflow_op_kit::gpu::{GpuKernel, GpuTypes, address, c_type, length};

const TEXT: &str = include_str!("device.cu");

/// The types of SparseSoftmaxCrossEntropyWithLogits.
pub(crate) const SPARSE: GpuTypes = &[
    ("T", &[DType::Half, DType::BFloat16, DType::Float, DType::Double]),
    ("Tlabels", &[DType::Int32, DType::Int64]),
];

/// The widest row that a warp keeps in registers.
const WARP_WIDTH: usize = 1024;
/// Warps of a block, each with a row of its own.
const WARPS: u32 = 4;
/// Bytes that a thread reads at once.
const PACK_BYTES: usize = 16;

fn kernel(init: &KernelInit<'_>, name: &'static str, labels: DType) -> Result<GpuKernel> {
    let (t, l) = (c_type(init.dtype("T")?)?, c_type(labels)?);
    Ok(GpuKernel::new(format!("typedef {t} T;\ntypedef {l} L;\n{TEXT}"), name))
}

/// Threads for rows of this width: a power of two, as the text needs.
fn threads(width: usize) -> [u32; 3] {
    [width.next_power_of_two().clamp(32, 256) as u32, 1, 1]
}

fn grid(rows: usize) -> [u32; 3] {
    [rows.min(1 << 20) as u32, 1, 1]
}

/// The kernel of Softmax or LogSoftmax.
pub(crate) fn by_row(init: &KernelInit<'_>, name: &'static str) -> Result<KernelBox> {
    let narrow = match name {
        "softmax" => Some(self::kernel(init, "narrow_softmax", DType::Int64)?),
        _ => None,
    };
    let kernel = kernel(init, name, DType::Int64)?.prepared(init)?;
    Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
        let x = ctx.input(0)?;
        let shape = x.shape().clone();
        ensure!(shape.rank() >= 1, InvalidArgument, "logits must have >= 1 dimension, got {shape}");
        let width = shape[shape.rank() - 1];
        let out = ctx.alloc_on_device(x.dtype(), shape)?;
        if let Some(rows) = out.elements().checked_div(width) {
            let args = [length(rows), length(width), address(x)?, address(&out)?];
            let pack = PACK_BYTES / x.dtype().size().unwrap_or(PACK_BYTES);
            let is_aligned = x.device_address()?.is_multiple_of(PACK_BYTES as u64);
            let is_narrow = width.is_multiple_of(pack) && is_aligned;
            if let Some(narrow) = narrow.as_ref().filter(|_| is_narrow && width <= WARP_WIDTH) {
                let blocks = rows.div_ceil(WARPS as usize) as u32;
                narrow.blocks(ctx.gpu()?.as_ref(), [blocks, 1, 1], [WARPS * 32, 1, 1], &args)?;
                return ctx.set(0, out);
            }
            kernel.blocks(ctx.gpu()?.as_ref(), grid(rows), threads(width), &args)?;
        }
        ctx.set(0, out)
    }))
}

/// Softmax as formulas and reductions of a row, for kernels that fuse it with others.
pub(crate) fn softmax_steps(dtype: DType) -> Vec<FormulaStep> {
    // As in the kernel for narrow rows.
    let quotient = if dtype.size() == Some(2) { "x * (W(1) / y)" } else { "x / y" };
    row_steps(dtype, quotient, &[FormulaOperand::Step(1), FormulaOperand::Step(2)])
}

/// The same for LogSoftmax.
pub(crate) fn log_softmax_steps(dtype: DType) -> Vec<FormulaStep> {
    let operands = [FormulaOperand::Input(0), FormulaOperand::Step(0), FormulaOperand::Step(2)];
    row_steps(dtype, "x - y - log(z)", &operands)
}

/// The largest element, the exponentials of the distances from it, their sum, and the result.
fn row_steps(dtype: DType, result: &str, of: &[FormulaOperand]) -> Vec<FormulaStep> {
    const MAX: GpuFold = GpuFold { start: "lowest<T>()", join: "larger(a, b)", ..GpuFold::SUM };
    let wide = if dtype == DType::Double { DType::Double } else { DType::Float };
    let x = FormulaOperand::Input(0);
    let step = |text: FormulaText, output: DType, operands: &[FormulaOperand]| FormulaStep {
        text,
        output,
        operands: operands.to_vec(),
    };
    vec![
        step(FormulaText::Fold(MAX), dtype, &[x]),
        step(FormulaText::Each("exp(x - y)".into()), wide, &[x, FormulaOperand::Step(0)]),
        step(FormulaText::Fold(GpuFold::SUM), wide, &[FormulaOperand::Step(1)]),
        step(FormulaText::Each(result.into()), dtype, of),
    ]
}

/// The kernel of SparseSoftmaxCrossEntropyWithLogits. A label out of range gives NaN, as on
/// TensorFlow's GPUs.
pub(crate) fn sparse_cross_entropy(init: &KernelInit<'_>) -> Result<KernelBox> {
    let kernel = kernel(init, "sparse_cross_entropy", init.dtype("Tlabels")?)?.prepared(init)?;
    Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
        let (logits, labels) = (ctx.input(0)?, ctx.input(1)?);
        let shape = logits.shape();
        ensure!(shape.rank() == 2, InvalidArgument, "logits must be 2-D, but got shape {shape}");
        ensure!(
            labels.rank() == 1,
            InvalidArgument,
            "labels must be 1-D, but got shape {}",
            labels.shape()
        );
        let (rows, cols) = (shape[0], shape[1]);
        ensure!(
            rows == labels.elements(),
            InvalidArgument,
            "logits and labels must have the same first dimension, got logits shape {shape} and \
             labels shape {}",
            labels.shape()
        );
        ensure!(
            cols > 0,
            InvalidArgument,
            "Must have at least one class, but got logits shape {shape}"
        );
        let loss = ctx.alloc_on_device(logits.dtype(), [rows])?;
        let back = ctx.alloc_on_device(logits.dtype(), shape.clone())?;
        let args = [
            length(rows),
            length(cols),
            address(logits)?,
            address(labels)?,
            address(&loss)?,
            address(&back)?,
        ];
        kernel.blocks(ctx.gpu()?.as_ref(), grid(rows), threads(cols), &args)?;
        ctx.set(0, loss)?;
        ctx.set(1, back)
    }))
}

/// The kernel of SoftmaxCrossEntropyWithLogits.
pub(crate) fn cross_entropy(init: &KernelInit<'_>) -> Result<KernelBox> {
    let kernel = kernel(init, "cross_entropy", DType::Int64)?.prepared(init)?;
    Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
        let (logits, labels) = (ctx.input(0)?, ctx.input(1)?);
        let shape = logits_shape(logits, labels)?;
        let (rows, cols) = (shape[0], shape[1]);
        let loss = Tensor::zeros(logits.dtype(), [rows])?;
        let loss = match cols {
            0 => loss.to_device(ctx.gpu()?)?,
            _ => ctx.alloc_on_device(logits.dtype(), [rows])?,
        };
        let back = ctx.alloc_on_device(logits.dtype(), shape)?;
        if cols > 0 {
            let steps = |t: &Tensor| {
                let at = |i: usize| (i + t.rank()).checked_sub(2).map_or(1, |i| t.shape()[i]);
                let row = if at(0) == rows && rows != 1 { at(1) } else { 0 };
                [row, usize::from(at(1) == cols && cols != 1)].map(|n| LaunchArg::I64(n as i64))
            };
            let [x_row, x_col] = steps(logits);
            let [y_row, y_col] = steps(labels);
            let (rows_arg, cols_arg) = (length(rows), length(cols));
            let (x, y) = (address(logits)?, address(labels)?);
            let args = [
                rows_arg,
                cols_arg,
                x,
                x_row,
                x_col,
                y,
                y_row,
                y_col,
                address(&loss)?,
                address(&back)?,
            ];
            kernel.blocks(ctx.gpu()?.as_ref(), grid(rows), threads(cols), &args)?;
        }
        ctx.set(0, loss)?;
        ctx.set(1, back)
    }))
}
