//! Graphs before they run: the IR ([`Graph`]), the op [`Catalog`], signatures, shape inference,
//! functions, passes, and conversion from and to TensorFlow's GraphDef ([`wire`]).

mod attr;
mod blocks;
mod catalog;
mod def;
pub mod foreign;
mod function;
mod gradient;
mod graph;
mod import;
mod kernel_init;
mod op_def;
pub mod passes;
pub mod shape;
pub mod signature;
mod sizes;
pub mod wire;

pub use attr::{AttrList, AttrValue, Attrs, FuncRef};
pub use blocks::{Apply, Block, Blocks, Operands};
pub use catalog::{Catalog, OpBuilder};
pub use def::{FunctionDef, GraphDef, NodeDef, Versions};
pub use function::{FunctionGraph, Library, SYMBOLIC_GRADIENT};
pub use gradient::{
    Gradient, GradientFn, GradientOptions, GradientScope, IndexedSlices, OpGradient, Term,
    gradients, is_differentiable,
};
pub use graph::{Endpoint, Graph, Node, NodeId};
pub use kernel_init::{Function, Functions, KernelInit, NoFunctions, ResourceName};
pub use op_def::{
    Allowed, ArgDef, ArgTypes, AttrDef, AttrKind, BlocksFn, Calls, ControlFlow, Cost, FlopsFn,
    KernelFn, OpDef, PortType, Role, ShapeFn, TypeSource,
};
pub use shape::ShapeCtx;
pub use sizes::Sizes;
