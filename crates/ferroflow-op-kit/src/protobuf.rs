//! The protocol buffer wire format, as far as records and summaries need it. Fields are written and
//! read by number.

use crate::prelude::*;

/// A message being written.
#[derive(Clone, Debug, Default)]
pub struct Message(Vec<u8>);

impl Message {
    pub fn new() -> Message {
        Message::default()
    }

    pub fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// An integer, bool or enum; written even when it is 0.
    pub fn varint(&mut self, field: u32, x: u64) -> &mut Message {
        self.tag(field, 0);
        put_varint(&mut self.0, x);
        self
    }

    /// An integer, bool or enum; left out when it is 0, as proto3 does.
    pub fn varint_if(&mut self, field: u32, x: u64) -> &mut Message {
        if x != 0 {
            self.varint(field, x);
        }
        self
    }

    pub fn float(&mut self, field: u32, x: f32) -> &mut Message {
        self.tag(field, 5);
        self.0.extend_from_slice(&x.to_le_bytes());
        self
    }

    pub fn fixed32(&mut self, field: u32, x: u32) -> &mut Message {
        self.tag(field, 5);
        self.0.extend_from_slice(&x.to_le_bytes());
        self
    }

    /// A double; left out when it is 0.
    pub fn double_if(&mut self, field: u32, x: f64) -> &mut Message {
        if x.to_bits() != 0 {
            self.tag(field, 1);
            self.0.extend_from_slice(&x.to_le_bytes());
        }
        self
    }

    pub fn bytes(&mut self, field: u32, x: &[u8]) -> &mut Message {
        self.tag(field, 2);
        put_varint(&mut self.0, x.len() as u64);
        self.0.extend_from_slice(x);
        self
    }

    /// Bytes or a string; left out when empty.
    pub fn bytes_if(&mut self, field: u32, x: &[u8]) -> &mut Message {
        if !x.is_empty() {
            self.bytes(field, x);
        }
        self
    }

    pub fn message(&mut self, field: u32, x: &Message) -> &mut Message {
        self.bytes(field, &x.0)
    }

    /// A packed list of doubles; left out when empty.
    pub fn doubles(&mut self, field: u32, x: &[f64]) -> &mut Message {
        if !x.is_empty() {
            self.tag(field, 2);
            put_varint(&mut self.0, 8 * x.len() as u64);
            x.iter().for_each(|x| self.0.extend_from_slice(&x.to_le_bytes()));
        }
        self
    }

    fn tag(&mut self, field: u32, kind: u64) {
        put_varint(&mut self.0, u64::from(field) << 3 | kind);
    }
}

/// Appends a base-128 number.
pub fn put_varint(to: &mut Vec<u8>, mut x: u64) {
    while x >= 0x80 {
        to.push(x as u8 | 0x80);
        x >>= 7;
    }
    to.push(x as u8);
}

/// Takes a base-128 number off the front; `None` if there is none.
pub fn take_varint(from: &mut &[u8]) -> Option<u64> {
    let mut x = 0u64;
    for i in 0..10 {
        let (&b, rest) = from.split_first()?;
        *from = rest;
        x |= u64::from(b & 0x7f) << (7 * i);
        if b < 0x80 {
            return Some(x);
        }
    }
    None
}

/// The value of a field as encoded on the wire.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FieldValue<'a> {
    Varint(u64),
    Fixed64(u64),
    Bytes(&'a [u8]),
    Fixed32(u32),
}

impl<'a> FieldValue<'a> {
    pub fn as_bytes(self) -> Option<&'a [u8]> {
        match self {
            FieldValue::Bytes(b) => Some(b),
            _ => None,
        }
    }

    pub fn as_varint(self) -> Option<u64> {
        match self {
            FieldValue::Varint(x) => Some(x),
            _ => None,
        }
    }

    /// The numbers of a repeated integer field, packed or single; `None` if malformed.
    pub fn varints(self, mut each: impl FnMut(u64)) -> Option<()> {
        match self {
            FieldValue::Varint(x) => each(x),
            FieldValue::Bytes(mut b) => {
                while !b.is_empty() {
                    each(take_varint(&mut b)?);
                }
            }
            _ => return None,
        }
        Some(())
    }

    /// The words of a repeated fixed32 or float field, packed or single.
    pub fn words(self, mut each: impl FnMut(u32)) -> Option<()> {
        match self {
            FieldValue::Fixed32(x) => each(x),
            FieldValue::Bytes(b) if b.len() % 4 == 0 => {
                for w in b.chunks_exact(4) {
                    each(u32::from_le_bytes(w.try_into().ok()?));
                }
            }
            _ => return None,
        }
        Some(())
    }

    /// The words of a repeated fixed64 or double field, packed or single.
    pub fn long_words(self, mut each: impl FnMut(u64)) -> Option<()> {
        match self {
            FieldValue::Fixed64(x) => each(x),
            FieldValue::Bytes(b) if b.len() % 8 == 0 => {
                for w in b.chunks_exact(8) {
                    each(u64::from_le_bytes(w.try_into().ok()?));
                }
            }
            _ => return None,
        }
        Some(())
    }
}

