//! Decodes JPEG files to pixels.

use super::header::{Fault, Frame, Reader, Segment, Tables};
use super::inverse::Transform;
use super::scan::{Plane, planes, read};
use super::upsample::{Samples, Upsample};

/// A part of the image, in pixels of the output.
#[derive(Clone, Copy, Debug)]
pub(in crate::image) struct Crop {
    pub top: i64,
    pub left: i64,
    pub height: i64,
    pub width: i64,
}

#[derive(Clone, Copy, Debug)]
pub(in crate::image) struct Options {
    /// The number of channels: 1, 3, or 0 for the file's own.
    pub channels: usize,
    /// Pixels of the file per pixel of the output, in each direction: 1, 2, 4 or 8.
    pub ratio: usize,
    pub smooth: bool,
    /// Whether to use the accurate inverse transform, not the fast one.
    pub accurate: bool,
    /// Whether to decode a truncated file as far as it goes.
    pub recover_truncated: bool,
    /// The share of rows that must be present.
    pub acceptable_fraction: f32,
    pub crop: Option<Crop>,
}

pub(in crate::image) struct Pixels {
    pub height: usize,
    pub width: usize,
    pub channels: usize,
    pub data: Vec<u8>,
}

/// The meaning of a file's components.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Space {
    Gray,
    YCbCr,
    Rgb,
    Cmyk,
    Ycck,
}

fn space(frame: &Frame, tables: &Tables) -> Result<Space, Fault> {
    let ids: Vec<u8> = frame.components.iter().map(|c| c.id).collect();
    Ok(match (frame.components.len(), tables.adobe) {
        (1, _) => Space::Gray,
        (3, _) if tables.is_jfif => Space::YCbCr,
        (3, Some(0)) => Space::Rgb,
        (3, Some(_)) => Space::YCbCr,
        (3, None) if ids == *b"RGB" => Space::Rgb,
        (3, None) => Space::YCbCr,
        (4, None | Some(0)) => Space::Cmyk,
        (4, Some(_)) => Space::Ycck,
        (count, _) => return Err(format!("{count} components are not supported")),
    })
}

/// Decodes a file, or returns the reason why it cannot.
pub(in crate::image) fn decode(data: &[u8], options: &Options) -> Result<Pixels, Fault> {
    let mut reader = Reader::new(data)?;
    let mut tables = Tables::default();
    let mut frame: Option<(Frame, Vec<Plane>)> = None;
    let mut quantization: Vec<Option<[u16; 64]>> = Vec::new();
    let (mut cut, mut rows) = (false, usize::MAX);
    let mut scans = 0;
    loop {
        match reader.next(&mut tables)? {
            Segment::Frame(new) => {
                if frame.is_some() {
                    return Err("it has two frame headers".into());
                }
                let pixels = (new.width.div_ceil(options.ratio) as u64)
                    * (new.height.div_ceil(options.ratio) as u64);
                if pixels * new.components.len() as u64 >= 1 << 29 {
                    return Err("it is too large".into());
                }
                quantization = vec![None; new.components.len()];
                // Every block takes at least one bit, so a short file cannot claim a large image.
                let blocks = (new.width as u64).div_ceil(8) * (new.height as u64).div_ceil(8);
                let whole = !options.recover_truncated && options.acceptable_fraction >= 1.0;
                if whole && blocks > 8 * data.len() as u64 {
                    return Err("it is too short for its size".into());
                }
                let planes = planes(&new)?;
                frame = Some((new, planes));
            }
            Segment::Scan(mut scan) => {
                let Some((frame, planes)) = &mut frame else {
                    return Err("a scan comes before the frame header".into());
                };
                // A file of many empty scans would take unbounded time.
                scans += 1;
                if scans > 1000 {
                    return Err("it has too many scans".into());
                }
                for i in 0..scan.components.len() {
                    let id = scan.components[i].0;
                    let at = frame.components.iter().position(|c| usize::from(c.id) == id);
                    let at = at.ok_or("a scan names a component that there is not")?;
                    if scan.components[..i].iter().any(|c| c.0 == at) {
                        return Err("a scan names a component twice".into());
                    }
                    scan.components[i].0 = at;
                    // The tables of a component are those at the time of its first scan.
                    if quantization[at].is_none() {
                        quantization[at] = tables.quantization[frame.components[at].table];
                    }
                }
                let read = read(reader.rest(), frame, &scan, &tables, planes)?;
                reader.at += read.length;
                if read.is_cut {
                    cut = true;
                    rows = rows.min(read.rows);
                    break;
                }
            }
            Segment::End => break,
            Segment::Nothing => {
                // A baseline file without an end marker may still be complete.
                cut |= scans == 0 || frame.as_ref().is_some_and(|f| f.0.progressive);
                if cut {
                    rows = 0;
                }
                break;
            }
            Segment::Other => {}
        }
    }
    let Some((frame, planes)) = frame else { return Err("it has no frame header".into()) };
    if scans == 0 {
        return Err("it has no scan".into());
    }
    let space = space(&frame, &tables)?;
    let mut picture = Picture::new(&frame, planes, &quantization, options)?;
    picture.space = space;
    picture.adobe = tables.adobe.is_some();
    let mut pixels = picture.pixels(options)?;
    if cut && !options.recover_truncated {
        let have = rows.saturating_mul(picture.unit_rows).min(pixels.height);
        if (have as f32 / pixels.height as f32) < options.acceptable_fraction.min(1.0) {
            return Err("it is cut off".into());
        }
        pixels.data[have * pixels.width * pixels.channels..].fill(0);
    }
    Ok(pixels)
}

