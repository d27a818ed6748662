//! Kernels: the code that runs a node, and what it can see of the step.

use crate::{
    ComputePool, DType, DeviceInfo, Error, Gpu, InlineScope, Resource, ResourceHandle, Resources,
    Result, Shape, StepCtx, StoredVariable, Tensor, Value, ensure, err,
};
use smallvec::SmallVec;
use std::ops::Range;
use std::sync::Arc;

/// The values of a node's outputs, by slot.
pub type Outputs = SmallVec<[Value; 2]>;

/// What a kernel knows about its node.
#[derive(Debug)]
pub struct NodeInfo {
    /// The name of the node.
    pub name: String,
    /// The name of its op.
    pub op: String,
    /// The device it is placed on.
    pub device: Arc<DeviceInfo>,
    /// The container for resources whose node names none: the job of the device.
    pub default_container: String,
    /// The number of outputs.
    pub outputs: usize,
}

/// A kernel that computes its outputs before it returns.
pub trait Kernel: Send + Sync {
    /// Computes all outputs, or fails. Must not block.
    fn compute(&self, ctx: &mut Ctx<'_>) -> Result<()>;

    /// Computes, and applies `epilogue` to output 0 part by part, while each part is in a cache.
    /// Returns false if it did not apply `epilogue`. The output is then that of
    /// [`Kernel::compute`].
    fn compute_with_epilogue(&self, ctx: &mut Ctx<'_>, epilogue: &dyn Epilogue) -> Result<bool> {
        let _ = epilogue;
        self.compute(ctx)?;
        Ok(false)
    }
}

/// A change in place of a kernel's output, fused into the kernel.
pub trait Epilogue: Sync {
    /// Whether it applies to an output of this type and shape.
    fn fits(&self, dtype: DType, shape: &Shape) -> bool;
    /// Changes whole rows of the last dimension. The output must fit.
    fn apply(&self, rows: Rows<'_>);
}

/// Rows of an output.
pub enum Rows<'a> {
    /// Rows of `f32`.
    F32(&'a mut [f32]),
    /// Rows of `f64`.
    F64(&'a mut [f64]),
}

impl<F: Fn(&mut Ctx<'_>) -> Result<()> + Send + Sync> Kernel for F {
    fn compute(&self, ctx: &mut Ctx<'_>) -> Result<()> {
        self(ctx)
    }
}

/// A kernel that waits for an event. It starts, passes `done` on and returns; no thread blocks.
pub trait AsyncKernel: Send + Sync {
    /// Starts the work. Finish `done` when it is complete, on any thread.
    fn start(&self, ctx: AsyncCtx, done: Done, scope: &InlineScope);

    /// Whether the output is the only input, at present: then the kernel does not wait. An example
    /// is the reduction of one rank.
    fn passes_input_on(&self) -> bool {
        false
    }
}

impl<F: Fn(AsyncCtx, Done, &InlineScope) + Send + Sync> AsyncKernel for F {
    fn start(&self, ctx: AsyncCtx, done: Done, scope: &InlineScope) {
        self(ctx, done, scope)
    }
}

/// A kernel of either type. All graphs of a session share the kernels of stateful nodes.
#[derive(Clone)]
pub enum KernelBox {
    /// Computes before it returns.
    Sync(Arc<dyn Kernel>),
    /// Completes later.
    Async(Arc<dyn AsyncKernel>),
}

impl KernelBox {
    /// A kernel that computes before it returns.
    pub fn new(kernel: impl Kernel + 'static) -> KernelBox {
        KernelBox::Sync(Arc::new(kernel))
    }

    /// A kernel that completes later.
    pub fn new_async(kernel: impl AsyncKernel + 'static) -> KernelBox {
        KernelBox::Async(Arc::new(kernel))
    }
}

/// What a kernel sees of the step while it computes.
pub struct Ctx<'a> {
    inputs: &'a mut [Value],
    outputs: &'a mut Outputs,
    step: &'a Arc<StepCtx>,
    node: &'a Arc<NodeInfo>,
    frame_iter: (u64, u64),
    scope: &'a InlineScope,
}

impl<'a> Ctx<'a> {
    /// For executors. `inputs` must hold no dead or empty value. Fills `outputs` with one empty
    /// value per output of the node.
    pub fn new(
        inputs: &'a mut [Value],
        outputs: &'a mut Outputs,
        step: &'a Arc<StepCtx>,
        node: &'a Arc<NodeInfo>,
        frame_iter: (u64, u64),
        scope: &'a InlineScope,
    ) -> Ctx<'a> {
        outputs.clear();
        // Single pushes are faster than `resize` for the usual one or two outputs.
        for _ in 0..node.outputs {
            outputs.push(Value::Empty);
        }
        Ctx { inputs, outputs, step, node, frame_iter, scope }
    }

