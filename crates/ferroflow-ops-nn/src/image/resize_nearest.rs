//! ResizeNearestNeighbor and its gradient.

use super::pixels::Images;
use super::resize::{Grid, resized_shape, wanted_size};
use crate::prelude::*;
use ferroflow_core::LaunchArg;
use ferroflow_op_kit::gpu::{self, GpuKernel, GpuTypes, address, c_type, c_width, length};

/// For each of `output` pixels, which of `input` pixels is the nearest.
fn nearest(grid: Grid, input: usize, output: usize) -> Vec<usize> {
    let scale = grid.scale(input, output);
    (0..output)
        .map(|i| {
            let place = match grid.half_pixel_centers {
                true => (i as f32 + 0.5) * scale,
                false => i as f32 * scale,
            };
            let place = if grid.align_corners { place.round() } else { place.floor() };
            (place.max(0.0) as usize).min(input - 1)
        })
        .collect()
}

struct Resize<W>(Grid, std::marker::PhantomData<W>);

impl<W: Movable> Kernel for Resize<W> {
    fn compute(&self, ctx: &mut Ctx<'_>) -> Result<()> {
        let (from, to) = self.0.forward(ctx)?;
        let x = ctx.input(0)?;
        let mut y = ctx.alloc(x.dtype(), to.shape()?)?;
        let rows = nearest(self.0, from.height, to.height);
        let cols = nearest(self.0, from.width, to.width);
        let c = from.channels;
        let (x, out) = (W::of(x)?, W::of_mut(&mut y)?);
        for (at, out) in out.chunks_exact_mut(to.row().max(1)).enumerate() {
            let row = at / to.height * from.image() + rows[at % to.height] * from.row();
            for (col, out) in cols.iter().zip(out.chunks_exact_mut(c)) {
                out.clone_from_slice(&x[row + col * c..][..c]);
            }
        }
        ctx.set(0, y)
    }
}

const FORWARD: GpuTypes = &[("T", gpu::MOVED)];
const BACKWARD: GpuTypes = &[("T", gpu::FLOATS)];

const TEXT: &str = r#"
// The nearest of `input` pixels to output pixel `i`.
__device__ inline i64 nearest(i64 i, f32 scale, i64 centers, i64 corners, i64 input) {
    f32 place = ((f32)i + (centers ? 0.5f : 0.0f)) * scale;
    place = corners ? roundf(place) : floorf(place);
    i64 at = place > 0 ? (i64)place : 0;
    return at < input - 1 ? at : input - 1;
}
struct Sizes { i64 height, width, to_height, to_width, channels, centers, corners; };
extern "C" __global__ void resize(i64 n, Sizes s, f32 down, f32 across, const Word *x, Word *y) {
    for (i64 i = thread_number(); i < n; i += thread_count()) {
        i64 c = i % s.channels, col = i / s.channels % s.to_width;
        i64 row = i / s.channels / s.to_width % s.to_height, image = i / s.channels / s.to_width / s.to_height;
        row = nearest(row, down, s.centers, s.corners, s.height);
        col = nearest(col, across, s.centers, s.corners, s.width);
        y[i] = x[((image * s.height + row) * s.width + col) * s.channels + c];
    }
}
"#;

/// Each element of the result adds its part of the gradients in their order, without atomics.
const GRADIENT: &str = r#"
extern "C" __global__ void gradient(i64 n, Sizes s, f32 down, f32 across, const T *dy, T *dx) {
    for (i64 i = thread_number(); i < n; i += thread_count()) {
        i64 c = i % s.channels, col = i / s.channels % s.width;
        i64 row = i / s.channels / s.width % s.height, image = i / s.channels / s.width / s.height;
        i64 first_row = (i64)((f32)row / down) - 2, last_row = (i64)((f32)(row + 1) / down) + 2;
        i64 first_col = (i64)((f32)col / across) - 2, last_col = (i64)((f32)(col + 1) / across) + 2;
        if (row == s.height - 1) last_row = s.to_height - 1;
        if (col == s.width - 1) last_col = s.to_width - 1;
        T sum = Narrow<T>::from((WideOf<T>::type)0);
        for (i64 r = first_row > 0 ? first_row : 0; r <= last_row && r < s.to_height; r++) {
            if (nearest(r, down, s.centers, s.corners, s.height) != row) continue;
            for (i64 q = first_col > 0 ? first_col : 0; q <= last_col && q < s.to_width; q++) {
                if (nearest(q, across, s.centers, s.corners, s.width) != col) continue;
                T part = dy[((image * s.to_height + r) * s.to_width + q) * s.channels + c];
                sum = Narrow<T>::from(wide(sum) + wide(part));
            }
        }
        dx[i] = sum;
    }
}
"#;

/// The arguments of both kernels after the number of elements: sizes and scales.
fn sizes_arg(grid: Grid, from: &Images, to: &Images) -> [LaunchArg; 3] {
    let sizes = [from.height, from.width, to.height, to.width, from.channels].map(|n| n as i64);
    let flags = [grid.half_pixel_centers, grid.align_corners].map(i64::from);
    let words = sizes.into_iter().chain(flags).collect();
    let scale = |input, output| LaunchArg::F32(grid.scale(input, output));
    [LaunchArg::Words(words), scale(from.height, to.height), scale(from.width, to.width)]
}