/// The components as samples, and their conversion to pixels.
struct Picture {
    width: usize,
    height: usize,
    /// Rows of a unit of all components together.
    unit_rows: usize,
    /// Pixels across at which a crop can begin.
    unit_cols: usize,
    components: Vec<(Samples, Upsample, usize)>,
    space: Space,
    adobe: bool,
}

impl Picture {
    fn new(
        frame: &Frame,
        planes: Vec<Plane>,
        quantization: &[Option<[u16; 64]>],
        options: &Options,
    ) -> Result<Picture, Fault> {
        let (max_h, max_v) = (frame.max_h(), frame.max_v());
        let least = 8 / options.ratio;
        let width = frame.width.div_ceil(options.ratio);
        let height = frame.height.div_ceil(options.ratio);
        let mut components = Vec::new();
        for ((c, plane), table) in frame.components.iter().zip(planes).zip(quantization) {
            let table = table.as_ref().ok_or("a quantization table is missing")?;
            // Components with fewer samples are reduced less, as far as that avoids upsampling.
            let mut size = least;
            while size < 8
                && (max_h * least).is_multiple_of(c.h * size * 2)
                && (max_v * least).is_multiple_of(c.v * size * 2)
            {
                size *= 2;
            }
            let transform = match size {
                8 if options.accurate => Transform::Accurate,
                8 => Transform::Fast,
                size => Transform::Reduced(size),
            };
            let samples = samples(&plane, transform, table)?;
            let own_width = (frame.width * c.h * size).div_ceil(max_h * 8);
            let own_height = (frame.height * c.v * size).div_ceil(max_v * 8);
            let samples = Samples { width: own_width, height: own_height, ..samples };
            let across = (max_h * least, c.h * size);
            let down = (max_v * least, c.v * size);
            if !across.0.is_multiple_of(across.1) || !down.0.is_multiple_of(down.1) {
                return Err("fractional sampling is not supported".into());
            }
            let smooth = options.smooth && least > 1;
            let how = match (across.0 / across.1, down.0 / down.1) {
                (2, 1) if smooth && own_width > 2 => Upsample::SmoothAcross,
                (2, 2) if smooth && own_width > 2 => Upsample::SmoothBoth,
                (1, 2) if smooth => Upsample::SmoothDown,
                (across, down) => Upsample::Repeat(across, down),
            };
            components.push((samples, how, across.0 / across.1));
        }
        let unit_cols = if components.len() == 1 { least } else { least * max_h };
        let unit_rows = least * max_v;
        let (space, adobe) = (Space::Gray, false);
        Ok(Picture { width, height, unit_rows, unit_cols, components, space, adobe })
    }