    /// What this thread is doing: for calls that continue or write at its end.
    pub fn scope(&self) -> &'a InlineScope {
        self.scope
    }

    /// The node.
    pub fn node(&self) -> &'a Arc<NodeInfo> {
        self.node
    }

    /// The node's name.
    pub fn name(&self) -> &'a str {
        &self.node.name
    }

    /// The step.
    pub fn step(&self) -> &'a Arc<StepCtx> {
        self.step
    }

    /// The frame and iteration in which the node runs. (0, 0) outside loops.
    pub fn frame_iter(&self) -> (u64, u64) {
        self.frame_iter
    }

    /// The number of inputs.
    pub fn num_inputs(&self) -> usize {
        self.inputs.len()
    }

    /// The number of outputs.
    pub fn num_outputs(&self) -> usize {
        self.node.outputs
    }

    /// Input `i`. An error if it is a reference.
    pub fn input(&self, i: usize) -> Result<&Tensor> {
        match self.inputs.get(i) {
            Some(Value::Tensor(t)) => Ok(t),
            _ => Err(no_tensor(i)),
        }
    }

    /// Whether input `i` has a value. Only one input of a Merge has one.
    pub fn has_input(&self, i: usize) -> bool {
        self.inputs.get(i).is_some_and(|v| !v.is_empty())
    }

    /// All inputs in `range`. An error if one is a reference.
    pub fn inputs(&self, range: Range<usize>) -> Result<SmallVec<[&Tensor; 8]>> {
        range.map(|i| self.input(i)).collect()
    }

    /// Takes input `i` out. The kernel may then reuse its storage if it has no other owner.
    pub fn take(&mut self, i: usize) -> Result<Tensor> {
        match self.inputs.get_mut(i).map(std::mem::take) {
            Some(Value::Tensor(t)) => Ok(t),
            _ => Err(no_tensor(i)),
        }
    }

    /// Puts an input back that was taken out.
    pub fn put_back(&mut self, i: usize, value: Tensor) {
        if let Some(input) = self.inputs.get_mut(i) {
            *input = Value::Tensor(value);
        }
    }

    /// Input `i` for writing. Copies its storage if it has other owners.
    pub fn take_or_copy(&mut self, i: usize) -> Result<Tensor> {
        let mut t = self.take(i)?;
        if !t.is_unique() {
            t = t.deep_copy()?;
        }
        Ok(t)
    }

    /// A tensor for the result. Takes the storage of the first input in `candidates` that has the
    /// same dtype and shape and no other owner, with its old elements. Allocates a new tensor if
    /// there is none. Returns the number of the input it took.
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

    /// The variable behind reference input `i`.
    pub fn ref_input(&self, i: usize) -> Result<&Arc<StoredVariable>> {
        match self.inputs.get(i) {
            Some(Value::Ref(v)) => Ok(v),
            _ => Err(err!(InvalidArgument, "input {i} is not a reference to a variable")),
        }
    }

    /// Input `i`, either a reference or a tensor.
    pub fn take_value(&mut self, i: usize) -> Result<Value> {
        self.inputs.get_mut(i).map(std::mem::take).ok_or_else(|| no_tensor(i))
    }

    /// A new tensor with unspecified elements on this node's device.
    pub fn alloc(&self, dtype: DType, shape: impl Into<Shape>) -> Result<Tensor> {
        Tensor::alloc(dtype, shape)
    }

    /// The GPU of this node. An error if its device is none.
    pub fn gpu(&self) -> Result<&'a Arc<dyn Gpu>> {
        let device = &self.node.device;
        device.gpu.as_ref().ok_or_else(|| err!(Internal, "{} is not a GPU", device.text))
    }

    /// A new tensor with unspecified elements in the memory of this node's GPU.
    pub fn alloc_on_device(&self, dtype: DType, shape: impl Into<Shape>) -> Result<Tensor> {
        Tensor::on_device(self.gpu()?, dtype, shape)
    }

    /// [`Ctx::reuse_or_alloc`] in the memory of this node's GPU.
    pub fn reuse_or_alloc_on_device(
        &mut self,
        candidates: &[usize],
        dtype: DType,
        shape: &Shape,
    ) -> Result<Tensor> {
        for &i in candidates {
            if let Some(Value::Tensor(t)) = self.inputs.get_mut(i)
                && t.dtype() == dtype
                && t.shape() == shape
                && t.is_unique()
            {
                return self.take(i);
            }
        }
        self.alloc_on_device(dtype, shape.clone())
    }

    /// Sets output `i`.
    pub fn set(&mut self, i: usize, value: Tensor) -> Result<()> {
        self.set_value(i, Value::Tensor(value))
    }

    /// Sets output `i` to a reference.
    pub fn set_ref(&mut self, i: usize, value: Arc<StoredVariable>) -> Result<()> {
        self.set_value(i, Value::Ref(value))
    }

    /// Sets output `i` to a tensor or a reference.
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

    /// The resources of the session.
    pub fn resources(&self) -> &'a Resources {
        &self.step.resources
    }

    /// The container of resources that belong to this session alone.
    pub fn session_container(&self) -> &'a str {
        self.step.memory.container()
    }

    /// The handle in resource input `i`.
    pub fn handle(&self, i: usize) -> Result<&ResourceHandle> {
        scalar_handle(self.input(i)?)
    }

    /// The resource named by the handle in input `i`.
    pub fn resource<T: Resource>(&self, i: usize) -> Result<Arc<T>> {
        let handle = self.handle(i)?;
        self.step.resources.lookup(&handle.container, &handle.name)
    }

    /// Runs `work` over `0..len`, on several threads if `len * cost` nanoseconds are worth it.
    pub fn parallel_for(&self, len: usize, cost: usize, work: impl Fn(Range<usize>) + Sync) {
        ComputePool::parallel_for(len, cost, work)
    }
}

