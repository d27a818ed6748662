//! Reads CIFAR-10's binary files: a class byte, then 32 by 32 pixels, channel by channel.

use super::{ImageSet, Images, Size, file, read, wrong};
use ferroflow::Result;
use std::path::{Path, PathBuf};

const SIDE: usize = 32;
const CHANNELS: usize = 3;
const RECORD: usize = 1 + SIDE * SIDE * CHANNELS;

/// The directory of the files: this one, or the one from the archive.
pub fn find(dir: &Path) -> Option<PathBuf> {
    let places = [dir.to_path_buf(), dir.join("cifar-10-batches-bin")];
    places.into_iter().find(|d| file(d, "test_batch.bin").is_some())
}

pub fn load(dir: &Path) -> Result<ImageSet> {
    let name = |i: usize| format!("data_batch_{i}.bin");
    let train: Vec<PathBuf> = (1..=5).filter_map(|i| file(dir, &name(i))).collect();
    if train.is_empty() {
        return Err(wrong(dir, format!("there is test_batch.bin, but not {}", name(1))));
    }
    let test: Vec<PathBuf> = file(dir, "test_batch.bin").into_iter().collect();
    Ok(ImageSet { train: images(&train)?, test: images(&test)? })
}

fn images(files: &[PathBuf]) -> Result<Images> {
    let (mut pixels, mut labels) = (Vec::new(), Vec::new());
    for path in files {
        let bytes = read(path)?;
        if bytes.len() % RECORD != 0 {
            let text = format!("{} bytes are no multiple of {RECORD}", bytes.len());
            return Err(wrong(path, text));
        }
        for record in bytes.chunks_exact(RECORD) {
            labels.push(i64::from(record[0]));
            let plane = SIDE * SIDE;
            for i in 0..plane {
                pixels.extend((0..CHANNELS).map(|c| record[1 + c * plane + i]));
            }
        }
    }
    let size = Size { height: SIDE, width: SIDE, channels: CHANNELS, white: 255 };
    Ok(Images { pixels, labels, size })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn channels_come_together() {
        let dir = std::env::temp_dir().join(format!("ferroflow-cifar-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let mut record = vec![3u8];
        for channel in [10u8, 20, 30] {
            record.extend((0..SIDE * SIDE).map(|i| channel + u8::from(i == 0)));
        }
        std::fs::write(dir.join("test_batch.bin"), &record).unwrap();
        assert!(load(&dir).unwrap_err().message().contains("data_batch_1.bin"));
        std::fs::write(dir.join("data_batch_1.bin"), record.repeat(2)).unwrap();
        let set = load(&find(&dir).unwrap()).unwrap();
        assert_eq!((set.train.labels.len(), set.test.labels[0]), (2, 3));
        assert_eq!(set.test.pixels[..6], [11, 21, 31, 10, 20, 30]);
        std::fs::write(dir.join("data_batch_2.bin"), [0; 5]).unwrap();
        assert!(load(&dir).unwrap_err().message().contains("no multiple"));
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
