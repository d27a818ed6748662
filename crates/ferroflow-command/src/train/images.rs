//! Labelled images: the digits inside the command, or the files of a directory.

mod cifar;
mod idx;
mod mat;

use super::data::Draw;
use ferroflow::{Code, Error, Result, Tensor};
use std::io::Read;
use std::path::{Path, PathBuf};

/// 1797 images of 8 by 8 pixels with values 0 to 16, and their labels; see the README beside it.
static DIGITS: &[u8] = include_bytes!("../../data/digits/digits.csv.gz");

/// Number of images that are kept for testing.
const TEST_DIGITS: usize = 297;

/// Limit on the size of a file, uncompressed.
const MAX_BYTES: u64 = 4 << 30;

/// Images of one size, and the class of each.
#[derive(Clone, Debug)]
pub struct Images {
    /// Image after image, in the order height, width, channels.
    pub pixels: Vec<u8>,
    pub labels: Vec<i64>,
    pub size: Size,
}

/// Properties shared by all images of a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    pub height: usize,
    pub width: usize,
    pub channels: usize,
    /// The pixel value for 1.
    pub white: u8,
}

impl Size {
    /// The number of values in an image.
    pub fn pixels(self) -> usize {
        self.height * self.width * self.channels
    }
}

/// Images for training, and images for testing.
#[derive(Debug)]
pub struct ImageSet {
    pub train: Images,
    pub test: Images,
}

pub(super) fn wrong(path: &Path, what: impl std::fmt::Display) -> Error {
    Error::new(Code::DataLoss, format!("{}: {what}", path.display()))
}

impl ImageSet {
    /// The images of a directory, in any of the known formats; the digits inside the command if
    /// `None`.
    pub fn load(dir: Option<&Path>) -> Result<ImageSet> {
        let Some(dir) = dir else { return digits() };
        if !dir.is_dir() {
            let text = format!("--data {}: there is no such directory", dir.display());
            return Err(Error::new(Code::NotFound, text));
        }
        let set = match (idx::find(dir), cifar::find(dir), mat::find(dir)) {
            (Some(files), _, _) => idx::load(&files)?,
            (_, Some(dir), _) => cifar::load(&dir)?,
            (_, _, Some(files)) => mat::load(&files)?,
            _ => {
                let text = format!(
                    "--data {}: found none of\n  \
                     MNIST     train-images-idx3-ubyte, train-labels-idx1-ubyte, \
                     t10k-images-idx3-ubyte, t10k-labels-idx1-ubyte (or each with .gz)\n  \
                     CIFAR-10  data_batch_1.bin … data_batch_5.bin, test_batch.bin\n  \
                     SVHN      train_32x32.mat, test_32x32.mat",
                    dir.display()
                );
                return Err(Error::new(Code::NotFound, text));
            }
        };
        for images in [&set.train, &set.test] {
            if images.labels.is_empty() {
                return Err(Error::new(Code::DataLoss, format!("{}: no images", dir.display())));
            }
            if let Some(label) = images.labels.iter().find(|l| !(0..10).contains(*l)) {
                let text = format!("{}: a class {label}, not 0 to 9", dir.display());
                return Err(Error::new(Code::DataLoss, text));
            }
        }
        if set.train.size != set.test.size {
            let text = format!("{}: images for training and testing differ in size", dir.display());
            return Err(Error::new(Code::DataLoss, text));
        }
        Ok(set)
    }
}

impl ImageSet {
    /// Synthetic house numbers: a digit of seven segments at a random place in an image of 32 by 32
    /// pixels, in a random colour on another one, with noise.
    pub fn synthetic() -> ImageSet {
        let mut draw = Draw::new(11);
        let mut images = |count: usize| {
            let size = Size { height: 32, width: 32, channels: 3, white: 255 };
            let (mut pixels, mut labels) = (Vec::with_capacity(count * size.pixels()), Vec::new());
            for _ in 0..count {
                let digit = draw.below(10);
                labels.push(digit as i64);
                draw_digit(&mut draw, digit, size, &mut pixels);
            }
            Images { pixels, labels, size }
        };
        ImageSet { train: images(2000), test: images(500) }
    }
}

/// Appends the picture of a digit.
fn draw_digit(draw: &mut Draw, digit: usize, size: Size, pixels: &mut Vec<u8>) {
    const SEGMENTS: [u8; 10] = [0x77, 0x24, 0x5d, 0x6d, 0x2e, 0x6b, 0x7b, 0x25, 0x7f, 0x6f];
    // Segments are lines of a grid of 7 by 5 cells; a cell is 3 by 3 pixels.
    let is_on = |row: usize, column: usize| {
        let segment = match (row, column) {
            (0, 1..=3) => 0,
            (1..=2, 0) => 1,
            (1..=2, 4) => 2,
            (3, 1..=3) => 3,
            (4..=5, 0) => 4,
            (4..=5, 4) => 5,
            (6, 1..=3) => 6,
            _ => return false,
        };
        SEGMENTS[digit] >> segment & 1 == 1
    };
    let mut colour = |from: usize| [(); 3].map(|()| (from + draw.below(80)) as f32);
    let (front, back) = (colour(150), colour(20));
    let (top, left) = (draw.below(size.height - 21), draw.below(size.width - 15));
    for (y, x) in (0..size.height * size.width).map(|i| (i / size.width, i % size.width)) {
        let inside = (top..top + 21).contains(&y) && (left..left + 15).contains(&x);
        let on = inside && is_on((y - top) / 3, (x - left) / 3);
        for (front, back) in front.iter().zip(&back) {
            let value = if on { front } else { back } + 12.0 * draw.normal();
            pixels.push(value.clamp(0.0, 255.0) as u8);
        }
    }
}

