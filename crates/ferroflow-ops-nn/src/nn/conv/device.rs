//! Convolutions on a GPU: with a library where there is one, otherwise as products of patches of
//! the input with the filter.

use super::Conv;
use crate::nn::window::{Axis, Layout};
use crate::prelude::*;
use ferroflow_core::{ConvolutionResult, Gemm, Gpu, GpuConvolution, LaunchArg};
use ferroflow_op_kit::gpu::{self, GpuKernel, address, c_type, length};

const TEXT: &str = include_str!("device.cu");
/// Bytes of patches that are made at a time.
const PATCHES: usize = 256 << 20;

/// The text of all kernels for elements of `dtype`.
pub(crate) fn text(dtype: DType) -> Result<Arc<str>> {
    Ok(format!("typedef {} T;\n{TEXT}", c_type(dtype)?).into())
}

/// The axes as kernels take them.
pub(crate) fn axes_arg(axes: &[Axis; 3]) -> LaunchArg {
    let words = axes.iter().flat_map(|a| {
        [a.input, a.window, a.output, a.stride, a.dilation, a.before].map(|x| x as i64)
    });
    LaunchArg::Words(words.collect())
}

/// The tensor with channels last, or in its stored layout again.
pub(crate) fn reordered_on_device(t: &Tensor, layout: Layout, to_last: bool) -> Result<Tensor> {
    if layout == Layout::ChannelsLast {
        return Ok(t.clone());
    }
    let shape = if to_last { layout.to_last(t.shape()) } else { layout.stored(t.shape()) };
    let out = t.alloc_beside(t.dtype(), shape)?;
    let last = if to_last { out.shape() } else { t.shape() };
    let (batch, c) = (last[0], last[last.rank() - 1]);
    let inner: usize = last[1..last.rank() - 1].iter().product();
    if out.elements() > 0 {
        let (rows, cols) = if to_last { (c, inner) } else { (inner, c) };
        let whole = (rows * cols) as isize;
        let loops = [(batch, whole, whole), (cols, 1, rows as isize), (rows, cols as isize, 1)];
        gpu::copy::copy(t, 0, &out, 0, &loops)?;
    }
    Ok(out)
}

/// The kernels of convolutions of one dtype.
pub(crate) struct ConvOnDevice {
    patches: GpuKernel,
    sum_patches: GpuKernel,
}

/// Operands of one group of channels.
struct Group {
    /// Its number.
    index: usize,
    /// Its channels of the input and of the output.
    channels: [usize; 2],
}

impl ConvOnDevice {
    pub(crate) fn new(init: &KernelInit<'_>, dtype: DType) -> Result<ConvOnDevice> {
        let text = text(dtype)?;
        if gpu::gpu_of(init)?.has_convolutions() {
            // The library takes filters in another order.
            gpu::copy::prepare(init, dtype)?;
        }
        Ok(ConvOnDevice {
            patches: GpuKernel::new(text.clone(), "patches").prepared(init)?,
            sum_patches: GpuKernel::new(text, "sum_patches"),
        })
    }

    /// The output, in `y`, which has channels last like `x`.
    pub(crate) fn forward(&self, conv: &Conv, x: &Tensor, w: &Tensor, y: &Tensor) -> Result<()> {
        let gpu = gpu_of(y)?;
        if y.elements() == 0 || conv.patch() == 0 {
            return gpu.clear(y.device_address()?, y.byte_len());
        }
        if by_library(conv, ConvolutionResult::Output, x, w, y)? {
            return Ok(());
        }
        let (k, n) = (conv.patch(), conv.out_channels / conv.groups);
        self.each_part(conv, |group, rows| {
            let w = filter_of(conv, w, group)?;
            let part = part_of(conv, y, group, rows, n)?;
            let a = self.patches_of(conv, x, group, rows)?;
            let product = product(y.dtype(), [rows.len(), n, k]);
            gpu.gemm(&Gemm { a: a.1, b: w.device_address()?, c: part.address, ..product })?;
            part.store(conv, y, group, rows, n)
        })
    }

    /// The gradient of the input, in `dx`.
    pub(crate) fn of_input(&self, conv: &Conv, w: &Tensor, dy: &Tensor, dx: &Tensor) -> Result<()> {
        let gpu = gpu_of(dx)?;
        if dx.elements() == 0 || dy.elements() == 0 {
            return gpu.clear(dx.device_address()?, dx.byte_len());
        }
        if by_library(conv, ConvolutionResult::Input, dx, w, dy)? {
            return Ok(());
        }
        let (k, n) = (conv.patch(), conv.out_channels / conv.groups);
        let positions = conv.positions();
        self.each_part(conv, |group, rows| {
            let w = filter_of(conv, w, group)?;
            let part = part_of(conv, dy, group, rows, n)?;
            part.load(conv, dy, group, rows, n)?;
            let product = Gemm { transpose_b: true, ..product(dx.dtype(), [rows.len(), k, n]) };
            let operands = Gemm { a: part.address, b: w.device_address()?, ..product };
            let first = rows.start / positions;
            if conv.is_pointwise() {
                let at = (rows.start * k * size(dx)) as u64;
                return gpu.gemm(&Gemm { c: dx.device_address()? + at, ..operands });
            }
            let patches = dx.alloc_beside(dx.dtype(), [rows.len(), k])?;
            gpu.gemm(&Gemm { c: patches.device_address()?, ..operands })?;
            let count = rows.len() / positions * conv.image() / conv.groups;
            let args = self.patch_args(conv, group, count, first, &patches, dx)?;
            self.sum_patches.over(gpu.as_ref(), count, &args)
        })
    }

