//! JPEG, baseline and progressive, with the same bits as libjpeg. Inverse transforms, upsampling
//! and colours use integer arithmetic, so a decoded image is the same on every machine.

mod bits;
mod decode;
mod encode;
mod forward;
mod header;
mod huffman;
mod inverse;
mod scan;
mod upsample;

pub(super) use decode::{Crop, Options, decode};
pub(super) use encode::{Density, Encoding, encode};
pub(super) use header::read_size;

/// From the zigzag order of a file to rows and columns.
const ZIGZAG: [usize; 64] = [
    0, 1, 8, 16, 9, 2, 3, 10, 17, 24, 32, 25, 18, 11, 4, 5, 12, 19, 26, 33, 40, 48, 41, 34, 27, 20,
    13, 6, 7, 14, 21, 28, 35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51, 58, 59,
    52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63,
];
