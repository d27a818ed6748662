//! The GPU kernels on a simulated GPU: recorded calls, and training.

use ferroflow::prelude::*;
use ferroflow_core::Gpu;
use ferroflow_oracle::gpu::DeviceCheck;
use ferroflow_oracle::models::TrainedModel;
use ferroflow_oracle::null_gpu::NullGpu;
use ferroflow_oracle::record::Records;
use ferroflow_simulated_gpu::{SimulatedGpu, SimulatedGpuOptions};
use std::path::Path;
use std::sync::Arc;

fn gpu() -> Arc<dyn Gpu> {
    SimulatedGpu::new(0, SimulatedGpuOptions::default())
}

/// Runs every fourth recorded call, from number `first` on. The parts run side by side, because
/// each kernel is compiled once.
fn check_recorded_calls(first: usize) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/recorded.bin.gz");
    let mut check = DeviceCheck::new(gpu());
    let cases = Records::open(&path).expect("the sample is in the repository");
    for case in cases.skip(first).step_by(4) {
        check.add(&case.expect("the sample is readable"));
    }
    let failed: Vec<String> = check
        .lines()
        .iter()
        .filter(|line| line["ok"] != true)
        .map(|line| line.to_string())
        .collect();
    let ops: std::collections::BTreeSet<&String> = check.results.keys().map(|(op, _)| op).collect();
    assert!(failed.is_empty(), "{} failed:\n{}", failed.len(), failed.join("\n"));
    assert!(ops.len() >= 60, "only {} ops ran on the GPU", ops.len());
}

#[test]
fn recorded_calls_give_the_answers_of_tensorflow_0() {
    check_recorded_calls(0);
}

#[test]
fn recorded_calls_give_the_answers_of_tensorflow_1() {
    check_recorded_calls(1);
}

#[test]
fn recorded_calls_give_the_answers_of_tensorflow_2() {
    check_recorded_calls(2);
}

#[test]
fn recorded_calls_give_the_answers_of_tensorflow_3() {
    check_recorded_calls(3);
}

#[test]
fn the_mlp_learns_as_on_the_cpu() {
    learns_as_on_the_cpu("mlp", 128);
}

#[test]
fn the_cnn_learns_as_on_the_cpu() {
    learns_as_on_the_cpu("cnn", 2);
}

fn learns_as_on_the_cpu(name: &str, batch: usize) {
    let model = TrainedModel::with_batch(name, "/gpu:0", Some(batch)).expect("a model");
    let gpu = gpu();
    let losses = |gpus: &[Arc<dyn Gpu>]| {
        let session = model.session(gpus).expect("a session");
        model.losses(&session, 3).expect("three steps")
    };
    let on_gpu = losses(std::slice::from_ref(&gpu));
    let on_cpu = losses(&[]);
    for (got, want) in on_gpu.iter().zip(&on_cpu) {
        assert!((got - want).abs() < 1e-3 * want, "{on_gpu:?} {on_cpu:?}");
    }
    assert!(on_gpu[2] < on_gpu[0], "{on_gpu:?}");
    assert!(gpu.memory().peak > 0, "nothing was on the GPU");
}

#[test]
fn large_reductions_give_the_same_on_the_cpu() {
    // Rows, long rows in parts, columns, and columns in parts.
    let cases: [([usize; 2], i32); 5] =
        [([3, 300], 1), ([3, 20_001], 1), ([1, 50_000], 1), ([100, 40], 0), ([4_099, 40], 0)];
    for (dims, axis) in cases {
        let values: Vec<f32> =
            (0..dims[0] * dims[1]).map(|i| (i * 7919 % 1009) as f32 - 300.0).collect();
        let results = |device: &str, gpus: Vec<Arc<dyn Gpu>>| {
            let g = Graph::new();
            let (x, mean, most) = g.device(device, || {
                let x = g.placeholder::<f32>("x", [None, None]);
                let (mean, most) = (x.mean(&[axis]), x.max(&[axis]));
                (x, mean, most)
            });
            let options = LocalOptions { gpus, ..LocalOptions::default() };
            let session = Session::local_with(&g, &options).expect("a session");
            let fed = Tensor::from_slice(dims, &values).expect("a matrix");
            let (mean, most) = session.run_fed((&x, fed), (&mean, &most)).expect("a step");
            let floats = |t: &Tensor| t.as_slice::<f32>().expect("floats").to_vec();
            (floats(&mean), floats(&most))
        };
        let gpu = gpu();
        let (means, most) = results("/gpu:0", vec![gpu.clone()]);
        let (want_means, want_most) = results("/cpu:0", Vec::new());
        assert_eq!(most, want_most, "{dims:?}");
        assert_eq!(means.len(), want_means.len());
        for (got, want) in means.iter().zip(&want_means) {
            assert!((got - want).abs() < 1e-5 * want.abs(), "{dims:?}: {got} {want}");
        }
        assert!(gpu.memory().peak > 0, "nothing was on the GPU");
    }
}

