//! GIF files: the frames of an animation, each as the whole picture.

use crate::prelude::*;
use weezl::{BitOrder, LzwStatus};

/// The images of a file, and the size of the picture that they make.
pub(super) struct Animation {
    pub frames: usize,
    pub height: usize,
    pub width: usize,
    images: Vec<Image>,
    colours: Option<Vec<[u8; 3]>>,
    /// Bytes of the file.
    size: usize,
}

/// One image of a file.
struct Image {
    left: usize,
    top: usize,
    width: usize,
    height: usize,
    colours: Option<Vec<[u8; 3]>>,
    transparent: Option<u8>,
    indices: Vec<u8>,
}

/// A file being read.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, n: usize) -> Option<&'a [u8]> {
        let (head, rest) = self.0.split_at_checked(n)?;
        self.0 = rest;
        Some(head)
    }

    fn byte(&mut self) -> Option<u8> {
        Some(self.take(1)?[0])
    }

    fn short(&mut self) -> Option<usize> {
        let b = self.take(2)?;
        Some(usize::from(u16::from_le_bytes([b[0], b[1]])))
    }

    fn colours(&mut self, flags: u8) -> Option<Option<Vec<[u8; 3]>>> {
        if flags & 0x80 == 0 {
            return Some(None);
        }
        let bytes = self.take(3 << ((flags & 7) + 1))?;
        Some(Some(bytes.chunks_exact(3).map(|c| [c[0], c[1], c[2]]).collect()))
    }

    /// The contents of a chain of blocks.
    fn blocks(&mut self) -> Option<Vec<u8>> {
        let mut out = Vec::new();
        loop {
            match self.byte()? {
                0 => return Some(out),
                n => out.extend(self.take(usize::from(n))?),
            }
        }
    }
}

/// Decompresses `pixels` indices; `None` if there are fewer.
fn decompress(data: &[u8], code_size: u8, pixels: usize) -> Option<Vec<u8>> {
    if !(2..=8).contains(&code_size) {
        return None;
    }
    let mut decoder = weezl::decode::Decoder::new(BitOrder::Lsb, code_size);
    // In blocks: memory grows with the data of the file, not with the size that its header claims.
    let (mut rest, mut block, mut out) = (data, [0; 4096], Vec::new());
    while out.len() < pixels {
        let step = decoder.decode_bytes(rest, &mut block);
        rest = &rest[step.consumed_in..];
        out.extend_from_slice(&block[..step.consumed_out]);
        if !matches!(step.status, Ok(LzwStatus::Ok)) {
            break;
        }
    }
    out.truncate(pixels);
    (out.len() == pixels).then_some(out)
}

/// Puts the rows of the four passes in order.
fn deinterlaced(indices: Vec<u8>, width: usize, height: usize) -> Vec<u8> {
    let mut out = vec![0; indices.len()];
    let rows = [(0, 8), (4, 8), (2, 4), (1, 2)];
    let order = rows.iter().flat_map(|&(from, step)| (from..height).step_by(step));
    for (row, from) in order.zip(indices.chunks_exact(width)) {
        out[row * width..][..width].copy_from_slice(from);
    }
    out
}

impl Image {
    fn read(reader: &mut Reader<'_>, transparent: Option<u8>) -> Option<Image> {
        let (left, top) = (reader.short()?, reader.short()?);
        let (width, height) = (reader.short()?, reader.short()?);
        if width == 0 || height == 0 {
            return None;
        }
        let flags = reader.byte()?;
        let colours = reader.colours(flags)?;
        let least = reader.byte()?;
        let data = reader.blocks()?;
        let mut indices = decompress(&data, least, width * height)?;
        if flags & 0x40 != 0 {
            indices = deinterlaced(indices, width, height);
        }
        Some(Image { left, top, width, height, colours, transparent, indices })
    }
}

/// The images of a file as far as they are whole, and the colours they share.
fn read(data: &[u8]) -> Result<(Vec<Image>, Option<Vec<[u8; 3]>>)> {
    let fault =
        || err!(InvalidArgument, "Invalid GIF data (size {}), Failed to open gif file", data.len());
    let mut reader = Reader(data);
    let head = reader.take(13).ok_or_else(fault)?;
    let shared = reader.colours(head[10]).ok_or_else(fault)?;
    let (mut images, mut transparent) = (Vec::new(), None);
    loop {
        match reader.byte() {
            Some(0x2c) => match Image::read(&mut reader, transparent.take()) {
                Some(image) => images.push(image),
                None => break,
            },
            Some(0x21) => {
                let label = reader.byte();
                let Some(body) = reader.blocks() else { break };
                if label == Some(0xf9) && body.len() == 4 {
                    transparent = (body[0] & 1 != 0).then_some(body[3]);
                }
            }
            _ => break,
        }
    }
    Ok((images, shared))
}

impl Animation {
    /// Reads a file; the first frame alone counts unless `all`.
    pub fn read(data: &[u8], all: bool) -> Result<Animation> {
        let (images, colours) = read(data)?;
        let width = images.iter().map(|i| i.width).max().unwrap_or(0);
        let height = images.iter().map(|i| i.height).max().unwrap_or(0);
        let frames = if all { images.len() } else { images.len().min(1) };
        let animation = Animation { frames, height, width, images, colours, size: data.len() };
        match frames {
            0 => Err(animation.fault("gif file does not contain any image".into())),
            _ => Ok(animation),
        }
    }

    fn fault(&self, why: String) -> Error {
        err!(InvalidArgument, "Invalid GIF data (size {}), {why}", self.size)
    }

    /// Draws all frames into `out`, which has room for their pixels of three bytes.
    pub fn draw(&self, out: &mut [u8]) -> Result<()> {
        let frame = 3 * self.width * self.height;
        for (k, image) in self.images.iter().take(self.frames).enumerate() {
            // A frame is drawn over the one before.
            match k {
                0 => out[..frame].fill(0),
                _ => out.copy_within((k - 1) * frame..k * frame, k * frame),
            }
            let Some(colours) = image.colours.as_ref().or(self.colours.as_ref()) else {
                return Err(self.fault(format!("missing color map for frame {k}")));
            };
            let canvas = &mut out[k * frame..][..frame];
            for (y, row) in image.indices.chunks_exact(image.width).enumerate() {
                for (x, &index) in row.iter().enumerate() {
                    let (y, x) = (image.top + y, image.left + x);
                    if y >= self.height || x >= self.width || image.transparent == Some(index) {
                        continue;
                    }
                    let Some(colour) = colours.get(usize::from(index)) else {
                        return Err(self.fault(format!(
                            "found color index {index} outside of color map range {}",
                            colours.len()
                        )));
                    };
                    canvas[3 * (y * self.width + x)..][..3].copy_from_slice(colour);
                }
            }
        }
        Ok(())
    }
}
