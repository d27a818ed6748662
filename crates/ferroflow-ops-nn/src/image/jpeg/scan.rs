//! Reads coefficients from the entropy-coded data of scans.

use super::ZIGZAG;
use super::bits::Bits;
use super::header::{Fault, Frame, Scan, Tables};
use super::huffman::Decoder;

/// The coefficients of one component, block by block, in rows and columns within each.
pub(super) struct Plane {
    /// Blocks across and down, rounded up to whole units of all components.
    pub across: usize,
    pub down: usize,
    /// Blocks that hold samples of the image.
    own_across: usize,
    own_down: usize,
    pub coefficients: Vec<i16>,
}

impl Plane {
    fn block(&mut self, row: usize, col: usize) -> &mut [i16] {
        &mut self.coefficients[(row * self.across + col) * 64..][..64]
    }
}

/// Allocates the coefficients of a frame.
pub(super) fn planes(frame: &Frame) -> Result<Vec<Plane>, Fault> {
    let (max_h, max_v) = (frame.max_h(), frame.max_v());
    let units_across = frame.width.div_ceil(8 * max_h);
    let units_down = frame.height.div_ceil(8 * max_v);
    let mut planes = Vec::new();
    for c in &frame.components {
        let (across, down) = (units_across * c.h, units_down * c.v);
        let mut coefficients: Vec<i16> = Vec::new();
        let len = across * down * 64;
        coefficients.try_reserve_exact(len).map_err(|_| "there is no memory for it".to_string())?;
        coefficients.resize(len, 0);
        planes.push(Plane {
            across,
            down,
            own_across: (frame.width * c.h).div_ceil(max_h).div_ceil(8),
            own_down: (frame.height * c.v).div_ceil(max_v).div_ceil(8),
            coefficients,
        });
    }
    Ok(planes)
}

/// The outcome of reading a scan.
pub(super) struct Read {
    /// Bytes of its data.
    pub length: usize,
    /// Whether the data ended before all blocks were read.
    pub is_cut: bool,
    /// Rows of units that were read in full.
    pub rows: usize,
}

/// The tables of a component in a scan, and its last DC value.
struct Coder<'t> {
    dc: Option<&'t Decoder>,
    ac: Option<&'t Decoder>,
    last: i32,
}

/// Reads the data of a scan into the planes.
pub(super) fn read(
    data: &[u8],
    frame: &Frame,
    scan: &Scan,
    tables: &Tables,
    planes: &mut [Plane],
) -> Result<Read, Fault> {
    let valid = match frame.progressive {
        true => {
            scan.from <= scan.to
                && scan.to < 64
                && (scan.from > 0 || scan.to == 0)
                && (scan.from == 0 || scan.components.len() == 1)
                && scan.low < 14
        }
        false => true,
    };
    if !valid {
        return Err("a scan header is out of range".into());
    }
    let needs_dc = !frame.progressive || (scan.from == 0 && scan.high == 0);
    let needs_ac = !frame.progressive || scan.from > 0;
    let mut coders = Vec::new();
    for &(_, dc, ac) in &scan.components {
        let dc = tables.dc.get(dc).and_then(Option::as_ref).filter(|_| needs_dc);
        let ac = tables.ac.get(ac).and_then(Option::as_ref).filter(|_| needs_ac);
        if (needs_dc && dc.is_none()) || (needs_ac && ac.is_none()) {
            return Err("a Huffman table is missing".into());
        }
        coders.push(Coder { dc, ac, last: 0 });
    }
    // One component alone is read block by block, several in units of all of them.
    let single = match scan.components.as_slice() {
        [(c, ..)] => Some(*c),
        _ => None,
    };
    let (across, down) = match single {
        Some(c) => (planes[c].own_across, planes[c].own_down),
        None => (frame.width.div_ceil(8 * frame.max_h()), frame.height.div_ceil(8 * frame.max_v())),
    };
    let mut bits = Bits::new(data);
    let (mut run, mut left) = (0, tables.restart_interval);
    let mut rows = down;
    'rows: for row in 0..down {
        for col in 0..across {
            if tables.restart_interval > 0 && left == 0 {
                bits.restart();
                coders.iter_mut().for_each(|c| c.last = 0);
                (run, left) = (0, tables.restart_interval);
            }
            left = left.saturating_sub(1);
            // After the end of the data, blocks are not changed until the next restart.
            if bits.starved {
                if bits.at_end && rows == down {
                    rows = row;
                }
                if tables.restart_interval == 0 {
                    break 'rows;
                }
                continue;
            }
            for (k, &(c, ..)) in scan.components.iter().enumerate() {
                let (h, v) = match single {
                    Some(_) => (1, 1),
                    None => (frame.components[c].h, frame.components[c].v),
                };
                for y in 0..v {
                    for x in 0..h {
                        let block = planes[c].block(row * v + y, col * h + x);
                        match frame.progressive {
                            false => sequential(block, &mut bits, &mut coders[k]),
                            true => refine(block, &mut bits, &mut coders[k], scan, &mut run),
                        }
                    }
                }
            }
        }
    }
    let is_cut = bits.at_end && bits.starved;
    Ok(Read { is_cut, rows, length: bits.end() })
}