fn on_gpu(init: &KernelInit<'_>) -> Result<KernelBox> {
    let grid = Grid::new(init)?;
    let text = format!("struct Pair {{ u64 a, b; }};\n{TEXT}");
    let text = text.replace("Word", c_width(init.dtype("T")?)?);
    let kernel = GpuKernel::new(text, "resize").prepared(init)?;
    Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
        let (from, to) = grid.forward(ctx)?;
        let (x, gpu) = (ctx.input(0)?, ctx.gpu()?.clone());
        let out = Tensor::on_device(&gpu, x.dtype(), to.shape()?)?;
        let n = out.elements();
        let [sizes, down, across] = sizes_arg(grid, &from, &to);
        let args = [length(n), sizes, down, across, address(x)?, address(&out)?];
        kernel.over(gpu.as_ref(), n, &args)?;
        ctx.set(0, out)
    }))
}

fn gradient_on_gpu(init: &KernelInit<'_>) -> Result<KernelBox> {
    let (grid, dtype) = (Grid::new(init)?, init.dtype("T")?);
    let text = TEXT.replace("Word", c_width(dtype)?);
    let text = format!("typedef {} T;\n{text}{GRADIENT}", c_type(dtype)?);
    let kernel = GpuKernel::new(text, "gradient").prepared(init)?;
    Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
        let (resized, original) = gradient_sizes(ctx)?;
        let (dy, gpu) = (ctx.input(0)?, ctx.gpu()?.clone());
        let out = Tensor::on_device(&gpu, dtype, original.shape()?)?;
        let n = out.elements();
        if dy.elements() == 0 {
            gpu.clear(out.device_address()?, out.byte_len())?;
            return ctx.set(0, out);
        }
        let [sizes, down, across] = sizes_arg(grid, &original, &resized);
        let args = [length(n), sizes, down, across, address(dy)?, address(&out)?];
        kernel.over(gpu.as_ref(), n, &args)?;
        ctx.set(0, out)
    }))
}

/// The resized images, whose gradient is input 0, and the original ones.
fn gradient_sizes(ctx: &Ctx<'_>) -> Result<(Images, Images)> {
    let grads = ctx.input(0)?;
    let resized = Images::of(grads.shape(), || {
        err!(InvalidArgument, "input must be 4-dimensional{}", grads.shape())
    })?;
    let (height, width) = wanted_size(ctx.input(1)?)?;
    ensure!(resized.channels > 0, InvalidArgument, "image must have at least one channel");
    Ok((resized, resized.sized(height, width)))
}

struct Gradient<T>(Grid, std::marker::PhantomData<T>);

impl<T: Num> Kernel for Gradient<T> {
    fn compute(&self, ctx: &mut Ctx<'_>) -> Result<()> {
        let (resized, original) = gradient_sizes(ctx)?;
        let (grads, height, width) = (ctx.input(0)?, original.height, original.width);
        let mut dx = Tensor::zeros(T::DTYPE, original.shape()?)?;
        if grads.elements() == 0 {
            return ctx.set(0, dx);
        }
        let rows = nearest(self.0, height, resized.height);
        let cols = nearest(self.0, width, resized.width);
        let c = resized.channels;
        let out = dx.as_mut_slice::<T>()?;
        for (at, dy) in grads.as_slice::<T>()?.chunks_exact(resized.row()).enumerate() {
            let (image, row) = (at / resized.height, rows[at % resized.height]);
            let row = image * original.image() + row * original.row();
            for (col, dy) in cols.iter().zip(dy.chunks_exact(c)) {
                let out = &mut out[row + col * c..][..c];
                out.iter_mut().zip(dy).for_each(|(x, dy)| *x = x.add(*dy));
            }
        }
        ctx.set(0, dx)
    }
}

pub(crate) fn register(c: &mut Catalog) {
    c.op("ResizeNearestNeighbor")
        .doc("Images resized by taking the nearest pixels.")
        .input("images: T")
        .input("size: int32")
        .output("resized_images: T")
        .attr("T: {int8, uint8, int16, uint16, int32, int64, half, float, double, bfloat16}")
        .attr("align_corners: bool = false")
        .attr("half_pixel_centers: bool = false")
        .shape(resized_shape)
        .gpu(FORWARD, on_gpu)
        .host_inputs(&["size"])
        .cpu(per_width!(init, W => Resize::<W>(Grid::new(init)?, std::marker::PhantomData)));
    c.op("ResizeNearestNeighborGrad")
        .doc("Gradient of ResizeNearestNeighbor.")
        .input("grads: T")
        .input("size: int32")
        .output("output: T")
        .attr("T: {uint8, int8, int32, half, float, double, bfloat16}")
        .attr("align_corners: bool = false")
        .attr("half_pixel_centers: bool = false")
        .shape(resized_shape)
        .gpu(BACKWARD, gradient_on_gpu)
        .host_inputs(&["size"])
        .cpu(per_dtype!(
            [UInt8 u8, Int8 i8, Int32 i32, Half f16, BFloat16 bf16, Float f32, Double f64],
            init,
            T => Gradient::<T>(Grid::new(init)?, std::marker::PhantomData)
        ));
    c.gradient("ResizeNearestNeighbor", |g, dy| {
        let size = g.call("Slice", &[g.input(0).shape(), g.ints(&[1]), g.ints(&[2])]);
        Ok(g.only(g.call_like("ResizeNearestNeighborGrad", &[dy[0], size])))
    });
}
