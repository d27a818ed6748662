//! MaxPool, its variants and their gradients.

use super::conv::device::reordered_on_device;
use super::conv_ops::reordered;
use super::pool::device::PoolKernels;
use super::pool::{Pool, PoolAttrs, pool_shape};
use crate::prelude::*;
use ferroflow_op_kit::gpu::{self, GpuTypes};
use ferroflow_op_kit::multiversion;
use ferroflow_op_kit::parallel::{for_rows, for_rows2};
use ferroflow_ops_array::reduce::segment::Lowest;
use smallvec::SmallVec;

/// The value that a node computes.
#[derive(Clone, Copy, PartialEq)]
enum Part {
    Output,
    /// The gradient of the input.
    Grad,
    /// The gradient of the gradient: the gradients of the chosen elements.
    GradGrad,
}

impl Part {
    /// The shape function of an op that computes it.
    fn shape(self, spatial: usize) -> impl Fn(&ShapeCtx<'_>) -> Result<Vec<PartialShape>> {
        move |c| match self {
            Part::Output => pool_shape(c, spatial, 1),
            Part::Grad => shape::same_as_input(c),
            Part::GradGrad => pool_shape(c, spatial, 3),
        }
    }
}

struct MaxPool<T> {
    part: Part,
    attrs: PoolAttrs,
    marker: std::marker::PhantomData<T>,
}

impl<T: Lowest> MaxPool<T> {
    fn new(init: &KernelInit<'_>, part: Part, spatial: usize) -> Result<Self> {
        let attrs = PoolAttrs::new(init.attrs, spatial)?;
        Ok(MaxPool { part, attrs, marker: std::marker::PhantomData })
    }
}

/// The largest element under every window; the lowest number for an empty window.
fn largest<T: Lowest>(pool: &Pool, x: &[T], y: &mut [T]) {
    let (c, k) = (pool.channels, pool.depth_window);
    if k > 1 {
        for (y, x) in y.iter_mut().zip(x.chunks_exact(k)) {
            *y = x.iter().fold(T::LOWEST, |best, &x| if x > best { x } else { best });
        }
        return;
    }
    if is_usual::<T>() && pool.is_in_fours() {
        let line = pool.axes[2].input * c;
        // About a nanosecond for four elements of the image.
        return for_rows(y, line / 2, line / 2, |rows, y| {
            for (row, y) in rows.zip(y.chunks_exact_mut(line / 2)) {
                let (above, below) = x[2 * row * line..2 * (row + 1) * line].split_at(line);
                largest_of_lines::<T>(c, above, below, y);
            }
        });
    }
    for_rows(y, c, pool.cost(), |range, y| {
        for (at, y) in range.zip(y.chunks_exact_mut(c)) {
            let x = &x[at / pool.positions() * pool.pixels() * c..];
            let mut pixels: SmallVec<[&[T]; 16]> = SmallVec::new();
            pool.pixels_at(at % pool.positions(), |pixel| pixels.push(&x[pixel * c..][..c]));
            match pixels[..] {
                [a, b, c, d] if is_usual::<T>() => largest_of_four::<T>(a, b, c, d, y),
                _ => {
                    y.fill(T::LOWEST);
                    for x in pixels {
                        for (y, &x) in y.iter_mut().zip(x) {
                            *y = if x > *y { x } else { *y };
                        }
                    }
                }
            }
        }
    });
}

/// Images of other types are rare, and not worth specialized code.
fn is_usual<T: Lowest>() -> bool {
    T::DTYPE == DType::Float
}

/// The larger of two; the second if they do not compare.
#[inline(always)]
fn larger<T: Lowest>(x: T, y: T) -> T {
    if x > y { x } else { y }
}

multiversion! {
    /// The largest elements of two-by-two windows in two lines of `c` channels.
    fn largest_of_lines[T: Lowest]<T>(c: usize, above: &[T], below: &[T], out: &mut [T]) {
        let lines = above.chunks_exact(2 * c).zip(below.chunks_exact(2 * c));
        for (out, (above, below)) in out.chunks_exact_mut(c).zip(lines) {
            let ((xa, xb), (xc, xd)) = (above.split_at(c), below.split_at(c));
            for i in 0..c {
                let first = larger(xb[i], larger(xa[i], T::LOWEST));
                out[i] = larger(xd[i], larger(xc[i], first));
            }
        }
    }
}

multiversion! {
    /// The largest of four, or the lowest number where none is larger.
    fn largest_of_four[T: Lowest]<T>(a: &[T], b: &[T], c: &[T], d: &[T], out: &mut [T]) {
        for ((((out, &a), &b), &c), &d) in out.iter_mut().zip(a).zip(b).zip(c).zip(d) {
            *out = larger(d, larger(c, larger(b, larger(a, T::LOWEST))));
        }
    }
}

