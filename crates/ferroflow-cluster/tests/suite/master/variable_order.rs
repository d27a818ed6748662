//! The order of reads and updates of a variable in a step over several tasks.

use crate::master::fixture::*;
use ferroflow_core::{DType, PartialShape};
use ferroflow_testing::{GraphBuilder, graph};

const TIMES: usize = 20;

/// A variable on the ps that `start` sets to 1, its update `add`, and constants.
fn variable() -> GraphBuilder {
    graph()
        .dtype(DType::Float)
        .constant("here", 5f32)
        .device(WORKER0)
        .constant("one", 1f32)
        .device(PS)
        .op("v", "VariableV2", &[])
        .attr("dtype", DType::Float)
        .attr("shape", PartialShape::scalar())
        .device(PS)
        .op("start", "Assign", &["v", "one"])
        .t()
        .device(PS)
        .op("add", "AssignAdd", &["v", "one"])
        .t()
        .device(PS)
        .op("read", "Identity", &["v"])
        .t()
        .device(PS)
}

/// Fetches together with the update, often; each time from the start.
async fn gives(graph: GraphBuilder, fetches: &[&str], want: &[f32]) {
    let cluster = Cluster::start();
    let session = cluster.session(WORKER0, &graph.build()).await;
    for _ in 0..TIMES {
        session.run(vec![], &[], &["start"], Some(FOREVER)).await.unwrap();
        let got = session.run(vec![], fetches, &["add"], Some(FOREVER)).await.unwrap();
        let got: Vec<f32> = got.iter().map(|t| t.scalar_value().unwrap()).collect();
        assert_eq!(got, want);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_sent_of_a_variable_is_the_value_of_before() {
    let graph = variable().op("sum", "AddV2", &["read", "here"]).t().device(WORKER0);
    gives(graph, &["v", "read", "sum"], &[1.0, 1.0, 6.0]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_update_waits_for_a_reader_that_waits_for_another_task() {
    // The reads on the ps cannot begin before a value of the worker is there; the update could.
    let graph = variable()
        .op("sum", "AddV2", &["read", "here"])
        .t()
        .device(PS)
        .op("late", "Identity", &["v", "^here"])
        .t()
        .device(PS)
        .op("seen", "Neg", &["late"])
        .t()
        .device(WORKER0);
    gives(graph, &["sum", "seen"], &[6.0, -1.0]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_that_another_task_lets_run_after_the_update_sees_it() {
    let graph = variable()
        .op("there", "Neg", &["add"])
        .t()
        .device(WORKER0)
        .op("sum", "AddV2", &["read", "there"])
        .t()
        .device(PS);
    gives(graph, &["sum", "there"], &[0.0, -2.0]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_branch_on_another_task_that_is_not_taken_does_not_hold_up_an_update() {
    let graph = variable()
        .op("p", "Less", &["here", "here"])
        .t()
        .device(WORKER0)
        .switch("s", "here", "p")
        .device(WORKER0)
        .op("other", "AddV2", &["read", "s:1"])
        .t()
        .device(PS)
        .op("taken", "AddV2", &["read", "s"])
        .t()
        .device(PS)
        .merge("merged", &["taken", "other"])
        .device(WORKER0);
    gives(graph, &["merged"], &[6.0]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_on_another_task_that_comes_after_the_update_sees_it() {
    // Both take `read`, which is on the ps and comes after nothing.
    let graph = variable()
        .op("new", "AddV2", &["read", "here", "^add"])
        .t()
        .device(WORKER0)
        .op("old", "AddV2", &["read", "here"])
        .t()
        .device(WORKER0);
    gives(graph, &["new", "old"], &[7.0, 6.0]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_update_waits_for_a_reader_on_another_task_behind_a_branch() {
    // As hooks read the global step: only if it has a value, which the worker decides.
    let graph = variable()
        .op("p", "IsVariableInitialized", &["v"])
        .attr("dtype", DType::Float)
        .device(PS)
        .op("decided", "Identity", &["p"])
        .attr("T", DType::Bool)
        .device(WORKER0)
        .op("s", "RefSwitch", &["v", "decided"])
        .t()
        .device(PS)
        .op("taken", "Identity", &["s:1"])
        .t()
        .device(WORKER0)
        .switch("t", "here", "decided")
        .device(WORKER0)
        .merge("merged", &["taken", "t"])
        .device(WORKER0)
        .op("sum", "AddV2", &["merged", "here"])
        .t()
        .device(WORKER0);
    gives(graph, &["sum"], &[6.0]).await;
}
