//! Passes keep the results of a step: its fetches, its effects, and whether it fails.

use ferroflow_core::{DType, PartialShape, Result, Tensor, err};
use ferroflow_graph::passes::*;
use ferroflow_graph::{
    Attrs, Catalog, ControlFlow, GraphDef, GraphIr, Node, NodeDef, OpRole, shape,
};
use proptest::prelude::*;

fn catalog() -> Catalog {
    let mut c = Catalog::new();
    c.op("_Arg").output("y: T").attr("T: type").attr("index: int").role(OpRole::Argument);
    c.op("_Retval").input("x: T").attr("T: type").attr("index: int").role(OpRole::Return);
    c.op("Const")
        .output("y: dtype")
        .attr("value: tensor")
        .attr("dtype: type")
        .role(OpRole::Constant);
    c.op("Placeholder").output("y: int64").role(OpRole::Placeholder);
    c.op("Identity")
        .input("x: int64")
        .output("y: int64")
        .role(OpRole::Identity)
        .shape(shape::same_as_input);
    c.op("Add")
        .input("x: int64")
        .input("y: int64")
        .output("z: int64")
        .commutative()
        .shape(shape::broadcast);
    c.op("Sub").input("x: int64").input("y: int64").output("z: int64");
    c.op("Neg").input("x: int64").output("y: int64").involution();
    c.op("Pair").input("x: int64").output("a: int64").output("b: int64");
    c.op("Even").input("x: int64").output("y: int64");
    c.op("Big").input("x: int64").output("y: int64").shape(|_| Ok(vec![[1 << 40].into()]));
    c.op("Slow").input("x: int64").output("y: int64").expensive();
    c.op("Flops").input("x: int64").output("y: int64").flops(|sizes| sizes.input(0).powi(3));
    c.op("Tick").input("x: int64").output("y: int64").stateful();
    c.op("NoOp").role(OpRole::NoOp);
    c.op("Switch")
        .input("x: int64")
        .input("p: bool")
        .output("f: int64")
        .output("t: int64")
        .control_flow(ControlFlow::Switch);
    c.op("Merge")
        .input("x: N * int64")
        .output("y: int64")
        .output("index: int32")
        .attr("N: int")
        .control_flow(ControlFlow::Merge)
        .shape(shape::merged_inputs);
    c.op("NextIteration")
        .input("x: int64")
        .output("y: int64")
        .control_flow(ControlFlow::NextIteration)
        .shape(shape::same_as_input);
    c
}

/// The value of a pure node.
fn evaluate(node: &Node, inputs: &[Tensor]) -> Result<Vec<Tensor>> {
    let x = |i: usize| inputs[i].scalar_value::<i64>();
    let one = |v: i64| Ok(vec![Tensor::scalar(v)]);
    match node.op.name.as_str() {
        "Const" => Ok(vec![node.attrs.tensor("value")?]),
        "Identity" | "_Retval" => one(x(0)?),
        "Add" => one(x(0)?.wrapping_add(x(1)?)),
        "Sub" => one(x(0)?.wrapping_sub(x(1)?)),
        "Neg" => one(x(0)?.wrapping_neg()),
        "Pair" => Ok(vec![Tensor::scalar(x(0)? + 1), Tensor::scalar(x(0)?.wrapping_mul(3))]),
        "Even" if x(0)? % 2 == 0 => one(x(0)? / 2),
        "Even" => Err(err!(InvalidArgument, "odd")),
        other => Err(err!(Unimplemented, "{other}")),
    }
}

/// The results of a step: its fetches and its effects.
fn run(step: &Pruned, feeds: &[i64]) -> Result<(Vec<i64>, Vec<(String, i64)>)> {
    let graph = &step.graph;
    let mut values: Vec<Vec<Tensor>> = vec![Vec::new(); graph.len()];
    let mut effects = Vec::new();
    for id in topological_order(graph) {
        let node = graph.node(id);
        let inputs = node.inputs.iter().map(|e| values[e.node.index()][e.slot as usize].clone());
        let inputs: Vec<Tensor> = inputs.collect();
        values[id.index()] = match node.op.name.as_str() {
            "_Arg" => vec![Tensor::scalar(feeds[node.attrs.int("index")? as usize])],
            "NoOp" => vec![],
            "Tick" => {
                let x = inputs[0].scalar_value::<i64>()?;
                effects.push((node.name.clone(), x));
                vec![Tensor::scalar(x.wrapping_mul(31).wrapping_add(node.name.len() as i64))]
            }
            _ => evaluate(node, &inputs)?,
        };
    }
    effects.sort();
    let fetch = |id: &ferroflow_graph::NodeId| values[id.index()][0].scalar_value::<i64>();
    Ok((step.rets.iter().map(fetch).collect::<Result<_>>()?, effects))
}

