//! Tensors of impossible shape or absurd size.

use super::fixture::*;
use Code::{InvalidArgument, ResourceExhausted};
use ferroflow_core::{Code, DType};
use ferroflow_proto::tensorflow as pb;

#[tokio::test(flavor = "multi_thread")]
async fn impossible_constants() {
    let f = Fixture::start().await;
    let one = |p: pb::TensorProto| pb::TensorProto { float_val: vec![1.0], ..p };
    for dims in [&[-5][..], &[i64::MIN], &[1 << 40, 1 << 40], &[0, i64::MAX, 2], &[1; 300]] {
        let x = constant("x", one(tensor(DType::Float, dims)));
        f.refuses(vec![x], InvalidArgument, "{{node x}}").await;
    }
    // One value that is declared to repeat: no memory must be allocated for that.
    let x = constant("x", one(tensor(DType::Float, &[1 << 40])));
    f.refuses(vec![x], InvalidArgument, "{{node x}}").await;
    let text =
        pb::TensorProto { string_val: vec!["text".into()], ..tensor(DType::String, &[1 << 40]) };
    f.refuses(vec![constant("x", text)], InvalidArgument, "{{node x}}").await;
    for dtype in [DType::Resource, DType::Variant] {
        let x = constant("x", tensor(dtype, &[1 << 40]));
        f.refuses(vec![x], InvalidArgument, "{{node x}}").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn contents_of_the_wrong_length() {
    let f = Fixture::start().await;
    let content = |dtype, dims: &[i64], bytes: &'static [u8]| {
        let tensor_content = bytes.into();
        constant("x", pb::TensorProto { tensor_content, ..tensor(dtype, dims) })
    };
    for x in [
        content(DType::Float, &[3], b"12345"),
        content(DType::Float, &[3], b"1234567890123"),
        content(DType::Float, &[1 << 40], b"1234"),
        content(DType::Bool, &[2], b"1"),
        content(DType::String, &[2], b"\x01"),
        content(DType::String, &[2], b"\x01\x05ab"),
        content(DType::String, &[1 << 40], b"\x01a"),
        content(DType::String, &[1], b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"),
        content(DType::Resource, &[1], b"\x01\xff"),
    ] {
        f.refuses(vec![x], InvalidArgument, "{{node x}}").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn impossible_shape_attributes() {
    let f = Fixture::start().await;
    for dims in [&[-7][..], &[1 << 40, 1 << 40], &[1; 300]] {
        for op in ["Placeholder", "VariableV2", "VarHandleOp"] {
            let x = node("x", op, &[]).attr("dtype", DType::Float).attr("shape", shape(dims));
            f.refuses(vec![x], InvalidArgument, "{{node x}}").await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn absurd_fills() {
    let f = Fixture::start().await;
    let fill = || float_op("x", "Fill", &["dims", "a"]).attr("index_type", DType::Int64);
    let cases: [(&[i64], Code); 5] = [
        (&[1 << 60], ResourceExhausted),
        (&[1 << 44], ResourceExhausted),
        (&[1 << 30, 1 << 30], ResourceExhausted),
        (&[1 << 40, 1 << 40], InvalidArgument),
        (&[-3], InvalidArgument),
    ];
    for (dims, code) in cases {
        let nodes = vec![int64s("dims", dims), scalar("a", 1.0), fill()];
        f.refuses(nodes, code, "{{node x}}").await;
        let text = pb::TensorProto { string_val: vec!["a".into()], ..tensor(DType::String, &[]) };
        let x = fill().attr("T", DType::String);
        f.refuses(vec![int64s("dims", dims), constant("a", text), x], code, "{{node x}}").await;
    }
    // Strings take more memory than their text.
    let text = constant("a", tensor(DType::String, &[]));
    let x = fill().attr("T", DType::String);
    f.refuses(vec![int64s("dims", &[1 << 32]), text, x], ResourceExhausted, "{{node x}}").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn other_ops_with_large_results() {
    let f = Fixture::start().await;
    let big = |values: &[i64]| int64s("n", values);
    let int64 =
        |name: &str, op: &str, inputs: &[&str]| node(name, op, inputs).attr("T", DType::Int64);
    let x = float_op("x", "Tile", &["v", "n"]).attr("Tmultiples", DType::Int64);
    let v = constant("v", tensor(DType::Float, &[8]));
    f.refuses(vec![v, big(&[1 << 50]), x], ResourceExhausted, "{{node x}}").await;
    let x = float_op("x", "BroadcastTo", &["v", "n"]).attr("Tidx", DType::Int64);
    let v = constant("v", tensor(DType::Float, &[1]));
    f.refuses(vec![v, big(&[1 << 50]), x], ResourceExhausted, "{{node x}}").await;
    let scalar64 = |name: &str, value: i64| {
        constant(name, pb::TensorProto { int64_val: vec![value], ..tensor(DType::Int64, &[]) })
    };
    let x = node("x", "Range", &["from", "to", "by"]).attr("Tidx", DType::Int64);
    let nodes = vec![scalar64("from", 0), scalar64("to", 1 << 60), scalar64("by", 1), x];
    f.refuses(nodes, ResourceExhausted, "{{node x}}").await;
    let x = int64("x", "RandomUniform", &["n"]).attr("dtype", DType::Float);
    f.refuses(vec![big(&[1 << 50]), x], ResourceExhausted, "{{node x}}").await;
    let x = float_op("x", "Pad", &["v", "n"]).attr("Tpaddings", DType::Int64);
    let pads = pb::TensorProto { int64_val: vec![1 << 50, 0], ..tensor(DType::Int64, &[1, 2]) };
    let v = constant("v", tensor(DType::Float, &[1]));
    f.refuses(vec![v, constant("n", pads), x], ResourceExhausted, "{{node x}}").await;
}
