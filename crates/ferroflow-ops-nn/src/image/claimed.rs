//! The size that the header of an image claims, which is checked before the image is decoded.

/// Pixels of one picture by its header. 0 if the header is malformed, which the decoder reports.
pub(super) fn claimed_pixels(data: &[u8]) -> usize {
    pixels(data).unwrap_or(0)
}

fn pixels(data: &[u8]) -> Option<usize> {
    let (width, height) = if data.starts_with(b"\x89PNG") {
        (big(data.get(16..20)?), big(data.get(20..24)?))
    } else if data.starts_with(b"GIF8") {
        (little(data.get(6..8)?), little(data.get(8..10)?))
    } else if data.starts_with(b"BM") {
        let number = |bytes: &[u8]| (little(bytes) as u32 as i32).unsigned_abs() as usize;
        (number(data.get(18..22)?), number(data.get(22..26)?))
    } else {
        jpeg_size(data)?
    };
    Some(width.saturating_mul(height))
}

/// Width and height in the first frame header of a JPEG file.
fn jpeg_size(data: &[u8]) -> Option<(usize, usize)> {
    let mut rest = data.strip_prefix(b"\xff\xd8")?;
    loop {
        let start = rest.iter().position(|&b| b == 0xff)?;
        rest = rest.get(start + 1..)?;
        match *rest.first()? {
            // Filling, and markers without a length.
            0xff => {}
            0x00 | 0x01 | 0xd0..=0xd9 => rest = &rest[1..],
            0xc0..=0xcf if !matches!(rest[0], 0xc4 | 0xc8 | 0xcc) => {
                return Some((big(rest.get(6..8)?), big(rest.get(4..6)?)));
            }
            _ => rest = rest.get(1 + big(rest.get(1..3)?)..)?,
        }
    }
}

fn big(bytes: &[u8]) -> usize {
    bytes.iter().fold(0, |x, &b| x << 8 | usize::from(b))
}

fn little(bytes: &[u8]) -> usize {
    bytes.iter().rev().fold(0, |x, &b| x << 8 | usize::from(b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_of_all_formats_are_read() {
        let png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x10\0\0\0\0\x05";
        assert_eq!(claimed_pixels(png), 4096 * 5);
        assert_eq!(claimed_pixels(b"GIF89a\x03\x00\x00\x01"), 3 * 256);
        let mut bmp = [0u8; 26];
        bmp[..2].copy_from_slice(b"BM");
        bmp[18..22].copy_from_slice(&7i32.to_le_bytes());
        bmp[22..26].copy_from_slice(&(-3i32).to_le_bytes());
        assert_eq!(claimed_pixels(&bmp), 21);
        let jpeg = b"\xff\xd8\xff\xe0\0\x04ab\xff\xff\xc2\0\x0b\x08\0\x02\0\x09\x01";
        assert_eq!(claimed_pixels(jpeg), 18);
    }

    #[test]
    fn short_headers_claim_nothing() {
        let files: [&[u8]; 6] =
            [b"", b"\x89PNG", b"GIF89a\x03", b"BM", b"\xff\xd8\xff", b"\xff\xd8"];
        assert!(files.iter().all(|file| claimed_pixels(file) == 0));
        assert_eq!(claimed_pixels(b"\xff\xd8\xff\xe0\xff\xff"), 0);
    }
}
