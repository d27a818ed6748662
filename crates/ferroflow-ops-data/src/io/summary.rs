//! Summaries: records of scalars, images and other values of a training, as serialized Summary
//! messages.

mod audio;
mod histogram;
mod image;
mod plain;
mod png;
mod writer;

pub(crate) use histogram::Distribution;
pub(crate) use writer::Writer;

use crate::prelude::*;
use ferroflow_op_kit::protobuf::Message;

pub(crate) fn register(c: &mut Catalog) {
    audio::register(c);
    histogram::register(c);
    image::register(c);
    plain::register(c);
    writer::register(c);
}

/// The scalar tag in input 0.
fn scalar_tag(ctx: &Ctx<'_>, what: &str) -> Result<String> {
    let tag = ctx.input(0)?;
    ensure!(tag.rank() == 0, InvalidArgument, "{what} must be scalar");
    Ok(String::from_utf8_lossy(tag.scalar_string()?).into_owned())
}

/// A value of a summary, with its tag.
fn tagged(tag: &str) -> Message {
    let mut value = Message::new();
    value.bytes_if(1, tag.as_bytes());
    value
}

/// A summary of these values.
fn summary(values: &[Message]) -> Tensor {
    let mut summary = Message::new();
    for value in values {
        summary.message(1, value);
    }
    Tensor::string(summary.into_bytes())
}

/// `base/kind`, numbered where there may be several.
fn numbered(base: &str, kind: &str, i: usize, most: usize) -> String {
    if most > 1 { format!("{base}/{kind}/{i}") } else { format!("{base}/{kind}") }
}
