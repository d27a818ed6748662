//! ScalarSummary, TensorSummary, TensorSummaryV2, MergeSummary.

use super::{scalar_tag, summary, tagged};
use crate::prelude::*;
use ferroflow_core::RealElement;
use ferroflow_op_kit::protobuf::{Message, fields};
use ferroflow_op_kit::tensor_proto::{Strings, encode};
use std::collections::HashSet;

/// The elements of a tensor of real numbers, as summaries keep them.
pub(super) fn floats(t: &Tensor) -> Result<Vec<f32>> {
    fn of<T: RealElement>(t: &Tensor) -> Result<Vec<f32>> {
        Ok(t.as_slice::<T>()?.iter().map(|x| x.to_f64() as f32).collect())
    }
    match t.dtype() {
        DType::Float => of::<f32>(t),
        DType::Double => of::<f64>(t),
        DType::Half => of::<f16>(t),
        DType::BFloat16 => of::<bf16>(t),
        DType::UInt64 => of::<u64>(t),
        _ => Ok(t.to_indices()?.into_iter().map(|x| x as f32).collect()),
    }
}

fn scalars(ctx: &mut Ctx<'_>) -> Result<()> {
    let (tags, values) = (ctx.input(0)?, ctx.input(1)?);
    ensure!(
        tags.shape() == values.shape(),
        InvalidArgument,
        "tags and values are not the same shape: {} != {}",
        tags.shape(),
        values.shape()
    );
    let mut all = Vec::new();
    for (tag, x) in tags.strings()?.iter().zip(floats(values)?) {
        let mut value = tagged(&String::from_utf8_lossy(tag));
        value.float(2, x);
        all.push(value);
    }
    ctx.set(0, summary(&all))
}

fn tensor_summary(ctx: &mut Ctx<'_>) -> Result<()> {
    let mut value = Message::new();
    value.bytes(7, ctx.name().as_bytes()).message(8, &encode(ctx.input(0)?, Strings::Fields)?);
    ctx.set(0, summary(&[value]))
}

fn tensor_summary_v2(ctx: &mut Ctx<'_>) -> Result<()> {
    let mut value = tagged(&scalar_tag(ctx, "tag")?);
    let metadata = ctx.input(2)?;
    ensure!(metadata.rank() == 0, InvalidArgument, "serialized_summary_metadata must be scalar");
    let metadata = metadata.scalar_string()?;
    ensure!(
        fields(metadata).is_some(),
        InvalidArgument,
        "Failed to parse serialized_summary_metadata"
    );
    value.message(8, &encode(ctx.input(1)?, Strings::Fields)?).bytes(9, metadata);
    ctx.set(0, summary(&[value]))
}

/// The values of all summaries; no tag may come twice.
fn merge(ctx: &mut Ctx<'_>) -> Result<()> {
    let (mut merged, mut tags) = (Message::new(), HashSet::new());
    for i in 0..ctx.num_inputs() {
        for s in ctx.input(i)?.strings()? {
            let Some(values) = fields(s) else {
                bail!(InvalidArgument, "Could not parse one of the summary inputs");
            };
            for (_, value) in values.into_iter().filter(|f| f.0 == 1) {
                let Some((bytes, parts)) = value.as_bytes().and_then(|b| Some((b, fields(b)?)))
                else {
                    bail!(InvalidArgument, "Could not parse one of the summary inputs");
                };
                let tag = parts.iter().rev().find(|f| f.0 == 1).and_then(|f| f.1.as_bytes());
                // Values without a tag are distinguished by their node's name.
                if let Some(tag) = tag.filter(|t| !t.is_empty()) {
                    ensure!(
                        tags.insert(tag.to_vec()),
                        InvalidArgument,
                        "Duplicate tag {} found in summary inputs ",
                        String::from_utf8_lossy(tag)
                    );
                }
                merged.bytes(1, bytes);
            }
        }
    }
    ctx.set(0, Tensor::string(merged.into_bytes()))
}

pub(crate) fn register(c: &mut Catalog) {
    c.op("ScalarSummary")
        .doc("A summary of numbers, each with its tag.")
        .input("tags: string")
        .input("values: T")
        .output("summary: string")
        .attr("T: realnumbertype")
        .shape(shape::scalar)
        .cpu_fn(scalars);
    c.op("TensorSummary")
        .doc("A summary of a tensor, under the node's name.")
        .input("tensor: T")
        .output("summary: string")
        .attr("T: type")
        .attr("description: string = ''")
        .attr("labels: list(string) = []")
        .attr("display_name: string = ''")
        .shape(shape::scalar)
        .cpu_fn(tensor_summary);
    c.op("TensorSummaryV2")
        .doc("A summary of a tensor, with a tag and metadata.")
        .input("tag: string")
        .input("tensor: T")
        .input("serialized_summary_metadata: string")
        .output("summary: string")
        .attr("T: type")
        .shape(shape::scalar)
        .cpu_fn(tensor_summary_v2);
    c.op("MergeSummary")
        .doc("One summary of several.")
        .input("inputs: N * string")
        .output("summary: string")
        .attr("N: int >= 1")
        .shape(shape::scalar)
        .cpu_fn(merge);
    c.no_gradient(&["MergeSummary", "ScalarSummary", "TensorSummary", "TensorSummaryV2"]);
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::testing::check;
    use bytes::Bytes;

    fn scalar(tag: &'static str, x: f32) -> Tensor {
        let c = check("ScalarSummary").input(Tensor::string(tag)).input(Tensor::scalar(x));
        c.run().unwrap().remove(0)
    }

    #[test]
    fn numbers_are_tagged() {
        assert_eq!(scalar("a", 1.5), Tensor::string(&b"\n\x08\n\x01a\x15\x00\x00\xc0?"[..]));
        assert_eq!(scalar("a", 0.0), Tensor::string(&b"\n\x08\n\x01a\x15\x00\x00\x00\x00"[..]));
        check("ScalarSummary")
            .input(Tensor::from_strings([1], vec![Bytes::from("a")]).unwrap())
            .input(Tensor::scalar(1i32))
            .fails(Code::InvalidArgument, "tags and values are not the same shape: [1] != []");
    }

    #[test]
    fn summaries_merge() {
        let merge = |b| check("MergeSummary").input(scalar("a", 1.5)).input(b);
        merge(scalar("b", 1.5)).gives(Tensor::string(
            &b"\n\x08\n\x01a\x15\x00\x00\xc0?\n\x08\n\x01b\x15\x00\x00\xc0?"[..],
        ));
        merge(scalar("a", 2.0))
            .fails(Code::InvalidArgument, "Duplicate tag a found in summary inputs");
        merge(Tensor::string(&b"\xff"[..])).fails(Code::InvalidArgument, "Could not parse");
    }

    #[test]
    fn tensors_are_kept_whole() {
        check("TensorSummaryV2")
            .input(Tensor::string("t"))
            .input(Tensor::vector(&[1f32, 2.]))
            .input(Tensor::string(""))
            .gives(Tensor::string(
                &b"\n\x19\n\x01tB\x12\x08\x01\x12\x04\x12\x02\x08\x02\"\x08\x00\x00\x80?\x00\x00\x00@J\x00"
                    [..],
            ));
        let named = check("TensorSummary").input(Tensor::scalar(true)).run().unwrap();
        let text = named[0].scalar_string().unwrap();
        assert!(text.windows(15).any(|w| w == b"node_under_test"));
    }
}
