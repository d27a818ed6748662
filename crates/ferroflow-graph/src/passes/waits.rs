//! The unbounded waits of each node of a step: the earlier nodes that may take any time, because
//! they depend on another task or another step.
//!
//! A pass must not make a node wait for one that may never finish: the error of the node could be
//! what ends the step.

use super::order::topological_order;
use super::sets::{NOTHING, Sets, UNKNOWN};
use crate::graph::{GraphIr, Node, NodeId};

/// An attribute of a Recv whose value always arrives: the sent value depends on no node that may
/// wait.
pub(super) const PROMPT: &str = "_prompt";

/// For each node, the set of nodes that may wait among itself and the nodes it depends on.
pub(crate) struct Waits {
    of: Vec<u32>,
    sets: Sets,
}

impl Waits {
    /// What nodes wait for, but for receives whose values come without a wait.
    pub fn of(graph: &GraphIr) -> Waits {
        Waits::for_those(graph, |node| {
            node.op.may_wait && !node.attrs.bool(PROMPT).unwrap_or(false)
        })
    }

    /// What nodes wait for, all receives included.
    pub fn of_all(graph: &GraphIr) -> Waits {
        Waits::for_those(graph, |node| node.op.may_wait)
    }

    fn for_those(graph: &GraphIr, may_wait: impl Fn(&Node) -> bool) -> Waits {
        let mut of = vec![NOTHING; graph.len()];
        let mut sets = Sets::default();
        let order = topological_order(graph);
        // Repeat for loops until nothing changes.
        let mut is_new = graph.iter().any(|(_, n)| may_wait(n));
        while is_new {
            is_new = false;
            for &id in &order {
                let node = graph.node(id);
                let sources =
                    node.inputs.iter().map(|e| e.node).chain(node.controls.iter().copied());
                let mut set = sources.fold(of[id.index()], |set, s| sets.union(set, of[s.index()]));
                if may_wait(node) {
                    let own = sets.number(vec![id.0]);
                    set = sets.union(set, own);
                }
                is_new |= of[id.index()] != set;
                of[id.index()] = set;
            }
        }
        Waits { of, sets }
    }

    /// Whether a node depends on no node that may wait.
    pub fn is_prompt(&self, id: NodeId) -> bool {
        self.of[id.index()] == NOTHING
    }

    /// Whether node `a` waits for nothing that `b` does not wait for.
    pub fn includes(&self, b: NodeId, a: NodeId) -> bool {
        self.sets.is_subset(self.of[a.index()], self.of[b.index()])
    }

    /// Whether two nodes have the same set.
    pub fn are_alike(&self, a: NodeId, b: NodeId) -> bool {
        let (a, b) = (self.of[a.index()], self.of[b.index()]);
        a == b && a != UNKNOWN
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attr::Attrs;
    use crate::catalog::Catalog;
    use crate::def::{GraphDef, NodeDef};
    use crate::op_def::ControlFlow;

    fn catalog() -> Catalog {
        let mut c = Catalog::new();
        c.op("Const").output("y: float");
        c.op("Take").output("y: float").waits();
        c.op("Add").input("x: float").input("y: float").output("z: float");
        for (op, which) in [
            ("Enter", ControlFlow::Enter),
            ("NextIteration", ControlFlow::NextIteration),
            ("Exit", ControlFlow::Exit),
        ] {
            c.op(op).input("x: float").output("y: float").control_flow(which);
        }
        c.op("Merge")
            .input("x: float")
            .input("y: float")
            .output("z: float")
            .control_flow(ControlFlow::Merge);
        c
    }

    fn graph(lines: &[(&str, &str, &[&str])]) -> GraphIr {
        let node = |&(name, op, inputs): &(&str, &str, &[&str])| NodeDef {
            name: name.into(),
            op: op.into(),
            inputs: inputs.iter().map(|s| s.to_string()).collect(),
            attrs: match name.starts_with("prompt") {
                true => Attrs::new().with(PROMPT, true),
                false => Attrs::new(),
            },
            ..NodeDef::default()
        };
        let def = GraphDef { nodes: lines.iter().map(node).collect(), ..GraphDef::default() };
        GraphIr::from_def(&def, &catalog()).unwrap()
    }

    #[test]
    fn waits_propagate_over_data_and_control_edges() {
        let g = graph(&[
            ("c", "Const", &[]),
            ("t", "Take", &[]),
            ("u", "Take", &[]),
            ("prompt", "Take", &[]),
            ("a", "Add", &["c", "prompt"]),
            ("b", "Add", &["a", "t"]),
            ("d", "Add", &["c", "c", "^t"]),
            ("e", "Add", &["b", "u"]),
            ("f", "Add", &["u", "d"]),
        ]);
        let waits = Waits::of(&g);
        let id = |name: &str| g.find(name).unwrap();
        assert!(waits.is_prompt(id("a")) && waits.are_alike(id("a"), id("c")));
        assert!(waits.are_alike(id("b"), id("d")) && waits.are_alike(id("b"), id("t")));
        assert!(waits.are_alike(id("e"), id("f")));
        assert!(!waits.are_alike(id("e"), id("b")) && !waits.is_prompt(id("e")));
    }

    #[test]
    fn loop_variables_have_the_waits_of_their_loop() {
        let g = graph(&[
            ("c", "Const", &[]),
            ("enter", "Enter", &["c"]),
            ("merge", "Merge", &["enter", "next"]),
            ("t", "Take", &[]),
            ("sum", "Add", &["merge", "t"]),
            ("next", "NextIteration", &["sum"]),
            ("exit", "Exit", &["merge"]),
        ]);
        let waits = Waits::of(&g);
        let id = |name: &str| g.find(name).unwrap();
        assert!(waits.is_prompt(id("enter")));
        assert!(waits.are_alike(id("merge"), id("t")) && waits.are_alike(id("exit"), id("t")));
    }
}
