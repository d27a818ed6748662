//! The order of reads and updates of a variable in one step, where the graph does not fix it.

use crate::common::*;
use ferroflow_core::{CancelToken, DType, PartialShape, Tensor};
use ferroflow_graph::GraphDef;
use ferroflow_runtime::{SessionOptions, TaskSession};
use ferroflow_testing::{GraphBuilder, graph};
use std::sync::mpsc::channel;

const TIMES: usize = 20;

/// Reference variables that start as 1, `start` to set them, and a few constants.
fn variables(names: &[&str]) -> GraphBuilder {
    let mut b = graph()
        .dtype(DType::Float)
        .constant("zero", 0f32)
        .constant("one", 1f32)
        .constant("ten", 10f32);
    let mut starts = Vec::new();
    for name in names {
        b = b
            .op(*name, "VariableV2", &[])
            .attr("dtype", DType::Float)
            .attr("shape", PartialShape::scalar())
            .op(format!("{name}/start"), "Assign", &[name, "one"])
            .t()
            .op(format!("{name}/read"), "Identity", &[name])
            .t();
        starts.push(format!("^{name}/start"));
    }
    let starts: Vec<&str> = starts.iter().map(String::as_str).collect();
    b.op("start", "NoOp", &starts)
}

/// Runs `fetches` and `targets` many times from the same start, in the graph as written and
/// optimized. The values must be the same each time.
#[track_caller]
fn gives(def: &GraphDef, fetches: &[&str], targets: &[&str], want: &[f32]) {
    for disable_optimizer in [true, false] {
        let options = SessionOptions { disable_optimizer, ..SessionOptions::default() };
        let s = TaskSession::new(task(), def, options).unwrap();
        for _ in 0..TIMES {
            s.run_blocking(request(&[], &[], &["start"])).unwrap();
            let got = s.run_blocking(request(&[], fetches, targets)).unwrap();
            let got: Vec<f32> = got.tensors.iter().map(|t| t.scalar_value().unwrap()).collect();
            assert_eq!(got, want, "fetches {fetches:?}, not optimized: {disable_optimizer}");
        }
    }
}

#[test]
fn a_fetched_reference_variable_has_the_value_of_the_end_of_the_step() {
    let def = variables(&["v"])
        .op("again", "Identity", &["v/read"])
        .t()
        .op("add", "AssignAdd", &["v", "one"])
        .t()
        .op("more", "AssignAdd", &["v", "ten"])
        .t()
        .build();
    gives(&def, &["v", "v/read", "again"], &["add"], &[2.0, 2.0, 2.0]);
    gives(&def, &["add", "again", "v"], &[], &[2.0, 2.0, 2.0]);
    gives(&def, &["add", "more", "v"], &[], &[12.0, 12.0, 12.0]);
}

#[test]
fn what_computes_with_a_reference_variable_sees_the_value_of_before() {
    let def = variables(&["v"])
        .op("plus", "AddV2", &["v/read", "zero"])
        .t()
        .op("far", "AddV2", &["plus", "plus"])
        .t()
        .op("direct", "Neg", &["v"])
        .t()
        .op("add", "AssignAdd", &["v", "one"])
        .t()
        .op("after", "AddV2", &["v/read", "zero", "^add"])
        .t()
        .op("of_new", "AddV2", &["add", "zero"])
        .t()
        .build();
    gives(&def, &["plus", "far", "direct"], &["add"], &[1.0, 2.0, -1.0]);
    gives(&def, &["v", "after", "direct", "of_new", "plus"], &[], &[2.0, 2.0, -1.0, 2.0, 1.0]);
}