/// The fields of a message, in order. Ends early, with `is_malformed` set, at the first malformed
/// byte.
pub struct Fields<'a> {
    rest: &'a [u8],
    pub is_malformed: bool,
}

impl<'a> Fields<'a> {
    pub fn of(message: &'a [u8]) -> Fields<'a> {
        Fields { rest: message, is_malformed: false }
    }

    fn take(&mut self, n: usize) -> Option<&'a [u8]> {
        let (head, rest) = self.rest.split_at_checked(n)?;
        self.rest = rest;
        Some(head)
    }

    fn read(&mut self) -> Option<(u32, FieldValue<'a>)> {
        let tag = take_varint(&mut self.rest)?;
        let field = u32::try_from(tag >> 3).ok().filter(|&f| f > 0 && f < 1 << 29)?;
        let value = match tag & 7 {
            0 => FieldValue::Varint(take_varint(&mut self.rest)?),
            1 => FieldValue::Fixed64(u64::from_le_bytes(self.take(8)?.try_into().ok()?)),
            2 => {
                let len = take_varint(&mut self.rest)?;
                FieldValue::Bytes(self.take(usize::try_from(len).ok()?)?)
            }
            5 => FieldValue::Fixed32(u32::from_le_bytes(self.take(4)?.try_into().ok()?)),
            _ => return None,
        };
        Some((field, value))
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = (u32, FieldValue<'a>);

    fn next(&mut self) -> Option<(u32, FieldValue<'a>)> {
        if self.rest.is_empty() || self.is_malformed {
            return None;
        }
        let field = self.read();
        self.is_malformed = field.is_none();
        field
    }
}

/// All fields of a message; `None` if it is malformed anywhere.
pub fn fields(message: &[u8]) -> Option<Vec<(u32, FieldValue<'_>)>> {
    let mut fields = Fields::of(message);
    let all = fields.by_ref().collect();
    (!fields.is_malformed).then_some(all)
}

/// The shape in a TensorShapeProto; `None` if it is malformed or its rank unknown.
pub fn read_shape(message: &[u8]) -> Option<Vec<i64>> {
    let mut dims = Vec::new();
    for (field, value) in fields(message)? {
        match field {
            2 => {
                let size = fields(value.as_bytes()?)?;
                let size = size.iter().rev().find(|f| f.0 == 1);
                dims.push(size.map_or(Some(0), |f| f.1.as_varint())? as i64);
            }
            3 if value.as_varint()? != 0 => return None,
            _ => {}
        }
    }
    Some(dims)
}

/// A TensorShapeProto.
pub fn shape_message(shape: &Shape) -> Message {
    let mut message = Message::new();
    for &dim in shape.iter() {
        let mut size = Message::new();
        size.varint_if(1, dim as u64);
        message.message(2, &size);
    }
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let mut m = Message::new();
        m.varint(1, 300).bytes(2, b"hi").float(3, 1.5).double_if(4, -2.0).varint_if(5, 0);
        let read = fields(m.as_bytes()).unwrap();
        assert_eq!(
            read,
            [
                (1, FieldValue::Varint(300)),
                (2, FieldValue::Bytes(b"hi")),
                (3, FieldValue::Fixed32(1.5f32.to_bits())),
                (4, FieldValue::Fixed64((-2.0f64).to_bits())),
            ]
        );
        for cut in 1..m.as_bytes().len() {
            // A message that is cut off is malformed or shorter, and never causes a panic.
            let _ = fields(&m.as_bytes()[..cut]);
        }
        assert!(fields(b"\xff\xff").is_none());
        assert!(fields(b"\x12\xff\xff\xff\xff\xff\xff\xff\xff\x7f").is_none());
    }
}
