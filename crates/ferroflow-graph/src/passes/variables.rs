//! Which nodes of a step read each variable, and which change it.
//!
//! An `Identity` of a reference variable is an alias of the variable: TensorFlow's shares the
//! variable's storage, so a later update shows through it. It does not count as a read. What
//! computes with an alias reads the variable when it runs.

use super::order::topological_order;
use crate::graph::{Endpoint, GraphIr, Node, NodeId};
use crate::op_def::{OpRole, PortType};
use ferroflow_core::DType;
use std::collections::{HashMap, HashSet};

/// As many pairs of a variable and a node that comes after its updates are kept.
const MAX_AFTER: usize = 1 << 20;

/// The reads and writes of variables in a graph.
pub struct VariableUses {
    /// The variable that a node's output leads to: as a reference, as a handle, or as an alias.
    variable_of: Vec<Option<u32>>,
    is_alias: Vec<bool>,
    variables: Vec<Uses>,
}

/// The nodes that use one variable.
#[derive(Default)]
pub(super) struct Uses {
    pub readers: Vec<NodeId>,
    pub writers: Vec<NodeId>,
}

impl VariableUses {
    /// Finds the reads and writes of all variables of `graph`.
    pub fn of(graph: &GraphIr) -> VariableUses {
        let none = VariableUses {
            variable_of: vec![None; graph.len()],
            is_alias: vec![false; graph.len()],
            variables: Vec::new(),
        };
        if !graph.iter().any(|(_, node)| is_source(node)) {
            return none;
        }
        let mut uses = none;
        let order = topological_order(graph);
        let mut names = HashMap::new();
        for &id in &order {
            uses.trace(graph, id, &mut names);
        }
        for &id in &order {
            uses.note(graph, id);
        }
        uses
    }

    /// Whether a node's value is an alias of a variable: reading it is reading the variable.
    pub fn is_alias(&self, id: NodeId) -> bool {
        self.is_alias[id.index()]
    }

    /// Whether a node computes with the value of a variable that it takes through a reference.
    pub fn reads_alias(&self, graph: &GraphIr, id: NodeId) -> bool {
        let node = graph.node(id);
        let mut inputs = node.inputs.iter().zip(&node.input_types);
        inputs.any(|(e, port)| !port.is_ref && self.is_reference(graph, *e))
    }

    /// The uses of each variable that some nodes read and others change.
    pub(super) fn contended(&self) -> impl Iterator<Item = (usize, &Uses)> {
        let is_contended = |uses: &Uses| !uses.readers.is_empty() && !uses.writers.is_empty();
        self.variables.iter().enumerate().filter(move |(_, uses)| is_contended(uses))
    }

    pub(super) fn writers(&self) -> impl Iterator<Item = NodeId> {
        self.variables.iter().flat_map(|uses| uses.writers.iter().copied())
    }

    /// Whether the value of `source` leads to a variable that `writer` changes.
    pub(super) fn is_same_variable(&self, source: NodeId, writer: NodeId) -> bool {
        let variable = self.variable_of[source.index()];
        variable.is_some_and(|v| self.variables[v as usize].writers.contains(&writer))
    }

    /// Pairs of a variable and a node that comes after an update of it; all, unless there are very
    /// many.
    pub(super) fn after_updates(&self, graph: &GraphIr) -> HashSet<(u32, NodeId)> {
        let mut after = HashSet::new();
        if self.writers().next().is_none() {
            return after;
        }
        let consumers = graph.consumers();
        for (variable, uses) in self.variables.iter().enumerate() {
            let mut stack = uses.writers.clone();
            while let Some(id) = stack.pop() {
                for (consumer, _) in &consumers[id.index()] {
                    if after.insert((variable as u32, *consumer)) {
                        stack.push(*consumer);
                    }
                }
                if after.len() > MAX_AFTER {
                    return after;
                }
            }
        }
        after
    }

    /// The variable that node `id` is an alias of.
    pub(super) fn aliased(&self, id: NodeId) -> Option<u32> {
        self.variable_of[id.index()].filter(|_| self.is_alias[id.index()])
    }

