//! Memory that one session has freed and another session gets.

use super::fixture::*;
use ferroflow_core::DType;
use ferroflow_proto::tensorflow as pb;

fn int32s(name: &str, values: &[i32]) -> pb::NodeDef {
    let shape = [values.len() as i64];
    constant(name, pb::TensorProto { int_val: values.to_vec(), ..tensor(DType::Int32, &shape) })
}

/// Tensors of `n` bytes of 0xa5 that are freed with the step.
fn secret(n: i32) -> pb::GraphDef {
    let value = pb::TensorProto { int_val: vec![0xa5], ..tensor(DType::UInt8, &[]) };
    let fill = |name: &str| node(name, "Fill", &["dims", "value"]).attr("T", DType::UInt8);
    let add =
        |name: &str, a: &str, b: &str| node(name, "BitwiseOr", &[a, b]).attr("T", DType::UInt8);
    graph(vec![
        int32s("dims", &[n]),
        constant("value", value),
        fill("a"),
        fill("b"),
        add("c", "a", "b"),
        node("size", "Size", &["c"]).attr("T", DType::UInt8),
    ])
}

/// A tensor of `n` bytes that the graph does not initialize.
fn unwritten(n: i32, dtype: DType) -> pb::GraphDef {
    let size = dtype.size().unwrap() as i32;
    let empty = node("x", "Empty", &["dims"]).attr("dtype", dtype).attr("init", false);
    graph(vec![int32s("dims", &[n / size]), empty])
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_does_not_see_what_another_has_freed() {
    let f = Fixture::start().await;
    for n in [8, 64, 1000, 5000, 100_000, 1 << 20, 5 << 20] {
        for dtype in [DType::UInt8, DType::Float, DType::Int64, DType::Bool] {
            f.fetch(secret(n), "size:0").await.unwrap();
            for _ in 0..2 {
                let got = f.fetch(unwritten(n, dtype), "x:0").await.unwrap();
                let seen = got.bytes().unwrap().iter().filter(|&&b| b != 0).count();
                assert_eq!(seen, 0, "{seen} of {n} bytes of another session in a {dtype} tensor");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn bools_are_valid_whatever_memory_they_get() {
    let f = Fixture::start().await;
    // Within one session, where freed memory may be seen.
    let both = |n: i32| {
        let mut nodes = secret(n).node;
        let empty = node("x", "Empty", &["dims", "^size"]).attr("dtype", DType::Bool);
        nodes.push(empty.attr("init", false));
        graph(nodes)
    };
    for n in [64, 5000, 1 << 20] {
        for _ in 0..3 {
            let got = f.fetch(both(n), "x:0").await.unwrap();
            assert!(got.bytes().unwrap().iter().all(|&b| b <= 1), "{n}");
        }
    }
}
