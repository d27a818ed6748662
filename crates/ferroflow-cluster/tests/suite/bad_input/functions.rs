//! Functions that call themselves, call too deep, or do not fit their calls.

use super::fixture::*;
use Code::{InvalidArgument, NotFound};
use ferroflow_core::{Code, DType, Tensor};
use ferroflow_proto::tensorflow as pb;
use pb::attr_value::Value;

/// A function from `x: float` to `y: float`.
fn function(name: &str, nodes: Vec<pb::NodeDef>, y: &str) -> pb::FunctionDef {
    let arg = |name: &str| pb::op_def::ArgDef {
        name: name.into(),
        r#type: DType::Float.number(),
        ..Default::default()
    };
    pb::FunctionDef {
        signature: Some(pb::OpDef {
            name: name.into(),
            input_arg: vec![arg("x")],
            output_arg: vec![arg("y")],
            ..Default::default()
        }),
        node_def: nodes,
        ret: [("y".to_string(), y.to_string())].into(),
        ..Default::default()
    }
}

fn call(name: &str, input: &str, f: &str) -> pb::NodeDef {
    node(name, "PartitionedCall", &[input])
        .attr("Tin", vec![DType::Float])
        .attr("Tout", vec![DType::Float])
        .attr("f", func(f))
}

fn with_functions(nodes: Vec<pb::NodeDef>, function: Vec<pb::FunctionDef>) -> pb::GraphDef {
    let library = Some(pb::FunctionDefLibrary { function, ..Default::default() });
    pb::GraphDef { library, ..graph(nodes) }
}

#[tokio::test(flavor = "multi_thread")]
async fn functions_that_call_themselves() {
    let f = Fixture::start().await;
    let a = || scalar("a", 1.0);
    let by_call = function("f", vec![call("n", "x", "f")], "n:output:0");
    let g = with_functions(vec![a(), call("x", "a", "f")], vec![by_call]);
    f.refuses_graph(g, InvalidArgument, "{{node ").await;
    let by_op = function("f", vec![node("n", "f", &["x"])], "n:y:0");
    let g = with_functions(vec![a(), node("x", "f", &["a"])], vec![by_op]);
    f.refuses_graph(g, InvalidArgument, "{{node ").await;
    let each_other = vec![
        function("f", vec![node("n", "g", &["x"])], "n:y:0"),
        function("g", vec![call("n", "x", "f")], "n:output:0"),
    ];
    let g = with_functions(vec![a(), node("x", "f", &["a"])], each_other);
    f.refuses_graph(g, InvalidArgument, "{{node ").await;
    // Two calls each: the tree of calls is exponential.
    let twice =
        function("f", vec![call("n", "x", "f"), call("m", "n:output:0", "f")], "m:output:0");
    let g = with_functions(vec![a(), call("x", "a", "f")], vec![twice]);
    f.refuses_graph(g, InvalidArgument, "{{node ").await;
    // As the condition and the body of a loop.
    let x = node("x", "While", &["a"])
        .attr("T", vec![DType::Float])
        .attr("cond", func("f"))
        .attr("body", func("f"));
    let inner = node("n", "While", &["x"])
        .attr("T", vec![DType::Float])
        .attr("cond", func("f"))
        .attr("body", func("f"));
    let g = with_functions(vec![a(), x], vec![function("f", vec![inner], "n:output:0")]);
    f.refuses_graph(g, InvalidArgument, "{{node ").await;
}

/// `f0` calls `f1` calls `f2` … calls `Neg`.
fn nested(n: usize, by_op: bool) -> pb::GraphDef {
    let one = |i: usize| {
        let callee = format!("f{}", i + 1);
        match (i + 1 == n, by_op) {
            (true, _) => function(&format!("f{i}"), vec![float_op("n", "Neg", &["x"])], "n:y:0"),
            (_, true) => function(&format!("f{i}"), vec![node("n", &callee, &["x"])], "n:y:0"),
            _ => function(&format!("f{i}"), vec![call("n", "x", &callee)], "n:output:0"),
        }
    };
    with_functions(vec![scalar("a", 1.0), call("x", "a", "f0")], (0..n).map(one).collect())
}

