//! SerializeTensor and ParseTensor: a tensor as a TensorProto record.

use crate::prelude::*;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ferroflow_op_kit::protobuf::fields;
use ferroflow_op_kit::tensor_proto::{Strings, decode, encode};

fn serialize_tensor(ctx: &mut Ctx<'_>) -> Result<()> {
    let proto = encode(ctx.input(0)?, Strings::Fields)?;
    ctx.set(0, Tensor::string(proto.into_bytes()))
}

fn parse_tensor(init: &KernelInit<'_>) -> Result<KernelBox> {
    let dtype = init.dtype("out_type")?;
    Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
        let serialized = ctx.input(0)?;
        ensure!(
            serialized.rank() == 0,
            InvalidArgument,
            "Expected `serialized` to be a scalar, got shape: {}",
            serialized.shape()
        );
        let bytes = serialized.scalar_string()?;
        ensure!(
            fields(bytes).is_some(),
            InvalidArgument,
            "Could not parse `serialized` as TensorProto, base64: {}",
            STANDARD.encode(bytes)
        );
        let Some(t) = decode(bytes) else {
            bail!(InvalidArgument, "Cannot parse tensor from proto: {}", bytes.escape_ascii());
        };
        ensure!(
            t.dtype() == dtype,
            InvalidArgument,
            "Type mismatch between parsed tensor ({}) and dtype ({dtype})",
            t.dtype()
        );
        ctx.set(0, t)
    }))
}

pub(crate) fn register(c: &mut Catalog) {
    c.op("SerializeTensor")
        .doc("A tensor as a TensorProto record.")
        .input("tensor: T")
        .output("serialized: string")
        .attr("T: type")
        .shape(shape::scalar)
        .cpu_fn(serialize_tensor);
    c.op("ParseTensor")
        .doc("The tensor in a TensorProto record.")
        .input("serialized: string")
        .output("output: out_type")
        .attr("out_type: type")
        .shape(shape::unknown)
        .cpu(parse_tensor);
    c.no_gradient(&["ParseTensor", "SerializeTensor"]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::check;
    use bytes::Bytes;

    #[test]
    fn tensors_become_records_and_back() {
        let words = ["a", "bcd"].map(Bytes::from).to_vec();
        for t in [
            Tensor::vector(&[1i32, 2]),
            Tensor::scalar(true),
            Tensor::zeros(DType::Float, [0, 2]).unwrap(),
            Tensor::from_strings([2], words).unwrap(),
            Tensor::vector(&[Complex64::new(1.0, 2.0)]),
            Tensor::vector(&[f16::from_f32(1.5)]),
        ] {
            let record = check("SerializeTensor").input(t.clone()).run().unwrap().remove(0);
            check("ParseTensor").attr("out_type", t.dtype()).input(record).gives(t);
        }
    }

    #[test]
    fn malformed_records_are_refused() {
        let parse = |s: &'static [u8]| {
            check("ParseTensor")
                .attr("out_type", DType::Float)
                .input(Tensor::string(Bytes::from_static(s)))
        };
        parse(b"").fails(Code::InvalidArgument, "Cannot parse tensor from proto");
        parse(b"\xff\xff").fails(
            Code::InvalidArgument,
            "Could not parse `serialized` as TensorProto, base64: //8=",
        );
        parse(b"\x08\x03\x12\0\x3a\x01\x01").fails(
            Code::InvalidArgument,
            "Type mismatch between parsed tensor (int32) and dtype (float)",
        );
        // Too many values, and more elements than memory.
        parse(b"\x08\x01\x12\0\x2a\x08\0\0\0\0\0\0\0\0")
            .fails(Code::InvalidArgument, "Cannot parse");
        parse(b"\x08\x07\x12\x08\x12\x06\x08\x80\x80\x80\x80\x7f").fails(Code::InvalidArgument, "");
    }
}
