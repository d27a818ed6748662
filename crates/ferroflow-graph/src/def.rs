//! Graphs whose nodes refer to each other by name. [`crate::wire`] reads and writes them;
//! [`crate::GraphIr`] checks and resolves them.

use crate::attr::Attrs;
use crate::op_def::OpDef;
use bytes::Bytes;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A graph in TensorFlow's GraphDef form.
#[derive(Clone, Debug, Default)]
pub struct GraphDef {
    /// The nodes.
    pub nodes: Vec<NodeDef>,
    /// The function library.
    pub functions: Vec<Arc<FunctionDef>>,
    /// Function name to the name of its gradient function.
    pub gradients: BTreeMap<String, String>,
    /// The versions of TensorFlow.
    pub versions: Versions,
}

/// The version of TensorFlow that wrote a graph, and the versions that may read it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Versions {
    /// The version that wrote the graph.
    pub producer: i32,
    /// The oldest version that may read it.
    pub min_consumer: i32,
}

impl Default for Versions {
    /// TensorFlow 2.15's.
    fn default() -> Versions {
        Versions { producer: 1645, min_consumer: 0 }
    }
}

/// A node, its inputs by name: `node`, `node:k`, `^node`; within functions also `node:output:k`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NodeDef {
    /// The name, unique in its graph.
    pub name: String,
    /// The name of its op.
    pub op: String,
    /// Its inputs, control inputs last.
    pub inputs: Vec<String>,
    /// The requested device; may be partial or empty.
    pub device: String,
    /// Its attributes.
    pub attrs: Attrs,
    /// The serialized `experimental_type`, kept so that it can be passed on.
    pub full_type: Option<Bytes>,
    /// Names of the nodes that a pass made this one from, for error messages.
    pub original_names: Vec<String>,
}

/// A function: its signature, its body, and the tensors of the body that are its results.
#[derive(Clone, Debug)]
pub struct FunctionDef {
    /// Its name, arguments, results and attributes.
    pub signature: OpDef,
    /// The nodes of its body.
    pub nodes: Vec<NodeDef>,
    /// Output argument to the tensor of the body.
    pub ret: BTreeMap<String, String>,
    /// Control output to the node of the body that must run.
    pub control_ret: BTreeMap<String, String>,
    /// Its annotations.
    pub attrs: Attrs,
    /// Attributes of the arguments, by index.
    pub arg_attrs: BTreeMap<u32, Attrs>,
    /// Which resource arguments are the same resource: argument to id.
    pub resource_arg_ids: BTreeMap<u32, u32>,
    /// Control outputs of the signature, in order.
    pub control_outputs: Vec<String>,
}

impl FunctionDef {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.signature.name
    }

    /// Whether both have the same signature and the same nodes. Attributes are not compared,
    /// because one that holds a NaN would differ from itself.
    pub(crate) fn is_like(&self, other: &FunctionDef) -> bool {
        let (a, b) = (&self.signature, &other.signature);
        let same_node = |(x, y): (&NodeDef, &NodeDef)| {
            (&x.name, &x.op, &x.inputs) == (&y.name, &y.op, &y.inputs)
        };
        a.inputs == b.inputs
            && a.outputs == b.outputs
            && self.ret == other.ret
            && self.control_ret == other.control_ret
            && self.nodes.len() == other.nodes.len()
            && self.nodes.iter().zip(&other.nodes).all(same_node)
    }
}
