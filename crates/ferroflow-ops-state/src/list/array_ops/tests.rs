//! Tests of tensor arrays through their ops.

use super::*;
use crate::testing::{Check, check};

/// An array in a step, by the ops of one version.
struct Fixture {
    step: Arc<Resources>,
    handle: Value,
    version: &'static str,
}

impl Fixture {
    fn new(
        version: &'static str,
        size: i32,
        set: impl Fn(Check<'static>) -> Check<'static>,
    ) -> Fixture {
        let step = Arc::new(Resources::new());
        let made = set(check(&format!("TensorArray{version}"))
            .step_resources(&step)
            .input(Tensor::scalar(size))
            .attr("tensor_array_name", "ta"))
        .attr("dtype", DType::Float)
        .run_values()
        .unwrap();
        Fixture { step, handle: made[0].clone(), version }
    }

    fn v3(size: i32) -> Fixture {
        Fixture::new("V3", size, |c| c)
    }

    fn on(&self, op: &str) -> Check<'static> {
        let check = check(&format!("TensorArray{op}{}", self.version)).step_resources(&self.step);
        match &self.handle {
            Value::Ref(v) => check.ref_input(v.clone()),
            Value::Tensor(t) => check.input(t.clone()),
            _ => unreachable!(),
        }
    }

    fn write(&self, i: i32, value: Tensor) -> Check<'static> {
        self.on("Write").input(Tensor::scalar(i)).input(value).input(flow())
    }

    fn read(&self, i: i32) -> Check<'static> {
        self.on("Read").input(Tensor::scalar(i)).input(flow()).attr("dtype", DType::Float)
    }

    fn gather(&self, indices: &[i32]) -> Check<'static> {
        let check = self.on("Gather").input(Tensor::vector(indices)).input(flow());
        check.attr("dtype", DType::Float)
    }

    fn concat(&self) -> Check<'static> {
        self.on("Concat").input(flow()).attr("dtype", DType::Float)
    }

    fn scatter(&self, indices: &[i32], value: Tensor) -> Check<'static> {
        self.on("Scatter").input(Tensor::vector(indices)).input(value).input(flow())
    }

    fn split(&self, value: Tensor, lengths: &[i64]) -> Check<'static> {
        self.on("Split").input(value).input(Tensor::vector(lengths)).input(flow())
    }

    fn size(&self) -> Check<'static> {
        self.on("Size").input(flow())
    }

    fn gradient(&self) -> Fixture {
        let made = self.on("Grad").input(flow()).attr("source", "g").run_values().unwrap();
        Fixture { step: self.step.clone(), handle: made[0].clone(), version: self.version }
    }
}

fn flow() -> Tensor {
    Tensor::scalar(0.0f32)
}

#[track_caller]
fn refused(check: Check<'static>, text: &str) {
    check.fails(Code::InvalidArgument, text);
}

#[test]
fn elements_are_written_and_read_in_all_versions() {
    for version in ["", "V2", "V3"] {
        let ta = Fixture::new(version, 3, |c| c);
        ta.size().gives(Tensor::scalar(3i32));
        ta.write(1, Tensor::vector(&[1.0f32, 2.0])).gives(flow());
        ta.read(1).gives(Tensor::vector(&[1.0f32, 2.0]));
        refused(ta.read(1), "twice because it was cleared after a previous read");
        refused(
            ta.write(5, flow()),
            "Tried to write to index 5 but array is not resizeable and size is: 3",
        );
        refused(ta.read(7), "Tried to read from index 7 but array size is: 3");
        refused(ta.read(0), "the element shape is not fully defined: <unknown>");
        ta.on("Close").run().unwrap();
        refused(ta.size(), "has already been closed.");
    }
}

#[test]
fn an_element_is_written_once() {
    let ta = Fixture::new("V3", 2, |c| c.attr("clear_after_read", false));
    ta.write(0, flow()).run().unwrap();
    refused(ta.write(0, flow()), "index 0 because it has already been written to.");
    ta.read(0).gives(flow());
    ta.read(0).gives(flow());
    refused(ta.write(0, flow()), "because it has already been read.");
    refused(
        ta.write(1, Tensor::scalar(1i32)),
        "TensorArray dtype is float but Op is trying to write dtype int32.",
    );
    refused(
        ta.read(0).attr("dtype", DType::Int32),
        "TensorArray dtype is float but Op requested dtype int32.",
    );
}

#[test]
fn a_dynamic_array_grows() {
    let ta = Fixture::new("V3", 0, |c| c.attr("dynamic_size", true));
    ta.write(5, flow()).run().unwrap();
    ta.size().gives(Tensor::scalar(6i32));
    refused(ta.write(-1, flow()), "Tried to write to index -1");
    ta.write(i32::MAX, flow()).fails(Code::ResourceExhausted, "larger than");
}

#[test]
fn shapes_are_checked_and_stand_in_for_what_was_not_written() {
    let shaped = |c: Check<'static>| c.attr("element_shape", PartialShape::from([2]));
    let ta = Fixture::new("V3", 2, shaped);
    ta.read(0).gives(Tensor::vector(&[0.0f32, 0.0]));
    refused(
        ta.write(1, Tensor::vector(&[1.0f32])),
        "because the value shape is [1] which is incompatible with the TensorArray's inferred \
         element shape: [2] (consider setting infer_shape=False).",
    );
    let ta = Fixture::new("V3", 2, |c| c.attr("identical_element_shapes", true));
    ta.write(0, Tensor::vector(&[1.0f32])).run().unwrap();
    refused(ta.write(1, flow()), "inferred element shape: [1]");
}

