//! The segments of a JPEG file: tables, and the frame with its components.

use super::ZIGZAG;
use super::huffman::Decoder;

/// Why a file is not decoded.
pub(in crate::image) type Fault = String;

/// A component of the image: brightness, a colour.
#[derive(Clone, Debug)]
pub(super) struct Component {
    pub id: u8,
    /// Sampling factors across and down, relative to other components.
    pub h: usize,
    pub v: usize,
    pub table: usize,
}

#[derive(Clone, Debug)]
pub(super) struct Frame {
    pub width: usize,
    pub height: usize,
    pub progressive: bool,
    pub components: Vec<Component>,
}

impl Frame {
    pub fn max_h(&self) -> usize {
        self.components.iter().map(|c| c.h).max().unwrap_or(1)
    }

    pub fn max_v(&self) -> usize {
        self.components.iter().map(|c| c.v).max().unwrap_or(1)
    }
}

/// The header of a scan.
#[derive(Clone, Debug)]
pub(super) struct Scan {
    /// Component, and its tables for DC and AC.
    pub components: Vec<(usize, usize, usize)>,
    pub from: usize,
    pub to: usize,
    pub high: u32,
    pub low: u32,
}

/// The state of the decoder.
#[derive(Default)]
pub(super) struct Tables {
    /// In rows and columns, not in zigzag order.
    pub quantization: [Option<[u16; 64]>; 4],
    pub dc: [Option<Decoder>; 4],
    pub ac: [Option<Decoder>; 4],
    pub restart_interval: usize,
    pub is_jfif: bool,
    /// The transform that an Adobe segment names.
    pub adobe: Option<u8>,
}

/// The next segment of a file.
pub(super) enum Segment {
    Frame(Frame),
    Scan(Scan),
    Other,
    End,
    /// The file ends.
    Nothing,
}

/// Reads segments one after the other.
pub(super) struct Reader<'a> {
    data: &'a [u8],
    pub at: usize,
}

impl<'a> Reader<'a> {
    pub fn new(data: &'a [u8]) -> Result<Reader<'a>, Fault> {
        if !data.starts_with(&[0xff, 0xd8]) {
            return Err("it does not begin as a JPEG file".into());
        }
        Ok(Reader { data, at: 2 })
    }

    /// The remaining bytes.
    pub fn rest(&self) -> &'a [u8] {
        self.data.get(self.at..).unwrap_or(&[])
    }

    fn body(&mut self) -> Option<&'a [u8]> {
        let length = usize::from(u16::from_be_bytes([*self.rest().first()?, *self.rest().get(1)?]));
        let body = self.rest().get(2..length)?;
        self.at += length;
        Some(body)
    }

    /// Reads a segment and stores its tables.
    pub fn next(&mut self, tables: &mut Tables) -> Result<Segment, Fault> {
        // Skips to the next marker.
        let marker = loop {
            match self.rest() {
                [0xff, 0 | 0xff, ..] => self.at += 1,
                [0xff, marker, ..] => {
                    self.at += 2;
                    break *marker;
                }
                [] | [0xff] => return Ok(Segment::Nothing),
                [..] => self.at += 1,
            }
        };
        match marker {
            0xd9 => return Ok(Segment::End),
            0xd0..=0xd7 | 0x01 => return Ok(Segment::Other),
            _ => {}
        }
        let Some(body) = self.body() else { return Ok(Segment::Nothing) };
        let short = || format!("segment {marker:#x} is too short");
        match marker {
            0xdb => quantization(body, tables).ok_or_else(short)?,
            0xc4 => huffman(body, tables).ok_or("a Huffman table is broken")?,
            0xdd => match body {
                [a, b, ..] => tables.restart_interval = usize::from(u16::from_be_bytes([*a, *b])),
                _ => return Err(short()),
            },
            0xe0 if body.starts_with(b"JFIF\0") && body.len() >= 12 => tables.is_jfif = true,
            0xee if body.starts_with(b"Adobe") && body.len() >= 12 => {
                tables.adobe = Some(body[11]);
            }
            0xc0..=0xc2 => return frame(body, marker == 0xc2).map(Segment::Frame),
            0xc3 | 0xc5..=0xc7 | 0xc9..=0xcb | 0xcd..=0xcf => {
                return Err(format!("its coding process {marker:#x} is not supported"));
            }
            0xda => return scan(body).map(Segment::Scan),
            _ => {}
        }
        Ok(Segment::Other)
    }
}

