//! The data of the models: made up, or the digits that come with the command.

use ferroflow::{Code, Error, Result, Tensor};
use std::io::Read;

/// 1797 images of 8 by 8 pixels, 0 to 16, and what digit each shows; see the README beside it.
static DIGITS: &[u8] = include_bytes!("../../data/digits/digits.csv.gz");

/// How many of the images are kept from training.
const TEST_IMAGES: usize = 297;

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

/// Images, pixels between 0 and 1, and their digits.
pub struct Digits {
    pixels: Vec<f32>,
    labels: Vec<i64>,
}

impl Digits {
    pub const PIXELS: usize = 64;

    /// The data that comes with the command: for training, and for testing.
    pub fn load() -> Result<(Digits, Digits)> {
        let mut text = String::new();
        let wrong = |what: String| Error::new(Code::DataLoss, format!("the digits: {what}"));
        flate2::read::GzDecoder::new(DIGITS)
            .read_to_string(&mut text)
            .map_err(|e| wrong(e.to_string()))?;
        let (mut pixels, mut labels) = (Vec::new(), Vec::new());
        for line in text.lines() {
            let numbers: std::result::Result<Vec<f32>, _> =
                line.split(',').map(str::parse).collect();
            let numbers = numbers.map_err(|e| wrong(e.to_string()))?;
            let [image @ .., label] = numbers.as_slice() else { continue };
            if image.len() != Digits::PIXELS {
                return Err(wrong(format!("a line of {} numbers", numbers.len())));
            }
            pixels.extend(image.iter().map(|p| p / 16.0));
            labels.push(*label as i64);
        }
        let split = labels.len().saturating_sub(TEST_IMAGES);
        let test = Digits {
            pixels: pixels.split_off(split * Digits::PIXELS),
            labels: labels.split_off(split),
        };
        Ok((Digits { pixels, labels }, test))
    }

    /// Images drawn at random.
    pub fn batch(&self, draw: &mut Draw, n: usize) -> Result<(Tensor, Tensor)> {
        let chosen: Vec<usize> = (0..n).map(|_| draw.below(self.labels.len())).collect();
        let mut pixels = Vec::with_capacity(n * Digits::PIXELS);
        for &i in &chosen {
            pixels.extend_from_slice(&self.pixels[i * Digits::PIXELS..(i + 1) * Digits::PIXELS]);
        }
        let labels: Vec<i64> = chosen.iter().map(|&i| self.labels[i]).collect();
        Ok((Tensor::from_slice([n, Digits::PIXELS], &pixels)?, Tensor::vector(&labels)))
    }

    /// All of them.
    pub fn all(&self) -> Result<(Tensor, Tensor)> {
        let images = Tensor::from_slice([self.labels.len(), Digits::PIXELS], &self.pixels)?;
        Ok((images, Tensor::vector(&self.labels)))
    }
}

/// Ratings of items by users: hidden tastes of four numbers each, and a little noise.
pub struct Ratings {
    users: Vec<[f32; 4]>,
    items: Vec<[f32; 4]>,
}

impl Ratings {
    pub const USERS: usize = 200;
    pub const ITEMS: usize = 300;

    pub fn new() -> Ratings {
        let mut draw = Draw::new(7);
        let mut tastes = |n: usize| (0..n).map(|_| [(); 4].map(|()| draw.normal() * 0.7)).collect();
        Ratings { users: tastes(Ratings::USERS), items: tastes(Ratings::ITEMS) }
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
    fn the_digits_are_whole() {
        let (train, test) = Digits::load().unwrap();
        assert_eq!((train.labels.len(), test.labels.len()), (1500, 297));
        assert!(train.pixels.iter().all(|p| (0.0..=1.0).contains(p)));
        assert!(train.labels.iter().all(|l| (0..10).contains(l)));
        let (images, labels) = test.all().unwrap();
        assert_eq!((images.shape().to_string(), labels.elements()), ("[297,64]".into(), 297));
    }

    #[test]
    fn a_seed_draws_the_same_again() {
        let draw = |seed| line(&mut Draw::new(seed), 4).1;
        assert_eq!(draw(3), draw(3));
        assert_ne!(draw(3), draw(4));
    }
}