/// The element of the image that every window picks: the first of the largest. -1 if there is none.
fn picked<T: Lowest>(pool: &Pool, x: &[T], best: &mut [T], index: &mut [i64]) {
    let (c, k) = (pool.channels, pool.depth_window);
    if k > 1 {
        let pairs = best.iter_mut().zip(index.iter_mut()).zip(x.chunks_exact(k)).enumerate();
        for (i, ((best, index), x)) in pairs {
            let image = pool.pixels() * c / k;
            let at = x.iter().enumerate().fold(0, |at, (j, v)| if *v > x[at] { j } else { at });
            (*best, *index) = (x[at], (i % image * k + at) as i64);
        }
        return;
    }
    for_rows2(best, c, index, c, 2 * pool.cost(), |range, best, index| {
        for ((at, best), index) in
            range.zip(best.chunks_exact_mut(c)).zip(index.chunks_exact_mut(c))
        {
            let x = &x[at / pool.positions() * pool.pixels() * c..];
            best.fill(T::LOWEST);
            index.fill(-1);
            pool.pixels_at(at % pool.positions(), |pixel| {
                let x = &x[pixel * c..][..c];
                for (j, ((best, index), &x)) in
                    best.iter_mut().zip(index.iter_mut()).zip(x).enumerate()
                {
                    if x > *best || *index < 0 {
                        (*best, *index) = (x, (pixel * c + j) as i64);
                    }
                }
            });
        }
    });
}

impl<T: Lowest> Kernel for MaxPool<T> {
    fn compute(&self, ctx: &mut Ctx<'_>) -> Result<()> {
        let layout = self.attrs.layout;
        let at = if self.part == Part::Output { 1 } else { 3 };
        let window = self.attrs.window(ctx, at)?;
        let x = ctx.input(0)?;
        let pool = self.attrs.over(x.shape(), &window)?;
        let shape = pool.output_shape(self.attrs.spatial);
        let stored = layout.stored(&shape);
        if self.part == Part::Output {
            let x = reordered(x, layout, true)?;
            let mut y = ctx.alloc(T::DTYPE, shape)?;
            if y.elements() > 0 {
                largest(&pool, x.as_slice::<T>()?, y.as_mut_slice()?);
            }
            return ctx.set(0, reordered(&y, layout, false)?);
        }
        let (y, grad) = (ctx.input(1)?, ctx.input(2)?);
        check_shape("orig_output", y.shape(), &stored)?;
        let wanted = if self.part == Part::Grad { &stored } else { x.shape() };
        check_shape("grad", grad.shape(), wanted)?;
        let (x, grad) = (reordered(x, layout, true)?, reordered(grad, layout, true)?);
        let is_plane = self.part == Part::Grad && self.attrs.spatial == 2;
        if is_usual::<T>() && is_plane && pool.is_in_fours() {
            let mut dx = ctx.alloc(T::DTYPE, x.shape().clone())?;
            grads_of_fours::<T>(&pool, x.as_slice()?, grad.as_slice()?, dx.as_mut_slice()?);
            return ctx.set(0, reordered(&dx, layout, false)?);
        }
        if is_plane && pool.depth_window == 1 && grad.elements() > 0 {
            let mut dx = ctx.alloc(T::DTYPE, x.shape().clone())?;
            grads_of_windows::<T>(&pool, x.as_slice()?, grad.as_slice()?, dx.as_mut_slice()?);
            return ctx.set(0, reordered(&dx, layout, false)?);
        }
        let mut best = ctx.alloc(T::DTYPE, shape.clone())?;
        let mut index = ctx.alloc(DType::Int64, shape.clone())?;
        if best.elements() > 0 {
            picked(&pool, x.as_slice::<T>()?, best.as_mut_slice()?, index.as_mut_slice()?);
        }
        if self.part == Part::Grad && self.attrs.spatial == 3 {
            let out = scattered_to_ties::<T>(&pool, &x, &best, &grad)?;
            return ctx.set(0, reordered(&out, layout, false)?);
        }
        let index = index.as_slice::<i64>()?;
        let out = match self.part {
            Part::Grad => scattered::<T>(&pool, &grad, index, x.shape().clone())?,
            _ => gathered::<T>(&pool, &grad, index, best)?,
        };
        ctx.set(0, reordered(&out, layout, false)?)
    }
}

/// The kernel of [`MaxPool`] on a GPU.
fn on_device(init: &KernelInit<'_>, part: Part, spatial: usize) -> Result<KernelBox> {
    let attrs = PoolAttrs::new(init.attrs, spatial)?;
    let dtype = init.dtype("T")?;
    let kernels = PoolKernels::new(init, dtype)?;
    Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
        let layout = attrs.layout;
        let window = attrs.window(ctx, if part == Part::Output { 1 } else { 3 })?;
        let x = ctx.input(0)?;
        let pool = attrs.over(x.shape(), &window)?;
        let shape = pool.output_shape(spatial);
        let stored = layout.stored(&shape);
        if part != Part::Output {
            check_shape("orig_output", ctx.input(1)?.shape(), &stored)?;
            let wanted = if part == Part::Grad { &stored } else { x.shape() };
            check_shape("grad", ctx.input(2)?.shape(), wanted)?;
        }
        let x = reordered_on_device(x, layout, true)?;
        let out = match part {
            Part::Output => {
                let y = ctx.alloc_on_device(dtype, shape)?;
                kernels.largest(ctx, &pool, &x, Some(&y), None, 0)?;
                y
            }
            Part::Grad if spatial == 3 => {
                let best = ctx.alloc_on_device(dtype, shape)?;
                kernels.largest(ctx, &pool, &x, Some(&best), None, 0)?;
                let dy = reordered_on_device(ctx.input(2)?, layout, true)?;
                let dx = ctx.alloc_on_device(dtype, x.shape().clone())?;
                kernels.of_ties(ctx, &pool, [&x, &best, &dy], &dx)?;
                dx
            }
            _ => {
                let index = ctx.alloc_on_device(DType::Int64, shape.clone())?;
                kernels.largest(ctx, &pool, &x, None, Some(&index), 0)?;
                let grad = reordered_on_device(ctx.input(2)?, layout, true)?;
                if part == Part::Grad {
                    let dx = ctx.alloc_on_device(dtype, x.shape().clone())?;
                    kernels.of_picked(ctx, &pool, &index, &grad, &dx)?;
                    dx
                } else {
                    let out = ctx.alloc_on_device(dtype, shape)?;
                    kernels.picked(ctx, &pool, &index, &grad, &out)?;
                    out
                }
            }
        };
        let out = reordered_on_device(&out, layout, false)?;
        ctx.set(0, out)
    }))
}