    /// Finds out which variable the output of node `id` leads to.
    fn trace(&mut self, graph: &GraphIr, id: NodeId, names: &mut HashMap<(String, String), u32>) {
        let node = graph.node(id);
        if is_source(node) {
            let next = self.variables.len() as u32;
            let number = match node.op.role {
                OpRole::Variable => *names.entry(variable_name(node)).or_insert(next),
                _ => next,
            };
            if number == next {
                self.variables.push(Uses::default());
            }
            self.variable_of[id.index()] = Some(number);
            return;
        }
        let (Some(&from), Some(port), Some(output)) =
            (node.inputs.first(), node.input_types.first(), node.output_types.first())
        else {
            return;
        };
        let is_identity = node.op.role == OpRole::Identity;
        let passes_handle = is_handle(port) && is_handle(output);
        let passes_on = port.is_ref && output.is_ref
            || passes_handle && (is_identity || node.op.control_flow.is_some());
        let is_alias = is_identity && !output.is_ref && self.is_reference(graph, from);
        if passes_on || is_alias {
            self.variable_of[id.index()] = self.leads_to(graph, from);
            self.is_alias[id.index()] = is_alias;
        }
    }

    /// The variable that a value leads to.
    fn leads_to(&self, graph: &GraphIr, e: Endpoint) -> Option<u32> {
        let port = graph.type_of(e);
        let leads = port.is_ref || is_handle(&port) || self.is_alias[e.node.index()];
        self.variable_of[e.node.index()].filter(|_| leads)
    }

    /// Whether a value is a reference to a variable, or an alias of it.
    fn is_reference(&self, graph: &GraphIr, e: Endpoint) -> bool {
        graph.type_of(e).is_ref || self.is_alias[e.node.index()]
    }

    /// Notes what node `id` does with the variables that its inputs lead to.
    fn note(&mut self, graph: &GraphIr, id: NodeId) {
        let node = graph.node(id);
        for (&e, port) in node.inputs.iter().zip(&node.input_types) {
            let Some(variable) = self.leads_to(graph, e) else { continue };
            let uses = &mut self.variables[variable as usize];
            let list = match access(node, port, self.is_alias[id.index()]) {
                Access::None => continue,
                Access::Read => &mut uses.readers,
                Access::Write => &mut uses.writers,
            };
            if list.last() != Some(&id) {
                list.push(id);
            }
        }
    }
}

/// What a node does with a variable.
enum Access {
    None,
    Read,
    Write,
}

/// What `node` does with a variable that it takes through an input of type `port`.
fn access(node: &Node, port: &PortType, is_alias: bool) -> Access {
    let op = &node.op;
    if port.is_ref {
        return match op.control_flow {
            Some(_) => Access::None,
            None if op.reads_variables => Access::Read,
            None => Access::Write,
        };
    }
    if is_handle(port) {
        return match op.role {
            OpRole::Plain if op.reads_variables => Access::Read,
            // What a function does with a handle is not known here.
            OpRole::Plain if op.is_stateful || op.calls.is_some() => Access::Write,
            _ => Access::None,
        };
    }
    match op.role {
        // The value of a result is that of the end of the step.
        OpRole::Return => Access::None,
        _ if is_alias => Access::None,
        _ => Access::Read,
    }
}

/// Whether a node stands for a variable. A handle that a function is given is one, too.
fn is_source(node: &Node) -> bool {
    match (node.op.role, &node.output_types[..]) {
        (OpRole::Variable, [_]) => true,
        (OpRole::Argument, [port]) => is_handle(port),
        _ => false,
    }
}

fn is_handle(port: &PortType) -> bool {
    port.dtype == DType::Resource && !port.is_ref
}

/// The container and name of a variable: nodes that agree on both stand for the same one.
fn variable_name(node: &Node) -> (String, String) {
    let text = |attr: &str| node.attrs.string(attr).unwrap_or_default();
    let shared = text("shared_name");
    (text("container"), if shared.is_empty() { node.name.clone() } else { shared })
}
