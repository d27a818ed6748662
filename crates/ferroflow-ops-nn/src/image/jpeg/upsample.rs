//! Upsamples components to the size of the image as libjpeg does: smoothly, with weights of three
//! to one, or by repeating samples.

/// Samples of a component.
pub(super) struct Samples {
    /// Stored samples across; some may lie beyond the edge.
    pub stride: usize,
    /// Samples across and down that belong to the image.
    pub width: usize,
    pub height: usize,
    pub data: Vec<u8>,
}

/// How a component is upsampled.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Upsample {
    /// Repeats every sample this many times across and down.
    Repeat(usize, usize),
    /// Twice across, smoothly.
    SmoothAcross,
    /// Twice down, smoothly.
    SmoothDown,
    /// Twice across and down, smoothly.
    SmoothBoth,
}

impl Samples {
    /// Columns `from..from + width` of row `y`. Rows beyond the edges repeat the outermost one.
    fn row(&self, y: isize, from: usize, width: usize) -> &[u8] {
        let y = y.clamp(0, self.height as isize - 1) as usize;
        &self.data[y * self.stride + from..][..width]
    }

    /// Row `y` of the output, as many pixels as `out` holds, from the columns `from..from + width`.
    pub fn upsampled(&self, how: Upsample, y: usize, from: usize, width: usize, out: &mut [u8]) {
        match how {
            Upsample::Repeat(across, down) => {
                let row = self.row((y / down) as isize, from, width);
                if across == 1 {
                    return out.copy_from_slice(&row[..out.len()]);
                }
                out.iter_mut().enumerate().for_each(|(x, out)| *out = row[x / across]);
            }
            Upsample::SmoothAcross => {
                let row = self.row(y as isize, from, width);
                for (x, out) in out.iter_mut().enumerate() {
                    let (i, odd) = (x / 2, x % 2);
                    let near = u16::from(row[i]);
                    *out = match (odd, i) {
                        (0, 0) => row[0],
                        (1, i) if i + 1 == width => row[i],
                        (0, i) => ((3 * near + u16::from(row[i - 1]) + 1) >> 2) as u8,
                        (_, i) => ((3 * near + u16::from(row[i + 1]) + 2) >> 2) as u8,
                    };
                }
            }
            Upsample::SmoothDown => {
                let (near, far) = self.rows_around(y, from, width);
                let bias = 1 + (y % 2) as u16;
                for (x, out) in out.iter_mut().enumerate() {
                    *out = ((3 * u16::from(near[x]) + u16::from(far[x]) + bias) >> 2) as u8;
                }
            }
            Upsample::SmoothBoth => {
                let (near, far) = self.rows_around(y, from, width);
                let sum = |i: usize| 3 * u16::from(near[i]) + u16::from(far[i]);
                for (x, out) in out.iter_mut().enumerate() {
                    let (i, odd) = (x / 2, x % 2);
                    *out = match (odd, i) {
                        (0, 0) => ((4 * sum(0) + 8) >> 4) as u8,
                        (1, i) if i + 1 == width => ((4 * sum(i) + 7) >> 4) as u8,
                        (0, i) => ((3 * sum(i) + sum(i - 1) + 8) >> 4) as u8,
                        (_, i) => ((3 * sum(i) + sum(i + 1) + 7) >> 4) as u8,
                    };
                }
            }
        }
    }

    /// The row that output row `y` lies in, and the nearer of its neighbours.
    fn rows_around(&self, y: usize, from: usize, width: usize) -> (&[u8], &[u8]) {
        let near = (y / 2) as isize;
        let far = if y.is_multiple_of(2) { near - 1 } else { near + 1 };
        (self.row(near, from, width), self.row(far, from, width))
    }
}
