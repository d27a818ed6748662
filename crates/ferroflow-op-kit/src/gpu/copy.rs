//! Moving elements within the memory of a GPU: copies whose source and destination are walked
//! differently, and fills. Array ops use these through functions that work in either memory.

use super::walk::{self, Walk};
use super::{address, c_width, length, one_dimensional};
use crate::prelude::*;
use ferroflow_core::{Gpu, Launch, LaunchArg};
use ferroflow_graph::GpuMoves;

const BODY: &str = r#"
struct alignas(16) Pair { u64 a, b; };
extern "C" __global__ void walk_copy(i64 n, Walk<2> walk, const Word *from, Word *to) {
    for (i64 i = thread_number(); i < n; i += thread_count()) {
        i64 at[2];
        walk.find(i, at);
        to[at[1]] = from[at[0]];
    }
}
extern "C" __global__ void fill(i64 n, const Word *value, Word *to) {
    Word x = *value;
    for (i64 i = thread_number(); i < n; i += thread_count()) to[i] = x;
}
"#;

const GATHER: &str = r#"
struct alignas(16) Pair { u64 a, b; };
extern "C" __global__ void gather(i64 n, i64 outer, i64 rows, i64 inner, i64 picks,
                                  const Word *params, const Index *indices, Word *out) {
    for (i64 i = thread_number(); i < n; i += thread_count()) {
        i64 o = i / (inner * picks), p = i / inner % picks;
        i64 row = (i64)indices[o / outer * picks + p];
        Word zero = {};
        out[i] = 0 <= row && row < rows ? params[(o * rows + row) * inner + i % inner] : zero;
    }
}
"#;

/// The sizes of a gather: for each of `outer` blocks of each batch, the rows (of `inner` elements)
/// that `picks` indices name among `rows`.
#[derive(Clone, Copy, Debug)]
pub struct GatherSizes {
    /// Blocks of a batch, which share indices.
    pub outer: usize,
    /// Rows of a block.
    pub rows: usize,
    /// Elements of a row.
    pub inner: usize,
    /// Indices of a batch.
    pub picks: usize,
}

/// Copies the rows of `params` that `indices` name to `out`. An index out of range gives zeros, as
/// on TensorFlow's GPUs.
pub fn gather(params: &Tensor, indices: &Tensor, sizes: GatherSizes, out: &Tensor) -> Result<()> {
    let gpu = gpu_of_both(params, out)?;
    let n = out.elements();
    if n == 0 {
        return Ok(());
    }
    let text = GATHER
        .replace("Word", c_width(params.dtype())?)
        .replace("Index", super::c_type(indices.dtype())?);
    let GatherSizes { outer, rows, inner, picks } = sizes;
    let lengths = [n, outer, rows, inner, picks].map(length);
    let addresses = [address(params)?, address(indices)?, address(out)?];
    let args: Vec<LaunchArg> = lengths.into_iter().chain(addresses).collect();
    let (grid, block) = one_dimensional(n);
    gpu.launch(&Launch { function: gpu.load(&text, "gather")?, grid, block, args: &args })
}

const GATHER_ND: &str = r#"
struct alignas(16) Pair { u64 a, b; };
struct Tuple { i64 depth; i64 dims[8]; };
extern "C" __global__ void gather_nd(i64 n, Tuple tuple, i64 inner, const Word *params,
                                     const Index *indices, Word *out) {
    for (i64 i = thread_number(); i < n; i += thread_count()) {
        i64 row = 0;
        bool is_inside = true;
        for (int d = 0; d < (int)tuple.depth; d++) {
            i64 at = (i64)indices[i / inner * tuple.depth + d];
            is_inside = is_inside && 0 <= at && at < tuple.dims[d];
            row = row * tuple.dims[d] + at;
        }
        Word zero = {};
        out[i] = is_inside ? params[row * inner + i % inner] : zero;
    }
}
"#;

/// Copies the slices of `params` that tuples of indices name to `out`. The tuples index into the
/// first dimensions, `dims`. One out of range gives zeros, as on TensorFlow's GPUs.
pub fn gather_nd(params: &Tensor, indices: &Tensor, dims: &[usize], out: &Tensor) -> Result<()> {
    let gpu = gpu_of_both(params, out)?;
    let n = out.elements();
    if n == 0 {
        return Ok(());
    }
    let text = GATHER_ND
        .replace("Word", c_width(params.dtype())?)
        .replace("Index", super::c_type(indices.dtype())?);
    let inner = params.elements() / dims.iter().product::<usize>();
    let tuple = super::rows::tuple_arg(dims)?;
    let (params, indices, to) = (address(params)?, address(indices)?, address(out)?);
    let args = [length(n), tuple, length(inner), params, indices, to];
    let (grid, block) = one_dimensional(n);
    gpu.launch(&Launch { function: gpu.load(&text, "gather_nd")?, grid, block, args: &args })
}

/// The text of the kernels that move elements of `dtype`.
pub fn text(dtype: DType) -> Result<String> {
    Ok(format!("{}{}", walk::TEXT, BODY.replace("Word", c_width(dtype)?)))
}

/// Begins to compile the kernels that move elements of `dtype`, if the node is on a GPU.
pub fn prepare(init: &KernelInit<'_>, dtype: DType) -> Result<()> {
    match init.node.device.gpu {
        Some(_) if dtype.is_plain() => super::prepare(init, &text(dtype)?),
        _ => Ok(()),
    }
}

