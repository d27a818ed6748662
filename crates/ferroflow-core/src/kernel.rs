//! Kernels: what runs a node, and what it sees while it does.

use crate::{
    ComputePool, DType, DeviceInfo, Error, Resource, ResourceHandle, Resources, Result, Shape,
    StepCtx, Tensor, Value, Variable, ensure, err,
};
use smallvec::SmallVec;
use std::ops::Range;
use std::sync::Arc;

/// The values a node puts out, by slot.
pub type Outputs = SmallVec<[Value; 2]>;

/// What a kernel may know of the node it was made for.
#[derive(Debug)]
pub struct NodeInfo {
    pub name: String,
    pub op: String,
    pub device: Arc<DeviceInfo>,
    /// Container for resources whose node names none: the job of the device.
    pub default_container: String,
    pub outputs: usize,
}

/// A kernel that computes its outputs before it returns.
pub trait Kernel: Send + Sync {
    fn compute(&self, ctx: &mut Ctx<'_>) -> Result<()>;

    /// Computes, and has `finish` work on all of output 0, part by part, while parts are in a cache.
    /// False when that was not done, and the output is as [`Kernel::compute`] leaves it.
    fn compute_with_epilogue(&self, ctx: &mut Ctx<'_>, epilogue: &dyn Epilogue) -> Result<bool> {
        let _ = epilogue;
        self.compute(ctx)?;
        Ok(false)
    }
}

/// What follows a kernel: a change of its output's elements in place.
pub trait Epilogue: Sync {
    /// Whether it can be done to an output of this type and shape.
    fn fits(&self, dtype: DType, shape: &Shape) -> bool;
    /// Does it to whole rows, of the last dimension, of an output that fits.
    fn apply(&self, rows: Rows<'_>);
}

/// Rows of an output.
pub enum Rows<'a> {
    F32(&'a mut [f32]),
    F64(&'a mut [f64]),
}

impl<F: Fn(&mut Ctx<'_>) -> Result<()> + Send + Sync> Kernel for F {
    fn compute(&self, ctx: &mut Ctx<'_>) -> Result<()> {
        self(ctx)
    }
}

/// A kernel that waits for something: it starts, gives `done` away and returns; no thread waits.
pub trait AsyncKernel: Send + Sync {
    fn start(&self, ctx: AsyncCtx, done: Done);
}

impl<F: Fn(AsyncCtx, Done) + Send + Sync> AsyncKernel for F {
    fn start(&self, ctx: AsyncCtx, done: Done) {
        self(ctx, done)
    }
}

/// A kernel of either kind. Kernels of stateful nodes are shared by all graphs of a session.
#[derive(Clone)]
pub enum KernelBox {
    Sync(Arc<dyn Kernel>),
    Async(Arc<dyn AsyncKernel>),
}

impl KernelBox {
    pub fn new(kernel: impl Kernel + 'static) -> KernelBox {
        KernelBox::Sync(Arc::new(kernel))
    }

    pub fn new_async(kernel: impl AsyncKernel + 'static) -> KernelBox {
        KernelBox::Async(Arc::new(kernel))
    }
}

/// A node's view of the step while its kernel computes.
pub struct Ctx<'a> {
    inputs: &'a mut [Value],
    outputs: &'a mut Outputs,
    step: &'a Arc<StepCtx>,
    node: &'a Arc<NodeInfo>,
    frame_iter: (u64, u64),
}

impl<'a> Ctx<'a> {
    /// For executors. `inputs` must hold no dead or empty value; `outputs` is filled with as many
    /// values as the node has outputs.
    pub fn new(
        inputs: &'a mut [Value],
        outputs: &'a mut Outputs,
        step: &'a Arc<StepCtx>,
        node: &'a Arc<NodeInfo>,
        frame_iter: (u64, u64),
    ) -> Ctx<'a> {
        outputs.clear();
        // Plain pushes: `resize` of what is nearly always one or two values costs more than those.
        for _ in 0..node.outputs {
            outputs.push(Value::Empty);
        }
        Ctx { inputs, outputs, step, node, frame_iter }
    }

