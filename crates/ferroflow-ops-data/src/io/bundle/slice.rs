//! Slices of tensors: which part of a partitioned variable a file holds.

use crate::prelude::*;
use ferroflow_op_kit::protobuf::{Message, fields};

/// A box of a tensor: start and length per dimension; no length means all of it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Slice(pub Vec<(i64, Option<i64>)>);

impl Slice {
    /// All of a tensor of this rank.
    pub fn full(rank: usize) -> Slice {
        Slice(vec![(0, None); rank])
    }

    /// Starts and lengths within a shape; an error where it reaches outside.
    pub fn within(&self, shape: &Shape) -> Result<(Vec<usize>, Shape)> {
        ensure!(
            self.0.len() == shape.rank(),
            InvalidArgument,
            "Mismatching ranks: shape = {shape}, slice = {self}"
        );
        let (mut starts, mut lens) = (Vec::new(), Vec::new());
        for (&(start, len), &dim) in self.0.iter().zip(shape.iter()) {
            let len = len.unwrap_or(dim as i64);
            let end = start.checked_add(len);
            ensure!(
                start >= 0 && len >= 0 && end.is_some_and(|end| end <= dim as i64),
                InvalidArgument,
                "Extent in dimension {} out of bounds: shape = {shape}, slice = {self}",
                starts.len()
            );
            starts.push(start as usize);
            lens.push(len as usize);
        }
        Ok((starts, Shape::from(lens)))
    }

    /// `0,2:-`
    pub fn parse(text: &str) -> Result<Slice> {
        let bad = |why: &str| err!(InvalidArgument, "{why}: string = {text}");
        let mut extents = Vec::new();
        for part in text.split(':') {
            if part == "-" {
                extents.push((0, None));
                continue;
            }
            let Some((start, len)) = part.split_once(',') else {
                return Err(bad("Expected a pair of numbers or '-' but got"));
            };
            let (Ok(start), Ok(len)) = (start.parse::<i64>(), len.parse::<i64>()) else {
                return Err(bad("Expected a pair of numbers or '-' but got"));
            };
            if start < 0 || len <= 0 {
                return Err(bad("Expected non-negative start and positive length but got"));
            }
            extents.push((start, Some(len)));
        }
        Ok(Slice(extents))
    }

    /// A TensorSliceProto.
    pub fn message(&self) -> Message {
        let mut message = Message::new();
        for &(start, len) in &self.0 {
            let mut extent = Message::new();
            extent.varint_if(1, start as u64);
            if let Some(len) = len {
                extent.varint(2, len as u64);
            }
            message.message(1, &extent);
        }
        message
    }

    /// From a TensorSliceProto; `None` if it is malformed.
    pub fn from_message(bytes: &[u8]) -> Option<Slice> {
        let mut extents = Vec::new();
        for (field, value) in fields(bytes)? {
            if field != 1 {
                continue;
            }
            let mut extent = (0, None);
            for (field, value) in fields(value.as_bytes()?)? {
                match field {
                    1 => extent.0 = value.as_varint()? as i64,
                    2 => extent.1 = Some(value.as_varint()? as i64),
                    _ => {}
                }
            }
            extents.push(extent);
        }
        Some(Slice(extents))
    }

    /// The key of a slice of tensor `name`, in an encoding that keeps the order of its parts.
    pub fn key(&self, name: &str) -> Vec<u8> {
        let mut key = vec![0];
        for &b in name.as_bytes() {
            match b {
                0 => key.extend([0, 0xff]),
                0xff => key.extend([0xff, 0]),
                b => key.push(b),
            }
        }
        key.extend([0, 1]);
        put_ordered(&mut key, self.0.len() as u64);
        for &(start, len) in &self.0 {
            put_ordered_signed(&mut key, start);
            put_ordered_signed(&mut key, len.unwrap_or(-1));
        }
        key
    }
}