/// The kernel of MaxPoolWithArgmax on a GPU.
fn with_argmax_on_device(init: &KernelInit<'_>) -> Result<KernelBox> {
    let attrs = PoolAttrs::new(init.attrs, 2)?;
    let (dtype, index_type) = (init.dtype("T")?, init.dtype("Targmax")?);
    let through_batch = init.bool("include_batch_in_index")?;
    let kernels = PoolKernels::new(init, dtype)?;
    Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
        let x = ctx.input(0)?;
        let pool = attrs.over(x.shape(), &attrs.window(ctx, 0)?)?;
        let shape = pool.output_shape(2);
        let y = ctx.alloc_on_device(dtype, shape.clone())?;
        let index = ctx.alloc_on_device(DType::Int64, shape)?;
        let image = if through_batch { pool.pixels() * pool.channels } else { 0 };
        kernels.largest(ctx, &pool, x, Some(&y), Some(&index), image)?;
        let index = match index_type {
            DType::Int32 => kernels.narrow_index(ctx, &index)?,
            _ => index,
        };
        ctx.set(0, y)?;
        ctx.set(1, index)
    }))
}

/// Images of `int32` stay on the host.
const ON_GPU: GpuTypes = gpu::REAL;

/// The gradient of a pool whose two-by-two windows do not overlap: each element belongs to one.
fn grads_of_fours<T: Lowest>(pool: &Pool, x: &[T], grad: &[T], dx: &mut [T]) {
    let (c, across) = (pool.channels, pool.axes[2].output);
    let (line, pair) = (2 * across * c, 4 * across * c);
    // About a nanosecond for four elements of the image.
    for_rows(dx, pair, across * c, |rows, dx| {
        for (row, dx) in rows.zip(dx.chunks_exact_mut(pair)) {
            let (above, below) = x[row * pair..(row + 1) * pair].split_at(line);
            let (dx_above, dx_below) = dx.split_at_mut(line);
            let grad = &grad[row * across * c..(row + 1) * across * c];
            grads_of_lines::<T>(c, [above, below], grad, [dx_above, dx_below]);
        }
    });
}

multiversion! {
    /// For windows in two lines of `c` channels, the gradient goes to the first of the largest of
    /// four elements, and zero to the others. Every element is always written: conditional stores
    /// would compile to masked stores or branches.
    fn grads_of_lines[T: Lowest]<T>(c: usize, x: [&[T]; 2], grad: &[T], dx: [&mut [T]; 2]) {
        let x = x.map(|line| line.chunks_exact(2 * c));
        let dx = dx.map(|line| line.chunks_exact_mut(2 * c));
        let ([above, below], [dx_above, dx_below]) = (x, dx);
        let lines = above.zip(below).zip(dx_above.zip(dx_below));
        for (grad, ((above, below), (dx_above, dx_below))) in grad.chunks_exact(c).zip(lines) {
            let ((xa, xb), (xc, xd)) = (above.split_at(c), below.split_at(c));
            let ((da, db), (dc, dd)) = (dx_above.split_at_mut(c), dx_below.split_at_mut(c));
            for i in 0..c {
                let (a, b, c, d, grad) = (xa[i], xb[i], xc[i], xd[i], grad[i]);
                let two = if b > a { b } else { a };
                let three = if c > two { c } else { two };
                let (here, left) = if d > three { (grad, T::ZERO) } else { (T::ZERO, grad) };
                dd[i] = here;
                let (here, left) = if c > two { (left, T::ZERO) } else { (T::ZERO, left) };
                dc[i] = here;
                let (here, left) = if b > a { (left, T::ZERO) } else { (T::ZERO, left) };
                (db[i], da[i]) = (here, left);
            }
        }
    }
}

/// The gradient of a pool of planes whose windows may overlap.
fn grads_of_windows<T: Lowest>(pool: &Pool, x: &[T], grad: &[T], dx: &mut [T]) {
    let (c, positions) = (pool.channels, pool.positions());
    let image = pool.pixels() * c;
    for_rows(dx, image, 2 * pool.cost() * positions, |images, dx| {
        let (mut best, mut choice) = (vec![T::ZERO; c], vec![0i32; c]);
        let mut pixels: SmallVec<[usize; 16]> = SmallVec::new();
        for (i, dx) in images.zip(dx.chunks_exact_mut(image)) {
            dx.fill(T::ZERO);
            let x = &x[i * image..][..image];
            for at in 0..positions {
                pixels.clear();
                pool.pixels_at(at, |pixel| pixels.push(pixel * c));
                let grad = &grad[(i * positions + at) * c..][..c];
                grads_of_window::<T>(&pixels, x, grad, &mut best, &mut choice, dx);
            }
        }
    });
}

