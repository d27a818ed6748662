//! Invalid graphs.

use super::fixture::*;
use Code::{InvalidArgument, NotFound};
use ferroflow_core::{Code, DType};
use ferroflow_proto::tensorflow as pb;

#[tokio::test(flavor = "multi_thread")]
async fn unknown_ops() {
    let f = Fixture::start().await;
    f.refuses(vec![node("x", "NoSuchOp", &[])], NotFound, "Op type not registered 'NoSuchOp'")
        .await;
    f.refuses(vec![node("x", "NoSuchOp", &[])], NotFound, "{{node x}}").await;
    f.refuses(vec![node("x", "", &[])], NotFound, "{{node x}}").await;
    // An op with a signature but without a kernel.
    f.refuses(vec![node("x", "Fact", &[])], Code::Unimplemented, "{{node x}}").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn cycles_outside_loops() {
    let f = Fixture::start().await;
    let cycle = vec![float_op("x", "Neg", &["y"]), float_op("y", "Neg", &["x"])];
    f.refuses(cycle, InvalidArgument, "cycle with 2 nodes, including: x").await;
    f.refuses(vec![node("x", "NoOp", &["^x"])], InvalidArgument, "cycle").await;
    f.refuses(vec![float_op("x", "Neg", &["x"])], InvalidArgument, "cycle").await;
    // Not every cycle through a NextIteration is a loop.
    let cycle = vec![float_op("x", "NextIteration", &["x"])];
    f.refuses(cycle, InvalidArgument, "cycle").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn dangling_and_duplicate_names() {
    let f = Fixture::start().await;
    let unknown = "Node 'x': Unknown input node";
    f.refuses(vec![float_op("x", "Neg", &["gone"])], InvalidArgument, unknown).await;
    f.refuses(vec![node("x", "NoOp", &["^gone"])], InvalidArgument, unknown).await;
    f.refuses(vec![float_op("x", "Neg", &[""])], InvalidArgument, unknown).await;
    f.refuses(vec![float_op("x", "Neg", &[":0"])], InvalidArgument, unknown).await;
    let twice = vec![node("x", "NoOp", &[]), node("x", "NoOp", &[])];
    f.refuses(twice, InvalidArgument, "'x'").await;

    let session_handle = f.create(graph(vec![scalar("x", 1.0)])).await.expect("a session");
    let request = pb::ExtendSessionRequest {
        session_handle: session_handle.clone(),
        graph_def: Some(graph(vec![scalar("y", 1.0), scalar("x", 1.0)])),
        current_graph_version: 0,
    };
    let e = f.call("MasterService/ExtendSession", encode(&request)).await.expect_err("a duplicate");
    expect(&e, InvalidArgument, "includes node 'x', which was created by a previous call");
    // Refused nodes were not added.
    let graph_def = Some(graph(vec![scalar("y", 1.0)]));
    let request = pb::ExtendSessionRequest { session_handle, graph_def, current_graph_version: 0 };
    f.call("MasterService/ExtendSession", encode(&request)).await.expect("y is free");
}

#[tokio::test(flavor = "multi_thread")]
async fn hostile_names() {
    let f = Fixture::start().await;
    for name in ["", "_x", "a b", "a\nb", "a\0b", "\u{1b}[31m", "é", "^x", "x:0"] {
        let e = f.create(graph(vec![node(name, "NoOp", &[])])).await.expect_err(name);
        expect(&e, InvalidArgument, "Illegal op name");
    }
    f.works().await;
    let long = "a".repeat(1 << 20);
    let mut x = scalar(&long, 3.0);
    f.fetch(graph(vec![x.clone()]), &format!("{long}:0")).await.expect("long, but a name");
    x.op = "A".repeat(1 << 20);
    let e = f.create(graph(vec![x])).await.expect_err("an unknown op");
    assert_eq!(e.code(), NotFound);
    assert!(e.message().len() < 8 << 10, "headers beyond 8 KiB are refused by clients");
    for device in ["/nonsense", "/job:", "/device:CPU:x", "/device:CPU:99999999999999999999"] {
        let x = pb::NodeDef { device: device.into(), ..scalar("x", 1.0) };
        f.refuses(vec![x], InvalidArgument, "x").await;
    }
    let x = pb::NodeDef { device: format!("/job:{long}"), ..scalar("x", 1.0) };
    f.refuses(vec![x], InvalidArgument, "x").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_attributes() {
    let f = Fixture::start().await;
    let a = || scalar("a", 1.0);
    let x = node("x", "Const", &[]).attr("dtype", DType::Float).attr("value", 7i64);
    f.refuses(vec![x], InvalidArgument, "'value'").await;
    let x = node("x", "Const", &[]).attr("dtype", DType::Float).attr("value", 7i64);
    f.refuses(vec![x], InvalidArgument, "{{node x}}").await;
    let x = node("x", "Const", &[]).attr("dtype", DType::Float);
    f.refuses(vec![x], InvalidArgument, "NodeDef missing attr 'value'").await;
    f.refuses(vec![node("x", "Placeholder", &[])], NotFound, "No attr named 'dtype'").await;
    f.refuses(vec![node("x", "Placeholder", &[])], NotFound, "{{node x}}").await;
    let x = float_op("x", "Neg", &["a"]).attr("colour", "red");
    f.refuses(vec![a(), x], InvalidArgument, "mentions attr 'colour' not in Op<name=Neg").await;
    let x = node("x", "Relu", &["a"]).attr("T", DType::String);
    f.refuses(vec![a(), x], InvalidArgument, "not in the list of allowed values").await;
    let x = float_op("x", "MatMul", &["a", "a"]).attr("transpose_a", 1i64);
    f.refuses(vec![a(), x], InvalidArgument, "'transpose_a'").await;
    let x = node("x", "IdentityN", &[]).attr("T", DType::Float);
    f.refuses(vec![x], InvalidArgument, "'T'").await;
    let x = node("x", "Const", &[])
        .attr("dtype", DType::Int32)
        .attr("value", tensor(DType::Float, &[]));
    f.refuses(vec![x], InvalidArgument, "{{node x}}").await;
    for number in [0, 26, 101, -1, i32::MAX] {
        let x = node("x", "Neg", &["a"]).attr("T", pb::attr_value::Value::Type(number));
        f.refuses(vec![a(), x], InvalidArgument, "{{node x}}").await;
    }
    // A very long value is not printed.
    let x = float_op("x", "Neg", &["a"]).attr("T", &*"long".repeat(1 << 18));
    f.refuses(vec![a(), x], InvalidArgument, "{{node x}}").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_arity_and_types() {
    let f = Fixture::start().await;
    let a = || scalar("a", 1.0);
    f.refuses(vec![a(), float_op("x", "Add", &["a"])], InvalidArgument, "'x'").await;
    f.refuses(vec![a(), float_op("x", "Neg", &["a", "a"])], InvalidArgument, "'x'").await;
    f.refuses(vec![a(), float_op("x", "Neg", &["^a", "a"])], InvalidArgument, "'x'").await;
    let x = node("x", "Neg", &["a"]).attr("T", DType::Int32);
    let text = "Input 0 of node x was passed float from a:0 incompatible with expected int32.";
    f.refuses(vec![a(), x], InvalidArgument, text).await;
    for slot in ["7", "4294967295", "4294967296", "99999999999999999999"] {
        let x = float_op("x", "Neg", &[&format!("a:{slot}")]);
        f.refuses(vec![a(), x], InvalidArgument, "Node 'x': Connecting to invalid output").await;
    }
    for slot in ["-1", "x", "", "0x0"] {
        let x = float_op("x", "Neg", &[&format!("a:{slot}")]);
        f.refuses(vec![a(), x], InvalidArgument, "Node 'x': Unknown input node").await;
    }
    // A plain tensor where a reference is needed.
    let x = float_op("x", "Assign", &["a", "a"]);
    f.refuses(vec![a(), x], InvalidArgument, "node x").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn absurd_counts() {
    let f = Fixture::start().await;
    for n in [-1, 0] {
        let x = float_op("x", "AddN", &[]).attr("N", n);
        f.refuses(vec![x], InvalidArgument, "{{node x}}").await;
    }
    for n in [1 << 31, 1 << 40, i64::MAX] {
        let x = float_op("x", "AddN", &["a"]).attr("N", n);
        f.refuses(vec![scalar("a", 1.0), x], InvalidArgument, "{{node x}}").await;
        let x = float_op("x", "Unpack", &["a"]).attr("num", n);
        f.refuses(vec![scalar("a", 1.0), x], InvalidArgument, "{{node x}}").await;
    }
    let x = float_op("x", "Unpack", &["a"]).attr("num", -3i64);
    f.refuses(vec![scalar("a", 1.0), x], InvalidArgument, "{{node x}}").await;
    // Each is allowed alone; all together would take gigabytes.
    let unpack = |i: usize| float_op(&format!("u{i}"), "Unpack", &["a"]).attr("num", 1i64 << 19);
    let mut nodes: Vec<_> = (0..2000).map(unpack).collect();
    nodes.push(scalar("a", 1.0));
    f.refuses(nodes, Code::ResourceExhausted, "inputs and outputs").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn unsupported_graph_versions() {
    let f = Fixture::start().await;
    let mut g = graph(vec![scalar("x", 1.0)]);
    g.versions =
        Some(pb::VersionDef { producer: 1645, min_consumer: 100_000, ..Default::default() });
    f.refuses_graph(g.clone(), InvalidArgument, "min consumer version 100000").await;
    g.versions = Some(pb::VersionDef { producer: -1, ..Default::default() });
    f.refuses_graph(g, InvalidArgument, "producer version -1").await;
}

/// Frames that do not nest: edges out of a loop without an Exit, and into a loop without an Enter.
#[tokio::test(flavor = "multi_thread")]
async fn broken_loops() {
    let f = Fixture::start().await;
    let enter = |name: &str, from: &str, frame: &str, parallel: i64| {
        let parallel_attr = ("parallel_iterations", parallel);
        float_op(name, "Enter", &[from])
            .attr("frame_name", frame)
            .attr(parallel_attr.0, parallel_attr.1)
    };
    let a = || scalar("a", 1.0);
    for parallel in [0, -4, i64::MIN] {
        let nodes = vec![a(), enter("x", "a", "f", parallel)];
        f.refuses(nodes, InvalidArgument, "{{node x}}").await;
    }
    let x = float_op("x", "Exit", &["a"]);
    f.refuses(vec![a(), x], InvalidArgument, "{{node x}}").await;
    let x = float_op("x", "AddV2", &["e", "a"]);
    f.refuses(vec![a(), enter("e", "a", "f", 1), x], InvalidArgument, "{{node x}}").await;
    let nodes = vec![
        a(),
        enter("e", "a", "f", 1),
        enter("i", "a", "g", 1),
        float_op("m", "Merge", &["e", "n"]).attr("N", 2i64),
        float_op("n", "NextIteration", &["i"]),
        float_op("x", "Exit", &["m"]),
    ];
    f.refuses(nodes, InvalidArgument, "{{node m}}").await;
}
