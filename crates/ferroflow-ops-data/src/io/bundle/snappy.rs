//! Reading Snappy-compressed blocks.

/// The longest block that is decompressed.
const MOST: usize = 1 << 30;

/// An upper bound of the bytes that one byte of a block can encode: a copy of 64 bytes takes three.
const EXPANSION: usize = 32;

/// The contents of a block; `None` if it is malformed.
pub(crate) fn decompress(block: &[u8]) -> Option<Vec<u8>> {
    // Check the length in the header before memory is allocated for it.
    let len = snap::raw::decompress_len(block).ok()?;
    if block.is_empty() || len > MOST.min(block.len().saturating_mul(EXPANSION)) {
        return None;
    }
    snap::raw::Decoder::new().decompress_vec(block).ok()
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