    /// The gradient of the filter, in `df`.
    pub(crate) fn of_filter(
        &self,
        conv: &Conv,
        x: &Tensor,
        dy: &Tensor,
        df: &Tensor,
    ) -> Result<()> {
        let gpu = gpu_of(df)?;
        if df.elements() == 0 || dy.elements() == 0 || x.elements() == 0 {
            return gpu.clear(df.device_address()?, df.byte_len());
        }
        if by_library(conv, ConvolutionResult::Filter, x, df, dy)? {
            return Ok(());
        }
        let (k, n) = (conv.patch(), conv.out_channels / conv.groups);
        let sums = match conv.groups {
            1 => df.clone(),
            _ => df.alloc_beside(df.dtype(), [conv.groups, k, n])?,
        };
        self.each_part(conv, |group, rows| {
            let part = part_of(conv, dy, group, rows, n)?;
            part.load(conv, dy, group, rows, n)?;
            let a = self.patches_of(conv, x, group, rows)?;
            let c = sums.device_address()? + (group.index * k * n * size(df)) as u64;
            gpu.gemm(&Gemm {
                a: a.1,
                b: part.address,
                c,
                transpose_a: true,
                accumulate: rows.start > 0,
                ..product(df.dtype(), [k, n, rows.len()])
            })
        })?;
        if conv.groups == 1 {
            return Ok(());
        }
        let all = conv.out_channels as isize;
        let (k_step, n_step) = ((k * n) as isize, n as isize);
        let loops = [(conv.groups, k_step, n_step), (k, n_step, all), (n, 1, 1)];
        gpu::copy::copy(&sums, 0, df, 0, &loops)
    }

    /// Calls `run` for ranges of windows of whole images, small enough for their patches.
    fn each_part(
        &self,
        conv: &Conv,
        run: impl Fn(&Group, &std::ops::Range<usize>) -> Result<()>,
    ) -> Result<()> {
        let positions = conv.positions();
        let images = match conv.is_pointwise() {
            true => conv.batch,
            false => (PATCHES / 4 / (positions * conv.patch()).max(1)).clamp(1, conv.batch.max(1)),
        };
        let channels = [conv.in_channels, conv.out_channels].map(|c| c / conv.groups);
        for index in 0..conv.groups {
            for first in (0..conv.batch).step_by(images) {
                let last = (first + images).min(conv.batch);
                run(&Group { index, channels }, &(first * positions..last * positions))?;
            }
        }
        Ok(())
    }

    fn patch_args(
        &self,
        conv: &Conv,
        group: &Group,
        count: usize,
        first: usize,
        from: &Tensor,
        to: &Tensor,
    ) -> Result<[LaunchArg; 8]> {
        Ok([
            length(count),
            axes_arg(&conv.axes),
            length(conv.in_channels),
            length(group.channels[0]),
            length(group.index * group.channels[0]),
            length(first),
            address(from)?,
            address(to)?,
        ])
    }

    /// The patches of windows `rows`, and their address: pixels of the input if they are these.
    fn patches_of(
        &self,
        conv: &Conv,
        x: &Tensor,
        group: &Group,
        rows: &std::ops::Range<usize>,
    ) -> Result<(Tensor, u64)> {
        let k = conv.patch();
        if conv.is_pointwise() {
            let address = x.device_address()? + (rows.start * k * size(x)) as u64;
            return Ok((x.clone(), address));
        }
        let patches = x.alloc_beside(x.dtype(), [rows.len(), k])?;
        let count = patches.elements();
        let args = self.patch_args(conv, group, count, rows.start, x, &patches)?;
        self.patches.over(gpu_of(x)?.as_ref(), count, &args)?;
        let address = patches.device_address()?;
        Ok((patches, address))
    }
}

fn gpu_of(t: &Tensor) -> Result<&Arc<dyn Gpu>> {
    t.gpu().ok_or_else(|| err!(Internal, "a convolution on a GPU of host memory"))
}

fn size(t: &Tensor) -> usize {
    t.dtype().size().unwrap_or(1)
}

