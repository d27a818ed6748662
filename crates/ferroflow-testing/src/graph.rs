//! Builds graphs for tests, node by node.

use ferroflow_core::{DType, Tensor};
use ferroflow_graph::{
    AttrValue, Attrs, FuncRef, FunctionDef, GraphDef, NodeDef, OpDef, signature,
};
use std::collections::BTreeMap;
use std::sync::Arc;

/// An empty graph:
///
/// ```
/// use ferroflow_testing::graph;
/// let def = graph().constant("x", 1).op("y", "Identity", &["x"]).t().build();
/// assert_eq!(def.nodes[1].inputs, ["x"]);
/// ```
pub fn graph() -> GraphBuilder {
    GraphBuilder { def: GraphDef::default(), dtype: DType::Int32 }
}

/// A graph under construction. Methods that set a property apply to the last node.
pub struct GraphBuilder {
    def: GraphDef,
    dtype: DType,
}

/// A scalar or a tensor, from which a constant can be made.
pub struct Literal(pub Tensor);

impl From<Tensor> for Literal {
    fn from(t: Tensor) -> Literal {
        Literal(t)
    }
}

macro_rules! literals {
    ($($t:ty),*) => {$(
        impl From<$t> for Literal {
            fn from(x: $t) -> Literal {
                Literal(Tensor::scalar(x))
            }
        }
    )*};
}
literals!(i32, i64, f32, f64, bool);

impl GraphBuilder {
    /// Adds a node. Inputs are written as in a GraphDef: `x`, `x:1`, `^x`.
    pub fn op(mut self, name: impl Into<String>, op: &str, inputs: &[&str]) -> Self {
        self.def.nodes.push(NodeDef {
            name: name.into(),
            op: op.to_string(),
            inputs: inputs.iter().map(|s| s.to_string()).collect(),
            ..NodeDef::default()
        });
        self
    }

    /// Sets an attribute of the last node.
    pub fn attr(mut self, name: &str, value: impl Into<AttrValue>) -> Self {
        self.last().attrs.set(name, value);
        self
    }

    /// Sets the attribute `T` of the last node to the current dtype: int32, unless [`Self::dtype`]
    /// was called.
    pub fn t(self) -> Self {
        let dtype = self.dtype;
        self.attr("T", dtype)
    }

    /// Sets the dtype for the following nodes.
    pub fn dtype(mut self, dtype: DType) -> Self {
        self.dtype = dtype;
        self
    }

    /// Requests a device for the last node.
    pub fn device(mut self, device: &str) -> Self {
        self.last().device = device.to_string();
        self
    }

    /// Adds inputs to an existing node.
    pub fn more_inputs(mut self, node: &str, inputs: &[&str]) -> Self {
        let found = self.def.nodes.iter_mut().find(|n| n.name == node);
        let found = found.unwrap_or_else(|| panic!("there is no node {node:?} in this graph"));
        found.inputs.extend(inputs.iter().map(|s| s.to_string()));
        self
    }

    /// Adds a constant.
    pub fn constant(self, name: impl Into<String>, value: impl Into<Literal>) -> Self {
        let value = value.into().0;
        let dtype = value.dtype();
        self.op(name, "Const", &[]).attr("dtype", dtype).attr("value", value)
    }

    /// Adds a constant that runs after `control`.
    pub fn constant_after(self, name: &str, control: &str, value: impl Into<Literal>) -> Self {
        let value = value.into().0;
        let dtype = value.dtype();
        self.op(name, "Const", &[control]).attr("dtype", dtype).attr("value", value)
    }

    /// Adds a placeholder of the current dtype.
    pub fn placeholder(self, name: &str) -> Self {
        let dtype = self.dtype;
        self.op(name, "Placeholder", &[]).attr("dtype", dtype)
    }

    /// Adds a Switch.
    pub fn switch(self, name: &str, data: &str, pred: &str) -> Self {
        self.op(name, "Switch", &[data, pred]).t()
    }

    /// Adds a Merge.
    pub fn merge(self, name: &str, inputs: &[&str]) -> Self {
        let data = inputs.iter().filter(|i| !i.starts_with('^')).count() as i64;
        self.op(name, "Merge", inputs).t().attr("N", data)
    }

    /// Adds an Enter into `frame`.
    pub fn enter(self, name: &str, data: &str, frame: &str, parallel: i64) -> Self {
        self.op(name, "Enter", &[data])
            .t()
            .attr("frame_name", frame)
            .attr("parallel_iterations", parallel)
    }

    /// Adds an Enter for a loop invariant.
    pub fn enter_constant(self, name: &str, data: &str, frame: &str, parallel: i64) -> Self {
        self.enter(name, data, frame, parallel).attr("is_constant", true)
    }

    /// Adds an Exit.
    pub fn exit(self, name: &str, data: &str) -> Self {
        self.op(name, "Exit", &[data]).t()
    }

    /// Adds a NextIteration.
    pub fn next_iteration(self, name: &str, data: &str) -> Self {
        self.op(name, "NextIteration", &[data]).t()
    }

    /// Applies `more`, for parts of a graph that repeat.
    pub fn with(self, more: impl FnOnce(Self) -> Self) -> Self {
        more(self)
    }

    /// Adds a function to the library.
    pub fn function(mut self, function: FunctionDef) -> Self {
        self.def.functions.push(Arc::new(function));
        self
    }

    /// The finished graph.
    pub fn build(self) -> GraphDef {
        self.def
    }

    fn last(&mut self) -> &mut NodeDef {
        self.def.nodes.last_mut().expect("a node is added before its properties are set")
    }
}

/// A function with the body `body`, in which inputs are written as `argument` or `node:output:k`.
/// Arguments and results use TensorFlow's notation, such as `x: int32`. `ret` maps each result to a
/// tensor of the body.
pub fn function(
    name: &str,
    args: &[&str],
    results: &[&str],
    ret: &[(&str, &str)],
    body: GraphBuilder,
) -> FunctionDef {
    let arg = |text: &&str| signature::parse_arg(text).expect("an argument of a test's function");
    let mut signature = OpDef::named(name);
    signature.inputs = args.iter().map(arg).collect();
    signature.outputs = results.iter().map(arg).collect();
    FunctionDef {
        signature,
        nodes: body.def.nodes,
        ret: ret.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect(),
        control_ret: BTreeMap::new(),
        attrs: Attrs::new(),
        arg_attrs: BTreeMap::new(),
        resource_arg_ids: BTreeMap::new(),
        control_outputs: Vec::new(),
    }
}

/// An attribute that refers to a function.
pub fn func(name: &str) -> AttrValue {
    AttrValue::Func(FuncRef { name: name.to_string(), attrs: Attrs::new() })
}