    pub fn node(&self) -> &'a Arc<NodeInfo> {
        self.node
    }

    /// The node's name.
    pub fn name(&self) -> &'a str {
        &self.node.name
    }

    pub fn step(&self) -> &'a Arc<StepCtx> {
        self.step
    }

    /// Frame and iteration the node runs in; (0, 0) outside loops.
    pub fn frame_iter(&self) -> (u64, u64) {
        self.frame_iter
    }

    pub fn num_inputs(&self) -> usize {
        self.inputs.len()
    }

    pub fn num_outputs(&self) -> usize {
        self.node.outputs
    }

    /// Input `i`, which is not a reference.
    pub fn input(&self, i: usize) -> Result<&Tensor> {
        match self.inputs.get(i) {
            Some(Value::Tensor(t)) => Ok(t),
            _ => Err(no_tensor(i)),
        }
    }

    /// Whether input `i` has a value: of the inputs of a Merge only one does.
    pub fn has_input(&self, i: usize) -> bool {
        self.inputs.get(i).is_some_and(|v| !v.is_empty())
    }

    /// All inputs in `range`, none of which may be a reference.
    pub fn inputs(&self, range: Range<usize>) -> Result<SmallVec<[&Tensor; 8]>> {
        range.map(|i| self.input(i)).collect()
    }

    /// Takes input `i` out: its storage can then be reused when nobody else holds it.
    pub fn take(&mut self, i: usize) -> Result<Tensor> {
        match self.inputs.get_mut(i).map(std::mem::take) {
            Some(Value::Tensor(t)) => Ok(t),
            _ => Err(no_tensor(i)),
        }
    }

    /// Input `i` for writing: its own storage when nobody else holds it, else a copy.
    pub fn take_or_copy(&mut self, i: usize) -> Result<Tensor> {
        let mut t = self.take(i)?;
        if !t.is_unique() {
            t = t.deep_copy()?;
        }
        Ok(t)
    }

    /// A tensor to write the result to: the storage of the first of `candidates` (inputs) that
    /// nobody else holds and that has the same dtype and shape, else a new one. A candidate used
    /// is gone from the inputs, and holds its old elements.
    pub fn reuse_or_alloc(
        &mut self,
        candidates: &[usize],
        dtype: DType,
        shape: &Shape,
    ) -> Result<(Tensor, Option<usize>)> {
        for &i in candidates {
            if let Some(Value::Tensor(t)) = self.inputs.get_mut(i)
                && t.dtype() == dtype
                && t.shape() == shape
                && t.is_unique()
            {
                return Ok((self.take(i)?, Some(i)));
            }
        }
        Ok((self.alloc(dtype, shape.clone())?, None))
    }

    /// The variable that reference input `i` refers to.
    pub fn ref_input(&self, i: usize) -> Result<&Arc<Variable>> {
        match self.inputs.get(i) {
            Some(Value::Ref(v)) => Ok(v),
            _ => Err(err!(InvalidArgument, "input {i} is not a reference to a variable")),
        }
    }

    /// Input `i` as it is, a reference or a tensor.
    pub fn take_value(&mut self, i: usize) -> Result<Value> {
        self.inputs.get_mut(i).map(std::mem::take).ok_or_else(|| no_tensor(i))
    }

    /// A new tensor of unspecified elements on this node's device.
    pub fn alloc(&self, dtype: DType, shape: impl Into<Shape>) -> Result<Tensor> {
        Tensor::alloc(dtype, shape)
    }

    /// Sets output `i`.
    pub fn set(&mut self, i: usize, value: Tensor) -> Result<()> {
        self.set_value(i, Value::Tensor(value))
    }

    /// Sets output `i` to a reference.
    pub fn set_ref(&mut self, i: usize, value: Arc<Variable>) -> Result<()> {
        self.set_value(i, Value::Ref(value))
    }

    pub fn set_value(&mut self, i: usize, value: Value) -> Result<()> {
        ensure!(
            i < self.outputs.len(),
            Internal,
            "output {i} set on a node with {} outputs",
            self.outputs.len()
        );
        self.outputs[i] = value;
        Ok(())
    }

    /// Resources of the session.
    pub fn resources(&self) -> &'a Resources {
        &self.step.resources
    }

    /// The handle that resource input `i` holds.
    pub fn handle(&self, i: usize) -> Result<&ResourceHandle> {
        scalar_handle(self.input(i)?)
    }

    /// The resource that the handle in input `i` names.
    pub fn resource<T: Resource>(&self, i: usize) -> Result<Arc<T>> {
        let handle = self.handle(i)?;
        self.step.resources.lookup(&handle.container, &handle.name)
    }

    /// Runs `work` over `0..len`, on several threads when `len * cost` nanoseconds are worth it.
    pub fn parallel_for(&self, len: usize, cost: usize, work: impl Fn(Range<usize>) + Sync) {
        ComputePool::parallel_for(len, cost, work)
    }
}