    fn pixels(&self, options: &Options) -> Result<Pixels, Fault> {
        let channels = match options.channels {
            0 => self.components.len().min(3),
            n => n,
        };
        if channels == 1 && matches!(self.space, Space::Cmyk | Space::Ycck) {
            return Err("CMYK cannot be made gray".into());
        }
        let whole = Crop { top: 0, left: 0, height: self.height as i64, width: self.width as i64 };
        let crop = options.crop.unwrap_or(whole);
        let fits = crop.top >= 0
            && crop.left >= 0
            && crop.height > 0
            && crop.width > 0
            && crop.top + crop.height <= self.height as i64
            && crop.left + crop.width <= self.width as i64;
        if !fits {
            return Err("the crop window is not inside".into());
        }
        let (top, left) = (crop.top as usize, crop.left as usize);
        let (height, width) = (crop.height as usize, crop.width as usize);
        // A crop begins at a whole unit. Smoothing treats that as the edge of the image.
        let start = match options.crop {
            Some(_) => left / self.unit_cols * self.unit_cols,
            None => 0,
        };
        let across = left + width - start;
        let len = height * width * channels;
        let mut data: Vec<u8> = Vec::new();
        data.try_reserve_exact(len).map_err(|_| "there is no memory for it".to_string())?;
        data.resize(len, 0);
        let mut rows = vec![vec![0u8; across]; self.components.len()];
        for (y, out) in data.chunks_exact_mut(width * channels).enumerate() {
            for ((samples, how, step), row) in self.components.iter().zip(&mut rows) {
                let from = start / step;
                let own = across.div_ceil(*step).min(samples.width - from);
                samples.upsampled(*how, top + y, from, own, row);
            }
            self.convert(&rows, left - start, channels, out);
        }
        Ok(Pixels { height, width, channels, data })
    }

    /// Makes a row of pixels from rows of components, without the first `skip`.
    fn convert(&self, rows: &[Vec<u8>], skip: usize, channels: usize, out: &mut [u8]) {
        for (x, out) in out.chunks_exact_mut(channels).enumerate() {
            let c = |i: usize| rows[i][skip + x];
            match (channels, self.space) {
                (1, Space::Rgb) => {
                    let [r, g, b] = [c(0), c(1), c(2)].map(u32::from);
                    out[0] = ((19595 * r + 38470 * g + 7471 * b + 32768) >> 16) as u8;
                }
                (1, _) => out[0] = c(0),
                (_, Space::Gray) => out.fill(c(0)),
                (_, Space::Rgb) => out.copy_from_slice(&[c(0), c(1), c(2)]),
                (_, Space::YCbCr) => out.copy_from_slice(&rgb(c(0), c(1), c(2))),
                (_, space) => {
                    let inks = match space {
                        Space::Ycck => rgb(c(0), c(1), c(2)).map(|x| 255 - x),
                        _ => [c(0), c(1), c(2)],
                    };
                    let black = u32::from(c(3));
                    for (out, ink) in out.iter_mut().zip(inks) {
                        let ink = u32::from(ink);
                        // Adobe's files store inverted values.
                        *out = match self.adobe {
                            true => (black * ink / 255) as u8,
                            false => ((255 - black) * (255 - ink) / 255) as u8,
                        };
                    }
                }
            }
        }
    }
}

/// All blocks of a component transformed.
fn samples(plane: &Plane, transform: Transform, table: &[u16; 64]) -> Result<Samples, Fault> {
    let size = transform.size();
    let (stride, factors) = (plane.across * size, transform.factors(table));
    let len = stride * plane.down * size;
    let mut data: Vec<u8> = Vec::new();
    data.try_reserve_exact(len).map_err(|_| "there is no memory for it".to_string())?;
    data.resize(len, 0);
    for (i, block) in plane.coefficients.chunks_exact(64).enumerate() {
        let at = i / plane.across * size * stride + i % plane.across * size;
        transform.run(block, &factors, |row, samples| {
            data[at + row * stride..][..size].copy_from_slice(samples);
        });
    }
    Ok(Samples { stride, width: 0, height: 0, data })
}

fn rgb(y: u8, cb: u8, cr: u8) -> [u8; 3] {
    let (y, cb, cr) = (i32::from(y), i32::from(cb) - 128, i32::from(cr) - 128);
    let half = 1 << 15;
    let red = y + ((91881 * cr + half) >> 16);
    let green = y + ((-22554 * cb + half - 46802 * cr) >> 16);
    let blue = y + ((116130 * cb + half) >> 16);
    [red, green, blue].map(|x| x.clamp(0, 255) as u8)
}