fn node(name: &str, op: &str, inputs: &[&str]) -> NodeDef {
    let attrs = match op {
        "Merge" => Attrs::new().with("N", inputs.len() as i64),
        _ => Attrs::new(),
    };
    let inputs = inputs.iter().map(|s| s.to_string()).collect();
    NodeDef { name: name.into(), op: op.into(), inputs, attrs, ..NodeDef::default() }
}

fn constant(name: &str, value: i64, inputs: &[&str]) -> NodeDef {
    let attrs = Attrs::new().with("dtype", DType::Int64).with("value", Tensor::scalar(value));
    NodeDef { attrs, ..node(name, "Const", inputs) }
}

fn step(nodes: Vec<NodeDef>, feeds: &[&str], fetches: &[&str], targets: &[&str]) -> Pruned {
    let def = GraphDef { nodes, ..GraphDef::default() };
    let graph = GraphIr::from_def(&def, &catalog()).unwrap();
    prune(&graph, feeds, fetches, targets, &catalog()).unwrap()
}

fn names(step: &Pruned) -> Vec<&str> {
    step.graph.iter().map(|(_, n)| n.name.as_str()).collect()
}

/// A graph from random choices: `(kind, inputs, control)` for each node.
fn random_graph(choices: &[(u8, u16, u16, Option<u16>)]) -> Vec<NodeDef> {
    let mut nodes = vec![node("n0", "Placeholder", &[])];
    // The outputs from which inputs are chosen.
    let mut outputs = vec!["n0:0".to_string()];
    for (i, &(kind, a, b, control)) in choices.iter().enumerate() {
        let name = format!("n{}", i + 1);
        let pick = |k: u16| outputs[k as usize % outputs.len()].as_str();
        let mut def = match kind % 12 {
            0..=2 => constant(&name, i64::from(a % 4), &[]),
            3 => node(&name, "Add", &[pick(a), pick(b)]),
            4 => node(&name, "Sub", &[pick(a), pick(b)]),
            5 => node(&name, "Pair", &[pick(a)]),
            6 => node(&name, "Identity", &[pick(a)]),
            7 if a % 4 == 0 => node(&name, "Even", &[pick(b)]),
            7 => node(&name, "Add", &[pick(b), pick(a)]),
            8 => node(&name, "Tick", &[pick(a)]),
            9 | 10 => node(&name, "Neg", &[pick(a)]),
            _ => node(&name, "NoOp", &[]),
        };
        if let Some(c) = control {
            def.inputs.push(format!("^n{}", c as usize % (i + 1)));
        }
        match def.op.as_str() {
            "NoOp" => {}
            "Pair" => outputs.extend([format!("{name}:0"), format!("{name}:1")]),
            _ => outputs.push(format!("{name}:0")),
        }
        nodes.push(def);
    }
    nodes
}