#[test]
fn towers_on_two_gpus_share_their_variables() {
    let g = Graph::new();
    g.set_seed(1);
    let x = g.placeholder::<f32>("x", [8, 2]);
    let y = g.placeholder::<f32>("y", [8, 1]);
    let (xs, ys) = (x.split(2, 0), y.split(2, 0));
    let optimizer = Sgd::new(0.1);
    let mut towers = Vec::new();
    let mut parts = Vec::new();
    for tower in 0..2 {
        g.device(format!("/gpu:{tower}").as_str(), || {
            let reuse = if tower == 0 { Reuse::No } else { Reuse::Yes };
            g.variable_scope("model", reuse, || {
                let prediction = layers::Dense::new("dense", 1).apply(&xs[tower]);
                let loss = losses::mean_squared_error(&ys[tower], &prediction);
                towers.push(optimizer.compute_gradients(&loss, &g.trainable_variables()));
                parts.push(loss);
            });
        });
    }
    let train = optimizer.apply_gradients(&g, &average_gradients(&towers), None);
    let loss = g.add_n(&parts) * 0.5;
    let init = g.global_initializer();
    let gpus: Vec<Arc<dyn Gpu>> = (0..2)
        .map(|i| SimulatedGpu::new(i, SimulatedGpuOptions::default()) as Arc<dyn Gpu>)
        .collect();
    let options = LocalOptions { gpus: gpus.clone(), ..LocalOptions::default() };
    let session = Session::local_with(&g, &options).expect("a session");
    session.run(&init).expect("initial values");
    let inputs: Vec<f32> = (0..16).map(|i| ((i * 7) % 16) as f32 / 8.0 - 1.0).collect();
    let outputs: Vec<f32> = inputs.chunks(2).map(|p| 3.0 * p[0] - p[1] + 0.5).collect();
    let fed = |dims: [usize; 2], values: &[f32]| Tensor::from_slice(dims, values).expect("a batch");
    let feeds = [(x.name(), fed([8, 2], &inputs)), (y.name(), fed([8, 1], &outputs))];
    let mut losses = Vec::new();
    for _ in 0..20 {
        let step = session.run_fed(feeds.as_slice(), (loss.scalar::<f32>(), &train));
        losses.push(step.expect("a step").0);
    }
    assert!(losses[19] < 0.2 * losses[0], "{losses:?}");
    assert!(gpus.iter().all(|gpu| gpu.launches() > 20), "a GPU ran nothing");
}

/// The losses of a few steps of the mlp with products of a 16-bit type.
fn mixed_losses(precision: Option<DType>) -> Vec<f32> {
    let model = TrainedModel::with_batch("mlp", "/gpu:0", Some(4)).expect("a model");
    let options =
        LocalOptions { gpus: vec![gpu()], mixed_precision: precision, ..LocalOptions::default() };
    let session = model.session_with(&options).expect("a session");
    model.losses(&session, 2).expect("two steps")
}

#[test]
fn mixed_precision_learns_as_full_precision_does() {
    let full = mixed_losses(None);
    for dtype in [DType::Half, DType::BFloat16] {
        let mixed = mixed_losses(Some(dtype));
        assert_ne!(mixed, full, "{dtype} changed nothing");
        for (got, want) in mixed.iter().zip(&full) {
            assert!((got - want).abs() < 0.05 * want, "{dtype}: {mixed:?} {full:?}");
        }
    }
}

#[test]
fn a_kernel_that_faults_fails_its_step_and_not_the_process() {
    let options = SimulatedGpuOptions { fault_at_launch: Some(1), ..Default::default() };
    let broken: Arc<dyn Gpu> = SimulatedGpu::new(0, options);
    let g = Graph::new();
    let y = g.device("/gpu:0", || g.placeholder::<f32>("x", [2]).square());
    let run = |gpu: Arc<dyn Gpu>| {
        let options = LocalOptions { gpus: vec![gpu], ..LocalOptions::default() };
        let session = Session::local_with(&g, &options).expect("a session");
        let feeds = [("x:0".to_string(), Tensor::vector(&[1.0f32, 3.0]))];
        session.run_fed(feeds.as_slice(), &y)
    };
    let e = run(broken).expect_err("the kernel faults");
    assert!(e.message().contains("illegal address"), "{e}");
    assert_eq!(run(gpu()).expect("a step"), Tensor::vector(&[1.0f32, 9.0]));
}

