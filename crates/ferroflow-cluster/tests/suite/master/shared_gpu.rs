//! Values between tasks whose variables and sums are on GPUs.

use crate::master::fixture::*;
use ferroflow_cluster::DataPath;
use ferroflow_core::{DType, Gpu, PartialShape, Tensor};
use ferroflow_graph::GraphDef;
use ferroflow_simulated_gpu::{SimulatedGpu, SimulatedGpuOptions};
use ferroflow_testing::graph;
use std::sync::Arc;

const PS_GPU: &str = "/job:ps/task:0/device:GPU:0";
const WORKER_GPU: &str = "/job:worker/task:0/device:GPU:0";

/// A variable on the GPU of the ps goes to the GPU of a worker and back, beside a shape and a dead
/// value. The other worker has no GPU.
fn graph_of(n: usize) -> GraphDef {
    graph()
        .dtype(DType::Float)
        .op("v", "VariableV2", &[])
        .attr("dtype", DType::Float)
        .attr("shape", PartialShape::new([Some(n)]))
        .attr("shared_name", format!("v{n}").as_str())
        .device(PS_GPU)
        .placeholder("start")
        .device(WORKER0)
        .op("set", "Assign", &["v", "start"])
        .t()
        .device(PS_GPU)
        .op("there", "Neg", &["v"])
        .t()
        .device(WORKER_GPU)
        .op("back", "Mul", &["there", "there"])
        .t()
        .device(PS_GPU)
        .op("on_cpu", "Neg", &["back"])
        .t()
        .device(WORKER1)
        .op("shape", "Shape", &["there"])
        .t()
        .device(PS_GPU)
        .constant("yes", true)
        .device(PS)
        .switch("switch", "v", "yes")
        .device(PS_GPU)
        .op("no", "Neg", &["switch:0"])
        .t()
        .device(WORKER_GPU)
        .op("live", "Square", &["switch:1"])
        .t()
        .device(WORKER_GPU)
        .merge("merged", &["no", "live"])
        .device(WORKER_GPU)
        .build()
}

#[tokio::test(flavor = "multi_thread")]
async fn values_between_gpus_arrive_over_every_path() {
    let gpu = || SimulatedGpu::new(0, SimulatedGpuOptions::default());
    for is_shared in [true, false] {
        for path in [DataPath::Auto, DataPath::Tcp, DataPath::Grpc] {
            let of_ps = gpu();
            let of_worker = if is_shared { of_ps.clone() } else { gpu() };
            let gpus: [(_, Arc<dyn Gpu>); 2] = [(PS, of_ps.clone()), (WORKER0, of_worker.clone())];
            let cluster = Cluster::with_gpus(&[path; 3], gpus);
            for n in [1, 5000, 300_000] {
                let session = cluster.session(WORKER0, &graph_of(n)).await;
                let start: Vec<f32> = (0..n).map(|i| (i % 1000) as f32).collect();
                let feed = vec![("start:0".to_string(), Tensor::vector(&start))];
                session.run(feed, &[], &["set"], Some(FOREVER)).await.unwrap();
                let before = of_worker.imports();
                for _ in 0..3 {
                    let fetches = ["back:0", "on_cpu:0", "merged:0", "shape:0"];
                    let got = session.run(vec![], &fetches, &[], Some(FOREVER)).await.unwrap();
                    let squares: Vec<f32> = start.iter().map(|x| x * x).collect();
                    let negative: Vec<f32> = squares.iter().map(|x| -x).collect();
                    assert_eq!(got[0].as_slice::<f32>().unwrap(), squares);
                    assert_eq!(got[1].as_slice::<f32>().unwrap(), negative);
                    assert_eq!(got[2].as_slice::<f32>().unwrap(), squares);
                    assert_eq!(got[3].as_slice::<i32>().unwrap(), [n as i32]);
                }
                let stays = is_shared && path == DataPath::Auto;
                assert_eq!(of_worker.imports() > before, stays, "{path:?} {n}");
                session.close().await.unwrap();
            }
            drop(cluster);
        }
    }
}
