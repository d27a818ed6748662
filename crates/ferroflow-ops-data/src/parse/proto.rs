//! DecodeProtoV2 and EncodeProto: protocol buffer messages of any type, described by descriptors.

use super::descriptor::{Encoding, FieldDescriptor, ValueKind, describe};
use crate::prelude::*;
use bytes::Bytes;
use ferroflow_core::Reservation;
use ferroflow_op_kit::protobuf::{FieldValue, fields, put_varint};
use std::sync::OnceLock;

/// The fields that a node names. Their descriptors may be in a file, which is read when the node
/// first runs.
struct Chosen {
    message: String,
    source: Bytes,
    names: Vec<Bytes>,
    dtypes: Vec<DType>,
    found: OnceLock<Vec<FieldDescriptor>>,
}

impl Chosen {
    fn new(init: &KernelInit<'_>, types: &str) -> Result<Chosen> {
        Ok(Chosen {
            message: init.string("message_type")?,
            source: init.bytes("descriptor_source")?,
            names: init.byte_strings("field_names")?,
            dtypes: init.dtypes(types)?,
            found: OnceLock::new(),
        })
    }

    /// The fields in the order of their names.
    fn fields(&self) -> Result<&[FieldDescriptor]> {
        if let Some(found) = self.found.get() {
            return Ok(found);
        }
        let all = describe(&self.source, &self.message)?;
        let find = |name: &Bytes| {
            let found = all.iter().find(|field| field.name.as_bytes() == name);
            found.cloned().ok_or_else(|| {
                let (name, message) = (String::from_utf8_lossy(name), &self.message);
                err!(InvalidArgument, "Unknown field: {name} in message type {message}")
            })
        };
        let found = self.names.iter().map(find).collect::<Result<Vec<_>>>()?;
        check_types(&found, &self.dtypes)?;
        Ok(self.found.get_or_init(|| found))
    }
}

/// Whether values of a field can be elements of a tensor.
fn admits(field: &FieldDescriptor, dtype: DType) -> bool {
    match field.kind {
        ValueKind::Text => dtype == DType::String,
        ValueKind::Bool => dtype == DType::Bool,
        ValueKind::Float => matches!(dtype, DType::Float | DType::Double),
        ValueKind::Double => matches!(dtype, DType::Double | DType::Float),
        ValueKind::Signed if field.is_narrow => matches!(dtype, DType::Int32 | DType::Int64),
        ValueKind::Signed => dtype == DType::Int64,
        ValueKind::Unsigned if field.is_narrow => {
            matches!(dtype, DType::UInt32 | DType::Int64 | DType::UInt64 | DType::Int32)
        }
        ValueKind::Unsigned => matches!(dtype, DType::UInt64 | DType::Int64),
    }
}

fn check_types(all: &[FieldDescriptor], dtypes: &[DType]) -> Result<()> {
    ensure!(
        all.len() == dtypes.len(),
        InvalidArgument,
        "field_names and the types of values must be of equal length: {} and {}",
        all.len(),
        dtypes.len()
    );
    for (field, dtype) in all.iter().zip(dtypes) {
        ensure!(
            admits(field, *dtype),
            InvalidArgument,
            "Unexpected output type for {}: {dtype}",
            field.name
        );
    }
    Ok(())
}

/// A value of a field. Numbers are kept as the bits of an int64 or a double.
#[derive(Clone)]
enum FieldItem {
    Number(u64),
    Real(f64),
    Text(Bytes),
}

/// The number in the bits of a field.
fn number(field: &FieldDescriptor, bits: u64) -> FieldItem {
    let bits = match field.encoding {
        Encoding::ZigZag => (bits >> 1) ^ (bits & 1).wrapping_neg(),
        _ => bits,
    };
    match field.kind {
        ValueKind::Float => FieldItem::Real(f64::from(f32::from_bits(bits as u32))),
        ValueKind::Double => FieldItem::Real(f64::from_bits(bits)),
        ValueKind::Signed if field.is_narrow => FieldItem::Number(i64::from(bits as i32) as u64),
        ValueKind::Unsigned if field.is_narrow => FieldItem::Number(u64::from(bits as u32)),
        ValueKind::Bool => FieldItem::Number(u64::from(bits != 0)),
        _ => FieldItem::Number(bits),
    }
}

/// Adds the values of one occurrence of a field, which may be packed.
fn push(field: &FieldDescriptor, value: FieldValue<'_>, to: &mut Vec<FieldItem>) -> Option<()> {
    match field.encoding {
        Encoding::Bytes => to.push(FieldItem::Text(Bytes::copy_from_slice(value.as_bytes()?))),
        Encoding::Varint | Encoding::ZigZag => value.varints(|x| to.push(number(field, x)))?,
        Encoding::Fixed32 => value.words(|x| to.push(number(field, u64::from(x))))?,
        Encoding::Fixed64 => value.long_words(|x| to.push(number(field, x)))?,
    }
    Some(())
}

