//! Ops that query the environment of a graph, and placeholder values: ToBool,
//! DeviceIndex, FakeParam, HostConst, IsTensorFloat32Enabled.

use super::branch::is_true;
use crate::prelude::*;

/// The index of this device's kind in a list of kinds, or the length of the list if it is not
/// there.
fn device_index(init: &KernelInit<'_>) -> Result<KernelBox> {
    let names = init.byte_strings("device_names")?;
    Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
        let device = &ctx.node().device.text;
        let kind = device.rsplit('/').next().unwrap_or_default();
        let kind = kind.trim_start_matches("device:").split(':').next().unwrap_or_default();
        let at = names.iter().position(|name| name == kind.as_bytes()).unwrap_or(names.len());
        ctx.set(0, Tensor::scalar(at as i32))
    }))
}

/// The placeholder for the result of a branch that was not taken.
fn fake_param(init: &KernelInit<'_>) -> Result<KernelBox> {
    let (dtype, shape) = (init.dtype("dtype")?, init.shape("shape")?);
    let rank = shape.rank().unwrap_or(0);
    let shape: Shape = (0..rank).map(|i| shape.dim(i).unwrap_or(0)).collect();
    let value = Tensor::zeros(dtype, shape)?;
    Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| ctx.set(0, value.clone())))
}

pub(crate) fn register(c: &mut Catalog) {
    c.op("ToBool")
        .doc("Whether a scalar is not zero or empty, or a larger tensor has elements.")
        .input("input: T")
        .output("output: bool")
        .attr("T: type")
        .shape(shape::scalar)
        .cpu_fn(|ctx| {
            let is = is_true(ctx.input(0)?)?;
            ctx.set(0, Tensor::scalar(is))
        });
    c.op("DeviceIndex")
        .doc("Where the kind of device it runs on is in a list of kinds.")
        .output("index: int32")
        .attr("device_names: list(string)")
        .stateful()
        .shape(shape::scalar)
        .cpu(device_index);
    c.op("FakeParam")
        .doc("A placeholder for a value that was not computed and that no node uses.")
        .output("output: dtype")
        .attr("dtype: type")
        .attr("shape: shape")
        .shape(|c| Ok(vec![c.attrs.shape("shape")?]))
        .cpu(fake_param);
    c.op("HostConst")
        .doc("A constant in the memory of the host.")
        .output("output: dtype")
        .attr("value: tensor")
        .attr("dtype: type")
        .shape(|c| Ok(vec![c.attrs.tensor("value")?.shape().into()]))
        .cpu(super::basic::constant);
    c.op("IsTensorFloat32Enabled")
        .doc("Whether products may round their factors to 19 bits: never here.")
        .output("enabled: bool")
        .stateful()
        .shape(shape::scalar)
        .cpu_fn(|ctx| ctx.set(0, Tensor::scalar(false)));
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::testing::check;
    use ferroflow_graph::{AttrList, AttrValue};

    #[test]
    fn numbers_texts_and_tensors_are_true_or_false() {
        let is = |t: Tensor, want: bool| check("ToBool").input(t).gives(Tensor::scalar(want));
        is(Tensor::scalar(0i32), false);
        is(Tensor::scalar(-2i64), true);
        is(Tensor::scalar(-0.0f32), false);
        is(Tensor::string("a"), true);
        is(Tensor::string(""), false);
        is(Tensor::vector(&[0.0f32]), true);
        is(Tensor::vector::<f32>(&[]), false);
    }

    #[test]
    fn a_device_finds_itself() {
        let index = |names: &[&'static str]| {
            let names = names.iter().map(|n| bytes::Bytes::from_static(n.as_bytes())).collect();
            check("DeviceIndex").attr("device_names", AttrValue::List(AttrList::Strs(names)))
        };
        index(&["GPU", "CPU"]).gives(Tensor::scalar(1i32));
        index(&["GPU", "TPU"]).gives(Tensor::scalar(2i32));
    }

    #[test]
    fn a_param_that_was_not_computed_has_the_known_dimensions() {
        let shape = PartialShape::new([Some(2), None]);
        let out = check("FakeParam").attr("dtype", DType::Float).attr("shape", shape).run();
        assert_eq!(out.unwrap()[0].shape().dims(), [2, 0]);
    }
}
