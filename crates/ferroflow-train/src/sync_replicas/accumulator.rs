//! Gradient accumulators, one next to each variable.

use crate::gradient::{Gradient, IndexedSlices};
use crate::graph::Graph;
use crate::output::{Operation, Output};
use crate::variable::Variable;
use ferroflow_core::{DType, PartialShape};

/// Sums gradients of the current step and drops stale ones.
pub(crate) struct Accumulator {
    graph: Graph,
    handle: Output,
    /// The name of the resource.
    name: String,
    is_sparse: bool,
    dtype: DType,
    shape: PartialShape,
}

impl Accumulator {
    /// The accumulator of a variable.
    #[track_caller]
    pub fn of(variable: &Variable, gradient: &Gradient) -> Accumulator {
        let is_sparse = matches!(gradient, Gradient::Sparse(_));
        let op = if is_sparse { "SparseConditionalAccumulator" } else { "ConditionalAccumulator" };
        let (dtype, shape) = (variable.dtype(), variable.variable_shape().clone());
        let graph = variable.graph().clone();
        let name = format!("{}/grad_accum", variable.variable_name());
        let handle = graph.device(&variable.device(), || {
            graph
                .op(op)
                .attr("dtype", dtype)
                .attr("shape", shape.clone())
                .attr("shared_name", name.as_str())
                .output()
        });
        Accumulator { graph, handle, name, is_sparse, dtype, shape }
    }

    /// An accumulator next to the global step that counts replicas.
    #[track_caller]
    pub fn gate(global_step: &Variable) -> Accumulator {
        let graph = global_step.graph().clone();
        let (dtype, shape) = (DType::Float, PartialShape::scalar());
        let handle = graph.device(&global_step.device(), || {
            let op = graph.op("ConditionalAccumulator").name("gate");
            let op = op.attr("dtype", dtype).attr("shape", shape.clone());
            op.attr("shared_name", "sync_replicas/gate").output()
        });
        let name = "sync_replicas/gate".into();
        Accumulator { graph, handle, name, is_sparse: false, dtype, shape }
    }

    #[track_caller]
    pub fn hand_over(&self, gradient: &Gradient, local_step: &Output) -> Operation {
        match gradient {
            Gradient::Dense(d) => {
                let op = self.graph.op("AccumulatorApplyGradient").input(&self.handle);
                op.input(local_step).input(d).operation()
            }
            Gradient::Sparse(s) => {
                let op = self.graph.op("SparseAccumulatorApplyGradient").input(&self.handle);
                let (indices, shape) = (s.indices.cast(DType::Int64), s.shape.cast(DType::Int64));
                let op = op.input(local_step).input(&indices).input(&s.values).input(&shape);
                op.attr("has_known_shape", self.shape.known().is_some()).operation()
            }
        }
    }

    /// Counts a replica that has added all its gradients of a step.
    #[track_caller]
    pub fn count_in(&self, local_step: &Output) -> Operation {
        self.graph.device(&self.handle.device(), || {
            let one = self.graph.constant(1.0);
            self.hand_over(&Gradient::Dense(one), local_step)
        })
    }

    /// The mean, once it holds `count` gradients.
    #[track_caller]
    pub fn take(&self, count: &Output) -> Gradient {
        if !self.is_sparse {
            let op = self.graph.op("AccumulatorTakeGradient").input(&self.handle).input(count);
            let mean = op.attr("dtype", self.dtype).output();
            mean.set_shape(&self.shape);
            return Gradient::Dense(mean);
        }
        let op = self.graph.op("SparseAccumulatorTakeGradient").input(&self.handle).input(count);
        let [indices, values, shape] = op.attr("dtype", self.dtype).split();
        Gradient::Sparse(IndexedSlices { values, indices, shape })
    }

    /// Number of accumulated gradients.
    #[track_caller]
    pub fn pending(&self) -> Output {
        self.graph.op("AccumulatorNumAccumulated").input(&self.handle).output()
    }

    /// Number of dropped gradients of this accumulator, and whether there are any. The accumulator
    /// counts them in a variable, which the first one creates.
    #[track_caller]
    pub fn stale(&self) -> (Output, Output) {
        self.graph.device(&self.handle.device(), || {
            let handle = self.graph.op("VarHandleOp").attr("dtype", DType::Int64);
            let handle = handle.attr("shape", PartialShape::scalar());
            let handle = handle.attr("shared_name", format!("{}/stale", self.name).as_str());
            let handle = handle.output();
            let some = self.graph.op("VarIsInitializedOp").input(&handle).output();
            let count = self.graph.op("ReadVariableOp").input(&handle);
            (count.attr("dtype", DType::Int64).output(), some)
        })
    }

    /// Sets the current step.
    #[track_caller]
    pub fn tell(&self, global_step: &Variable) -> Operation {
        let op = self.graph.op("AccumulatorSetGlobalStep").input(&self.handle);
        op.input(global_step).operation()
    }
}