fn quantization(mut body: &[u8], tables: &mut Tables) -> Option<()> {
    while let Some((&head, rest)) = body.split_first() {
        let wide = head >> 4 != 0;
        let bytes = rest.get(..if wide { 128 } else { 64 })?;
        let mut table = [0; 64];
        for (i, &to) in ZIGZAG.iter().enumerate() {
            table[to] = match wide {
                true => u16::from_be_bytes([bytes[2 * i], bytes[2 * i + 1]]),
                false => u16::from(bytes[i]),
            };
        }
        *tables.quantization.get_mut(usize::from(head & 15))? = Some(table);
        body = &rest[bytes.len()..];
    }
    Some(())
}

fn huffman(mut body: &[u8], tables: &mut Tables) -> Option<()> {
    while let Some((&head, rest)) = body.split_first() {
        let counts: &[u8; 16] = rest.get(..16)?.try_into().ok()?;
        let total: usize = counts.iter().map(|&n| usize::from(n)).sum();
        let values = rest.get(16..16 + total)?;
        let decoder = Decoder::new(counts, values)?;
        let kind = if head >> 4 == 0 { &mut tables.dc } else { &mut tables.ac };
        *kind.get_mut(usize::from(head & 15))? = Some(decoder);
        body = &rest[16 + total..];
    }
    Some(())
}

fn frame(body: &[u8], progressive: bool) -> Result<Frame, Fault> {
    let &[precision, h1, h0, w1, w0, count, ref rest @ ..] = body else {
        return Err("its frame header is too short".into());
    };
    let (height, width) = (u16::from_be_bytes([h1, h0]), u16::from_be_bytes([w1, w0]));
    if precision != 8 {
        return Err(format!("samples of {precision} bits are not supported"));
    }
    if width == 0 || height == 0 {
        return Err("it is empty".into());
    }
    if !(1..=4).contains(&count) || rest.len() < 3 * usize::from(count) {
        return Err(format!("{count} components are not supported"));
    }
    let components: Vec<Component> = rest
        .chunks_exact(3)
        .take(usize::from(count))
        .map(|c| Component {
            id: c[0],
            h: usize::from(c[1] >> 4),
            v: usize::from(c[1] & 15),
            table: usize::from(c[2]),
        })
        .collect();
    if !components.iter().all(|c| (1..=4).contains(&c.h) && (1..=4).contains(&c.v) && c.table < 4) {
        return Err("its sampling factors are out of range".into());
    }
    Ok(Frame { width: usize::from(width), height: usize::from(height), progressive, components })
}

fn scan(body: &[u8]) -> Result<Scan, Fault> {
    let fault = || Fault::from("a scan header is broken");
    let (&count, rest) = body.split_first().ok_or_else(fault)?;
    let count = usize::from(count);
    if !(1..=4).contains(&count) || rest.len() < 2 * count + 3 {
        return Err(fault());
    }
    let (parts, tail) = rest.split_at(2 * count);
    // Component ids are defined in the frame header.
    let components = parts
        .chunks_exact(2)
        .map(|c| (usize::from(c[0]), usize::from(c[1] >> 4), usize::from(c[1] & 15)))
        .collect();
    let (from, to) = (usize::from(tail[0]), usize::from(tail[1]));
    Ok(Scan { components, from, to, high: u32::from(tail[2] >> 4), low: u32::from(tail[2] & 15) })
}

/// Height, width and components, from the frame header alone.
pub(in crate::image) fn read_size(data: &[u8]) -> Result<(usize, usize, usize), Fault> {
    let mut reader = Reader::new(data)?;
    let mut tables = Tables::default();
    loop {
        match reader.next(&mut tables)? {
            Segment::Frame(f) => return Ok((f.height, f.width, f.components.len())),
            Segment::End | Segment::Nothing | Segment::Scan(_) => {
                return Err("it has no frame header".into());
            }
            _ => {}
        }
    }
}
