//! Convolutions: [`direct`](super::direct) where it applies, otherwise as matrix products. For
//! these, patches of the input are gathered into small panels, which stay in the cache, and
//! multiplied with the filter. The whole input is never unrolled.

pub(super) mod device;

use super::direct::{Direct, turned, turned_filter};
use super::window::Axis;
use ferroflow_core::ComputePool;
use ferroflow_op_kit::parallel::for_rows;
use ferroflow_ops_math::linalg::gemm::{Finisher, Mat, Product, ProductThreads, product_cost};

/// Sizes of a convolution with channels last.
#[derive(Clone, Debug)]
pub(super) struct Conv {
    pub batch: usize,
    pub axes: [Axis; 3],
    pub in_channels: usize,
    pub out_channels: usize,
    /// The number of groups of input and output channels that do not mix.
    pub groups: usize,
}

/// Bytes of a panel of patches.
const PANEL: usize = 256 << 10;

impl Conv {
    /// Elements of one input image.
    pub(super) fn image(&self) -> usize {
        self.axes.iter().map(|a| a.input).product::<usize>() * self.in_channels
    }

    /// Positions of one output image.
    pub(super) fn positions(&self) -> usize {
        self.axes.iter().map(|a| a.output).product()
    }

    fn rows(&self) -> usize {
        self.batch * self.positions()
    }

    fn group_channels(&self) -> usize {
        self.in_channels / self.groups
    }

    /// Elements of a patch within one group: the rows of the filter.
    pub(super) fn patch(&self) -> usize {
        self.axes.iter().map(|a| a.window).product::<usize>() * self.group_channels()
    }

    /// Whether each patch is one pixel of the input.
    pub(super) fn is_pointwise(&self) -> bool {
        self.groups == 1 && self.axes.iter().all(Axis::is_identity)
    }

    /// Rows of a panel.
    fn panel_rows<T>(&self) -> usize {
        (PANEL / size_of::<T>() / self.patch().max(1)).clamp(1, 4096)
    }

    /// The image and the position of window `row`.
    fn locate(&self, row: usize) -> (usize, [usize; 3]) {
        let (image, at) = (row / self.positions(), row % self.positions());
        let [_, h, w] = self.axes;
        (image, [at / (h.output * w.output), at / w.output % h.output, at % w.output])
    }

    /// Calls `visit(patch offset, input offset, length)` for every run of a patch that lies inside
    /// the image.
    fn runs(&self, at: [usize; 3], group: usize, mut visit: impl FnMut(usize, usize, usize)) {
        let [d, h, w] = self.axes;
        let c = self.group_channels();
        let whole_rows = w.dilation == 1 && self.groups == 1;
        for kd in 0..d.window {
            let Some(id) = d.at(at[0], kd) else { continue };
            for kh in 0..h.window {
                let Some(ih) = h.at(at[1], kh) else { continue };
                let to = (kd * h.window + kh) * w.window;
                let from = (id * h.input + ih) * w.input;
                if whole_rows {
                    let inside = w.inside(at[2]);
                    if !inside.is_empty() {
                        let skipped = inside.start + w.before - at[2] * w.stride;
                        let len = inside.len() * c;
                        visit((to + skipped) * c, (from + inside.start) * c, len);
                    }
                    continue;
                }
                for kw in 0..w.window {
                    if let Some(iw) = w.at(at[2], kw) {
                        visit((to + kw) * c, (from + iw) * self.in_channels + group * c, c);
                    }
                }
            }
        }
    }

    /// Gathers the patches of `rows` into `panel`.
    fn gather<T: Product>(
        &self,
        x: &[T],
        rows: std::ops::Range<usize>,
        group: usize,
        panel: &mut [T],
    ) {
        let k = self.patch();
        for (row, patch) in rows.zip(panel.chunks_exact_mut(k)) {
            let (image, at) = self.locate(row);
            let x = &x[image * self.image()..];
            patch.fill(T::ZERO);
            self.runs(at, group, |to, from, len| {
                patch[to..to + len].copy_from_slice(&x[from..from + len]);
            });
        }
    }

    /// Adds the patches in `panel` to their positions in `image`.
    fn scatter<T: Product>(
        &self,
        image: &mut [T],
        positions: std::ops::Range<usize>,
        group: usize,
        panel: &[T],
    ) {
        for (position, patch) in positions.zip(panel.chunks_exact(self.patch())) {
            let (_, at) = self.locate(position);
            self.runs(at, group, |from, to, len| {
                let (image, patch) = (&mut image[to..to + len], &patch[from..from + len]);
                image.iter_mut().zip(patch).for_each(|(x, p)| *x = x.add(*p));
            });
        }
    }

