//! Writes messages as lists of byte segments: small fields are joined, large payloads are not
//! copied.

use super::tensor::encode_segments;
use bytes::{Bytes, BytesMut};
use ferroflow_core::{Result, Tensor};

/// Payloads of at least this size become segments of their own. Smaller ones are cheaper to copy.
const SEGMENT_FROM: usize = 4 << 10;

/// A serialized message as a list of pieces.
#[derive(Clone, Debug, Default)]
pub struct Segments {
    parts: Vec<Bytes>,
    len: usize,
}

impl Segments {
    /// Bytes of all parts together.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the message is empty.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The pieces in order.
    pub fn parts(&self) -> &[Bytes] {
        &self.parts
    }

    /// The pieces in order.
    pub fn into_parts(self) -> Vec<Bytes> {
        self.parts
    }

    /// All parts as one piece. This copies unless there is only one part.
    pub fn to_bytes(&self) -> Bytes {
        match self.parts.as_slice() {
            [] => Bytes::new(),
            [one] => one.clone(),
            many => many.concat().into(),
        }
    }
}

impl From<Bytes> for Segments {
    fn from(bytes: Bytes) -> Segments {
        Segments { len: bytes.len(), parts: vec![bytes] }
    }
}

/// Writes the fields of a message. As in proto3, scalars with default values are left out.
#[derive(Default)]
pub struct SegmentWriter {
    small: BytesMut,
    done: Segments,
}

impl SegmentWriter {
    /// An empty message.
    pub fn new() -> SegmentWriter {
        SegmentWriter::default()
    }

    /// Writes an integer.
    pub fn int(&mut self, field: u32, value: i64) {
        if value != 0 {
            put_key(&mut self.small, field, 0);
            put_varint(&mut self.small, value as u64);
        }
    }

    /// Writes a truth value.
    pub fn bool(&mut self, field: u32, value: bool) {
        self.int(field, value.into());
    }

    /// Writes a text.
    pub fn string(&mut self, field: u32, value: &str) {
        if !value.is_empty() {
            self.item(field, value);
        }
    }

    /// A repeated string, which is written even when empty.
    pub fn item(&mut self, field: u32, value: &str) {
        self.open(field, value.len());
        self.small.extend_from_slice(value.as_bytes());
    }

    /// A submessage that is serialized already, or a byte string; written even when empty.
    pub fn bytes(&mut self, field: u32, value: Bytes) {
        self.open(field, value.len());
        self.payload(value);
    }

    /// A `TensorProto`.
    pub fn tensor(&mut self, field: u32, tensor: &Tensor) -> Result<()> {
        let encoded = encode_segments(tensor)?;
        self.open(field, encoded.len());
        self.small.extend_from_slice(&encoded.header);
        self.payload(encoded.payload);
        Ok(())
    }

    /// A `NamedTensorProto`.
    pub fn named_tensor(&mut self, field: u32, name: &str, tensor: &Tensor) -> Result<()> {
        let encoded = encode_segments(tensor)?;
        let name_len = match name.len() {
            0 => 0,
            n => 1 + varint_len(n as u64) + n,
        };
        self.open(field, name_len + 1 + varint_len(encoded.len() as u64) + encoded.len());
        self.string(1, name);
        self.open(2, encoded.len());
        self.small.extend_from_slice(&encoded.header);
        self.payload(encoded.payload);
        Ok(())
    }

    /// Starts a length-delimited field of `len` bytes.
    pub fn open(&mut self, field: u32, len: usize) {
        put_key(&mut self.small, field, 2);
        put_varint(&mut self.small, len as u64);
    }

    /// Writes raw bytes.
    pub fn payload(&mut self, bytes: Bytes) {
        if bytes.len() < SEGMENT_FROM {
            self.small.extend_from_slice(&bytes);
            return;
        }
        self.flush();
        self.push(bytes);
    }

    /// The message.
    pub fn finish(mut self) -> Segments {
        self.flush();
        self.done
    }

    fn flush(&mut self) {
        if !self.small.is_empty() {
            let small = self.small.split().freeze();
            self.push(small);
        }
    }

    fn push(&mut self, part: Bytes) {
        self.done.len += part.len();
        self.done.parts.push(part);
    }
}

/// The key in front of a field: its number and wire type.
pub(super) fn put_key(out: &mut impl Extend<u8>, field: u32, wire_type: u32) {
    put_varint(out, u64::from(field << 3 | wire_type));
}

pub(super) fn put_varint(out: &mut impl Extend<u8>, mut value: u64) {
    while value >= 0x80 {
        out.extend([value as u8 | 0x80]);
        value >>= 7;
    }
    out.extend([value as u8]);
}

/// Bytes that [`put_varint`] writes.
pub(super) fn varint_len(value: u64) -> usize {
    (64 - (value | 1).leading_zeros() as usize).div_ceil(7)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn varint_len_is_the_encoded_length() {
        for value in [0, 1, 127, 128, 16383, 16384, u32::MAX.into(), u64::MAX >> 1, u64::MAX] {
            let mut out = Vec::new();
            put_varint(&mut out, value);
            assert_eq!(out.len(), varint_len(value));
            assert_eq!(prost::encoding::decode_varint(&mut &out[..]).unwrap(), value);
        }
    }

    #[test]
    fn only_large_payloads_are_segments_of_their_own() {
        let (small, large) = (Tensor::scalar(1.0f32), Tensor::vector(&[0.0f32; 2048]));
        let mut w = SegmentWriter::new();
        w.named_tensor(1, "a", &small).unwrap();
        w.named_tensor(1, "b", &large).unwrap();
        w.named_tensor(1, "c", &small).unwrap();
        let segments = w.finish();
        let [_, payload, _] = segments.parts() else { panic!("{segments:?}") };
        assert_eq!(payload.as_ptr(), large.bytes().unwrap().as_ptr());
        assert_eq!(segments.len(), segments.to_bytes().len());
    }
}
