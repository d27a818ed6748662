//! PNG files.

use flate2::Crc;
use flate2::read::ZlibDecoder;
use png::{BitDepth, ColorType, DeflateCompression, Encoder, EncodingError, Filter};
use std::io::Read;

/// Why a file is not decoded.
#[derive(Debug)]
pub(super) enum Fault {
    /// Its header is not that of a PNG file.
    Header,
    /// What follows is broken.
    Data,
    TooLarge(u32, u32),
}

/// Colours of a pixel in a file.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Colour {
    Gray,
    Rgb,
    Palette,
    GrayAlpha,
    Rgba,
}

impl Colour {
    fn samples(self) -> usize {
        match self {
            Colour::Gray | Colour::Palette => 1,
            Colour::GrayAlpha => 2,
            Colour::Rgb => 3,
            Colour::Rgba => 4,
        }
    }

    fn is_gray(self) -> bool {
        matches!(self, Colour::Gray | Colour::GrayAlpha)
    }

    fn has_alpha(self) -> bool {
        matches!(self, Colour::GrayAlpha | Colour::Rgba)
    }
}

/// The header of a file.
pub(super) struct Header<'a> {
    pub width: usize,
    pub height: usize,
    depth: u8,
    colour: Colour,
    interlaced: bool,
    palette: Vec<[u8; 3]>,
    /// Alpha of palette entries, or the colour that is transparent.
    transparent: Option<&'a [u8]>,
    /// What follows the header, beginning with the first chunk of pixels.
    rest: &'a [u8],
}

/// A chunk: its type, its contents, whether its checksum is right, and what follows.
fn chunk(data: &[u8]) -> Option<(&[u8], &[u8], bool, &[u8])> {
    let length = u32::from_be_bytes(data.get(..4)?.try_into().ok()?) as usize;
    let kind = data.get(4..8)?;
    let end = 8usize.checked_add(length)?;
    let body = data.get(8..end)?;
    let sum = data.get(end..end + 4)?;
    let mut crc = Crc::new();
    crc.update(&data[4..end]);
    Some((kind, body, crc.sum().to_be_bytes() == *sum, &data[end + 4..]))
}

