//! Placement by cost, and optimization of parts on their own tasks.

use crate::master::fixture::*;
use ferroflow_cluster::{ConnectOptions, RemoteSession};
use ferroflow_core::{Code, DType, PartialShape, Tensor};
use ferroflow_graph::passes::CostModel;
use ferroflow_graph::{AttrList, AttrValue, GraphDef};
use ferroflow_runtime::Placement;
use ferroflow_testing::graph;

/// Two products that the cost model estimates as long, and their difference.
fn two_products() -> GraphDef {
    graph()
        .dtype(DType::Float)
        .placeholder("x")
        .attr("shape", PartialShape::from([60, 60]))
        .op("a", "MatMul", &["x", "x"])
        .t()
        .op("aa", "MatMul", &["a", "x"])
        .t()
        .op("b", "MatMul", &["x", "x"])
        .t()
        .op("bb", "MatMul", &["x", "b"])
        .t()
        .op("y", "Sub", &["aa", "bb"])
        .t()
        .build()
}

fn by_cost() -> ConnectOptions {
    let model = CostModel::fixed(1e6);
    ConnectOptions { placement: Placement::ByCost(Box::new(model)), ..ConnectOptions::default() }
}

async fn largest(session: &RemoteSession) -> f32 {
    let values: Vec<f32> = (0..3600).map(|i| (i % 5) as f32 - 2.0).collect();
    let x = Tensor::from_slice([60, 60], &values).unwrap();
    let y = session.run(vec![("x".into(), x)], &["y"], &[], Some(FOREVER)).await.unwrap();
    y[0].as_slice::<f32>().unwrap().iter().fold(0f32, |m, y| m.max(y.abs()))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_step_placed_by_cost_runs_on_several_tasks() {
    let mut cluster = Cluster::start();
    let session = cluster.session_with(WORKER0, &two_products(), by_cost()).await.unwrap();
    // More runs than the measured one: the step is in fact small, so it moves to the master.
    for _ in 0..2 {
        assert_eq!(largest(&session).await, 0.0);
    }
    let spread = cluster.session_with(WORKER0, &two_products(), by_cost()).await.unwrap();
    assert_eq!(largest(&spread).await, 0.0);
    cluster.kill(WORKER1);
    let x = Tensor::from_slice([60, 60], &[0f32; 3600]).unwrap();
    let e = spread.run(vec![("x".into(), x)], &["y"], &[], Some(FOREVER)).await.unwrap_err();
    assert!(matches!(e.code(), Code::Unavailable | Code::Aborted), "{e}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_error_does_not_wait_for_a_queue_of_another_task() {
    let cluster = Cluster::start();
    let floats = || AttrValue::List(AttrList::Types(vec![DType::Float]));
    let def = graph()
        .dtype(DType::Float)
        .op("queue", "FIFOQueueV2", &[])
        .attr("component_types", floats())
        .device(PS)
        .op("q", "QueueDequeueV2", &["queue"])
        .attr("component_types", floats())
        .device(PS)
        .placeholder("x")
        .placeholder("w")
        .op("p", "Mul", &["x", "w"])
        .t()
        .device(WORKER1)
        .op("y", "AddV2", &["p", "q"])
        .t()
        .device(WORKER1)
        .build();
    let session = cluster.session(WORKER0, &def).await;
    let ones = |n: usize| Tensor::from_slice([n], &vec![1f32; n]).unwrap();
    let feeds = vec![("x".into(), ones(2)), ("w".into(), ones(3))];
    let e = session.run(feeds, &["y"], &[], Some(FOREVER)).await.unwrap_err();
    assert_eq!(e.code(), Code::InvalidArgument, "{e}");
}
