//! Variants in checkpoints: iterators, tensor lists and optionals.
//!
//! Each element is stored as the length of its message, the message (a VariantTensorDataProto) and
//! a checksum of all up to there.

use super::masked;
use crate::prelude::*;
use bytes::Bytes;
use ferroflow_core::Variant;
use ferroflow_graph::wire::tensor::OpaqueVariant;
use ferroflow_op_kit::protobuf::{Message, fields, put_varint, take_varint};
use ferroflow_op_kit::tensor_proto::{self, Strings};

/// The bytes of a tensor's elements, and their checksum.
pub(super) fn write(variants: &[Variant]) -> Result<(Vec<u8>, u32)> {
    let (mut out, mut crc) = (Vec::new(), 0);
    for variant in variants {
        let message = message(variant)?;
        let message = message.as_bytes();
        put_varint(&mut out, message.len() as u64);
        crc = crc32c::crc32c_append(crc, &(message.len() as u64).to_le_bytes());
        out.extend_from_slice(message);
        crc = crc32c::crc32c_append(crc, message);
        let check = masked(crc).to_le_bytes();
        out.extend_from_slice(&check);
        crc = crc32c::crc32c_append(crc, &check);
    }
    Ok((out, crc))
}

fn message(variant: &Variant) -> Result<Message> {
    let mut m = Message::new();
    let Some(object) = variant.object() else { return Ok(m) };
    let Some((metadata, tensors)) = object.encode() else {
        bail!(Unimplemented, "a {} cannot be saved to a checkpoint", object.type_name());
    };
    m.bytes_if(1, object.type_name().as_bytes());
    m.bytes_if(2, &metadata);
    for t in &tensors {
        m.message(3, &tensor_proto::encode(t, Strings::Fields)?);
    }
    Ok(m)
}

/// The elements in bytes that [`write`] made; `None` if they are damaged.
pub(super) fn read(mut bytes: &[u8], n: usize) -> Option<(Vec<Variant>, u32)> {
    let (mut all, mut crc) = (Vec::new(), 0);
    for _ in 0..n {
        let len = take_varint(&mut bytes)?;
        crc = crc32c::crc32c_append(crc, &len.to_le_bytes());
        let (message, rest) = bytes.split_at_checked(usize::try_from(len).ok()?)?;
        crc = crc32c::crc32c_append(crc, message);
        let (check, rest) = rest.split_first_chunk::<4>()?;
        if u32::from_le_bytes(*check) != masked(crc) {
            return None;
        }
        crc = crc32c::crc32c_append(crc, check);
        all.push(variant(message)?);
        bytes = rest;
    }
    bytes.is_empty().then_some((all, crc))
}

fn variant(message: &[u8]) -> Option<Variant> {
    if message.is_empty() {
        return Some(Variant::default());
    }
    let mut found =
        OpaqueVariant { type_name: String::new(), metadata: Bytes::new(), tensors: Vec::new() };
    for (field, value) in fields(message)? {
        let bytes = value.as_bytes()?;
        match field {
            1 => found.type_name = String::from_utf8(bytes.to_vec()).ok()?,
            2 => found.metadata = Bytes::copy_from_slice(bytes),
            3 => found.tensors.push(tensor_proto::decode(bytes)?),
            _ => {}
        }
    }
    Some(Variant::new(found))
}
