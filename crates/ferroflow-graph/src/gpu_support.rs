//! How an op runs on GPUs.

use crate::attr::Attrs;
use crate::block_kernel::OperandShapes;
use crate::graph::Node;
use crate::kernel_init::KernelInit;
use crate::op_def::{ArgDef, KernelFn, PortType};
use ferroflow_core::{DType, Gpu, KernelBox, PartialShape, Result, Tensor, err};
use std::sync::Arc;

/// Type attributes and the dtypes for which there is a GPU kernel.
pub type GpuTypes = &'static [(&'static str, &'static [DType])];

/// How an op runs on GPUs: with a kernel of its own, or with its CPU kernel, which then works in
/// either memory.
#[derive(Clone, Default)]
pub struct GpuSupport {
    /// The dtypes it is for. Attributes that are not named may have any.
    pub types: GpuTypes,
    /// What else the attributes must be.
    pub condition: Option<fn(&Attrs) -> bool>,
    /// Makes its GPU kernel; `None` means the CPU kernel.
    pub make: Option<KernelFn>,
    /// Inputs in host memory, by name.
    pub host_inputs: Vec<&'static str>,
    /// Outputs in host memory, by name.
    pub host_outputs: Vec<&'static str>,
    /// The formula that its kernel applies to each element, if that is all it does.
    pub formula: Option<GpuFormula>,
    /// Makes the kernel that also adds a bias, the last input, to the last dimension of its result.
    /// Only for floats of at most 32 bits.
    pub with_bias: Option<KernelFn>,
    /// Names inputs of a kernel that can update several variables at once. Nodes that share these
    /// inputs are joined: the joined node has the inputs of each, one node after the other. Empty
    /// if there is no such kernel.
    pub shared_inputs: Vec<&'static str>,
    /// What its kernel does with whole rows, if that can be fused with formulas.
    pub rows: Option<GpuRows>,
}

/// An element-wise formula in CUDA C++. Nodes with formulas are fused.
#[derive(Clone)]
pub struct GpuFormula {
    /// The formula for nodes with these attributes. The inputs are `x`, `y`, `z`, `w`, `u`, `v`.
    pub text: fn(&Attrs, &'static str) -> Option<&'static str>,
    /// What `text` is given.
    pub given: &'static str,
    /// Which shapes the inputs may have.
    pub operands: OperandShapes,
}

/// A reduction in CUDA C++. `x`, `a` and `b` are of type `Acc`, `count` is an `i64`, `T` is the
/// type of the elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GpuFold {
    /// The type of accumulators.
    pub acc: &'static str,
    /// The accumulator's first value.
    pub start: &'static str,
    /// From an element `x` to an accumulator.
    pub lift: &'static str,
    /// Two accumulators `a` and `b` into one.
    pub join: &'static str,
    /// From accumulator `a` of `count` elements to the result.
    pub finish: &'static str,
}

impl GpuFold {
    /// The sum.
    pub const SUM: GpuFold =
        GpuFold { acc: "SumOf<T>::type", start: "Acc(0)", lift: "x", join: "a + b", finish: "a" };
}

/// What a kernel does with rows: the elements that differ only in the last coordinate.
#[derive(Clone, Copy)]
pub enum GpuRows {
    /// Reduces the dimensions that input 1 names. `keep_dims` says whether they stay.
    Fold(GpuFold),
    /// Reduces all dimensions but the last, for nodes with such attributes.
    FoldColumns(GpuFold, fn(&Attrs) -> bool),
    /// Formulas and reductions of the rows of its only input, which is of this type.
    Steps(fn(DType) -> Vec<FormulaStep>),
    /// Repeats its input to fill the shape that input 1 names.
    Broadcast,
}

/// Formulas of several nodes. The value of the last is the result.
#[derive(Clone, Debug)]
pub struct FusedFormulas {
    /// The types of the inputs.
    pub inputs: Vec<DType>,
    /// In an order in which they can be computed.
    pub steps: Vec<FormulaStep>,
    /// The shape over which all of them are computed. Where it is not known, it is that of the
    /// largest input.
    pub shape: PartialShape,
    /// How rows are reduced; `None` if they are not.
    pub rows: Option<FusedRows>,
}

/// Rows of fused formulas.
#[derive(Clone, Debug)]
pub struct FusedRows {
    /// The number of elements of a row.
    pub cols: usize,
    /// For each input, whether it has one value for a whole row.
    pub is_same_in_row: Vec<bool>,
    /// The shape of the result.
    pub result: RowResult,
}

