//! Graphs before they run: the IR ([`GraphIr`]), the op [`Catalog`], signatures, shape inference,
//! functions, passes, and conversion from and to TensorFlow's GraphDef ([`wire`]).
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod attr;
mod block_kernel;
mod catalog;
mod def;
mod function;
mod gpu_support;
mod gradient;
mod graph;
mod import;
mod kernel_init;
mod node_sizes;
mod op_def;
pub mod passes;
mod run_metadata;
pub mod shape;
pub mod signature;
pub mod tensorflow_ops;
mod unsupported;
pub mod wire;
pub mod work;

pub use attr::{AttrList, AttrValue, Attrs, FuncRef};
pub use block_kernel::{AnyBlockKernel, BlockForm, BlockKernel, OperandShapes};
pub use catalog::{Catalog, OpBuilder};
pub use def::{FunctionDef, GraphDef, NodeDef, Versions};
pub use function::{FunctionGraph, FunctionLibrary, SYMBOLIC_GRADIENT};
pub use gpu_support::{
    FormulaOperand, FormulaStep, FormulaText, FusedFormulas, FusedOnGpu, FusedRows, GpuFold,
    GpuFormula, GpuFuser, GpuMover, GpuMoves, GpuPorts, GpuRows, GpuSupport, GpuTypes, RowResult,
};
pub use gradient::{
    EndpointGradient, EndpointSlices, GradientFn, GradientOptions, GradientScope, OpGradient, Term,
    gradients, is_differentiable,
};
pub use graph::{Endpoint, GraphIr, Node, NodeId};
pub use kernel_init::{
    FunctionHandle, FunctionInstantiator, KernelInit, NoFunctions, ResourceName,
};
pub use node_sizes::NodeSizes;
pub use op_def::{
    AllowedValues, ArgDef, ArgTypes, AttrDef, AttrKind, CallKind, ControlFlow, FlopsFn, KernelFn,
    MakeBlockKernel, OpCost, OpDef, OpMoves, OpRole, PortType, ShapeFn, TypeSource, WorkFn,
};
pub use run_metadata::{NodeTiming, RunMetadata};
pub use shape::ShapeCtx;
pub use unsupported::unsupported_reason;