/// A product `m x k` by `k x n` without addresses.
fn product(dtype: DType, [m, n, k]: [usize; 3]) -> Gemm {
    Gemm {
        dtype,
        m,
        n,
        k,
        a: 0,
        b: 0,
        c: 0,
        transpose_a: false,
        transpose_b: false,
        batch: 1,
        strides: [0; 3],
        bias: None,
        accumulate: false,
    }
}

/// The columns of the filter that belong to a group.
fn filter_of(conv: &Conv, w: &Tensor, group: &Group) -> Result<Tensor> {
    if conv.groups == 1 {
        return Ok(w.clone());
    }
    let (k, n) = (conv.patch(), group.channels[1]);
    let part = w.alloc_beside(w.dtype(), [k, n])?;
    let loops = [(k, conv.out_channels as isize, n as isize), (n, 1, 1)];
    gpu::copy::copy(w, (group.index * n) as isize, &part, 0, &loops)?;
    Ok(part)
}

/// Rows of the output's channels of a group: in place, or a copy if there are several groups.
struct OutputPart {
    copy: Option<Tensor>,
    address: u64,
}

fn part_of(
    conv: &Conv,
    y: &Tensor,
    _: &Group,
    rows: &std::ops::Range<usize>,
    n: usize,
) -> Result<OutputPart> {
    if conv.groups == 1 {
        let address = y.device_address()? + (rows.start * n * size(y)) as u64;
        return Ok(OutputPart { copy: None, address });
    }
    let copy = y.alloc_beside(y.dtype(), [rows.len(), n])?;
    let address = copy.device_address()?;
    Ok(OutputPart { copy: Some(copy), address })
}

impl OutputPart {
    fn load(
        &self,
        conv: &Conv,
        y: &Tensor,
        group: &Group,
        rows: &std::ops::Range<usize>,
        n: usize,
    ) -> Result<()> {
        let Some(copy) = &self.copy else { return Ok(()) };
        let all = conv.out_channels;
        let from = (rows.start * all + group.index * n) as isize;
        gpu::copy::copy(y, from, copy, 0, &[(rows.len(), all as isize, n as isize), (n, 1, 1)])
    }

    fn store(
        &self,
        conv: &Conv,
        y: &Tensor,
        group: &Group,
        rows: &std::ops::Range<usize>,
        n: usize,
    ) -> Result<()> {
        let Some(copy) = &self.copy else { return Ok(()) };
        let all = conv.out_channels;
        let to = (rows.start * all + group.index * n) as isize;
        gpu::copy::copy(copy, 0, y, to, &[(rows.len(), n as isize, all as isize), (n, 1, 1)])
    }
}

/// Tries the GPU's library. The library takes filters with output channels first, and equal padding
/// on both sides.
fn by_library(
    conv: &Conv,
    result: ConvolutionResult,
    x: &Tensor,
    w: &Tensor,
    y: &Tensor,
) -> Result<bool> {
    let [d, h, c] = conv.axes;
    let after = |a: &Axis| {
        let covered = (a.output - 1) * a.stride + (a.window - 1) * a.dilation + 1;
        covered.saturating_sub(a.input + a.before)
    };
    let is_even = |a: &Axis| {
        after(a) <= a.before && {
            // The library derives the number of windows from equal padding on both sides.
            let extent = (a.window - 1) * a.dilation + 1;
            (a.input + 2 * a.before)
                .checked_sub(extent)
                .is_some_and(|n| n / a.stride + 1 == a.output)
        }
    };
    let gpu = gpu_of(y)?;
    // The library is slow at the gradient of a filter of one channel.
    let is_slow = result == ConvolutionResult::Filter && conv.in_channels == 1;
    let is_taken =
        d.is_identity() && is_even(&h) && is_even(&c) && !conv.is_pointwise() && !is_slow;
    if !gpu.has_convolutions() || !is_taken {
        return Ok(false);
    }
    let taps = conv.patch() as isize;
    let n = conv.out_channels as isize;
    let turned = w.alloc_beside(w.dtype(), [n as usize, taps as usize])?;
    if result != ConvolutionResult::Filter {
        let loops = [(n as usize, 1, taps), (taps as usize, n, 1)];
        gpu::copy::copy(w, 0, &turned, 0, &loops)?;
    }
    let was_done = gpu.convolve(&GpuConvolution {
        result,
        dtype: y.dtype(),
        batch: conv.batch,
        channels: [conv.in_channels, conv.out_channels],
        groups: conv.groups,
        input: [h.input, c.input],
        filter: [h.window, c.window],
        output: [h.output, c.output],
        strides: [h.stride, c.stride],
        dilations: [h.dilation, c.dilation],
        padding: [h.before, c.before],
        x: x.device_address()?,
        w: turned.device_address()?,
        y: y.device_address()?,
    })?;
    if was_done && result == ConvolutionResult::Filter {
        let loops = [(taps as usize, 1, n), (n as usize, taps, 1)];
        gpu::copy::copy(&turned, 0, w, 0, &loops)?;
    }
    Ok(was_done)
}