/// The values of the chosen fields in a message; `None` if it is malformed.
fn decode_message(all: &[FieldDescriptor], message: &[u8]) -> Option<Vec<Vec<FieldItem>>> {
    let mut found = vec![Vec::new(); all.len()];
    for (number, value) in fields(message)? {
        for (field, to) in all.iter().zip(&mut found).filter(|(field, _)| field.number == number) {
            if !field.is_repeated {
                to.clear();
            }
            push(field, value, to)?;
            if !field.is_repeated {
                to.drain(..to.len().saturating_sub(1));
            }
        }
    }
    Some(found)
}

/// The value of a field that is not in a message.
fn default_of(field: &FieldDescriptor) -> FieldItem {
    let text = field.default.as_deref().unwrap_or_default();
    match field.kind {
        ValueKind::Text => FieldItem::Text(Bytes::copy_from_slice(text.as_bytes())),
        ValueKind::Float | ValueKind::Double => FieldItem::Real(text.parse().unwrap_or(0.0)),
        ValueKind::Bool => FieldItem::Number(u64::from(text == "true")),
        ValueKind::Signed => FieldItem::Number(text.parse::<i64>().unwrap_or(0) as u64),
        ValueKind::Unsigned => FieldItem::Number(text.parse().unwrap_or(0)),
    }
}

/// The values of one field of all messages, padded to the longest.
fn column(
    field: &FieldDescriptor,
    dtype: DType,
    shape: &[usize],
    messages: &[Vec<Vec<FieldItem>>],
    k: usize,
) -> Result<Tensor> {
    let widest = messages.iter().map(|m| m[k].len()).max().unwrap_or(0);
    let shape = Shape::from([shape, &[widest]].concat());
    // One long message makes the rows of all others as long.
    let width = dtype.size().unwrap_or(size_of::<Bytes>());
    let _counted = Reservation::new(shape.checked_elements()?.saturating_mul(width))?;
    let fill = default_of(field);
    let all = || messages.iter().flat_map(|m| (0..widest).map(|i| m[k].get(i).unwrap_or(&fill)));
    let bits = |item: &FieldItem| if let FieldItem::Number(x) = item { *x } else { 0 };
    let real = |item: &FieldItem| if let FieldItem::Real(x) = item { *x } else { 0.0 };
    macro_rules! tensor {
        ($value:expr) => {
            Tensor::from_slice(shape, &all().map($value).collect::<Vec<_>>())
        };
    }
    match dtype {
        DType::Int32 => tensor!(|item| bits(item) as i32),
        DType::Int64 => tensor!(|item| bits(item) as i64),
        DType::UInt32 => tensor!(|item| bits(item) as u32),
        DType::UInt64 => tensor!(bits),
        DType::Bool => tensor!(|item| bits(item) != 0),
        DType::Float => tensor!(|item| real(item) as f32),
        DType::Double => tensor!(real),
        _ => {
            let text = |item: &FieldItem| match item {
                FieldItem::Text(text) => text.clone(),
                _ => Bytes::new(),
            };
            Tensor::from_strings(shape, all().map(text).collect())
        }
    }
}

struct Decode(Chosen);

impl Kernel for Decode {
    fn compute(&self, ctx: &mut Ctx<'_>) -> Result<()> {
        let all = self.0.fields()?;
        let input = ctx.input(0)?;
        let shape = input.shape().to_vec();
        let mut messages = Vec::with_capacity(input.elements());
        for bytes in input.strings()? {
            let decoded = decode_message(all, bytes);
            messages
                .push(decoded.ok_or_else(|| err!(DataLoss, "Unable to parse binary protobuf"))?);
        }
        let sizes: Vec<i32> =
            messages.iter().flat_map(|m| m.iter().map(|items| items.len() as i32)).collect();
        let of = [&shape[..], &[all.len()]].concat();
        ctx.set(0, Tensor::from_slice(of, &sizes)?)?;
        for (k, (field, dtype)) in all.iter().zip(&self.0.dtypes).enumerate() {
            ctx.set(k + 1, column(field, *dtype, &shape, &messages, k)?)?;
        }
        Ok(())
    }
}

struct Encode(Chosen);