    /// [`Conv::scatter`] for one channel, from a panel with a row for each element of a patch.
    fn scatter_planes<T: Product>(
        &self,
        image: &mut [T],
        positions: std::ops::Range<usize>,
        panel: &[T],
    ) {
        let [d, h, w] = self.axes;
        let planes = panel.chunks_exact(positions.len());
        let mut first = positions.start;
        while first < positions.end {
            // Neighbouring windows of one row of the output.
            let (_, at) = self.locate(first);
            let end = (first - at[2] + w.output).min(positions.end);
            let windows = at[2]..at[2] + (end - first);
            for (tap, plane) in planes.clone().enumerate() {
                let (kd, kh, kw) =
                    (tap / w.window / h.window, tap / w.window % h.window, tap % w.window);
                let (Some(id), Some(ih)) = (d.at(at[0], kd), h.at(at[1], kh)) else { continue };
                let row = &mut image[(id * h.input + ih) * w.input..][..w.input];
                let from = &plane[first - positions.start..][..windows.len()];
                let inside = windows.clone().position(|i| w.at(i, kw).is_some());
                let Some(skipped) = inside else { continue };
                let Some(start) = w.at(windows.start + skipped, kw) else { continue };
                let (to, from) = (&mut row[start..], &from[skipped..]);
                if w.stride == 1 {
                    to.iter_mut().zip(from).for_each(|(x, p)| *x = x.add(*p));
                } else {
                    let to = to.iter_mut().step_by(w.stride);
                    to.zip(from).for_each(|(x, p)| *x = x.add(*p));
                }
            }
            first = end;
        }
    }

