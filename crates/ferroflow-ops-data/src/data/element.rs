//! Ops on single elements: CompressElement, UncompressElement, GetElementAtIndex.

use super::dataset::*;
use super::iterator::component_shapes;
use super::scope::Scope;
use super::task::run_kernel;
use crate::prelude::*;
use bytes::Bytes;
use ferroflow_core::{Variant, VariantObject};
use ferroflow_graph::wire::tensor::OpaqueVariant;
use ferroflow_op_kit::tensor_proto::{self, Strings};

const TYPE_NAME: &str = "tensorflow::data::CompressedElement";

/// An element as compressed TensorProtos.
struct Packed(Vec<Bytes>);

impl VariantObject for Packed {
    fn type_name(&self) -> &str {
        TYPE_NAME
    }

    fn encode(&self) -> Option<(Bytes, Vec<Tensor>)> {
        let parts = Tensor::from_strings([self.0.len()], self.0.clone()).ok()?;
        Some((Bytes::new(), vec![parts]))
    }
}

fn compress(ctx: &mut Ctx<'_>) -> Result<()> {
    let packed = (0..ctx.num_inputs()).map(|i| {
        let proto = tensor_proto::encode(ctx.input(i)?, Strings::Content)?;
        let packed = snap::raw::Encoder::new().compress_vec(proto.as_bytes());
        packed.map(Bytes::from).map_err(|e| err!(Internal, "cannot compress an element: {e}"))
    });
    let packed = packed.collect::<Result<Vec<_>>>()?;
    ctx.set(0, Tensor::variant(Variant::new(Packed(packed))))
}

/// The parts of a packed element, which may come from another task.
fn parts(t: &Tensor) -> Option<Vec<Bytes>> {
    let [one] = t.variants().ok()? else { return None };
    if let Some(packed) = one.get::<Packed>() {
        return Some(packed.0.clone());
    }
    let foreign = one.get::<OpaqueVariant>().filter(|v| v.type_name == TYPE_NAME)?;
    Some(foreign.tensors.first()?.strings().ok()?.to_vec())
}

fn uncompress(init: &KernelInit<'_>) -> Result<KernelBox> {
    let types = ElementTypes::from_attrs(init)?;
    Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
        let Some(parts) = parts(ctx.input(0)?) else {
            bail!(InvalidArgument, "Tensor must be a compressed element.");
        };
        let unpack = |part: &Bytes| {
            let proto = crate::io::bundle::unpack_snappy(part)?;
            tensor_proto::decode(&proto)
        };
        let element = parts.iter().map(unpack).collect::<Option<Vec<_>>>();
        let element = element.ok_or_else(|| err!(DataLoss, "a compressed element is damaged"))?;
        types.admit_element(&element)?;
        for (i, t) in element.into_iter().enumerate() {
            ctx.set(i, t)?;
        }
        Ok(())
    }))
}

struct AtIndex {
    types: ElementTypes,
}

impl AsyncKernel for AtIndex {
    fn start(&self, ctx: AsyncCtx, done: Done, on: &InlineScope) {
        let scope = Scope::within(&ctx.step);
        let found = (|| {
            let dataset = DatasetRef::of(ctx.input(0)?)?.clone();
            let index = ctx.input(1)?.scalar_index()?;
            let cardinality = dataset.cardinality();
            ensure!(
                index >= 0 && (cardinality < 0 || index < cardinality),
                OutOfRange,
                "Index out of range [0, {cardinality}): {index}"
            );
            Ok((dataset.iterate(&scope)?, index))
        })();
        let (mut elements, index) = match found {
            Ok(found) => found,
            Err(e) => return done.fail(e),
        };
        let types = self.types.clone();
        run_kernel(&ctx.step, None, on, done, async move {
            let mut left = index;
            while let Some(element) = elements.next().await? {
                if left == 0 {
                    types.admit_element(&element)?;
                    return Ok(element);
                }
                left -= 1;
            }
            bail!(OutOfRange, "Index out of range [0, {}): {index}", index - left)
        });
    }
}

pub(crate) fn register(c: &mut Catalog) {
    c.op("CompressElement")
        .doc("An element as one compressed value.")
        .input("components: input_types")
        .output("compressed: variant")
        .attr("input_types: list(type) >= 1")
        .shape(shape::scalar)
        .cpu_fn(compress);
    c.op("UncompressElement")
        .doc("The element that CompressElement was given.")
        .input("compressed: variant")
        .output("components: output_types")
        .element_types()
        .shape(component_shapes)
        .cpu(uncompress);
    c.op("GetElementAtIndex")
        .doc("An element of a dataset, by its place.")
        .input("dataset: variant")
        .input("index: int64")
        .output("components: output_types")
        .element_types()
        .role(OpRole::Outside)
        .expensive()
        .shape(component_shapes)
        .waits()
        .cpu(|init| Ok(KernelBox::new_async(AtIndex { types: ElementTypes::from_attrs(init)? })));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::testing::*;
    use crate::testing::check;

    #[test]
    fn a_compressed_element_comes_back() {
        let element = [Tensor::vector(&[1f32; 100]), Tensor::string("text")];
        let op = check("CompressElement").input(element[0].clone()).input(element[1].clone());
        let packed = op.run().unwrap().remove(0);
        let back = dataset("UncompressElement", &[DType::Float, DType::String]).input(packed);
        assert_eq!(back.run().unwrap(), element);
        dataset("UncompressElement", &[DType::Float])
            .input(range(1))
            .fails(Code::InvalidArgument, "must be a compressed element");
    }

    #[test]
    fn elements_are_found_by_their_place() {
        let at = |i: i64| {
            dataset("GetElementAtIndex", &[DType::Int64]).input(range(5)).input(Tensor::scalar(i))
        };
        assert_eq!(at(3).run().unwrap(), [Tensor::scalar(3i64)]);
        at(5).fails(Code::OutOfRange, "Index out of range [0, 5): 5");
    }
}
