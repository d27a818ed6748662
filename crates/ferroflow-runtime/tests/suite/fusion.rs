//! A fused node computes the same as the nodes it replaces: values to the bit, and errors.

use crate::common::{request, task};
use ferroflow_core::{Code, DType, Result, Tensor};
use ferroflow_graph::{AttrList, AttrValue, GraphDef, NodeDef};
use ferroflow_runtime::{RunOptions, RunRequest, SessionOptions, Task, TaskSession};
use ferroflow_testing::{GraphBuilder, graph};
use proptest::prelude::*;
use std::sync::{Arc, OnceLock};

/// A session that optimizes, or runs the graph as it was built.
fn session(graph: &GraphDef, optimizes: bool) -> TaskSession {
    static TASK: OnceLock<Arc<Task>> = OnceLock::new();
    let options = SessionOptions {
        disable_optimizer: !optimizes,
        isolate_state: true,
        ..SessionOptions::default()
    };
    TaskSession::new(TASK.get_or_init(task).clone(), graph, options).unwrap()
}

fn run(s: &TaskSession, feeds: &[(&str, Tensor)], fetches: &[&str]) -> Result<Vec<Tensor>> {
    s.run_blocking(request(feeds, fetches, &[])).map(|o| o.tensors)
}

/// The fetches, computed node by node.
fn plain(g: &GraphDef, feeds: &[(&str, Tensor)], fetches: &[&str]) -> Result<Vec<Tensor>> {
    run(&session(g, false), feeds, fetches)
}

fn optimized(g: &GraphDef, feeds: &[(&str, Tensor)], fetches: &[&str]) -> Result<Vec<Tensor>> {
    run(&session(g, true), feeds, fetches)
}

/// The fused nodes of a step.
fn fused(g: &GraphDef, feeds: &[(&str, Tensor)], fetches: &[&str]) -> Vec<NodeDef> {
    let options = RunOptions { output_partition_graphs: true, ..RunOptions::default() };
    let request = RunRequest { options, ..request(feeds, fetches, &[]) };
    let graph = session(g, true).run_blocking(request).unwrap().partition_graphs.remove(0);
    graph.nodes.into_iter().filter(|n| n.op.starts_with("_Fused")).collect()
}

fn names(nodes: &[NodeDef]) -> Vec<(&str, Vec<&str>)> {
    nodes
        .iter()
        .map(|n| (n.op.as_str(), n.original_names.iter().map(String::as_str).collect()))
        .collect()
}

/// Compares shapes and bits; all NaNs count as equal.
#[track_caller]
fn assert_same(got: &Tensor, want: &Tensor) {
    assert_eq!(got.shape(), want.shape());
    let bits = |t: &Tensor| -> Vec<u64> {
        match t.dtype() {
            DType::Float => {
                let each = t.as_slice::<f32>().unwrap().iter();
                each.map(|x| if x.is_nan() { u64::MAX } else { x.to_bits() as u64 }).collect()
            }
            _ => {
                let each = t.as_slice::<f64>().unwrap().iter();
                each.map(|x| if x.is_nan() { u64::MAX } else { x.to_bits() }).collect()
            }
        }
    };
    assert!(bits(got) == bits(want), "{got:?}\n{want:?}");
}

#[track_caller]
fn agree(g: &GraphDef, feeds: &[(&str, Tensor)], fetches: &[&str]) {
    let want = plain(g, feeds, fetches).unwrap();
    for (got, want) in optimized(g, feeds, fetches).unwrap().iter().zip(&want) {
        assert_same(got, want);
    }
}

/// `y = tanh(-(x * w) + b)`, of floats.
fn chain() -> GraphBuilder {
    graph()
        .dtype(DType::Float)
        .placeholder("x")
        .placeholder("w")
        .placeholder("b")
        .op("p", "Mul", &["x", "w"])
        .t()
        .op("n", "Neg", &["p"])
        .t()
        .op("s", "AddV2", &["n", "b"])
        .t()
        .op("y", "Tanh", &["s"])
        .t()
}