#[tokio::test(flavor = "multi_thread")]
async fn deep_nesting() {
    let f = Fixture::start().await;
    for by_op in [false, true] {
        let got = f.fetch(nested(200, by_op), "x:0").await.expect("deep, but not too deep");
        assert_eq!(got, Tensor::scalar(-1.0f32));
        f.refuses_graph(nested(10_000, by_op), InvalidArgument, "{{node ").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn functions_that_do_not_fit() {
    let f = Fixture::start().await;
    let a = || scalar("a", 1.0);
    let g = graph(vec![a(), call("x", "a", "gone")]);
    f.refuses_graph(g, NotFound, "gone").await;
    let calls = |body| with_functions(vec![a(), node("x", "f", &["a"])], vec![body]);
    let mut no_result = function("f", vec![], "x");
    no_result.ret.clear();
    f.refuses_graph(calls(no_result), InvalidArgument, "{{node x}}").await;
    f.refuses_graph(calls(function("f", vec![], "gone:y:0")), InvalidArgument, "{{node x}}").await;
    f.refuses_graph(calls(function("f", vec![], "gone:y:0")), InvalidArgument, "{{node x}}").await;
    let mut wrong_type = function("f", vec![], "x");
    if let Some(signature) = &mut wrong_type.signature {
        signature.output_arg[0].r#type = DType::Int32.number();
    }
    f.refuses_graph(calls(wrong_type), InvalidArgument, "{{node x}}").await;
    let unknown = function("f", vec![node("n", "NoSuchOp", &["x"])], "n:y:0");
    f.refuses_graph(calls(unknown), NotFound, "NoSuchOp").await;
    let cycle = vec![float_op("p", "Neg", &["q:y:0"]), float_op("q", "Neg", &["p:y:0"])];
    f.refuses_graph(calls(function("f", cycle, "p:y:0")), InvalidArgument, "cycle").await;
    let bad_index = function("f", vec![float_op("n", "Neg", &["x"])], "n:y:99999999999999999999");
    f.refuses_graph(calls(bad_index), InvalidArgument, "{{node x}}").await;
    // Fewer arguments than it takes.
    let x = node("x", "PartitionedCall", &[])
        .attr("Tin", Value::List(Box::default()))
        .attr("Tout", vec![DType::Float])
        .attr("f", func("f"));
    let g = with_functions(vec![x], vec![function("f", vec![], "x")]);
    f.refuses_graph(g, InvalidArgument, "{{node x}}").await;
    // The call declares results of another type.
    let x = call("x", "a", "f").attr("Tout", vec![DType::Int32]);
    let x2 = node("x2", "Neg", &["x"]).attr("T", DType::Int32);
    let g = with_functions(vec![a(), x, x2], vec![function("f", vec![], "x")]);
    let e = f.fetch(g, "x2:0").await.expect_err("a float is no int");
    expect(&e, InvalidArgument, "{{node ");
    f.works().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn libraries_that_contradict() {
    let f = Fixture::start().await;
    let two = vec![
        function("f", vec![], "x"),
        function("f", vec![float_op("n", "Neg", &["x"])], "n:y:0"),
    ];
    let text = "a different function with the same name already exists";
    f.refuses_graph(with_functions(vec![], two), InvalidArgument, text).await;
    let shadow = vec![function("Relu", vec![], "x")];
    let text = "an op with the same name already exists";
    f.refuses_graph(with_functions(vec![], shadow), InvalidArgument, text).await;
}

/// Nested function attributes.
#[tokio::test(flavor = "multi_thread")]
async fn deeply_nested_attributes() {
    let f = Fixture::start().await;
    let mut value = func("f");
    for _ in 0..2000 {
        let attr = [("g".to_string(), pb::AttrValue { value: Some(value) })].into();
        value = Value::Func(pb::NameAttrList { name: "f".into(), attr });
    }
    let x = call("x", "a", "f").attr("f", value);
    // Written by hand, because a recursive encoder could overflow its stack.
    let stack = std::thread::Builder::new().stack_size(256 << 20);
    let encoded = stack.spawn(move || {
        let graph_def = Some(graph(vec![scalar("a", 1.0), x]));
        let request = pb::CreateSessionRequest { graph_def, ..Default::default() };
        encode(&request)
    });
    let message = encoded.expect("a thread").join().expect("an encoded graph");
    let e = f.call("MasterService/CreateSession", message).await.expect_err("too deep");
    expect(&e, InvalidArgument, "malformed message");
    f.works().await;
}