    /// The columns of the filter that belong to a group.
    fn filter<'a, T>(&self, filter: &'a [T], group: usize) -> Mat<'a, T> {
        let cols = self.out_channels / self.groups;
        Mat {
            data: &filter[group * cols..],
            rows: self.patch(),
            cols,
            row_stride: self.out_channels,
            col_stride: 1,
            conj: false,
        }
    }

    /// The output, of `rows` by output channels.
    pub fn forward<T: Product>(&self, x: &[T], filter: &[T], y: &mut [T], finisher: Finisher<'_>) {
        let (k, n) = (self.patch(), self.out_channels);
        if y.is_empty() || k == 0 {
            y.fill(T::ZERO);
            return finisher.run_all(y, n);
        }
        if self.is_pointwise() {
            let a = Mat::new(x, self.rows(), k);
            T::product(a, self.filter(filter, 0), y, n, false, ProductThreads::All);
            return finisher.run_all(y, n);
        }
        match Direct::new(self) {
            Some(direct) => direct.forward(x, filter, y, finisher),
            None => self.forward_by_patches(x, filter, y, finisher),
        }
    }

    pub(super) fn forward_by_patches<T: Product>(
        &self,
        x: &[T],
        filter: &[T],
        y: &mut [T],
        finisher: Finisher<'_>,
    ) {
        let (k, n) = (self.patch(), self.out_channels);
        let panel_rows = self.panel_rows::<T>();
        for_rows(y, n, product_cost(1, n, k) + k, |rows, y| {
            let mut panel = vec![T::ZERO; panel_rows.min(rows.len()) * k];
            for (i, y) in y.chunks_mut(panel_rows * n).enumerate() {
                let from = rows.start + i * panel_rows;
                let rows = from..from + y.len() / n;
                for group in 0..self.groups {
                    let panel = &mut panel[..rows.len() * k];
                    self.gather(x, rows.clone(), group, panel);
                    let a = Mat::new(panel, rows.len(), k);
                    let y = &mut y[group * (n / self.groups)..];
                    T::product(a, self.filter(filter, group), y, n, false, ProductThreads::One);
                }
                finisher.run(y);
            }
        });
    }

    /// The gradient of the input, from that of the output.
    pub fn backprop_input<T: Product>(&self, filter: &[T], dy: &[T], dx: &mut [T]) {
        let (k, n) = (self.patch(), self.out_channels);
        if dx.is_empty() || dy.is_empty() {
            return dx.fill(T::ZERO);
        }
        if self.is_pointwise() {
            let a = Mat::new(dy, self.rows(), n);
            let filter = self.filter(filter, 0).transposed();
            return T::product(a, filter, dx, k, false, ProductThreads::All);
        }
        // With few channels, most columns of a tile would be wasted.
        if self.in_channels >= 8
            && let Some(back) = turned(self)
            && let Some(direct) = Direct::new(&back)
        {
            return direct.forward(dy, &turned_filter(self, filter), dx, Finisher::NONE);
        }
        self.backprop_input_by_patches(filter, dy, dx);
    }

    pub(super) fn backprop_input_by_patches<T: Product>(
        &self,
        filter: &[T],
        dy: &[T],
        dx: &mut [T],
    ) {
        let (k, n, positions) = (self.patch(), self.out_channels, self.positions());
        let panel_rows = self.panel_rows::<T>();
        let image = |i: usize, dx: &mut [T], threads: ProductThreads| {
            dx.fill(T::ZERO);
            let mut panel = vec![T::ZERO; panel_rows.min(positions) * k];
            for from in (0..positions).step_by(panel_rows) {
                let at = from..(from + panel_rows).min(positions);
                if self.in_channels == 1 {
                    // Rows of the panel are as long as it has positions, not as a patch.
                    let panel = &mut panel[..at.len() * k];
                    let dy = Mat::new(&dy[(i * positions + from) * n..], at.len(), n).transposed();
                    let filter = self.filter(filter, 0);
                    T::product(filter, dy, panel, at.len(), false, threads);
                    self.scatter_planes(dx, at, panel);
                    continue;
                }
                for group in 0..self.groups {
                    let cols = n / self.groups;
                    let a = Mat {
                        data: &dy[(i * positions + from) * n + group * cols..],
                        rows: at.len(),
                        cols,
                        row_stride: n,
                        col_stride: 1,
                        conj: false,
                    };
                    let panel = &mut panel[..at.len() * k];
                    let filter = self.filter(filter, group).transposed();
                    T::product(a, filter, panel, k, false, threads);
                    self.scatter(dx, at.clone(), group, panel);
                }
            }
        };
        let size = self.image();
        if self.batch >= ComputePool::threads() {
            for_rows(dx, size, product_cost(positions, n, k), |images, dx| {
                for (i, dx) in images.zip(dx.chunks_exact_mut(size)) {
                    image(i, dx, ProductThreads::One);
                }
            });
        } else {
            for (i, dx) in dx.chunks_exact_mut(size).enumerate() {
                image(i, dx, ProductThreads::All);
            }
        }
    }

    /// The gradient of the filter, from that of the output.
    pub fn backprop_filter<T: Product>(&self, x: &[T], dy: &[T], df: &mut [T]) {
        let (k, n, rows) = (self.patch(), self.out_channels, self.rows());
        df.fill(T::ZERO);
        if df.is_empty() || rows == 0 || x.is_empty() {
            return;
        }
        if self.is_pointwise() {
            let a = Mat::new(x, rows, k).transposed();
            return T::product(a, Mat::new(dy, rows, n), df, n, false, ProductThreads::All);
        }
        match Direct::new(self) {
            Some(direct) => direct.backprop_filter(x, dy, df),
            None => self.backprop_filter_by_patches(x, dy, df),
        }
    }

    /// Adds to `df`.
    pub(super) fn backprop_filter_by_patches<T: Product>(&self, x: &[T], dy: &[T], df: &mut [T]) {
        let (k, n, rows) = (self.patch(), self.out_channels, self.rows());
        // Each thread sums the products of its rows; then the sums are added.
        let panel_rows = self.panel_rows::<T>();
        let parts = ComputePool::threads().min(rows.div_ceil(panel_rows));
        let mut sums: Vec<Vec<T>> = vec![Vec::new(); parts];
        for_rows(&mut sums, 1, product_cost(rows / parts, n, k), |range, sums| {
            for (part, sum) in range.zip(sums) {
                *sum = vec![T::ZERO; k * n];
                let (start, end) = (rows * part / parts, rows * (part + 1) / parts);
                let mut panel = vec![T::ZERO; panel_rows * k];
                for from in (start..end).step_by(panel_rows) {
                    let rows = from..(from + panel_rows).min(end);
                    self.add_filter_products(x, dy, rows, &mut panel, sum);
                }
            }
        });
        for sum in &sums {
            df.iter_mut().zip(sum).for_each(|(df, s)| *df = df.add(*s));
        }
    }

    fn add_filter_products<T: Product>(
        &self,
        x: &[T],
        dy: &[T],
        rows: std::ops::Range<usize>,
        panel: &mut [T],
        sum: &mut [T],
    ) {
        let (k, n) = (self.patch(), self.out_channels);
        let cols = n / self.groups;
        for group in 0..self.groups {
            let panel = &mut panel[..rows.len() * k];
            self.gather(x, rows.clone(), group, panel);
            let a = Mat::new(panel, rows.len(), k).transposed();
            let b = Mat {
                data: &dy[rows.start * n + group * cols..],
                rows: rows.len(),
                cols,
                row_stride: n,
                col_stride: 1,
                conj: false,
            };
            T::product(a, b, &mut sum[group * cols..], n, true, ProductThreads::One);
        }
    }
}
