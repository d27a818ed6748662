//! Which nodes of a step read each variable, and which change it.
//!
//! An `Identity` of a reference variable is an alias of the variable: TensorFlow's shares the
//! variable's storage, so a later update shows through it. It does not count as a read. What
//! computes with an alias reads the variable when it runs.
//!
//! The nodes of v1 loops and conditionals (`Enter`, `Switch`, `Merge` and others) pass on an alias
//! where the difference shows: a later node reads the variable after an update, or is fetched.
//! Elsewhere they read the variable, so that a loop keeps one value while other nodes update the
//! variable.

use super::order::topological_order;
use crate::graph::{Endpoint, GraphIr, Node, NodeId};
use crate::op_def::{ControlFlow, OpRole, PortType};
use ferroflow_core::DType;
use std::collections::{HashMap, HashSet};

/// As many pairs of a variable and a node that comes after its updates are kept.
const MAX_AFTER: usize = 1 << 20;

/// The reads and writes of variables in a graph.
pub struct VariableUses {
    /// The group that a node's output leads to: as a reference, as a handle, or as an alias.
    group_of: Vec<Option<u32>>,
    is_alias: Vec<bool>,
    /// The variables of each group: one, or those between which a `Merge` chooses.
    groups: Vec<Vec<u32>>,
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
        let mut uses = VariableUses {
            group_of: vec![None; graph.len()],
            is_alias: vec![false; graph.len()],
            groups: Vec::new(),
            variables: Vec::new(),
        };
        if !graph.iter().any(|(_, node)| is_source(node)) {
            return uses;
        }
        let order = topological_order(graph);
        uses.find(graph, &order, &HashSet::new());
        let has_flow = |(_, node): (NodeId, &Node)| node.op.control_flow.is_some();
        if graph.iter().any(has_flow) && uses.has_updated_references(graph) {
            let shown = uses.shown_by_control_flow(graph, &order);
            if !shown.is_empty() {
                uses.find(graph, &order, &shown);
            }
        }
        uses
    }

    /// Whether a node's value is an alias of a variable: reading it is reading the variable.
    pub fn is_alias(&self, id: NodeId) -> bool {
        self.is_alias[id.index()]
    }

    /// Whether a value is an alias of a variable. The index that a `Merge` puts out is none.
    pub fn is_alias_at(&self, graph: &GraphIr, e: Endpoint) -> bool {
        let is_merge = graph.node(e.node).op.control_flow == Some(ControlFlow::Merge);
        self.is_alias[e.node.index()] && !(is_merge && e.slot > 0)
    }

    /// Whether node `id` passes its input `i` on as an alias.
    pub fn passes_alias(&self, node: &Node, id: NodeId, i: usize) -> bool {
        let is_passed = match node.op.control_flow {
            Some(ControlFlow::Merge) => true,
            _ => i == 0,
        };
        is_passed && self.is_alias[id.index()]
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
        let mut variables = self.group(self.group_of[source.index()]).iter();
        variables.any(|&v| self.variables[v as usize].writers.contains(&writer))
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

    /// The variables that node `id` is an alias of: more than one where a `Merge` chooses.
    pub(super) fn aliased(&self, id: NodeId) -> &[u32] {
        self.group(self.group_of[id.index()].filter(|_| self.is_alias[id.index()]))
    }

    /// Finds all uses. Control flow passes on aliases of the variables in `shown`.
    fn find(&mut self, graph: &GraphIr, order: &[NodeId], shown: &HashSet<u32>) {
        self.group_of.fill(None);
        self.is_alias.fill(false);
        self.groups.clear();
        self.variables.clear();
        let mut names = HashMap::new();
        for &id in order {
            self.trace(graph, id, &mut names, shown);
        }
        if !shown.is_empty() {
            // Values from the back edge of a loop reach its Merge only after this pass.
            while self.trace_around(graph, order, shown) {}
        }
        for &id in order {
            self.note(graph, id);
        }
    }

    /// Traces the nodes that have led to no variable so far; whether one of them now does.
    fn trace_around(&mut self, graph: &GraphIr, order: &[NodeId], shown: &HashSet<u32>) -> bool {
        let mut has_changed = false;
        for &id in order {
            if self.group_of[id.index()].is_none() && !is_source(graph.node(id)) {
                self.pass_on(graph, id, shown);
                has_changed |= self.group_of[id.index()].is_some();
            }
        }
        has_changed
    }

    fn has_updated_references(&self, graph: &GraphIr) -> bool {
        let is_updated = |variable: u32| !self.variables[variable as usize].writers.is_empty();
        let references = graph.iter().filter(|(_, n)| is_source(n) && n.output_types[0].is_ref);
        let mut groups = references.map(|(id, _)| self.group(self.group_of[id.index()]));
        groups.any(|group| group.iter().any(|&v| is_updated(v)))
    }

    /// The variables whose updates show behind control flow that passes aliases on. A node behind
    /// it follows an update, or its value is fetched and so read at the end of the step.
    fn shown_by_control_flow(&self, graph: &GraphIr, order: &[NodeId]) -> HashSet<u32> {
        let after = self.after_updates(graph);
        let all: HashSet<u32> = (0..self.variables.len() as u32)
            .filter(|&v| !self.variables[v as usize].writers.is_empty())
            .collect();
        let mut passing = VariableUses {
            group_of: self.group_of.clone(),
            is_alias: self.is_alias.clone(),
            groups: Vec::new(),
            variables: Vec::new(),
        };
        passing.find(graph, order, &all);
        let mut shown = HashSet::new();
        for (id, node) in graph.iter() {
            let is_fetch = node.op.role == OpRole::Return;
            if passing.is_alias[id.index()] {
                continue;
            }
            for &e in &node.inputs {
                if !passing.is_alias_at(graph, e) || self.is_alias_at(graph, e) {
                    continue;
                }
                let variables = passing.aliased(e.node).iter();
                shown.extend(variables.filter(|&&v| is_fetch || after.contains(&(v, id))));
            }
        }
        shown
    }

    /// The variables of a group.
    fn group(&self, group: Option<u32>) -> &[u32] {
        group.map_or(&[], |group| &self.groups[group as usize])
    }

    /// Finds out which variable the output of node `id` leads to.
    fn trace(
        &mut self,
        graph: &GraphIr,
        id: NodeId,
        names: &mut HashMap<(String, String), u32>,
        shown: &HashSet<u32>,
    ) {
        let node = graph.node(id);
        if !is_source(node) {
            return self.pass_on(graph, id, shown);
        }
        let next = self.groups.len() as u32;
        let group = match node.op.role {
            OpRole::Variable => *names.entry(variable_name(node)).or_insert(next),
            _ => next,
        };
        if group == next {
            self.groups.push(vec![self.variables.len() as u32]);
            self.variables.push(Uses::default());
        }
        self.group_of[id.index()] = Some(group);
    }

    /// Finds out whether node `id` passes on the variable that its first input leads to.
    fn pass_on(&mut self, graph: &GraphIr, id: NodeId, shown: &HashSet<u32>) {
        let node = graph.node(id);
        let (Some(&from), Some(port), Some(output)) =
            (node.inputs.first(), node.input_types.first(), node.output_types.first())
        else {
            return;
        };
        let is_identity = node.op.role == OpRole::Identity;
        let passes_handle = is_handle(port) && is_handle(output);
        let passes_on = port.is_ref && output.is_ref
            || passes_handle && (is_identity || node.op.control_flow.is_some());
        if passes_on || is_identity && !output.is_ref && self.is_reference(graph, from) {
            self.group_of[id.index()] = self.leads_to(graph, from);
            self.is_alias[id.index()] = !passes_on;
        } else if passes_values(node) && !output.is_ref && !is_handle(output) {
            let mut variables = self.passed_by_control_flow(graph, node);
            variables.retain(|v| shown.contains(v));
            if !variables.is_empty() {
                self.group_of[id.index()] = Some(self.group_with(variables));
                self.is_alias[id.index()] = true;
            }
        }
    }

    /// The variables whose aliases the control flow node `node` takes as data.
    fn passed_by_control_flow(&self, graph: &GraphIr, node: &Node) -> Vec<u32> {
        let data = match node.op.control_flow {
            Some(ControlFlow::Merge) => &node.inputs[..],
            _ => &node.inputs[..1],
        };
        let mut variables: Vec<u32> = Vec::new();
        for &e in data.iter().filter(|e| self.is_reference(graph, **e)) {
            variables.extend(self.group(self.leads_to(graph, e)));
        }
        variables.sort_unstable();
        variables.dedup();
        variables
    }

    fn group_with(&mut self, variables: Vec<u32>) -> u32 {
        let known = self.groups.iter().position(|group| *group == variables);
        known.unwrap_or_else(|| {
            self.groups.push(variables);
            self.groups.len() - 1
        }) as u32
    }

    /// The group of variables that a value leads to.
    fn leads_to(&self, graph: &GraphIr, e: Endpoint) -> Option<u32> {
        let port = graph.type_of(e);
        let leads = port.is_ref || is_handle(&port) || self.is_alias_at(graph, e);
        self.group_of[e.node.index()].filter(|_| leads)
    }

    /// Whether a value is a reference to a variable, or an alias of it.
    fn is_reference(&self, graph: &GraphIr, e: Endpoint) -> bool {
        graph.type_of(e).is_ref || self.is_alias_at(graph, e)
    }

    /// Notes what node `id` does with the variables that its inputs lead to.
    fn note(&mut self, graph: &GraphIr, id: NodeId) {
        let node = graph.node(id);
        for (i, (&e, port)) in node.inputs.iter().zip(&node.input_types).enumerate() {
            let Some(group) = self.leads_to(graph, e) else { continue };
            let access = access(node, port, self.passes_alias(node, id, i));
            for &variable in &self.groups[group as usize] {
                let uses = &mut self.variables[variable as usize];
                let list = match access {
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
}

/// Whether control flow may pass an alias on. A loop reads its condition once in an iteration.
fn passes_values(node: &Node) -> bool {
    node.op.control_flow.is_some_and(|flow| flow != ControlFlow::LoopCond)
}

/// What a node does with a variable.
enum Access {
    None,
    Read,
    Write,
}

/// What `node` does with a variable that it takes through an input of type `port`.
fn access(node: &Node, port: &PortType, passes_alias: bool) -> Access {
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
        _ if passes_alias => Access::None,
        _ => Access::Read,
    }
}

/// Whether a node is the source of a variable. A handle that a function receives is one, too.
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
