//! Writing PNG files of 8 bits a channel.

use flate2::{Compression, write::ZlibEncoder};
use std::io::Write;

/// An image of 1 (grey), 3 (RGB) or 4 (RGBA) channels; `pixels` are its rows.
pub(super) fn encode(pixels: &[u8], width: u32, height: u32, channels: u8) -> Vec<u8> {
    let mut out = b"\x89PNG\r\n\x1a\n".to_vec();
    let colour = match channels {
        1 => 0,
        3 => 2,
        _ => 6,
    };
    let mut head = Vec::new();
    head.extend(width.to_be_bytes());
    head.extend(height.to_be_bytes());
    head.extend([8, colour, 0, 0, 0]);
    chunk(&mut out, b"IHDR", &head);
    let mut deflate = ZlibEncoder::new(Vec::new(), Compression::default());
    let row = width as usize * usize::from(channels);
    for line in pixels.chunks(std::cmp::max(row, 1)) {
        // Filter 0: the bytes as they are. Writing to memory does not fail.
        let _ = deflate.write_all(&[0]);
        let _ = deflate.write_all(line);
    }
    chunk(&mut out, b"IDAT", &deflate.finish().unwrap_or_default());
    chunk(&mut out, b"IEND", &[]);
    out
}

fn chunk(out: &mut Vec<u8>, kind: &[u8; 4], data: &[u8]) {
    out.extend((data.len() as u32).to_be_bytes());
    let mut crc = flate2::Crc::new();
    crc.update(kind);
    crc.update(data);
    out.extend(kind);
    out.extend(data);
    out.extend(crc.sum().to_be_bytes());
}
