use super::*;
use crate::attr::Attrs;
use crate::catalog::Catalog;
use crate::def::{GraphDef, NodeDef};
use crate::op_def::OpRole;

fn catalog() -> Catalog {
    let mut c = Catalog::new();
    c.op("Variable").output("y: Ref(float)").role(OpRole::Variable).stateful();
    c.op("Handle").output("y: resource").role(OpRole::Variable).stateful();
    c.op("Const").output("y: float");
    c.op("Take").output("y: float").waits();
    c.op("Recv").output("y: float").role(OpRole::Recv).waits();
    c.op("Less").input("x: float").output("y: bool");
    c.op("Identity").input("x: float").output("y: float").role(OpRole::Identity);
    c.op("Add").input("x: float").input("y: float").output("z: float");
    c.op("Assign").input("v: Ref(float)").input("x: float").output("w: Ref(float)");
    c.op("Read").input("v: resource").output("y: float").reads_variables().stateful();
    c.op("Write").input("v: resource").input("x: float").stateful();
    let flow = |c: &mut Catalog, op: &str, which: ControlFlow| {
        c.op(op).input("x: float").output("y: float").control_flow(which);
    };
    flow(&mut c, "Enter", ControlFlow::Enter);
    flow(&mut c, "Exit", ControlFlow::Exit);
    c.op("ControlTrigger").control_flow(ControlFlow::ControlTrigger);
    c.op("Switch")
        .input("x: float")
        .input("p: bool")
        .output("f: float")
        .output("t: float")
        .control_flow(ControlFlow::Switch);
    c.op("Merge")
        .input("x: float")
        .input("y: float")
        .output("z: float")
        .output("i: int32")
        .control_flow(ControlFlow::Merge);
    c
}

/// A graph of lines such as `sum = Add v/read one ^other`.
fn graph(lines: &[&str]) -> GraphIr {
    let node = |line: &&str| {
        let words: Vec<&str> = line.split(' ').collect();
        NodeDef {
            name: words[0].into(),
            op: words[2].into(),
            inputs: words[3..].iter().map(|s| s.to_string()).collect(),
            attrs: Attrs::new(),
            ..NodeDef::default()
        }
    };
    let def = GraphDef { nodes: lines.iter().map(node).collect(), ..GraphDef::default() };
    GraphIr::from_def(&def, &catalog()).unwrap()
}

/// The pairs that are found in a graph, as `reader > writer`.
fn pairs(lines: &[&str]) -> Vec<String> {
    let graph = graph(lines);
    let name = |id: NodeId| graph.node(id).name.as_str();
    let found = reads_before_writes(&graph, &VariableUses::of(&graph));
    let mut found: Vec<String> =
        found.iter().map(|(r, w)| format!("{} > {}", name(*r), name(*w))).collect();
    found.sort();
    found
}

#[test]
fn an_update_waits_for_what_computes_with_the_variable() {
    let found = pairs(&[
        "v = Variable",
        "one = Const",
        "v/read = Identity v",
        "again = Identity v/read",
        "sum = Add again one",
        "direct = Add v one",
        "set = Assign v one",
    ]);
    assert_eq!(found, ["direct > set", "sum > set"], "an alias alone is not a read");
}

#[test]
fn a_read_that_comes_after_an_update_stays_there() {
    let found = pairs(&[
        "v = Variable",
        "one = Const",
        "set = Assign v one",
        "of_new = Add set one",
        "v/read = Identity v",
        "told = Add v/read one ^set",
        "then = Assign v told",
    ]);
    assert_eq!(found, ["of_new > then"]);
}

#[test]
fn handles_are_followed_to_their_variable() {
    let found = pairs(&[
        "v = Handle",
        "w = Handle",
        "one = Const",
        "read = Read v",
        "other = Read w",
        "set = Write v one",
    ]);
    assert_eq!(found, ["read > set"]);
}

#[test]
fn updates_that_read_each_others_variables_do_not_wait_for_each_other() {
    let found =
        pairs(&["a = Variable", "b = Variable", "set_a = Assign a b", "set_b = Assign b a"]);
    assert_eq!(found.len(), 1, "{found:?}");
}

#[test]
fn values_are_exchanged_when_both_are_read_first() {
    let found = pairs(&[
        "a = Variable",
        "b = Variable",
        "zero = Const",
        "of_a = Add a zero",
        "of_b = Add b zero",
        "set_a = Assign a of_b",
        "set_b = Assign b of_a",
    ]);
    assert_eq!(found, ["of_a > set_a", "of_b > set_b"]);
}

