//! The data paths between tasks.

use crate::master::fixture::*;
use ferroflow_cluster::DataPath;
use ferroflow_core::{Code, DType, PartialShape, Tensor};
use ferroflow_graph::GraphDef;
use ferroflow_testing::graph;

/// Tasks without the library of UCX use TCP in its place.
const EVERY_PATH: [[DataPath; 3]; 6] = [
    [DataPath::Auto; 3],
    [DataPath::Tcp; 3],
    [DataPath::Ucx; 3],
    [DataPath::Grpc; 3],
    // One task without UCX among others with it.
    [DataPath::Ucx, DataPath::Tcp, DataPath::Ucx],
    // One task without links among others with links.
    [DataPath::Grpc, DataPath::Auto, DataPath::Tcp],
];

/// `big` floats go from the ps to a worker and back. A scalar and strings go to both workers. A
/// value that is dead on the ps is dead on the worker too.
fn graph_of(big: usize) -> GraphDef {
    let shape = PartialShape::new([Some(big)]);
    graph()
        .dtype(DType::Float)
        .op("v", "VariableV2", &[])
        .attr("dtype", DType::Float)
        .attr("shape", shape)
        .attr("shared_name", format!("v{big}").as_str())
        .device(PS)
        .placeholder("start")
        .device(WORKER0)
        .op("set", "Assign", &["v", "start"])
        .t()
        .device(PS)
        .op("there", "Neg", &["v"])
        .t()
        .device(WORKER1)
        .op("back", "Neg", &["there"])
        .t()
        .device(PS)
        .op("here", "Mul", &["back", "there"])
        .t()
        .device(WORKER0)
        .constant("yes", true)
        .device(PS)
        .constant("one", 1f32)
        .device(PS)
        .switch("switch", "one", "yes")
        .device(PS)
        .op("no", "Neg", &["switch:0"])
        .t()
        .device(WORKER1)
        .op("live", "Neg", &["switch:1"])
        .t()
        .device(WORKER0)
        .merge("merged", &["no", "live"])
        .device(WORKER0)
        .build()
}

#[tokio::test(flavor = "multi_thread")]
async fn values_arrive_over_every_path() {
    for paths in EVERY_PATH {
        let cluster = Cluster::over(&paths);
        for big in [1, 5000, 300_000] {
            let session = cluster.session(WORKER0, &graph_of(big)).await;
            let start: Vec<f32> = (0..big).map(|i| i as f32).collect();
            let feed = vec![("start:0".to_string(), Tensor::vector(&start))];
            session.run(feed, &[], &["set"], Some(FOREVER)).await.unwrap();
            let want: Vec<f32> = start.iter().map(|x| -x * x).collect();
            for _ in 0..5 {
                let fetched =
                    session.run(vec![], &["here:0", "merged:0"], &[], Some(FOREVER)).await.unwrap();
                assert_eq!(fetched[0].as_slice::<f32>().unwrap(), want);
                assert_eq!(fetched[1].scalar_value::<f32>().unwrap(), -1.0);
            }
            session.close().await.unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn steps_at_the_same_time_do_not_mix() {
    let cluster = Cluster::start();
    let session = std::sync::Arc::new(cluster.session(WORKER0, &graph_of(20_000)).await);
    let feed = vec![("start:0".to_string(), Tensor::vector(&vec![2f32; 20_000]))];
    session.run(feed, &[], &["set"], Some(FOREVER)).await.unwrap();
    let mut running = tokio::task::JoinSet::new();
    for _ in 0..8 {
        let session = session.clone();
        running.spawn(async move {
            for _ in 0..20 {
                let got = session.run(vec![], &["here:0"], &[], Some(FOREVER)).await.unwrap();
                assert!(got[0].as_slice::<f32>().unwrap().iter().all(|x| *x == -4.0));
            }
        });
    }
    while let Some(done) = running.join_next().await {
        done.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restarted_task_gets_a_new_link() {
    let mut cluster = Cluster::start();
    let def = graph_of(100);
    let feed = || vec![("start:0".to_string(), Tensor::vector(&[3f32; 100]))];
    let session = cluster.session(WORKER0, &def).await;
    session.run(feed(), &[], &["set"], Some(FOREVER)).await.unwrap();
    session.run(vec![], &["here:0"], &[], Some(FOREVER)).await.unwrap();
    cluster.kill(PS);
    let e = session.run(vec![], &["here:0"], &[], Some(FOREVER)).await.unwrap_err();
    assert_eq!(e.code(), Code::Unavailable, "{e}");
    cluster.restart(PS).await;
    let session = cluster.session(WORKER0, &def).await;
    session.run(feed(), &[], &["set"], Some(FOREVER)).await.unwrap();
    let got = session.run(vec![], &["here:0"], &[], Some(FOREVER)).await.unwrap();
    assert_eq!(got[0].as_slice::<f32>().unwrap(), [-9.0; 100]);
}
