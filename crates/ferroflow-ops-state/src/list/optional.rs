//! Optionals: values that may be absent.

use crate::prelude::*;
use bytes::Bytes;
use ferroflow_core::{Variant, VariantObject};

/// The components of a value, or none.
pub struct Optional(pub Option<Vec<Tensor>>);

impl VariantObject for Optional {
    fn type_name(&self) -> &str {
        "tensorflow::data::Optional"
    }

    fn encode(&self) -> Option<(Bytes, Vec<Tensor>)> {
        let metadata = vec![u8::from(self.0.is_some())];
        Some((metadata.into(), self.0.clone().unwrap_or_default()))
    }
}

fn none(ctx: &mut Ctx<'_>) -> Result<()> {
    ctx.set(0, Tensor::variant(Variant::new(Optional(None))))
}

fn from_value(ctx: &mut Ctx<'_>) -> Result<()> {
    let components: Result<Vec<Tensor>> = (0..ctx.num_inputs()).map(|i| ctx.take(i)).collect();
    ctx.set(0, Tensor::variant(Variant::new(Optional(Some(components?)))))
}

fn optional<'a>(ctx: &'a Ctx<'_>) -> Result<&'a Optional> {
    let input = ctx.input(0)?;
    let found = match input.variants()? {
        [one] => one.get::<Optional>(),
        _ => None,
    };
    found.ok_or_else(|| {
        err!(InvalidArgument, "Input to {} must be an OptionalVariant object.", ctx.node().op)
    })
}

fn has_value(ctx: &mut Ctx<'_>) -> Result<()> {
    let has = optional(ctx)?.0.is_some();
    ctx.set(0, Tensor::scalar(has))
}

fn get_value(init: &KernelInit<'_>) -> Result<KernelBox> {
    let (dtypes, shapes) = (init.dtypes("output_types")?, init.shapes("output_shapes")?);
    Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
        let Some(components) = optional(ctx)?.0.clone() else {
            bail!(InvalidArgument, "The given optional does not have a value.");
        };
        ensure!(
            components.len() == dtypes.len(),
            InvalidArgument,
            "The given optional has {} components, expected {}",
            components.len(),
            dtypes.len()
        );
        for (i, component) in components.into_iter().enumerate() {
            ensure!(
                component.dtype() == dtypes[i],
                InvalidArgument,
                "The given optional does not match the expected type for component {i}. Expected: \
                 {}. Actual: {}.",
                dtypes[i],
                component.dtype()
            );
            if let Some(shape) = shapes.get(i) {
                ensure!(
                    shape.admits(component.shape()),
                    InvalidArgument,
                    "The given optional does not match the expected shape for component {i}. \
                     Expected: {shape}. Actual: {}.",
                    component.shape()
                );
            }
            ctx.set(i, component)?;
        }
        Ok(())
    }))
}

fn value_shapes(c: &ShapeCtx<'_>) -> Result<Vec<PartialShape>> {
    let shapes = c.attrs.shapes("output_shapes")?;
    Ok((0..c.outputs).map(|i| shapes.get(i).cloned().unwrap_or_default()).collect())
}

pub(crate) fn register(c: &mut Catalog) {
    c.op("OptionalNone")
        .doc("An optional without a value.")
        .output("optional: variant")
        .shape(shape::scalar)
        .cpu_fn(none);
    c.op("OptionalFromValue")
        .doc("An optional with a value.")
        .input("components: Toutput_types")
        .output("optional: variant")
        .attr("Toutput_types: list(type) >= 1")
        .shape(shape::scalar)
        .cpu_fn(from_value);
    c.op("OptionalHasValue")
        .doc("Whether an optional has a value.")
        .input("optional: variant")
        .output("has_value: bool")
        .shape(shape::scalar)
        .cpu_fn(has_value);
    c.op("OptionalGetValue")
        .doc("The value of an optional.")
        .input("optional: variant")
        .output("components: output_types")
        .attr("output_types: list(type) >= 1")
        .attr("output_shapes: list(shape) >= 1")
        .shape(value_shapes)
        .cpu(get_value);
    c.gradient("OptionalFromValue", |g, dy| {
        let inputs = g.inputs();
        let types: Vec<DType> = inputs.iter().map(|t| t.dtype()).collect();
        let shapes: Vec<PartialShape> = inputs.iter().map(|t| t.static_shape()).collect();
        let attrs = Attrs::new().with("output_types", types).with("output_shapes", shapes);
        let mut all = g.calls_with("OptionalGetValue", &[dy[0]], attrs);
        all.truncate(inputs.len());
        Ok(all)
    });
    c.gradient("OptionalGetValue", |g, dy| Ok(vec![g.call("OptionalFromValue", dy)]));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::check;

    #[test]
    fn a_value_is_there_or_not() {
        let none = check("OptionalNone").run().unwrap().remove(0);
        let some = check("OptionalFromValue")
            .input(Tensor::scalar(1.0f32))
            .input(Tensor::scalar(2i32))
            .run()
            .unwrap()
            .remove(0);
        check("OptionalHasValue").input(none.clone()).gives(Tensor::scalar(false));
        check("OptionalHasValue").input(some.clone()).gives(Tensor::scalar(true));
        check("OptionalHasValue")
            .input(Tensor::variant(Variant::default()))
            .fails(Code::InvalidArgument, "OptionalHasValue must be an OptionalVariant object.");
        let get = |o: &Tensor, types: &[DType], shape: PartialShape| {
            check("OptionalGetValue")
                .input(o.clone())
                .attr("output_types", types.to_vec())
                .attr("output_shapes", vec![shape, PartialShape::scalar()])
        };
        let both = [DType::Float, DType::Int32];
        let got = get(&some, &both, PartialShape::scalar()).run().unwrap();
        assert_eq!(got, [Tensor::scalar(1.0f32), Tensor::scalar(2i32)]);
        get(&none, &both, PartialShape::scalar())
            .fails(Code::InvalidArgument, "The given optional does not have a value.");
        get(&some, &both[..1], PartialShape::scalar())
            .fails(Code::InvalidArgument, "The given optional has 2 components, expected 1");
        get(&some, &[DType::Int32; 2], PartialShape::scalar()).fails(
            Code::InvalidArgument,
            "does not match the expected type for component 0. Expected: int32. Actual: float.",
        );
        get(&some, &both, PartialShape::from([2])).fails(
            Code::InvalidArgument,
            "does not match the expected shape for component 0. Expected: [2]. Actual: [].",
        );
    }
}