/// Element `i` of a tensor as the bits that a field is encoded from.
fn bits_of(field: &FieldDescriptor, t: &Tensor, i: usize) -> Result<u64> {
    let real = |x: f64| match field.kind {
        ValueKind::Float => u64::from((x as f32).to_bits()),
        _ => x.to_bits(),
    };
    let bits = match t.dtype() {
        DType::Int32 => i64::from(t.as_slice::<i32>()?[i]) as u64,
        DType::Int64 => t.as_slice::<i64>()?[i] as u64,
        DType::UInt32 => u64::from(t.as_slice::<u32>()?[i]),
        DType::UInt64 => t.as_slice::<u64>()?[i],
        DType::Bool => u64::from(t.as_slice::<bool>()?[i]),
        DType::Float => real(f64::from(t.as_slice::<f32>()?[i])),
        DType::Double => real(t.as_slice::<f64>()?[i]),
        other => bail!(Internal, "a field of {other}"),
    };
    Ok(match field.encoding {
        Encoding::ZigZag => (bits << 1) ^ ((bits as i64 >> 63) as u64),
        _ => bits,
    })
}

fn put(field: &FieldDescriptor, bits: u64, to: &mut Vec<u8>) {
    match field.encoding {
        Encoding::Fixed32 => to.extend((bits as u32).to_le_bytes()),
        Encoding::Fixed64 => to.extend(bits.to_le_bytes()),
        _ => put_varint(to, bits),
    }
}

/// Adds a field with elements `range` of a tensor to a message.
fn encode_field(
    field: &FieldDescriptor,
    t: &Tensor,
    range: std::ops::Range<usize>,
    to: &mut Vec<u8>,
) -> Result<()> {
    let tag = |kind: u64| u64::from(field.number) << 3 | kind;
    if field.encoding == Encoding::Bytes {
        for text in &t.strings()?[range] {
            put_varint(to, tag(2));
            put_varint(to, text.len() as u64);
            to.extend_from_slice(text);
        }
        return Ok(());
    }
    if field.is_packed && !range.is_empty() {
        let mut packed = Vec::new();
        for i in range {
            put(field, bits_of(field, t, i)?, &mut packed);
        }
        put_varint(to, tag(2));
        put_varint(to, packed.len() as u64);
        to.extend(packed);
        return Ok(());
    }
    for i in range {
        put_varint(
            to,
            tag(match field.encoding {
                Encoding::Fixed32 => 5,
                Encoding::Fixed64 => 1,
                _ => 0,
            }),
        );
        put(field, bits_of(field, t, i)?, to);
    }
    Ok(())
}

impl Kernel for Encode {
    fn compute(&self, ctx: &mut Ctx<'_>) -> Result<()> {
        let all = self.0.fields()?;
        let sizes = ctx.input(0)?;
        let Some((&count, batch)) = sizes.shape().split_last() else {
            bail!(InvalidArgument, "sizes must have at least one dimension");
        };
        ensure!(
            count == all.len(),
            InvalidArgument,
            "sizes has {count} fields, but there are {} field_names",
            all.len()
        );
        let messages: usize = batch.iter().product();
        let lens = sizes.as_slice::<i32>()?;
        // Fields are written in order of their numbers.
        let mut order: Vec<usize> = (0..all.len()).collect();
        order.sort_by_key(|k| all[*k].number);
        let mut out = vec![Vec::new(); messages];
        for k in order {
            let (field, t) = (&all[k], ctx.input(k + 1)?);
            ensure!(
                t.rank() == batch.len() + 1 && t.shape()[..batch.len()] == *batch,
                InvalidArgument,
                "Values must match up to the last dimension: {} for sizes {}",
                t.shape(),
                sizes.shape()
            );
            let width = t.shape()[batch.len()];
            for (m, to) in out.iter_mut().enumerate() {
                let n = usize::try_from(lens[m * count + k]).ok().filter(|n| *n <= width);
                let Some(n) = n else {
                    bail!(
                        InvalidArgument,
                        "Size {} for field {} must be between 0 and {width}",
                        lens[m * count + k],
                        field.name
                    );
                };
                ensure!(
                    n <= 1 || field.is_repeated,
                    InvalidArgument,
                    "Attempted to write {n} values for the non-repeated field {}",
                    field.name
                );
                encode_field(field, t, m * width..m * width + n, to)?;
            }
        }
        let shape = Shape::from(batch);
        ctx.set(0, Tensor::from_strings(shape, out.into_iter().map(Bytes::from).collect())?)
    }
}