/// A loop of a copy: how often, and how far the source and the destination step.
pub type CopyLoop = (usize, isize, isize);

/// Copies from element `from` of `src` to element `to` of `dst`, which are on one GPU and have one
/// dtype. Loops come outermost first.
pub fn copy(src: &Tensor, from: isize, dst: &Tensor, to: isize, loops: &[CopyLoop]) -> Result<()> {
    let gpu = gpu_of_both(src, dst)?;
    let size = src.dtype().size().unwrap_or(1);
    let at = |t: &Tensor, first: isize| -> Result<u64> {
        Ok(t.device_address()?.wrapping_add_signed((first * size as isize) as i64))
    };
    let (from, to) = (at(src, from)?, at(dst, to)?);
    if let [] | [(_, 1, 1)] = loops {
        let n: usize = loops.iter().map(|l| l.0).product();
        return gpu.copy(from, to, n * size);
    }
    let wide = wider(loops, size, from | to);
    let loops = wide.as_ref().map_or(loops, |(_, loops)| loops);
    let n: usize = loops.iter().map(|l| l.0).product();
    let dims: Vec<usize> = loops.iter().map(|l| l.0).collect();
    let strides = |side: fn(&CopyLoop) -> isize| loops.iter().map(|l| side(l) as i64).collect();
    let walk = Walk::new(&dims, &[strides(|l| l.1), strides(|l| l.2)])?;
    let args = [length(n), walk.arg(), LaunchArg::Address(from), LaunchArg::Address(to)];
    let dtype = wide.map_or(src.dtype(), |(dtype, _)| dtype);
    launch(gpu.as_ref(), dtype, "walk_copy", n, &args)
}

/// The kernel of fused moves, for [`Catalog::move_on_gpus_with`].
pub fn moved(moves: &GpuMoves, init: &KernelInit<'_>) -> Result<KernelBox> {
    let moves = moves.clone();
    let dtype = init.output_dtype(0)?;
    let size = dtype.size().unwrap_or(1);
    for &(_, from, to) in &moves.parts {
        // Tensors begin at multiples of 256.
        let bits = (from * size as isize) | (to * size as isize);
        let wide = wider(&moves.loops, size, bits as u64).map_or(dtype, |(dtype, _)| dtype);
        prepare(init, wide)?;
    }
    Ok(KernelBox::new(move |ctx: &mut Ctx<'_>| {
        let out = ctx.alloc_on_device(ctx.input(0)?.dtype(), moves.shape.as_slice())?;
        for (i, &(elements, from, to)) in moves.parts.iter().enumerate() {
            let x = ctx.input(i)?;
            ensure!(x.elements() == elements, Internal, "a move of another shape: {}", x.shape());
            copy(x, from, &out, to, &moves.loops)?;
        }
        ctx.set(0, out)
    }))
}

/// The same copy in elements of a wider type, if rows of the source are rows of the destination.
/// `addresses` has the bits of both addresses, `size` is that of an element.
fn wider(loops: &[CopyLoop], size: usize, addresses: u64) -> Option<(DType, Vec<CopyLoop>)> {
    let (&(inner, 1, 1), outer) = loops.split_last()? else { return None };
    let types = [DType::Complex128, DType::Complex64, DType::Float, DType::Half];
    types.into_iter().find_map(|dtype| {
        let wide = dtype.size()?;
        let by = (wide / size) as isize;
        let is_whole = |step: isize| step % by == 0;
        let fits = wide > size
            && addresses.is_multiple_of(wide as u64)
            && is_whole(inner as isize)
            && outer.iter().all(|l| is_whole(l.1) && is_whole(l.2));
        fits.then(|| {
            let outer = outer.iter().map(|l| (l.0, l.1 / by, l.2 / by));
            (dtype, outer.chain([(inner / by as usize, 1, 1)]).collect())
        })
    })
}

/// Sets every element of `t` to the one element of `value`, which may be in host memory.
pub fn fill(t: &Tensor, value: &Tensor) -> Result<()> {
    ensure!(
        value.elements() == 1,
        InvalidArgument,
        "value must represent a scalar, got shape {}",
        value.shape()
    );
    let Some(gpu) = t.gpu() else { bail!(Internal, "a fill on a GPU of host memory") };
    let value = value.to_device(gpu)?;
    let args = [length(t.elements()), address(&value)?, address(t)?];
    launch(gpu.as_ref(), t.dtype(), "fill", t.elements(), &args)
}

fn launch(gpu: &dyn Gpu, dtype: DType, name: &str, n: usize, args: &[LaunchArg]) -> Result<()> {
    if n == 0 {
        return Ok(());
    }
    let function = gpu.load(&text(dtype)?, name)?;
    let (grid, block) = one_dimensional(n);
    gpu.launch(&Launch { function, grid, block, args })
}

fn gpu_of_both<'a>(src: &'a Tensor, dst: &Tensor) -> Result<&'a Arc<dyn Gpu>> {
    match (src.gpu(), dst.gpu()) {
        (Some(a), Some(b)) if Arc::ptr_eq(a, b) => Ok(a),
        _ => bail!(Internal, "a copy on a GPU between tensors in different memories"),
    }
}
