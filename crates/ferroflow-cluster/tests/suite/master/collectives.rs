//! TensorFlow's collective ops between tasks.

use crate::master::fixture::*;
use ferroflow_core::{Code, DType, PartialShape, Tensor};
use ferroflow_graph::{AttrList, AttrValue, Attrs, GraphDef, NodeDef};

const TASKS: [&str; 3] = [PS, WORKER0, WORKER1];

fn node(name: &str, op: &str, inputs: &[&str], device: &str, attrs: Attrs) -> NodeDef {
    NodeDef {
        name: name.into(),
        op: op.into(),
        inputs: inputs.iter().map(|i| i.to_string()).collect(),
        device: device.into(),
        attrs,
        ..NodeDef::default()
    }
}

fn keys(size: i64, group: i64, instance: i64) -> Attrs {
    Attrs::new()
        .with("T", DType::Float)
        .with("group_size", size)
        .with("group_key", group)
        .with("instance_key", instance)
}

fn constant(name: &str, device: &str, value: Tensor) -> NodeDef {
    let attrs = Attrs::new().with("dtype", value.dtype()).with("value", value);
    node(name, "Const", &[], device, attrs)
}

fn graph(nodes: Vec<NodeDef>) -> GraphDef {
    GraphDef { nodes, ..GraphDef::default() }
}

/// Reduces `count` values of each task.
fn reduction(count: usize, merge: &str, last: &str) -> GraphDef {
    let mut nodes = Vec::new();
    for (i, task) in TASKS.into_iter().enumerate() {
        let values: Vec<f32> = (0..count).map(|j| (i + j % 5) as f32).collect();
        let input = format!("x{i}");
        nodes.push(constant(&input, task, Tensor::vector(&values)));
        let attrs = keys(3, 1, 7)
            .with("merge_op", merge)
            .with("final_op", last)
            .with("subdiv_offsets", AttrValue::List(AttrList::Ints(vec![0])));
        nodes.push(node(&format!("y{i}"), "CollectiveReduce", &[&input], task, attrs));
    }
    graph(nodes)
}

