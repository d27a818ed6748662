//! PNG files. The `png` crate reads them; the conversions to other numbers of channels and bits are
//! those of libpng, as TensorFlow uses it.

use crate::prelude::*;
use png::{
    BitDepth, ColorType, Decoder, DeflateCompression, Encoder, EncodingError, Filter, Reader,
};
use std::io::Cursor;

/// Why a file is not decoded.
#[derive(Debug)]
pub(super) enum Fault {
    /// Its header is not that of a PNG file.
    Header,
    /// The data after the header is broken.
    Data,
    TooLarge(u32, u32),
    /// There is no memory for its pixels.
    Memory(Error),
}

/// Width and height beyond this are refused.
const MAX_SIDE: u32 = 1_000_000;
const MAX_PIXELS: u64 = 1 << 29;

/// A file whose header was read.
pub(super) struct Image<'a> {
    pub width: usize,
    pub height: usize,
    reader: Reader<Cursor<&'a [u8]>>,
}

impl<'a> Image<'a> {
    pub fn read(data: &'a [u8]) -> Result<Image<'a>, Fault> {
        let mut decoder = Decoder::new(Cursor::new(data));
        decoder.set_ignore_text_chunk(true);
        decoder.set_ignore_iccp_chunk(true);
        decoder.ignore_checksums(false);
        let (width, height) = {
            let info = decoder.read_header_info().map_err(|_| Fault::Header)?;
            (info.width, info.height)
        };
        if width > MAX_SIDE || height > MAX_SIDE {
            return Err(Fault::Header);
        }
        if u64::from(width) * u64::from(height) >= MAX_PIXELS {
            return Err(Fault::TooLarge(width, height));
        }
        let reader = decoder.read_info().map_err(|_| Fault::Header)?;
        let palette = reader.info().palette.as_deref();
        let is_whole = palette.map(|p| p.len().is_multiple_of(3));
        if is_whole == Some(false)
            || is_whole.is_none() && reader.info().color_type == ColorType::Indexed
        {
            return Err(Fault::Header);
        }
        Ok(Image { width: width as usize, height: height as usize, reader })
    }

    /// Channels that the file has.
    pub fn channels(&self) -> usize {
        let pixels = Pixels::new(self.reader.info());
        match pixels.colour {
            ColorType::Indexed if pixels.transparent.is_some() => 4,
            ColorType::Indexed => 3,
            other => other.samples(),
        }
    }

    /// Decodes all pixels to `channels` samples each; `wide` samples have 16 bits, others 8.
    pub fn decode(
        mut self,
        channels: usize,
        wide: bool,
        mut put: impl FnMut(usize, u16),
    ) -> Result<(), Fault> {
        let size = self.reader.output_buffer_size().ok_or(Fault::Data)?;
        // A tensor, because only tensors are counted against the memory limit.
        let mut raw = Tensor::alloc(DType::UInt8, [size]).map_err(Fault::Memory)?;
        let raw = raw.as_mut_slice::<u8>().map_err(Fault::Memory)?;
        // The decoder combines pixels of fewer than 8 bits in an interlaced file with the old
        // bytes.
        raw.fill(0);
        let layout = self.reader.next_frame(raw).map_err(|_| Fault::Data)?;
        self.reader.finish().map_err(|_| Fault::Data)?;
        let pixels = Pixels::new(self.reader.info());
        let deep = pixels.depth == 16;
        let fit = |x: u16| match (deep, wide) {
            (true, true) | (false, false) => x,
            (true, false) => x >> 8,
            (false, true) => x << 8 | x,
        };
        // TensorFlow's filler for a missing alpha has the bits of the file's samples, not 8 or 16.
        let has_alpha = matches!(pixels.colour, ColorType::GrayscaleAlpha | ColorType::Rgba);
        let is_gray = matches!(pixels.colour, ColorType::Grayscale | ColorType::GrayscaleAlpha);
        let missing = pixels.transparent.is_none() && !has_alpha;
        let opaque = ((1u32 << pixels.depth) - 1) as u16;
        let made_gray = channels < 3 && !is_gray;
        for (y, row) in raw.chunks_exact(layout.line_size).take(self.height).enumerate() {
            for x in 0..self.width {
                let [r, g, b, alpha] = pixels.get(row, x);
                let alpha = if missing { opaque } else { alpha };
                let first = if made_gray { gray(r, g, b, deep) } else { r };
                let samples = match channels {
                    1 => [first, 0, 0, 0],
                    2 => [first, alpha, 0, 0],
                    _ => [r, g, b, alpha],
                };
                let at = (y * self.width + x) * channels;
                for (i, &x) in samples[..channels].iter().enumerate() {
                    put(at + i, fit(x));
                }
            }
        }
        Ok(())
    }
}

/// How to read the pixels of a decoded row.
struct Pixels<'a> {
    depth: u8,
    colour: ColorType,
    palette: &'a [u8],
    /// Alpha of palette entries, or the colour that is transparent.
    transparent: Option<&'a [u8]>,
}

