//! The imports of an op's file, in one line.

pub use crate::{
    binary_gradients,
    dispatch::unsupported,
    gpu::elementwise::OnGpuByFormula,
    num::{Float, Num, Real},
    per_dtype, per_width, unary_gradients,
};
pub use ferroflow_core::{
    AsyncCtx, AsyncKernel, Code, Complex32, Complex64, Ctx, DType, Done, Element, Error,
    InlineScope, Kernel, KernelBox, Movable, Outputs, PartialShape, Resource, ResourceHandle,
    Resources, Result, Shape, StoredVariable, Tensor, Value, Within, bail, bf16, ensure, err, f16,
};
pub use ferroflow_graph::{
    AnyBlockKernel, Attrs, CallKind, Catalog, ControlFlow, FunctionHandle, GpuFold, GpuFormula,
    GpuRows, GradientScope, KernelInit, MakeBlockKernel, NodeSizes, OpMoves, OpRole, ShapeCtx,
    Term, shape, work,
};
pub use std::sync::Arc;