fn counted(dims: &[usize]) -> Tensor {
    let n: usize = dims.iter().product();
    let values: Vec<f32> = (0..n).map(|i| ((i * 37 % 101) as f32 - 50.0) * 0.07).collect();
    Tensor::from_slice(dims, &values).unwrap()
}

fn feeds(x: &[usize], w: &[usize], b: &[usize]) -> [(&'static str, Tensor); 3] {
    [("x", counted(x)), ("w", counted(w)), ("b", counted(b))]
}

#[test]
fn a_chain_becomes_one_node_named_for_its_end() {
    let feeds = feeds(&[4], &[4], &[4]);
    let nodes = fused(&chain().build(), &feeds, &["y"]);
    assert_eq!(names(&nodes), [("_FusedElementwise", vec!["y", "s", "n", "p"])]);
    assert_eq!(nodes[0].name, "y");
    assert_eq!(nodes[0].inputs, ["_arg_x_0_0", "_arg_w_0_1", "_arg_b_0_2"]);
}

#[test]
fn nothing_is_fused_where_the_optimizer_is_off() {
    let options = RunOptions { output_partition_graphs: true, ..RunOptions::default() };
    let request = RunRequest { options, ..request(&feeds(&[4], &[4], &[4]), &["y"], &[]) };
    let graphs = session(&chain().build(), false).run_blocking(request).unwrap().partition_graphs;
    assert!(graphs[0].nodes.iter().all(|n| !n.op.starts_with('_') || n.op.len() < 8));
}

#[test]
fn shapes_of_all_kinds_agree() {
    let shapes: [&[usize]; 12] = [
        &[],
        &[1],
        &[1, 1],
        &[3],
        &[7, 3],
        &[7, 1],
        &[1, 3],
        &[2, 7, 3],
        &[2, 1, 3],
        &[2, 1, 1],
        &[0, 3],
        &[1, 7, 1],
    ];
    let g = chain().build();
    let (fast, slow) = (session(&g, true), session(&g, false));
    for x in shapes {
        for w in shapes {
            for b in shapes {
                let feeds = feeds(x, w, b);
                match (run(&fast, &feeds, &["y"]), run(&slow, &feeds, &["y"])) {
                    (Ok(got), Ok(want)) => assert_same(&got[0], &want[0]),
                    (Err(got), Err(want)) => assert_eq!(got.message(), want.message()),
                    (got, want) => panic!("{x:?} {w:?} {b:?}: {got:?} instead of {want:?}"),
                }
            }
        }
    }
}

#[test]
fn large_tensors_agree() {
    let g = chain().build();
    for (x, w, b) in [
        (&[300_001][..], &[300_001][..], &[300_001][..]),
        (&[300_001], &[], &[1]),
        (&[401, 777], &[777], &[401, 1]),
        (&[777], &[401, 777], &[]),
        (&[3, 100_000], &[3, 1], &[3, 100_000]),
        (&[100_000, 3], &[3], &[100_000, 1]),
    ] {
        agree(&g, &feeds(x, w, b), &["y"]);
    }
}

#[test]
fn doubles_are_fused_and_halves_are_not() {
    for (dtype, count) in [(DType::Double, 1), (DType::Half, 0), (DType::Float, 1)] {
        let g = graph()
            .placeholder("i")
            .dtype(dtype)
            .op("x", "Cast", &["i"])
            .attr("SrcT", DType::Int32)
            .attr("DstT", dtype)
            .op("a", "Exp", &["x"])
            .t()
            .op("b", "Mul", &["a", "x"])
            .t()
            .op("y", "Cast", &["b"])
            .attr("SrcT", dtype)
            .attr("DstT", DType::Double)
            .build();
        let feeds = [("i", Tensor::vector(&[1, -2, 3]))];
        assert_eq!(fused(&g, &feeds, &["y"]).len(), count, "{dtype}");
        agree(&g, &feeds, &["y"]);
    }
}

#[test]
fn groups_end_at_what_is_seen_from_outside() {
    let all = feeds(&[4], &[4], &[4]);
    // A fetched value.
    let g = chain().build();
    assert_eq!(names(&fused(&g, &all, &["y", "s"])), [("_FusedElementwise", vec!["s", "n", "p"])]);
    agree(&g, &all, &["y", "s", "p"]);
    // A consumer that is not element-wise.
    let g = chain().op("shape", "Shape", &["n"]).t().build();
    assert_eq!(
        names(&fused(&g, &all, &["y", "shape"])),
        [("_FusedElementwise", vec!["n", "p"]), ("_FusedElementwise", vec!["y", "s"])]
    );
    // Control edges, out of a node and into one.
    let g = chain().op("go", "NoOp", &["^n"]).op("late", "Identity", &["y", "^go"]).t().build();
    assert_eq!(
        names(&fused(&g, &all, &["late"])),
        [("_FusedElementwise", vec!["n", "p"]), ("_FusedElementwise", vec!["y", "s"])]
    );
    let g = chain().op("go", "NoOp", &["^x"]).more_inputs("s", &["^go"]).build();
    assert_eq!(
        names(&fused(&g, &all, &["y"])),
        [("_FusedElementwise", vec!["s", "n", "p"])],
        "s waits for more than y does"
    );
    // The root may have control edges.
    let g = chain().op("go", "NoOp", &["^x"]).more_inputs("y", &["^go"]).build();
    let nodes = fused(&g, &all, &["y"]);
    assert_eq!(names(&nodes), [("_FusedElementwise", vec!["y", "s", "n", "p"])]);
    assert!(nodes[0].inputs.contains(&"^go".to_string()));
    agree(&g, &all, &["y"]);
}

#[test]
fn a_value_used_twice_within_the_group_is_inside() {
    let g = graph()
        .dtype(DType::Float)
        .placeholder("x")
        .op("e", "Exp", &["x"])
        .t()
        .op("q", "Mul", &["e", "e"])
        .t()
        .op("d", "Sub", &["q", "e"])
        .t()
        .op("y", "Sqrt", &["d"])
        .t()
        .build();
    let feeds = [("x", counted(&[5000]))];
    assert_eq!(
        names(&fused(&g, &feeds, &["y"])),
        [("_FusedElementwise", vec!["y", "d", "q", "e"])]
    );
    agree(&g, &feeds, &["y"]);
}

#[test]
fn variables_are_read_when_they_were() {
    let g = graph()
        .dtype(DType::Float)
        .op("v", "VariableV2", &[])
        .attr("dtype", DType::Float)
        .attr("shape", ferroflow_core::PartialShape::scalar())
        .constant("two", 2.0f32)
        .op("set", "Assign", &["v", "two"])
        .t()
        .op("n", "Neg", &["v"])
        .t()
        .op("m", "Neg", &["n"])
        .t()
        .op("y", "Exp", &["m", "^set"])
        .t()
        .build();
    let s = session(&g, true);
    s.run_blocking(request(&[], &[], &["set"])).unwrap();
    let options = RunOptions { output_partition_graphs: true, ..RunOptions::default() };
    let out = s.run_blocking(RunRequest { options, ..request(&[], &["y"], &[]) }).unwrap();
    assert_eq!(out.tensors[0].scalar_value::<f32>().unwrap(), 2f32.exp());
    let nodes = &out.partition_graphs[0].nodes;
    assert!(nodes.iter().any(|n| n.name == "n" && n.op == "Neg"), "it reads the variable");
}

#[test]
fn errors_name_the_node_they_arose_in() {
    let g = chain().build();
    for (x, w, b, at) in
        [(&[2][..], &[3][..], &[][..], "p"), (&[2, 3], &[3], &[2], "s"), (&[2], &[2], &[3], "s")]
    {
        let feeds = feeds(x, w, b);
        let (got, want) = (optimized(&g, &feeds, &["y"]), plain(&g, &feeds, &["y"]));
        let (got, want) = (got.unwrap_err(), want.unwrap_err());
        assert_eq!((got.code(), got.message()), (want.code(), want.message()));
        assert!(got.message().ends_with(&format!("[[{{{{node {at}}}}}]]")), "{got}");
        assert_eq!(got.code(), Code::InvalidArgument);
    }
    // A gradient does not broadcast.
    let g = graph()
        .dtype(DType::Float)
        .placeholder("x")
        .placeholder("g")
        .op("n", "Neg", &["g"])
        .t()
        .op("r", "ReluGrad", &["n", "x"])
        .t()
        .op("t", "TanhGrad", &["r", "x"])
        .t()
        .op("y", "Exp", &["t"])
        .t()
        .build();
    agree(&g, &[("x", counted(&[2, 3])), ("g", counted(&[2, 3]))], &["y"]);
    let feeds = [("x", counted(&[2, 3])), ("g", counted(&[]))];
    let got = optimized(&g, &feeds, &["y"]).unwrap_err();
    assert_eq!(got.message(), plain(&g, &feeds, &["y"]).unwrap_err().message());
    assert!(got.message().contains("operation r of type ReluGrad"), "{got}");
}

#[test]
fn feeds_keep_their_values() {
    let (g, x) = (chain().build(), counted(&[3000]));
    let before = x.deep_copy().unwrap();
    let s = session(&g, true);
    for _ in 0..3 {
        run(&s, &[("x", x.clone()), ("w", x.clone()), ("b", x.clone())], &["y"]).unwrap();
        assert_same(&x, &before);
    }
}

/// `while i < n { x = tanh(x * a + x) ; i = i + 1 }`
fn while_loop() -> GraphDef {
    graph()
        .placeholder("n")
        .constant("zero", 0)
        .constant("one", 1)
        .enter("i/enter", "zero", "w", 10)
        .enter_constant("n/enter", "n", "w", 10)
        .enter_constant("one/enter", "one", "w", 10)
        .merge("i", &["i/enter", "i/next"])
        .op("less", "TestLess", &["i", "n/enter"])
        .op("cond", "LoopCond", &["less"])
        .switch("i/switch", "i", "cond")
        .op("i/more", "TestAdd", &["i/switch:1", "one/enter"])
        .next_iteration("i/next", "i/more")
        .dtype(DType::Float)
        .placeholder("x")
        .placeholder("a")
        .enter("x/enter", "x", "w", 10)
        .enter_constant("a/enter", "a", "w", 10)
        .merge("x/merge", &["x/enter", "x/next"])
        .switch("x/switch", "x/merge", "cond")
        .op("product", "Mul", &["x/switch:1", "a/enter"])
        .t()
        .op("sum", "AddV2", &["product", "x/switch:1"])
        .t()
        .op("tanh", "Tanh", &["sum"])
        .t()
        .next_iteration("x/next", "tanh")
        .exit("y", "x/switch")
        .build()
}

#[test]
fn loop_bodies_are_fused() {
    let g = while_loop();
    for n in [0, 1, 25] {
        let feeds =
            |a: &[usize]| [("n", Tensor::scalar(n)), ("x", counted(&[50])), ("a", counted(a))];
        let nodes = fused(&g, &feeds(&[50]), &["y"]);
        assert_eq!(names(&nodes), [("_FusedElementwise", vec!["tanh", "sum", "product"])]);
        agree(&g, &feeds(&[50]), &["y"]);
        agree(&g, &feeds(&[]), &["y"]);
        if n > 0 {
            let e = optimized(&g, &feeds(&[49]), &["y"]).unwrap_err();
            assert!(e.message().ends_with("[[{{node product}}]]"), "{e}");
        }
    }
}

#[test]
fn a_group_in_the_branch_not_taken_is_dead() {
    let g = graph()
        .dtype(DType::Bool)
        .placeholder("p")
        .dtype(DType::Float)
        .placeholder("x")
        .placeholder("z")
        .switch("s", "x", "p")
        .op("a", "Neg", &["s:1"])
        .t()
        .op("then", "Mul", &["a", "z"])
        .t()
        .op("b", "Exp", &["s:0"])
        .t()
        .op("else", "Sqrt", &["b"])
        .t()
        .merge("y", &["then", "else"])
        .build();
    for p in [true, false] {
        let feeds = [("p", Tensor::scalar(p)), ("x", counted(&[3])), ("z", counted(&[3]))];
        assert_eq!(fused(&g, &feeds, &["y"]).len(), 2);
        agree(&g, &feeds, &["y"]);
    }
}

/// `relu(a b + bias)` in the given ops.
fn layer(bias: &str, activation: &str) -> GraphBuilder {
    graph()
        .dtype(DType::Float)
        .placeholder("a")
        .placeholder("b")
        .placeholder("bias")
        .op("product", "MatMul", &["a", "b"])
        .t()
        .op("sum", bias, &["product", "bias"])
        .t()
        .op("y", activation, &["sum"])
        .t()
}

fn layer_feeds(a: &[usize], b: &[usize], bias: &[usize]) -> [(&'static str, Tensor); 3] {
    [("a", counted(a)), ("b", counted(b)), ("bias", counted(bias))]
}

#[test]
fn a_product_takes_its_bias_and_activation_along() {
    let feeds = layer_feeds(&[40, 30], &[30, 50], &[50]);
    for activation in ["Relu", "Relu6", "Elu", "Tanh", "Sigmoid", "LeakyRelu"] {
        let g = layer("BiasAdd", activation).build();
        let nodes = fused(&g, &feeds, &["y"]);
        assert_eq!(names(&nodes), [("_FusedMatMul", vec!["y", "sum", "product"])]);
        agree(&g, &feeds, &["y"]);
    }
    let g = layer("BiasAdd", "Relu").build();
    assert_eq!(names(&fused(&g, &feeds, &["sum"])), [("_FusedMatMul", vec!["sum", "product"])]);
    assert_eq!(
        names(&fused(&g, &feeds, &["y", "sum"])),
        [("_FusedMatMul", vec!["sum", "product"])]
    );
    agree(&g, &feeds, &["y", "sum"]);
    assert_eq!(
        names(&fused(&g, &feeds, &["y", "product"])),
        [("_FusedElementwise", vec!["y", "sum"])]
    );
    agree(&g, &feeds, &["y", "product"]);
    agree(&g, &layer_feeds(&[700, 20], &[20, 700], &[700]), &["y"]);
    agree(&g, &layer_feeds(&[0, 20], &[20, 3], &[3]), &["y"]);
}

#[test]
fn a_vector_that_is_added_is_a_bias() {
    let mut known = layer("AddV2", "Relu").build();
    let unknown = known.clone();
    known.nodes[2] = graph().constant("bias", counted(&[5])).build().nodes.remove(0);
    let feeds = layer_feeds(&[4, 3], &[3, 5], &[5]);
    assert_eq!(
        names(&fused(&known, &feeds[..2], &["y"])),
        [("_FusedMatMul", vec!["y", "sum", "product"])]
    );
    agree(&known, &feeds[..2], &["y"]);
    agree(&known, &layer_feeds(&[4, 3], &[3, 1], &[])[..2], &["y"]);
    assert!(optimized(&known, &layer_feeds(&[4, 3], &[3, 4], &[])[..2], &["y"]).is_err());
    assert_eq!(names(&fused(&unknown, &feeds, &["y"])), [("_FusedElementwise", vec!["y", "sum"])]);
    agree(&unknown, &feeds, &["y"]);
    agree(&unknown, &layer_feeds(&[4, 3], &[3, 5], &[4, 1]), &["y"]);
    agree(&unknown, &layer_feeds(&[1, 3], &[3, 1], &[6, 4, 5]), &["y"]);
}

#[test]
fn errors_of_a_product_name_its_parts() {
    for (a, b, bias, at) in [
        (&[4, 3][..], &[2, 5][..], &[5][..], "product"),
        (&[4, 3, 1], &[3, 5], &[5], "product"),
        (&[4, 3], &[3, 5], &[4], "sum"),
    ] {
        let g = layer("BiasAdd", "Relu").build();
        let feeds = layer_feeds(a, b, bias);
        let got = optimized(&g, &feeds, &["y"]).unwrap_err();
        let want = plain(&g, &feeds, &["y"]).unwrap_err();
        assert_eq!((got.code(), got.message()), (want.code(), want.message()));
        assert!(got.message().ends_with(&format!("[[{{{{node {at}}}}}]]")), "{got}");
    }
}

#[test]
fn a_convolution_takes_its_bias_and_activation_along() {
    for format in ["NHWC", "NCHW"] {
        // By tiles, by products of patches (of two groups), and as a product of pixels.
        for (window, depth) in [(3, 4), (3, 2), (1, 4)] {
            let g = graph()
                .dtype(DType::Float)
                .placeholder("x")
                .placeholder("filter")
                .placeholder("bias")
                .op("conv", "Conv2D", &["x", "filter"])
                .t()
                .attr("strides", AttrValue::List(AttrList::Ints(vec![1, 1, 1, 1])))
                .attr("padding", "SAME")
                .attr("data_format", format)
                .op("sum", "BiasAdd", &["conv", "bias"])
                .t()
                .attr("data_format", format)
                .op("y", "Relu", &["sum"])
                .t()
                .build();
            let x = if format == "NHWC" { [2, 9, 9, 4] } else { [2, 4, 9, 9] };
            let feeds = |bias: usize| {
                let filter = counted(&[window, window, depth, 18]);
                [("x", counted(&x)), ("filter", filter), ("bias", counted(&[bias]))]
            };
            let nodes = fused(&g, &feeds(18), &["y"]);
            assert_eq!(names(&nodes), [("_FusedConv2D", vec!["y", "sum", "conv"])]);
            agree(&g, &feeds(18), &["y"]);
            let got = optimized(&g, &feeds(7), &["y"]).unwrap_err();
            assert_eq!(got.message(), plain(&g, &feeds(7), &["y"]).unwrap_err().message());
        }
    }
}

#[test]
fn channels_may_come_second() {
    let g = graph()
        .dtype(DType::Float)
        .placeholder("x")
        .placeholder("bias")
        .op("n", "Neg", &["x"])
        .t()
        .op("sum", "BiasAdd", &["n", "bias"])
        .t()
        .attr("data_format", "NCHW")
        .op("y", "Relu", &["sum"])
        .t()
        .build();
    for (x, bias) in [(&[2, 3, 5, 7][..], &[3][..]), (&[2, 3], &[3]), (&[2, 3, 4000], &[3])] {
        let feeds = [("x", counted(x)), ("bias", counted(bias))];
        assert_eq!(fused(&g, &feeds, &["y"]).len(), 1);
        agree(&g, &feeds, &["y"]);
    }
    let feeds = [("x", counted(&[2, 3])), ("bias", counted(&[2]))];
    let got = optimized(&g, &feeds, &["y"]).unwrap_err();
    assert_eq!(got.message(), plain(&g, &feeds, &["y"]).unwrap_err().message());
}

const UNARY: [&str; 12] = [
    "Neg", "Abs", "Sign", "Square", "Exp", "Log", "Tanh", "Sigmoid", "Relu", "Sqrt", "Floor", "Elu",
];
const BINARY: [&str; 11] = [
    "AddV2",
    "Add",
    "Sub",
    "Mul",
    "Maximum",
    "Minimum",
    "RealDiv",
    "DivNoNan",
    "ReluGrad",
    "SigmoidGrad",
    "BiasAdd",
];
const SHAPES: [&[usize]; 9] =
    [&[], &[], &[4], &[3, 4], &[3, 4], &[3, 4], &[3, 1], &[1500, 4], &[2]];
const VALUES: [f32; 10] =
    [0.0, -0.0, 1.0, -1.5, 0.3, 1e-30, 3e38, f32::INFINITY, f32::NEG_INFINITY, f32::NAN];

/// A node: which op, which earlier values it takes, and whether it waits for another node too.
type Choice = (usize, usize, usize, Option<usize>);

/// Inputs `v0`..`v3`, then a node for each choice.
fn random_graph(nodes: &[Choice]) -> GraphDef {
    let mut g = graph().dtype(DType::Float);
    for i in 0..4 {
        g = g.placeholder(&format!("v{i}"));
    }
    for (i, &(op, a, b, control)) in nodes.iter().enumerate() {
        let before = i + 4;
        // Mostly recent values, so that chains grow.
        let pick = |k: usize| format!("v{}", before - 1 - (k * k / 16) % before);
        let op = op % (UNARY.len() + BINARY.len());
        let mut inputs = vec![pick(a)];
        if op >= UNARY.len() {
            inputs.push(pick(b));
        }
        if let Some(k) = control {
            inputs.push(format!("^v{}", k % before));
        }
        let inputs: Vec<&str> = inputs.iter().map(String::as_str).collect();
        let op = UNARY.get(op).unwrap_or_else(|| &BINARY[op - UNARY.len()]);
        g = g.op(format!("v{before}"), op, &inputs).t();
    }
    g.build()
}

fn random_tensor(shape: usize, seed: usize) -> Tensor {
    let dims = SHAPES[shape];
    let n: usize = dims.iter().product();
    let values: Vec<f32> = (0..n).map(|i| VALUES[(i * 7 + seed + i / 10) % VALUES.len()]).collect();
    Tensor::from_slice(dims, &values).unwrap()
}

/// The errors that the step may show: those of nodes that fail though their inputs do not.
fn possible_errors(s: &TaskSession, g: &GraphDef, feeds: &[(&str, Tensor)]) -> Vec<String> {
    let failure = |name: &str| run(s, feeds, &[name]).err().map(|e| e.message().to_string());
    let nodes = g.nodes.iter().skip(4);
    let failing = nodes.filter_map(|n| {
        let e = failure(&n.name)?;
        e.ends_with(&format!("[[{{{{node {}}}}}]]", n.name)).then_some(e)
    });
    failing.collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn random_graphs_agree(
        nodes in prop::collection::vec(
            (0..100usize, 0..10usize, 0..16usize, prop::option::weighted(0.05, 0..100usize)),
            2..14,
        ),
        shapes in prop::array::uniform4(0..SHAPES.len()),
        seed in 0..100usize,
        also in prop::option::of(0..100usize),
    ) {
        let g = random_graph(&nodes);
        let inputs = ["v0", "v1", "v2", "v3"];
        let feeds: Vec<(&str, Tensor)> = inputs
            .into_iter()
            .zip(shapes)
            .map(|(name, shape)| (name, random_tensor(shape, seed)))
            .collect();
        let last = format!("v{}", nodes.len() + 3);
        let mut fetches = vec![last.as_str()];
        let also = also.map(|k| format!("v{}", 4 + k % nodes.len()));
        fetches.extend(also.as_deref().filter(|a| *a != last));
        let (fast, slow) = (session(&g, true), session(&g, false));
        match (run(&fast, &feeds, &fetches), run(&slow, &feeds, &fetches)) {
            (Ok(got), Ok(want)) => {
                for (got, want) in got.iter().zip(&want) {
                    assert_same(got, want);
                }
            }
            (Err(got), Err(_)) => {
                let possible = possible_errors(&slow, &g, &feeds);
                prop_assert!(possible.iter().any(|e| e == got.message()), "{got}: {possible:?}");
            }
            (got, want) => prop_assert!(false, "{got:?} instead of {want:?}"),
        }
    }
}
