//! Convolutions without copies of patches. A slab of the input, a few rows of an image with zeros
//! around it, is all that is copied; in it the elements of a patch lie at the same offsets from
//! each window's first, so that tiles of the result are summed straight from the slab.

use super::conv::Conv;
use super::window::Axis;
use crate::linalg::gemm::{Finisher, Product, product_cost};
use crate::linalg::tile::{Offsets, Tiles};
use crate::parallel::for_rows;
use ferroflow_core::ComputePool;
use std::ops::Range;

/// Elements a slab should have at most, so that it stays in the second-level cache.
const SLAB: usize = 48 << 10;
/// Elements of a row of a patch from which on leaving it out, or tiles of its own, are worth it.
const SEPARATE: usize = 16;
/// Beyond this many a slab is too large to be worth it.
const LARGEST_SLAB: usize = 4 << 20;

/// A convolution, and how its slabs are laid out: depth slices, rows, columns, channels.
pub(super) struct Direct<'c, T> {
    conv: &'c Conv,
    tiles: Tiles<T>,
    /// Rows of output windows in a slab.
    lines: usize,
    /// Rows of the input in a slab.
    rows: usize,
    /// Elements of a row of a slab.
    pitch: usize,
    /// Elements of a slab.
    size: usize,
    /// Where the elements of a patch are, by row of the filter.
    patch: Offsets<'static>,
    /// Where windows begin, by position within a slab.
    windows: Offsets<'static>,
}

