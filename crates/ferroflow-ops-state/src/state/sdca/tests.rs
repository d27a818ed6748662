//! Tests of stochastic dual coordinate ascent.

use crate::prelude::*;
use crate::testing::check;
use ferroflow_testing::{Check, assert_close};

/// Three examples: the first has two dense features, the others one and two sparse ones. Their
/// features differ, so their order does not matter.
fn batch(op: &str, loss: &str, labels: [f32; 3]) -> Check<'static> {
    let state = [0.3f32, 0.0, 0.0, 0.0, -0.2, 0.0, 0.0, 0.0, 0.1, 0.0, 0.0, 0.0];
    check(op)
        .attr("loss_type", loss)
        .attr("num_sparse_features", 1)
        .attr("num_sparse_features_with_values", 1)
        .attr("num_dense_features", 1)
        .attr("l1", 0.05f32)
        .attr("l2", 0.5f32)
        .attr("num_loss_partitions", 2)
        .attr("num_inner_iterations", 2)
        .input(Tensor::vector(&[1i64, 2, 2]))
        .input(Tensor::vector(&[30i64, 10, 20]))
        .input(Tensor::vector(&[2f32, -1.0, 0.5]))
        .input(Tensor::from_slice([3, 2], &[1f32, 0.5, 0.0, 0.0, 0.0, 0.0]).unwrap())
        .input(Tensor::vector(&[1f32, 2.0, 0.5]))
        .input(Tensor::vector(&labels))
        .input(Tensor::vector(&[10i64, 20, 30]))
        .input(Tensor::vector(&[0.1f32, -0.2, 0.3]))
        .input(Tensor::vector(&[0.2f32, -0.4]))
        .input(Tensor::from_slice([3, 4], &state).unwrap())
}

#[test]
#[rustfmt::skip]
fn a_step_gives_the_numbers_of_tensorflow() {
    const INF: f32 = f32::INFINITY;
    let cases: [(&str, [f32; 3], [f32; 12], [f32; 3], [f32; 2]); 5] = [
        (
            "squared_loss",
            [1.0, -2.0, 0.5],
            [
                0.425, 0.55125, -0.255, 1.0,
                -0.26666668, 5.76, -0.76, 2.0,
                0.22857143, 0.075625, -0.0225, 0.5,
            ],
            [-0.12857142, 0.06428571, -0.53333336],
            [0.25, 0.125],
        ),
        (
            "logistic_loss",
            [1.0, 0.0, 1.0],
            [
                0.3951462, 0.71845967, -0.61086434, 1.0,
                -0.24728568, 1.8260305, -1.0008049, 2.0,
                0.35640347, 0.35922983, -0.1625415, 0.5,
            ],
            [-0.25640345, 0.12820172, -0.37828538],
            [0.19029237, 0.09514619],
        ),
        (
            "hinge_loss",
            [1.0, 0.0, 1.0],
            [0.51, 1.05, -0.3, 1.0, -0.24375, 2.8, -0.4, 2.0, 0.52, 0.525, -0.05, 0.5],
            [-0.42, 0.21, -0.35],
            [0.42, 0.21],
        ),
        (
            "smooth_hinge_loss",
            [1.0, 0.0, 0.0],
            [0.425, 0.55, -0.255, 1.0, -0.23636363, 1.8, -0.36, 2.0, -0.2, 0.225625, INF, 0.5],
            [0.3, -0.15, -0.29090908],
            [0.25, 0.125],
        ),
        (
            "poisson_loss",
            [1.0, 2.0, 3.0],
            [
                0.25194442, 1.0012294, -0.94967246, 1.0,
                -0.18803118, 1.3836493, -0.9307876, 2.0,
                0.4883724, 0.5506147, 0.09383057, 0.5,
            ],
            [-0.3883724, 0.1941862, 0.09575053],
            [-0.09611119, -0.0480556],
        ),
    ];
    for (loss, labels, state, sparse, dense) in cases {
        for (op, adaptive) in [("SdcaOptimizer", "adaptative"), ("SdcaOptimizerV2", "adaptive")]
        {
            let found = batch(op, loss, labels).attr(adaptive, false).run().unwrap();
            let state = Tensor::from_slice([3, 4], &state).unwrap();
            let want = [state, Tensor::vector(&sparse), Tensor::vector(&dense)];
            for (found, want) in found.iter().zip(&want) {
                assert_close(found, want, 1e-5, 1e-6);
            }
        }
    }
}

/// Ridge regression of `y = 3x` by ten passes over four examples.
#[test]
fn adaptive_steps_converge_too() {
    let examples = [1f32, -1.0, 0.5, 2.0];
    let labels = examples.map(|x| 3.0 * x);
    for adaptive in [false, true] {
        let mut weight = Tensor::vector(&[0f32]);
        let mut state = Tensor::from_slice([4, 4], &[0f32; 16]).unwrap();
        for _ in 0..30 {
            let step = check("SdcaOptimizerV2")
                .attr("loss_type", "squared_loss")
                .attr("adaptive", adaptive)
                .attr("num_sparse_features", 0)
                .attr("num_sparse_features_with_values", 0)
                .attr("num_dense_features", 1)
                .attr("l1", 0f32)
                .attr("l2", 0.5f32)
                .attr("num_loss_partitions", 1)
                .attr("num_inner_iterations", 1)
                .input(Tensor::from_slice([4, 1], &examples).unwrap())
                .input(Tensor::vector(&[1f32; 4]))
                .input(Tensor::vector(&labels))
                .input(weight.clone())
                .input(state);
            let mut found = step.run().unwrap();
            let delta = found.remove(1).as_slice::<f32>().unwrap()[0];
            weight = Tensor::vector(&[weight.as_slice::<f32>().unwrap()[0] + delta]);
            state = found.remove(0);
        }
        // The minimum of half the squared errors and of a quarter of the squared weight.
        let squares: f32 = examples.iter().map(|x| x * x).sum();
        let best = 3.0 * squares / (squares + 0.5);
        assert_close(&weight, &Tensor::vector(&[best]), 1e-3, 0.0);
    }
}

#[test]
fn what_does_not_fit_is_an_error() {
    let fails = |labels, text| {
        let call = batch("SdcaOptimizer", "logistic_loss", labels).attr("adaptative", false);
        call.fails(Code::InvalidArgument, text);
    };
    fails([1.0, 2.0, 0.0], "Found example with label: 2");
    let call = batch("SdcaOptimizerV2", "poisson_loss", [1.0, -2.0, 0.0]);
    call.attr("adaptive", true).fails(Code::InvalidArgument, "Only non-negative labels");
}

#[test]
fn shrinking_takes_the_same_off_each_weight() {
    let v = Arc::new(StoredVariable::new("v", DType::Float, PartialShape::from([5])));
    v.assign(Tensor::vector(&[0.3f32, -0.5, 0.05, -0.02, 0.0]));
    let op = check("SdcaShrinkL1").attr("num_features", 1).ref_input(v.clone());
    op.attr("l1", 0.1f32).attr("l2", 1f32).run_values().unwrap();
    let want = Tensor::vector(&[0.2f32, -0.4, 0.0, 0.0, 0.0]);
    assert_close(&v.read().unwrap(), &want, 1e-6, 1e-7);
}
