//! Index entries of a checkpoint bundle.

use super::slice::Slice;
use crate::prelude::*;
use ferroflow_op_kit::protobuf::{Message, fields, read_shape, shape_message};

/// Where a tensor's bytes are, or which slices it is kept in.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Entry {
    pub dtype: DType,
    pub shape: Shape,
    pub shard: u32,
    pub offset: u64,
    pub size: u64,
    /// Masked.
    pub crc: u32,
    /// The parts of a partitioned tensor, each with an entry of its own.
    pub slices: Vec<Slice>,
}

impl Entry {
    /// An entry that only lists slices.
    pub fn partitioned(dtype: DType, shape: Shape) -> Entry {
        Entry { dtype, shape, shard: 0, offset: 0, size: 0, crc: 0, slices: Vec::new() }
    }

    pub fn encode(&self) -> Vec<u8> {
        let mut m = Message::new();
        m.varint_if(1, self.dtype.number() as u64);
        m.message(2, &shape_message(&self.shape));
        m.varint_if(3, u64::from(self.shard));
        m.varint_if(4, self.offset);
        m.varint_if(5, self.size);
        if self.crc != 0 {
            m.fixed32(6, self.crc);
        }
        for slice in &self.slices {
            m.message(7, &slice.message());
        }
        m.into_bytes()
    }

    pub fn decode(bytes: &[u8]) -> Option<Entry> {
        let mut entry = Entry::partitioned(DType::Float, Shape::scalar());
        let mut dtype = 0;
        for (field, value) in fields(bytes)? {
            match field {
                1 => dtype = value.as_varint()?,
                2 => entry.shape = Shape::from_dims(&read_shape(value.as_bytes()?)?).ok()?,
                3 => entry.shard = u32::try_from(value.as_varint()?).ok()?,
                4 => entry.offset = value.as_varint()?,
                5 => entry.size = value.as_varint()?,
                6 => value.words(|w| entry.crc = w)?,
                7 => entry.slices.push(Slice::from_message(value.as_bytes()?)?),
                _ => {}
            }
        }
        entry.dtype = DType::from_number(i32::try_from(dtype).ok()?).ok()?;
        Some(entry)
    }
}

/// The header entry, which is stored under the empty name.
pub(super) struct Header {
    pub shards: u32,
}

impl Header {
    pub fn encode(&self) -> Vec<u8> {
        let mut version = Message::new();
        version.varint(1, 1);
        let mut m = Message::new();
        m.varint_if(1, u64::from(self.shards)).message(3, &version);
        m.into_bytes()
    }

    pub fn decode(bytes: &[u8]) -> Result<Header> {
        let malformed = || err!(DataLoss, "the header of the bundle is malformed");
        let mut header = Header { shards: 0 };
        for (field, value) in fields(bytes).ok_or_else(malformed)? {
            let number = || value.as_varint().ok_or_else(malformed);
            match field {
                1 => header.shards = u32::try_from(number()?).map_err(|_| malformed())?,
                2 => ensure!(
                    number()? == 0,
                    Unimplemented,
                    "Reading a bundle with different endianness from the reader"
                ),
                _ => {}
            }
        }
        Ok(header)
    }
}