pub(crate) fn register(c: &mut Catalog) {
    c.op("DecodeProtoV2")
        .work(work::any)
        .doc("Fields of serialized protocol buffers as tensors.")
        .input("bytes: string")
        .output("sizes: int32")
        .output("values: output_types")
        .attr("message_type: string")
        .attr("field_names: list(string)")
        .attr("output_types: list(type) >= 0")
        .attr("descriptor_source: string = 'local://'")
        .attr("message_format: string = 'binary'")
        .attr("sanitize: bool = false")
        .does_io()
        .shape(shape::unknown)
        .cpu(|init| {
            let format = init.string("message_format")?;
            ensure!(
                format == "binary",
                Unimplemented,
                "message_format '{format}': only 'binary' is supported"
            );
            Ok(KernelBox::new(Decode(Chosen::new(init, "output_types")?)))
        });
    c.op("EncodeProto")
        .work(work::any)
        .doc("Serialized protocol buffers of tensors as fields.")
        .input("sizes: int32")
        .input("values: Tinput_types")
        .output("bytes: string")
        .attr("field_names: list(string)")
        .attr("message_type: string")
        .attr("descriptor_source: string = 'local://'")
        .attr("Tinput_types: list(type) >= 1")
        .does_io()
        .shape(shape::unknown)
        .cpu(|init| Ok(KernelBox::new(Encode(Chosen::new(init, "Tinput_types")?))));
    c.no_gradient(&["DecodeProtoV2", "EncodeProto"]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::check;
    use ferroflow_graph::AttrList;
    use ferroflow_op_kit::protobuf::Message;

    /// A set of one proto2 file: `package p; message M { … }`.
    fn descriptors() -> Bytes {
        let field = |name: &str, number: u64, label: u64, kind: u64, default: &str| {
            let mut m = Message::new();
            m.bytes(1, name.as_bytes()).varint(3, number).varint(4, label).varint(5, kind);
            m.bytes_if(7, default.as_bytes());
            m
        };
        let mut message = Message::new();
        message.bytes(1, b"M");
        for f in [
            field("count", 1, 1, 5, "7"),
            field("delta", 2, 3, 18, ""),
            field("name", 3, 1, 9, "none"),
            field("x", 4, 3, 1, ""),
        ] {
            message.message(2, &f);
        }
        let (mut file, mut set) = (Message::new(), Message::new());
        file.bytes(2, b"p").message(4, &message);
        set.message(1, &file);
        Bytes::from([b"bytes://", set.as_bytes()].concat())
    }

    const NAMES: [&str; 4] = ["count", "delta", "name", "x"];

    fn names() -> AttrList {
        AttrList::Strs(NAMES.map(Bytes::from).to_vec())
    }

    #[test]
    fn what_is_encoded_is_decoded() {
        let types = [DType::Int32, DType::Int64, DType::String, DType::Double];
        let sizes = Tensor::from_slice([2, 4], &[1i32, 2, 1, 0, 0, 1, 0, 1]).unwrap();
        let values = [
            Tensor::from_slice([2, 1], &[-5i32, 0]).unwrap(),
            Tensor::from_slice([2, 2], &[-3i64, 4, 9, 0]).unwrap(),
            Tensor::from_strings([2, 1], vec!["ab".into(), Bytes::new()]).unwrap(),
            Tensor::from_slice([2, 1], &[0f64, 2.5]).unwrap(),
        ];
        let mut encode = check("EncodeProto")
            .attr("message_type", "p.M")
            .attr("field_names", names())
            .attr("descriptor_source", descriptors())
            .input(sizes.clone());
        for value in values {
            encode = encode.input(value);
        }
        let bytes = encode.run().unwrap().remove(0);
        assert_eq!(&bytes.strings().unwrap()[1][..], b"\x10\x12\x21\0\0\0\0\0\0\x04\x40");
        let out = check("DecodeProtoV2")
            .attr("message_type", "p.M")
            .attr("field_names", names())
            .attr("output_types", types.to_vec())
            .attr("descriptor_source", descriptors())
            .input(bytes)
            .run()
            .unwrap();
        assert_eq!(out[0], sizes);
        assert_eq!(out[1], Tensor::from_slice([2, 1], &[-5i32, 7]).unwrap());
        assert_eq!(out[2], Tensor::from_slice([2, 2], &[-3i64, 4, 9, 0]).unwrap());
        assert_eq!(out[3], Tensor::from_strings([2, 1], vec!["ab".into(), "none".into()]).unwrap());
        assert_eq!(out[4], Tensor::from_slice([2, 1], &[0f64, 2.5]).unwrap());
    }

    #[test]
    fn unknown_messages_and_fields_are_named() {
        let decode = |message: &str, field: &'static str, source: Bytes| {
            check("DecodeProtoV2")
                .attr("message_type", message)
                .attr("field_names", AttrList::Strs(vec![Bytes::from(field)]))
                .attr("output_types", vec![DType::Int32])
                .attr("descriptor_source", source)
                .input(Tensor::string(Bytes::from_static(b"\x08\xff")))
        };
        decode("p.N", "count", descriptors())
            .fails(Code::InvalidArgument, "No descriptor found for message type 'p.N'");
        decode("p.M", "other", descriptors()).fails(Code::InvalidArgument, "Unknown field: other");
        decode("p.M", "name", descriptors()).fails(Code::InvalidArgument, "Unexpected output type");
        decode("p.M", "count", "local://".into()).fails(Code::InvalidArgument, "FileDescriptorSet");
        decode("p.M", "count", descriptors()).fails(Code::DataLoss, "Unable to parse");
    }
}
