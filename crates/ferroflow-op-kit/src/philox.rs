//! Philox 4x32-10, the counter-based generator of all random ops. Streams are laid out as in
//! TensorFlow, so equal seeds give equal bits.

use crate::prelude::*;
use parking_lot::Mutex;
use std::hash::{BuildHasher, RandomState};

/// A position in a stream. Each call of [`Philox::draw`] returns four words and advances by one.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Philox {
    pub counter: [u32; 4],
    pub key: [u32; 2],
}

impl Philox {
    /// The stream of a pair of seeds, as the `seed` and `seed2` attributes give them.
    pub fn seeded(seed: i64, seed2: i64) -> Philox {
        let (low, high) = (seed as u64, seed2 as u64);
        Philox { counter: [0, 0, high as u32, (high >> 32) as u32], key: words(low) }
    }

    /// Like [`Philox::seeded`], but two zero seeds give another stream each time.
    pub fn from_seeds(seed: i64, seed2: i64) -> Philox {
        match (seed, seed2) {
            (0, 0) => Philox::seeded(entropy() as i64, entropy() as i64),
            (seed, seed2) => Philox::seeded(seed, seed2),
        }
    }

    /// The stream that the stateless ops derive from a pair of seeds. The pair is scrambled, so
    /// weak seeds are good enough.
    pub fn stateless(seed: [u64; 2]) -> Philox {
        let ([a, b], [c, d]) = (words(seed[0]), words(seed[1]));
        let mix = Philox { counter: [a, b, c, d], key: [0x3ec8_f720, 0x0246_1e29] }.draw();
        Philox { counter: [0, 0, mix[2], mix[3]], key: [mix[0], mix[1]] }
    }

    /// From the `key` and `counter` tensors of the stateless ops. They hold pairs of words.
    pub fn from_words(key: u64, counter: [u64; 2]) -> Philox {
        let ([a, b], [c, d]) = (words(counter[0]), words(counter[1]));
        Philox { counter: [a, b, c, d], key: words(key) }
    }

    pub fn key_word(&self) -> u64 {
        join(self.key[0], self.key[1])
    }

    pub fn counter_words(&self) -> [u64; 2] {
        let c = &self.counter;
        [join(c[0], c[1]), join(c[2], c[3])]
    }

    /// Advances by `count` calls. At most one carry reaches the upper half of the counter, because
    /// TensorFlow adds 64-bit numbers without a further carry.
    pub fn skip(&mut self, count: u64) {
        let low = join(self.counter[0], self.counter[1]);
        let (low, carried) = low.overflowing_add(count);
        [self.counter[0], self.counter[1]] = words(low);
        if carried {
            let high = join(self.counter[2], self.counter[3]).wrapping_add(1);
            [self.counter[2], self.counter[3]] = words(high);
        }
    }

    /// This stream, advanced by `count` calls.
    pub fn skipped(mut self, count: u64) -> Philox {
        self.skip(count);
        self
    }

    /// The next four words.
    #[inline]
    pub fn draw(&mut self) -> [u32; 4] {
        let (mut c, mut k) = (self.counter, self.key);
        for round in 0..10 {
            if round > 0 {
                k[0] = k[0].wrapping_add(0x9e37_79b9);
                k[1] = k[1].wrapping_add(0xbb67_ae85);
            }
            let p = u64::from(c[0]) * 0xd251_1f53;
            let q = u64::from(c[2]) * 0xcd9e_8d57;
            c = [
                (q >> 32) as u32 ^ c[1] ^ k[0],
                q as u32,
                (p >> 32) as u32 ^ c[3] ^ k[1],
                p as u32,
            ];
        }
        self.skip(1);
        c
    }
}

/// Returns the words of a stream one at a time.
#[derive(Clone)]
pub struct Singles {
    from: Philox,
    words: [u32; 4],
    used: usize,
}

impl Singles {
    pub fn new(from: Philox) -> Singles {
        Singles { from, words: [0; 4], used: 4 }
    }

    #[inline]
    pub fn next_u32(&mut self) -> u32 {
        if self.used == 4 {
            self.words = self.from.draw();
            self.used = 0;
        }
        self.used += 1;
        self.words[self.used - 1]
    }

    pub fn next_u64(&mut self) -> u64 {
        let low = self.next_u32();
        join(low, self.next_u32())
    }

    /// Uniform in [0, 1).
    pub fn next_f32(&mut self) -> f32 {
        unit_f32(self.next_u32())
    }

