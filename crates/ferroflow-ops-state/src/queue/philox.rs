//! The generator that shuffling queues draw from: Philox 4x32-10, one 32-bit sample at a time.

pub(crate) struct Philox {
    key: [u32; 2],
    counter: [u32; 4],
    block: [u32; 4],
    used: usize,
}

impl Philox {
    /// Seeds (0, 0) stand for a fresh stream each time.
    pub(crate) fn new(seed: (i64, i64)) -> Philox {
        let (a, b) =
            if seed == (0, 0) { (entropy(), entropy()) } else { (seed.0 as u64, seed.1 as u64) };
        Philox {
            key: [a as u32, (a >> 32) as u32],
            counter: [0, 0, b as u32, (b >> 32) as u32],
            block: [0; 4],
            used: 4,
        }
    }

    pub(crate) fn next(&mut self) -> u32 {
        if self.used == 4 {
            self.block = rounds(self.counter, self.key);
            self.used = 0;
            for word in &mut self.counter {
                *word = word.wrapping_add(1);
                if *word != 0 {
                    break;
                }
            }
        }
        self.used += 1;
        self.block[self.used - 1]
    }
}

fn rounds(mut c: [u32; 4], mut key: [u32; 2]) -> [u32; 4] {
    for _ in 0..10 {
        let a = u64::from(c[0]) * 0xD251_1F53;
        let b = u64::from(c[2]) * 0xCD9E_8D57;
        c = [
            (b >> 32) as u32 ^ c[1] ^ key[0],
            b as u32,
            (a >> 32) as u32 ^ c[3] ^ key[1],
            a as u32,
        ];
        key = [key[0].wrapping_add(0x9E37_79B9), key[1].wrapping_add(0xBB67_AE85)];
    }
    c
}

/// Unpredictable bits from the standard library's hash seeds.
fn entropy() -> u64 {
    use std::hash::{BuildHasher, Hasher, RandomState};
    RandomState::new().build_hasher().finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_answers() {
        // From the test vectors of the generator's authors.
        assert_eq!(rounds([0; 4], [0; 2]), [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]);
        assert_eq!(
            rounds([u32::MAX; 4], [u32::MAX; 2]),
            [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]
        );
    }
}