#[test]
fn updates_of_all_layers_leave_the_gradients_alone() {
    const LAYERS: usize = 40;
    let names: Vec<String> = (0..LAYERS).map(|i| format!("w{i}")).collect();
    let mut b = variables(&names.iter().map(String::as_str).collect::<Vec<_>>());
    let mut gradient = "ten".to_string();
    let mut updates = Vec::new();
    for name in &names {
        // A layer can be updated as soon as the gradient has passed through it.
        b = b.op(format!("{name}/set"), "Assign", &[name, &gradient]).t();
        updates.push(format!("{name}/set"));
        b = b.op(format!("{name}/d"), "Mul", &[&gradient, &format!("{name}/read")]).t();
        gradient = format!("{name}/d");
    }
    let updates: Vec<&str> = updates.iter().map(String::as_str).collect();
    gives(&b.build(), &[&gradient], &updates, &[10.0]);
}

#[test]
fn values_are_exchanged() {
    let def = variables(&["a", "b"])
        .op("b/ten", "Assign", &["b", "ten", "^start"])
        .t()
        .op("of_a", "AddV2", &["a/read", "zero", "^b/ten"])
        .t()
        .op("of_b", "AddV2", &["b/read", "zero", "^b/ten"])
        .t()
        .op("set_a", "Assign", &["a", "of_b"])
        .t()
        .op("set_b", "Assign", &["b", "of_a"])
        .t()
        .build();
    gives(&def, &["a", "b"], &["set_a", "set_b"], &[10.0, 1.0]);
}

#[test]
fn an_update_that_follows_fused_nodes_does_not_move_their_reads() {
    // All nodes of `y` could be fused into one, which would run after the update.
    let def = variables(&["v"])
        .op("x", "AddV2", &["v/read", "ten"])
        .t()
        .op("add", "AssignAdd", &["v", "one"])
        .t()
        .op("y", "Mul", &["x", "add"])
        .t()
        .build();
    gives(&def, &["y"], &[], &[22.0]);
}

/// The same for a variable behind a handle.
fn resource() -> GraphBuilder {
    graph()
        .dtype(DType::Float)
        .constant("one", 1f32)
        .constant("zero", 0f32)
        .op("v", "VarHandleOp", &[])
        .attr("dtype", DType::Float)
        .attr("shape", PartialShape::scalar())
        .op("start", "AssignVariableOp", &["v", "one"])
        .attr("dtype", DType::Float)
        .op("read", "ReadVariableOp", &["v"])
        .attr("dtype", DType::Float)
        .op("add", "AssignAddVariableOp", &["v", "one"])
        .attr("dtype", DType::Float)
}

#[test]
fn a_fetched_resource_variable_has_the_value_of_before() {
    let def = resource()
        .op("plus", "AddV2", &["read", "zero"])
        .t()
        .op("after", "ReadVariableOp", &["v", "^add"])
        .attr("dtype", DType::Float)
        .build();
    gives(&def, &["read", "plus"], &["add"], &[1.0, 1.0]);
    gives(&def, &["after", "read"], &["add"], &[2.0, 1.0]);
}

#[test]
fn a_branch_that_is_not_taken_does_not_hold_up_an_update() {
    let def = variables(&["v"])
        .op("p", "Less", &["zero", "one"])
        .t()
        .switch("s", "zero", "p")
        .op("taken", "AddV2", &["v/read", "s:1"])
        .t()
        .op("other", "Sub", &["v/read", "s"])
        .t()
        .merge("merged", &["other", "taken"])
        .op("add", "AssignAdd", &["v", "one"])
        .t()
        .build();
    gives(&def, &["merged", "v"], &["add"], &[1.0, 2.0]);
}