impl<'a> Header<'a> {
    pub fn read(data: &'a [u8]) -> Result<Header<'a>, Fault> {
        let rest = data.strip_prefix(b"\x89PNG\r\n\x1a\n").ok_or(Fault::Header)?;
        let (kind, body, sound, mut rest) = chunk(rest).ok_or(Fault::Header)?;
        let (b"IHDR", Ok::<[u8; 13], _>(b), true) = (kind, body.try_into(), sound) else {
            return Err(Fault::Header);
        };
        let width = u32::from_be_bytes([b[0], b[1], b[2], b[3]]);
        let height = u32::from_be_bytes([b[4], b[5], b[6], b[7]]);
        let (depth, colour) = match (b[8], b[9]) {
            (1 | 2 | 4 | 8 | 16, 0) => (b[8], Colour::Gray),
            (1 | 2 | 4 | 8, 3) => (b[8], Colour::Palette),
            (8 | 16, 2) => (b[8], Colour::Rgb),
            (8 | 16, 4) => (b[8], Colour::GrayAlpha),
            (8 | 16, 6) => (b[8], Colour::Rgba),
            _ => return Err(Fault::Header),
        };
        // Beyond a million pixels a side, a file is taken for a bad joke.
        let fits = |side: u32| (1..=1_000_000).contains(&side);
        if !fits(width) || !fits(height) || b[10] != 0 || b[11] != 0 || b[12] > 1 {
            return Err(Fault::Header);
        }
        if u64::from(width) * u64::from(height) >= 1 << 29 {
            return Err(Fault::TooLarge(width, height));
        }
        let (mut palette, mut transparent) = (Vec::new(), None);
        let rest = loop {
            let (kind, body, sound, next) = chunk(rest).ok_or(Fault::Header)?;
            match kind {
                b"IDAT" => break rest,
                b"PLTE" if sound && body.len() % 3 == 0 && body.len() <= 768 => {
                    palette = body.chunks_exact(3).map(|c| [c[0], c[1], c[2]]).collect();
                }
                b"tRNS" if sound && !colour.has_alpha() => transparent = Some(body),
                b"IEND" => return Err(Fault::Header),
                // Other chunks whose names begin with a capital letter are not to be passed over.
                _ if kind[0].is_ascii_uppercase() => return Err(Fault::Header),
                _ => {}
            }
            rest = next;
        };
        if colour == Colour::Palette && palette.is_empty() {
            return Err(Fault::Header);
        }
        let enough = match colour {
            Colour::Gray => 2,
            Colour::Rgb => 6,
            _ => 1,
        };
        let transparent = transparent.filter(|t| t.len() >= enough);
        let (width, height) = (width as usize, height as usize);
        let interlaced = b[12] == 1;
        Ok(Header { width, height, depth, colour, interlaced, palette, transparent, rest })
    }

    /// Channels that the file has.
    pub fn channels(&self) -> usize {
        match self.colour {
            Colour::Palette if self.transparent.is_some() => 4,
            Colour::Palette => 3,
            other => other.samples(),
        }
    }

    /// The compressed pixels.
    fn compressed(&self) -> Result<Vec<u8>, Fault> {
        let (mut out, mut rest) = (Vec::new(), self.rest);
        loop {
            let (kind, body, sound, next) = chunk(rest).ok_or(Fault::Data)?;
            if !sound && kind[0].is_ascii_uppercase() {
                return Err(Fault::Data);
            }
            match kind {
                b"IDAT" => out.extend(body),
                b"IEND" => return Ok(out),
                _ => {}
            }
            rest = next;
        }
    }

    /// Calls `put(pixel, samples)` for every pixel; samples are as deep as the file has them, those
    /// of palettes 8 bits: gray or red, green, blue, and alpha.
    fn pixels(&self, mut put: impl FnMut(usize, [u16; 4])) -> Result<(), Fault> {
        let compressed = self.compressed()?;
        let mut data = ZlibDecoder::new(compressed.as_slice());
        let passes: &[[usize; 4]] = match self.interlaced {
            // First column and row, and steps between columns and rows.
            true => &[
                [0, 0, 8, 8],
                [4, 0, 8, 8],
                [0, 4, 4, 8],
                [2, 0, 4, 4],
                [0, 2, 2, 4],
                [1, 0, 2, 2],
                [0, 1, 1, 2],
            ],
            false => &[[0, 0, 1, 1]],
        };
        let bits = self.colour.samples() * usize::from(self.depth);
        let pixel_bytes = bits.div_ceil(8);
        for &[x0, y0, dx, dy] in passes {
            let across = self.width.saturating_sub(x0).div_ceil(dx);
            let down = self.height.saturating_sub(y0).div_ceil(dy);
            if across == 0 || down == 0 {
                continue;
            }
            let bytes = (across * bits).div_ceil(8);
            let (mut row, mut above) = (vec![0u8; 1 + bytes], vec![0u8; bytes]);
            for y in 0..down {
                data.read_exact(&mut row).map_err(|_| Fault::Data)?;
                unfilter(&mut row, &above, pixel_bytes)?;
                above.copy_from_slice(&row[1..]);
                for x in 0..across {
                    let at = (y0 + y * dy) * self.width + x0 + x * dx;
                    put(at, self.pixel(&above, x)?);
                }
            }
        }
        Ok(())
    }

    /// Pixel `x` of a row.
    fn pixel(&self, row: &[u8], x: usize) -> Result<[u16; 4], Fault> {
        let n = self.colour.samples();
        let sample = |i: usize| -> u16 {
            let at = x * n + i;
            match self.depth {
                16 => u16::from_be_bytes([row[2 * at], row[2 * at + 1]]),
                8 => u16::from(row[at]),
                depth => {
                    let bit = at * usize::from(depth);
                    let shift = 8 - bit % 8 - usize::from(depth);
                    u16::from(row[bit / 8]) >> shift & ((1 << depth) - 1)
                }
            }
        };
        let opaque = if self.depth == 16 { u16::MAX } else { 255 };
        // A colour of the file, which one may be transparent, scaled up from fewer than 8 bits.
        let key = |i: usize| self.transparent.map(|t| u16::from_be_bytes([t[2 * i], t[2 * i + 1]]));
        let wide = |x: u16| if self.depth < 8 { x * (255 / ((1 << self.depth) - 1)) } else { x };
        Ok(match self.colour {
            Colour::Gray => {
                let gray = sample(0);
                let alpha = if key(0) == Some(gray) { 0 } else { opaque };
                [wide(gray), wide(gray), wide(gray), alpha]
            }
            Colour::GrayAlpha => [sample(0), sample(0), sample(0), sample(1)],
            Colour::Rgb => {
                let c = [sample(0), sample(1), sample(2)];
                let hidden = self.transparent.is_some() && (0..3).all(|i| key(i) == Some(c[i]));
                [c[0], c[1], c[2], if hidden { 0 } else { opaque }]
            }
            Colour::Rgba => [sample(0), sample(1), sample(2), sample(3)],
            Colour::Palette => {
                let index = usize::from(sample(0));
                // An index beyond the palette is black.
                let [r, g, b] = self.palette.get(index).copied().unwrap_or_default();
                let alpha = self.transparent.and_then(|t| t.get(index).copied()).unwrap_or(255);
                [r.into(), g.into(), b.into(), alpha.into()]
            }
        })
    }

    /// Decodes all pixels to `channels` samples each; `wide` ones have 16 bits, others 8.
    pub fn decode(
        &self,
        channels: usize,
        wide: bool,
        mut put: impl FnMut(usize, u16),
    ) -> Result<(), Fault> {
        let deep = self.depth == 16;
        let fit = |x: u16| match (deep, wide) {
            (true, true) | (false, false) => x,
            (true, false) => x >> 8,
            (false, true) => x << 8 | x,
        };
        // An alpha that the file does not have is as large as its samples, not as large as it gets.
        let missing = self.transparent.is_none() && !self.colour.has_alpha();
        let opaque = ((1u32 << self.depth) - 1) as u16;
        let made_gray = channels < 3 && !self.colour.is_gray();
        self.pixels(|at, [r, g, b, alpha]| {
            let alpha = if missing { opaque } else { alpha };
            let first = if made_gray { gray(r, g, b, deep) } else { r };
            let samples = match channels {
                1 => [first, 0, 0, 0],
                2 => [first, alpha, 0, 0],
                _ => [r, g, b, alpha],
            };
            for (i, &x) in samples[..channels].iter().enumerate() {
                put(at * channels + i, fit(x));
            }
        })
    }
}

/// Brightness, in fixed point.
fn gray(r: u16, g: u16, b: u16, deep: bool) -> u16 {
    if r == g && g == b {
        return r;
    }
    let sum = 9797 * u32::from(r) + 19234 * u32::from(g) + 3737 * u32::from(b);
    ((sum + if deep { 16384 } else { 0 }) >> 15) as u16
}

/// Undoes the filter of a row, which its first byte names.
fn unfilter(row: &mut [u8], above: &[u8], pixel: usize) -> Result<(), Fault> {
    let Some((&mut filter, row)) = row.split_first_mut() else { return Err(Fault::Data) };
    for i in 0..row.len() {
        let left = if i >= pixel { row[i - pixel] } else { 0 };
        let (up, corner) = (above[i], if i >= pixel { above[i - pixel] } else { 0 });
        let guess = match filter {
            0 => 0,
            1 => left,
            2 => up,
            3 => ((u16::from(left) + u16::from(up)) / 2) as u8,
            4 => paeth(left, up, corner),
            _ => return Err(Fault::Data),
        };
        row[i] = row[i].wrapping_add(guess);
    }
    Ok(())
}

fn paeth(left: u8, up: u8, corner: u8) -> u8 {
    let (a, b, c) = (i16::from(left), i16::from(up), i16::from(corner));
    let (to_left, to_up, to_corner) = ((b - c).abs(), (a - c).abs(), (a + b - 2 * c).abs());
    if to_left <= to_up && to_left <= to_corner {
        left
    } else if to_up <= to_corner {
        up
    } else {
        corner
    }
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
