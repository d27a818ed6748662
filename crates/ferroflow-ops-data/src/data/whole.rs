//! Ops on whole datasets: DatasetCardinality, DatasetToSingleElement, DatasetToTFRecord, and those
//! that wrap a dataset.

use super::dataset::*;
use super::iterator::component_shapes;
use super::scope::Scope;
use super::task::{before_io, run_kernel};
use crate::prelude::*;
use ferroflow_core::{Variant, VariantObject};
use ferroflow_op_kit::file::local;
use ferroflow_op_kit::tfrecord::{RecordCompression, RecordWriter};

fn cardinality(ctx: &mut Ctx<'_>) -> Result<()> {
    let n = input(ctx, 0)?.cardinality();
    ctx.set(0, Tensor::scalar(n))
}

struct SingleElement {
    types: ElementTypes,
}

impl AsyncKernel for SingleElement {
    fn start(&self, ctx: AsyncCtx, done: Done, on: &InlineScope) {
        let scope = Scope::within(&ctx.step);
        let elements = ctx.input(0).and_then(|t| DatasetRef::of(t)?.iterate(&scope));
        let mut elements = match elements {
            Ok(elements) => elements,
            Err(e) => return done.fail(e),
        };
        let types = self.types.clone();
        run_kernel(&ctx.step, None, on, done, async move {
            let Some(element) = elements.next().await? else {
                bail!(InvalidArgument, "Dataset was empty.");
            };
            types.admit_element(&element)?;
            ensure!(
                elements.next().await?.is_none(),
                InvalidArgument,
                "Dataset had more than one element."
            );
            Ok(element)
        });
    }
}

fn to_records(ctx: AsyncCtx, done: Done, on: &InlineScope) {
    let scope = Scope::within(&ctx.step);
    let parts = (|| {
        let elements = DatasetRef::of(ctx.input(0)?)?.iterate(&scope)?;
        let text = |i: usize, name: &str| {
            let t = ctx.input(i)?;
            ensure!(t.rank() == 0, InvalidArgument, "{name} must be a scalar");
            Ok(String::from_utf8_lossy(t.scalar_string()?).into_owned())
        };
        let writer = {
            let compression = RecordCompression::from_name(&text(2, "compression_type")?)?;
            RecordWriter::create_compressed(local(text(1, "filename")?.as_bytes()), compression)?
        };
        Ok((elements, writer))
    })();
    let (mut elements, mut writer) = match parts {
        Ok(parts) => parts,
        Err(e) => return done.fail(e),
    };
    run_kernel(&ctx.step, None, on, done, async move {
        while let Some(element) = elements.next().await? {
            before_io().await;
            match &element[..] {
                [t] if t.dtype() == DType::String && t.rank() == 0 => {
                    writer.write(t.scalar_string()?)?
                }
                _ => bail!(
                    InvalidArgument,
                    "the elements of a dataset that is written to a file must be scalar strings"
                ),
            }
        }
        before_io().await;
        writer.finish()?;
        Ok(Vec::new())
    });
}

/// A dataset as an opaque value.
struct Wrapped(Tensor);

impl VariantObject for Wrapped {
    fn type_name(&self) -> &str {
        "tensorflow::WrappedDatasetVariantWrapper"
    }
}

fn wrap(ctx: &mut Ctx<'_>) -> Result<()> {
    let dataset = ctx.take(0)?;
    DatasetRef::of(&dataset).map_err(|_| {
        err!(
            InvalidArgument,
            "Input tensor must be a scalar of dtype DT_VARIANT that holds a dataset."
        )
    })?;
    ctx.set(0, Tensor::variant(Variant::new(Wrapped(dataset))))
}

fn unwrap(ctx: &mut Ctx<'_>) -> Result<()> {
    let wrapped = match ctx.input(0)?.variants()? {
        [one] => one.get::<Wrapped>().map(|w| w.0.clone()),
        _ => None,
    };
    match wrapped {
        Some(dataset) => ctx.set(0, dataset),
        None => bail!(InvalidArgument, "Tensor must be a WrappedDataset variant object."),
    }
}

pub(crate) fn register(c: &mut Catalog) {
    for op in ["DatasetCardinality", "ExperimentalDatasetCardinality"] {
        let b = c
            .op(op)
            .doc("How many elements a dataset has; -1: without an end, -2: unknown.")
            .input("input_dataset: variant")
            .output("cardinality: int64")
            .role(OpRole::Outside)
            .shape(shape::scalar)
            .cpu_fn(cardinality);
        if op == "DatasetCardinality" {
            drop(b.attr("cardinality_options: string = ''"));
        }
    }
    c.op("DatasetToSingleElement")
        .doc("The one element of a dataset.")
        .input("dataset: variant")
        .output("components: output_types")
        .element_types()
        .metadata_attr()
        .stateful()
        .expensive()
        .shape(component_shapes)
        .waits()
        .cpu(|init| {
            Ok(KernelBox::new_async(SingleElement { types: ElementTypes::from_attrs(init)? }))
        });
    for op in ["DatasetToTFRecord", "ExperimentalDatasetToTFRecord"] {
        c.op(op)
            .doc("Writes the elements of a dataset, which are strings, to a TFRecord file.")
            .input("input_dataset: variant")
            .input("filename: string")
            .input("compression_type: string")
            .stateful()
            .does_io()
            .shape(shape::unknown)
            .waits()
            .cpu(|_| Ok(KernelBox::new_async(to_records)));
    }
    c.op("WrapDatasetVariant")
        .doc("A dataset as an opaque value.")
        .input("input_handle: variant")
        .output("output_handle: variant")
        .role(OpRole::Outside)
        .shape(shape::scalar)
        .cpu_fn(wrap);
    c.op("UnwrapDatasetVariant")
        .doc("The dataset that WrapDatasetVariant was given.")
        .input("input_handle: variant")
        .output("output_handle: variant")
        .role(OpRole::Outside)
        .shape(shape::scalar)
        .cpu_fn(unwrap);
}
