//! Encodes pixels as baseline JPEG files.

use super::ZIGZAG;
use super::forward::transform;

/// Pixels per unit of length.
#[derive(Clone, Copy, Debug)]
pub(in crate::image) struct Density {
    pub per_centimetre: bool,
    pub across: u16,
    pub down: u16,
}

#[derive(Clone, Debug)]
pub(in crate::image) struct Encoding {
    /// The quality, 1 to 100.
    pub quality: u32,
    /// Whether to store a quarter of the colour samples.
    pub downsample: bool,
    /// Whether to make Huffman codes for the image.
    pub optimize: bool,
    pub density: Density,
    pub xmp: Vec<u8>,
}

/// Quantisation at quality 50, of brightness and of colours (ITU T.81, annex K).
const QUANTIZATION: [[u8; 64]; 2] = [
    [
        16, 11, 10, 16, 24, 40, 51, 61, 12, 12, 14, 19, 26, 58, 60, 55, 14, 13, 16, 24, 40, 57, 69,
        56, 14, 17, 22, 29, 51, 87, 80, 62, 18, 22, 37, 56, 68, 109, 103, 77, 24, 35, 55, 64, 81,
        104, 113, 92, 49, 64, 78, 87, 103, 121, 120, 101, 72, 92, 95, 98, 112, 100, 103, 99,
    ],
    [
        17, 18, 24, 47, 99, 99, 99, 99, 18, 21, 26, 66, 99, 99, 99, 99, 24, 26, 56, 99, 99, 99, 99,
        99, 47, 66, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99,
        99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99,
    ],
];

/// Lengths and values of a Huffman code.
#[derive(Clone)]
struct Code {
    counts: [u8; 16],
    values: Vec<u8>,
}

/// The codes of annex K: DC and AC of brightness, then of colours.
fn standard_codes() -> [Code; 4] {
    let dc = |counts| Code { counts, values: (0..12).collect() };
    let ac = |counts: [u8; 16], hex: &str| Code {
        counts,
        values: (0..hex.len() / 2)
            .map(|i| u8::from_str_radix(&hex[2 * i..2 * i + 2], 16).expect("hex digits"))
            .collect(),
    };
    [
        dc([0, 1, 5, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0]),
        ac(
            [0, 2, 1, 3, 3, 2, 4, 3, 5, 5, 4, 4, 0, 0, 1, 0x7d],
            "0102030004110512213141061351610722711432\
             8191a1082342b1c11552d1f02433627282090a161718191a25262728292a3435363738393a434445464748494a\
             535455565758595a636465666768696a737475767778797a838485868788898a92939495969798999aa2a3a4a5\
             a6a7a8a9aab2b3b4b5b6b7b8b9bac2c3c4c5c6c7c8c9cad2d3d4d5d6d7d8d9dae1e2e3e4e5e6e7e8e9eaf1f2f3\
             f4f5f6f7f8f9fa",
        ),
        dc([0, 3, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0]),
        ac(
            [0, 2, 1, 2, 4, 4, 3, 4, 7, 5, 4, 4, 0, 1, 2, 0x77],
            "0001020311040521310612415107617113223281\
             08144291a1b1c109233352f0156272d10a162434e125f11718191a262728292a35363738393a43444546474849\
             4a535455565758595a636465666768696a737475767778797a82838485868788898a92939495969798999aa2a3\
             a4a5a6a7a8a9aab2b3b4b5b6b7b8b9bac2c3c4c5c6c7c8c9cad2d3d4d5d6d7d8d9dae2e3e4e5e6e7e8e9eaf2f3\
             f4f5f6f7f8f9fa",
        ),
    ]
}

impl Code {
    /// The code and its length for each value.
    fn table(&self) -> [(u16, u8); 256] {
        let mut table = [(0, 0); 256];
        let (mut code, mut at) = (0u32, 0);
        for (len, &count) in (1u8..).zip(&self.counts) {
            for &value in &self.values[at..at + usize::from(count)] {
                table[usize::from(value)] = (code as u16, len);
                code += 1;
            }
            at += usize::from(count);
            code <<= 1;
        }
        table
    }