fn check_same(before: &Pruned, after: &Pruned, feed: i64) {
    match (run(before, &[feed]), run(after, &[feed])) {
        (Ok(a), Ok(b)) => assert_eq!(a, b),
        (a, b) => assert_eq!(a.err(), b.err()),
    }
    for (id, n) in after.graph.iter() {
        assert_eq!(after.graph.find(&n.name), Some(id));
        for (e, want) in n.inputs.iter().zip(&n.input_types) {
            assert_eq!(after.graph.type_of(*e).dtype, want.dtype);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn steps_give_the_same_after_every_pass(
        choices in proptest::collection::vec(
            (any::<u8>(), any::<u16>(), any::<u16>(), proptest::option::weighted(0.2, any::<u16>())),
            1..30,
        ),
        wanted in proptest::collection::vec(any::<u16>(), 1..4),
        feed in -3i64..4,
    ) {
        let nodes = random_graph(&choices);
        let pick = |k: &u16| nodes[*k as usize % nodes.len()].clone();
        let (quiet, loud): (Vec<NodeDef>, Vec<NodeDef>) =
            wanted.iter().map(pick).partition(|n| n.op == "NoOp" || n.op == "Placeholder");
        let fetches: Vec<String> = loud.iter().map(|n| format!("{}:0", n.name)).collect();
        let fetches: Vec<&str> = fetches.iter().map(|s| s.as_str()).collect();
        let targets: Vec<&str> =
            quiet.iter().filter(|n| n.op == "NoOp").map(|n| n.name.as_str()).collect();
        prop_assume!(!fetches.is_empty() || !targets.is_empty());
        let before = step(nodes.clone(), &["n0:0"], &fetches, &targets);

        let mut folded = before.clone();
        fold(&mut folded, &catalog(), &evaluate);
        check_same(&before, &folded, feed);
        let mut direct = before.clone();
        remove_identities(&mut direct);
        check_same(&before, &direct, feed);
        let mut undone = before.clone();
        remove_involutions(&mut undone);
        check_same(&before, &undone, feed);
        let mut merged = before.clone();
        merge_common(&mut merged);
        check_same(&before, &merged, feed);
        let mut all = before.clone();
        optimize(&mut all, &catalog(), Rewrites::ALL, &evaluate);
        check_same(&before, &all, feed);
        prop_assert!(all.graph.len() <= before.graph.len() + 8);
    }
}

#[test]
fn constants_are_folded_and_their_sources_dropped() {
    let nodes = vec![
        constant("a", 2, &[]),
        constant("b", 3, &[]),
        node("sum", "Add", &["a", "b"]),
        node("pair", "Pair", &["sum"]),
        node("tick", "Tick", &["pair:1"]),
    ];
    let mut s = step(nodes, &[], &["tick:0", "sum:0"], &[]);
    fold(&mut s, &catalog(), &evaluate);
    assert_eq!(names(&s), ["sum", "tick", "_retval_tick_0_0", "_retval_sum_0_1", "pair/folded_1"]);
    assert_eq!(run(&s, &[]).unwrap().1, [("tick".to_string(), 15)]);
}

#[test]
fn failures_large_results_and_constants_in_branches_are_not_folded() {
    let nodes = vec![
        constant("one", 1, &[]),
        node("odd", "Even", &["one"]),
        node("big", "Big", &["one"]),
        node("tick", "Tick", &["one"]),
        constant("tied", 1, &["^tick"]),
        node("sum", "Add", &["tied", "one"]),
        constant("free", 1, &["^one"]),
        node("sum2", "Add", &["free", "one"]),
    ];
    let mut s = step(nodes, &[], &["odd:0", "big:0", "sum:0", "sum2:0"], &[]);
    fold(&mut s, &catalog(), &|n, x| {
        assert_ne!(n.op.name, "Big", "its size is known beforehand");
        evaluate(n, x)
    });
    let op = |name: &str| s.graph.node(s.graph.find(name).unwrap()).op.name.clone();
    assert_eq!(
        ["odd", "big", "sum", "sum2"].map(op),
        ["Even", "Big", "Add", "Const"].map(String::from)
    );
    assert!(s.graph.find("free").is_none());
}

#[test]
fn work_that_takes_long_is_left_to_the_step() {
    let long = Tensor::zeros(DType::Int64, [10_000]).unwrap();
    let attrs = Attrs::new().with("dtype", DType::Int64).with("value", long);
    let nodes = vec![
        NodeDef { attrs, ..node("long", "Const", &[]) },
        constant("short", 1, &[]),
        node("slow", "Slow", &["long"]),
        node("cubed", "Flops", &["long"]),
        node("quick", "Slow", &["short"]),
        node("few", "Flops", &["short"]),
    ];
    let mut s = step(nodes, &[], &["slow:0", "cubed:0", "quick:0", "few:0"], &[]);
    fold(&mut s, &catalog(), &|_, _| Ok(vec![Tensor::scalar(1i64)]));
    let op = |name: &str| s.graph.node(s.graph.find(name).unwrap()).op.name.clone();
    assert_eq!(
        ["slow", "cubed", "quick", "few"].map(op),
        ["Slow", "Flops", "Const", "Const"].map(String::from)
    );
}

#[test]
fn identities_with_other_effects_stay() {
    let nodes = vec![
        node("x", "Placeholder", &[]),
        node("plain", "Identity", &["x"]),
        node("chained", "Identity", &["plain"]),
        node("anchor", "Identity", &["x"]),
        node("waits", "Identity", &["x", "^anchor"]),
        node("target", "Identity", &["x"]),
        NodeDef { device: "/cpu:0".into(), ..node("moves", "Identity", &["x"]) },
        node("end", "Add", &["chained", "waits"]),
        node("end2", "Add", &["moves", "end"]),
    ];
    let mut s = step(nodes, &["x:0"], &["end2:0"], &["target"]);
    remove_identities(&mut s);
    assert_eq!(
        names(&s),
        ["_arg_x_0_0", "anchor", "waits", "target", "moves", "end", "end2", "_retval_end2_0_0"]
    );
}

#[test]
fn pairs_of_nodes_that_undo_each_other_are_removed() {
    let nodes = vec![
        node("x", "Placeholder", &[]),
        node("a1", "Neg", &["x"]),
        node("a2", "Neg", &["a1"]),
        node("a3", "Neg", &["a2"]),
        node("a4", "Neg", &["a3"]),
        node("b1", "Neg", &["x"]),
        node("b2", "Neg", &["b1"]),
        node("odd", "Neg", &["b2"]),
        node("tick", "Tick", &["x"]),
        node("c1", "Neg", &["x", "^tick"]),
        node("waits", "Neg", &["c1"]),
        node("d1", "Neg", &["x"]),
        NodeDef { device: "/cpu:0".into(), ..node("moves", "Neg", &["d1"]) },
        node("sum", "Add", &["a4", "b2"]),
        node("sum2", "Add", &["waits", "moves"]),
    ];
    let before = step(nodes, &["x:0"], &["sum:0", "sum2:0", "b1:0", "odd:0"], &[]);
    let mut after = before.clone();
    remove_involutions(&mut after);
    check_same(&before, &after, 5);
    let stay = ["b1", "odd", "tick", "c1", "waits", "d1", "moves", "sum", "sum2"];
    assert_eq!(names(&after)[1..10], stay);
    let inputs = |name: &str| {
        let node = after.graph.node(after.graph.find(name).unwrap());
        node.inputs.iter().map(|e| after.graph.node(e.node).name.as_str()).collect::<Vec<_>>()
    };
    assert_eq!(inputs("sum"), ["_arg_x_0_0", "_arg_x_0_0"]);
    assert_eq!(inputs("odd"), ["_arg_x_0_0"]);
}

#[test]
fn an_identity_behind_a_switch_stays() {
    let pred = NodeDef {
        attrs: Attrs::new().with("dtype", DType::Bool).with("value", Tensor::scalar(true)),
        ..node("p", "Const", &[])
    };
    let nodes = vec![
        pred,
        constant("c", 1, &[]),
        node("s", "Switch", &["c", "p"]),
        node("taken", "Identity", &["s:1"]),
        node("not", "Identity", &["s"]),
        node("m", "Merge", &["not", "taken"]),
    ];
    let mut s = step(nodes, &[], &["m:0"], &[]);
    let before = s.graph.len();
    optimize(&mut s, &catalog(), Rewrites::ALL, &evaluate);
    assert_eq!(s.graph.len(), before);
}

#[test]
fn common_subexpressions_are_merged() {
    let nodes = vec![
        node("x", "Placeholder", &[]),
        constant("a", 1, &[]),
        constant("b", 1, &[]),
        constant("c", 2, &[]),
        node("xa", "Add", &["x", "a"]),
        node("bx", "Add", &["b", "x"]),
        node("cx", "Add", &["c", "x"]),
        node("ab", "Sub", &["xa", "cx"]),
        node("ba", "Sub", &["cx", "xa"]),
        node("t1", "Tick", &["xa"]),
        node("t2", "Tick", &["bx", "^bx"]),
    ];
    let mut s = step(nodes, &["x:0"], &["ab:0", "ba:0", "t1:0", "t2:0"], &[]);
    let before = s.clone();
    merge_common(&mut s);
    check_same(&before, &s, 5);
    for gone in ["b", "bx"] {
        assert!(s.graph.find(gone).is_none(), "{gone}");
    }
    for there in ["ab", "ba", "t1", "t2"] {
        assert!(s.graph.find(there).is_some(), "{there}");
    }
}

#[test]
fn shapes_are_inferred_as_far_as_they_are_known() {
    let vector = |name: &str, n: usize, inputs: &[&str]| {
        let value = Tensor::zeros(DType::Int64, [n]).unwrap();
        let attrs = Attrs::new().with("dtype", DType::Int64).with("value", value);
        NodeDef { attrs, ..node(name, "Const", inputs) }
    };
    let nodes = vec![
        node("x", "Placeholder", &[]),
        vector("v", 3, &[]),
        vector("w", 4, &[]),
        node("same", "Identity", &["v"]),
        node("sum", "Add", &["same", "v"]),
        node("clash", "Add", &["v", "w"]),
        node("unsaid", "Sub", &["v", "w"]),
        node("either", "Merge", &["v", "w"]),
        node("loop", "Merge", &["v", "next"]),
        node("body", "Add", &["loop", "v"]),
        node("next", "NextIteration", &["body"]),
    ];
    let def = GraphDef { nodes, ..GraphDef::default() };
    let graph = GraphIr::from_def(&def, &catalog()).unwrap();
    let shapes = infer(&graph);
    let of = |name: &str| shapes[graph.find(name).unwrap().index()][0].clone();
    let unknown = PartialShape::unknown();
    for (name, want) in [
        ("x", unknown.clone()),
        ("v", [3].into()),
        ("sum", [3].into()),
        ("clash", unknown.clone()),
        ("unsaid", unknown.clone()),
        ("either", PartialShape::of_rank(1)),
        ("loop", unknown.clone()),
        ("next", unknown),
    ] {
        assert_eq!(of(name), want, "{name}");
    }
    assert_eq!(shapes[graph.find("either").unwrap().index()][1], PartialShape::scalar());
}