fn sequential(block: &mut [i16], bits: &mut Bits<'_>, coder: &mut Coder<'_>) {
    let (Some(dc), Some(ac)) = (coder.dc, coder.ac) else { return };
    let size = u32::from(dc.next(bits)).min(15);
    coder.last = coder.last.wrapping_add(bits.signed(size));
    block[0] = coder.last as i16;
    let mut k = 1;
    while k < 64 {
        let code = ac.next(bits);
        let (zeros, size) = (usize::from(code >> 4), u32::from(code & 15));
        if size == 0 {
            if zeros < 15 {
                break;
            }
            k += 16;
            continue;
        }
        k += zeros;
        let value = bits.signed(size);
        if k < 64 {
            block[ZIGZAG[k]] = value as i16;
        }
        k += 1;
    }
}

/// A pass of a progressive scan over a block. `run` counts the following blocks that have no more
/// coefficients.
fn refine(
    block: &mut [i16],
    bits: &mut Bits<'_>,
    coder: &mut Coder<'_>,
    scan: &Scan,
    run: &mut u32,
) {
    match (scan.from, scan.high) {
        (0, 0) => {
            let Some(dc) = coder.dc else { return };
            let size = u32::from(dc.next(bits)).min(15);
            coder.last = coder.last.wrapping_add(bits.signed(size));
            block[0] = (coder.last << scan.low) as i16;
        }
        (0, _) => {
            if bits.take(1) == 1 {
                block[0] |= 1 << scan.low;
            }
        }
        (_, 0) => first_ac(block, bits, coder, scan, run),
        _ => more_ac(block, bits, coder, scan, run),
    }
}

fn first_ac(
    block: &mut [i16],
    bits: &mut Bits<'_>,
    coder: &mut Coder<'_>,
    scan: &Scan,
    run: &mut u32,
) {
    if *run > 0 {
        *run -= 1;
        return;
    }
    let Some(ac) = coder.ac else { return };
    let mut k = scan.from;
    while k <= scan.to {
        let code = ac.next(bits);
        let (zeros, size) = (u32::from(code >> 4), u32::from(code & 15));
        if size == 0 {
            if zeros < 15 {
                *run = (1 << zeros) - 1 + bits.take(zeros);
                return;
            }
            k += 16;
            continue;
        }
        k += zeros as usize;
        let value = bits.signed(size);
        if k <= scan.to {
            block[ZIGZAG[k]] = (value << scan.low) as i16;
        }
        k += 1;
    }
}

fn more_ac(
    block: &mut [i16],
    bits: &mut Bits<'_>,
    coder: &mut Coder<'_>,
    scan: &Scan,
    run: &mut u32,
) {
    let (plus, minus) = (1i16 << scan.low, -1i16 << scan.low);
    // Adds one more bit to a nonzero coefficient.
    let correct = |bits: &mut Bits<'_>, x: &mut i16| {
        if bits.take(1) == 1 && *x & plus == 0 {
            *x = x.wrapping_add(if *x >= 0 { plus } else { minus });
        }
    };
    let mut k = scan.from;
    if *run == 0 {
        let Some(ac) = coder.ac else { return };
        while k <= scan.to {
            let code = ac.next(bits);
            let (mut zeros, size) = (u32::from(code >> 4), code & 15);
            let mut value = 0;
            if size != 0 {
                value = if bits.take(1) == 1 { plus } else { minus };
            } else if zeros < 15 {
                *run = (1 << zeros) + bits.take(zeros);
                break;
            }
            // Skips this many zeros and corrects the nonzero coefficients between them.
            while k <= scan.to {
                let x = &mut block[ZIGZAG[k]];
                if *x != 0 {
                    correct(bits, x);
                } else {
                    if zeros == 0 {
                        break;
                    }
                    zeros -= 1;
                }
                k += 1;
            }
            if value != 0 && k <= scan.to {
                block[ZIGZAG[k]] = value;
            }
            k += 1;
        }
    }
    if *run > 0 {
        while k <= scan.to {
            let x = &mut block[ZIGZAG[k]];
            if *x != 0 {
                correct(bits, x);
            }
            k += 1;
        }
        *run -= 1;
    }
}