/// The result of fused formulas with reductions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowResult {
    /// A value for each element.
    Elements,
    /// A value for each row. The last dimension has length 1.
    Rows,
    /// A value for each row, without the last dimension.
    RowsOnly,
    /// A value for each column. The last formula is a reduction of all dimensions but the last,
    /// which have length 1.
    Columns,
    /// The same without the reduced dimensions.
    ColumnsOnly,
}

/// One formula of several.
#[derive(Clone, Debug)]
pub struct FormulaStep {
    /// The formula, or the reduction.
    pub text: FormulaText,
    /// The type of its value.
    pub output: DType,
    /// The operands `x`, `y` and so on.
    pub operands: Vec<FormulaOperand>,
}

/// What a formula computes.
#[derive(Clone, Debug)]
pub enum FormulaText {
    /// A value for each element of the operands.
    Each(String),
    /// A value for each row of its one operand; for the last formula perhaps for each column.
    Fold(GpuFold),
}

/// An operand of a formula.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FormulaOperand {
    /// Input number `i`.
    Input(usize),
    /// The value of formula number `i`.
    Step(usize),
}

impl FusedFormulas {
    /// The type of the result.
    pub fn output(&self) -> Result<DType> {
        let last = self.steps.last();
        last.map(|step| step.output).ok_or_else(|| err!(Internal, "formulas without a result"))
    }
}

/// The kernel of fused formulas: takes the inputs and returns the result. It leaves the inputs and
/// returns `None` if their shapes are unusual.
pub type FusedOnGpu =
    Box<dyn Fn(&Arc<dyn Gpu>, &mut Vec<Tensor>) -> Result<Option<Tensor>> + Send + Sync>;

/// Makes the kernel of fused formulas for a node.
pub type GpuFuser = fn(&FusedFormulas, &KernelInit<'_>) -> Result<FusedOnGpu>;

/// Copies of parts of tensors into one tensor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GpuMoves {
    /// The shape of the result.
    pub shape: Vec<usize>,
    /// The loops of each copy, outermost first: how often, and how far the source and the
    /// destination step.
    pub loops: Vec<(usize, isize, isize)>,
    /// For each input, the number of its elements, and the first element on either side.
    pub parts: Vec<(usize, isize, isize)>,
}

/// Makes a kernel that copies each input as described.
pub type GpuMover = fn(&GpuMoves, &KernelInit<'_>) -> Result<KernelBox>;

impl GpuSupport {
    /// Whether it is for nodes with these attributes.
    pub fn takes(&self, attrs: &Attrs) -> bool {
        let has = |(attr, dtypes): &(&str, &[DType])| {
            attrs.dtype(attr).is_ok_and(|dtype| dtypes.contains(&dtype))
        };
        self.types.iter().all(has) && self.condition.is_none_or(|holds| holds(attrs))
    }

    /// Whether a tensor of this type is in host memory even so. Shapes and axes are `int32` and
    /// stay there, unless a kernel takes or makes them.
    fn stays_on_host(&self, port: PortType) -> bool {
        !port.dtype.is_plain() || (self.make.is_none() && port.dtype == DType::Int32)
    }
}

/// Which inputs and outputs of a node on a GPU are in the GPU's memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GpuPorts {
    /// For each input.
    pub inputs: Vec<bool>,
    /// For each output.
    pub outputs: Vec<bool>,
}

impl GpuPorts {
    /// The ports of `node`, which is placed on a GPU. A node without a GPU kernel runs on the host.
    pub fn of(node: &Node) -> GpuPorts {
        let Some(gpu) = node.op.gpu.as_ref().filter(|gpu| gpu.takes(&node.attrs)) else {
            let (inputs, outputs) = (node.input_types.len(), node.output_types.len());
            return GpuPorts { inputs: vec![false; inputs], outputs: vec![false; outputs] };
        };
        let side = |args: &[ArgDef], on_host: &[&str], types: &[PortType]| {
            let named = args.iter().flat_map(|arg| {
                let n = arg.port_types(&node.attrs).map_or(0, |ports| ports.len());
                std::iter::repeat_n(on_host.contains(&arg.name.as_str()), n)
            });
            let ports = types.iter().zip(named);
            ports.map(|(port, is_host)| !is_host && !gpu.stays_on_host(*port)).collect()
        };
        GpuPorts {
            inputs: side(&node.op.inputs, &gpu.host_inputs, &node.input_types),
            outputs: side(&node.op.outputs, &gpu.host_outputs, &node.output_types),
        }
    }
}
