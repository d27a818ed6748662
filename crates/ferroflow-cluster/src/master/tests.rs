//! Two tasks in one process: the state that the master leaves on the other one.

use crate::worker::Worker;
use crate::{ClusterSpec, ConnectOptions, RemoteSession, Server, ServerOptions};
use ferroflow_core::{DType, PartialShape, Tensor};
use ferroflow_graph::{AttrList, Catalog, GraphDef};
use ferroflow_runtime::Placement;
use ferroflow_testing::graph;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;

/// A timeout that only a hang reaches.
const FOREVER: Duration = Duration::from_secs(60);

/// A master, and the worker of another task.
async fn cluster() -> (crate::InProcessMaster, Arc<Worker>) {
    let mut catalog = Catalog::new();
    ferroflow_ops::register(&mut catalog);
    let catalog = Arc::new(catalog);
    let (ps, chief) = (listener().await, listener().await);
    let at = |l: &TcpListener| l.local_addr().unwrap().to_string();
    let spec = ClusterSpec::parse(&format!("ps={};worker={}", at(&ps), at(&chief))).unwrap();
    let options = |job: &str| ServerOptions::new(spec.clone(), job, 0);
    let ps = Server::listening(ps, options("ps"), catalog.clone()).unwrap();
    let chief = Server::listening(chief, options("worker"), catalog).unwrap();
    let (master, worker) = (chief.master(), ps.worker());
    tokio::spawn(ps.serve(std::future::pending()));
    tokio::spawn(chief.serve(std::future::pending()));
    (master, worker)
}

async fn listener() -> TcpListener {
    TcpListener::bind("127.0.0.1:0").await.unwrap()
}

/// Waits until a task has so many graphs.
async fn has(worker: &Worker, graphs: usize) {
    let reached = async {
        while worker.graphs() != graphs {
            tokio::task::yield_now().await;
        }
    };
    let reached = tokio::time::timeout(FOREVER, reached).await;
    reached.unwrap_or_else(|_| panic!("{} graphs instead of {graphs}", worker.graphs()));
}

/// `x` goes to the ps and comes back twice as large.
fn twice() -> GraphDef {
    let b = graph().dtype(DType::Float).placeholder("x").attr("shape", PartialShape::scalar());
    b.op("y", "AddV2", &["x", "x"]).t().device("/job:ps/task:0").build()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_step_that_is_placed_anew_leaves_no_graph_behind() {
    let (master, ps) = cluster().await;
    let placement = Placement::ByCost(Box::default());
    let options = ConnectOptions { placement, timeout: FOREVER, ..ConnectOptions::default() };
    let session = RemoteSession::within(&master, &twice(), &options).await.unwrap();
    let step = || async {
        let feeds = vec![("x".to_string(), Tensor::scalar(2f32))];
        let y = session.run(feeds, &["y"], &[], Some(FOREVER)).await.unwrap();
        assert_eq!(y[0].scalar_value::<f32>().unwrap(), 4.0);
    };
    step().await;
    assert_eq!(ps.graphs(), 1);
    // It is measured, and compiled once more.
    for _ in 0..10 {
        step().await;
    }
    has(&ps, 1).await;
    session.close().await.unwrap();
    has(&ps, 0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_partial_run_that_is_over_leaves_no_graph_behind() {
    let (master, ps) = cluster().await;
    let options = ConnectOptions { timeout: FOREVER, ..ConnectOptions::default() };
    let session = RemoteSession::within(&master, &twice(), &options).await.unwrap();
    for _ in 0..3 {
        let setup = session.partial_run_setup(vec!["x".into()], vec!["y".into()], vec![]);
        let run = setup.await.unwrap();
        let feeds = vec![("x".to_string(), Tensor::scalar(3f32))];
        let y = session.partial_run(&run, feeds, vec!["y".into()], Some(FOREVER)).await.unwrap();
        assert_eq!(y[0].scalar_value::<f32>().unwrap(), 6.0);
    }
    has(&ps, 0).await;
    session.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_ends_on_all_tasks_when_the_client_leaves_while_closing_it() {
    let (master, ps) = cluster().await;
    let types = || AttrList::Types(vec![DType::Float]);
    let waits = graph()
        .dtype(DType::Float)
        .op("q", "FIFOQueueV2", &[])
        .attr("component_types", types())
        .device("/job:ps/task:0")
        .op("take", "QueueDequeueV2", &["q"])
        .attr("component_types", types())
        .device("/job:ps/task:0")
        .build();
    let options = ConnectOptions { timeout: FOREVER, ..ConnectOptions::default() };
    let session = RemoteSession::within(&master, &waits, &options).await.unwrap();
    let step = session.run(vec![], &["take"], &[], Some(FOREVER));
    let close = async {
        has(&ps, 1).await;
        // Begun, and dropped while the step still ends.
        let _ = tokio::time::timeout(Duration::ZERO, session.close()).await;
    };
    let (ended, ()) = tokio::join!(step, close);
    ended.unwrap_err();
    has(&ps, 0).await;
}
