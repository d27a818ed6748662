//! Generates synthetic data: a line with noise, and ratings.

use ferroflow::{Result, Tensor};

/// Random numbers that are the same on every machine.
pub struct Draw(u64);

impl Draw {
    pub fn new(seed: u64) -> Draw {
        Draw(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x2545_f491_4f6c_dd1d)
    }

    /// splitmix64.
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Uniform in [0, 1).
    pub fn uniform(&mut self) -> f32 {
        (self.next() >> 40) as f32 / (1u64 << 24) as f32
    }

    /// Standard normal, by Box and Muller.
    pub fn normal(&mut self) -> f32 {
        let (u, v) = (self.uniform().max(1e-7), self.uniform());
        (-2.0 * u.ln()).sqrt() * (2.0 * std::f32::consts::PI * v).cos()
    }

    pub fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }
}

/// y = 2x + 10 with noise of deviation 0.33, x between -1 and 1.
pub fn line(draw: &mut Draw, n: usize) -> (Tensor, Tensor) {
    let xs: Vec<f32> = (0..n).map(|_| draw.uniform() * 2.0 - 1.0).collect();
    let ys: Vec<f32> = xs.iter().map(|x| 2.0 * x + 10.0 + 0.33 * draw.normal()).collect();
    (Tensor::vector(&xs), Tensor::vector(&ys))
}

/// Synthetic ratings of items by users, from hidden vectors of four numbers each, with noise.
pub struct Ratings {
    users: Vec<[f32; 4]>,
    items: Vec<[f32; 4]>,
}

impl Ratings {
    pub const USERS: usize = 200;
    pub const ITEMS: usize = 300;

    pub fn new() -> Ratings {
        let mut draw = Draw::new(7);
        let mut factors =
            |n: usize| (0..n).map(|_| [(); 4].map(|()| draw.normal() * 0.7)).collect();
        Ratings { users: factors(Ratings::USERS), items: factors(Ratings::ITEMS) }
    }

    /// Pairs of user and item, and ratings.
    pub fn batch(&self, draw: &mut Draw, n: usize) -> Result<(Tensor, Tensor)> {
        let (mut pairs, mut ratings) = (Vec::with_capacity(n * 2), Vec::with_capacity(n));
        for _ in 0..n {
            let (u, i) = (draw.below(Ratings::USERS), draw.below(Ratings::ITEMS));
            let taste: f32 = self.users[u].iter().zip(&self.items[i]).map(|(a, b)| a * b).sum();
            pairs.extend([u as i64, i as i64]);
            ratings.push(3.0 + taste + 0.1 * draw.normal());
        }
        Ok((Tensor::from_slice([n, 2], &pairs)?, Tensor::vector(&ratings)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_draws_the_same_again() {
        let draw = |seed| line(&mut Draw::new(seed), 4).1;
        assert_eq!(draw(3), draw(3));
        assert_ne!(draw(3), draw(4));
    }
}