#[tokio::test(flavor = "multi_thread")]
async fn values_of_all_tasks_are_reduced() {
    let cluster = Cluster::start();
    for (count, merge, last) in [(1, "Add", "Id"), (100, "Add", "Div"), (40_000, "Max", "Id")] {
        let session = cluster.session(WORKER1, &reduction(count, merge, last)).await;
        let want: Vec<f32> = (0..count)
            .map(|j| j % 5)
            .map(|x| match (merge, last) {
                ("Max", _) => x as f32 + 2.0,
                (_, "Div") => x as f32 + 1.0,
                _ => 3.0 * x as f32 + 3.0,
            })
            .collect();
        for _ in 0..2 {
            let got = session.run(vec![], &["y0", "y1", "y2"], &[], Some(FOREVER)).await.unwrap();
            for t in got {
                assert_eq!(t, Tensor::vector(&want), "{count} {merge} {last}");
            }
        }
        session.close().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn values_are_gathered_in_the_order_of_tasks_and_sent_to_all() {
    let cluster = Cluster::start();
    let mut nodes = Vec::new();
    for (i, task) in TASKS.into_iter().enumerate() {
        let (input, shape) = (format!("x{i}"), PartialShape::from([6usize]));
        nodes.push(constant(&input, task, Tensor::vector(&[i as f32, 0.5])));
        let attrs = keys(3, 2, 1).with("shape", shape);
        nodes.push(node(&format!("all{i}"), "CollectiveGather", &[&input], task, attrs));
        let attrs = keys(3, 2, 2).with("shape", PartialShape::from([2usize]));
        nodes.push(match i {
            1 => node("got1", "CollectiveBcastSend", &[&input], task, attrs),
            _ => node(&format!("got{i}"), "CollectiveBcastRecv", &[], task, attrs),
        });
    }
    let session = cluster.session(WORKER0, &graph(nodes)).await;
    let fetches = ["all0", "all1", "all2", "got0", "got1", "got2"];
    let got = session.run(vec![], &fetches, &[], Some(FOREVER)).await.unwrap();
    for t in &got[..3] {
        assert_eq!(t, &Tensor::vector(&[0f32, 0.5, 1.0, 0.5, 2.0, 0.5]));
    }
    for t in &got[3..] {
        assert_eq!(t, &Tensor::vector(&[1f32, 0.5]));
    }
}

/// Exchanges rows between all tasks, then sums them, through communicators with these ranks.
fn communicators(group: i32, ranks: [i32; 3]) -> GraphDef {
    let mut nodes = Vec::new();
    for (i, task) in TASKS.into_iter().enumerate() {
        let mut given = |name: &str, value: Tensor| {
            let name = format!("{name}{i}");
            nodes.push(constant(&name, task, value));
            name
        };
        let inputs = [
            given("group", Tensor::scalar(group)),
            given("rank", Tensor::scalar(ranks[i])),
            given("size", Tensor::scalar(3i32)),
        ];
        let first = 10.0 * i as f32;
        let x = given("x", Tensor::vector(&[first, first + 1.0, first + 2.0]));
        let groups = given("groups", Tensor::vector::<i32>(&[]));
        let (meet, rows) = (format!("meet{i}"), format!("rows{i}"));
        let inputs = inputs.each_ref().map(String::as_str);
        let op = "CollectiveInitializeCommunicator";
        nodes.push(node(&meet, op, &inputs, task, Attrs::new()));
        let attrs = Attrs::new().with("T", DType::Float);
        let inputs = [x.as_str(), &meet, &groups];
        nodes.push(node(&rows, "CollectiveAllToAllV3", &inputs, task, attrs.clone()));
        let (attrs, after) = (attrs.with("reduction", "Add"), format!("^{rows}"));
        let inputs = [x.as_str(), &meet, &groups, &after];
        nodes.push(node(&format!("sum{i}"), "CollectiveReduceV3", &inputs, task, attrs));
    }
    graph(nodes)
}

#[tokio::test(flavor = "multi_thread")]
async fn communicators_are_made_together_once_and_number_their_collectives() {
    let cluster = Cluster::start();
    let twice = cluster.session(WORKER1, &communicators(4, [2, 0, 2])).await;
    let e = twice.run(vec![], &["sum0", "sum1", "sum2"], &[], Some(FOREVER)).await.unwrap_err();
    assert_eq!(e.code(), Code::InvalidArgument, "{e}");
    assert!(e.message().contains("Duplicate ranks"), "{e}");
    twice.close().await.unwrap();
    // The failure has no effect on later steps.
    let session = cluster.session(WORKER1, &communicators(4, [2, 0, 1])).await;
    let fetches = ["rows0", "rows1", "rows2", "sum0", "sum1", "sum2"];
    let got = session.run(vec![], &fetches, &[], Some(FOREVER)).await.unwrap();
    for (i, rows) in got[..3].iter().enumerate() {
        let row = i as f32;
        // TensorFlow's rule: the row with the receiver's number, in the order of the senders'
        // ranks.
        assert_eq!(rows, &Tensor::vector(&[10.0 + row, 20.0 + row, row]));
    }
    for sum in &got[3..] {
        assert_eq!(sum, &Tensor::vector(&[30f32, 33.0, 36.0]));
    }
    let e = session.run(vec![], &fetches, &[], Some(FOREVER)).await.unwrap_err();
    assert_eq!(e.code(), Code::AlreadyExists, "{e}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_or_dead_member_fails_the_collective() {
    let mut cluster = Cluster::start();
    let session = cluster.session(WORKER0, &reduction(4, "Add", "Id")).await;
    let soon = std::time::Duration::from_millis(50);
    let e = session.run(vec![], &["y0", "y1"], &[], Some(soon)).await.unwrap_err();
    assert_eq!(e.code(), Code::DeadlineExceeded);
    session.run(vec![], &["y0", "y1", "y2"], &[], Some(FOREVER)).await.unwrap();
    cluster.kill(WORKER1);
    let e = session.run(vec![], &["y0", "y1", "y2"], &[], Some(FOREVER)).await.unwrap_err();
    assert_eq!(e.code(), Code::Unavailable, "{e}");
}