/// What an [`AsyncKernel`] takes along: its inputs and the step.
pub struct AsyncCtx {
    pub inputs: SmallVec<[Value; 4]>,
    pub step: Arc<StepCtx>,
    pub node: Arc<NodeInfo>,
    pub frame_iter: (u64, u64),
}

impl AsyncCtx {
    pub fn input(&self, i: usize) -> Result<&Tensor> {
        match self.inputs.get(i) {
            Some(Value::Tensor(t)) => Ok(t),
            _ => Err(no_tensor(i)),
        }
    }

    /// Takes the inputs in `range` out, as tensors.
    pub fn take_inputs(&mut self, range: Range<usize>) -> Result<Vec<Tensor>> {
        range
            .map(|i| match self.inputs.get_mut(i).map(std::mem::take) {
                Some(value) => value.into_tensor(),
                None => Err(no_tensor(i)),
            })
            .collect()
    }

    pub fn handle(&self, i: usize) -> Result<&ResourceHandle> {
        scalar_handle(self.input(i)?)
    }

    pub fn resource<T: Resource>(&self, i: usize) -> Result<Arc<T>> {
        let handle = self.handle(i)?;
        self.step.resources.lookup(&handle.container, &handle.name)
    }
}

/// Receives the outcome of an async node; an executor implements it.
pub trait Completion: Send + Sync {
    fn complete(self: Arc<Self>, token: u64, result: Result<Outputs>);
}

/// Ends an async node, exactly once. Dropping it unfinished fails the node, so that a forgotten
/// completion is an error and never a hang.
#[must_use = "an async kernel must finish its `Done`"]
pub struct Done {
    to: Option<Arc<dyn Completion>>,
    token: u64,
}

impl Done {
    /// For executors: `token` names the node to `to`.
    pub fn new(to: Arc<dyn Completion>, token: u64) -> Done {
        Done { to: Some(to), token }
    }

    pub fn finish(mut self, result: Result<Outputs>) {
        if let Some(to) = self.to.take() {
            to.complete(self.token, result);
        }
    }

    /// Finishes with tensors as outputs, in order.
    pub fn finish_tensors(self, result: Result<Vec<Tensor>>) {
        self.finish(result.map(|tensors| tensors.into_iter().map(Value::Tensor).collect()));
    }

    pub fn fail(self, error: Error) {
        self.finish(Err(error));
    }
}

impl Drop for Done {
    fn drop(&mut self) {
        if let Some(to) = self.to.take() {
            to.complete(self.token, Err(err!(Internal, "an async kernel never finished")));
        }
    }
}

fn no_tensor(i: usize) -> Error {
    err!(InvalidArgument, "input {i} is not there, or not a tensor")
}

fn scalar_handle(t: &Tensor) -> Result<&ResourceHandle> {
    match t.handles()? {
        [handle] => Ok(handle),
        _ => Err(err!(InvalidArgument, "expected one resource handle, got shape {}", t.shape())),
    }
}