/// The inputs of an [`AsyncKernel`] and its step.
pub struct AsyncCtx {
    /// The input values.
    pub inputs: SmallVec<[Value; 4]>,
    /// The step.
    pub step: Arc<StepCtx>,
    /// The node.
    pub node: Arc<NodeInfo>,
    /// The frame and iteration in which the node runs.
    pub frame_iter: (u64, u64),
}

impl AsyncCtx {
    /// Input `i`. An error if it is a reference.
    pub fn input(&self, i: usize) -> Result<&Tensor> {
        match self.inputs.get(i) {
            Some(Value::Tensor(t)) => Ok(t),
            _ => Err(no_tensor(i)),
        }
    }

    /// Takes the inputs in `range` out as tensors.
    pub fn take_inputs(&mut self, range: Range<usize>) -> Result<Vec<Tensor>> {
        range
            .map(|i| match self.inputs.get_mut(i).map(std::mem::take) {
                Some(value) => value.into_tensor(),
                None => Err(no_tensor(i)),
            })
            .collect()
    }

    /// The handle in resource input `i`.
    pub fn handle(&self, i: usize) -> Result<&ResourceHandle> {
        scalar_handle(self.input(i)?)
    }

    /// The resource named by the handle in input `i`.
    pub fn resource<T: Resource>(&self, i: usize) -> Result<Arc<T>> {
        let handle = self.handle(i)?;
        self.step.resources.lookup(&handle.container, &handle.name)
    }
}

/// Receives the result of an async node. Executors implement it.
pub trait Completion: Send + Sync {
    /// Completes the node that `token` names.
    fn complete(self: Arc<Self>, token: u64, result: Result<Outputs>, scope: &InlineScope);
}

/// Completes an async node, exactly once. Dropping it unfinished fails the node, so that a
/// forgotten completion is an error and not a hang.
#[must_use = "an async kernel must finish its `Done`"]
pub struct Done {
    to: Option<Arc<dyn Completion>>,
    token: u64,
}

impl Done {
    /// For executors. `to` identifies the node by `token`.
    pub fn new(to: Arc<dyn Completion>, token: u64) -> Done {
        Done { to: Some(to), token }
    }

    /// Completes the node with its outputs, or with an error. The run continues on a compute
    /// thread.
    pub fn finish(self, result: Result<Outputs>) {
        self.finish_in(&InlineScope::unknown(), result);
    }

    /// Finishes in `scope`: the run may continue at its end.
    pub fn finish_in(mut self, scope: &InlineScope, result: Result<Outputs>) {
        if let Some(to) = self.to.take() {
            to.complete(self.token, result, scope);
        }
    }

    /// Completes the node with tensors as outputs, in order.
    pub fn finish_tensors(self, result: Result<Vec<Tensor>>) {
        self.finish(result.map(|tensors| tensors.into_iter().map(Value::Tensor).collect()));
    }

    /// [`Done::finish_tensors`] in `scope`.
    pub fn finish_tensors_in(self, scope: &InlineScope, result: Result<Vec<Tensor>>) {
        let outputs = result.map(|tensors| tensors.into_iter().map(Value::Tensor).collect());
        self.finish_in(scope, outputs);
    }

    /// Completes the node with an error.
    pub fn fail(self, error: Error) {
        self.finish(Err(error));
    }
}

impl Drop for Done {
    fn drop(&mut self) {
        if let Some(to) = self.to.take() {
            let error = err!(Internal, "an async kernel was dropped before it finished");
            to.complete(self.token, Err(error), &InlineScope::unknown());
        }
    }
}

fn no_tensor(i: usize) -> Error {
    err!(InvalidArgument, "input {i} is missing or not a tensor")
}

fn scalar_handle(t: &Tensor) -> Result<&ResourceHandle> {
    match t.handles()? {
        [handle] => Ok(handle),
        _ => Err(err!(InvalidArgument, "expected one resource handle, got shape {}", t.shape())),
    }
}
