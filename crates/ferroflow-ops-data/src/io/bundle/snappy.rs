//! Reading Snappy-compressed blocks.

/// Refuses to make more than this of a block.
const MOST: u64 = 1 << 30;

/// What a block stands for; `None` if it is malformed.
pub(super) fn decompress(mut from: &[u8]) -> Option<Vec<u8>> {
    let len = ferroflow_op_kit::protobuf::take_varint(&mut from).filter(|&n| n <= MOST)? as usize;
    let mut out = Vec::new();
    while let Some((&tag, rest)) = from.split_first() {
        from = rest;
        let (offset, count) = match tag & 3 {
            0 => {
                let mut count = usize::from(tag >> 2) + 1;
                if count > 60 {
                    count = little(&mut from, count - 60)?.checked_add(1)?;
                }
                let (literal, rest) = from.split_at_checked(count)?;
                out.extend_from_slice(literal);
                from = rest;
                if out.len() > len {
                    return None;
                }
                continue;
            }
            1 => {
                let low = little(&mut from, 1)?;
                (usize::from(tag >> 5) << 8 | low, usize::from(tag >> 2 & 7) + 4)
            }
            2 => (little(&mut from, 2)?, usize::from(tag >> 2) + 1),
            _ => (little(&mut from, 4)?, usize::from(tag >> 2) + 1),
        };
        let start = out.len().checked_sub(offset).filter(|_| offset > 0)?;
        if out.len() + count > len {
            return None;
        }
        // A copy may overlap what it makes.
        for i in start..start + count {
            out.push(out[i]);
        }
    }
    (out.len() == len).then_some(out)
}

fn little(from: &mut &[u8], n: usize) -> Option<usize> {
    let (bytes, rest) = from.split_at_checked(n)?;
    *from = rest;
    Some(bytes.iter().rev().fold(0, |x, &b| x << 8 | usize::from(b)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_and_copies() {
        assert_eq!(decompress(b"\x05\x10hello").unwrap(), b"hello");
        // "ab", then 6 bytes from 2 back.
        assert_eq!(decompress(b"\x08\x04ab\x09\x02").unwrap(), b"abababab");
        assert_eq!(decompress(b"\x00").unwrap(), b"");
        for bad in [&b"\x05\x10hell"[..], b"\x04\x10hello", b"\x08\x04ab\x09\x07", b"\x05", b""] {
            assert!(decompress(bad).is_none(), "{bad:?}");
        }
    }
}
