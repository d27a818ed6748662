//! The graphs of the steps that faults hit.

use super::cell::Role;
use ferroflow::graph::{AttrValue, GraphDef, NodeDef};
use ferroflow::{DType, PartialShape, Tensor};

/// Nodes of a graph, on the current device.
#[derive(Default)]
pub struct Nodes {
    def: GraphDef,
    device: String,
}

impl Nodes {
    pub fn on(mut self, role: Role) -> Nodes {
        self.device = role.device().into();
        self
    }

    pub fn node(mut self, name: &str, op: &str, inputs: &[&str]) -> Nodes {
        self.def.nodes.push(NodeDef {
            name: name.into(),
            op: op.into(),
            inputs: inputs.iter().map(|i| i.to_string()).collect(),
            device: self.device.clone(),
            ..NodeDef::default()
        });
        self
    }

    pub fn attr(mut self, name: &str, value: impl Into<AttrValue>) -> Nodes {
        self.def.nodes.last_mut().unwrap().attrs.set(name, value);
        self
    }

    /// A node of floats.
    pub fn float(self, name: &str, op: &str, inputs: &[&str]) -> Nodes {
        self.node(name, op, inputs).attr("T", DType::Float)
    }

    pub fn constant(self, name: &str, value: Tensor, inputs: &[&str]) -> Nodes {
        let dtype = value.dtype();
        self.node(name, "Const", inputs).attr("dtype", dtype).attr("value", value)
    }

    /// A counter. `NAME/zero` sets it to 0, `NAME/one` adds 1, `NAME/read` reads it.
    pub fn counter(self, name: &str) -> Nodes {
        let of = |part: &str| format!("{name}/{part}");
        self.node(name, "VarHandleOp", &[])
            .attr("dtype", DType::Float)
            .attr("shape", PartialShape::scalar())
            .attr("shared_name", name)
            .constant(&of("0"), Tensor::scalar(0f32), &[])
            .constant(&of("1"), Tensor::scalar(1f32), &[])
            .node(&of("zero"), "AssignVariableOp", &[name, &of("0")])
            .attr("dtype", DType::Float)
            .node(&of("one"), "AssignAddVariableOp", &[name, &of("1")])
            .attr("dtype", DType::Float)
            .node(&of("read"), "ReadVariableOp", &[name])
            .attr("dtype", DType::Float)
    }

    pub fn graph(self) -> GraphDef {
        self.def
    }
}

/// `sum` on the first of `roles`, which adds one number from each.
pub fn sum_of(roles: &[Role]) -> GraphDef {
    let mut nodes = Nodes::default();
    let names: Vec<String> = roles.iter().map(|r| format!("of_{r:?}")).collect();
    for (role, name) in roles.iter().zip(&names) {
        // Counters are variables, so that no task's part can be folded to a constant.
        let counter = format!("n_{role:?}");
        let (zero, read) = (format!("^{counter}/zero"), format!("{name}/read"));
        nodes = nodes.on(*role).counter(&counter);
        nodes = nodes.node(&read, "ReadVariableOp", &[&counter, &zero]).attr("dtype", DType::Float);
        nodes = nodes.float(name, "Identity", &[&read]);
    }
    let inputs: Vec<&str> = names.iter().map(String::as_str).collect();
    let nodes = nodes.on(roles[0]).float("sum", "AddN", &inputs);
    nodes.attr("N", inputs.len() as i64).graph()
}

/// `wait` counts in `count` on `role`, then takes from an empty queue there. It returns on the
/// master.
pub fn waiting(role: Role) -> GraphDef {
    let types = || vec![DType::Float];
    Nodes::default()
        .on(role)
        .counter("count")
        .node("queue", "FIFOQueueV2", &[])
        .attr("component_types", types())
        .attr("shared_name", "queue")
        .node("take", "QueueDequeueV2", &["queue", "^count/one"])
        .attr("component_types", types())
        .on(Role::Master)
        .float("wait", "Neg", &["take"])
        .graph()
}

/// `wait` sends 4 MB from `role` to `other` and back in a loop, and counts the rounds in `count`.
pub fn transferring(role: Role, other: Role) -> GraphDef {
    let enter = |nodes: Nodes, name: &str, input: &str, dtype: DType, is_constant: bool| {
        nodes
            .node(name, "Enter", &[input])
            .attr("T", dtype)
            .attr("frame_name", "loop")
            .attr("is_constant", is_constant)
            .attr("parallel_iterations", 4i64)
    };
    let nodes = Nodes::default()
        .on(role)
        .counter("count")
        .constant("start", Tensor::scalar(0f32), &[])
        .constant("limit", Tensor::scalar(1e30f32), &[])
        .constant("size", Tensor::vector(&[1i32 << 20]), &[])
        .node("much", "Fill", &["size", "start"])
        .attr("T", DType::Float)
        .attr("index_type", DType::Int32);
    let nodes = enter(nodes, "i_enter", "start", DType::Float, false);
    let nodes = enter(nodes, "x_enter", "much", DType::Float, false);
    let nodes = enter(nodes, "to", "limit", DType::Float, true);
    let nodes = enter(nodes, "counter", "count", DType::Resource, true);
    nodes
        .float("i", "Merge", &["i_enter", "i_next"])
        .attr("N", 2i64)
        .float("x", "Merge", &["x_enter", "x_next"])
        .attr("N", 2i64)
        .float("go_on", "Less", &["i", "to"])
        .node("cond", "LoopCond", &["go_on"])
        .float("i_switch", "Switch", &["i", "cond"])
        .float("x_switch", "Switch", &["x", "cond"])
        .float("i_body", "Identity", &["i_switch:1"])
        .float("x_body", "Identity", &["x_switch:1"])
        .constant("by", Tensor::scalar(1f32), &["^i_body"])
        .node("bump", "AssignAddVariableOp", &["counter", "by"])
        .attr("dtype", DType::Float)
        .float("i_more", "AddV2", &["i_body", "by"])
        .on(other)
        .constant("more", Tensor::scalar(1f32), &["^x_body"])
        .float("x_there", "AddV2", &["x_body", "more"])
        .on(role)
        .node("i_after", "Identity", &["i_more", "^bump", "^x_back"])
        .attr("T", DType::Float)
        .float("x_back", "Identity", &["x_there"])
        .float("i_next", "NextIteration", &["i_after"])
        .float("x_next", "NextIteration", &["x_back"])
        .float("wait", "Exit", &["i_switch"])
        .graph()
}