#[test]
fn a_reader_after_one_update_precedes_another() {
    // `sum` needs `set_b`; the order in which the updates are written does not matter.
    let found = pairs(&[
        "a = Variable",
        "b = Variable",
        "one = Const",
        "set_a = Assign a one",
        "set_b = Assign b one",
        "sum = Add a set_b",
    ]);
    assert_eq!(found, ["sum > set_a"]);
}

#[test]
fn an_update_does_not_wait_for_what_it_never_waited_for() {
    let found = pairs(&[
        "v = Variable",
        "one = Const",
        "taken = Take",
        "sum = Add v taken",
        "set = Assign v one",
        "late = Assign v taken",
    ]);
    assert_eq!(found, ["sum > late"]);
    let found =
        pairs(&["v = Variable", "one = Const", "x = Recv", "sum = Add v x", "set = Assign v one"]);
    assert!(found.is_empty(), "what is received may depend on the update: {found:?}");
}

#[test]
fn readers_on_branches_are_readers() {
    let found = pairs(&[
        "v = Variable",
        "one = Const",
        "p = Less one",
        "s = Switch one p",
        "in_true = Add v s:1",
        "in_false = Add v s",
        "merged = Merge in_false in_true",
        "set = Assign v one",
        "set_in_true = Assign v s:1",
    ]);
    let expected =
        ["in_false > set", "in_false > set_in_true", "in_true > set", "in_true > set_in_true"];
    assert_eq!(found, expected);
}

/// The graph of lines whose names start with the task that they are on, after it was ordered; as
/// `writer < readers`.
fn across_tasks(lines: &[&str]) -> Vec<String> {
    let mut graph = graph(lines);
    let task = |name: &str| u32::from(name.starts_with('b'));
    let mut task_of: Vec<u32> = graph.iter().map(|(_, n)| task(&n.name)).collect();
    order_across_tasks(&mut graph, &mut task_of, &catalog()).unwrap();
    let mut found = Vec::new();
    for (id, node) in graph.iter() {
        assert_eq!(task_of[id.index()], task(&node.name), "{}", node.name);
        let is_trigger = |c: &&NodeId| graph.node(**c).op.name == "ControlTrigger";
        for trigger in node.controls.iter().filter(is_trigger) {
            let readers = graph.node(*trigger).controls.iter().map(|r| &*graph.node(*r).name);
            found.push(format!("{} < {}", node.name, readers.collect::<Vec<_>>().join(" ")));
        }
    }
    found
}

#[test]
fn a_reader_that_needs_another_task_is_ordered_with_the_whole_graph() {
    let found = across_tasks(&[
        "a_v = Variable",
        "b_one = Const",
        "a_sum = Add a_v b_one",
        "a_alone = Add a_v a_v",
        "a_late = Identity a_v ^b_one",
        "b_taken = Add a_late a_late",
        "a_set = Assign a_v b_one",
    ]);
    assert_eq!(found, ["a_set < a_sum a_late"]);
}

#[test]
fn what_leads_to_an_alias_on_another_task_is_ordered_too() {
    let found = across_tasks(&[
        "a_v = Variable",
        "b_one = Const",
        "a_pass = Assign a_v b_one",
        "b_late = Identity a_pass",
        "b_taken = Add b_late b_late",
        "a_set = Assign a_v a_v",
    ]);
    assert_eq!(found, ["a_set < a_pass"]);
}

#[test]
fn a_reader_that_another_task_only_lets_run_after_the_update_stays_there() {
    let found = across_tasks(&[
        "a_v = Variable",
        "a_one = Const",
        "a_set = Assign a_v a_one",
        "b_seen = Add a_set a_set",
        "a_read = Add a_v b_seen",
    ]);
    assert!(found.is_empty(), "{found:?}");
}

#[test]
fn readers_that_the_update_needs_anyway_get_no_edge() {
    let found = across_tasks(&[
        "a_v = Variable",
        "b_one = Const",
        "a_sum = Add a_v b_one",
        "a_more = Add a_sum a_sum",
        "a_set = Assign a_v a_more",
    ]);
    assert!(found.is_empty(), "{found:?}");
}

#[test]
fn loops_are_left_alone() {
    let found = pairs(&[
        "v = Variable",
        "one = Const",
        "enter = Enter v",
        "inside = Add enter enter",
        "exit = Exit inside",
        "outside = Add v exit",
        "set = Assign v one",
    ]);
    assert_eq!(found, ["outside > set"]);
}
