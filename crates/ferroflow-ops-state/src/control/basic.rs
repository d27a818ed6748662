//! Const, Identity and similar ops, NoOp, Placeholder.

use crate::prelude::*;

/// Outputs input 0.
fn identity(ctx: &mut Ctx<'_>) -> Result<()> {
    let x = ctx.take(0)?;
    ctx.set(0, x)
}

/// Outputs every input.
fn identity_n(ctx: &mut Ctx<'_>) -> Result<()> {
    for i in 0..ctx.num_inputs() {
        let x = ctx.take(i)?;
        ctx.set(i, x)?;
    }
    Ok(())
}

/// The value of attribute `value`, shared by all steps.
pub(super) fn constant(init: &KernelInit<'_>) -> Result<KernelBox> {
    let value = init.tensor("value")?;
    ensure!(
        value.dtype() == init.dtype("dtype")?,
        InvalidArgument,
        "attr 'value' is {}, attr 'dtype' {}",
        value.dtype(),
        init.dtype("dtype")?
    );
    Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| ctx.set(0, value.clone())))
}

/// Fails: a placeholder that runs was not fed.
fn unfed(init: &KernelInit<'_>) -> Result<KernelBox> {
    let (dtype, shape) = (init.dtype("dtype")?, init.shape("shape")?);
    let described = if shape.rank().is_some() { format!(" and shape {shape}") } else { "".into() };
    Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
        Err(err!(
            InvalidArgument,
            "You must feed a value for placeholder tensor '{}' with dtype {dtype}{described}",
            ctx.name()
        ))
    }))
}

pub(crate) fn register(c: &mut Catalog) {
    c.op("Const")
        .doc("A constant.")
        .output("output: dtype")
        .attr("value: tensor")
        .attr("dtype: type")
        .role(OpRole::Constant)
        .shape(|c| Ok(vec![c.attrs.tensor("value")?.shape().into()]))
        .anywhere()
        .host_outputs(&["output"])
        .cpu(constant);
    c.op("NoOp")
        .doc("Nothing; orders other nodes.")
        .role(OpRole::NoOp)
        .shape(shape::unknown)
        .anywhere()
        .cpu_fn(|_| Ok(()));
    c.op("Identity")
        .doc("Its input.")
        .input("input: T")
        .output("output: T")
        .attr("T: type")
        .role(OpRole::Identity)
        .shape(shape::same_as_input)
        .anywhere()
        .cpu_fn(identity);
    c.op("IdentityN")
        .doc("Its inputs.")
        .input("input: T")
        .output("output: T")
        .attr("T: list(type) >= 1")
        .takes_resources_from_anywhere()
        .shape(shape::like_inputs)
        .anywhere()
        .cpu_fn(identity_n);
    for (name, shape) in [
        ("Placeholder", "shape: shape = { unknown_rank: true }"),
        ("PlaceholderV2", "shape: shape"),
    ] {
        c.op(name)
            .doc("A value that must be fed.")
            .output("output: dtype")
            .attr("dtype: type")
            .attr(shape)
            .role(OpRole::Placeholder)
            .shape(shape::from_attr)
            .anywhere()
            .host_outputs(&["output"])
            .cpu(unfed);
    }
    c.op("PlaceholderWithDefault")
        .doc("Its input, unless it is fed.")
        .input("input: dtype")
        .output("output: dtype")
        .attr("dtype: type")
        .attr("shape: shape")
        .shape(|c| Ok(vec![c.attrs.shape("shape")?]))
        .anywhere()
        .cpu_fn(identity);
    c.no_gradient(&["Const"]);
    for op in ["Identity", "IdentityN"] {
        c.gradient(op, |_, dy| Ok(dy.to_vec()));
    }
    c.gradient("PlaceholderWithDefault", |_, dy| Ok(vec![dy[0]]));
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::testing::check;

    #[test]
    fn a_constant_is_its_value() {
        check("Const")
            .attr("value", Tensor::scalar(3i32))
            .attr("dtype", DType::Int32)
            .gives(Tensor::scalar(3i32));
    }

    #[test]
    fn an_unfed_placeholder_says_what_it_wants() {
        check("Placeholder")
            .attr("dtype", DType::Float)
            .attr("shape", PartialShape::of_rank(1))
            .fails(Code::InvalidArgument, "'node_under_test' with dtype float and shape [?]");
    }
}
