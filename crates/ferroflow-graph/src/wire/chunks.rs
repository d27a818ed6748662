//! Reads messages from the chunks that a connection delivered, without joining them first.

use super::malformed;
use super::tensor::{self, ADOPT_FROM, TENSOR_CONTENT};
use bytes::{Buf, Bytes};
use ferroflow_core::{DType, Result, Tensor, bail, ensure, err};
use ferroflow_proto::tensorflow as pb;
use prost::Message;
use prost::encoding::{DecodeContext, WireType};
use std::collections::VecDeque;

/// A message that is being read. Nested messages are read in place, bounded by their lengths. Each
/// length is checked against the available bytes before memory is allocated for it.
pub struct MessageReader {
    /// Never starts with an empty chunk.
    chunks: VecDeque<Bytes>,
    /// The unread bytes of the message. The chunks hold at least as many.
    left: usize,
}

/// The most fields of a message that are looked at to estimate how long parsing it takes.
const MOST_LOOKED_AT: usize = 1000;

/// The key of a field.
#[derive(Clone, Copy, Debug)]
pub struct FieldKey {
    /// The number of the field.
    pub field: u32,
    /// How its value is encoded.
    pub wire_type: WireType,
}

impl MessageReader {
    /// A message in these chunks.
    pub fn new(chunks: impl IntoIterator<Item = Bytes>) -> MessageReader {
        let chunks: VecDeque<Bytes> = chunks.into_iter().filter(|c| !c.is_empty()).collect();
        let left = chunks.iter().map(Bytes::len).sum();
        MessageReader { chunks, left }
    }

    /// The key of the next field; `None` at the end of the message.
    pub fn key(&mut self) -> Result<Option<FieldKey>> {
        if self.left == 0 {
            return Ok(None);
        }
        let (field, wire_type) = prost::encoding::decode_key(self).map_err(malformed)?;
        Ok(Some(FieldKey { field, wire_type }))
    }

    /// An integer.
    pub fn int(&mut self, key: FieldKey) -> Result<i64> {
        expect(key, WireType::Varint)?;
        Ok(prost::encoding::decode_varint(self).map_err(malformed)? as i64)
    }

    /// A truth value.
    pub fn bool(&mut self, key: FieldKey) -> Result<bool> {
        Ok(self.int(key)? != 0)
    }

    /// A text.
    pub fn string(&mut self, key: FieldKey) -> Result<String> {
        expect(key, WireType::LengthDelimited)?;
        let len = self.length()?;
        let mut text = vec![0; len];
        self.copy_to_slice(&mut text);
        String::from_utf8(text)
            .map_err(|_| err!(InvalidArgument, "malformed message: field {} not UTF-8", key.field))
    }

    /// A byte string or an unread message. It is copied only if it spans chunks.
    pub fn bytes(&mut self, key: FieldKey) -> Result<Bytes> {
        expect(key, WireType::LengthDelimited)?;
        let len = self.length()?;
        Ok(self.copy_to_bytes(len))
    }

    /// A nested message, which `read` must read to its end.
    pub fn message<T>(
        &mut self,
        key: FieldKey,
        read: impl FnOnce(&mut MessageReader) -> Result<T>,
    ) -> Result<T> {
        expect(key, WireType::LengthDelimited)?;
        let len = self.length()?;
        let after = self.left - len;
        self.left = len;
        let value = read(self)?;
        ensure!(self.left == 0, Internal, "{} bytes of a message were not read", self.left);
        self.left = after;
        Ok(value)
    }

    /// Merges a nested message that prost reads into `message`.
    pub fn merge<M: Message>(&mut self, key: FieldKey, into: &mut M) -> Result<()> {
        self.message(key, |r| into.merge(r).map_err(malformed))
    }

    /// How many bytes of the message take time to parse, out of all: the rest are long contents of
    /// plain tensors. `path` has the fields that lead to a `TensorProto`.
    pub fn parsed_bytes(&self, path: &[u32]) -> usize {
        let mut copy = MessageReader { chunks: self.chunks.clone(), left: self.left };
        let mut fields = 0;
        // A malformed message is noticed when it is parsed.
        self.left - copy.plain_bytes(path, &mut fields).unwrap_or(0)
    }

    /// The bytes in long contents of plain tensors; none after `MOST_LOOKED_AT` fields.
    fn plain_bytes(&mut self, path: &[u32], fields: &mut usize) -> Result<usize> {
        let (mut plain, mut dtype) = (0, None);
        while let Some(key) = self.key()? {
            *fields += 1;
            if *fields > MOST_LOOKED_AT {
                self.advance(self.left);
                break;
            }
            match path {
                [field, rest @ ..] if key.field == *field => {
                    plain += self.message(key, |r| {
                        let inside = r.plain_bytes(rest, fields);
                        r.advance(r.left);
                        inside
                    })?;
                }
                [] if key.field == tensor::DTYPE => {
                    // A tensor with two types counts as parsed in full.
                    let known = dtype.replace(DType::from_number(self.int(key)? as i32)?);
                    ensure!(known.is_none(), InvalidArgument, "two types");
                }
                [] if key.field == TENSOR_CONTENT && dtype.is_some_and(DType::is_plain) => {
                    let content = self.bytes_len(key)?;
                    plain += if content >= ADOPT_FROM { content } else { 0 };
                }
                _ => self.skip(key)?,
            }
        }
        Ok(plain)
    }

    /// Skips a byte string. Returns its length.
    fn bytes_len(&mut self, key: FieldKey) -> Result<usize> {
        expect(key, WireType::LengthDelimited)?;
        let len = self.length()?;
        self.advance(len);
        Ok(len)
    }