    /// The optimal code for values with these counts: at most 16 bits, and no code of ones only
    /// (annex K.2).
    fn optimal(mut counts: [u64; 257]) -> Code {
        counts[256] = 1;
        let (mut sizes, mut next) = ([0usize; 257], [usize::MAX; 257]);
        loop {
            // The two rarest values; of equal ones the larger value.
            let rarest = |counts: &[u64; 257], not: usize| {
                (0..257)
                    .filter(|&i| counts[i] > 0 && i != not)
                    .reduce(|a, b| if counts[b] <= counts[a] { b } else { a })
            };
            let Some(a) = rarest(&counts, usize::MAX) else { break };
            let Some(b) = rarest(&counts, a) else { break };
            counts[a] += counts[b];
            counts[b] = 0;
            let mut at = a;
            sizes[at] += 1;
            while next[at] != usize::MAX {
                at = next[at];
                sizes[at] += 1;
            }
            next[at] = b;
            at = b;
            sizes[at] += 1;
            while next[at] != usize::MAX {
                at = next[at];
                sizes[at] += 1;
            }
        }
        let mut lengths = [0u32; 258];
        sizes.iter().filter(|&&size| size > 0).for_each(|&size| lengths[size] += 1);
        // Shortens codes that are too long by pairing them with shorter ones.
        for i in (17..258).rev() {
            while lengths[i] > 0 {
                let mut j = i - 2;
                while lengths[j] == 0 {
                    j -= 1;
                }
                lengths[i] -= 2;
                lengths[i - 1] += 1;
                lengths[j + 1] += 2;
                lengths[j] -= 1;
            }
        }
        // The reserved value has the longest code. It is removed.
        if let Some(last) = (1..=16).rev().find(|&i| lengths[i] > 0) {
            lengths[last] -= 1;
        }
        let mut values = Vec::new();
        for size in 1..258 {
            values.extend((0..256usize).filter(|&v| sizes[v] == size).map(|v| v as u8));
        }
        let mut counts = [0; 16];
        (0..16).for_each(|i| counts[i] = lengths[i + 1] as u8);
        Code { counts, values }
    }
}

/// Quantised blocks of a component.
struct Component {
    h: usize,
    v: usize,
    across: usize,
    /// In zigzag order.
    blocks: Vec<[i16; 64]>,
}

/// The destination of entropy-coded values: a file, or counts of each value.
trait Sink {
    fn value(&mut self, table: usize, value: u8);
    fn bits(&mut self, bits: u32, count: u32);
}

struct Counts([[u64; 257]; 4]);

impl Sink for Counts {
    fn value(&mut self, table: usize, value: u8) {
        self.0[table][usize::from(value)] += 1;
    }
    fn bits(&mut self, _: u32, _: u32) {}
}

struct Writer {
    tables: Vec<[(u16, u8); 256]>,
    out: Vec<u8>,
    buffer: u64,
    count: u32,
}

impl Sink for Writer {
    fn value(&mut self, table: usize, value: u8) {
        let (code, len) = self.tables[table][usize::from(value)];
        self.bits(u32::from(code), u32::from(len));
    }

    fn bits(&mut self, bits: u32, count: u32) {
        self.buffer = self.buffer << count | u64::from(bits & ((1 << count) - 1));
        self.count += count;
        while self.count >= 8 {
            self.count -= 8;
            let byte = (self.buffer >> self.count) as u8;
            self.out.push(byte);
            if byte == 0xff {
                self.out.push(0);
            }
        }
    }
}

/// A value as its size and its bits.
fn sized(x: i32) -> (u32, u32) {
    let size = 32 - x.unsigned_abs().leading_zeros();
    (size, if x < 0 { (x - 1) as u32 } else { x as u32 })
}

fn write_block(block: &[i16; 64], last: &mut i32, tables: usize, sink: &mut impl Sink) {
    let (size, bits) = sized(i32::from(block[0]) - *last);
    *last = i32::from(block[0]);
    sink.value(tables, size as u8);
    sink.bits(bits, size);
    let mut zeros = 0;
    for &x in &block[1..] {
        if x == 0 {
            zeros += 1;
            continue;
        }
        while zeros > 15 {
            sink.value(tables + 1, 0xf0);
            zeros -= 16;
        }
        let (size, bits) = sized(i32::from(x));
        sink.value(tables + 1, (zeros << 4 | size) as u8);
        sink.bits(bits, size);
        zeros = 0;
    }
    if zeros > 0 {
        sink.value(tables + 1, 0);
    }
}