fn digits() -> Result<ImageSet> {
    let mut text = String::new();
    let wrong = |what: String| Error::new(Code::DataLoss, format!("the digits: {what}"));
    flate2::read::GzDecoder::new(DIGITS)
        .read_to_string(&mut text)
        .map_err(|e| wrong(e.to_string()))?;
    let size = Size { height: 8, width: 8, channels: 1, white: 16 };
    let (mut pixels, mut labels) = (Vec::new(), Vec::new());
    for line in text.lines() {
        let numbers: std::result::Result<Vec<u8>, _> = line.split(',').map(str::parse).collect();
        let numbers = numbers.map_err(|e| wrong(e.to_string()))?;
        let [image @ .., label] = numbers.as_slice() else { continue };
        if image.len() != size.pixels() {
            return Err(wrong(format!("a line of {} numbers", numbers.len())));
        }
        pixels.extend_from_slice(image);
        labels.push(i64::from(*label));
    }
    let split = labels.len().saturating_sub(TEST_DIGITS);
    let test = Images {
        pixels: pixels.split_off(split * size.pixels()),
        labels: labels.split_off(split),
        size,
    };
    Ok(ImageSet { train: Images { pixels, labels, size }, test })
}

impl Images {
    /// Images drawn at random.
    pub fn batch(&self, draw: &mut Draw, n: usize) -> Result<(Tensor, Tensor)> {
        let chosen: Vec<usize> = (0..n).map(|_| draw.below(self.labels.len())).collect();
        self.chosen(&chosen)
    }

    /// All images in batches of a fixed size.
    pub fn in_turn(&self, n: usize) -> impl Iterator<Item = Result<(Tensor, Tensor)>> + '_ {
        let all: Vec<usize> = (0..self.labels.len()).collect();
        let starts = (0..all.len()).step_by(n.max(1));
        starts.map(move |i| self.chosen(&all[i..(i + n).min(all.len())]))
    }

    /// Pixels between 0 and 1, one row for each image, and classes.
    fn chosen(&self, which: &[usize]) -> Result<(Tensor, Tensor)> {
        let (n, scale) = (self.size.pixels(), 1.0 / f32::from(self.size.white.max(1)));
        let mut pixels = Vec::with_capacity(which.len() * n);
        for &i in which {
            pixels.extend(self.pixels[i * n..(i + 1) * n].iter().map(|p| f32::from(*p) * scale));
        }
        let labels: Vec<i64> = which.iter().map(|&i| self.labels[i]).collect();
        Ok((Tensor::from_slice([which.len(), n], &pixels)?, Tensor::vector(&labels)))
    }
}

/// The file of this name, as it is or compressed.
fn file(dir: &Path, name: &str) -> Option<PathBuf> {
    [dir.join(name), dir.join(format!("{name}.gz"))].into_iter().find(|path| path.is_file())
}

/// The contents of a file, decompressed if its name ends in `.gz`.
fn read(path: &Path) -> Result<Vec<u8>> {
    let opened = std::fs::File::open(path).map_err(|e| wrong(path, e))?;
    let mut bytes = Vec::new();
    let length = match path.extension().is_some_and(|e| e == "gz") {
        true => flate2::read::MultiGzDecoder::new(opened).take(MAX_BYTES).read_to_end(&mut bytes),
        false => opened.take(MAX_BYTES).read_to_end(&mut bytes),
    };
    length.map_err(|e| wrong(path, e))?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digits_are_whole() {
        let set = ImageSet::load(None).unwrap();
        assert_eq!((set.train.labels.len(), set.test.labels.len()), (1500, 297));
        assert!(set.train.pixels.iter().all(|p| *p <= 16));
        assert!(set.train.labels.iter().all(|l| (0..10).contains(l)));
        let shapes: Vec<String> =
            set.test.in_turn(200).map(|b| b.unwrap().0.shape().to_string()).collect();
        assert_eq!(shapes, ["[200,64]", "[97,64]"]);
    }

    #[test]
    fn made_up_images_have_the_shape_of_svhn() {
        let set = ImageSet::synthetic();
        let (x, y) = set.train.batch(&mut Draw::new(1), 3).unwrap();
        assert_eq!(
            (x.shape().to_string(), y.shape().to_string()),
            ("[3,3072]".into(), "[3]".into())
        );
        assert!((0..10).all(|class| set.test.labels.contains(&class)));
    }

    #[test]
    fn a_directory_without_images_says_what_could_be_there() {
        let dir = std::env::temp_dir().join(format!("ferroflow-no-images-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let e = ImageSet::load(Some(&dir)).unwrap_err();
        assert!(e.message().contains("CIFAR-10") && e.message().contains("t10k"), "{e}");
        std::fs::remove_dir_all(&dir).unwrap();
        let e = ImageSet::load(Some(&dir)).unwrap_err();
        assert!(e.message().contains("no such directory"), "{e}");
    }
}
