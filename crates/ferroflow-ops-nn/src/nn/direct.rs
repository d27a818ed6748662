//! Convolutions without copies of patches. Only a slab is copied: a few rows of an image with zeros
//! around them. In a slab, the elements of a patch have the same offsets from the start of each
//! window, so tiles of the result are summed directly from the slab.

use super::conv::Conv;
use super::window::Axis;
use ferroflow_core::ComputePool;
use ferroflow_op_kit::parallel::for_rows;
use ferroflow_ops_math::linalg::gemm::{Finisher, Product, product_cost};
use ferroflow_ops_math::linalg::tile::{Offsets, Tiles};
use std::ops::Range;

/// Most elements of a slab, so that it stays in the second-level cache.
const SLAB: usize = 48 << 10;
/// Patch rows of at least this many elements are worth skipping, or worth tiles of their own.
const SEPARATE: usize = 16;
/// From this many rows of output windows on, the columns at the edges get tiles of their own.
const TALL: usize = 4;
/// A slab with more elements than this is too large.
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
    /// All windows, and all elements of a patch.
    whole: Class,
    /// Windows grouped by the columns of the patch that lie inside the image, if skipping the zeros
    /// to the left and right pays.
    by_window: Vec<Class>,
    /// The same, with one group for each column of the patch.
    by_tap: Vec<Class>,
}

/// Windows in some columns of the output, and elements in some columns of a patch.
struct Class {
    /// The starts of windows in a slab, line by line.
    windows: Offsets<'static>,
    /// The numbers of these windows, counted line by line through all columns.
    window_index: Vec<usize>,
    /// Windows of a line.
    per_line: usize,
    /// Offsets of patch elements from the start of the window, row by row.
    patch: Offsets<'static>,
    /// The filter rows of these elements.
    patch_index: Vec<usize>,
    /// Elements of a row of a patch.
    per_row: usize,
}

