//! Graphs for tests, written down node by node.

use ferroflow_core::{DType, Tensor};
use ferroflow_graph::{
    AttrValue, Attrs, FuncRef, FunctionDef, GraphDef, NodeDef, OpDef, signature,
};
use std::collections::BTreeMap;
use std::sync::Arc;

/// An empty graph to add to:
///
/// ```
/// use ferroflow_testing::graph;
/// let def = graph().constant("x", 1).op("y", "Identity", &["x"]).t().build();
/// assert_eq!(def.nodes[1].inputs, ["x"]);
/// ```
pub fn graph() -> GraphBuilder {
    GraphBuilder { def: GraphDef::default(), dtype: DType::Int32 }
}

/// A graph in the making. Methods that set something of a node mean the one added last.
pub struct GraphBuilder {
    def: GraphDef,
    dtype: DType,
}

/// A scalar or a tensor: what a constant can be made of.
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

    /// Sets the last node's attribute `T` to the dtype in force: int32 unless [`Self::dtype`] says
    /// otherwise.
    pub fn t(self) -> Self {
        let dtype = self.dtype;
        self.attr("T", dtype)
    }

    /// The dtype that nodes get from here on where they need one.
    pub fn dtype(mut self, dtype: DType) -> Self {
        self.dtype = dtype;
        self
    }

    /// Asks for a device for the last node.
    pub fn device(mut self, device: &str) -> Self {
        self.last().device = device.to_string();
        self
    }

    /// Adds inputs to a node that is there already.
    pub fn more_inputs(mut self, node: &str, inputs: &[&str]) -> Self {
        let found = self.def.nodes.iter_mut().find(|n| n.name == node);
        let found = found.unwrap_or_else(|| panic!("no node {node:?} in this graph"));
        found.inputs.extend(inputs.iter().map(|s| s.to_string()));
        self
    }

    pub fn constant(self, name: impl Into<String>, value: impl Into<Literal>) -> Self {
        let value = value.into().0;
        let dtype = value.dtype();
        self.op(name, "Const", &[]).attr("dtype", dtype).attr("value", value)
    }

    /// A constant that runs after `control`.
    pub fn constant_after(self, name: &str, control: &str, value: impl Into<Literal>) -> Self {
        let value = value.into().0;
        let dtype = value.dtype();
        self.op(name, "Const", &[control]).attr("dtype", dtype).attr("value", value)
    }

    /// A placeholder of the dtype in force.
    pub fn placeholder(self, name: &str) -> Self {
        let dtype = self.dtype;
        self.op(name, "Placeholder", &[]).attr("dtype", dtype)
    }

    pub fn switch(self, name: &str, data: &str, pred: &str) -> Self {
        self.op(name, "Switch", &[data, pred]).t()
    }

    pub fn merge(self, name: &str, inputs: &[&str]) -> Self {
        let data = inputs.iter().filter(|i| !i.starts_with('^')).count() as i64;
        self.op(name, "Merge", inputs).t().attr("N", data)
    }

    pub fn enter(self, name: &str, data: &str, frame: &str, parallel: i64) -> Self {
        self.op(name, "Enter", &[data])
            .t()
            .attr("frame_name", frame)
            .attr("parallel_iterations", parallel)
    }

    /// A loop invariant.
    pub fn enter_constant(self, name: &str, data: &str, frame: &str, parallel: i64) -> Self {
        self.enter(name, data, frame, parallel).attr("is_constant", true)
    }

    pub fn exit(self, name: &str, data: &str) -> Self {
        self.op(name, "Exit", &[data]).t()
    }

    pub fn next_iteration(self, name: &str, data: &str) -> Self {
        self.op(name, "NextIteration", &[data]).t()
    }

    /// Adds what `more` adds: for pieces of a graph that repeat.
    pub fn with(self, more: impl FnOnce(Self) -> Self) -> Self {
        more(self)
    }

    pub fn function(mut self, function: FunctionDef) -> Self {
        self.def.functions.push(Arc::new(function));
        self
    }

    pub fn build(self) -> GraphDef {
        self.def
    }

    fn last(&mut self) -> &mut NodeDef {
        self.def.nodes.last_mut().expect("a node was added before something of it is set")
    }
}

/// A function whose body is `body`; there inputs are written `argument` or `node:output:k`.
/// Arguments and results are in TensorFlow's notation, such as `x: int32`; `ret` says which tensor
/// of the body each result is.
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

/// An attribute that names a function.
pub fn func(name: &str) -> AttrValue {
    AttrValue::Func(FuncRef { name: name.to_string(), attrs: Attrs::new() })
}
