//! TensorProto: a serialized tensor.

use crate::prelude::*;
use crate::protobuf::{
    FieldValue, Message, fields, put_varint, read_shape, shape_message, take_varint,
};
use bytes::Bytes;

/// How strings are written.
#[derive(Clone, Copy, PartialEq)]
pub enum Strings {
    /// Each string in a field of its own.
    Fields,
    /// All strings in `tensor_content`: lengths first, then the bytes.
    Content,
}

/// A tensor as a TensorProto.
pub fn encode(t: &Tensor, how: Strings) -> Result<Message> {
    let mut m = Message::new();
    m.varint(1, t.dtype().number() as u64);
    m.message(2, &shape_message(t.shape()));
    match t.strings() {
        Ok(strings) if how == Strings::Fields => {
            for s in strings {
                m.bytes(8, s);
            }
        }
        Ok(strings) => {
            let mut content = Vec::new();
            strings.iter().for_each(|s| put_varint(&mut content, s.len() as u64));
            strings.iter().for_each(|s| content.extend_from_slice(s));
            m.bytes_if(4, &content);
        }
        Err(_) if t.dtype().is_plain() => {
            m.bytes_if(4, t.bytes()?);
        }
        Err(_) => bail!(Unimplemented, "a {} tensor cannot be serialized", t.dtype()),
    }
    Ok(m)
}

/// The tensor in a TensorProto; `None` if it is malformed. If there are fewer values than elements,
/// the last value is repeated.
pub fn decode(proto: &[u8]) -> Option<Tensor> {
    let fields = fields(proto)?;
    let last = |field: u32| fields.iter().rev().find(|f| f.0 == field).map(|f| f.1);
    let dtype = DType::from_number(i32::try_from(last(1)?.as_varint()?).ok()?).ok()?;
    let dims = match last(2) {
        Some(shape) => read_shape(shape.as_bytes()?)?,
        None => Vec::new(),
    };
    let shape = Shape::from_dims(&dims).ok()?;
    let content = last(4).and_then(FieldValue::as_bytes).unwrap_or_default();
    let values = |field: u32| fields.iter().filter(move |f| f.0 == field).map(|f| f.1);
    if dtype == DType::String {
        let strings = match content.is_empty() {
            false => strings_of_content(content, shape.elements())?,
            true => values(8)
                .map(|v| v.as_bytes().map(Bytes::copy_from_slice))
                .collect::<Option<Vec<_>>>()?,
        };
        return repeated_strings(shape, strings);
    }
    let size = dtype.size()?;
    if !content.is_empty() {
        return Tensor::from_bytes(dtype, shape, Bytes::copy_from_slice(content)).ok();
    }
    // The bytes of the values, from the field that their dtype uses.
    let mut bytes: Vec<u8> = Vec::new();
    let field = field_of(dtype)?;
    for value in values(field) {
        match field {
            5 | 9 => value.words(|w| bytes.extend(w.to_le_bytes()))?,
            6 | 12 => value.long_words(|w| bytes.extend(w.to_le_bytes()))?,
            _ => value.varints(|x| bytes.extend_from_slice(&x.to_le_bytes()[..size.min(8)]))?,
        }
    }
    let n = shape.elements();
    if !bytes.len().is_multiple_of(size) || bytes.len() > n.checked_mul(size)? {
        return None;
    }
    let mut t =
        Tensor::zeros(if dtype == DType::Bool { DType::UInt8 } else { dtype }, shape).ok()?;
    let to = t.bytes_mut().ok()?;
    to[..bytes.len()].copy_from_slice(&bytes);
    if let Some(last) = bytes.len().checked_sub(size) {
        for chunk in to[bytes.len()..].chunks_mut(size) {
            chunk.copy_from_slice(&bytes[last..]);
        }
    }
    match dtype {
        DType::Bool => {
            let bools: Vec<bool> = t.bytes().ok()?.iter().map(|&b| b != 0).collect();
            Tensor::from_slice(t.shape().clone(), &bools).ok()
        }
        _ => Some(t),
    }
}

/// The field that values of a dtype are listed in.
pub fn field_of(dtype: DType) -> Option<u32> {
    use DType::*;
    Some(match dtype {
        Float => 5,
        Double => 6,
        Int32 | Int16 | Int8 | UInt8 | UInt16 | QInt8 | QUInt8 | QInt16 | QUInt16 | QInt32 => 7,
        Complex64 => 9,
        Int64 => 10,
        Bool => 11,
        Complex128 => 12,
        Half | BFloat16 => 13,
        UInt32 => 16,
        UInt64 => 17,
        _ => return None,
    })
}

fn strings_of_content(mut content: &[u8], n: usize) -> Option<Vec<Bytes>> {
    let mut lengths = Vec::new();
    for _ in 0..n {
        lengths.push(usize::try_from(take_varint(&mut content)?).ok()?);
    }
    let mut strings = Vec::with_capacity(lengths.len());
    for len in lengths {
        let (s, rest) = content.split_at_checked(len)?;
        strings.push(Bytes::copy_from_slice(s));
        content = rest;
    }
    content.is_empty().then_some(strings)
}

fn repeated_strings(shape: Shape, mut strings: Vec<Bytes>) -> Option<Tensor> {
    let n = shape.elements();
    if strings.len() > n {
        return None;
    }
    if strings.len() < n {
        // A shape alone must not cause an unbounded allocation.
        Tensor::alloc(DType::String, shape.clone()).ok()?;
        let last = strings.last().cloned().unwrap_or_default();
        strings.resize(n, last);
    }
    Tensor::from_strings(shape, strings).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_can_be_packed_into_the_content() {
        let strings = Tensor::from_strings([2], ["a", "bcd"].map(Bytes::from).to_vec()).unwrap();
        let packed = encode(&strings, Strings::Content).unwrap();
        assert_eq!(packed.as_bytes(), b"\x08\x07\x12\x04\x12\x02\x08\x02\"\x06\x01\x03abcd");
        assert_eq!(decode(packed.as_bytes()).unwrap(), strings);
    }

    #[test]
    fn values_in_fields_are_repeated() {
        // float, shape [3], float_val: 1.5
        let proto = b"\x08\x01\x12\x04\x12\x02\x08\x03\x2a\x04\0\0\xc0\x3f";
        assert_eq!(decode(proto).unwrap(), Tensor::vector(&[1.5f32; 3]));
        // int32, scalar, int_val: -1
        let proto = b"\x08\x03\x12\0\x3a\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01";
        assert_eq!(decode(proto).unwrap(), Tensor::scalar(-1i32));
        // half 1.0 and bool true
        assert_eq!(decode(b"\x08\x13\x12\0\x6a\x02\x80\x78").unwrap(), Tensor::scalar(f16::ONE));
        assert_eq!(decode(b"\x08\x0a\x12\0\x5a\x01\x01").unwrap(), Tensor::scalar(true));
    }
}