impl<'c, T: Product> Direct<'c, T> {
    /// `None` if another method is better, or the only one.
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
        let class = |columns: Range<usize>, taps: Range<usize>| {
            let of_lines = (0..lines).flat_map(|l| columns.clone().map(move |i| (l, i)));
            let of_rows = (0..d.window * h.window)
                .flat_map(|row| taps.clone().map(move |kw| (row, kw)))
                .flat_map(|(row, kw)| (0..c).map(move |channel| (row, kw, channel)));
            let windows = of_lines.clone().map(|(l, i)| l * h.stride * pitch + i * w.stride * c);
            let patch = of_rows.clone().map(|(row, kw, channel)| {
                let (kd, kh) = (row / h.window, row % h.window);
                let row = kd * d.dilation * rows + kh * h.dilation;
                row * pitch + kw * w.dilation * c + channel
            });
            Some(Class {
                windows: Offsets::new(windows)?,
                window_index: of_lines.map(|(l, i)| l * w.output + i).collect(),
                per_line: columns.len(),
                patch: Offsets::new(patch)?,
                patch_index: of_rows.map(|(row, kw, ch)| (row * w.window + kw) * c + ch).collect(),
                per_row: taps.len() * c,
            })
        };
        let whole = class(0..w.output, 0..w.window)?;
        let (mut by_window, mut by_tap) = (Vec::new(), Vec::new());
        if leaves_out_across(conv) {
            let mut from = 0;
            while from < w.output {
                let taps = taps_inside(w, from);
                let to = (from + 1..w.output).find(|&i| taps_inside(w, i) != taps);
                let to = to.unwrap_or(w.output);
                by_window.push(class(from..to, taps)?);
                from = to;
            }
            for kw in 0..w.window {
                let mut columns = (0..w.output).filter(|&i| taps_inside(w, i).contains(&kw));
                let first = columns.next();
                let last = columns.next_back().or(first);
                let columns = first.zip(last).map_or(0..0, |(first, last)| first..last + 1);
                by_tap.push(class(columns, kw..kw + 1)?);
            }
        }
        Some(Direct { conv, tiles, lines, rows, pitch, size, whole, by_window, by_tap })
    }

    /// The output.
    pub(super) fn forward(&self, x: &[T], filter: &[T], y: &mut [T], finisher: Finisher<'_>) {
        let conv = self.conv;
        let (k, n, across) = (conv.patch(), conv.out_channels, conv.axes[2].output);
        let columns = self.tiles.columns;
        let strips = strips(filter, k, n, columns);
        let line = across * n;
        let laid = |class| Laid::new(class, n, columns);
        let Some(whole) = laid(&self.whole) else {
            return conv.forward_by_patches(x, filter, y, finisher);
        };
        let parts: Option<Vec<Laid<'_>>> = self.by_window.iter().map(laid).collect();
        let parts = parts.unwrap_or_default();
        for_rows(y, line, product_cost(across, n, k), |lines, y| {
            let mut slab = vec![T::ZERO; self.size];
            let mut rest = y;
            for band in self.bands(lines) {
                let (y, later) = rest.split_at_mut(band.len * line);
                rest = later;
                self.fill(x, &band, &mut slab);
                for (lines, rows) in self.alike(&band) {
                    if rows.is_empty() {
                        y[lines.start * line..lines.end * line].fill(T::ZERO);
                        continue;
                    }
                    let is_split = lines.len() >= TALL && parts.len() > 1;
                    let classes = if is_split { &parts[..] } else { std::slice::from_ref(&whole) };
                    for class in classes {
                        let (windows, outputs) = class.of_lines(&lines);
                        let (patch, filter_rows) = class.of_rows(&rows);
                        if patch.is_empty() {
                            // No part of these windows lies inside the image.
                            outputs.iter().for_each(|at| y[at..at + n].fill(T::ZERO));
                        }
                        for (s, strip) in strips.chunks_exact(k * columns).enumerate() {
                            let y = &mut y[s * columns..];
                            let width = columns.min(n - s * columns);
                            let factor = (&slab[..], &windows, &patch);
                            let to = (y, &outputs);
                            self.tiles.strip(factor, (strip, &filter_rows), to, width, false);
                        }
                    }
                }
                finisher.run(y);
            }
        });
    }

    /// The lines of a band, grouped by the patch rows that lie inside the image. The other rows are
    /// zeros and are skipped.
    fn alike(&self, band: &Band) -> Vec<(Range<usize>, Range<usize>)> {
        if !self.leaves_out() {
            let [d, h, _] = self.conv.axes;
            return vec![(0..band.len, 0..d.window * h.window)];
        }
        let mut found: Vec<(Range<usize>, Range<usize>)> = Vec::new();
        for line in 0..band.len {
            let rows = self.inside(band, line);
            match found.last_mut() {
                Some(last) if last.1 == rows => last.0.end = line + 1,
                _ => found.push((line..line + 1, rows)),
            }
        }
        found
    }

    /// Whether rows of a patch are long enough for it, and in one plane.
    fn leaves_out(&self) -> bool {
        self.conv.axes[0].window == 1 && self.whole.per_row >= SEPARATE
    }

    /// Which rows of a patch lie inside the image for windows of a line of a band.
    fn inside(&self, band: &Band, line: usize) -> Range<usize> {
        let h = self.conv.axes[1];
        taps_inside(h, (band.first + line) % h.output)
    }

    /// The gradient of the filter. Each thread sums its share of the images; then the sums are
    /// added in order.
    pub(super) fn backprop_filter(&self, x: &[T], dy: &[T], df: &mut [T]) {
        let conv = self.conv;
        let (k, n) = (conv.patch(), conv.out_channels);
        let [d, h, w] = conv.axes;
        let lines = conv.batch * d.output * h.output;
        let parts = ComputePool::threads().min(lines);
        let mut sums: Vec<Vec<T>> = vec![Vec::new(); parts];
        let cost = product_cost(lines * w.output / parts, n, k);
        let Some(classes) = FilterClasses::new(self) else {
            df.fill(T::ZERO);
            return conv.backprop_filter_by_patches(x, dy, df);
        };
        for_rows(&mut sums, 1, cost, |range, sums| {
            let mut slab = vec![T::ZERO; self.size];
            let mut strip = Vec::new();
            for (part, sum) in range.zip(sums) {
                *sum = vec![T::ZERO; k * n];
                for band in self.bands(lines * part / parts..lines * (part + 1) / parts) {
                    self.fill(x, &band, &mut slab);
                    let from = band.first * w.output * n;
                    let dy = &dy[from..from + band.len * w.output * n];
                    self.add_filter_sums(&slab, &band, dy, &mut strip, (sum, &classes));
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
        (sum, classes): (&mut [T], &FilterClasses<'_>),
    ) {
        let (n, columns) = (self.conv.out_channels, self.tiles.columns);
        let parts = self.filter_parts(band);
        for column in (0..n).step_by(columns) {
            let width = columns.min(n - column);
            let is_narrow = width < columns;
            if is_narrow {
                strip.clear();
                for dy in dy.chunks_exact(n) {
                    strip.extend_from_slice(&dy[column..column + width]);
                    strip.resize(strip.len() + columns - width, T::ZERO);
                }
            }
            let dy = if is_narrow { &strip[..] } else { &dy[column..] };
            for class in if is_narrow { &classes.narrow } else { &classes.full } {
                for (rows, lines) in &parts {
                    let (windows, outputs) = class.of_lines(lines);
                    let (patch, filter_rows) = class.of_rows(rows);
                    let (factor, sum) =
                        ((slab, &patch, &windows), (&mut sum[column..], &filter_rows));
                    self.tiles.strip(factor, (dy, &outputs), sum, width, true);
                }
            }
        }
    }

    /// Patch rows, grouped by the lines of a band that have them inside the image. Short rows get
    /// no tiles of their own.
    fn filter_parts(&self, band: &Band) -> Vec<(Range<usize>, Range<usize>)> {
        let [d, h, _] = self.conv.axes;
        if !self.leaves_out() {
            return vec![(0..d.window * h.window, 0..band.len)];
        }
        let parts = (0..h.window).map(|tap| {
            let mut lines = (0..band.len).filter(|&l| self.inside(band, l).contains(&tap));
            let first = lines.next();
            let last = lines.next_back().or(first);
            let lines = first.zip(last).map_or(0..0, |(first, last)| first..last + 1);
            (tap..tap + 1, lines)
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

    /// Copies the input under the windows of `band`, with zeros outside the image.
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

/// A class, and the places that it refers to: the outputs of its windows, and rows of the filter.
struct Laid<'a> {
    class: &'a Class,
    outputs: Offsets<'static>,
    filter_rows: Offsets<'static>,
}

impl<'a> Laid<'a> {
    /// Places with `output` elements from one output to the next, and `row` elements from one row
    /// of the filter to the next.
    fn new(class: &'a Class, output: usize, row: usize) -> Option<Laid<'a>> {
        let apart = |index: &[usize], by: usize| {
            Offsets::new(index.iter().map(|i| i.checked_mul(by).unwrap_or(usize::MAX)))
        };
        let outputs = apart(&class.window_index, output)?;
        Some(Laid { class, outputs, filter_rows: apart(&class.patch_index, row)? })
    }

    /// Windows of some lines, and their outputs.
    fn of_lines(&self, lines: &Range<usize>) -> (Offsets<'_>, Offsets<'_>) {
        let per_line = self.class.per_line;
        let range = lines.start * per_line..lines.end * per_line;
        (self.class.windows.part(range.clone()), self.outputs.part(range))
    }

    /// Elements of some rows of a patch, and their rows of the filter.
    fn of_rows(&self, rows: &Range<usize>) -> (Offsets<'_>, Offsets<'_>) {
        let per_row = self.class.per_row;
        let range = rows.start * per_row..rows.end * per_row;
        (self.class.patch.part(range.clone()), self.filter_rows.part(range))
    }
}

/// The classes by which the gradient of a filter is summed. Outputs lie as in the whole gradient,
/// or as in a strip that was copied because it is narrow.
struct FilterClasses<'a> {
    full: Vec<Laid<'a>>,
    narrow: Vec<Laid<'a>>,
}

impl<'a> FilterClasses<'a> {
    fn new<T: Product>(direct: &'a Direct<'_, T>) -> Option<FilterClasses<'a>> {
        let (n, columns) = (direct.conv.out_channels, direct.tiles.columns);
        let classes = match direct.by_tap.is_empty() {
            true => std::slice::from_ref(&direct.whole),
            false => &direct.by_tap,
        };
        let laid = |output| -> Option<Vec<Laid<'a>>> {
            classes.iter().map(|class| Laid::new(class, output, n)).collect()
        };
        Some(FilterClasses { full: laid(n)?, narrow: laid(columns)? })
    }
}

/// Which elements of a window lie inside the image, for the window at a position.
fn taps_inside(axis: Axis, position: usize) -> Range<usize> {
    let start = position * axis.stride;
    let taps = |reach: usize| reach.saturating_sub(start).div_ceil(axis.dilation).min(axis.window);
    taps(axis.before)..taps(axis.before.saturating_add(axis.input))
}

/// Whether skipping zeros to the left and right saves more than smaller tiles cost.
fn leaves_out_across(conv: &Conv) -> bool {
    let [d, h, w] = conv.axes;
    let inside = (0..w.output).map(|i| taps_inside(w, i).len()).sum::<usize>();
    let all = w.output * w.window;
    let is_tall = h.output >= 2 * TALL && conv.in_channels >= SEPARATE;
    d.window == 1 && is_tall && (all - inside) * 25 >= all
}

/// The number of input positions that this many windows cover.
fn covered(axis: Axis, windows: usize) -> Option<usize> {
    let steps = windows.checked_sub(1)?.checked_mul(axis.stride)?;
    let reach = axis.window.checked_sub(1)?.checked_mul(axis.dilation)?;
    steps.checked_add(reach)?.checked_add(1)
}

/// A matrix of `k` rows as strips of columns; the last strip is padded with zeros.
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

/// For a convolution of stride one: the convolution of the output's gradient that gives the input's
/// gradient. Its filter is reversed, with channels swapped.
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

    /// Small whole numbers, whose sums of products are exact.
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
            // And those to the left and right; of some windows all is outside.
            conv(2, [one, axis(14, 5, 1, 1, 2), axis(14, 5, 1, 1, 2)], 32, 64),
            conv(2, [one, axis(21, 3, 2, 2, 3), axis(9, 3, 2, 2, 3)], 16, 40),
            conv(1, [one, axis(12, 2, 1, 1, 1), axis(3, 2, 1, 1, 4)], 17, 33),
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