fn write_blocks(components: &[Component], units: (usize, usize), sink: &mut impl Sink) {
    let mut last = [0; 3];
    for unit in 0..units.0 * units.1 {
        let (row, col) = (unit / units.1, unit % units.1);
        for (i, c) in components.iter().enumerate() {
            for y in 0..c.v {
                for x in 0..c.h {
                    let block = &c.blocks[(row * c.v + y) * c.across + col * c.h + x];
                    write_block(block, &mut last[i], if i == 0 { 0 } else { 2 }, sink);
                }
            }
        }
    }
}

/// The tables for a quality, in rows and columns.
fn quantization(quality: u32) -> [[u16; 64]; 2] {
    let quality = quality.clamp(1, 100);
    let scale = if quality < 50 { 5000 / quality } else { 200 - 2 * quality };
    QUANTIZATION
        .map(|table| table.map(|q| ((u32::from(q) * scale + 50) / 100).clamp(1, 255) as u16))
}

/// Samples of the components at full size: brightness and two colours, or brightness alone.
fn planes(pixels: &[u8], channels: usize) -> Vec<Vec<u8>> {
    if channels == 1 {
        return vec![pixels.to_vec()];
    }
    let wide = |p: &[u8]| [i32::from(p[0]), i32::from(p[1]), i32::from(p[2])];
    let offset = (128 << 16) + (1 << 15) - 1;
    let blue = |p: &[u8]| {
        let [r, g, b] = wide(p);
        ((-11059 * r - 21709 * g + 32768 * b + offset) >> 16) as u8
    };
    let red = |p: &[u8]| {
        let [r, g, b] = wide(p);
        ((32768 * r - 27439 * g - 5329 * b + offset) >> 16) as u8
    };
    let rows = || pixels.chunks_exact(3);
    vec![rows().map(luma).collect(), rows().map(blue).collect(), rows().map(red).collect()]
}

fn luma(p: &[u8]) -> u8 {
    let [r, g, b] = [u32::from(p[0]), u32::from(p[1]), u32::from(p[2])];
    ((19595 * r + 38470 * g + 7471 * b + (1 << 15)) >> 16) as u8
}

/// Means of two by two samples. Halves are rounded down and up alternately.
fn halved(plane: &[u8], height: usize, width: usize, to: (usize, usize)) -> Vec<u8> {
    let at = |y: usize, x: usize| u32::from(plane[y.min(height - 1) * width + x.min(width - 1)]);
    let mut out = Vec::with_capacity(to.0 * to.1);
    for y in 0..to.0 {
        for x in 0..to.1 {
            let (y, bias) = (2 * y, 1 + x as u32 % 2);
            let x = 2 * x;
            let sum = at(y, x) + at(y, x + 1) + at(y + 1, x) + at(y + 1, x + 1);
            out.push(((sum + bias) >> 2) as u8);
        }
    }
    out
}

/// Transforms and quantises a plane whose edge samples are repeated to whole blocks.
fn component(
    plane: &[u8],
    (height, width): (usize, usize),
    (h, v): (usize, usize),
    (down, across): (usize, usize),
    table: &[u16; 64],
) -> Component {
    let mut blocks: Vec<[i16; 64]> = Vec::with_capacity(down * across);
    for i in 0..down * across {
        let (row, col) = (i / across, i % across);
        // Blocks beyond the edge are flat, with the brightness of the block before them in their
        // unit.
        let before = match (8 * row >= height, 8 * col >= width) {
            (true, _) if col % h == 0 => Some((row - 1) * across + col + h - 1),
            (false, false) => None,
            _ => Some(i - 1),
        };
        if let Some(before) = before {
            let mut block = [0; 64];
            block[0] = blocks[before][0];
            blocks.push(block);
            continue;
        }
        let (y0, x0) = (row * 8, col * 8);
        let mut x = [0i32; 64];
        for (k, x) in x.iter_mut().enumerate() {
            let (y, col) = ((y0 + k / 8).min(height - 1), (x0 + k % 8).min(width - 1));
            *x = i32::from(plane[y * width + col]) - 128;
        }
        transform(&mut x);
        let mut block = [0; 64];
        for (to, &from) in block.iter_mut().zip(&ZIGZAG) {
            let divisor = 8 * i32::from(table[from]);
            let level = (x[from].abs() + divisor / 2) / divisor;
            *to = if x[from] < 0 { -level } else { level } as i16;
        }
        blocks.push(block);
    }
    Component { h, v, across, blocks }
}