multiversion! {
    /// Adds the gradient of one window to the first of the largest of its pixels, channel by
    /// channel. Every pixel is written, so that the loops have no branches.
    fn grads_of_window[T: Lowest]<T>(
        pixels: &[usize],
        x: &[T],
        grad: &[T],
        best: &mut [T],
        choice: &mut [i32],
        dx: &mut [T]
    ) {
        let c = grad.len();
        let (best, choice) = (&mut best[..c], &mut choice[..c]);
        let Some((first, rest)) = pixels.split_first() else { return };
        best.copy_from_slice(&x[*first..][..c]);
        choice.fill(0);
        for (k, from) in rest.iter().enumerate() {
            let x = &x[*from..][..c];
            let k = k as i32 + 1;
            for j in 0..c {
                let is_larger = x[j] > best[j];
                best[j] = if is_larger { x[j] } else { best[j] };
                choice[j] = if is_larger { k } else { choice[j] };
            }
        }
        for (k, to) in pixels.iter().enumerate() {
            let dx = &mut dx[*to..][..c];
            let k = k as i32;
            for j in 0..c {
                let share = if choice[j] == k { grad[j] } else { T::ZERO };
                dx[j] = dx[j].add(share);
            }
        }
    }
}

fn check_shape(what: &str, is: &Shape, want: &Shape) -> Result<()> {
    ensure!(is == want, InvalidArgument, "Expected {what} shape to be {want}, but got {is}");
    Ok(())
}

/// Adds the gradients of windows to the elements that they picked. Indices are within an image.
fn scattered<T: Num>(pool: &Pool, grad: &Tensor, index: &[i64], shape: Shape) -> Result<Tensor> {
    let mut dx = Tensor::zeros(T::DTYPE, shape)?;
    let image = pool.pixels() * pool.channels;
    if dx.elements() == 0 || index.is_empty() {
        return Ok(dx);
    }
    let grad = grad.as_slice::<T>()?;
    let per_image = index.len() / pool.batch;
    for_rows(dx.as_mut_slice::<T>()?, image, per_image, |images, dx| {
        for (i, dx) in images.zip(dx.chunks_exact_mut(image)) {
            let from = i * per_image..(i + 1) * per_image;
            for (&at, g) in index[from.clone()].iter().zip(&grad[from]) {
                if let Some(dx) = usize::try_from(at).ok().and_then(|at| dx.get_mut(at)) {
                    *dx = dx.add(*g);
                }
            }
        }
    });
    Ok(dx)
}

/// Like `scattered`, but to every element that equals the largest, as pools of volumes do.
fn scattered_to_ties<T: Lowest>(
    pool: &Pool,
    x: &Tensor,
    best: &Tensor,
    grad: &Tensor,
) -> Result<Tensor> {
    let mut dx = Tensor::zeros(T::DTYPE, x.shape().clone())?;
    let (image, windows) = (pool.pixels() * pool.channels, pool.positions() * pool.channels);
    if dx.elements() == 0 || windows == 0 {
        return Ok(dx);
    }
    let (x, best, grad) = (x.as_slice::<T>()?, best.as_slice::<T>()?, grad.as_slice::<T>()?);
    let c = pool.channels;
    for_rows(dx.as_mut_slice::<T>()?, image, windows, |images, dx| {
        for (i, dx) in images.zip(dx.chunks_exact_mut(image)) {
            let x = &x[i * image..][..image];
            for at in 0..pool.positions() {
                let from = i * windows + at * c;
                let (best, grad) = (&best[from..from + c], &grad[from..from + c]);
                pool.pixels_at(at, |pixel| {
                    for j in 0..c {
                        let here = pixel * c + j;
                        if x[here] == best[j] {
                            dx[here] = dx[here].add(grad[j]);
                        }
                    }
                });
            }
        }
    });
    Ok(dx)
}

/// The values of `grad` at the picked elements, in `out`, which has the shape of the output.
fn gathered<T: Num>(pool: &Pool, grad: &Tensor, index: &[i64], mut out: Tensor) -> Result<Tensor> {
    let image = pool.pixels() * pool.channels;
    let grad = grad.as_slice::<T>()?;
    let per_image = index.len().checked_div(pool.batch).unwrap_or(0).max(1);
    for (i, (y, &at)) in out.as_mut_slice::<T>()?.iter_mut().zip(index).enumerate() {
        let from = i / per_image * image;
        *y = usize::try_from(at).ok().and_then(|at| grad.get(from + at)).map_or(T::ZERO, |g| *g);
    }
    Ok(out)
}

/// MaxPoolWithArgmax and the gradients that are given its indices.
struct WithArgmax<T> {
    part: Part,
    attrs: PoolAttrs,
    /// Whether indices count through the whole batch.
    through_batch: bool,
    index: DType,
    marker: std::marker::PhantomData<T>,
}

impl<T: Lowest> WithArgmax<T> {
    fn new(init: &KernelInit<'_>, part: Part) -> Result<Self> {
        Ok(WithArgmax {
            part,
            attrs: PoolAttrs::new(init.attrs, 2)?,
            through_batch: init.bool("include_batch_in_index")?,
            index: init.dtype("Targmax")?,
            marker: std::marker::PhantomData,
        })
    }