impl<'c, T: Product> Direct<'c, T> {
    /// None where another way is better, or the only one.
    pub(super) fn new(conv: &'c Conv) -> Option<Direct<'c, T>> {
        let tiles = T::tiles()?;
        if conv.groups != 1 {
            return None;
        }
        let [d, h, w] = conv.axes;
        let pitch = covered(w, w.output)?.checked_mul(conv.in_channels)?;
        let depth = covered(d, 1)?;
        let slab = |lines| covered(h, lines)?.checked_mul(depth)?.checked_mul(pitch);
        let mut lines = 1;
        while lines < h.output && slab(lines * 2).is_some_and(|size| size <= SLAB) {
            lines = (lines * 2).min(h.output);
        }
        let size = slab(lines).filter(|&size| size > 0 && size <= LARGEST_SLAB)?;
        let (rows, c) = (covered(h, lines)?, conv.in_channels);
        let taps = (0..d.window).flat_map(|kd| {
            (0..h.window).flat_map(move |kh| (0..w.window).map(move |kw| (kd, kh, kw)))
        });
        let patch = Offsets::new(taps.flat_map(|(kd, kh, kw)| {
            let row = kd * d.dilation * rows + kh * h.dilation;
            (0..c).map(move |channel| row * pitch + kw * w.dilation * c + channel)
        }))?;
        let windows = Offsets::new((0..lines).flat_map(|line| {
            (0..w.output).map(move |i| line * h.stride * pitch + i * w.stride * c)
        }))?;
        Some(Direct { conv, tiles, lines, rows, pitch, size, patch, windows })
    }

    /// The output.
    pub(super) fn forward(&self, x: &[T], filter: &[T], y: &mut [T], finisher: Finisher<'_>) {
        let conv = self.conv;
        let (k, n, across) = (conv.patch(), conv.out_channels, conv.axes[2].output);
        let columns = self.tiles.columns;
        let strips = strips(filter, k, n, columns);
        let line = across * n;
        for_rows(y, line, product_cost(across, n, k), |lines, y| {
            let mut slab = vec![T::ZERO; self.size];
            let mut rest = y;
            for band in self.bands(lines) {
                let (y, later) = rest.split_at_mut(band.len * line);
                rest = later;
                self.fill(x, &band, &mut slab);
                for (lines, steps) in self.alike(&band) {
                    let y = &mut y[lines.start * line..lines.end * line];
                    if steps.is_empty() {
                        y.fill(T::ZERO);
                        continue;
                    }
                    let windows = self.windows.part(lines.start * across..lines.end * across);
                    let patch = self.patch.part(steps.clone());
                    for (s, strip) in strips.chunks_exact(k * columns).enumerate() {
                        let y = &mut y[s * columns..];
                        let width = columns.min(n - s * columns);
                        let strip = (&strip[steps.start * columns..], columns);
                        self.tiles.strip(&slab, (&windows, &patch), strip, (y, n), width, false);
                    }
                }
                finisher.run(y);
            }
        });
    }

    /// The lines of a band, by which elements of a patch lie inside the image: the others, above it
    /// and below, are zeros that need not be added up.
    fn alike(&self, band: &Band) -> Vec<(Range<usize>, Range<usize>)> {
        if !self.leaves_out() {
            return vec![(0..band.len, 0..self.patch.len())];
        }
        let mut found: Vec<(Range<usize>, Range<usize>)> = Vec::new();
        for line in 0..band.len {
            let steps = self.inside(band, line);
            match found.last_mut() {
                Some(last) if last.1 == steps => last.0.end = line + 1,
                _ => found.push((line..line + 1, steps)),
            }
        }
        found
    }

    /// Whether rows of a patch are long enough for it, and in one plane.
    fn leaves_out(&self) -> bool {
        let [d, h, _] = self.conv.axes;
        d.window == 1 && self.patch.len() / h.window >= SEPARATE
    }

    /// Which elements of a patch lie inside the image for windows of a line of a band. Left and
    /// right are not looked at.
    fn inside(&self, band: &Band, line: usize) -> Range<usize> {
        let h = self.conv.axes[1];
        let row = self.patch.len() / h.window;
        let top = (band.first + line) % h.output * h.stride;
        let taps = |reach: usize| reach.saturating_sub(top).div_ceil(h.dilation).min(h.window);
        let (from, to) = (taps(h.before), taps(h.before.saturating_add(h.input)));
        from * row..to * row
    }

    /// The gradient of the filter. Every thread sums its share of the images, and then the sums are
    /// added in order.
    pub(super) fn backprop_filter(&self, x: &[T], dy: &[T], df: &mut [T]) {
        let conv = self.conv;
        let (k, n) = (conv.patch(), conv.out_channels);
        let [d, h, w] = conv.axes;
        let lines = conv.batch * d.output * h.output;
        let parts = ComputePool::threads().min(lines);
        let mut sums: Vec<Vec<T>> = vec![Vec::new(); parts];
        let cost = product_cost(lines * w.output / parts, n, k);
        for_rows(&mut sums, 1, cost, |range, sums| {
            let mut slab = vec![T::ZERO; self.size];
            let mut strip = Vec::new();
            for (part, sum) in range.zip(sums) {
                *sum = vec![T::ZERO; k * n];
                for band in self.bands(lines * part / parts..lines * (part + 1) / parts) {
                    self.fill(x, &band, &mut slab);
                    let from = band.first * w.output * n;
                    let dy = &dy[from..from + band.len * w.output * n];
                    self.add_filter_sums(&slab, &band, dy, &mut strip, sum);
                }
            }
        });
        df.fill(T::ZERO);
        for sum in &sums {
            df.iter_mut().zip(sum).for_each(|(df, s)| *df = df.add(*s));
        }
    }

    /// Adds what the windows of a slab and the gradients `dy` of their outputs give.
    fn add_filter_sums(
        &self,
        slab: &[T],
        band: &Band,
        dy: &[T],
        strip: &mut Vec<T>,
        sum: &mut [T],
    ) {
        let (n, columns) = (self.conv.out_channels, self.tiles.columns);
        let across = self.conv.axes[2].output;
        let parts = self.filter_parts(band);
        for column in (0..n).step_by(columns) {
            let width = columns.min(n - column);
            if width < columns {
                strip.clear();
                for dy in dy.chunks_exact(n) {
                    strip.extend_from_slice(&dy[column..column + width]);
                    strip.resize(strip.len() + columns - width, T::ZERO);
                }
            }
            for (rows, lines) in &parts {
                let sum = &mut sum[rows.start * n + column..];
                let (patch, first) = (self.patch.part(rows.clone()), lines.start * across);
                let windows = self.windows.part(first..lines.end * across);
                let dy = match width < columns {
                    true => (&strip[first * columns..], columns),
                    false => (&dy[first * n + column..], n),
                };
                self.tiles.strip(slab, (&patch, &windows), dy, (sum, n), width, true);
            }
        }
    }

    /// The elements of a patch, by which lines of a band have them inside the image. Few elements
    /// are not worth tiles of their own.
    fn filter_parts(&self, band: &Band) -> Vec<(Range<usize>, Range<usize>)> {
        let (all, taps) = (self.patch.len(), self.conv.axes[1].window);
        if !self.leaves_out() {
            return vec![(0..all, 0..band.len)];
        }
        let row = all / taps;
        let parts = (0..taps).map(|tap| {
            let mut lines = (0..band.len).filter(|&l| self.inside(band, l).contains(&(tap * row)));
            let first = lines.next();
            let last = lines.next_back().or(first);
            let lines = first.zip(last).map_or(0..0, |(first, last)| first..last + 1);
            (tap * row..(tap + 1) * row, lines)
        });
        parts.collect()
    }

    /// The slabs for a range of the output's rows.
    fn bands(&self, lines: Range<usize>) -> impl Iterator<Item = Band> + use<T> {
        let (most, height) = (self.lines, self.conv.axes[1].output);
        let mut next = lines.start;
        std::iter::from_fn(move || {
            let left = (height - next % height).min(lines.end - next);
            let band = Band { first: next, len: most.min(left) };
            next += band.len;
            (band.len > 0).then_some(band)
        })
    }

    /// Copies what the windows of `band` cover, and zeros where that is outside the image.
    fn fill(&self, x: &[T], band: &Band, slab: &mut [T]) {
        let [d, h, w] = self.conv.axes;
        let c = self.conv.in_channels;
        let (plane, line) = (band.first / h.output, band.first % h.output);
        let (image, slice) = (plane / d.output, plane % d.output);
        let left = (w.before * c).min(self.pitch);
        let inside = (w.input * c).min(self.pitch - left);
        for (i, to) in slab.chunks_exact_mut(self.pitch).enumerate() {
            let at = |a: Axis, first: usize, i: usize| {
                (first * a.stride + i).checked_sub(a.before).filter(|&p| p < a.input)
            };
            let (Some(z), Some(y)) = (at(d, slice, i / self.rows), at(h, line, i % self.rows))
            else {
                to.fill(T::ZERO);
                continue;
            };
            let from = (((image * d.input + z) * h.input + y) * w.input) * c;
            to[..left].fill(T::ZERO);
            to[left..left + inside].copy_from_slice(&x[from..from + inside]);
            to[left + inside..].fill(T::ZERO);
        }
    }
}

/// Some rows of the output in one plane of it.
struct Band {
    first: usize,
    len: usize,
}

/// How many positions of the input so many windows cover.
fn covered(axis: Axis, windows: usize) -> Option<usize> {
    let steps = windows.checked_sub(1)?.checked_mul(axis.stride)?;
    let reach = axis.window.checked_sub(1)?.checked_mul(axis.dilation)?;
    steps.checked_add(reach)?.checked_add(1)
}

/// A matrix of `k` rows as strips of some columns, the last filled up with zeros.
fn strips<T: Product>(matrix: &[T], k: usize, n: usize, columns: usize) -> Vec<T> {
    let mut out = Vec::with_capacity(n.next_multiple_of(columns) * k);
    for column in (0..n).step_by(columns) {
        let width = columns.min(n - column);
        for row in matrix.chunks_exact(n) {
            out.extend_from_slice(&row[column..column + width]);
            out.resize(out.len() + columns - width, T::ZERO);
        }
    }
    out
}

/// For a convolution whose windows move by one: that of the output's gradient which gives the
/// input's. Its filter is the same turned round, with its channels swapped.
pub(super) fn turned(conv: &Conv) -> Option<Conv> {
    let mut axes = conv.axes;
    for axis in &mut axes {
        let before = (axis.window.checked_sub(1)? * axis.dilation).checked_sub(axis.before)?;
        if axis.stride != 1 {
            return None;
        }
        *axis = Axis { input: axis.output, output: axis.input, before, ..*axis };
    }
    let (in_channels, out_channels) = (conv.out_channels, conv.in_channels);
    (conv.groups == 1).then_some(Conv { axes, in_channels, out_channels, ..*conv })
}

/// The filter of [`turned`].
pub(super) fn turned_filter<T: Product>(conv: &Conv, filter: &[T]) -> Vec<T> {
    let (c, n) = (conv.in_channels, conv.out_channels);
    let mut out = Vec::with_capacity(filter.len());
    for tap in filter.chunks_exact(c * n).rev() {
        for o in 0..n {
            out.extend(tap[o..].iter().step_by(n));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Small whole numbers, of which sums of products are exact.
    fn numbers(n: usize, by: usize) -> Vec<f32> {
        (0..n).map(|i| (i * by % 7) as f32 - 3.0).collect()
    }

    fn axis(input: usize, window: usize, stride: usize, dilation: usize, before: usize) -> Axis {
        let reach = (window - 1) * dilation + 1;
        let output = (input + 2 * before - reach) / stride + 1;
        Axis { input, window, output, stride, dilation, before }
    }

    fn cases() -> Vec<Conv> {
        let one = Axis::NONE;
        let conv = |batch, axes, in_channels, out_channels| Conv {
            batch,
            axes,
            in_channels,
            out_channels,
            groups: 1,
        };
        vec![
            conv(2, [one, axis(9, 3, 1, 1, 1), axis(7, 3, 1, 1, 1)], 3, 5),
            conv(1, [one, axis(28, 5, 1, 1, 2), axis(28, 5, 1, 1, 2)], 1, 32),
            conv(3, [one, axis(11, 3, 2, 1, 1), axis(13, 4, 3, 1, 0)], 2, 17),
            conv(2, [one, axis(12, 3, 1, 2, 2), axis(9, 2, 1, 3, 1)], 4, 16),
            conv(2, [axis(4, 2, 1, 1, 1), axis(5, 3, 1, 1, 0), axis(6, 3, 2, 1, 1)], 2, 20),
            conv(1, [one, axis(120, 3, 1, 1, 1), axis(120, 3, 1, 1, 1)], 8, 4),
            // The first windows lie wholly outside.
            conv(1, [one, axis(3, 2, 1, 1, 3), axis(3, 1, 1, 1, 2)], 2, 3),
            // So that zeros above and below are left out.
            conv(1, [one, axis(3, 2, 1, 1, 3), axis(3, 1, 1, 1, 2)], 16, 3),
            conv(2, [one, axis(11, 3, 2, 2, 3), axis(7, 2, 1, 1, 1)], 9, 33),
            conv(3, [one, axis(6, 5, 1, 1, 2), axis(6, 5, 1, 1, 2)], 4, 50),
        ]
    }

    fn sizes(conv: &Conv) -> (usize, usize, usize) {
        let volume = |f: fn(&Axis) -> usize| conv.axes.iter().map(f).product::<usize>();
        let x = conv.batch * volume(|a| a.input) * conv.in_channels;
        let y = conv.batch * volume(|a| a.output) * conv.out_channels;
        (x, volume(|a| a.window) * conv.in_channels * conv.out_channels, y)
    }

    #[test]
    fn results_are_those_of_products_of_patches() {
        for conv in cases() {
            let Some(direct) = Direct::<f32>::new(&conv) else { return };
            let (x, f, y) = sizes(&conv);
            let (xs, fs, dys) = (numbers(x, 5), numbers(f, 3), numbers(y, 4));
            let (mut got, mut want) = (vec![9.0; y], vec![9.0; y]);
            direct.forward(&xs, &fs, &mut got, Finisher::NONE);
            conv.forward_by_patches(&xs, &fs, &mut want, Finisher::NONE);
            assert_eq!(got, want, "forward {conv:?}");
            let (mut got, mut want) = (vec![9.0; f], vec![0.0; f]);
            direct.backprop_filter(&xs, &dys, &mut got);
            conv.backprop_filter_by_patches(&xs, &dys, &mut want);
            assert_eq!(got, want, "filter {conv:?}");
        }
    }

    #[test]
    fn the_gradient_of_the_input_is_a_convolution_turned_round() {
        for conv in cases() {
            let Some(back) = turned(&conv) else { continue };
            let Some(direct) = Direct::<f32>::new(&back) else { return };
            let (x, f, y) = sizes(&conv);
            let (fs, dys) = (numbers(f, 3), numbers(y, 4));
            let (mut got, mut want) = (vec![9.0; x], vec![9.0; x]);
            direct.forward(&dys, &turned_filter(&conv, &fs), &mut got, Finisher::NONE);
            conv.backprop_input_by_patches(&fs, &dys, &mut want);
            assert_eq!(got, want, "{conv:?}");
        }
    }

    #[test]
    fn absurd_windows_are_left_to_others() {
        let far = Axis { dilation: 1 << 62, window: 3, before: 1 << 62, ..axis(3, 1, 1, 1, 0) };
        let conv = Conv {
            batch: 1,
            axes: [Axis::NONE, far, far],
            in_channels: 1,
            out_channels: 1,
            groups: 1,
        };
        assert!(Direct::<f32>::new(&conv).is_none());
    }
}
