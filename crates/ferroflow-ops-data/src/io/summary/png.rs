//! Writing PNG files of 8 bits a channel.

use png::{BitDepth, ColorType, Encoder, EncodingError};

/// An image of 1 (grey), 3 (RGB) or 4 (RGBA) channels; `pixels` are its rows.
pub(super) fn encode(
    pixels: &[u8],
    width: u32,
    height: u32,
    channels: usize,
) -> Result<Vec<u8>, EncodingError> {
    let mut out = Vec::new();
    let mut encoder = Encoder::new(&mut out, width, height);
    encoder.set_depth(BitDepth::Eight);
    encoder.set_color(match channels {
        1 => ColorType::Grayscale,
        3 => ColorType::Rgb,
        _ => ColorType::Rgba,
    });
    let mut writer = encoder.write_header()?;
    writer.write_image_data(pixels)?;
    writer.finish()?;
    Ok(out)
}
