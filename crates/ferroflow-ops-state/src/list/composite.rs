//! CompositeTensorVariantFromComponents and its inverse: several tensors as one variant.

use crate::prelude::*;
use bytes::Bytes;
use ferroflow_core::{Variant, VariantObject};

/// The components of a composite tensor, and the description of its type that came with them.
struct Composite {
    metadata: Bytes,
    components: Vec<Tensor>,
}

impl VariantObject for Composite {
    fn type_name(&self) -> &str {
        "CompositeTensorVariant"
    }

    fn encode(&self) -> Option<(Bytes, Vec<Tensor>)> {
        Some((self.metadata.clone(), self.components.clone()))
    }
}

pub(crate) fn register(c: &mut Catalog) {
    c.op("CompositeTensorVariantFromComponents")
        .doc("The components of a composite tensor as one variant.")
        .input("components: Tcomponents")
        .output("encoded: variant")
        .attr("metadata: string")
        .attr("Tcomponents: list(type) >= 0")
        .shape(shape::scalar)
        .cpu(|init| {
            let metadata = init.bytes("metadata")?;
            Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
                let components: Result<Vec<Tensor>> =
                    (0..ctx.num_inputs()).map(|i| ctx.take(i)).collect();
                let made = Composite { metadata: metadata.clone(), components: components? };
                ctx.set(0, Tensor::variant(Variant::new(made)))
            }))
        });
    c.op("CompositeTensorVariantToComponents")
        .doc("The components of a composite tensor.")
        .input("encoded: variant")
        .output("components: Tcomponents")
        .attr("metadata: string")
        .attr("Tcomponents: list(type) >= 0")
        .shape(shape::unknown)
        .cpu(|init| {
            let dtypes = init.dtypes("Tcomponents")?;
            Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
                let found = match ctx.input(0)?.variants()? {
                    [one] => one.get::<Composite>().map(|c| c.components.clone()),
                    _ => None,
                };
                let Some(components) = found else {
                    bail!(InvalidArgument, "the input is not a CompositeTensorVariant");
                };
                let types: Vec<DType> = components.iter().map(Tensor::dtype).collect();
                ensure!(
                    types == dtypes,
                    InvalidArgument,
                    "the components are of types {types:?}, expected {dtypes:?}"
                );
                for (i, component) in components.into_iter().enumerate() {
                    ctx.set(i, component)?;
                }
                Ok(())
            }))
        });
    c.gradient("CompositeTensorVariantFromComponents", |g, dy| {
        let attrs = g.same_attrs(&["metadata", "Tcomponents"]);
        Ok(g.calls_with("CompositeTensorVariantToComponents", &[dy[0]], attrs))
    });
    c.gradient("CompositeTensorVariantToComponents", |g, dy| {
        let components: Vec<Term<'_>> = dy
            .iter()
            .enumerate()
            .map(|(i, &dy)| if dy.is_none() { g.output(i) } else { dy })
            .collect();
        Ok(vec![g.call_like("CompositeTensorVariantFromComponents", &components)])
    });
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::testing::check;

    #[test]
    fn components_come_back() {
        let made = check("CompositeTensorVariantFromComponents")
            .attr("metadata", "m")
            .input(Tensor::scalar(1i32))
            .input(Tensor::vector(&[2f32, 3.]))
            .run()
            .unwrap()
            .remove(0);
        let back = |types: &[DType]| {
            check("CompositeTensorVariantToComponents")
                .attr("metadata", "m")
                .attr("Tcomponents", types.to_vec())
                .input(made.clone())
        };
        let out = back(&[DType::Int32, DType::Float]).run().unwrap();
        assert_eq!(out, [Tensor::scalar(1i32), Tensor::vector(&[2f32, 3.])]);
        back(&[DType::Float]).fails(Code::InvalidArgument, "the components are of types");
    }
}
