//! A fused node waits for all its inputs, so it must not contain nodes that could fail without
//! them.

use crate::common::{error_of, request, soon, start, task};
use ferroflow_core::{CancelToken, Code, DType, Tensor};
use ferroflow_graph::{AttrList, AttrValue, GraphDef};
use ferroflow_runtime::{RunOptions, RunRequest, SessionOptions, TaskSession};
use ferroflow_testing::{GraphBuilder, graph};

fn session(graph: &GraphDef) -> TaskSession {
    let options = SessionOptions { isolate_state: true, ..SessionOptions::default() };
    TaskSession::new(task(), graph, options).unwrap()
}

fn floats() -> AttrValue {
    AttrValue::List(AttrList::Types(vec![DType::Float]))
}

/// `p`, the product of two floats, and `q`, the element of a queue.
fn inputs() -> GraphBuilder {
    graph()
        .dtype(DType::Float)
        .placeholder("x")
        .placeholder("w")
        .op("queue", "FIFOQueueV2", &[])
        .attr("component_types", floats())
        .op("put", "QueueEnqueueV2", &["queue", "x"])
        .attr("Tcomponents", floats())
        .op("q", "QueueDequeueV2", &["queue"])
        .attr("component_types", floats())
        .op("p", "Mul", &["x", "w"])
        .t()
}

fn vector(n: usize) -> Tensor {
    Tensor::from_slice([n], &vec![1f32; n]).unwrap()
}

/// The names of the nodes in each fused node of the step for `y`, once the queue has an element.
fn fused(s: &TaskSession) -> Vec<Vec<String>> {
    let x = ("x", vector(2));
    s.run_blocking(request(std::slice::from_ref(&x), &[], &["put"])).unwrap();
    let options = RunOptions { output_partition_graphs: true, ..RunOptions::default() };
    let request = RunRequest { options, ..request(&[x, ("w", vector(2))], &["y"], &[]) };
    let graph = s.run_blocking(request).unwrap().partition_graphs.remove(0);
    let nodes = graph.nodes.into_iter().filter(|n| n.op.starts_with("_Fused"));
    nodes.map(|n| n.original_names).collect()
}

#[test]
fn an_error_does_not_wait_for_a_queue_that_stays_empty() {
    let g = inputs().op("y", "AddV2", &["p", "q"]).t().build();
    let s = session(&g);
    let misfits = [("x", vector(2)), ("w", vector(3))];
    let e = error_of(soon(&start(&s, request(&misfits, &["y"], &[]), CancelToken::new())));
    assert_eq!(e.code(), Code::InvalidArgument);
    assert!(e.message().contains("[[{{node p}}]]"), "{e}");
    assert_eq!(fused(&s), Vec::<Vec<String>>::new());
}

#[test]
fn an_error_does_not_wait_for_the_bias_of_its_product() {
    let matrix =
        |rows, columns| Tensor::from_slice([rows, columns], &vec![1f32; rows * columns]).unwrap();
    let g = inputs()
        .op("product", "MatMul", &["x", "w"])
        .t()
        .op("y", "BiasAdd", &["product", "q"])
        .t()
        .build();
    let s = session(&g);
    let misfits = [("x", matrix(2, 2)), ("w", matrix(3, 3))];
    let e = error_of(soon(&start(&s, request(&misfits, &["y"], &[]), CancelToken::new())));
    assert_eq!(e.code(), Code::InvalidArgument);
    assert!(e.message().contains("[[{{node product}}]]"), "{e}");
}

#[test]
fn what_waits_for_the_same_is_fused() {
    let g = inputs()
        .op("a", "AddV2", &["p", "q"])
        .t()
        .op("b", "Mul", &["a", "x"])
        .t()
        .op("y", "Sub", &["b", "w"])
        .t()
        .build();
    assert_eq!(fused(&session(&g)), [["y", "b", "a"]]);
}

#[test]
fn what_cannot_fail_may_wait() {
    let g = inputs().op("n", "Neg", &["p"]).t().op("y", "AddV2", &["n", "q"]).t().build();
    assert_eq!(fused(&session(&g)), [["y", "n"]]);
}
