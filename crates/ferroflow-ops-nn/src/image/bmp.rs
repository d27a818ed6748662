//! BMP files of 8, 24 and 32 bits a pixel.

use crate::prelude::*;

/// Pixels of a BMP file with `channels` channels, or as many as the file has for 0; height, width
/// and channels.
pub(super) fn decode(data: &[u8], channels: usize) -> Result<(Vec<u8>, [usize; 3])> {
    ensure!(
        data.len() >= 32,
        InvalidArgument,
        "Incomplete bmp content, requires at least 32 bytes to find the header size, width, height, \
         and bpp, got {} bytes",
        data.len()
    );
    let number = |at: usize| {
        i64::from(i32::from_le_bytes([data[at], data[at + 1], data[at + 2], data[at + 3]]))
    };
    let (header, width, height) = (number(10), number(18), number(22));
    let stored = i16::from_le_bytes([data[28], data[29]]) / 8;
    ensure!(
        matches!(stored, 1 | 3 | 4),
        InvalidArgument,
        "Number of channels inherent in the image must be 1, 3 or 4, was {stored}"
    );
    let stored = stored as usize;
    let channels = if channels == 0 { stored } else { channels };
    ensure!(width > 0, InvalidArgument, "Width must be positive");
    ensure!(height != 0, InvalidArgument, "Height must be nonzero");
    ensure!(header >= 0, InvalidArgument, "header size must be nonnegative");
    let (from_top, height) = (height < 0, height.abs());
    ensure!(
        width * height < i64::from(i32::MAX) / 8,
        InvalidArgument,
        "Total possible pixel bytes must be less than 2^30"
    );
    let (width, height) = (width as usize, height as usize);
    let row = (stored * width).next_multiple_of(4);
    let difference = data.len() as i64 - header - (row * height) as i64;
    ensure!(
        difference == 0,
        InvalidArgument,
        "Input size should match (header_size + row_size * abs_height) but they differ by \
         {difference}"
    );
    let rows = &data[header as usize..];
    let mut out = Vec::with_capacity(width * height * channels);
    for y in 0..height {
        let y = if from_top { y } else { height - 1 - y };
        for p in rows[y * row..][..stored * width].chunks_exact(stored) {
            let colour = match p {
                [gray] => [*gray, *gray, *gray, 255],
                [b, g, r] => [*r, *g, *b, 255],
                _ => [p[2], p[1], p[0], p[3]],
            };
            out.extend(&colour[..channels]);
        }
    }
    Ok((out, [height, width, channels]))
}
