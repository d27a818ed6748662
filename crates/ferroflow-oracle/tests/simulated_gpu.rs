//! The GPU kernels on a simulated GPU: recorded calls, and training.

use ferroflow::prelude::*;
use ferroflow_core::Gpu;
use ferroflow_oracle::gpu::DeviceCheck;
use ferroflow_oracle::models::TrainedModel;
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
