//! Huffman codes, as files state them: how many codes there are of each length, and their values.

use super::bits::Bits;

/// The number of bits that are looked up at once.
const FAST: u32 = 9;

#[derive(Clone)]
pub(super) struct Decoder {
    /// Length and value of the code that some bits begin with; length 0 if it is a longer one.
    fast: Vec<(u8, u8)>,
    /// For each length, one more than the largest code, at 16 bits.
    limit: [u32; 18],
    /// For each length, what to add to a code for its index.
    offset: [i32; 17],
    values: Vec<u8>,
}

impl Decoder {
    /// `None` if the counts are impossible.
    pub fn new(counts: &[u8; 16], values: &[u8]) -> Option<Decoder> {
        let (mut fast, mut limit, mut offset) = (vec![(0, 0); 1 << FAST], [0; 18], [0; 17]);
        let (mut code, mut index) = (0u32, 0usize);
        for len in 1..=16u32 {
            offset[len as usize] = index as i32 - code as i32;
            for _ in 0..counts[len as usize - 1] {
                let value = *values.get(index)?;
                if code >= 1 << len {
                    return None;
                }
                if len <= FAST {
                    let from = (code << (FAST - len)) as usize;
                    fast[from..from + (1 << (FAST - len))].fill((len as u8, value));
                }
                code += 1;
                index += 1;
            }
            limit[len as usize] = code << (16 - len);
            code <<= 1;
        }
        limit[17] = u32::MAX;
        Some(Decoder { fast, limit, offset, values: values.to_vec() })
    }

    /// The next value; 0 for an invalid code.
    pub fn next(&self, bits: &mut Bits<'_>) -> u8 {
        let next = bits.peek(16);
        let (len, value) = self.fast[(next >> (16 - FAST)) as usize];
        if len > 0 {
            bits.skip(u32::from(len));
            return value;
        }
        let mut len = FAST as usize + 1;
        while next >= self.limit[len] {
            len += 1;
        }
        if len > 16 {
            bits.skip(16);
            return 0;
        }
        bits.skip(len as u32);
        let index = (next >> (16 - len)) as i32 + self.offset[len];
        usize::try_from(index).ok().and_then(|i| self.values.get(i)).copied().unwrap_or(0)
    }
}