    fn with_gradient(&self, ctx: &Ctx<'_>, pool: &Pool, shape: &Shape) -> Result<Tensor> {
        let (x, grad, argmax) = (ctx.input(0)?, ctx.input(1)?, ctx.input(2)?);
        check_shape("argmax", argmax.shape(), shape)?;
        let wanted = if self.part == Part::Grad { shape } else { x.shape() };
        check_shape("grad", grad.shape(), wanted)?;
        let image = pool.pixels() * pool.channels;
        let per_image = shape[1..].iter().product::<usize>().max(1);
        let mut index = argmax.to_indices()?;
        for (i, at) in index.iter_mut().enumerate() {
            let start = if self.through_batch { i / per_image * image } else { 0 } as i64;
            let within = at.checked_sub(start).filter(|at| (0..image as i64).contains(at));
            let Some(within) = within else {
                bail!(
                    InvalidArgument,
                    "Invalid output grad index: {at}, it must be within [{start}, {})",
                    start + image as i64
                );
            };
            *at = within;
        }
        match self.part {
            Part::Grad => scattered::<T>(pool, grad, &index, x.shape().clone()),
            _ => gathered::<T>(pool, grad, &index, ctx.alloc(T::DTYPE, shape.clone())?),
        }
    }
}

impl<T: Lowest> Kernel for WithArgmax<T> {
    fn compute(&self, ctx: &mut Ctx<'_>) -> Result<()> {
        let window = self.attrs.window(ctx, 0)?;
        let x = ctx.input(0)?;
        let pool = self.attrs.over(x.shape(), &window)?;
        let shape = pool.output_shape(2);
        if self.part != Part::Output {
            let out = self.with_gradient(ctx, &pool, &shape)?;
            return ctx.set(0, out);
        }
        let mut y = ctx.alloc(T::DTYPE, shape.clone())?;
        let mut index = ctx.alloc(DType::Int64, shape.clone())?;
        if y.elements() > 0 {
            let index = index.as_mut_slice::<i64>()?;
            picked(&pool, x.as_slice::<T>()?, y.as_mut_slice()?, index);
            if self.through_batch {
                let image = (pool.pixels() * pool.channels) as i64;
                let per_image = index.len() / pool.batch;
                for (i, index) in index.chunks_exact_mut(per_image).enumerate() {
                    index.iter_mut().for_each(|at| *at += i as i64 * image);
                }
            }
        }
        if self.index == DType::Int32 {
            let narrow: Vec<i32> = index.as_slice::<i64>()?.iter().map(|&i| i as i32).collect();
            index = Tensor::from_slice(shape, &narrow)?;
        }
        ctx.set(0, y)?;
        ctx.set(1, index)
    }
}

const POOLED: &str = "T: {half, bfloat16, float, double, int32, int64, uint8, int16, int8, uint16, \
                      qint8} = DT_FLOAT";
const FORMAT: &str = "data_format: {'NHWC', 'NCHW'} = 'NHWC'";
const FORMAT_3D: &str = "data_format: {'NDHWC', 'NCDHW'} = 'NDHWC'";
const VECT_FORMAT: &str = "data_format: {'NHWC', 'NCHW', 'NCHW_VECT_C'} = 'NHWC'";
const PADDING: &str = "padding: {'SAME', 'VALID'}";
const EXPLICIT: &str = "padding: {'SAME', 'VALID', 'EXPLICIT'}";
const EXPLICIT_PADDINGS: &str = "explicit_paddings: list(int) = []";
const KSIZE: &str = "ksize: list(int) >= 4";
const STRIDES: &str = "strides: list(int) >= 4";
const KSIZE_3D: &str = "ksize: list(int) >= 5";
const STRIDES_3D: &str = "strides: list(int) >= 5";
const REAL: &str = "T: realnumbertype";
const REAL_OR_FLOAT: &str = "T: realnumbertype = DT_FLOAT";
const OF_GRADIENT: [&str; 3] = ["orig_input: T", "orig_output: T", "grad: T"];
const OF_GRADIENT_V2: [&str; 5] =
    ["orig_input: T", "orig_output: T", "grad: T", "ksize: int32", "strides: int32"];

pub(crate) fn register(c: &mut Catalog) {
    register_pools(c);
    register_with_argmax(c);
    for (op, back, again) in [
        ("MaxPool", "MaxPoolGrad", "MaxPoolGradGrad"),
        ("MaxPool3D", "MaxPool3DGrad", "MaxPool3DGradGrad"),
    ] {
        c.gradient(op, move |g, dy| Ok(vec![g.call_like(back, &[g.input(0), g.output(0), dy[0]])]));
        for (op, back) in [(back, again), (again, back)] {
            c.gradient(op, move |g, dy| {
                let (x, y) = (g.input(0), g.input(1));
                Ok(vec![x.zeros_like(), y.zeros_like(), g.call_like(back, &[x, y, dy[0]])])
            });
        }
    }
    c.gradient("MaxPoolV2", |g, dy| {
        let inputs = [g.input(0), g.output(0), dy[0], g.input(1), g.input(2)];
        Ok(g.only(g.call_like("MaxPoolGradV2", &inputs)))
    });
    c.gradient("MaxPoolGradV2", |g, dy| {
        let (x, y) = (g.input(0), g.input(1));
        let inputs = [x, y, dy[0], g.input(3), g.input(4)];
        let back = g.call_like("MaxPoolGradGradV2", &inputs);
        Ok(vec![x.zeros_like(), y.zeros_like(), back, g.none(), g.none()])
    });
    c.gradient("MaxPoolWithArgmax", |g, dy| {
        let inputs = [g.input(0), dy[0], g.output(1)];
        Ok(vec![g.call_like("MaxPoolGradWithArgmax", &inputs)])
    });
}

