//! Reads SVHN's MATLAB 5 files; supports arrays of bytes and numbers only.

use super::{ImageSet, Images, MAX_BYTES, Size, read, wrong};
use ferroflow::Result;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Images for training and for testing.
pub type Files = [PathBuf; 2];

pub fn find(dir: &Path) -> Option<Files> {
    let files = ["train_32x32.mat", "test_32x32.mat"].map(|name| dir.join(name));
    files.iter().all(|f| f.is_file()).then_some(files)
}

pub fn load([train, test]: &Files) -> Result<ImageSet> {
    Ok(ImageSet { train: images(train)?, test: images(test)? })
}

/// An array, in MATLAB's order: the first dimension runs fastest.
struct Array {
    name: String,
    dims: Vec<usize>,
    values: Vec<u8>,
}

fn images(path: &Path) -> Result<Images> {
    let arrays = arrays(&read(path)?).map_err(|what| wrong(path, what))?;
    let find = |name: &str| {
        let found = arrays.iter().find(|a| a.name == name);
        found.ok_or_else(|| wrong(path, format!("there is no array '{name}'")))
    };
    let (x, y) = (find("X")?, find("y")?);
    let &[height, width, channels, count] = x.dims.as_slice() else {
        return Err(wrong(path, format!("'X' has dimensions {:?}, not four", x.dims)));
    };
    let size = Size { height, width, channels, white: 255 };
    if y.values.len() != count || x.values.len() != count * size.pixels() {
        return Err(wrong(path, format!("{} labels for {count} images", y.values.len())));
    }
    let mut pixels = Vec::with_capacity(x.values.len());
    for image in x.values.chunks_exact(size.pixels().max(1)) {
        for row in 0..height {
            for column in 0..width {
                pixels.extend((0..channels).map(|c| image[row + height * (column + width * c)]));
            }
        }
    }
    // The digit 0 has class 10.
    let labels = y.values.iter().map(|l| i64::from(l % 10)).collect();
    Ok(Images { pixels, labels, size })
}

type Parsed<T> = std::result::Result<T, String>;

/// Element types of the MATLAB 5 format.
const INT8: u32 = 1;
const UINT8: u32 = 2;
const INT32: u32 = 5;
const UINT32: u32 = 6;
const DOUBLE: u32 = 9;
const MATRIX: u32 = 14;
const COMPRESSED: u32 = 15;

/// All arrays of a file.
fn arrays(bytes: &[u8]) -> Parsed<Vec<Array>> {
    const HEADER: usize = 128;
    let header = bytes.get(..HEADER).ok_or("the file is cut short")?;
    if header[126..] != *b"IM" {
        return Err("not a MATLAB 5 file (of a machine with little-endian numbers)".into());
    }
    let mut found = Vec::new();
    let mut rest = &bytes[HEADER..];
    while !rest.is_empty() {
        let (kind, data, tail) = element(rest)?;
        match kind {
            MATRIX => found.push(array(data)?),
            COMPRESSED => {
                let mut plain = Vec::new();
                let unpacked = flate2::read::ZlibDecoder::new(data);
                unpacked.take(MAX_BYTES).read_to_end(&mut plain).map_err(|e| e.to_string())?;
                let (kind, data, _) = element(&plain)?;
                if kind == MATRIX {
                    found.push(array(data)?);
                }
            }
            _ => {}
        }
        rest = tail;
    }
    Ok(found)
}

/// Splits off the first element: type, data, and the remaining bytes.
fn element(bytes: &[u8]) -> Parsed<(u32, &[u8], &[u8])> {
    let number = |at: usize| {
        let four: [u8; 4] = bytes.get(at..at + 4)?.try_into().ok()?;
        Some(u32::from_le_bytes(four))
    };
    let short = "the file is cut short";
    let first = number(0).ok_or(short)?;
    // A small element stores its length beside its type and its data in the next four bytes.
    if first >> 16 != 0 {
        let length = (first >> 16) as usize;
        let data = bytes.get(4..4 + length).filter(|_| length <= 4).ok_or(short)?;
        return Ok((first & 0xffff, data, bytes.get(8..).ok_or(short)?));
    }
    let length = number(4).ok_or(short)? as usize;
    let data = bytes.get(8..).and_then(|b| b.get(..length)).ok_or(short)?;
    // All but compressed elements are padded to eight bytes. The last one may lack the padding.
    let end = 8 + if first == COMPRESSED { length } else { length.next_multiple_of(8) };
    Ok((first, data, bytes.get(end..).unwrap_or_default()))
}