impl<'a> Pixels<'a> {
    fn new(info: &'a png::Info<'_>) -> Pixels<'a> {
        let (colour, palette) = (info.color_type, info.palette.as_deref().unwrap_or_default());
        // More alphas than colours are ignored.
        let fits = |t: &&[u8]| colour != ColorType::Indexed || 3 * t.len() <= palette.len();
        let transparent = info.trns.as_deref().filter(fits);
        Pixels { depth: info.bit_depth as u8, colour, palette, transparent }
    }

    /// Pixel `x` of a row: gray or red, green, blue, and alpha. Samples have the file's bits, but
    /// at least 8; those of palettes have 8.
    fn get(&self, row: &[u8], x: usize) -> [u16; 4] {
        let n = self.colour.samples();
        let sample = |i: usize| -> u16 {
            let at = x * n + i;
            match self.depth {
                16 => word(row, at),
                8 => u16::from(row[at]),
                depth => {
                    let bit = at * usize::from(depth);
                    let shift = 8 - bit % 8 - usize::from(depth);
                    u16::from(row[bit / 8]) >> shift & ((1 << depth) - 1)
                }
            }
        };
        let opaque = if self.depth == 16 { u16::MAX } else { 255 };
        // The transparent colour of the file, and samples scaled to 8 bits.
        let key = |i: usize| match self.depth {
            16 => self.transparent.map(|t| word(t, i)),
            _ => self.transparent.map(|t| u16::from(t[i])),
        };
        let scaled = |x: u16| if self.depth < 8 { x * (255 / ((1 << self.depth) - 1)) } else { x };
        match self.colour {
            ColorType::Grayscale => {
                let (gray, alpha) = (sample(0), if key(0) == Some(sample(0)) { 0 } else { opaque });
                [scaled(gray), scaled(gray), scaled(gray), alpha]
            }
            ColorType::GrayscaleAlpha => [sample(0), sample(0), sample(0), sample(1)],
            ColorType::Rgb => {
                let hidden = (0..3).all(|i| key(i) == Some(sample(i)));
                [sample(0), sample(1), sample(2), if hidden { 0 } else { opaque }]
            }
            ColorType::Rgba => [sample(0), sample(1), sample(2), sample(3)],
            ColorType::Indexed => {
                let index = usize::from(sample(0));
                // An index beyond the palette is black.
                let entry = self.palette.get(3 * index..3 * index + 3).unwrap_or(&[0; 3]);
                let alpha = self.transparent.and_then(|t| t.get(index).copied()).unwrap_or(255);
                [entry[0].into(), entry[1].into(), entry[2].into(), alpha.into()]
            }
        }
    }
}

fn word(bytes: &[u8], i: usize) -> u16 {
    u16::from_be_bytes([bytes[2 * i], bytes[2 * i + 1]])
}

/// Brightness, in fixed point.
fn gray(r: u16, g: u16, b: u16, deep: bool) -> u16 {
    if r == g && g == b {
        return r;
    }
    let sum = 9797 * u32::from(r) + 19234 * u32::from(g) + 3737 * u32::from(b);
    ((sum + if deep { 16384 } else { 0 }) >> 15) as u16
}

/// Encodes rows of `height` by `width` pixels, `channels` samples each of 8 or 16 bits
/// (big-endian). `level` is zlib's.
pub(super) fn encode(
    data: &[u8],
    (height, width, channels): (usize, usize, usize),
    wide: bool,
    level: u8,
) -> Result<Vec<u8>, EncodingError> {
    let mut out = Vec::new();
    let mut encoder = Encoder::new(&mut out, width as u32, height as u32);
    encoder.set_depth(if wide { BitDepth::Sixteen } else { BitDepth::Eight });
    encoder.set_color(match channels {
        1 => ColorType::Grayscale,
        2 => ColorType::GrayscaleAlpha,
        3 => ColorType::Rgb,
        _ => ColorType::Rgba,
    });
    encoder.set_filter(Filter::Adaptive);
    encoder.set_deflate_compression(match level {
        0 => DeflateCompression::NoCompression,
        level => DeflateCompression::Level(level),
    });
    let mut writer = encoder.write_header()?;
    writer.write_image_data(data)?;
    writer.finish()?;
    Ok(out)
}
