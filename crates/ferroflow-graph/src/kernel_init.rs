//! The node for which a kernel is made.

use crate::attr::{Attrs, FuncRef};
use crate::op_def::PortType;
use ferroflow_core::{DType, InstantiatedFunction, NodeInfo, Result, ensure, err};
use std::ops::Deref;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// Makes functions callable; the runtime implements it over a graph's function library.
pub trait FunctionInstantiator: Send + Sync {
    /// Makes the function callable.
    fn instantiate(&self, func: &FuncRef) -> Result<Arc<dyn InstantiatedFunction>>;

    /// Makes the function callable with its own state (random streams, counters).
    fn instantiate_apart(&self, func: &FuncRef) -> Result<Arc<dyn InstantiatedFunction>> {
        self.instantiate(func)
    }

    /// Whether the function computes each element of its results from the elements of its
    /// arguments at the same place. It can then be called with vectors in place of scalars.
    fn is_elementwise(&self, _: &FuncRef) -> bool {
        false
    }
}

/// A node for which a kernel is made. Dereferences to the node's attributes, defaults included.
pub struct KernelInit<'a> {
    /// The node's name, op and place.
    pub node: &'a Arc<NodeInfo>,
    /// The node's attributes.
    pub attrs: &'a Attrs,
    /// The types of the inputs.
    pub inputs: &'a [PortType],
    /// The types of the outputs.
    pub outputs: &'a [PortType],
    /// Makes the functions of the graph callable.
    pub functions: &'a Arc<dyn FunctionInstantiator>,
    /// Another kernel runs in place of this one, but for unusual shapes. Nothing should be prepared
    /// for it.
    pub is_fallback: bool,
}

impl Deref for KernelInit<'_> {
    type Target = Attrs;
    fn deref(&self) -> &Attrs {
        self.attrs
    }
}

impl KernelInit<'_> {
    /// The node's name.
    pub fn name(&self) -> &str {
        &self.node.name
    }

    /// The dtype of input `i`.
    pub fn input_dtype(&self, i: usize) -> Result<DType> {
        let port = self.inputs.get(i);
        port.map(|p| p.dtype).ok_or_else(|| err!(Internal, "no input {i}"))
    }

    /// The dtype of output `i`.
    pub fn output_dtype(&self, i: usize) -> Result<DType> {
        let port = self.outputs.get(i);
        port.map(|p| p.dtype).ok_or_else(|| err!(Internal, "no output {i}"))
    }

    /// The function that attribute `attr` names. Instantiated when first called, because functions
    /// may be recursive.
    pub fn function(&self, attr: &str) -> Result<FunctionHandle> {
        Ok(self.function_ref(self.func(attr)?))
    }

    /// The functions that list attribute `attr` names.
    pub fn functions_of(&self, attr: &str) -> Result<Vec<FunctionHandle>> {
        Ok(self.funcs(attr)?.into_iter().map(|f| self.function_ref(f)).collect())
    }

    /// The function `func`.
    pub fn function_ref(&self, func: FuncRef) -> FunctionHandle {
        FunctionHandle { func, functions: self.functions.clone(), ready: OnceLock::new() }
    }

    /// The container and the name of the resource that this node makes or finds, from its
    /// attributes `container` and `shared_name`. Without a shared name it has the node's name if
    /// `by_node` (variables, tables); otherwise it is private to this kernel.
    pub fn resource_name(&self, by_node: bool) -> Result<ResourceName> {
        static COUNTER: AtomicU64 = AtomicU64::new(0);
        let text = |name: &str| if self.contains(name) { self.string(name) } else { Ok("".into()) };
        let (container, shared) = (text("container")?, text("shared_name")?);
        ensure!(
            !shared.starts_with('_'),
            InvalidArgument,
            "shared_name cannot start with '_': {shared}"
        );
        let container =
            if container.is_empty() { self.node.default_container.clone() } else { container };
        let is_private = shared.is_empty() && !by_node;
        let name = match shared {
            s if !s.is_empty() => s,
            _ if by_node => self.node.name.clone(),
            _ => format!("_{}_{}", COUNTER.fetch_add(1, Ordering::Relaxed), self.node.name),
        };
        Ok(ResourceName { container, name, is_private })
    }
}

/// Where a node's resource is kept.
#[derive(Clone, Debug)]
pub struct ResourceName {
    /// The container.
    pub container: String,
    /// The name in the container.
    pub name: String,
    /// No other kernel can name it, so it is dropped with its kernel.
    pub is_private: bool,
}

/// A function that an op calls.
pub struct FunctionHandle {
    func: FuncRef,
    functions: Arc<dyn FunctionInstantiator>,
    ready: OnceLock<Arc<dyn InstantiatedFunction>>,
}

impl FunctionHandle {
    /// The name of the function.
    pub fn name(&self) -> &str {
        &self.func.name
    }

    /// The function, instantiated on first use.
    pub fn get(&self) -> Result<Arc<dyn InstantiatedFunction>> {
        if let Some(ready) = self.ready.get() {
            return Ok(ready.clone());
        }
        let made = self.functions.instantiate(&self.func)?;
        Ok(self.ready.get_or_init(|| made).clone())
    }

    /// Whether vectors can be its arguments in place of scalars.
    pub fn is_elementwise(&self) -> bool {
        self.functions.is_elementwise(&self.func)
    }

    /// A new instance of the function, with its own state.
    pub fn apart(&self) -> Result<Arc<dyn InstantiatedFunction>> {
        self.functions.instantiate_apart(&self.func)
    }
}

/// Knows no functions. For kernels made outside a graph.
pub struct NoFunctions;

impl FunctionInstantiator for NoFunctions {
    fn instantiate(&self, func: &FuncRef) -> Result<Arc<dyn InstantiatedFunction>> {
        Err(err!(NotFound, "function '{}' is not defined", func.name))
    }
}