#[test]
fn gather_and_scatter_stack_and_unstack() {
    let ta = Fixture::v3(2);
    ta.scatter(&[1, 0], Tensor::from_slice([2, 1], &[1.0f32, 2.0]).unwrap()).run().unwrap();
    ta.gather(&[0, 1]).gives(Tensor::from_slice([2, 1], &[2.0f32, 1.0]).unwrap());
    let value = || Tensor::vector(&[1.0f32, 2.0]);
    refused(
        ta.scatter(&[1], value()),
        "Expected len(indices) == values.shape[0], but saw: 1 vs. 2",
    );
    refused(ta.scatter(&[1, 5], value()), "Max scatter index must be < array size (5 vs. 2)");
    refused(ta.scatter(&[1], flow()), "must be at least a vector but received shape: []");
    Fixture::v3(0).gather(&[]).fails(
        Code::Unimplemented,
        "TensorArray has size zero, but element shape <unknown> is not fully defined.",
    );
    Fixture::v3(0)
        .gather(&[])
        .attr("element_shape", PartialShape::from([2]))
        .gives(Tensor::zeros(DType::Float, [0, 2]).unwrap());
    let ta = Fixture::v3(2);
    ta.write(0, flow()).run().unwrap();
    ta.write(1, Tensor::vector(&[1.0f32])).run().unwrap();
    refused(
        ta.gather(&[0, 1]),
        "TensorArray has inconsistent shapes.  Index 0 has shape: [] but index 1 has shape: [1]",
    );
}

#[test]
fn pack_and_unpack_take_all() {
    let ta = Fixture::new("", 2, |c| c);
    let value = || Tensor::vector(&[1.0f32, 2.0]);
    ta.on("Unpack").input(value()).input(flow()).run().unwrap();
    ta.on("Pack").input(flow()).attr("dtype", DType::Float).gives(value());
    let ta = Fixture::new("", 3, |c| c);
    refused(
        ta.on("Unpack").input(value()).input(flow()),
        "Input value must have first dimension equal to the array size (2 vs. 3)",
    );
}

#[test]
fn split_and_concat_are_inverse() {
    let ta = Fixture::v3(3);
    let value = || Tensor::vector(&[1.0f32, 2.0, 3.0]);
    ta.split(value(), &[1, 0, 2]).run().unwrap();
    let got = ta.concat().run().unwrap();
    assert_eq!(got, [value(), Tensor::vector(&[1i64, 0, 2])]);
    let ta = Fixture::v3(2);
    refused(ta.split(value(), &[1, 1]), "sum of lengths is 2 and value's shape is: [3]");
    refused(ta.split(value(), &[4, -1]), "sum of lengths");
    refused(
        ta.split(value(), &[3]),
        "TensorArray's size is not equal to the size of lengths (2 vs. 1)",
    );
    refused(ta.split(flow(), &[1]), "Expected value to be at least a vector");
    ta.write(0, flow()).run().unwrap();
    ta.write(1, flow()).run().unwrap();
    refused(ta.concat(), "Concat saw a scalar shape at index 0 but requires at least vectors.");
    Fixture::v3(0).concat().fails(Code::Unimplemented, "TensorArray has size zero");
    let empty = Fixture::v3(0).concat().attr("element_shape_except0", PartialShape::from([2]));
    empty.gives(Tensor::zeros(DType::Float, [0, 2]).unwrap());
}

#[test]
fn gradients_add_up_and_are_zero_where_nothing_was_written() {
    let ta = Fixture::v3(2);
    ta.scatter(&[0, 1], Tensor::from_slice([2, 2], &[1.0f32; 4]).unwrap()).run().unwrap();
    let grad = ta.gradient();
    grad.write(0, Tensor::vector(&[5.0f32, 6.0])).run().unwrap();
    // The same array again.
    let grad = ta.gradient();
    grad.write(0, Tensor::vector(&[1.0f32, 1.0])).run().unwrap();
    refused(
        grad.write(0, flow()),
        "Could not aggregate to TensorArray index 0 because the existing shape is [2] but the \
         new input shape is [].",
    );
    grad.gather(&[0, 1]).gives(Tensor::from_slice([2, 2], &[6.0f32, 7.0, 0.0, 0.0]).unwrap());
    refused(
        grad.on("Grad").input(flow()).attr("source", "g"),
        "Wrong input container. _tensor_array_grads",
    );
    let Value::Tensor(handle) = &ta.handle else { panic!("not a handle") };
    let made = check("TensorArrayGradWithShape")
        .step_resources(&ta.step)
        .input(handle.clone())
        .input(flow())
        .input(Tensor::vector(&[3i32]))
        .attr("source", "h")
        .run_values()
        .unwrap();
    let wide = Fixture { handle: made[0].clone(), ..ta };
    wide.read(1).gives(Tensor::zeros(DType::Float, [3, 2]).unwrap());
}
