//! Reads MNIST's idx files: a magic number, dimensions, bytes.

use super::{ImageSet, Images, Size, file, read, wrong};
use ferroflow::Result;
use std::path::{Path, PathBuf};

/// Images and labels for training, then for testing.
pub type Files = [PathBuf; 4];

const NAMES: [&str; 4] = [
    "train-images-idx3-ubyte",
    "train-labels-idx1-ubyte",
    "t10k-images-idx3-ubyte",
    "t10k-labels-idx1-ubyte",
];

pub fn find(dir: &Path) -> Option<Files> {
    let all: Vec<PathBuf> = NAMES
        .iter()
        .filter_map(|name| file(dir, name).or_else(|| file(dir, &name.replace("-idx", ".idx"))))
        .collect();
    all.try_into().ok()
}

pub fn load([train, train_labels, test, test_labels]: &Files) -> Result<ImageSet> {
    Ok(ImageSet { train: images(train, train_labels)?, test: images(test, test_labels)? })
}

fn images(images: &Path, labels: &Path) -> Result<Images> {
    let (dims, pixels) = parse(images, read(images)?)?;
    let (count, classes) = parse(labels, read(labels)?)?;
    let (&[n, height, width], &[m]) = (dims.as_slice(), count.as_slice()) else {
        return Err(wrong(images, "not a file of images with one of labels"));
    };
    if n != m {
        return Err(wrong(labels, format!("{m} labels for {n} images")));
    }
    let size = Size { height, width, channels: 1, white: 255 };
    Ok(Images { pixels, labels: classes.into_iter().map(i64::from).collect(), size })
}

/// Dimensions and bytes.
fn parse(path: &Path, mut bytes: Vec<u8>) -> Result<(Vec<usize>, Vec<u8>)> {
    let &[0, 0, kind, rank, ..] = bytes.as_slice() else {
        return Err(wrong(path, "not an idx file"));
    };
    /// The element type of MNIST: unsigned bytes.
    const BYTES: u8 = 8;
    if kind != BYTES {
        return Err(wrong(path, format!("elements of kind {kind}, not bytes")));
    }
    let header = 4 + 4 * usize::from(rank);
    if bytes.len() < header {
        return Err(wrong(path, "the file is cut short"));
    }
    let dims = bytes[4..header].chunks_exact(4);
    let dims: Vec<usize> =
        dims.map(|d| d.iter().fold(0, |n, b| n << 8 | usize::from(*b))).collect();
    let total = dims.iter().try_fold(1usize, |n, d| n.checked_mul(*d));
    bytes.drain(..header);
    if total != Some(bytes.len()) {
        let text = format!("{} bytes for dimensions {dims:?}: the file is cut short", bytes.len());
        return Err(wrong(path, text));
    }
    Ok((dims, bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_read_compressed_or_not() {
        let dir = std::env::temp_dir().join(format!("ferroflow-idx-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let images =
            [&[0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 2][..], &[1, 2, 3, 4]].concat();
        let labels = [&[0, 0, 8, 1, 0, 0, 0, 2][..], &[7, 9]].concat();
        std::fs::write(dir.join(NAMES[0]), &images).unwrap();
        std::fs::write(dir.join(NAMES[1]), &labels).unwrap();
        std::fs::write(dir.join(NAMES[2]), &images).unwrap();
        assert!(find(&dir).is_none());
        let packed = std::fs::File::create(dir.join(format!("{}.gz", NAMES[3]))).unwrap();
        let mut packed = flate2::write::GzEncoder::new(packed, flate2::Compression::fast());
        std::io::Write::write_all(&mut packed, &labels).unwrap();
        packed.finish().unwrap();
        let set = load(&find(&dir).unwrap()).unwrap();
        assert_eq!((set.train.pixels, set.test.labels), (vec![1, 2, 3, 4], vec![7, 9]));
        assert_eq!((set.train.size.height, set.train.size.width), (1, 2));
        std::fs::write(dir.join(NAMES[2]), &images[..images.len() - 1]).unwrap();
        let e = load(&find(&dir).unwrap()).unwrap_err();
        assert!(e.message().contains("cut short"), "{e}");
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