/// A value and its gradients, of rows that are normalized, masked and weighted as in a transformer.
fn rows_with_gradients(
    device: &str,
    gpus: Vec<Arc<dyn Gpu>>,
    width: usize,
    half: bool,
) -> Vec<Tensor> {
    let g = Graph::new();
    g.set_seed(1);
    let fetched = g.device(device, || {
        let numbers: Vec<f32> = (0..6 * width).map(|i| (i * 7919 % 1009) as f32 / 300.0).collect();
        let x = g.variable("x", Tensor::from_slice([6, width], &numbers).expect("a matrix"));
        let normal = layers::layer_norm("norm", &x);
        let normal = if half { normal.cast(DType::BFloat16) } else { normal };
        let mask: Vec<f32> =
            (0..3 * width).map(|i| if i % width > i / width * 9 { -1e9 } else { 0.0 }).collect();
        let mask = g.constant(Tensor::from_slice([3, width], &mask).expect("a matrix"));
        let scores = normal.reshape([2, 3, width as i32]) * 0.125 + mask.cast(normal.dtype());
        let weights = scores.softmax();
        let shares = ferroflow::ops::log_softmax(&weights.cast(DType::Float));
        let loss = (&weights.cast(DType::Float) * &shares).square().sum(&[0, 1, 2]);
        let gradients = g.gradients(std::slice::from_ref(&loss), &g.trainable_variables());
        let mut fetched = vec![normal.cast(DType::Float), weights.cast(DType::Float), loss];
        fetched.extend(gradients.into_iter().map(|d| d.expect("a gradient").dense()));
        fetched
    });
    let options = LocalOptions { gpus, ..LocalOptions::default() };
    let init = g.global_initializer();
    let session = Session::local_with(&g, &options).expect("a session");
    session.run(&init).expect("initial values");
    session.run(&fetched).expect("a step")
}

#[test]
fn fused_reductions_give_what_the_cpu_gives() {
    // A warp to a row, a block to a row, and rows that are no multiple of a pack.
    for (width, half) in [(64, false), (64, true), (512, true), (1024, false), (45, false)] {
        let gpu = SimulatedGpu::new(0, SimulatedGpuOptions::default());
        let got = rows_with_gradients("/gpu:0", vec![gpu.clone()], width, half);
        let want = rows_with_gradients("/cpu:0", Vec::new(), width, half);
        for (i, (got, want)) in got.iter().zip(&want).enumerate() {
            assert_eq!(got.shape(), want.shape());
            let values = |t: &Tensor| t.as_slice::<f32>().expect("floats").to_vec();
            let (got, want) = (values(got), values(want));
            let norm = want.iter().map(|x| x * x).sum::<f32>().sqrt();
            let error = got.iter().zip(&want).map(|(x, y)| (x - y) * (x - y)).sum::<f32>().sqrt();
            let limit = if half { 2e-2 } else { 1e-4 };
            assert!(error <= limit * norm.max(1e-3), "{width} {half} {i}: {error} of {norm}");
        }
        assert!(gpu.launches() > 0, "nothing was on the GPU");
    }
}

#[test]
fn heads_of_an_attention_are_copied_once() {
    let graph = Graph::new();
    graph.set_seed(3);
    let g = &graph;
    // Two texts of four words, and two heads for each of three parts.
    let (loss, train) = g.device("/gpu:0", || {
        let all = g.variable("all", ferroflow::train::init::glorot_uniform([8, 12]));
        let parts = all.split(3, 1);
        let heads = parts.iter().map(|t| t.reshape([2, 4, 2, 2]).transpose(&[0, 2, 1, 3]));
        let heads: Vec<Output> = heads.collect();
        let mixed = heads[0].matmul_with(&heads[1], false, true).matmul(&heads[2]);
        let loss = mixed.transpose(&[0, 2, 1, 3]).reshape([8, 4]).square().sum(&[0, 1]);
        let train = Sgd::new(0.1).minimize(&loss);
        (loss, train)
    });
    let session = |gpus: &[Arc<dyn Gpu>]| {
        let options = LocalOptions { gpus: gpus.to_vec(), ..LocalOptions::default() };
        let session = Session::local_with(&graph, &options).expect("a session");
        session.run(&graph.global_initializer()).expect("initial values");
        session
    };
    let step = |session: &Session| session.run((loss.scalar::<f32>(), &train)).expect("a step").0;
    let losses = |gpus: &[Arc<dyn Gpu>]| {
        let session = session(gpus);
        (0..6).map(|_| step(&session)).collect::<Vec<f32>>()
    };
    let (on_gpu, on_cpu) = (losses(&[gpu()]), losses(&[]));
    assert!(on_gpu.iter().zip(&on_cpu).all(|(a, b)| (a - b).abs() < 1e-5), "{on_gpu:?} {on_cpu:?}");
    assert!(on_gpu[5] < on_gpu[0], "{on_gpu:?}");
    let nothing = NullGpu::new();
    let gpu: Arc<dyn Gpu> = nothing.clone();
    let session = session(&[gpu]);
    nothing.begin_list();
    step(&session);
    let copies = nothing.end_list().iter().filter(|work| work.label == "walk_copy").count();
    // Each part, the result, and their gradients.
    assert_eq!(copies, 8);
}