#[test]
fn an_update_does_not_wait_for_a_reader_that_waits_for_the_client() {
    let def = variables(&["v"])
        .placeholder("x")
        .op("sum", "AddV2", &["v/read", "x"])
        .t()
        .op("add", "AssignAdd", &["v", "one"])
        .t()
        .op("new", "AddV2", &["add", "zero"])
        .t()
        .build();
    let s = TaskSession::new(task(), &def, SessionOptions::default()).unwrap();
    s.run_blocking(request(&[], &[], &["start"])).unwrap();
    let names = |list: &[&str]| list.iter().map(|n| n.to_string()).collect::<Vec<_>>();
    let handle = s.partial_run_setup(names(&["x"]), names(&["sum", "new"]), vec![]).unwrap();
    let part = |feeds: Vec<(String, Tensor)>, fetch: &str| {
        let (tell, result) = channel();
        let done = Box::new(move |r| tell.send(r).unwrap());
        s.partial_run(&handle, feeds, names(&[fetch]), CancelToken::new(), done);
        soon(&result).unwrap().tensors[0].scalar_value::<f32>().unwrap()
    };
    assert_eq!(part(vec![], "new"), 2.0);
    let sum = part(vec![("x".into(), Tensor::scalar(10f32))], "sum");
    assert!([11.0, 12.0].contains(&sum), "{sum}");
}

#[test]
fn a_variable_without_a_value_cannot_be_fetched() {
    let def = variables(&["v"]).build();
    let s = TaskSession::new(task(), &def, SessionOptions::default()).unwrap();
    let e = error_of(s.run_blocking(request(&[], &["v"], &[])));
    assert!(e.message().starts_with("Attempting to use uninitialized value v"), "{e}");
}

/// `while v < ten: v += one`, where the condition and `sum += v` take `v/read` from outside the
/// loop. Each iteration reads the sum before the update.
fn loop_over_variable() -> GraphDef {
    let loop_attrs = |b: GraphBuilder, is_constant: bool| {
        b.attr("frame_name", "w")
            .attr("is_constant", is_constant)
            .attr("parallel_iterations", 10i64)
            .t()
    };
    let b = loop_attrs(variables(&["v"]).op("sum0", "Enter", &["zero"]), false);
    let b = loop_attrs(b.op("limit", "Enter", &["ten"]), true);
    let b = loop_attrs(b.op("step", "Enter", &["one"]), true);
    let b = loop_attrs(b.op("now", "Enter", &["v/read"]), true);
    let b = loop_attrs(b.op("v_in", "RefEnter", &["v"]), true);
    b.op("merged", "Merge", &["sum0", "next"])
        .attr("N", 2i64)
        .t()
        .op("less", "Less", &["now", "limit", "^merged"])
        .t()
        .op("cond", "LoopCond", &["less"])
        .op("switch", "Switch", &["merged", "cond"])
        .t()
        .op("inside", "Identity", &["switch:1"])
        .t()
        .op("sum", "AddV2", &["inside", "now"])
        .t()
        .op("add", "AssignAdd", &["v_in", "step", "^sum"])
        .t()
        .op("kept", "Identity", &["sum", "^add"])
        .t()
        .op("next", "NextIteration", &["kept"])
        .t()
        .op("total", "Exit", &["switch"])
        .t()
        .build()
}

#[test]
fn a_loop_sees_its_own_updates_of_a_variable_that_was_read_outside() {
    let def = loop_over_variable();
    gives(&def, &["total", "v"], &[], &[45.0, 10.0]);
}

#[test]
fn a_branch_sees_its_own_update_of_a_variable_that_was_read_outside() {
    let def = variables(&["v", "w"])
        .op("less", "Less", &["zero", "one"])
        .t()
        .op("of_v", "Switch", &["v/read", "less"])
        .t()
        .op("of_w", "Switch", &["w/read", "less"])
        .t()
        .op("yes", "Identity", &["of_v:1"])
        .t()
        .op("set", "Assign", &["v", "ten", "^yes"])
        .t()
        .op("sum", "AddV2", &["of_v:1", "one", "^set"])
        .t()
        .op("merged", "Merge", &["yes", "of_w"])
        .attr("N", 2i64)
        .t()
        .op("late", "AddV2", &["merged", "zero", "^set"])
        .t()
        .build();
    gives(&def, &["sum"], &[], &[11.0]);
    gives(&def, &["late"], &[], &[10.0]);
    // A fetch is read at the end of the step, through control flow too.
    gives(&def, &["merged"], &["set"], &[10.0]);
}