/// Encodes pixels of one or three channels. Both sides are 1 to 65500 long.
pub(in crate::image) fn encode(
    pixels: &[u8],
    (height, width, channels): (usize, usize, usize),
    options: &Encoding,
) -> Vec<u8> {
    let tables = quantization(options.quality);
    let planes = planes(pixels, channels);
    let half = options.downsample && planes.len() == 3;
    let unit = if half { 16 } else { 8 };
    let units = (height.div_ceil(unit), width.div_ceil(unit));
    let mut components = Vec::new();
    for (i, plane) in planes.iter().enumerate() {
        let table = &tables[usize::from(i > 0)];
        components.push(match (half, i) {
            (true, 0) => {
                let blocks = (units.0 * 2, units.1 * 2);
                component(plane, (height, width), (2, 2), blocks, table)
            }
            (true, _) => {
                // As wide as whole blocks, so that the edge is repeated before it is halved.
                let size = (height.div_ceil(2), units.1 * 8);
                let plane = halved(plane, height, width, size);
                component(&plane, size, (1, 1), units, table)
            }
            _ => component(plane, (height, width), (1, 1), units, table),
        });
    }
    let mut codes = standard_codes();
    if options.optimize {
        let mut counts = Counts([[0; 257]; 4]);
        write_blocks(&components, units, &mut counts);
        codes = counts.0.map(Code::optimal);
    }
    let mut out = header(options, &tables, &components, (height, width));
    write_codes(&mut out, &codes, components.len());
    let ids = if components.len() == 1 { &[(1, 0)][..] } else { &[(1, 0), (2, 0x11), (3, 0x11)] };
    let mut body = vec![ids.len() as u8];
    ids.iter().for_each(|&(id, tables)| body.extend([id, tables]));
    body.extend([0, 63, 0]);
    segment(&mut out, 0xda, &body);
    let tables = codes.iter().map(Code::table).collect();
    let mut writer = Writer { tables, out, buffer: 0, count: 0 };
    write_blocks(&components, units, &mut writer);
    // The last byte is padded with ones.
    writer.bits(0x7f, 7);
    let mut out = writer.out;
    out.extend([0xff, 0xd9]);
    out
}

fn segment(out: &mut Vec<u8>, marker: u8, body: &[u8]) {
    out.extend([0xff, marker]);
    out.extend((body.len() as u16 + 2).to_be_bytes());
    out.extend(body);
}

fn header(
    options: &Encoding,
    tables: &[[u16; 64]; 2],
    components: &[Component],
    (height, width): (usize, usize),
) -> Vec<u8> {
    let mut out = vec![0xff, 0xd8];
    let d = options.density;
    let mut body = b"JFIF\0\x01\x01".to_vec();
    body.push(if d.per_centimetre { 2 } else { 1 });
    body.extend(d.across.to_be_bytes());
    body.extend(d.down.to_be_bytes());
    body.extend([0, 0]);
    segment(&mut out, 0xe0, &body);
    if !options.xmp.is_empty() {
        let mut body = b"http://ns.adobe.com/xap/1.0/\0".to_vec();
        body.extend(&options.xmp);
        segment(&mut out, 0xe1, &body);
    }
    for (i, table) in tables.iter().take(components.len().min(2)).enumerate() {
        let mut body = vec![i as u8];
        body.extend(ZIGZAG.iter().map(|&at| table[at] as u8));
        segment(&mut out, 0xdb, &body);
    }
    let mut body = vec![8];
    body.extend((height as u16).to_be_bytes());
    body.extend((width as u16).to_be_bytes());
    body.push(components.len() as u8);
    for (i, c) in components.iter().enumerate() {
        body.extend([i as u8 + 1, (c.h << 4 | c.v) as u8, u8::from(i > 0)]);
    }
    segment(&mut out, 0xc0, &body);
    out
}

fn write_codes(out: &mut Vec<u8>, codes: &[Code; 4], components: usize) {
    let used = if components == 1 { 2 } else { 4 };
    for (code, head) in codes.iter().zip([0x00, 0x10, 0x01, 0x11]).take(used) {
        let mut body = vec![head];
        body.extend(code.counts);
        body.extend(&code.values);
        segment(out, 0xc4, &body);
    }
}
