//! `check("Relu")`: the op checker over the ops of this crate and those that their gradients call.

pub use ferroflow_testing::Check;
use ferroflow_testing::OpChecker;

static OPS: OpChecker = OpChecker::new(&[
    crate::register,
    ferroflow_ops_array::register,
    ferroflow_ops_state::register,
]);

/// A check of one op.
pub fn check(op: &str) -> Check<'static> {
    OPS.check(op)
}

/// Compares the ops with answers recorded from TensorFlow.
#[track_caller]
pub fn check_recorded(text: &str) {
    OPS.check_recorded(text);
}