/// `0,2:-`
impl std::fmt::Display for Slice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (i, (start, len)) in self.0.iter().enumerate() {
            if i > 0 {
                f.write_str(":")?;
            }
            match len {
                None => f.write_str("-")?,
                Some(len) => write!(f, "{start},{len}")?,
            }
        }
        Ok(())
    }
}

/// A length byte and the big-endian bytes of a number.
fn put_ordered(to: &mut Vec<u8>, x: u64) {
    let bytes = x.to_be_bytes();
    let skip = x.leading_zeros() as usize / 8;
    to.push((8 - skip) as u8);
    to.extend_from_slice(&bytes[skip..]);
}

/// As few bytes as hold the number: the sign and their count are in the leading bits.
fn put_ordered_signed(to: &mut Vec<u8>, x: i64) {
    let magnitude = if x < 0 { !x } else { x };
    // n bytes leave 7n - 1 bits for the magnitude.
    let n = (1..=10).find(|&n| 7 * n > 63 || magnitude < 1 << (7 * n - 1)).unwrap_or(10);
    let wide = i128::from(x).to_be_bytes();
    let mut bytes = wide[16 - n..].to_vec();
    // The top n bits, inverted, give the length.
    for bit in 0..n {
        bytes[bit / 8] ^= 0x80 >> (bit % 8);
    }
    to.extend(bytes);
}

/// `10 2 0,6:-`: the shape of the whole tensor, and a slice of it. Empty means a whole tensor.
pub(crate) fn parse_spec(spec: &str) -> Result<Option<(Shape, Slice)>> {
    if spec.is_empty() {
        return Ok(None);
    }
    let parts: Vec<&str> = spec.split(' ').collect();
    let Some((slice, dims)) = parts.split_last().filter(|(_, dims)| !dims.is_empty()) else {
        bail!(InvalidArgument, "Need least two elements in shape_and_slice specification: {spec}");
    };
    let mut shape = Vec::new();
    for dim in dims {
        let Ok(dim) = dim.parse::<i64>() else {
            bail!(InvalidArgument, "Non numerical dimension in shape_and_slice: {spec}");
        };
        shape.push(dim);
    }
    let (shape, slice) = (Shape::from_dims(&shape)?, Slice::parse(slice)?);
    slice.within(&shape)?;
    Ok(Some((shape, slice)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn specifications_are_read() {
        let (shape, slice) = parse_spec("10 2 0,6:-").unwrap().unwrap();
        assert_eq!(shape.dims(), [10, 2]);
        assert_eq!(slice, Slice(vec![(0, Some(6)), (0, None)]));
        assert_eq!(slice.to_string(), "0,6:-");
        assert_eq!(slice.within(&shape).unwrap().1.dims(), [6, 2]);
        assert!(parse_spec("").unwrap().is_none());
        for bad in ["x", "4 0,5", "4 -1,2", "4 0,0", "a 0,1", "4 4 0,1", "-4 0,1", "4 0", "4 0,1:-"]
        {
            assert!(parse_spec(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn keys_are_those_of_tensorflow() {
        let key = |extents: &[(i64, Option<i64>)]| Slice(extents.to_vec()).key("v");
        assert_eq!(key(&[(0, Some(2)), (0, None)]), b"\x00v\x00\x01\x01\x02\x80\x82\x80\x7f");
        let mut signed = Vec::new();
        for x in [64, 9936, 10000, 63, -64, -65] {
            put_ordered_signed(&mut signed, x);
        }
        assert_eq!(signed, b"\xc0\x40\xe0\x26\xd0\xe0\x27\x10\xbf\x40\x3f\xbf");
        assert!(Slice::full(2).key("a") < Slice::full(2).key("a\0"));
    }

    #[test]
    fn messages_come_back() {
        let slice = Slice(vec![(2, Some(2)), (0, None)]);
        assert_eq!(slice.message().as_bytes(), b"\n\x04\x08\x02\x10\x02\n\x00");
        assert_eq!(Slice::from_message(slice.message().as_bytes()).unwrap(), slice);
    }
}