/// An op that pools, or a gradient of one.
struct PoolOp {
    name: &'static str,
    doc: &'static str,
    inputs: &'static [&'static str],
    attrs: &'static [&'static str],
    part: Part,
    /// How many dimensions the window slides over.
    spatial: usize,
}

const POOLS: [PoolOp; 9] = [
    PoolOp {
        name: "MaxPool",
        doc: "The largest element under a sliding window.",
        inputs: &["input: T"],
        attrs: &[POOLED, KSIZE, STRIDES, EXPLICIT, EXPLICIT_PADDINGS, VECT_FORMAT],
        part: Part::Output,
        spatial: 2,
    },
    PoolOp {
        name: "MaxPoolV2",
        doc: "The largest element under a sliding window that inputs describe.",
        inputs: &["input: T", "ksize: int32", "strides: int32"],
        attrs: &[POOLED, PADDING, VECT_FORMAT],
        part: Part::Output,
        spatial: 2,
    },
    PoolOp {
        name: "MaxPoolGrad",
        doc: "Gradient of MaxPool.",
        inputs: &OF_GRADIENT,
        attrs: &[KSIZE, STRIDES, EXPLICIT, EXPLICIT_PADDINGS, FORMAT, REAL_OR_FLOAT],
        part: Part::Grad,
        spatial: 2,
    },
    PoolOp {
        name: "MaxPoolGradV2",
        doc: "Gradient of MaxPoolV2.",
        inputs: &OF_GRADIENT_V2,
        attrs: &[PADDING, FORMAT, REAL_OR_FLOAT],
        part: Part::Grad,
        spatial: 2,
    },
    PoolOp {
        name: "MaxPoolGradGrad",
        doc: "Gradient of MaxPoolGrad.",
        inputs: &OF_GRADIENT,
        attrs: &[KSIZE, STRIDES, PADDING, FORMAT, REAL],
        part: Part::GradGrad,
        spatial: 2,
    },
    PoolOp {
        name: "MaxPoolGradGradV2",
        doc: "Gradient of MaxPoolGradV2.",
        inputs: &OF_GRADIENT_V2,
        attrs: &[PADDING, FORMAT, REAL],
        part: Part::GradGrad,
        spatial: 2,
    },
    PoolOp {
        name: "MaxPool3D",
        doc: "The largest element under a window sliding over a volume.",
        inputs: &["input: T"],
        attrs: &[KSIZE_3D, STRIDES_3D, PADDING, FORMAT_3D, "T: {half, bfloat16, float}"],
        part: Part::Output,
        spatial: 3,
    },
    PoolOp {
        name: "MaxPool3DGrad",
        doc: "Gradient of MaxPool3D.",
        inputs: &["orig_input: TInput", "orig_output: TInput", "grad: T"],
        attrs: &[
            KSIZE_3D,
            STRIDES_3D,
            PADDING,
            FORMAT_3D,
            "T: {half, bfloat16, float} = DT_FLOAT",
            "TInput: {half, bfloat16, float} = DT_FLOAT",
        ],
        part: Part::Grad,
        spatial: 3,
    },
    PoolOp {
        name: "MaxPool3DGradGrad",
        doc: "Gradient of MaxPool3DGrad.",
        inputs: &OF_GRADIENT,
        attrs: &[KSIZE_3D, STRIDES_3D, PADDING, FORMAT_3D, REAL],
        part: Part::GradGrad,
        spatial: 3,
    },
];

fn register_pools(c: &mut Catalog) {
    for PoolOp { name, doc, inputs, attrs, part, spatial } in POOLS {
        let op = c.op(name).doc(doc).inputs(inputs).output("output: T").attrs(attrs).expensive();
        let op = op.shape(part.shape(spatial));
        let windows: &[&'static str] = match inputs.contains(&"ksize: int32") {
            true => &["ksize", "strides"],
            false => &[],
        };
        let op = op.gpu(if spatial == 2 { ON_GPU } else { gpu::FLOAT }, move |init| {
            on_device(init, part, spatial)
        });
        let op = op.host_inputs(windows);
        if spatial == 2 {
            op.cpu(move |init| {
                per_dtype!(REAL, init, T => MaxPool::<T>::new(init, part, 2)?)(init)
            });
        } else {
            op.cpu(move |init| {
                per_dtype!(FLOAT, init, T => MaxPool::<T>::new(init, part, 3)?)(init)
            });
        }
    }
}

