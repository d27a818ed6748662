//! The GPU kernels on a simulated GPU: recorded calls, and training.

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
    let model = TrainedModel::build("mlp", "/gpu:0").unwrap();
    let gpu = gpu();
    let on_gpu = model.losses(&model.session(std::slice::from_ref(&gpu)).unwrap(), 3).unwrap();
    let on_cpu = model.losses(&model.session(&[]).unwrap(), 3).unwrap();
    for (got, want) in on_gpu.iter().zip(&on_cpu) {
        assert!((got - want).abs() < 1e-3 * want, "{on_gpu:?} {on_cpu:?}");
    }
    assert!(on_gpu[2] < on_gpu[0], "{on_gpu:?}");
    assert!(gpu.memory().peak > 0, "nothing was on the GPU");
}