/// An array: flags, dimensions, name, values.
fn array(bytes: &[u8]) -> Parsed<Array> {
    let (_, _, rest) = element(bytes)?;
    let (kind, dims, rest) = element(rest)?;
    if kind != INT32 {
        return Err("the dimensions of an array are not numbers".into());
    }
    let dims = dims.chunks_exact(4);
    let dims: Vec<usize> =
        dims.map(|d| u32::from_le_bytes([d[0], d[1], d[2], d[3]]) as usize).collect();
    let (kind, name, rest) = element(rest)?;
    if kind != INT8 {
        return Err("an array has no name".into());
    }
    let name = String::from_utf8_lossy(name).into_owned();
    let (kind, data, _) = element(rest)?;
    let values = match kind {
        UINT8 | INT8 => data.to_vec(),
        INT32 | UINT32 => data.chunks_exact(4).map(|v| v[0]).collect(),
        DOUBLE => data
            .chunks_exact(8)
            .map(|v| f64::from_le_bytes([v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7]]) as u8)
            .collect(),
        other => return Err(format!("array '{name}' has values of kind {other}")),
    };
    let total = dims.iter().try_fold(1usize, |n, d| n.checked_mul(*d));
    match total == Some(values.len()) {
        true => Ok(Array { name, dims, values }),
        false => Err(format!("array '{name}' has {} values, not {dims:?}", values.len())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn tagged(kind: u32, data: &[u8]) -> Vec<u8> {
        let mut out = [kind.to_le_bytes(), (data.len() as u32).to_le_bytes()].concat();
        out.extend_from_slice(data);
        out.resize(out.len().next_multiple_of(8), 0);
        out
    }

    fn matrix(name: &str, dims: &[u32], kind: u32, values: &[u8]) -> Vec<u8> {
        let dims: Vec<u8> = dims.iter().flat_map(|d| d.to_le_bytes()).collect();
        let short_name =
            [(INT8 | (name.len() as u32) << 16).to_le_bytes(), [name.as_bytes()[0], 0, 0, 0]];
        let parts = [
            tagged(UINT32, &[0; 8]),
            tagged(INT32, &dims),
            short_name.concat(),
            tagged(kind, values),
        ];
        let whole = tagged(MATRIX, &parts.concat());
        let mut packed = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
        packed.write_all(&whole).unwrap();
        let packed = packed.finish().unwrap();
        [&COMPRESSED.to_le_bytes()[..], &(packed.len() as u32).to_le_bytes(), &packed].concat()
    }

    #[test]
    fn arrays_are_turned_to_rows_of_pixels() {
        let dir = std::env::temp_dir().join(format!("ferroflow-mat-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let mut header = vec![b' '; 124];
        header.extend([0, 1, b'I', b'M']);
        // Two images of 2 by 1 pixels and 3 channels.
        let x: Vec<u8> = (0..12).collect();
        let y: Vec<u8> = [10.0f64, 3.0].iter().flat_map(|v| v.to_le_bytes()).collect();
        let file =
            [header, matrix("X", &[2, 1, 3, 2], UINT8, &x), matrix("y", &[2, 1], DOUBLE, &y)];
        let file = file.concat();
        for name in ["train_32x32.mat", "test_32x32.mat"] {
            std::fs::write(dir.join(name), &file).unwrap();
        }
        let set = load(&find(&dir).unwrap()).unwrap();
        assert_eq!(set.train.labels, [0, 3]);
        assert_eq!(set.train.pixels, [0, 2, 4, 1, 3, 5, 6, 8, 10, 7, 9, 11]);
        std::fs::write(dir.join("test_32x32.mat"), &file[..file.len() - 9]).unwrap();
        assert!(load(&find(&dir).unwrap()).is_err());
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