    /// A `TensorProto`. A large `tensor_content` is copied once, into the tensor's own buffer. It
    /// is not copied at all if it is aligned within one chunk.
    pub fn tensor(&mut self, key: FieldKey) -> Result<Tensor> {
        self.message(key, MessageReader::tensor_fields)
    }

    /// A `NamedTensorProto`.
    pub fn named_tensor(&mut self, key: FieldKey) -> Result<(String, Tensor)> {
        self.message(key, |r| {
            let (mut name, mut tensor) = (String::new(), None);
            while let Some(key) = r.key()? {
                match key.field {
                    1 => name = r.string(key)?,
                    2 => tensor = Some(r.tensor(key)?),
                    _ => r.skip(key)?,
                }
            }
            match tensor {
                Some(tensor) => Ok((name, tensor)),
                None => bail!(InvalidArgument, "no tensor is given for '{name}'"),
            }
        })
    }

    /// Skips an unknown field.
    pub fn skip(&mut self, key: FieldKey) -> Result<()> {
        prost::encoding::skip_field(key.wire_type, key.field, self, DecodeContext::default())
            .map_err(malformed)
    }

    fn tensor_fields(&mut self) -> Result<Tensor> {
        let mut proto = pb::TensorProto::default();
        let mut ready: Option<Tensor> = None;
        while let Some(key) = self.key()? {
            if key.field == TENSOR_CONTENT {
                expect(key, WireType::LengthDelimited)?;
                let len = self.length()?;
                ready = None;
                match plain_target(&proto, len) {
                    Some(dtype) if len >= ADOPT_FROM => {
                        ready = Some(self.content(dtype, &proto, len)?)
                    }
                    _ => proto.tensor_content = self.copy_to_bytes(len),
                }
                continue;
            }
            // Ignore value lists beside a content, but not a later type or shape.
            if key.field <= tensor::TENSOR_SHAPE
                && let Some(tensor) = ready.take()
            {
                proto.tensor_content = tensor.to_wire_bytes()?;
            }
            proto
                .merge_field(key.field, key.wire_type, self, DecodeContext::default())
                .map_err(malformed)?;
        }
        match ready {
            Some(tensor) => Ok(tensor),
            None => tensor::from_proto(proto),
        }
    }

    /// Reads a content of `len` bytes as a tensor of the dtype and shape that came before it.
    fn content(&mut self, dtype: DType, proto: &pb::TensorProto, len: usize) -> Result<Tensor> {
        let shape = tensor::full_shape(proto.tensor_shape.as_ref())?;
        tensor::check_content(dtype, &shape, len)?;
        // Bytes within one chunk may be unaligned; then `from_bytes` copies them.
        if dtype == DType::Bool || self.chunk().len() >= len {
            return Tensor::from_bytes(dtype, shape, self.copy_to_bytes(len));
        }
        let mut tensor = Tensor::alloc(dtype, shape)?;
        self.copy_to_slice(tensor.bytes_mut()?);
        Ok(tensor)
    }

    fn length(&mut self) -> Result<usize> {
        let len = prost::encoding::decode_varint(self).map_err(malformed)?;
        match usize::try_from(len) {
            Ok(len) if len <= self.left => Ok(len),
            _ => bail!(
                InvalidArgument,
                "malformed message: a field of {len} bytes, but only {} are left",
                self.left
            ),
        }
    }
}

/// The dtype, if dtype and shape are known and `len` bytes are exactly the tensor's content.
fn plain_target(proto: &pb::TensorProto, len: usize) -> Option<DType> {
    let dtype = DType::from_number(proto.dtype).ok()?;
    let n = tensor::full_shape(proto.tensor_shape.as_ref()).ok()?.elements();
    (dtype.size()?.checked_mul(n)? == len).then_some(dtype)
}

fn expect(key: FieldKey, wire_type: WireType) -> Result<()> {
    ensure!(
        key.wire_type == wire_type,
        InvalidArgument,
        "malformed message: field {} has wire type {:?}, expected {wire_type:?}",
        key.field,
        key.wire_type
    );
    Ok(())
}

impl From<Bytes> for MessageReader {
    fn from(bytes: Bytes) -> MessageReader {
        MessageReader::new([bytes])
    }
}

impl From<Vec<Bytes>> for MessageReader {
    fn from(chunks: Vec<Bytes>) -> MessageReader {
        MessageReader::new(chunks)
    }
}

impl From<VecDeque<Bytes>> for MessageReader {
    fn from(chunks: VecDeque<Bytes>) -> MessageReader {
        MessageReader::new(chunks)
    }
}

/// The unread bytes of the message.
impl Buf for MessageReader {
    fn remaining(&self) -> usize {
        self.left
    }

    fn chunk(&self) -> &[u8] {
        match self.chunks.front() {
            Some(chunk) => &chunk[..chunk.len().min(self.left)],
            None => &[],
        }
    }

    fn advance(&mut self, mut n: usize) {
        assert!(n <= self.left, "advanced {n} bytes where {} are left", self.left);
        self.left -= n;
        while n > 0 {
            let chunk = self.chunks.front_mut().expect("the chunks hold the unread bytes");
            let step = n.min(chunk.len());
            chunk.advance(step);
            n -= step;
            if chunk.is_empty() {
                self.chunks.pop_front();
            }
        }
    }

    fn copy_to_bytes(&mut self, n: usize) -> Bytes {
        assert!(n <= self.left, "took {n} bytes where {} are left", self.left);
        if let Some(chunk) = self.chunks.front_mut()
            && n <= chunk.len()
        {
            let taken = chunk.split_to(n);
            self.left -= n;
            if chunk.is_empty() {
                self.chunks.pop_front();
            }
            return taken;
        }
        let mut joined = vec![0; n];
        self.copy_to_slice(&mut joined);
        joined.into()
    }
}