fn register_with_argmax(c: &mut Catalog) {
    const INDEX: &str = "Targmax: {int32, int64}";
    const BATCH: &str = "include_batch_in_index: bool = false";
    const GRADIENT_INPUTS: [&str; 3] = ["input: T", "grad: T", "argmax: Targmax"];
    const GRADIENT_ATTRS: [&str; 6] = [KSIZE, STRIDES, PADDING, BATCH, INDEX, REAL];
    for (name, doc, inputs, outputs, attrs, part) in [
        (
            "MaxPoolWithArgmax",
            "The largest element under a sliding window, and where it is.",
            &["input: T"][..],
            &["output: T", "argmax: Targmax"][..],
            [KSIZE, STRIDES, "Targmax: {int32, int64} = DT_INT64", PADDING, BATCH, REAL],
            Part::Output,
        ),
        (
            "MaxPoolGradWithArgmax",
            "Gradient of MaxPoolWithArgmax.",
            &GRADIENT_INPUTS[..],
            &["output: T"][..],
            GRADIENT_ATTRS,
            Part::Grad,
        ),
        (
            "MaxPoolGradGradWithArgmax",
            "Gradient of MaxPoolGradWithArgmax.",
            &GRADIENT_INPUTS[..],
            &["output: T"][..],
            GRADIENT_ATTRS,
            Part::GradGrad,
        ),
    ] {
        let op = c
            .op(name)
            .doc(doc)
            .inputs(inputs)
            .outputs(outputs)
            .attrs(&attrs)
            .expensive()
            .shape(part.shape(2));
        let op = match part {
            Part::Output => op.gpu(ON_GPU, with_argmax_on_device),
            _ => op,
        };
        op.cpu(move |init| per_dtype!(REAL, init, T => WithArgmax::<T>::new(init, part)?)(init));
    }
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::testing::{Check, check};

    fn image(dims: [usize; 4], values: &[f32]) -> Tensor {
        Tensor::from_slice(dims, values).unwrap()
    }

    fn counted(dims: [usize; 4]) -> Tensor {
        image(dims, &(0..dims.iter().product::<usize>()).map(|i| i as f32).collect::<Vec<_>>())
    }

    fn attrs(op: Check<'static>, k: i64, stride: i64, padding: &str) -> Check<'static> {
        let square = |x| vec![1, x, x, 1];
        op.attr("ksize", square(k)).attr("strides", square(stride)).attr("padding", padding)
    }

    #[test]
    fn the_largest_under_each_window() {
        let x = || counted([1, 3, 3, 1]);
        let valid = attrs(check("MaxPool").input(x()), 2, 1, "VALID");
        valid.gives(image([1, 2, 2, 1], &[4.0, 5.0, 7.0, 8.0]));
        let same = attrs(check("MaxPool").input(x()), 2, 2, "SAME");
        same.gives(image([1, 2, 2, 1], &[4.0, 5.0, 7.0, 8.0]));
        let [k, s] = [[1i32, 2, 2, 1], [1, 2, 2, 1]].map(|v| Tensor::vector(&v));
        let v2 = check("MaxPoolV2").input(x()).input(k).input(s).attr("padding", "SAME");
        v2.gives(image([1, 2, 2, 1], &[4.0, 5.0, 7.0, 8.0]));
        let deep = check("MaxPool").input(counted([1, 1, 1, 4])).attr("padding", "VALID");
        let deep = deep.attr("ksize", vec![1, 1, 1, 2]).attr("strides", vec![1, 1, 1, 2]);
        deep.gives(image([1, 1, 1, 2], &[1.0, 3.0]));
        let first = check("MaxPool").input(counted([1, 1, 3, 3])).attr("padding", "VALID");
        let first = first.attr("ksize", vec![1, 1, 2, 2]).attr("strides", vec![1; 4]);
        let first = first.attr("data_format", "NCHW");
        first.gives(image([1, 1, 2, 2], &[4.0, 5.0, 7.0, 8.0]));
        let nan = image([1, 2, 2, 1], &[f32::NAN, 1.0, 3.0, 2.0]);
        attrs(check("MaxPool").input(nan), 2, 1, "VALID").gives(image([1, 1, 1, 1], &[3.0]));
        let volume: Vec<f32> = (0..27).map(|i| i as f32).collect();
        check("MaxPool3D")
            .input(Tensor::from_slice([1, 3, 3, 3, 1], &volume).unwrap())
            .attr("ksize", vec![1, 3, 3, 3, 1])
            .attr("strides", vec![1; 5])
            .attr("padding", "VALID")
            .gives(Tensor::from_slice([1, 1, 1, 1, 1], &[26f32]).unwrap());
    }

    #[test]
    fn gradients_go_to_the_first_of_the_largest() {
        let ones = image([1, 2, 2, 1], &[1.0; 4]);
        let one = || image([1, 1, 1, 1], &[1.0]);
        let grad = check("MaxPoolGrad").input(ones).input(one()).input(one());
        attrs(grad, 2, 1, "VALID").gives(image([1, 2, 2, 1], &[1.0, 0.0, 0.0, 0.0]));
        // Overlapping windows add up.
        let x = || image([1, 1, 3, 1], &[1.0, 5.0, 2.0]);
        let y = || image([1, 1, 2, 1], &[5.0, 5.0]);
        let grad =
            check("MaxPoolGrad").input(x()).input(y()).input(image([1, 1, 2, 1], &[2.0, 3.0]));
        let line = |op: Check<'static>| {
            op.attr("ksize", vec![1, 1, 2, 1]).attr("strides", vec![1; 4]).attr("padding", "VALID")
        };
        line(grad).gives(image([1, 1, 3, 1], &[0.0, 5.0, 0.0]));
        let again = check("MaxPoolGradGrad").input(x()).input(y());
        let again = line(again.input(image([1, 1, 3, 1], &[10.0, 20.0, 30.0])));
        again.gives(image([1, 1, 2, 1], &[20.0, 20.0]));
        let bad = check("MaxPoolGrad").input(x()).input(one()).input(y());
        let text = "Expected orig_output shape to be [1,1,2,1], but got [1,1,1,1]";
        line(bad).fails(Code::InvalidArgument, text);
    }

    /// A separate path for 2 x 2 windows without overlap.
    #[test]
    fn gradients_of_every_window_of_four() {
        let n = f32::NAN;
        let x = image([1, 2, 6, 1], &[1., 1., 0., n, n, 5., 1., 0., 7., 8., 6., n]);
        let y = image([1, 1, 3, 1], &[1., 8., 6.]);
        let dy = image([1, 1, 3, 1], &[10., 20., 30.]);
        let want = image([1, 2, 6, 1], &[10., 0., 0., 0., 30., 0., 0., 0., 0., 20., 0., 0.]);
        attrs(check("MaxPoolGrad"), 2, 2, "VALID").input(x).input(y).input(dy).gives(want);
        let x = image([1, 2, 2, 2], &[0., 3., 0., 3., 2., 2., 2., 4.]);
        let (y, dy) = (image([1, 1, 1, 2], &[2., 4.]), image([1, 1, 1, 2], &[5., 6.]));
        let want = image([1, 2, 2, 2], &[0., 0., 0., 0., 5., 0., 0., 6.]);
        attrs(check("MaxPoolGrad"), 2, 2, "SAME").input(x).input(y).input(dy).gives(want);
    }

    #[test]
    fn in_volumes_all_of_the_largest_share_a_gradient() {
        let volume = |dims: [usize; 5], x: &[f32]| Tensor::from_slice(dims, x).unwrap();
        check("MaxPool3DGrad")
            .input(volume([1, 1, 2, 3, 1], &[1.0; 6]))
            .input(volume([1, 1, 1, 2, 1], &[1.0; 2]))
            .input(volume([1, 1, 1, 2, 1], &[10.0, 1.0]))
            .attr("ksize", vec![1, 1, 2, 2, 1])
            .attr("strides", vec![1; 5])
            .attr("padding", "VALID")
            .gives(volume([1, 1, 2, 3, 1], &[10.0, 11.0, 1.0, 10.0, 11.0, 1.0]));
    }

    #[test]
    fn positions_of_the_largest() {
        let op = || attrs(check("MaxPoolWithArgmax").input(counted([2, 2, 2, 1])), 2, 2, "SAME");
        let got = op().run().unwrap();
        assert_eq!(got[0], image([2, 1, 1, 1], &[3.0, 7.0]));
        assert_eq!(got[1], Tensor::from_slice([2, 1, 1, 1], &[3i64, 3]).unwrap());
        let got = op().attr("include_batch_in_index", true).attr("Targmax", DType::Int32);
        let got = got.run().unwrap();
        assert_eq!(got[1], Tensor::from_slice([2, 1, 1, 1], &[3i32, 7]).unwrap());
        let grad = |at: i64| {
            let op = check("MaxPoolGradWithArgmax").input(counted([1, 2, 2, 1]));
            let op = op.input(image([1, 1, 1, 1], &[5.0]));
            attrs(op.input(Tensor::from_slice([1, 1, 1, 1], &[at]).unwrap()), 2, 1, "VALID")
        };
        grad(3).gives(image([1, 2, 2, 1], &[0.0, 0.0, 0.0, 5.0]));
        grad(4).fails(Code::InvalidArgument, "Invalid output grad index: 4");
    }

    #[test]
    fn windows_are_checked() {
        let pool = |k: [i64; 4], s: [i64; 4]| {
            let op = check("MaxPool").input(counted([1, 3, 3, 5])).attr("padding", "VALID");
            op.attr("ksize", k.to_vec()).attr("strides", s.to_vec())
        };
        let text = "Pooling is not yet supported on the batch dimension.";
        pool([2, 1, 1, 1], [1; 4]).fails(Code::Unimplemented, text);
        let text = "Depthwise max pooling requires the depth window to evenly divide";
        pool([1, 1, 1, 2], [1, 1, 1, 2]).fails(Code::Unimplemented, text);
        let text = "MaxPooling supports exactly one of pooling across depth or pooling across";
        pool([1, 2, 2, 5], [1, 1, 1, 5]).fails(Code::Unimplemented, text);
        let text = "Sliding window ksize for dimension 1 was zero.";
        pool([1, 0, 1, 1], [1; 4]).fails(Code::InvalidArgument, text);
        let text = "Stride must be > 0, but got 0";
        pool([1, 1, 1, 1], [1, 1, 0, 1]).fails(Code::InvalidArgument, text);
        let padded = pool([1, 2, 2, 1], [1; 4]).attr("padding", "EXPLICIT");
        let padded = padded.attr("explicit_paddings", vec![0, 0, 2, 1, 1, 1, 0, 0]);
        let text = "Top padding 2 needs to be smaller than the window size 2";
        padded.fails(Code::InvalidArgument, text);
    }
}