    /// Uniform in [0, 1).
    pub fn next_f64(&mut self) -> f64 {
        let high = self.next_u32();
        unit_f64(high, self.next_u32())
    }

    /// Uniform in `0..n` without bias; 0 for an empty range.
    pub fn below_u32(&mut self, n: u32) -> u32 {
        exact(u64::from(n), u64::from(u32::MAX), || u64::from(self.next_u32())) as u32
    }

    /// Uniform in `0..n` without bias; 0 for an empty range.
    pub fn below_u64(&mut self, n: u64) -> u64 {
        exact(n, u64::MAX, || self.next_u64())
    }
}

/// Uniform in `0..n` from values uniform in `0..=max`. Rejects the surplus values at the low end.
fn exact(n: u64, max: u64, mut draw: impl FnMut() -> u64) -> u64 {
    if n == 0 {
        draw();
        return 0;
    }
    if n.is_power_of_two() {
        return draw() & (n - 1);
    }
    let surplus = max % n + 1;
    loop {
        let x = draw();
        if x >= surplus {
            return x % n;
        }
    }
}

/// A float in [0, 1) from 23 random bits.
#[inline]
pub fn unit_f32(x: u32) -> f32 {
    f32::from_bits((127 << 23) | (x & 0x7f_ffff)) - 1.0
}

/// A double in [0, 1) from 52 random bits.
#[inline]
pub fn unit_f64(high: u32, low: u32) -> f64 {
    f64::from_bits((1023 << 52) | join(low, high & 0xf_ffff)) - 1.0
}

fn words(x: u64) -> [u32; 2] {
    [x as u32, (x >> 32) as u32]
}

fn join(low: u32, high: u32) -> u64 {
    u64::from(low) | u64::from(high) << 32
}

/// Unpredictable bits.
pub fn entropy() -> u64 {
    RandomState::new().hash_one(std::time::SystemTime::now())
}

/// The random stream of a node, which continues from step to step.
pub struct SharedPhilox(Mutex<Philox>);

impl SharedPhilox {
    /// One that begins with `stream`.
    pub fn new(stream: Philox) -> SharedPhilox {
        SharedPhilox(Mutex::new(stream))
    }

    /// From the attributes `seed` and `seed2`. If both are 0, the stream differs each time.
    pub fn from_attrs(init: &KernelInit<'_>) -> Result<SharedPhilox> {
        let stream = Philox::from_seeds(init.int("seed")?, init.int("seed2")?);
        Ok(SharedPhilox(Mutex::new(stream)))
    }

    /// Reserves the next `calls` calls of four words for the caller.
    pub fn reserve(&self, calls: u64) -> Philox {
        let mut shared = self.0.lock();
        let mine = *shared;
        shared.skip(calls);
        mine
    }

    /// Reserves enough for `outputs` values, each of which may take up to 256 calls.
    pub fn reserve_outputs(&self, outputs: usize) -> Philox {
        self.reserve((outputs as u64).wrapping_mul(256))
    }

    /// Reserves the next `words` words, rounded up to whole calls.
    pub fn reserve_words(&self, words: u64) -> Philox {
        self.reserve(words.div_ceil(4))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reference_vectors_come_out() {
        let zeros = Philox::default().draw();
        assert_eq!(zeros, [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]);
        let ones = Philox { counter: [u32::MAX; 4], key: [u32::MAX; 2] }.draw();
        assert_eq!(ones, [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]);
    }

    #[test]
    fn skipping_is_drawing() {
        let start = Philox { counter: [u32::MAX - 1, u32::MAX, u32::MAX, 7], key: [1, 2] };
        let mut a = start;
        for _ in 0..5 {
            a.draw();
        }
        assert_eq!(a, start.skipped(5));
    }

    #[test]
    fn a_shared_stream_goes_on() {
        let shared = SharedPhilox(Mutex::new(Philox::seeded(1, 2)));
        let first = shared.reserve_words(5);
        assert_eq!(shared.reserve(1), first.skipped(2));
    }

    #[test]
    fn ranges_are_exact() {
        let mut s = Singles::new(Philox::seeded(3, 0));
        assert_eq!(s.below_u32(0), 0);
        for n in 1..50u32 {
            assert!(s.below_u32(n) < n);
            assert!(s.below_u64(u64::from(n)) < u64::from(n));
        }
    }
}
